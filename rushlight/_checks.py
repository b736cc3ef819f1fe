"""Assertions that libraries written for torch make through torch, so that its compilers see them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import Tensor
from rushlight._warn import warn

_UNEXPLAINED = (
    "Expected cond to be True, but got False. (Could this error message be improved? If so, please report an "
    "enhancement request to PyTorch.)"
)
Message = Callable[[], str] | None


def _assert(condition: Any, message: str) -> None:
    """assert condition, message"""
    if type(condition) is not Tensor and hasattr(type(condition), "__torch_function__"):
        from rushlight.overrides import handle_torch_function

        handle_torch_function(_assert, (condition,), condition, message)
        return
    if not condition:
        raise AssertionError(message)


def _assert_async(input: Tensor, assert_msg: str | None = None) -> None:
    """Raises unless the one element of `input` is nonzero."""
    if not input:
        raise RuntimeError(assert_msg or "Expected Tensor with single nonzero value, but got zero")


def _check_with(error_type: type[Exception], cond: Any, message: Message) -> None:
    """Raises `error_type` with the text that `message` makes unless `cond` is True."""
    if not isinstance(cond, bool):
        if isinstance(cond, Tensor):
            raise TypeError(
                "cond must be a bool, but got a Tensor. For tensor conditions, use torch._check_tensor_all() "
                "to assert that all elements are true."
            )
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if cond:
        return
    if message is not None and not callable(message):
        raise TypeError("message must be a callable")
    raise error_type(_UNEXPLAINED if message is None else str(message()))


def _check(cond: Any, message: Message = None) -> None:
    """RuntimeError unless `cond`."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond: Any, message: Message = None) -> None:
    """IndexError unless `cond`."""
    _check_with(IndexError, cond, message)


def _check_value(cond: Any, message: Message = None) -> None:
    """ValueError unless `cond`."""
    _check_with(ValueError, cond, message)


def _check_type(cond: Any, message: Message = None) -> None:
    """TypeError unless `cond`."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: Any, message: Message = None) -> None:
    """NotImplementedError unless `cond`."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i: int, message: Message = None, *, max: int | None = None) -> None:
    """RuntimeError unless `i` is a size: not negative, not above `max`."""
    warn(
        "_check_is_size will be removed in a future PyTorch release along with guard_size_oblivious.     "
        "Use _check(i >= 0) instead.",
        FutureWarning,
    )
    _check(i >= 0 and (max is None or i <= max), message)


def _check_tensor_all_with(error_type: type[Exception], cond: Any, message: Message = None) -> None:
    """Raises `error_type` unless all elements of the bool tensor `cond` are True."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype != rushlight.bool:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond.all()), message)


def _check_tensor_all(cond: Any, message: Message = None) -> None:
    """RuntimeError unless all elements of the bool tensor `cond` are True."""
    _check_tensor_all_with(RuntimeError, cond, message)


def _shape_as_tensor(self: Tensor) -> Tensor:
    """The shape in an int64 tensor."""
    return rushlight.tensor(tuple(self.shape), dtype=rushlight.int64)


def _cast_Long(input: Tensor, non_blocking: bool = False) -> Tensor:
    """input.to(int64)"""
    return input.to(rushlight.int64, non_blocking=non_blocking)


def _removed(name: str, instead: str) -> Callable:
    def removed(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            f"This function was deprecated since version 1.9 and is now removed. Use torch.linalg.{instead}."
        )

    removed.__name__ = removed.__qualname__ = name
    removed.__doc__ = f"Removed from torch; `torch.linalg.{instead}` has its place."
    return removed


solve, lstsq, eig, symeig, matrix_rank = (
    _removed(*names)
    for names in (
        ("solve", "solve"), ("lstsq", "lstsq"), ("eig", "eig"), ("symeig", "eigh"),
        ("matrix_rank", "matrix_rank"),
    )
)  # fmt: skip
