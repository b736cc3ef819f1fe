"""Kernels of matrix products with sparse factors."""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight import _C
from rushlight._sparse.build import check_indices, coalesced, dense, look_up, places, sum_rows
from rushlight._sparse.table import kernel, refuse
from rushlight._sparse.tensor import SparseTensor, make, with_values
from rushlight.ops._public import type_name
from rushlight.ops.sparse import entries_at_once

Tensor = _C.Tensor
ops = _C.ops


def _is_sparse(x: Any) -> bool:
    return type(x) is SparseTensor


def _check_product(a: Any, b: Any) -> None:
    for x in (a, b):
        count = x.parts[0].shape[0] if _is_sparse(x) else x.dim()
        if count != 2 or x.dim() != 2:
            raise RuntimeError(f"addmm: matrices expected, got {count}D tensor")
    if a.shape[1] != b.shape[0]:
        if _is_sparse(a) and not _is_sparse(b):
            raise RuntimeError(
                f"addmm: Argument #3 (dense): Expected dim 0 size {a.shape[1]}, got {b.shape[0]}"
            )
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({a.shape[0]}x{a.shape[1]} and "
            f"{b.shape[0]}x{b.shape[1]})"
        )
    _check_dtypes(a, b)


def _check_dtypes(a: Any, b: Any) -> None:
    if a.dtype != b.dtype:
        raise RuntimeError(f"expected scalar type {type_name(a.dtype)} but found {type_name(b.dtype)}")
    if a.dtype == _C.bool:
        raise NotImplementedError("\"addmm_sparse_dense\" not implemented for 'Bool'")


def _times_dense(a: SparseTensor, b: Tensor) -> Tensor:
    """Rows of b, weighted by the entries, summed up."""
    (rows, columns), values, _ = a.parts
    check_indices(a.parts[0], a.shape)
    return sum_weighted(values, b, columns, rows, a.shape[0])


def sum_weighted(values: Tensor, b: Tensor, columns: Tensor, rows: Tensor, count: int) -> Tensor:
    """A matrix of `count` rows, in which rows of b are summed up: for each entry that of its column, times
    its value. All of them at once might be larger than memory."""
    _check_dtypes(values, b)
    whole = rushlight.zeros((count, b.shape[1]), dtype=b.dtype, device=b.device)
    step = entries_at_once(b)
    for value, column, row in zip(values.split(step), columns.split(step), rows.split(step), strict=True):
        weighted = ops.index_select(b, column, 0).mul_(value[:, None])
        _C.in_place(ops.index_add, whole, row, weighted, 0, 1)
    return whole


def _transposed(x: SparseTensor) -> SparseTensor:
    indices, values, _ = x.parts
    return make(indices.flip(0), values, (x.shape[1], x.shape[0]), False)


@kernel("mm", "einsum_mm")
def mm(a: Any, b: Any) -> Tensor:
    """A product of two matrices: dense if one of them is, else sparse."""
    _check_product(a, b)
    if _is_sparse(a) and _is_sparse(b):
        return sparse_sparse_matmul(a, b)
    if _is_sparse(a):
        return _times_dense(a, b)
    return _times_dense(_transposed(b), a.t()).t()


@kernel("sparse_sparse_matmul")
def sparse_sparse_matmul(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    """A sparse product of two sparse matrices: each entry of a meets a row of b."""
    _check_product(a, b)
    a, b = coalesced(a), coalesced(b)
    (rows, inner), left = a.parts[0], a.parts[1]
    (b_rows, columns), right = b.parts[0], b.parts[1]
    starts = rushlight.searchsorted(b_rows.contiguous(), inner.contiguous())
    ends = rushlight.searchsorted(b_rows.contiguous(), inner.contiguous(), right=True)
    counts = ends - starts
    size = a.shape[0], b.shape[1]
    found = []
    for part in _parts(rows, counts):
        many = counts[part]
        entry = rushlight.repeat_interleave(rushlight.arange(part.start, part.stop), many)
        within = rushlight.arange(entry.shape[0]) - rushlight.repeat_interleave(many.cumsum(0) - many, many)
        at = within + starts[entry]
        indices = rushlight.stack([rows[entry], columns[at]])
        found.append(coalesced(make(indices, left[entry] * right[at], size, False)))
    return make(
        rushlight.cat([x.parts[0] for x in found], 1), rushlight.cat([x.parts[1] for x in found]), size, True
    )


def _parts(rows: Tensor, counts: Tensor) -> list[slice]:
    """Entries of whole rows, as many as have about so many products: all of them might be larger than
    memory."""
    known, row = rushlight.unique(rows, return_inverse=True)
    group = (sum_rows(counts, row, known.shape[0]).cumsum(0) // 2**18)[row]
    ends = (ops.nonzero(group[1:] != group[:-1])[:, 0] + 1).tolist()
    return [slice(*ends) for ends in zip([0, *ends], [*ends, rows.shape[0]], strict=True)]


@kernel("mv")
def mv(a: Any, b: Any) -> Tensor:
    """A matrix and a vector, one of them sparse."""
    if a.dim() != 2 or b.dim() != 1:
        raise RuntimeError(
            f"mv: two tensor dim should be 2 and 1, but got SparseTensor Dim: {a.dim()}Tensor Dim: {b.dim()}"
        )
    if a.shape[1] != b.shape[0]:
        raise RuntimeError("mv: expected self.size(-1) == vec.size(-1)")
    if not _is_sparse(a):
        return ops.mv(a, dense(b))
    if _is_sparse(b):
        refuse("aten::as_strided")
    return _times_dense(a, b[:, None])[:, 0]


@kernel("vecmat")
def vecmat(a: Tensor, b: Any) -> Tensor:
    """A dense vector and a sparse matrix."""
    return mv(_transposed(b), a)


@kernel("addmm", "sparse_addmm")
def addmm(input: Any, mat1: Any, mat2: Any, beta: Any, alpha: Any) -> Tensor:
    """beta * input + alpha * the product of a sparse matrix and a dense one."""
    if _is_sparse(input):
        raise RuntimeError(
            "addmm_sparse_dense: expected strided result tensor, got tensor with layout Sparse"
        )
    if not _is_sparse(mat1):
        raise RuntimeError(
            "addmm_sparse_dense: expected either 'mat1' to have sparse layout and 'mat2' to have strided "
            "layout, got 'mat1' with layout Strided and 'mat2' with layout Sparse"
        )
    product = mm(mat1, mat2)
    if _is_sparse(product):
        product = dense(product)
    if not (product.is_floating_point() or product.is_complex()):  # as torch has it
        alpha = int(alpha)
        if isinstance(beta, float) and beta not in (0, 1):
            shown = type_name(product.dtype)
            raise RuntimeError(f"result type Double can't be cast to the desired output type {shown}")
    product = product if alpha == 1 else product * alpha
    if input.shape != product.shape:
        input = input.expand(product.shape)
    if beta == 0:
        return product
    return (input if beta == 1 else input * beta) + product


@kernel("bmm", "einsum_bmm")
def bmm(a: Any, b: Any) -> Tensor:
    """A batch of sparse matrices and one of dense matrices."""
    if not _is_sparse(a) or _is_sparse(b):
        raise RuntimeError("bmm_sparse: Tensor 'mat2' must be dense")
    if a.parts[0].shape[0] != 3:
        raise RuntimeError("bmm_sparse: Tensor 'self' must have three sparse dimensions")
    if b.dim() != 3 or a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        raise RuntimeError(f"bmm_sparse: sizes {list(a.shape)} and {list(b.shape)} cannot be multiplied")
    a = coalesced(a)
    check_indices(a.parts[0], a.shape)
    (batch, rows, columns), values = a.parts[0], a.parts[1]
    lines, columns = b.reshape(-1, b.shape[2]), batch * b.shape[1] + columns
    summed = sum_weighted(values, lines, columns, batch * a.shape[1] + rows, a.shape[0] * a.shape[1])
    return summed.view(a.shape[0], a.shape[1], b.shape[2])


# ---- softmax over the entries


def _groups(x: SparseTensor, dim: int) -> tuple[Tensor, Tensor, int]:
    """The values of x in rows along `dim`, the row of each, and how many rows there are."""
    indices, values, _ = x.parts
    others = [d for d in range(indices.shape[0]) if d != dim]
    if not others:
        return values, rushlight.zeros(values.shape[0], dtype=_C.int64), 1
    chosen = indices.index_select(0, rushlight.tensor(others))
    place = places(chosen, [x.shape[d] for d in others])
    known, row = rushlight.unique(place, return_inverse=True)
    return values, row, known.shape[0]


def _softmax(x: SparseTensor, dim: int, logarithm: bool) -> SparseTensor:
    x = coalesced(x)
    dim %= x.dim()
    count = x.parts[0].shape[0]
    if dim >= count:
        function = rushlight.log_softmax if logarithm else rushlight.softmax
        return with_values(x, function(x.parts[1], dim - count + 1))
    values, row, rows = _groups(x, dim)
    if not values.shape[0]:
        return with_values(x, values)
    low = rushlight.full((rows, *values.shape[1:]), -float("inf"), dtype=values.dtype)
    highest = ops.index_reduce(low, row, values, 0, "amax", True)
    shifted = values - highest.index_select(0, row)
    raised = shifted.exp()
    total = sum_rows(raised, row, rows).index_select(0, row)
    return with_values(x, shifted - total.log() if logarithm else raised / total)


@kernel("sparse_softmax")
def sparse_softmax(x: SparseTensor, dim: int) -> SparseTensor:
    """The softmax of the entries along a dimension; what is no entry counts as minus infinity."""
    return _softmax(x, dim, False)


@kernel("sparse_log_softmax")
def sparse_log_softmax(x: SparseTensor, dim: int) -> SparseTensor:
    """Its logarithm."""
    return _softmax(x, dim, True)


def _softmax_backward(g: SparseTensor, result: SparseTensor, dim: int, logarithm: bool) -> SparseTensor:
    if not _is_sparse(g):
        raise RuntimeError("coalesce expected sparse coordinate tensor layout but got Strided")
    dim %= result.dim()
    count = result.parts[0].shape[0]
    out = result.parts[1]
    grads = look_up(g, result.parts[0])
    if dim >= count:
        total = (grads if logarithm else grads * out).sum(dim - count + 1, True)
    else:
        _, row, rows = _groups(result, dim)
        total = sum_rows(grads if logarithm else grads * out, row, rows).index_select(0, row)
    return with_values(result, grads - out.exp() * total if logarithm else out * (grads - total))


@kernel("sparse_softmax_backward")
def sparse_softmax_backward(g: SparseTensor, result: SparseTensor, dim: int) -> SparseTensor:
    """The gradient of the softmax of entries."""
    return _softmax_backward(g, result, dim, False)


@kernel("sparse_log_softmax_backward")
def sparse_log_softmax_backward(g: SparseTensor, result: SparseTensor, dim: int) -> SparseTensor:
    """The gradient of its logarithm."""
    return _softmax_backward(g, result, dim, True)
