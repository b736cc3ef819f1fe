"""The operations by which test suites tell what an autograd system does around an operation: one with a
derivative that no composition of others has, and one that warns."""

from __future__ import annotations

from typing import Any

from rushlight import _C, Tensor
from rushlight._warn import warn
from rushlight.autograd.function import Function


class _Dispatched(Function):
    _node_name = "TestAutogradMultipleDispatchBackward0"

    @staticmethod
    def forward(ctx: Any, input: Any) -> Any:
        return input.clone()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * grad if grad.is_nested else grad + 1

    @staticmethod
    def jvp(ctx: Any, tangent: Any) -> Any:
        return tangent.clone()


def _test_autograd_multiple_dispatch(input: Tensor, b: bool = False) -> Tensor:
    """A copy whose gradient is one too large, of a nested tensor squared; with `b` a clone.

    >>> x = rushlight.ones(2, requires_grad=True)
    >>> rushlight._test_autograd_multiple_dispatch(x).sum().backward()
    >>> x.grad
    tensor([2., 2.])
    """
    return input.clone() if b else _Dispatched.apply(input)


def _refuse_tangent(input: Tensor, name: str) -> None:
    if _C.tangent(input) is not None:
        raise NotImplementedError(
            f"Trying to use forward AD with {name} that does not support it because it has not been "
            "implemented yet."
        )


def _test_autograd_multiple_dispatch_view(input: Tensor) -> Tensor:
    """The elements in a line, as a view.

    >>> rushlight._test_autograd_multiple_dispatch_view(rushlight.ones(1, 2))
    tensor([1., 1.])
    """
    _refuse_tangent(input, "_test_autograd_multiple_dispatch_view")
    return input.view(-1)


def _test_autograd_multiple_dispatch_view_copy(input: Tensor) -> Tensor:
    """The elements in a line.

    >>> rushlight._test_autograd_multiple_dispatch_view_copy(rushlight.ones(1, 2))
    tensor([1., 1.])
    """
    _refuse_tangent(input, "_test_autograd_multiple_dispatch_view_copy")
    return input.reshape(-1).clone()


class _Warns(Function):
    _node_name = "TestWarnInAutogradBackward0"

    @staticmethod
    def forward(ctx: Any, input: Any) -> Any:
        return input.clone()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        warn("Warn from backward")
        return grad.clone()


def _test_warn_in_autograd(input: Tensor) -> Tensor:
    """A copy whose backward warns."""
    return _Warns.apply(input)
