"""The operations by which test suites tell what an autograd system does around an operation: one with a
derivative that no composition of others has, and one that warns."""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight import _C, Tensor
from rushlight._type_names import type_name as class_name
from rushlight._warn import warn
from rushlight.autograd.function import Function
from rushlight.func._allowed import allowed
from rushlight.func._tensor import BATCH
from rushlight.func._vmap import batched_at, together
from rushlight.ops._public import check_tensor, undifferentiable


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


def _test_functorch_fallback(input: Tensor, other: Tensor) -> Tensor:
    """A copy, for which nobody has written down what it is of a batch: computed example by example.

    >>> rushlight._test_functorch_fallback(rushlight.ones(2), rushlight.zeros(2))
    tensor([1., 1.])
    """
    check_tensor(input, "_test_functorch_fallback", "input", 1)
    check_tensor(other, "_test_functorch_fallback", "other", 2)
    number = _C.highest_level((input, other))
    if number and _C.level_about(number)[0] == BATCH:
        return _example_by_example(number, input, other)
    return undifferentiable("_test_functorch_fallback", input.detach().clone(), input, other)


def _example_by_example(number: int, *tensors: Tensor) -> Tensor:
    called, size = "aten::_test_functorch_fallback", _C.level_about(number)[1]
    if not allowed.example_by_example:
        raise RuntimeError(f"{called} hit the vmap fallback which is currently disabled")
    if allowed.warns_of_examples:
        warn(
            f"There is a performance drop because we have not yet implemented the batching rule for {called}"
            ". Please file us an issue on GitHub so that we can prioritize its implementation."
        )
    if size == 0:
        raise RuntimeError(
            f"Batching rule not implemented for {called}. The fallback path does not support vmap over dims "
            "of size 0."
        )

    def each() -> Tensor:
        every = [together(x, number, size) for x in tensors]
        return rushlight.stack([_test_functorch_fallback(*some) for some in zip(*every, strict=True)])

    return batched_at(_C.below_level(number, each), number, 0)
