"""Kernels that make sparse tensors, put them in order, and turn them into dense ones and back."""

from __future__ import annotations

import math
from typing import Any

import rushlight
from rushlight import _C
from rushlight._sparse.table import assign, in_place, kernel, refuse
from rushlight._sparse.tensor import SparseTensor, empty, make, with_values
from rushlight._unstored import maker
from rushlight.ops import create

Tensor = _C.Tensor
ops = _C.ops


def check_indices(indices: Tensor, sizes: Any) -> None:
    """Refuses an index that is outside of its dimension."""
    if indices.numel() == 0:
        return
    lows, highs = ops.amin(indices, (1,), False).tolist(), ops.amax(indices, (1,), False).tolist()
    for d, (low, high) in enumerate(zip(lows, highs, strict=True)):
        if low < 0:
            raise RuntimeError(f"found negative index {low} for dim {d}")
        if high >= sizes[d]:
            raise RuntimeError(
                f"size is inconsistent with indices: for dim {d}, size is {sizes[d]} but found index {high}"
            )


def places(indices: Tensor, sizes: Any) -> Tensor:
    """Where the entries are in a dense tensor of the sparse sizes, row by row. No index is trusted."""
    check_indices(indices, sizes)
    if not len(sizes):
        return _C.empty((indices.shape[1],), _C.int64, indices.device).zero_()
    total = indices[0]
    for d in range(1, len(sizes)):
        total = total * sizes[d] + indices[d]
    return total


def indices_of(place: Tensor, sizes: Any) -> Tensor:
    """The inverse of `places`."""
    rows = []
    for n in reversed(sizes):
        rows.append(place % n if n else place)
        place = place // n if n else place
    if not rows:
        return _C.empty((0, place.shape[0]), _C.int64, place.device)
    return rushlight.stack(rows[::-1])


def sparse_sizes(x: SparseTensor) -> tuple[int, ...]:
    """The sizes of the sparse dimensions."""
    return tuple(x.shape[: x.parts[0].shape[0]])


def sum_rows(values: Tensor, row: Tensor, count: int) -> Tensor:
    """A tensor of `count` rows in which those of `values` are summed up."""
    if values.dtype == _C.bool:  # whether one is true: a count might wrap around to zero
        nothing = rushlight.zeros((count, *values.shape[1:]), dtype=_C.uint8, device=values.device)
        return ops.index_reduce(nothing, row, values.to(_C.uint8), 0, "amax", True) != 0
    whole = rushlight.zeros((count, *values.shape[1:]), dtype=values.dtype, device=values.device)
    return whole if not row.numel() else ops.index_add(whole, row, values, 0, 1)


def coalesced(x: SparseTensor) -> SparseTensor:
    """The same with each index once, in order."""
    indices, values, done = x.parts
    if done:
        return x
    sizes = sparse_sizes(x)
    ordered, order = ops.sort(places(indices, sizes), 0, False)
    first = rushlight.ones_like(ordered, dtype=_C.bool)
    first[1:] = ordered[1:] != ordered[:-1]
    group = first.cumsum(0) - 1
    place = ordered[first]
    summed = sum_rows(ops.index_select(values, order, 0), group, place.shape[0])
    return make(indices_of(place, sizes), summed, x.shape, True)


def dense(x: SparseTensor) -> Tensor:
    """The tensor with all its elements."""
    indices, values, _ = x.parts
    sizes = sparse_sizes(x)
    return sum_rows(values, places(indices, sizes), math.prod(sizes)).view(x.shape)


def look_up(x: SparseTensor, indices: Tensor) -> Tensor:
    """The values that a sparse tensor has at these indices, zero where it has none."""
    x = coalesced(x)
    known, values, _ = x.parts
    sizes = sparse_sizes(x)
    count = values.shape[0]
    wanted = places(indices, sizes)
    if not count or not wanted.shape[0]:
        return rushlight.zeros((wanted.shape[0], *values.shape[1:]), dtype=values.dtype, device=values.device)
    have = places(known, sizes)
    at = rushlight.searchsorted(have, wanted).clamp(max=count - 1)
    found = ops.index_select(have, at, 0) == wanted
    rows = ops.index_select(values, at, 0)
    return rows.masked_fill_(~found.view(-1, *(1 for _ in values.shape[1:])), 0)


def with_every_element(x: SparseTensor) -> SparseTensor:
    """The same with an entry everywhere."""
    sizes = sparse_sizes(x)
    place = rushlight.arange(math.prod(sizes))
    return make(indices_of(place, sizes), dense(x).reshape(-1, *x.shape[len(sizes) :]), x.shape, True)


@maker("sparse_coo")
@kernel("sparse_coo")
def sparse_coo(indices: Tensor, values: Tensor, size: Any, coalesced: bool) -> SparseTensor:
    """A sparse tensor of parts that have been looked at."""
    return make(_C.detach(indices), _C.detach(values), size, bool(coalesced))


@maker("sparse_at")
@kernel("sparse_at")
def sparse_at(x: Tensor, indices: Tensor) -> Tensor:
    """The elements of a tensor at indices of its first dimensions, as values are laid out."""
    if type(x) is SparseTensor:
        if x.parts[0].shape[0] != indices.shape[0]:
            return sparse_at(dense(x), indices)
        return look_up(x, indices)
    count = indices.shape[0]
    sizes = x.shape[:count]
    whole = x.reshape(math.prod(sizes), *x.shape[count:])
    return ops.index_select(whole, places(indices, sizes), 0)


@kernel("coalesce")
def coalesce(x: SparseTensor) -> SparseTensor:
    """A tensor of its own also if x is coalesced already."""
    return with_values(x, x.parts[1]) if x.parts[2] else coalesced(x)


@kernel("to_dense")
def to_dense(x: SparseTensor, dtype: Any, masked_grad: Any) -> Tensor:
    """The dense tensor; torch takes no dtype there."""
    if dtype is not None:
        raise RuntimeError("dtype argument is not supported by sparse_to_dense")
    return dense(x)


@maker("to_sparse")
@kernel("to_sparse")
def to_sparse(x: Tensor, sparse_dim: int, source: Any) -> SparseTensor:
    """The elements of a dense tensor that are not zero, or rows of which one is not."""
    if type(x) is SparseTensor:
        raise RuntimeError(
            "to_sparse: conversion from Sparse to Sparse with sparse_dim argument !=self.sparse_dim() is not "
            "supported"
        )
    sizes = tuple(x.shape[:sparse_dim])
    rows = x.reshape(math.prod(sizes), -1) if x.numel() else x.new_empty((0, 1))
    place = ops.nonzero(ops.any(rows != 0, (1,), False))[:, 0]
    values = x.reshape(-1, *x.shape[sparse_dim:]) if x.numel() else x.new_empty((0, *x.shape[sparse_dim:]))
    return make(indices_of(place, sizes), ops.index_select(values, place, 0), x.shape, True)


@kernel("values")
def values(x: SparseTensor) -> Tensor:
    """The values with memory of their own: a write to them that is recorded says nothing of x."""
    return x.parts[1].clone()


@kernel("sparse_mask")
def sparse_mask(x: Tensor, mask: SparseTensor) -> SparseTensor:
    """The elements of x where the mask has entries."""
    if x.shape != mask.shape:
        raise RuntimeError(
            f"sparse_mask(): operands have incompatible sizes; self has size {list(x.shape)} but mask has "
            f"size {list(mask.shape)}"
        )
    indices, values, was = mask.parts
    if type(x) is not SparseTensor:
        return make(indices.clone(), sparse_at(x, indices), mask.shape, was)
    if x.parts[0].shape[0] != indices.shape[0]:
        raise RuntimeError("sparse_mask: expected self and mask to have the same number of sparse dimensions")
    if x.parts[0] is indices and x.parts[1] is values:
        return with_values(mask, values)
    return make(indices.clone(), look_up(x, indices), mask.shape, was)


@kernel("clone", "contiguous_copy")
def clone(x: SparseTensor) -> SparseTensor:
    """A copy with memory of its own."""
    indices, values, was = x.parts
    return make(indices.clone(), values.clone(), x.shape, was)


@kernel("detach.default", "alias", "detach_.default")
def detach(x: SparseTensor) -> SparseTensor:
    """The same indices and values, without history."""
    return with_values(x, x.parts[1])


@kernel("to_dtype")
def to_dtype(x: SparseTensor, dtype: Any) -> SparseTensor:
    """The values converted."""
    return with_values(x, x.parts[1].to(dtype))


@kernel("to_device")
def to_device(x: SparseTensor, dtype: Any, device: Any) -> SparseTensor:
    """Both parts elsewhere."""
    create.refuse_sparse_on(_C.as_device(device))
    indices, values, was = x.parts
    return make(indices.to(device), values.to(device, dtype), x.shape, was)


@kernel("copy")
def copy(x: Tensor, source: Any) -> SparseTensor:
    """What x becomes by `copy_`: sparse both or not at all."""
    if type(x) is not SparseTensor or type(source) is not SparseTensor:
        raise RuntimeError(
            "copy_() between dense and sparse Tensors is not implemented! Found self type = "
            f"{x.type()} and src type = {source.type()}"
        )
    copied = clone(source)
    return with_values(copied, copied.parts[1].to(x.dtype))


@in_place("copy")
def copy_(x: Tensor, source: Any) -> None:
    """Takes over the size of the source, if need be, as torch does."""
    from rushlight.ops.sparse_forms import give_size

    result = copy(x, source)
    give_size(x, result.shape)
    assign(x, result)


@in_place("fill")
def fill_(x: SparseTensor, value: Any) -> None:
    """Nothing can be filled in but zero, by `zero_`."""
    if type(value) is int and value == 0:
        x.parts = empty(x.shape, x.dtype, x.device, x.parts[0].shape[0]).parts
        return
    refuse("aten::fill_.Scalar")


def _like(x: Any, size: Any, dtype: Any, layout: Any, device: Any, dense: Any) -> Tensor:
    dtype, device = dtype or x.dtype, device or x.device
    if layout is create.strided:
        return dense(size, dtype=dtype, device=device)
    return empty(size, dtype, device, x.parts[0].shape[0] if tuple(size) == tuple(x.shape) else None)


def _maker(dense: Any) -> Any:
    def made(x, *, dtype=None, layout=None, device=None, pin_memory=False, memory_format=None):
        return _like(x, x.shape, dtype, layout, device, dense)

    return made


def _new(dense: Any) -> Any:
    def made(x, size, *, dtype=None, layout=None, device=None, pin_memory=False):
        return _like(x, size, dtype, layout, device, dense)

    return made


def _filled(value: Any) -> Any:
    def made(x, *fill, dtype=None, layout=None, device=None, pin_memory=False, memory_format=None):
        if layout is not create.strided:
            refuse("aten::fill_.Scalar")
        given = fill[0] if fill else value
        return rushlight.full(x.shape, given, dtype=dtype or x.dtype, device=device or x.device)

    return made


kernel("zeros_like.default")(_maker(rushlight.zeros))
kernel("empty_like.default")(_maker(rushlight.empty))
kernel("ones_like.default")(_filled(1))
kernel("full_like.default")(_filled(None))
kernel("new_zeros.default")(_new(rushlight.zeros))
kernel("new_empty.default")(_new(rushlight.empty))


@kernel("_local_scalar_dense.default")
def item(x: SparseTensor) -> Any:
    """The number of a tensor that has one."""
    if x.numel() != 1:
        raise RuntimeError(f"a Tensor with {x.numel()} elements cannot be converted to Scalar")
    return dense(x).item()
