"""Batching rules of products, and of linear algebra, whose kernels take batches as they are."""

from __future__ import annotations

import math
from typing import Any

from rushlight.func._batching.table import Batch, Tensor, aligned, batching, example_by_example, ops


def _product(a: Any, b: Any) -> Any:
    return a @ b


_FACTORS = {
    "mm": (0, 0), "bmm": (0, 0), "matmul_nd": (0, 0), "einsum_mm": (0, 0),
    "einsum_bmm": (0, 0), "mm_nh": (0, 1), "bmm_nh": (0, 1), "matmul_nd_nh": (0, 1), "mm_hn": (1, 0),
    "bmm_hn": (1, 0), "matmul_nd_hn": (1, 0),
}  # fmt: skip


@batching(*_FACTORS)
def product(op: Any, batch: Batch, a: Any, b: Any) -> Any:
    """Of matrices; `h` says that one is turned and conjugated."""
    turn_a, turn_b = _FACTORS[op.__name__]
    one = a if batch.batched[0] else b
    rank = (one.dim() - 1, (b if batch.batched[0] else a).dim() - (batch.batched[0] and batch.batched[1]))
    if min(rank) < 2:
        return example_by_example(op, batch, a, b)
    a, b = aligned(batch, (a, b), batch.batched)
    return _product(a.mH if turn_a else a, b.mH if turn_b else b)


@batching("matmul_turned")
def product_turned(op: Any, batch: Batch, a: Any, b: Any) -> Any:
    return product(ops.mm, batch, a, b).mT


def _times_vector(a: Any, v: Any, batched: Any) -> Any:
    return _product(a, v) if not batched else _product(a, v.unsqueeze(-1)).squeeze(-1)


@batching("mv")
def mv(op: Any, batch: Batch, a: Any, v: Any) -> Any:
    if not batch.batched[0]:
        return _product(v, a.mT)
    return _times_vector(a, v, batch.batched[1])


@batching("vecmat")
def vecmat(op: Any, batch: Batch, v: Any, a: Any) -> Any:
    if not batch.batched[1]:
        return _product(v, a)
    return _times_vector(a.mT, v, batch.batched[0])


@batching("dot", "vdot")
def dot(op: Any, batch: Batch, a: Any, b: Any) -> Any:
    if op.__name__ == "vdot":
        a = a.conj()
    if all(batch.batched):
        return _product(a.unsqueeze(1), b.unsqueeze(2)).reshape(batch.size)
    return _product(a, b) if batch.batched[0] else _product(b, a)


@batching("linear_unbiased", "linear_nd_unbiased")
def linear_unbiased(op: Any, batch: Batch, x: Any, weight: Any) -> Any:
    on_x, on_weight = batch.batched
    if not on_weight:
        return _product(x, weight.mT)
    if on_x:
        rows = x.reshape(batch.size, math.prod(x.shape[1:-1]), x.shape[-1])
        return _product(rows, weight.mT).reshape(*x.shape[:-1], weight.shape[1])
    out = _product(x.reshape(math.prod(x.shape[:-1]), x.shape[-1]), weight.mT)
    return out.reshape(batch.size, *x.shape[:-1], weight.shape[1])


@batching("linear")
def linear(op: Any, batch: Batch, bias: Any, x: Any, weight: Any) -> Any:
    on_bias, on_x, on_weight = batch.batched
    if not on_x and not on_weight:
        out, on_out = (
            ops.linear_nd_unbiased(x, weight) if x.dim() != 2 else ops.linear_unbiased(x, weight),
            False,
        )
    else:
        on = Batch(batch.size, (on_x, on_weight), batch.number)
        out, on_out = linear_unbiased(op, on, x, weight), True
    out, bias = aligned(batch, (out, bias), (on_out, on_bias))
    return ops.add(out, bias)


def _plus(batch: Batch, x: Any, on_x: bool, out: Any, beta: Any, alpha: Any) -> Any:
    """beta * x + alpha * out; where beta is zero nothing of x, not even NaN."""
    if alpha != 1:
        out = ops.mul(out, alpha)
    if beta == 0:
        return out
    x, out = aligned(batch, (x, out), (on_x, True))
    return ops.add(ops.mul(x, beta) if beta != 1 else x, out)


@batching("addmm", "addmv", "baddbmm", "addbmm", "addr")
def add_product(op: Any, batch: Batch, x: Any, a: Any, b: Any, beta: Any, alpha: Any) -> Any:
    on_x, on_a, on_b = batch.batched
    if not on_a and not on_b:
        return example_by_example(op, batch, x, a, b, beta, alpha)
    inner = Batch(batch.size, (on_a, on_b), batch.number)
    name = op.__name__
    if name == "addmv":
        out = mv(op, inner, a, b)
    elif name == "addr":
        out = ops.mul(a.unsqueeze(-1), b.unsqueeze(-2))
    else:
        out = product(ops.mm, inner, a, b)
        if name == "addbmm":
            out = ops.sum_dim(out, (1,), False, None)
    if (
        name == "baddbmm"
        or name == "addbmm"
        or out.dtype == (x.dtype if isinstance(x, Tensor) else out.dtype)
    ):
        return _plus(batch, x, on_x, out, beta, alpha)
    return example_by_example(op, batch, x, a, b, beta, alpha)


@batching("linalg_cholesky", "linalg_det", "linalg_eig", "linalg_eigh", "linalg_inv", "linalg_ldl_factor",
          "linalg_lu_factor", "linalg_matrix_exp", "linalg_pinv", "linalg_qr", "linalg_slogdet", "linalg_svd",
          "lu_permutation", "geqrf")  # fmt: skip
def of_matrices(op: Any, batch: Batch, A: Any, *attributes: Any) -> Any:
    if op.__name__ != "lu_permutation" and A.dim() < 3:
        return example_by_example(op, batch, A, *attributes)  # which says what is wrong
    made = op(A, *attributes)
    if not isinstance(made, tuple):
        return made
    # What was not asked for is empty, whatever the size of the batch.
    return tuple(
        part if part.dim() > 1 or part.shape[:1] == (batch.size,) else batch.whole(part, False)
        for part in made
    )


@batching("linalg_householder_product", "linalg_ldl_solve", "linalg_lstsq", "linalg_lstsq_given",
          "linalg_lu_solve", "linalg_solve", "linalg_solve_triangular", "ormqr", "solve_factor")  # fmt: skip
def of_several(op: Any, batch: Batch, *args: Any) -> Any:
    count = op.input_count
    whole = [batch.whole(x, flag) for x, flag in zip(args, batch.batched, strict=False)]
    if whole[0].dim() != whole[-1].dim():
        if (
            op.__name__ == "linalg_solve" and whole[1].dim() == 2 and whole[0].dim() == 3 and args[2]
        ):  # one vector each
            out, *rest = op(whole[0], ops.unsqueeze(whole[1], -1), *args[count:])
            return out.squeeze(-1), *rest
        if count > 2 or op.__name__ == "linalg_solve":
            return example_by_example(op, batch, *args)
        if op.__name__ != "linalg_householder_product":
            whole = aligned(batch, whole, (True, True))
    return op(*whole, *args[count:])


@batching("linalg_cross")
def cross(op: Any, batch: Batch, a: Any, b: Any, dim: int) -> Any:
    a, b = aligned(batch, (batch.whole(a, batch.batched[0]), batch.whole(b, batch.batched[1])), (True, True))
    return op(a, b, dim + 1 if dim >= 0 else dim)
