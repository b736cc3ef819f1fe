"""Reductions, scans and orders."""

from __future__ import annotations

import math

from rushlight._seen._table import ops, options, seen, show, unsqueezed, zeros


def _listed(dim):
    return [dim] if isinstance(dim, int) else list(dim or ())


# ---- sums and their like


def _sum(g, x_shape, dim, keepdim):
    return unsqueezed(g, dim, len(x_shape), keepdim).expand(x_shape)


def _nansum(g, x, dim, keepdim):
    counted = x.isnan().logical_not()
    restored = g if dim is None else unsqueezed(g, dim, x.dim(), keepdim)
    return restored.expand(x.shape) * counted


def _logsumexp(g, x, dim, keepdim, out):
    g = unsqueezed(g, dim, x.dim(), keepdim)
    return g * (x - unsqueezed(out, dim, x.dim(), keepdim)).exp()


seen("nansum", x=_nansum)
seen("logsumexp", x=_logsumexp)

# ---- deviations


def _count(x, dim):
    return x.numel() if dim is None else math.prod(x.shape[d] for d in _listed(dim)) if x.dim() else 1


def _var(g, x, dim, correction, keepdim):
    if not x.dim():
        return NotImplemented
    degrees = _count(x, dim) - (1 if correction is None else correction)
    if degrees <= 0:
        return NotImplemented
    if dim is None:
        return _times(g, 2.0 / degrees, x - x.mean())
    if x.dim() > 1:
        g = unsqueezed(g, dim, x.dim(), keepdim)
    return _times(g, 2.0 / degrees, x - x.mean(_listed(dim), True))


def _times(g, factor, deviation):
    """A product after the deviation has been computed."""
    return g * factor * deviation


def _through_root(g, root):
    return (g / (root * 2)).masked_fill_(root == 0, 0)


def _std(g, x, dim, correction, keepdim, out):
    return _var(_through_root(g, out), x, dim, correction, keepdim)


def _mean(g, x, dim, keepdim):
    if dim is not None:
        g = unsqueezed(g, dim, x.dim(), keepdim)
    return g.expand(x.shape) / _count(x, dim)


def _var_mean(g_var, g_mean, x, dim, correction, keepdim, needs):
    parts = []
    if g_var is not None:
        parts.append(_var(g_var, x, dim, correction, keepdim))
        if parts[0] is NotImplemented:
            return NotImplemented
    if g_mean is not None:
        parts.append(_mean(g_mean, x, dim, keepdim))
    return (parts[0] + parts[1] if len(parts) == 2 else parts[0],)


def _std_mean(g_std, g_mean, x, dim, correction, keepdim, std, needs):
    through = None if g_std is None else _through_root(g_std, std)
    return _var_mean(through, g_mean, x, dim, correction, keepdim, needs)


seen("var", x=_var)
seen("std", x=_std)
seen("var_mean", _var_mean, undefined=True)
seen("std_mean", _std_mean, undefined=True)

# ---- norms


def _vector_norm(g, x, ord, dim, keepdim, dtype, out):
    if dtype is not None:
        return NotImplemented
    if dim is not None:
        g = unsqueezed(g, dim, x.dim(), keepdim)
        out = unsqueezed(out, dim, x.dim(), keepdim)
    if ord == 0:
        return None
    if ord == 1:
        return x.sgn() * g
    if ord == 2:
        return g * (x / out).masked_fill_(out == 0, 0)
    size = x.abs()
    if math.isinf(ord):
        largest = size == out
        largest = largest.logical_or(size.isnan())
        shared = g / largest.sum(_listed(dim), True) * largest
        return x.sgn() * shared
    if ord < 1:
        size = size.pow_(ord - 1).masked_fill_(x == 0, 0)
        direction = x.sgn() * size
        rest = out.pow(1 - ord)
        return direction * g * rest
    if ord < 2:
        direction = x.sgn() * size.pow_(ord - 1)
        scale = (g / out.pow(ord - 1)).masked_fill_(out == 0, 0)
        return direction * scale
    direction = x * size.pow_(float(ord - 2))
    scale = (g / out.pow(float(ord - 1))).masked_fill_(out == 0, 0)
    return direction * scale


seen("vector_norm", x=_vector_norm)

# ---- the largest, the smallest and the middle


def _shaped(x, ndim_of, dim, keepdim):
    """As unsqueezed(), by one view."""
    if keepdim:
        return x
    dims, size = _listed(dim), list(ndim_of.shape)
    if not dims or not size:
        return x.view([1] * len(dims))
    reduced = {d % len(size) for d in dims}
    return x.view([1 if d in reduced else n for d, n in enumerate(size)])


def _equal(g, x, dim, keepdim, out):
    chosen = _shaped(out, x, dim, keepdim) == x
    g = _shaped(g, x, dim, keepdim)
    return g / chosen.sum(_listed(dim), True) * chosen


def _aminmax(g_min, g_max, x, dim, keepdim, max, min, needs):
    def part(g, value):
        dims = list(range(x.dim())) if dim is None else [dim]
        g = _shaped(g, x, dims, keepdim)
        chosen = x == _shaped(value, x, dims, keepdim)
        return g / chosen.sum(dims, True) * chosen

    parts = [part(g, value) for g, value in ((g_min, min), (g_max, max)) if g is not None]
    return (parts[0] + parts[1] if len(parts) == 2 else parts[0],)


def _whole(g, x, out):
    both = x.isnan().logical_and(out.isnan())
    chosen = (x == out).logical_or_(both)
    return chosen * (g / chosen.sum())


def _chosen(g_values, x_shape, indices, dim, keepdim):
    ndim = len(x_shape)
    g = unsqueezed(g_values, dim, ndim, keepdim)
    indices = unsqueezed(indices, dim, ndim, keepdim)
    return ops.scatter(g.new_zeros(x_shape), indices, g, dim)


def _ordered(g_values, x_shape, indices, dim):
    return ops.scatter(g_values.new_zeros(x_shape), indices, g_values, dim)


for _name in ("amax", "amin"):
    seen(_name, x=_equal)
for _name in ("max", "min", "median", "nanmedian"):
    seen(_name, x=_whole)
for _name in ("max_dim", "min_dim", "median_dim", "nanmedian_dim", "kthvalue", "mode"):
    seen(_name, x=_chosen)
for _name in ("sort", "topk"):
    seen(_name, x=_ordered)
seen("aminmax", _aminmax, undefined=True)

# ---- scans and products


def _cummax(g_values, x_shape, indices, dim):
    if not x_shape:
        return NotImplemented
    return ops.scatter_add(zeros(g_values, x_shape), indices, g_values, dim)


for _name in ("cummax", "cummin"):
    seen(_name, x=_cummax)


def _others(x, dim):
    """For each element the product of all others: of those before it and of those behind it."""
    size = list(x.shape)
    size[dim] = 1
    ones = show("ones.default", size, **options(x))
    length = x.shape[dim]
    before = ops.cat((ones, ops.slice(x, dim, 0, length - 1, 1)), dim).cumprod(dim)
    behind = ops.slice(x, dim, 1, length, 1).flip(dim)
    behind = ops.cat((ones, behind), dim).cumprod(dim).flip(dim)
    return before * behind


def _prod(g, x, dtype, out):
    if not x.dim():
        return g
    flat = x.view([-1]) if x.is_contiguous() else x.reshape([-1])
    if not x.numel():
        return g.expand(flat.shape).view(x.shape)
    if x.numel() == 1:
        return g.view(x.shape)
    return (g * _others(flat, 0)).view(x.shape)


def _prod_dim(g, x, dim, keepdim, dtype, out):
    if not x.dim():
        return g
    g = unsqueezed(g, dim, x.dim(), keepdim)
    unsqueezed(out, dim, x.dim(), keepdim)
    if not x.numel():
        return g.expand(x.shape)
    return g if x.shape[dim] == 1 else g * _others(x, dim)


seen("prod", x=_prod)
seen("prod_dim", x=_prod_dim)
seen("cumsum", x=lambda g, x_shape, dim, dtype, reverse: g if not x_shape else NotImplemented)
