"""Memory formats: in which order the dimensions of a tensor lie in memory."""

from __future__ import annotations

from rushlight import _C

ops = _C.ops


class memory_format:
    """How a tensor's dimensions are ordered in memory.

    >>> rushlight.ones(2, 3, 4, 5).contiguous(memory_format=rushlight.channels_last).stride()
    (60, 1, 15, 3)
    """

    __module__ = "rushlight"

    def __init__(self, name):
        self._name = name

    def __repr__(self):
        return f"torch.{self._name}"

    def __reduce__(self):
        return self._name


contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")

# The rank that each needs, and its dimensions from the slowest to the fastest.
_ORDERS = {channels_last: (0, 2, 3, 1), channels_last_3d: (0, 2, 3, 4, 1)}


def _order(rank, chosen):
    order = _ORDERS.get(chosen)
    if order is None:
        raise RuntimeError(f"Unsupported memory format: {chosen}")
    if rank != len(order):
        raise RuntimeError(f"required rank {len(order)} tensor to use {chosen._name} format")
    return order


def is_arranged(t, chosen):
    """Whether the elements of `t` lie in memory in this order, without gaps."""
    if chosen not in _ORDERS:
        return t._is_contiguous()
    if t.dim() != len(_ORDERS[chosen]):
        return False
    step = 1
    for d in reversed(_ORDERS[chosen]):
        if t.size(d) != 1:
            if t.stride(d) != step:
                return False
            step *= t.size(d)
    return True


def arranged_copy(t, chosen):
    """A copy with its elements in this order; gradients flow back through it."""
    if chosen in (None, preserve_format):
        return ops.clone(t)
    if chosen is contiguous_format:
        return ops.contiguous_copy(t)
    return ops.clone_strided(t, strides_in(t.shape, chosen))


def suggested(t):
    """The order that the strides of `t` stand for, also where sizes of 1 or gaps leave others open."""
    for chosen, order in _ORDERS.items():
        if t.dim() == len(order) and _runs_along(t, order):
            return chosen
    return contiguous_format


def _runs_along(t, order):
    least = 0
    for d in reversed(order):  # a stride of the batch like that of the channels leaves it in doubt
        if t.size(d) == 0 or t.stride(d) < least or (d == 0 and least == t.stride(1)):
            return False
        least = t.stride(d) * t.size(d)
    return t.stride(1) != 0


def rearranged(made, t, chosen):
    """What `to` gives: `made`, which is `t` or a copy of it, if its strides stand for this order already."""
    if chosen in (None, preserve_format):
        return made
    as_it_is = suggested(made) is chosen and (made is t or is_arranged(made, chosen))
    return made if as_it_is else arranged_copy(made, chosen)


def arranged(t, chosen):
    """`t` itself if it lies in memory in this order (or in any, to preserve it), else a copy that does."""
    if chosen in (None, preserve_format):
        return t
    if chosen is not contiguous_format:
        _order(t.dim(), chosen)
    return t if is_arranged(t, chosen) else arranged_copy(t, chosen)


def empty_arranged(sizes, chosen, dtype, device):
    """Uninitialised memory of these sizes in this order."""
    if chosen is preserve_format:
        raise RuntimeError("unsupported memory format Preserve")
    if chosen in (None, contiguous_format):
        return _C.empty(sizes, dtype, device)
    return _C.empty_strided(tuple(sizes), strides_in(sizes, chosen), dtype, device)


def strides_in(sizes, chosen):
    """The strides of a tensor of these sizes whose dimensions lie in memory in this order."""
    order = range(len(sizes)) if chosen is contiguous_format else _order(len(sizes), chosen)
    steps, step = [0] * len(sizes), 1
    for d in reversed(order):
        steps[d] = step
        step *= max(sizes[d], 1) if chosen is contiguous_format else sizes[d]
    return tuple(steps)


def laid_out(g, last):
    """g as torch lays it out before it computes a gradient: with channels last or in order."""
    if not last:
        return g.contiguous()
    g = g.contiguous(memory_format=channels_last if g.ndim == 4 else channels_last_3d)
    if g.shape[1] == 1 and g.stride(1) != 1 and not _C.is_grad_enabled():
        return g.as_strided(g.shape, (g.stride(0), 1, *g.stride()[2:]))  # else one channel does not tell
    return g
