"""Elements chosen by a mask: masked_select, masked_fill, masked_scatter, and where a tensor is not zero."""

from __future__ import annotations

import math
from itertools import zip_longest

from rushlight import _C
from rushlight._warn import warn_once
from rushlight.ops._examples import sum_where
from rushlight.ops._public import Tensor, method, public, write_apart
from rushlight.ops._rules import derivative, no_derivative
from rushlight.ops._tangents import linear
from rushlight.ops.index import each_place_once, padded

ops = _C.ops
_in_place = _C.in_place

derivative(
    "masked_select",
    x=lambda g, mask, x: ops.masked_select_backward(g, mask, x.shape),
    packs="mask x",
    tangent=linear,
)
derivative("masked_select_backward", g=lambda g_out, mask: ops.masked_select(g_out, mask), tangent=linear)
derivative(
    "masked_fill",
    x=lambda g, mask: ops.masked_fill(g, mask, 0),
    value=lambda g, mask: sum_where(mask, g),
    tangent=linear,
)
derivative(
    "masked_scatter",
    x=lambda g, mask: ops.masked_fill(g, mask, 0),
    source=lambda g, mask, source_shape: _scattered_source(g, mask, source_shape),
    tangent=linear,
)
no_derivative("nonzero")


def _scattered_source(g, mask, source_shape):
    count = math.prod(source_shape)
    if not _C.is_leveled(mask):
        return padded(ops.masked_select(g, mask), (count,)).reshape(source_shape)
    # As many elements in every example: those that nobody took stand behind the others.
    mask = ops.expand(mask, g.shape).reshape(-1)
    place = ops.where(mask, mask.cumsum(0) - 1, count)
    return ops.scatter_add(g.new_zeros(count + 1), place, g.reshape(-1), 0)[:count].reshape(source_shape)


# ---- where an index may be out of range if its mask is not set


def _within(x, indices):
    """The indices, those out of range moved to the nearest end of their dimension."""
    found = []
    for index, size in zip_longest(indices, x.shape[: len(indices)]):
        found.append(index if index is None or size is None else index.clamp(-size, size - 1))
    return tuple(found)


def masked_index(x, mask, indices, fill):
    return ops.index(x, _within(x, indices)).masked_fill(mask.logical_not(), fill)


def masked_put(x, values, mask, indices):
    kept = values.masked_fill(mask.logical_not(), 0)
    return ops.index_put(x, _within(x, indices), kept, True)


derivative(
    "masked_index",
    x=lambda g, x_shape, mask, indices: masked_put(g.new_zeros(x_shape), g, mask, indices),
    node="UnsafeMaskedIndexBackward0",
    packs="indices mask",
)
derivative(
    "masked_index_put",
    x=lambda g: g,
    values=lambda g, mask, indices: masked_index(g, mask, indices, 0),
    shows="indices",
    node="UnsafeMaskedIndexPutAccumulateBackward0",
    packs="indices mask",
)


@public
def masked_select(input, mask, *, out=None):
    """The elements where `mask` is True, in one dimension.

    >>> rushlight.masked_select(rushlight.tensor([1, 2, 3]), rushlight.tensor([True, False, True]))
    tensor([1, 3])
    """
    result = ops.masked_select(input, mask)
    return (
        result
        if out is None
        else write_apart(
            out,
            result,
            input,
            mask,
            exact="masked_select(): self and result must have the same scalar type",
            at_once=True,
        )
    )


@public
def masked_fill(input, mask, value):
    """A copy of `input` with `value` where `mask` is True.

    >>> rushlight.tensor([1., 2.]).masked_fill(rushlight.tensor([True, False]), 0)
    tensor([0., 2.])
    """
    return ops.masked_fill(input, mask, value)


@method
def masked_fill_(self, mask, value):
    """In-place version of :meth:`masked_fill`."""
    try:
        return _in_place(ops.masked_fill, self, mask, value)
    except RuntimeError:
        once = each_place_once(self, "masked_fill_", "mask] = scalar")
        if once is None:
            raise
    shared = [d for d in range(self.dim()) if once.size(d) != self.size(d)]
    once.masked_fill_(mask.expand(self.shape).any(shared, keepdim=True), value)
    return self


@public
def masked_scatter(input, mask, source):
    """A copy of `input` with the elements of `source`, in order, where `mask` is True.

    >>> rushlight.zeros(3).masked_scatter(rushlight.tensor([True, False, True]), rushlight.tensor([1.0, 2.0]))
    tensor([1., 0., 2.])
    """
    return ops.masked_scatter(input, mask, source)


@method
def masked_scatter_(self, mask, source):
    """In-place version of :meth:`masked_scatter`."""
    if isinstance(mask, Tensor) and mask.dtype == _C.uint8:
        warn_once(
            "masked_scatter_ received a mask with dtype torch.uint8, this behavior is now deprecated,please "
            "use a mask with dtype torch.bool instead."
        )
    if isinstance(mask, Tensor) and isinstance(self, Tensor) and mask.shape != self.shape:
        _C.check_inplace(self, source)
        if isinstance(source, Tensor) and source.dtype == self.dtype:  # of which it is told first
            ops.expand(mask, self.shape)  # a mask that has more elements is refused
    return _in_place(ops.masked_scatter, self, mask, source)


@public
def nonzero(input, *, as_tuple=False, out=None):
    """The coordinates of the elements that are not zero: one row each, or one index tensor per dimension.

    >>> rushlight.nonzero(rushlight.tensor([0, 3, 5])).tolist()
    [[1], [2]]
    """
    if as_tuple:
        if out is not None:
            raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
        return ops.nonzero(input if input.dim() else input.reshape(1)).unbind(1)
    result = ops.nonzero(input)
    return (
        result
        if out is None
        else write_apart(
            out,
            result,
            input,
            exact="nonzero: Expected out tensor to have scalar type Long but got scalar type{out}",
        )
    )


@public
def argwhere(input):
    """The coordinates of the elements that are not zero, one row each.

    >>> rushlight.argwhere(rushlight.tensor([[0, 5], [7, 0]]))
    tensor([[0, 1],
            [1, 0]])
    """
    return ops.nonzero(input)
