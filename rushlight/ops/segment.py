"""Reductions of the segments that a dimension is divided into."""

from __future__ import annotations

import math

from rushlight import _C
from rushlight.ops._lacking import once
from rushlight.ops._public import function, type_name, wrap_dim

ops = _C.ops

# What a segment without elements gives.
_EMPTY = {"sum": 0.0, "mean": math.nan, "prod": 1.0, "max": -math.inf, "min": math.inf}


def _check_lengths(lengths, n, unsafe, kernel):
    """Segments must be of whole, not negative lengths, and cover the n elements of a row."""
    if lengths.dtype not in (_C.int64, _C.int32):
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{type_name(lengths.dtype)}'")
    if not lengths.numel() and not unsafe:
        raise RuntimeError(
            "min(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
            "with the 'dim' argument."
        )
    if bool(ops.lt(lengths, 0).any()):
        raise RuntimeError("lengths contains negative value!")
    totals = lengths.sum(-1)
    if bool(ops.gt(totals, n).any()) or (not unsafe and bool(ops.ne(totals, n).any())):
        raise RuntimeError(
            "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) "
            "when !unsafe."
        )


def _elements_of(rows, n, segments):
    """The segment of every element that is in one, and where that element is."""
    place, kept = [], []
    for batch, row in enumerate(rows):
        at = batch * n
        for segment, length in enumerate(row):
            place += [batch * segments + segment] * length
            kept += range(at, at + length)
            at += length
    return place, kept


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
    if not data.is_floating_point():
        raise NotImplementedError(f"\"_segment_reduce_cpu\" not implemented for '{type_name(data.dtype)}'")
    if reduce not in _EMPTY:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    if lengths is None and offsets is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    if data.numel() == 0:
        raise RuntimeError("Expected data.numel() > 0 to be true, but got false.")
    axis = wrap_dim(axis, data.dim())
    kind = "offsets" if lengths is None else "lengths"
    if lengths is None:
        lengths = offsets.narrow(-1, 1, offsets.size(-1) - 1) - offsets.narrow(-1, 0, offsets.size(-1) - 1)
    if lengths.dim() - 1 != axis:
        raise RuntimeError(
            "segment_reduce(): Expected axis to be the last dimension of lengths but got " + str(axis) + "."
        )
    if data.is_meta:
        return data.new_empty((*lengths.shape, *data.shape[axis + 1 :]))
    n, segments = data.size(axis), lengths.size(-1)
    _check_lengths(lengths, n, unsafe, f"_segment_reduce_{kind}_cpu_kernel1")
    rows = lengths.reshape(-1, segments).tolist()
    place, kept = _elements_of(rows, n, segments)
    data = once(data, "aten::_segment_reduce_backward", data)
    rest = data.shape[axis + 1 :]
    flat = data.reshape(-1, math.prod(rest))
    index = _C.from_data(place, _C.int64, None)
    flat = flat.index_select(0, _C.from_data(kept, _C.int64, None))
    start = _EMPTY[reduce] if reduce != "mean" else 0.0
    base = _C.full((len(rows) * segments, flat.size(1)), start, data.dtype, data.device)
    sizes = lengths.reshape(-1, 1)
    if reduce in ("sum", "mean"):
        result = base.index_add(0, index, flat) + (0.0 if initial is None else initial)
        if reduce == "mean":
            result = result / sizes.to(data.dtype)
            if initial is not None:
                result = ops.where(ops.eq(sizes, 0), float(initial), result)
    else:
        name = {"prod": "prod", "max": "amax", "min": "amin"}[reduce]
        result = ops.index_reduce(base, index, flat, 0, name, True)
        if initial is not None:
            number = base.new_full((), float(initial))
            join = {"prod": ops.mul, "max": ops.maximum, "min": ops.minimum}[reduce]
            result = join(result, number)
    return result.reshape(*lengths.shape, *rest)
