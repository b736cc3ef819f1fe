"""Choosing, placing and rearranging elements."""

from __future__ import annotations

import rushlight
from rushlight._seen._table import number, ops, options, preserving, seen, show, zeros

# ---- by indices


def _index_select(g, index, x_shape, dim):
    start = show("new_zeros.default", g, list(x_shape), **options(g))
    return ops.index_add(start, index, g, dim, 1)


def _selected(g, index, source, dim):
    """Of a source that is one element, whatever the index is."""
    if source.dim():
        return ops.index_select(g, index, dim).expand(source.shape)
    return ops.index_select(g, index.squeeze(0), dim)


def _added(g, index, source, dim, alpha):
    return _selected(g, index, source, dim) * alpha


def _filled(g, index, value, dim):
    places = show("_unique.default", index, False)[0]
    return ops.index_select(g, places, dim).sum()


def _put(g, indices, values, accumulate, needs):
    of_x = of_values = None
    if needs[0]:
        of_x = g
        if not accumulate:
            nothing = (
                zeros(values) if isinstance(values, rushlight.Tensor) else zeros(g, ())
            )  # a number may be put
            of_x = ops.index_put(g, indices, nothing, False)
    if needs[2]:
        of_values = ops.index(g, indices)
    return of_x, None, of_values


seen("index_put", _put)
seen("index_select", x=_index_select)
seen("index_add", x=lambda g: g, source=_added)
seen("index_copy", x=lambda g, index, dim: ops.index_fill(g, index, 0, dim), source=_selected)
seen("index_fill", x=lambda g, index, dim: ops.index_fill(g, index, 0, dim), value=_filled)
seen("gather", x=lambda g, x_shape, index, dim: ops.scatter_add(g.new_zeros(x_shape), index, g, dim))
seen("scatter", x=lambda g, index, dim: ops.scatter_value(g, index, 0, dim),
     src=lambda g, index, dim: ops.gather(g, index, dim))  # fmt: skip
seen("scatter_value", x=lambda g, index, dim: ops.scatter_value(g, index, 0, dim))
seen("take", x=lambda g, x, index: ops.put(show("zeros_like.default", x), index, g, True))

# ---- by masks


def _masked_select(g, x, mask):
    whole = x.expand(rushlight.broadcast_shapes(x.shape, mask.shape))
    return ops.masked_scatter(show("zeros_like.default", whole, **preserving), mask, g)


def _masked_value(g, mask):
    return ops.where(mask, g, number(0, g)).sum()


seen("masked_fill", x=lambda g, mask: ops.masked_fill(g, mask, 0), value=_masked_value)
seen("masked_scatter", x=lambda g, mask: ops.masked_fill(g, mask, 0),
     source=lambda g, mask, source_shape: show(
         "masked_scatter_backward.default", g, mask, list(source_shape)))  # fmt: skip
seen("masked_select", x=_masked_select)

# ---- reductions at places


def _at(x, dim, index, spread):
    return ops.gather(x, index, dim) if spread else ops.index_select(x, index, dim)


def _sum_at(x, dim, index, source, spread):
    return ops.scatter_add(x, index, source, dim) if spread else ops.index_add(x, index, source, dim, 1)


def _reduced(spread):
    """scatter_reduce, or index_reduce."""

    def extreme(g, x, index, source, dim, out):
        value = _at(out, dim, index, spread)
        mine = x == out
        mine_counted = mine.to(g.dtype)
        theirs = source == value
        theirs_counted = theirs.to(g.dtype)
        share = g / _sum_at(mine_counted, dim, index, theirs_counted, spread)
        mine = (x == out) if spread else mine_counted
        of_x = mine * share
        part = _at(share, dim, index, spread)
        theirs = (source == value) if spread else theirs_counted
        return of_x, theirs * part

    def mean(g, x, index, source, dim, include_self):
        count = show("ones_like.default" if include_self else "zeros_like.default", g)
        count = _sum_at(count, dim, index, show("ones_like.default", source), spread)
        count = count.masked_fill_(count == 0, 1)
        of_x = g / count
        there = _at(count, dim, index, spread)
        return of_x, _at(g, dim, index, spread) / there

    def rule(g, x, index, source, dim, reduce, include_self, out):
        if reduce == "sum":
            of_x, of_source = g, _at(g, dim, index, spread)
        elif reduce == "mean":
            of_x, of_source = mean(g, x, index, source, dim, include_self)
        elif reduce in ("amax", "amin"):
            of_x, of_source = extreme(g, x, index, source, dim, out)
        else:
            return NotImplemented
        if not include_self:
            of_x = (ops.scatter_value if spread else ops.index_fill)(of_x, index, 0, dim)
        return of_x, None, of_source

    return rule


def _scatter_reduce(g, x, index, src, dim, reduce, include_self, out, needs):
    if not (needs[0] and needs[2]):
        return NotImplemented
    return _reduced(True)(g, x, index, src, dim, reduce, include_self, out)


def _index_reduce(g, x, index, source, dim, reduce, include_self, out, needs):
    if not (needs[0] and needs[2]):
        return NotImplemented
    return _reduced(False)(g, x, index, source, dim, reduce, include_self, out)


seen("scatter_reduce", _scatter_reduce)
seen("index_reduce", _index_reduce)

# ---- shapes


def _repeat(g, x_shape, repeats):
    if 0 in repeats:
        return zeros(g, x_shape)
    for _ in range(len(repeats) - len(x_shape)):
        g = g.sum([0])
    return NotImplemented if any(r != 1 for r in repeats) else g


def _stack(g, tensors_shape, dim, needs):
    return ([ops.select(g, dim, k) for k in range(len(tensors_shape))],)


def _squeeze(g, x_shape):
    for d, size in enumerate(x_shape):
        if size == 1:
            g = g.unsqueeze(d)
    return g


def _joined(gs, dim):
    return ops.cat(tuple(gs), dim % gs[0].dim())


for _name in ("split", "split_with_sizes"):
    seen(_name, x=_joined)
seen("stack", _stack)
seen("squeeze", x=_squeeze)
seen("roll", x=lambda g, shifts, dims: ops.roll(
    g, tuple(-s for s in reversed(shifts)), tuple(reversed(dims))))  # fmt: skip
seen("expand", x=lambda g, x_shape: NotImplemented if x_shape else g.sum())
seen("unfold", x=lambda g, x_shape, dim, size, step: show(
    "unfold_backward.default", g, list(x_shape), dim, size, step))  # fmt: skip
seen("linalg_cross", other=lambda g, input, dim: ops.linalg_cross(g, input, dim),
     input=lambda g, other, dim: ops.linalg_cross(other, g, dim))  # fmt: skip
