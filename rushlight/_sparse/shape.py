"""Kernels that move dimensions and choose parts of sparse tensors."""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight import _C
from rushlight._sparse.table import kernel, refuse
from rushlight._sparse.tensor import SparseTensor, make
from rushlight.ops._public import wrap_dim

Tensor = _C.Tensor
ops = _C.ops


@kernel("permute")
def permute(x: SparseTensor, dims: Any) -> SparseTensor:
    """Sparse dimensions among themselves and dense ones among themselves."""
    indices, values, was = x.parts
    count = indices.shape[0]
    dims = [wrap_dim(d, x.dim()) for d in dims]
    if len(dims) != x.dim():
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the "
            f"desired ordering of dimensions i.e. input.dim() = {x.dim()} is not equal to len(dims) = "
            f"{len(dims)}"
        )
    if sorted(dims) != list(range(x.dim())):
        raise RuntimeError("permute(sparse_coo): duplicate dims are not allowed.")
    if sorted(dims[:count]) != list(range(count)):
        raise RuntimeError(
            "permute(sparse_coo): transpositions between sparse and dense dimensions are not allowed."
            "Only transpositions within sparse and dense dimensions are supported."
        )
    if dims == list(range(x.dim())):
        return make(indices, values, x.shape, was)
    order = rushlight.tensor(dims[:count])
    moved = ops.index_select(indices, order, 0) if count else indices
    rows = values.permute(0, *(d - count + 1 for d in dims[count:]))
    in_order = was and dims[:count] == list(range(count))
    return make(moved, rows, [x.shape[d] for d in dims], in_order)


@kernel("transpose")
def transpose(x: SparseTensor, dim0: int, dim1: int) -> SparseTensor:
    """Two sparse dimensions or two dense ones."""
    indices, values, was = x.parts
    count, many = indices.shape[0], x.dim()
    dim0, dim1 = wrap_dim(dim0, many), wrap_dim(dim1, many)
    if dim0 == dim1:
        return make(indices, values, x.shape, was)
    if dim0 >= count or dim1 >= count:
        raise RuntimeError(
            f"sparse transpose: transposed dimensions must be sparse Got sparse_dim: {count}, d0: {dim0}, "
            f"d1: {dim1}"
        )
    dims = list(range(many))
    dims[dim0], dims[dim1] = dim1, dim0
    return permute(x, dims)


@kernel("t")
def t(x: SparseTensor) -> SparseTensor:
    """The transpose of a matrix."""
    count = x.parts[0].shape[0]
    if count > 2 or count < x.dim():
        raise RuntimeError(
            "t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got "
            f"{count} sparse and {x.dim() - count} dense dimensions"
        )
    return transpose(x, 0, 1) if x.dim() == 2 else make(*x.parts[:2], x.shape, x.parts[2])


@kernel("unsqueeze")
def unsqueeze(x: SparseTensor, dim: int) -> SparseTensor:
    """A dimension of size 1 more: sparse up to the last sparse one, dense behind."""
    indices, values, _ = x.parts
    count = indices.shape[0]
    dim = wrap_dim(dim, x.dim() + 1)
    size = [*x.shape[:dim], 1, *x.shape[dim:]]
    if dim > count:
        return make(indices, values.unsqueeze(dim - count + 1), size, x.parts[2])
    row = rushlight.zeros((1, indices.shape[1]), dtype=_C.int64)
    return make(rushlight.cat([indices[:dim], row, indices[dim:]]), values, size, False)


@kernel("select")
def select(x: SparseTensor, dim: int, index: int) -> Tensor:
    """One of a dimension; dense where no sparse dimension is left."""
    indices, values, was = x.parts
    count = indices.shape[0]
    dim = wrap_dim(dim, x.dim())
    if not -x.shape[dim] <= index < x.shape[dim]:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(x.shape)} at dimension {dim}"
        )
    index %= x.shape[dim]
    size = [*x.shape[:dim], *x.shape[dim + 1 :]]
    if dim >= count:
        return make(indices, values.select(dim - count + 1, index), size, was)
    here = ops.nonzero(indices[dim] == index)[:, 0]
    rows = ops.index_select(values, here, 0)
    if count == 1:
        return ops.sum_dim(rows, (0,), False, None).to(x.dtype)
    left = rushlight.cat([indices[:dim], indices[dim + 1 :]])
    return make(ops.index_select(left, here, 1), rows, size, was)


@kernel("unbind")
def unbind(x: SparseTensor, dim: int) -> Any:
    """All of a dimension."""
    dim = wrap_dim(dim, x.dim())
    return [select(x, dim, k) for k in range(x.shape[dim])]


@kernel("index_select")
def index_select(x: Any, index: Tensor, dim: int) -> SparseTensor:
    """Some of a dimension, in the order of the index."""
    if x.dim() == 0:
        raise IndexError("index_select() cannot be applied to a 0-dim tensor.")
    if type(index) is SparseTensor or index.dim() != 1 or index.dtype != _C.int64:
        raise IndexError("index_select() argument index must be 1-D strided (non-sparse) long-tensor.")
    indices, values, coalesced = x.parts
    count = indices.shape[0]
    dim = wrap_dim(dim, x.dim())
    length = x.shape[dim]
    if index.numel():
        low, high = index.min().item(), index.max().item()
        if low < -length or high >= length:
            raise IndexError(
                f"index_select(): index contains {low if low < -length else high} that is out of range for "
                f"tensor of size {list(x.shape)} at dimension {dim}"
            )
    index = rushlight.where(index < 0, index + length, index)
    size = [*x.shape]
    size[dim] = index.shape[0]
    if dim >= count:
        return make(indices, ops.index_select(values, index, dim - count + 1), size, coalesced)
    at, entry = _meetings(index, indices[dim])
    chosen = ops.index_select(indices, entry, 1)
    chosen = rushlight.cat([chosen[:dim], at[None], chosen[dim + 1 :]])
    return make(chosen, ops.index_select(values, entry, 0), size, False)


def narrow_copy(x: SparseTensor, dim: int, start: int, length: int) -> SparseTensor:
    """The entries of a range, neither end of which is counted from behind."""
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if not 0 <= dim < x.dim():
        raise RuntimeError(f"Dimension {dim} out of range. Expecting 0 <= dim < {x.dim()}.")
    if not 0 <= start <= x.shape[dim] - length:
        raise RuntimeError(
            "Invalid range to narrow. range(start, start+length) must be a subset of range(0, "
            f"{x.shape[dim]})."
        )
    indices, values, coalesced = x.parts
    count = indices.shape[0]
    size = [*x.shape]
    size[dim] = length
    if dim >= count:
        return make(indices, values.narrow(dim - count + 1, start, length).clone(), size, coalesced)
    here = ops.nonzero((indices[dim] >= start) & (indices[dim] < start + length))[:, 0]
    chosen = ops.index_select(indices, here, 1)
    chosen[dim] -= start
    made = make(chosen, ops.index_select(values, here, 0), size)
    made.parts = *made.parts[:2], coalesced  # also of a single entry, as in torch
    return made


def _meetings(index: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
    """Where both hold the same number: each place of the index, in order, with all those of the other."""
    ordered, order = rushlight.sort(places, stable=True)
    first = rushlight.searchsorted(ordered, index)
    many = rushlight.searchsorted(ordered, index, right=True) - first
    at = rushlight.repeat_interleave(rushlight.arange(index.shape[0]), many)
    within = rushlight.arange(at.shape[0]) - (many.cumsum(0) - many)[at]
    return at, order[first[at] + within]


def _check_sparse(tensors: Any) -> None:
    for at, x in enumerate(tensors):
        if type(x) is not SparseTensor:
            raise RuntimeError(
                f"Concatenating sparse tensors, but a dense tensor was found at position {at}."
            )


@kernel("cat")
def cat(tensors: Any, dim: int) -> SparseTensor:
    """Entries of the one behind those of the other."""
    _check_sparse(tensors)
    first = tensors[0]
    dim = wrap_dim(dim, first.dim())
    count = first.parts[0].shape[0]
    for at, x in enumerate(tensors):
        others = [n for d, n in enumerate(x.shape) if d != dim]
        if x.parts[0].shape[0] != count or x.dim() != first.dim():
            raise RuntimeError(
                "All tensors must have the same sparse_dim and dense_dim: "
                f"{count}, {first.dim() - count}, but tensor at position {at} has {x.parts[0].shape[0]}, "
                f"{x.dim() - x.parts[0].shape[0]}"
            )
        if others != [n for d, n in enumerate(first.shape) if d != dim]:
            raise RuntimeError(
                "All tensors must have the same shape: "
                f"{list(first.shape)} (except in the concatenating dimension), but found shape: "
                f"{list(x.shape)} at position {at}."
            )
    dtype = rushlight.result_type(first, first)
    for x in tensors:
        dtype = rushlight.promote_types(dtype, x.dtype)
    size = [*first.shape]
    size[dim] = sum(x.shape[dim] for x in tensors)
    all_indices, all_values, start = [], [], 0
    for x in tensors:
        indices, values, _ = x.parts
        values = values.to(dtype)
        if dim < count:
            indices = indices.clone()
            indices[dim] += start
        else:
            before = [*values.shape]
            before[dim - count + 1] = start
            after = [*values.shape]
            after[dim - count + 1] = size[dim] - start - x.shape[dim]
            values = rushlight.cat(
                [values.new_zeros(before), values, values.new_zeros(after)], dim - count + 1
            )
        start += x.shape[dim]
        all_indices.append(indices)
        all_values.append(values)
    return make(rushlight.cat(all_indices, 1), rushlight.cat(all_values), size, False)


@kernel("stack")
def stack(tensors: Any, dim: int) -> SparseTensor:
    """Side by side in a dimension of their own."""
    _check_sparse(tensors)
    return cat([unsqueeze(x, dim) for x in tensors], dim)


def broadcast(x: SparseTensor, size: Any) -> SparseTensor:
    """Entries repeated along sparse dimensions, in front or of size 1; values along dense ones."""
    indices, values, was = x.parts
    count, extra = indices.shape[0], len(size) - x.dim()
    values = values.expand(values.shape[0], *size[extra + count :])
    indices = rushlight.cat([rushlight.zeros((extra, indices.shape[1]), dtype=_C.int64), indices])
    for d in reversed(range(extra + count)):
        if size[d] == (1 if d < extra else x.shape[d - extra]):
            continue
        many, entries = size[d], indices.shape[1]
        indices = indices.repeat(1, many)
        indices[d] = rushlight.arange(many).repeat_interleave(entries)
        values = values.repeat(many, *(1 for _ in values.shape[1:]))
        was = was and d < extra
    return make(indices, values, size, was)


@kernel("view.dtype", "as_strided", "slice", "squeeze", "squeeze_dim", "squeeze_dims", "diagonal", "split",
        "split_with_sizes")  # fmt: skip
def strided_view(*args: Any) -> Any:
    """Views that torch makes by strides."""
    refuse("aten::as_strided")
