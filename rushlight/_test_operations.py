"""The operations by which test suites tell what an autograd system does around an operation: one with a
derivative that no composition of others has, and one that warns."""

from __future__ import annotations

from typing import Any

from rushlight import _C, Tensor
from rushlight._type_names import type_name as class_name
from rushlight._warn import warn
from rushlight.autograd.function import Function
from rushlight.ops._public import check_tensor


class _Dispatched(Function):
    _node_name = "TestAutogradMultipleDispatchBackward0"

    @staticmethod
    def forward(ctx: Any, input: Any) -> Any:
        return input.clone()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad + 1

    @staticmethod
    def jvp(ctx: Any, tangent: Any) -> Any:
        return tangent.clone()


class _DispatchedNested(Function):
    _node_name = "TestAutogradMultipleDispatchBackwardAutogradNestedTensor0"

    @staticmethod
    def forward(ctx: Any, input: Any) -> Any:
        return input.clone()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * grad


class _NestedAlone(Function):
    _node_name = "TestAutogradMultipleDispatchBackwardAutogradNestedTensor1"

    @staticmethod
    def forward(ctx: Any, input: Any) -> Any:
        return input.clone()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * grad + grad


def _test_autograd_multiple_dispatch(input: Tensor, b: bool | None = None) -> Tensor:
    """A copy whose gradient is one too large, of a nested tensor squared; with `b` a clone, whose gradient
    is a wrong one of a nested tensor alone.

    >>> x = rushlight.ones(2, requires_grad=True)
    >>> rushlight._test_autograd_multiple_dispatch(x).sum().backward()
    >>> x.grad
    tensor([2., 2.])
    """
    check_tensor(input, "_test_autograd_multiple_dispatch", "input", 1)
    if b is None:
        return (_DispatchedNested if input.is_nested else _Dispatched).apply(input)
    if not isinstance(b, bool):
        raise TypeError(f"_test_autograd_multiple_dispatch(): argument 'b' must be bool, not {class_name(b)}")
    return _NestedAlone.apply(input) if input.is_nested else input.clone()


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
    return _C.name_node(input.view(-1), "TestAutogradMultipleDispatchViewBackward0")


def _test_autograd_multiple_dispatch_view_copy(input: Tensor) -> Tensor:
    """The elements in a line.

    >>> rushlight._test_autograd_multiple_dispatch_view_copy(rushlight.ones(1, 2))
    tensor([1., 1.])
    """
    _refuse_tangent(input, "_test_autograd_multiple_dispatch_view_copy")
    return _C.name_node(input.reshape(-1).clone(), "TestAutogradMultipleDispatchViewBackward0_copy")


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
