"""Reductions of the segments that a dimension is divided into."""

from __future__ import annotations

import itertools
import math

from rushlight import _C
from rushlight.ops._examples import known, somewhere
from rushlight.ops._lacking import once
from rushlight.ops._public import fitting, function, type_name, wrap_dim

ops = _C.ops

# What a segment without elements gives.
_EMPTY = {"sum": 0.0, "mean": math.nan, "prod": 1.0, "max": -math.inf, "min": math.inf}


_NOT_ALL = (
    "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when "
    "!unsafe."
)


def _check_lengths(lengths, n):
    """Segments are of lengths that are not negative, and cover the n elements of a row."""
    if somewhere(ops.lt(lengths.min(), 0)):
        raise RuntimeError("lengths contains negative value!")
    if somewhere(ops.ne(lengths.sum(-1), n)):
        raise RuntimeError(_NOT_ALL)


def _elements_of(rows, n, segments):
    """The segment of every element that is in one, where that element is, and the length of every segment;
    a row says where its segments end."""
    place, kept, sizes = [], [], []
    for batch, row in enumerate(rows):
        for segment, (start, end) in enumerate(itertools.pairwise(row)):
            if end < start:
                raise RuntimeError("Expected segment_length >= 0 to be true, but got false.")
            if end > start and (start < 0 or end > n):  # torch reads outside
                raise RuntimeError(_NOT_ALL)
            place += [batch * segments + segment] * (end - start)
            kept += range(batch * n + start, batch * n + end)
            sizes.append(end - start)
    return place, kept, sizes


@function
def segment_reduce(
    data, reduce, *, lengths=None, indices=None, offsets=None, axis=0, unsafe=False, initial=None
):
    """The sum, mean, prod, max or min of every segment along `axis`, given their lengths or where they begin.

    `initial` is what every segment starts with. The dimensions before `axis` are batches, and `lengths` (or
    `offsets`) has one row for each.

    >>> rushlight.segment_reduce(rushlight.tensor([1., 2., 3.]), "sum", lengths=rushlight.tensor([1, 2]))
    tensor([1., 5.])
    """
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    if lengths is None and offsets is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    reduce = {"amax": "max", "amin": "min"}.get(reduce, reduce)
    if reduce not in _EMPTY:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    axis = wrap_dim(axis, data.dim())
    kind, given = ("offsets", offsets) if lengths is None else ("lengths", lengths)
    if data.dim() < given.dim():
        raise RuntimeError(f"Expected data.dim() >= {kind}_value.dim() to be true, but got false.")
    if given.dim() - 1 != axis:
        raise RuntimeError(
            f"segment_reduce(): Expected axis to be the last dimension of {kind} but got {axis}."
        )
    segments = given.size(-1) - (lengths is None)
    if segments < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension -1: {[*given.shape[:-1], -1]}")
    if lengths is not None and not unsafe and not data.is_meta:
        _check_lengths(lengths, data.size(axis))
    if data.is_meta:
        return data.new_empty((*given.shape[:-1], segments, *data.shape[axis + 1 :]))
    if given.shape[:-1] != data.shape[:axis]:  # torch reads outside
        raise RuntimeError(_NOT_ALL)
    if given.dtype not in (_C.int64, _C.int32):
        raise NotImplementedError(
            f"\"_segment_reduce_{kind}_cpu_kernel1\" not implemented for '{type_name(given.dtype)}'"
        )
    if not data.is_floating_point():
        raise NotImplementedError(f"\"_segment_reduce_cpu\" not implemented for '{type_name(data.dtype)}'")
    initial = None if initial is None else fitting(initial, data.dtype)
    rows = known(given.reshape(math.prod(given.shape[:-1]), given.size(-1))).tolist()
    ends = rows if lengths is None else [[0, *itertools.accumulate(row)] for row in rows]
    place, kept, sizes = _elements_of(ends, data.size(axis), segments)
    shape = (*given.shape[:-1], segments)
    data = once(data, "aten::_segment_reduce_backward", data)
    rest = data.shape[axis + 1 :]
    flat = data.reshape(math.prod(data.shape[: axis + 1]), math.prod(rest))
    index = _C.from_data(place, _C.int64, None)
    flat = flat.index_select(0, _C.from_data(kept, _C.int64, None))
    start = _EMPTY[reduce] if reduce != "mean" else 0.0
    base = _C.full((len(sizes), flat.size(1)), start, data.dtype, data.device)
    sizes = _C.from_data(sizes, _C.int64, None).unsqueeze(1)
    if reduce in ("sum", "mean"):
        result = base.index_add(0, index, flat) + (0.0 if initial is None else initial)
        if reduce == "mean":
            result = result / sizes.to(data.dtype)
            if initial is not None:
                result = ops.where(ops.eq(sizes, 0), initial, result)
    else:
        name = {"prod": "prod", "max": "amax", "min": "amin"}[reduce]
        # What an extreme begins with is no element either, should it tie with some.
        result = ops.index_reduce(base, index, flat, 0, name, reduce == "prod")
        if initial is not None:
            number = base.new_full((), initial)
            if reduce == "prod":
                result = result * number
            else:  # a number that ties with elements takes no share of their gradient
                beyond = ops.lt(result, number) if reduce == "max" else ops.gt(result, number)
                beyond = ops.logical_or(beyond, ops.ne(number, number))
                result = ops.where(beyond, number, result)
    return result.reshape(*shape, *rest)
