"""Kernels of matrix products with compressed factors: no factor is made dense, and the entries of one side
are gathered piece by piece, so that no more than a part of them has a row of its own at a time."""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight import _C
from rushlight._compressed.build import coalesced, elements, entries, of_coo
from rushlight._compressed.table import COMPRESSED, kernel
from rushlight._compressed.tensor import FORMS, CompressedTensor, sharing, with_values
from rushlight._sparse.products import sparse_sparse_matmul, sum_weighted
from rushlight._sparse.table import refuse
from rushlight._sparse.tensor import SparseTensor
from rushlight.ops import create
from rushlight.ops._public import type_name
from rushlight.ops.sparse import entries_at_once

Tensor = _C.Tensor
ops = _C.ops


def _is_compressed(x: Any) -> bool:
    return type(x) is CompressedTensor


def _name(x: Any) -> str:
    return x.kind if _C.is_any_sparse(x) else "Strided"


def _coordinates(x: CompressedTensor) -> tuple[Tensor, Tensor, Tensor]:
    """Row, column and value of each element of a matrix."""
    if x.dim() != 2:
        raise RuntimeError(f"a product of a {x.kind} tensor: a matrix expected, got {x.dim()}D tensor")
    if not x.form.blocked:
        line, plain, values = entries(x)
        return (line, plain, values) if x.form.by_rows else (plain, line, values)
    place, values = elements(x)
    wide = max(x.shape[1], 1)
    return place // wide, place % wide, values


def _check(a: Any, b: Any) -> None:
    for name, x in (("mat1", a), ("mat2", b)):
        if x.dim() != 2:
            raise RuntimeError(f"{name} must be a matrix, got {x.dim()}-D tensor")
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({a.shape[0]}x{a.shape[1]} and "
            f"{b.shape[0]}x{b.shape[1]})"
        )
    if a.dtype != b.dtype:
        raise RuntimeError(f"expected scalar type {type_name(a.dtype)} but found {type_name(b.dtype)}")


_MULTIPLIED = (_C.float32, _C.float64, _C.complex64, _C.complex128)


def _check_kernel(name: str, x: Any, form: str = "") -> None:
    if x.dtype not in _MULTIPLIED:
        told = f"not implemented for '{type_name(x.dtype)}'"
        raise NotImplementedError(f'"{name}_out_sparse_csr_impl_mkl{form}" {told}')


def times_dense(a: CompressedTensor, b: Tensor) -> Tensor:
    """Rows of b, weighted by the entries, summed up."""
    rows, columns, values = _coordinates(a)
    return sum_weighted(values, b, columns, rows, a.shape[0])


def _times_turned(a: CompressedTensor, b: Tensor) -> Tensor:
    """The same of the transpose of a."""
    rows, columns, values = _coordinates(a)
    return sum_weighted(values, b, rows, columns, a.shape[1])


@kernel("mm", "einsum_mm")
def mm(a: Any, b: Any) -> Tensor:
    """A product of two matrices: dense if one of them is, else CSR."""
    _check(a, b)
    if type(a) is SparseTensor or type(b) is SparseTensor:
        raise RuntimeError(
            f"addmm: computation on CPU is not implemented for {_name(a)} + {_name(a)} @ {_name(b)}"
        )
    if _is_compressed(a) and _is_compressed(b):
        _check_kernel("addmm", a, "_sparse")
        product = sparse_sparse_matmul(coalesced(a), coalesced(b))
        return of_coo(product, FORMS[create.sparse_csr], (1, 1), 0)
    _check_kernel("addmm", a)
    if _is_compressed(a):
        return times_dense(a, b)
    return _times_turned(b, a.t()).t()


@kernel("mv")
def mv(a: Any, b: Any) -> Tensor:
    """A matrix and a vector, of which the matrix is compressed."""
    if a.dim() != 2 or b.dim() != 1 or not _is_compressed(a):
        raise RuntimeError(f"mv: a matrix and a dense vector expected, got {_name(a)} and {_name(b)}")
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(
            f"size mismatch, got input ({a.shape[0]}), mat ({a.shape[0]}x{a.shape[1]}), vec ({b.shape[0]})"
        )
    _check_kernel("addmv", a)
    return times_dense(a, b[:, None])[:, 0]


@kernel("vecmat")
def vecmat(a: Tensor, b: Any) -> Tensor:
    """A dense vector and a compressed matrix."""
    _check(a[None], b)
    _check_kernel("addmm", a)
    return _times_turned(b, a[:, None])[:, 0]


def _scaled(product: Any, input: Any, beta: Any, alpha: Any) -> Any:
    product = product if alpha == 1 else product * alpha
    if beta == 0:
        return product
    return (input if beta == 1 else input * beta) + product


@kernel("addmm", "sparse_addmm")
def addmm(input: Any, mat1: Any, mat2: Any, beta: Any, alpha: Any) -> Tensor:
    """beta * input + alpha * the product of two matrices: dense if one of the three is."""
    _check(mat1, mat2)
    size = mat1.shape[0], mat2.shape[1]
    both = _is_compressed(mat1) and _is_compressed(mat2)
    if _C.is_any_sparse(input):
        if not both or not _is_compressed(input):
            raise RuntimeError(
                f"addmm: computation on CPU is not implemented for {_name(input)} + {_name(mat1)} @ "
                f"{_name(mat2)}"
            )
        return _scaled(input.convert(mm(mat1, mat2)), input, beta, alpha)
    product = mm(mat1, mat2)
    return _scaled(product, input if tuple(input.shape) == size else input.expand(size), beta, alpha)


@kernel("addmv")
def addmv(input: Tensor, mat: Any, vec: Any, beta: Any, alpha: Any) -> Tensor:
    """beta * input + alpha * the product of a matrix and a vector."""
    return _scaled(mv(mat, vec), input, beta, alpha)


@kernel("linear_unbiased", "linear_nd_unbiased")
def linear_unbiased(input: Tensor, weight: Any) -> Tensor:
    """Rows of the input times those of a compressed weight."""
    if not _is_compressed(weight) or _C.is_any_sparse(input):
        refuse("aten::linear", COMPRESSED.backend)
    rows = input.reshape(-1, input.shape[-1])
    if rows.shape[1] != weight.shape[1]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({rows.shape[0]}x{rows.shape[1]} and "
            f"{weight.shape[1]}x{weight.shape[0]})"
        )
    return times_dense(weight, rows.t()).t().reshape(*input.shape[:-1], weight.shape[0])


@kernel("linear")
def linear(input: Tensor, weight: Any, bias: Any) -> Tensor:
    """The same and a bias."""
    return linear_unbiased(input, weight) + bias


@kernel("matmul_nd")
def matmul_nd(a: Any, b: Any) -> Tensor:
    """Rows of several dimensions times a compressed matrix; torch has no batches of such matrices."""
    if not a.dim() or not b.dim():
        raise RuntimeError(
            f"both arguments to matmul need to be at least 1D, but they are {a.dim()}D and {b.dim()}D"
        )
    if not _is_compressed(b) or _C.is_any_sparse(a) or b.dim() != 2:
        first = a if _is_compressed(a) else b
        raise RuntimeError(f"expand is unsupported for {first.kind} tensors")
    return mm(a.reshape(-1, a.shape[-1]), b).reshape(*a.shape[:-1], b.shape[1])


# ---- products where a matrix has entries


def at_entries(x: CompressedTensor, a: Tensor, b: Tensor) -> Tensor:
    """The elements of a @ b where x has entries: a row of a and a column of b for each, piece by piece."""
    rows, columns, values = _coordinates(x)
    turned = b.t()
    step = entries_at_once(a)
    found = [
        (ops.index_select(a, i, 0) * ops.index_select(turned, j, 0)).sum(1)
        for i, j in zip(rows.split(step), columns.split(step), strict=True)
    ]
    return rushlight.cat(found).reshape(x.parts[2].shape) if found else x.parts[2].new_zeros(values.shape)


@kernel("sampled_addmm")
def sampled_addmm(x: CompressedTensor, a: Any, b: Any, beta: Any, alpha: Any) -> CompressedTensor:
    """beta * x + alpha * (a @ b) at the entries of x."""
    if _C.is_any_sparse(a) or _C.is_any_sparse(b) or not _is_compressed(x):
        raise RuntimeError("sampled_addmm: Expected mat1 and mat2 to have strided layout")
    product = at_entries(x, a, b) * alpha
    return with_values(x, product if beta == 0 else x.parts[2] * beta + product)


# ---- other reductions of a product


def _extremes(x: CompressedTensor, b: Tensor, reduce: str) -> tuple[Tensor, Tensor]:
    """Of each element of an extreme product its value and the entry it comes from: the first one, and as many
    as there are entries where there is none."""
    rows, columns, values = _coordinates(x)
    count, size = values.shape[0], (x.shape[0], b.shape[1])
    low = float("-inf") if reduce == "amax" else float("inf")
    best = rushlight.full(size, low, dtype=b.dtype)
    first = rushlight.full(size, count, dtype=_C.int64)
    entry, step = rushlight.arange(count), entries_at_once(b)
    pieces = [
        tuple(each) for each in zip(*(t.split(step) for t in (rows, columns, values, entry)), strict=True)
    ]
    if not count:
        return best, first
    for row, column, value, _ in pieces:
        products = ops.index_select(b, column, 0).mul_(value[:, None])
        best = ops.index_reduce(best, row, products, 0, reduce, True)
    for row, column, value, number in pieces:
        products = ops.index_select(b, column, 0).mul_(value[:, None])
        met = (products == ops.index_select(best, row, 0)) | products.isnan()
        first = ops.index_reduce(first, row, rushlight.where(met, number[:, None], count), 0, "amin", True)
    return best, first


def _many(x: CompressedTensor) -> Tensor:
    return (x.parts[0][1:] - x.parts[0][:-1]).clamp(min=1)[:, None].to(x.dtype)


@kernel("sparse_mm_reduce")
def sparse_mm_reduce(x: CompressedTensor, b: Tensor, reduce: str) -> Tensor:
    """The product with another reduction in the place of the sum; rows without entries are zero."""
    _check(x, b)
    if reduce == "sum":
        return times_dense(x, b)
    if reduce == "mean":
        return times_dense(x, b) / _many(x)
    best, first = _extremes(x, b, reduce)
    return rushlight.where(first == x.parts[1].shape[0], 0, best)


def reduce_gradients(g: Tensor, x: CompressedTensor, b: Tensor, reduce: str) -> tuple[Tensor, Tensor]:
    """Those of the values of x and of b."""
    rows, columns, values = _coordinates(x)
    if reduce in ("sum", "mean"):
        g = g / _many(x) if reduce == "mean" else g
        return at_entries(x, g, b.t().conj()), _times_turned(sharing(x, x.parts[2].conj()), g)
    _, first = _extremes(x, b, reduce)
    there = ops.nonzero(first != rows.shape[0])
    entry, wide = first[there[:, 0], there[:, 1]], there[:, 1]
    here = g[there[:, 0], wide]
    of_values = rushlight.zeros_like(values).index_add(0, entry, here * b[columns[entry], wide])
    of_b = rushlight.zeros_like(b).index_put((columns[entry], wide), here * values[entry], accumulate=True)
    return of_values, of_b
