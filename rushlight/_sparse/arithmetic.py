"""Kernels of arithmetic and of functions that map zero to zero."""

from __future__ import annotations

import math
from typing import Any

import rushlight
from rushlight import _C
from rushlight._sparse.build import coalesced, dense, look_up, places, sparse_at, sparse_sizes, sum_rows
from rushlight._sparse.shape import broadcast
from rushlight._sparse.table import assign, in_place, kernel, refuse
from rushlight._sparse.tensor import SparseTensor, make, with_values
from rushlight._versions import uncounted
from rushlight.ops._public import _same_storage, wrap_dim
from rushlight.ops.scaling import _ldexp

Tensor = _C.Tensor
ops = _C.ops


def _is_sparse(x: Any) -> bool:
    return type(x) is SparseTensor


# ---- sums


def _sum(a: SparseTensor, b: SparseTensor, alpha: Any) -> SparseTensor:
    if a.shape != b.shape:
        raise RuntimeError(
            f"add: expected sizes of 'self' and 'other' to match, but {list(a.shape)} != {list(b.shape)}"
        )
    dtype = rushlight.result_type(a, b)
    if dtype == _C.bool:
        raise NotImplementedError("\"cadd_sparse\" not implemented for 'Bool'")
    (i, v, was), (j, w, is_too) = a.parts, b.parts
    if not w.shape[0]:
        return with_values(a, v.to(dtype, copy=True))
    scaled = w.to(dtype) if alpha == 1 else w.to(dtype) * alpha
    if not v.shape[0]:
        return with_values(b, scaled.clone() if alpha == 1 else scaled)
    if i.shape[0] != j.shape[0]:
        raise RuntimeError(
            f"add: expected 'self' and 'other' to have same density, but 'self' has {i.shape[0]} sparse "
            f"dimensions while 'other' has {j.shape[0]} sparse dimensions"
        )
    if not (v.is_contiguous() and w.is_contiguous()):  # as torch has it
        return make(rushlight.cat([i, j], 1), rushlight.cat([v.to(dtype), scaled]), a.shape, False)
    sizes = sparse_sizes(a)
    first, second, count = _C.merge_places(places(i, sizes), places(j, sizes))
    # As in torch there is room for all, which shows in whether the engine takes the sum as it is.
    indices = rushlight.empty((i.shape[0], first.shape[0] + second.shape[0]), dtype=_C.int64)
    indices = ops.index_copy(ops.index_copy(indices, first, i, 1), second, j, 1)[:, :count]
    summed = sum_rows(rushlight.cat([v.to(dtype), scaled]), rushlight.cat([first, second]), count)
    return make(indices, summed, a.shape, was and is_too)


def _onto(a: Tensor, b: SparseTensor, alpha: Any) -> Tensor:
    """A dense tensor and a sparse one."""
    if a.shape != b.shape:
        raise RuntimeError(
            f"add: expected 'self' and 'other' to have same size, but self has size {list(a.shape)} while "
            f"other has size {list(b.shape)} (FYI: dense-sparse addition does not currently support "
            "broadcasting)"
        )
    dtype = rushlight.result_type(a, b)
    whole = a.to(dtype, copy=True, memory_format=rushlight.contiguous_format)
    with uncounted(whole):  # it is being made
        _scatter(whole, b, alpha)
    return whole


def _scatter(whole: Tensor, x: SparseTensor, alpha: Any) -> None:
    """Adds the entries of x to a contiguous tensor."""
    indices, values, _ = x.parts
    sizes = sparse_sizes(x)
    if whole.dtype == _C.bool:
        whole.copy_(ops.add_alpha(whole, dense(x), alpha))
    elif values.shape[0] and whole.numel():
        rows = whole.view(math.prod(sizes), *whole.shape[len(sizes) :])
        _C.in_place(ops.index_add, rows, places(indices, sizes), values.to(whole.dtype), 0, alpha)


@in_place("add_alpha")
def add_alpha_(a: Any, b: Any, alpha: Any) -> None:
    """Into a dense tensor entry by entry, without a pass over all of it."""
    own = not _C.dispatches(a) and _is_sparse(b) and a.shape == b.shape and a.dtype == b.dtype
    if own and a.is_contiguous() and not _same_storage(a, b.parts[1]):
        _scatter(_C.detach(a), b, alpha)
    else:
        assign(a, add_alpha(a, b, alpha))


@in_place("add")
def add_(a: Any, b: Any) -> None:
    """a += b."""
    add_alpha_(a, b, 1)


@in_place("sub")
def sub_(a: Any, b: Any) -> None:
    """a -= b."""
    add_alpha_(a, b, -1)


@in_place("sub_alpha")
def sub_alpha_(a: Any, b: Any, alpha: Any) -> None:
    """a -= alpha * b."""
    add_alpha_(a, b, -alpha)


@kernel("add_alpha")
def add_alpha(a: Any, b: Any, alpha: Any) -> Tensor:
    """a + alpha * b: both sparse, or the second one."""
    if not _is_sparse(a):
        return _onto(a if isinstance(a, Tensor) else rushlight.tensor(a), b, alpha)
    if not _is_sparse(b):
        raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
    return _sum(a, b, alpha)


@kernel("add")
def add(a: Any, b: Any) -> Tensor:
    """a + b."""
    return add_alpha(a, b, 1)


@kernel("sub")
def sub(a: Any, b: Any) -> Tensor:
    """a - b."""
    return add_alpha(a, b, -1)


@kernel("sub_alpha")
def sub_alpha(a: Any, b: Any, alpha: Any) -> Tensor:
    """a - alpha * b."""
    return add_alpha(a, b, -alpha)


@kernel("rsub_number")
def rsub_number(a: Any, b: Any) -> Tensor:
    """a - b of a number a."""
    return add_alpha(a, b, -1)


# ---- products and quotients


@kernel("mul")
def mul(a: Any, b: Any) -> SparseTensor:
    """By a number, by a dense tensor, or where both have entries."""
    if _is_sparse(a) and _is_sparse(b):
        return _product(a, b)
    if _is_sparse(b):
        a, b = b, a
    if not isinstance(b, Tensor) or b.dim() == 0:
        number = b if isinstance(b, Tensor) else None
        dtype = rushlight.result_type(a, b)
        values = a.parts[1].to(dtype)
        return with_values(a, ops.mul(values, b if number is None else number.to(dtype)))
    if b.shape != a.shape:
        size = rushlight.broadcast_shapes(a.shape, b.shape)
        a, b = a if a.shape == size else broadcast(coalesced(a), size), rushlight.broadcast_to(b, size)
    indices, values, _ = a.parts
    dtype = rushlight.result_type(a, b)
    return with_values(a, ops.mul(values.to(dtype), sparse_at(b, indices).to(dtype)))


def _product(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    if a.shape != b.shape or a.parts[0].shape[0] != b.parts[0].shape[0]:
        raise RuntimeError(
            "sparse_binary_op_intersection_cpu(): expects sparse inputs with equal dimensionality, number of "
            "sparse dimensions, and shape of sparse dimensions"
        )
    dtype = rushlight.result_type(a, b)
    if a.parts[2] and b.parts[2]:
        return _intersection(a, b, dtype)
    # The pattern is that of the one which is not in order, or has fewer entries.
    fewer = not a.parts[2] and a.parts[1].shape[0] < b.parts[1].shape[0]
    pattern, other = (a, b) if b.parts[2] or fewer else (b, a)
    rows = look_up(coalesced(other), pattern.parts[0])
    return with_values(pattern, pattern.parts[1].to(dtype) * rows.to(dtype), False)


def _intersection(a: SparseTensor, b: SparseTensor, dtype: Any) -> SparseTensor:
    """Of two that are in order: the entries that meet when both are walked side by side."""
    (i, v, _), (j, w, _) = a.parts, b.parts
    sizes = sparse_sizes(a)
    first, second, count = _C.merge_places(places(i, sizes), places(j, sizes))
    together = rushlight.cat([first, second])
    times = sum_rows(rushlight.ones_like(together), together, count)
    of_a = ops.nonzero(ops.index_select(times, first, 0) == 2)[:, 0]
    of_b = ops.nonzero(ops.index_select(times, second, 0) == 2)[:, 0]
    rows = ops.index_select(v, of_a, 0).to(dtype) * ops.index_select(w, of_b, 0).to(dtype)
    return make(ops.index_select(i, of_a, 1), rows, a.shape, True)


@kernel("ldexp.Tensor")
def ldexp(x: Any, other: Any) -> SparseTensor:
    """x * 2 ** other of a dense tensor."""
    if _is_sparse(other):
        refuse("aten::pow.Scalar")
    if x.is_floating_point() and not (other.is_floating_point() or other.is_complex()):
        raise RuntimeError("unsupported tensor layout: Sparse")
    return _ldexp(x, other)


@in_place("mul")
def mul_(a: Any, b: Any) -> None:
    """Also of a dense tensor by a sparse one, which leaves zeros."""
    result = mul(a, b)
    if _is_sparse(a) and not _is_sparse(b):  # as in torch it is no longer known to be coalesced
        result = with_values(result, result.parts[1], False)
    assign(a, result)


def _check_divisor(b: Any) -> None:
    if isinstance(b, Tensor) and b.dim():
        raise RuntimeError(
            "Sparse division requires a scalar or zero-dim dense tensor divisor (got shape "
            f"{list(b.shape)} for divisor)"
        )
    if _is_sparse(b):
        raise RuntimeError("Sparse division requires a dense divisor")


def _divided(primitive: Any, rounds: bool) -> Any:
    def divide(a: Any, b: Any) -> SparseTensor:
        if not _is_sparse(a):
            if isinstance(a, Tensor):
                _check_divisor(b)
            refuse("aten::reciprocal")
        _check_divisor(b)
        whole = coalesced(a) if rounds else a
        # The zero-dimensional divisor counts for the dtype as it does beside a tensor with dimensions.
        values = whole.parts[1]
        return with_values(whole, primitive(values, b))

    return divide


kernel("div")(_divided(ops.div, False))
kernel("div_floor")(_divided(ops.div_floor, True))
kernel("div_trunc")(_divided(ops.div_trunc, True))
kernel("floor_divide")(_divided(ops.floor_divide, True))


@in_place("div")
def div_(a: SparseTensor, b: Any) -> None:
    """Divides the values where they are."""
    _check_divisor(b)
    a.parts[1].div_(b)


@kernel("pow_scalar")
def pow_scalar(x: SparseTensor, s: Any) -> SparseTensor:
    """A power other than the zeroth."""
    if s == 0:
        raise RuntimeError(
            "pow: cannot raise to zeroth power on sparse tensor; it would make the result tensor dense"
        )
    x = coalesced(x)
    return with_values(x, ops.pow_scalar(x.parts[1], s))


# ---- elementwise functions

_COALESCING = (
    *("abs", "asin", "asinh", "atan", "atanh", "ceil", "deg2rad", "erf", "erfinv", "expm1", "floor", "frac"),
    *("log1p", "rad2deg", "round", "sgn", "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc"),
    *("relu", "isinf", "isnan", "isneginf", "isposinf", "signbit"),
)


def _unary(name: str) -> Any:
    primitive = getattr(ops, name)

    def function(x: SparseTensor) -> SparseTensor:
        x = coalesced(x)
        return with_values(x, primitive(x.parts[1]))

    return function


def _unary_(name: str) -> Any:
    primitive = getattr(ops, name)

    def function(x: SparseTensor) -> None:
        if not x.parts[2]:
            raise RuntimeError(f"{name}_ requires coalesced input")
        _C.in_place(primitive, x.parts[1])

    return function


for _name in _COALESCING:
    kernel(_name)(_unary(_name))
    if _name != "square":
        in_place(_name)(_unary_(_name))


@in_place("neg")
def neg_(x: SparseTensor) -> None:
    """Negates the values where they are."""
    x.parts[1].neg_()


@kernel("nan_to_num")
def nan_to_num(x: SparseTensor, s: Any, t: Any, u: Any) -> SparseTensor:
    """Without a number for NaN other than zero all is as it is elsewhere."""
    x = coalesced(x)
    return with_values(x, ops.nan_to_num(x.parts[1], s, t, u))


@kernel("threshold_backward")
def threshold_backward(g: Any, x: Any, s: Any) -> SparseTensor:
    """At the entries of x; what is no entry is zero, where the threshold passes nothing."""
    if not _is_sparse(x):
        refuse("aten::threshold_backward")
    x = coalesced(x)
    return with_values(x, ops.threshold_backward(sparse_at(g, x.parts[0]), x.parts[1], s))


@in_place("nan_to_num")
def nan_to_num_(x: SparseTensor, s: Any, t: Any, u: Any) -> None:
    """Writes the values where they are."""
    if not x.parts[2]:
        raise RuntimeError("nan_to_num_ requires coalesced input")
    _C.in_place(ops.nan_to_num, x.parts[1], s, t, u)


@in_place("square", "pow_scalar")
def pow_(x: SparseTensor, s: Any = 2) -> None:
    """torch has none."""
    refuse("aten::pow_.Scalar")


@kernel("neg")
def neg(x: SparseTensor) -> SparseTensor:
    """The entries one by one."""
    return with_values(x, ops.neg(x.parts[1]))


@kernel("conj", "conj_view")
def conj(x: SparseTensor) -> SparseTensor:
    """The entries one by one."""
    return with_values(x, ops.conj(x.parts[1]))


@kernel("real")
def real(x: SparseTensor) -> SparseTensor:
    """The entries one by one."""
    return with_values(x, ops.real(x.parts[1]))


@kernel("imag")
def imag(x: SparseTensor) -> SparseTensor:
    """The entries one by one."""
    return with_values(x, ops.imag(x.parts[1]))


@kernel("view_as_real")
def view_as_real(x: SparseTensor) -> SparseTensor:
    """The entries as pairs, in one dense dimension more."""
    indices, values, was = x.parts
    return make(indices, ops.view_as_real(values), (*x.shape, 2), was)


# ---- reductions


@kernel("sum")
def sum_all(x: SparseTensor, dtype: Any) -> Tensor:
    """The sum of all elements, a dense number."""
    # Truths are counted entry by entry, as in torch.
    return ops.sum(x.parts[1] if x.dtype == _C.bool else coalesced(x).parts[1], dtype)


@kernel("any")
def any_of(x: SparseTensor, dim: Any, keepdim: bool) -> Tensor:
    """Whether an element is not zero."""
    if dim is not None and tuple(dim if isinstance(dim, (tuple, list)) else [dim]) != tuple(range(x.dim())):
        refuse("aten::any.dim")
    return x.parts[1].any()


@kernel("sum_dim")
def sum_dim(x: SparseTensor, dim: Any, keepdim: bool, dtype: Any) -> Tensor:
    """The sum over some dimensions, of which the sparse ones that are left stay sparse."""
    dims = sorted(wrap_dim(d, x.dim()) for d in ([dim] if isinstance(dim, int) else dim))
    dims = dims or list(range(x.dim()))
    indices, values, _ = x.parts
    if dtype is None and not (x.is_floating_point() or x.is_complex()):
        dtype = _C.int64
    count = indices.shape[0]
    of_values = [d - count + 1 for d in dims if d >= count]
    kept = [d for d in range(count) if d not in dims]
    if of_values:
        values = ops.sum_dim(values, tuple(of_values), keepdim, dtype)
    elif dtype is not None:
        values = values.to(dtype)
    size = [1 if d in dims else n for d, n in enumerate(x.shape) if keepdim or d not in dims]
    if keepdim:
        rows = [indices[d] if d in kept else rushlight.zeros_like(indices[d]) for d in range(count)]
        summed = coalesced(make(rushlight.stack(rows), values, size, False))
        return with_values(summed, summed.parts[1], False)
    if not kept:
        return ops.sum_dim(values, (0,), False, None)
    chosen = ops.index_select(indices, rushlight.tensor(kept), 0)
    return coalesced(make(chosen, values, size, False))


@kernel("mean", "mean_dim")
def mean(x: SparseTensor, *args: Any) -> Tensor:
    """torch has none."""
    refuse("aten::mean.dim")


@kernel("sparse_sum")
def sparse_sum(x: SparseTensor, dim: Any) -> Tensor:
    """torch.sparse.sum over some dimensions."""
    sparse = [d for d in range(x.parts[0].shape[0]) if d not in dim]
    return sum_dim(x, dim, False, x.dtype if sparse else None)


@kernel("vector_norm")
def vector_norm(x: SparseTensor, ord: Any, dim: Any, keepdim: bool, dtype: Any) -> Tensor:
    """The norm of all elements."""
    dims = [] if dim is None else [dim] if isinstance(dim, int) else dim
    if len(dims) not in (0, x.dim()):
        raise RuntimeError(
            "norm_sparse currently only supports full reductions, so 'dim' must either be empty or contain "
            "all dimensions of the input"
        )
    if keepdim:
        raise RuntimeError("norm_sparse currently does not support keepdim=True")
    return ops.vector_norm(coalesced(x).parts[1], ord, None, False, dtype)
