"""Kernels of arithmetic, of functions that map zero to zero, and of sums."""

from __future__ import annotations

import math
from typing import Any

import rushlight
from rushlight import _C
from rushlight._compressed.build import (
    coalesced,
    compressed_at,
    dense,
    elements,
    like,
    of_coo,
    same_entries,
)
from rushlight._compressed.table import assign, in_place, kernel
from rushlight._compressed.tensor import CompressedTensor, with_values
from rushlight._sparse import arithmetic as coordinates
from rushlight._sparse import build
from rushlight._sparse.tensor import SparseTensor
from rushlight._sparse.tensor import make as make_coo
from rushlight.ops._public import type_name, wrap_dim

Tensor = _C.Tensor
ops = _C.ops


def _is_compressed(x: Any) -> bool:
    return type(x) is CompressedTensor


# ---- sums


@kernel("add_alpha")
def add_alpha(a: Any, b: Any, alpha: Any) -> Tensor:
    """a + alpha * b: both compressed, or one of them."""
    if _is_compressed(a) and _is_compressed(b):
        dtype = rushlight.result_type(a, b)
        if same_entries(a, b):
            return with_values(a, ops.add_alpha(a.parts[2].to(dtype), b.parts[2].to(dtype), alpha))
        return like(coordinates._sum(coalesced(a), coalesced(b), alpha), a)
    sparse, other = (a, b) if _is_compressed(a) else (b, a)
    if type(other) is SparseTensor:
        raise RuntimeError(f"add: {sparse.kind} and Sparse tensors are not added to one another")
    size = list(other.shape) if isinstance(other, Tensor) else []
    if size != list(sparse.shape):
        raise RuntimeError(
            f"add: expected 'self' and 'other' to have same size, but self has size {size} while other has "
            f"size {list(sparse.shape)} (FYI: op2-sparse addition does not currently support broadcasting)"
        )
    dtype = rushlight.result_type(a, b)
    if sparse is a or dtype == _C.bool:
        return ops.add_alpha(dense(a) if sparse is a else a, b if sparse is a else dense(b), alpha)
    whole = other.to(dtype, copy=True, memory_format=rushlight.contiguous_format)
    _scatter(whole, sparse, alpha)
    return whole


def _scatter(whole: Tensor, x: CompressedTensor, alpha: Any) -> None:
    """Adds the entries of x to a contiguous tensor."""
    place, values = elements(x)
    if place.shape[0]:
        rows = whole.view(math.prod(x.shape[: x.batch + 2]), *x.shape[x.batch + 2 :])
        _C.in_place(ops.index_add, rows, place, values.to(whole.dtype), 0, alpha)


@in_place("add_alpha")
def add_alpha_(a: Any, b: Any, alpha: Any) -> None:
    """Nothing dense is written into a compressed tensor."""
    if _is_compressed(a) and not _is_compressed(b):
        raise RuntimeError(f"Sparse {a.form.title} tensors do not have is_contiguous")
    if not _C.can_cast(rushlight.result_type(a, b), a.dtype):
        names = type_name(rushlight.result_type(a, b)), type_name(a.dtype)
        raise RuntimeError(f"Can't convert result type {names[0]} to output {names[1]} in add operation")
    own = not _C.dispatches(a) and a.shape == b.shape and a.dtype == b.dtype and a.dtype != _C.bool
    if (
        own
        and a.is_contiguous()
        and a.untyped_storage().data_ptr() != b.parts[2].untyped_storage().data_ptr()
    ):
        _scatter(_C.detach(a), b, alpha)
    elif _is_compressed(a) and _is_compressed(b) and a.parts[2].dtype == b.dtype and same_entries(a, b):
        _C.in_place(ops.add_alpha, a.parts[2], b.parts[2], alpha)
    else:
        assign(a, add_alpha(a, b, alpha))


@in_place("add")
def add_(a: Any, b: Any) -> None:
    """a += b."""
    add_alpha_(a, b, 1)


@kernel("add")
def add(a: Any, b: Any) -> Tensor:
    """a + b."""
    return add_alpha(a, b, 1)


# ---- products


@kernel("mul")
def mul(a: Any, b: Any) -> CompressedTensor:
    """By a number, by a dense tensor, or where both have entries."""
    if not _is_compressed(a):
        a, b = b, a
    if not isinstance(b, Tensor) or b.dim() == 0:
        dtype = rushlight.result_type(a, b)
        values = a.parts[2].to(dtype)
        return with_values(a, ops.mul(values, b.to(dtype) if isinstance(b, Tensor) else b))
    dtype, other = rushlight.result_type(a, b), b
    if a.shape != b.shape:
        raise RuntimeError(
            f"sparse_mask(): operands have incompatible sizes; self has size {list(b.shape)} but mask has "
            f"size {list(a.shape)}"
        )
    if not _C.is_any_sparse(b):
        return with_values(a, ops.mul(a.parts[2].to(dtype), compressed_at(b, a).to(dtype)))
    if type(other) is CompressedTensor and same_entries(a, other):
        return with_values(a, ops.mul(a.parts[2].to(dtype), other.parts[2].to(dtype)))
    return like(coordinates._intersection(coalesced(a), coalesced(b), dtype), a)


@in_place("mul")
def mul_(a: Any, b: Any) -> None:
    """A dense tensor is not multiplied there, as in torch."""
    if not _is_compressed(a):
        raise RuntimeError("Expected result Tensor to be of format CSR")
    if not isinstance(b, Tensor) or b.dim() == 0:
        a.parts[2].mul_(b)
    else:
        assign(a, mul(a, b))


# ---- elementwise functions

_KEEP_ZERO = (
    *("abs", "asin", "asinh", "atan", "atanh", "ceil", "deg2rad", "erf", "erfinv", "expm1", "floor", "frac"),
    *("log1p", "neg", "rad2deg", "round", "sgn", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc"),
    *("relu", "isinf", "isnan", "isneginf", "isposinf", "signbit", "angle", "conj", "real", "imag"),
)


def _unary(name: str) -> Any:
    primitive = getattr(ops, name)

    def function(x: CompressedTensor) -> CompressedTensor:
        return with_values(x, primitive(x.parts[2]))

    return function


def _unary_(name: str) -> Any:
    primitive = getattr(ops, name)

    def function(x: CompressedTensor) -> None:
        _C.in_place(primitive, x.parts[2])

    return function


for _name in _KEEP_ZERO:
    kernel(_name)(_unary(_name))
    if _name not in ("isinf", "isnan", "isneginf", "isposinf", "signbit", "angle", "real", "imag"):
        in_place(_name)(_unary_(_name))
kernel("conj_view")(_unary("conj"))


@kernel("threshold_backward")
def threshold_backward(g: Any, x: CompressedTensor, s: Any) -> CompressedTensor:
    """At the entries of x; what is no entry is zero, where the threshold passes nothing."""
    return with_values(x, ops.threshold_backward(compressed_at(g, x), x.parts[2], s))


# ---- reductions


@kernel("sum")
def sum_all(x: CompressedTensor, dtype: Any) -> Tensor:
    """The sum of all elements, a dense number."""
    return ops.sum(x.parts[2], dtype)


def reduced(x: CompressedTensor, dim: Any, keepdim: bool, reduction: Any, dtype: Any) -> CompressedTensor:
    """A CSR matrix along one dimension or both."""
    if not keepdim:
        raise RuntimeError("reduction operations on CSR tensors with keepdim=False is unsupported")
    if x.dim() != 2:
        raise NotImplementedError(f"reduction of a {x.kind} tensor that is not a matrix")
    if dtype is None and not (x.is_floating_point() or x.is_complex()):
        dtype = _C.int64
    dims = {wrap_dim(d, 2) for d in ([dim] if isinstance(dim, int) else dim)} or {0, 1}
    place, values = elements(x)
    values = values if dtype is None else values.to(dtype)
    row, column = place // max(x.shape[1], 1), place % max(x.shape[1], 1)
    row = row * 0 if 0 in dims else row
    column = column * 0 if 1 in dims else column
    size = [1 if d in dims else n for d, n in enumerate(x.shape)]
    known, group = rushlight.unique(row * size[1] + column, return_inverse=True)
    indices = build.indices_of(known, size)
    return of_coo(make_coo(indices, reduction(values, group, known.shape[0]), size, True), x.form, (1, 1), 0)


def _products(values: Tensor, group: Tensor, count: int) -> Tensor:
    ones = rushlight.ones((count, *values.shape[1:]), dtype=values.dtype)
    return ops.index_reduce(ones, group, values, 0, "prod", True) if group.numel() else ones


@kernel("sum_dim")
def sum_dim(x: CompressedTensor, dim: Any, keepdim: bool, dtype: Any) -> CompressedTensor:
    """The sum over some dimensions of a CSR matrix, which stays one."""
    if not x.is_sparse_csr:
        raise RuntimeError(
            "Currently the only compressed sparse format supported for sum.dim_IntList is CSR, but got "
            f"layout {x.kind}"
        )
    if x.dtype == _C.bool:
        raise NotImplementedError("\"_sparse_csr_sum_cpu\" not implemented for 'Bool'")
    return reduced(x, dim, keepdim, build.sum_rows, dtype)


def csr_sum(x: Any, dim: Any, keepdim: bool, dtype: Any) -> CompressedTensor:
    """torch._sparse_csr_sum."""
    return reduced(x, dim, keepdim, build.sum_rows, dtype)


def csr_prod(x: Any, dim: Any, keepdim: bool, dtype: Any) -> CompressedTensor:
    """torch._sparse_csr_prod."""
    return reduced(x, dim, keepdim, _products, dtype)
