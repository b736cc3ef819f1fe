"""Operations that are one step here and several in torch, in torch's steps: for who looks on.

While the profiler measures or `__torch_dispatch__` is asked, products are computed as torch composes them, so
that the steps, their nodes and their gradients are seen (`take_apart`, native/python/dispatch_mode.cpp).
Nobody pays for it otherwise.
"""

from __future__ import annotations

import math
import threading
from typing import Any

from rushlight import _C
from rushlight.ops._public import FUNCTIONS

Tensor = _C.Tensor
ops = _C.ops


class _Unsafe(threading.local):
    """Whether a view that is being made is the only one of its memory, which torch calls unsafe."""

    now = False


unsafe = _Unsafe()


class _Deriving(threading.local):
    """Whether the steps of a derivative run that no rule of a primitive makes (rushlight/_seen/_whole.py)."""

    now = False


deriving = _Deriving()


def rule_of() -> str | None:
    """Whose derivative is being computed, or None."""
    return "whole" if deriving.now else _C.rule_of()


def _unsafe_view(x: Tensor, size: list[int]) -> Tensor:
    unsafe.now = True
    try:
        return _C.name_node(_C.forget_base(x.view(size)), "UnsafeViewBackward0")
    finally:
        unsafe.now = False


_unsafe_view = _C.Function(_unsafe_view)


def _linear(bias: Tensor, x: Tensor, weight: Tensor) -> Tensor:
    return FUNCTIONS["addmm"](bias, x, weight.t())


def _linear_unbiased(x: Tensor, weight: Tensor) -> Tensor:
    return FUNCTIONS["matmul"](x, weight.t())


def _vecmat(a: Tensor, b: Tensor) -> Tensor:
    if rule_of() is not None:
        return b.t().mv(a)
    return a.unsqueeze(0).mm(b).squeeze_(0)


def _folds(many: Tensor, one: Tensor, rows_first: bool) -> bool:
    """Whether a batch of matrices times one matrix or vector is one product: to save the gradient of `one` a
    sum over the batch, or because the batch lies in memory as one matrix does."""
    if many.dim() < 3 or one.dim() > 2 or _C.dispatches(many):
        return False
    if _C.dispatches(one):
        return rows_first and _C.is_compressed(one)
    if one.requires_grad:
        return True
    if not rows_first and one.dim() == 2:
        return False
    if not many.numel():
        return True
    sizes, steps = many.shape, many.stride()
    return all(steps[d] == steps[d + 1] * sizes[d + 1] for d in range(many.dim() - 2))


def _matmul(a: Tensor, b: Tensor) -> Any:
    if not a.dim() or not b.dim():
        return NotImplemented  # the error is worded there
    first = a.dim() >= b.dim()
    many, one = (a, b) if first else (b.mT, a.t() if a.dim() == 2 else a)
    if _folds(many, one, first):
        flat = many.reshape(math.prod(many.shape[:-1]), many.shape[-1])
        if one.dim() == 1:
            return _unsafe_view(flat.mv(one), [*many.shape[:-1]])
        product = _unsafe_view(flat.mm(one), [*many.shape[:-1], one.shape[1]])
        return product if first else product.mT.contiguous()
    rows, inner = (a.shape[-2] if a.dim() > 1 else 1), a.shape[-1]
    lead, rest = a.shape[:-2], b.shape[:-2]
    if len(lead) == len(rest) == 1 and lead != rest:  # one matrix, whose gradient is saved a sum
        if lead[0] == 1 and a.requires_grad:
            return _matmul(a.squeeze(0), b)
        if rest[0] == 1 and b.requires_grad:
            return _matmul(a, b.squeeze(0))
    try:
        batch = list(FUNCTIONS["broadcast_shapes"](lead, rest))
    except RuntimeError:
        return NotImplemented
    count = math.prod(batch)
    left = a.expand(*batch, rows, inner).reshape(count, rows, inner)
    if b.dim() == 1:
        right = b.expand(*batch, b.shape[0]).reshape(count, b.shape[0]).unsqueeze(2)
    else:
        right = b.expand(*batch, *b.shape[-2:]).reshape(count, *b.shape[-2:])
    size = batch + [rows] * (a.dim() > 1) + [b.shape[-1]] * (b.dim() > 1)
    product = left.bmm(right)
    return _unsafe_view(product if b.dim() > 1 else product.squeeze(-1), size)


def _mh(x: Tensor) -> Tensor:
    x = x.conj() if x.is_complex() else x
    if (_C.rule_of() or "").startswith("linalg_"):
        return x.transpose(-2, -1)
    return x.t() if x.dim() == 2 else x.transpose(1, 2) if x.dim() == 3 else x.transpose(-2, -1)


# ---- lines, which torch takes for images of one row


def _row(value: Any) -> tuple[int, int]:
    return (1, value if isinstance(value, int) else value[0])


def _max_pool1d(x: Tensor, *args: Any) -> Any:
    kernel, stride, padding, dilation, ceil = args
    values, indices = ops.max_pool2d_with_indices(
        x.unsqueeze(-2), _row(kernel), _row(kernel if stride is None else stride), (0, _row(padding)[1]),
        _row(dilation), ceil,
    )  # fmt: skip
    return values.squeeze(-2), indices.squeeze(-2)


def _adaptive_max_pool1d(x: Tensor, size: Any) -> Any:
    values, indices = ops.adaptive_max_pool2d(x.unsqueeze(-2), _row(size))
    indices = indices.squeeze(-2)
    return values.squeeze(-2), indices


def _avg_pool1d(x: Tensor, size: Any, spec: tuple, adjoint: bool) -> Any:
    if adjoint:
        return NotImplemented
    kind, kernel, stride, padding, include, divisor, _, ceil = spec
    flat = (kind, _row(kernel), _row(stride), (0, padding[0]), include, divisor, _row(stride), ceil)
    return ops.avg_pool2d(x.unsqueeze(-2), _row(size), flat, False).squeeze(-2)


def _adaptive_avg_pool1d(x: Tensor, size: Any, spec: tuple, adjoint: bool) -> Any:
    if adjoint:
        return NotImplemented
    return ops.adaptive_avg_pool2d(x.unsqueeze(-2), _row(size), spec, False).squeeze(-2)


def _adaptive_avg_pool(x: Tensor, size: Any, spec: tuple, adjoint: bool) -> Any:
    if adjoint or any(n != 1 for n in size) or not x.numel():
        return NotImplemented
    return x.mean([-d - 1 for d in range(len(size))], True)


PARTS = {
    "max_pool1d_with_indices": _max_pool1d,
    "max_pool1d": lambda *args: _max_pool1d(*args)[0],
    "max_pool2d": lambda *args: ops.max_pool2d_with_indices(*args)[0],
    "max_pool3d": lambda *args: ops.max_pool3d_with_indices(*args)[0],
    "adaptive_max_pool1d": _adaptive_max_pool1d,
    "avg_pool1d": _avg_pool1d,
    "adaptive_avg_pool1d": _adaptive_avg_pool1d,
    "adaptive_avg_pool2d": _adaptive_avg_pool,
    "adaptive_avg_pool3d": _adaptive_avg_pool,
    "mm_nh": lambda a, b: ops.mm(a, _mh(b)),
    "mm_hn": lambda a, b: ops.mm(_mh(a), b),
    "bmm_nh": lambda a, b: ops.bmm(a, _mh(b)),
    "bmm_hn": lambda a, b: ops.bmm(_mh(a), b),
    "linear": _linear,
    "linear_unbiased": _linear_unbiased,
    "linear_nd_unbiased": _linear_unbiased,
    "vecmat": _vecmat,
    "matmul_nd": _matmul,
}


def show_steps() -> None:
    """From now on."""
    _C.take_apart(PARTS)
