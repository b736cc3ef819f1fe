"""Functions of autograd that take and return lists of tensors: `torch._library.autograd.supports_tensorlist`.

A Function sees tensors among its arguments only. So lists of them are given one by one, with a record of how
they lay, and are put together again for `forward`, `backward` and whoever called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from rushlight import Tensor
from rushlight.utils import _pytree as pytree


class _Lists:
    """How lists of tensors lie in the arguments and in the result of one call."""

    def __init__(self, given: Any) -> None:
        self.given = given
        self.returned: Any = None
        self.single = False


def not_list_of_tensor(value: Any) -> bool:
    """Whether it is given as it is: all but tuples and lists of nothing but tensors."""
    return _is_no_list_of(value, lambda each: isinstance(each, Tensor))


def not_list_of_optional_tensor(value: Any) -> bool:
    """The same where None stands for a gradient that is not there."""
    return _is_no_list_of(value, lambda each: each is None or isinstance(each, Tensor))


def _is_no_list_of(value: Any, fits: Callable) -> bool:
    if isinstance(value, list):
        return not all(map(fits, value))
    return not isinstance(value, tuple)


def _refuse(method: str, advice: str) -> NoReturn:
    raise NotImplementedError(
        f"NYI: calling supports_tensorlist autograd.Function.{method} directly. {advice}"
    )


def supports_tensorlist(cls: Any) -> Any:
    """Lets a Function take and return lists of tensors.

    >>> from rushlight._tensor_lists import supports_tensorlist
    >>> @supports_tensorlist
    ... class Stack(rushlight.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, xs):
    ...         return rushlight.stack(xs)
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         return list(grad.unbind(0))
    >>> x = rushlight.ones((), requires_grad=True)
    >>> Stack.apply([x, 2 * x]).sum().backward()
    >>> x.grad
    tensor(3.)
    """
    plain_forward, plain_backward, plain_apply = cls.forward, cls.backward, cls.apply

    def forward(ctx: Any, *args: Any) -> tuple:
        lists = args[-1] if args else None
        if not isinstance(lists, _Lists):
            _refuse(
                "forward",
                "You should probably be calling .apply instead. Please file an issue if not.",
            )
        result = plain_forward(ctx, *pytree.tree_unflatten(list(args[:-1]), lists.given))
        lists.single = not isinstance(result, tuple)
        flat, lists.returned = pytree.tree_flatten((result,) if lists.single else result, not_list_of_tensor)
        if hasattr(ctx, "_pt_metadata"):
            raise RuntimeError("Please don't set ctx._pt_metadata; PyTorch uses it to store info")
        ctx._pt_metadata = lists
        return tuple(flat)

    def backward(ctx: Any, *grads: Any) -> tuple:
        if not hasattr(ctx, "_pt_metadata"):
            _refuse(
                "backward",
                "This will automatically get called by PyTorch autograd. Please file an issue if you need "
                "this.",
            )
        lists, needs = ctx._pt_metadata, ctx.needs_input_grad
        ctx.needs_input_grad = pytree.tree_unflatten(list(needs[:-1]), lists.given)
        try:
            result = plain_backward(ctx, *pytree.tree_unflatten(list(grads), lists.returned))
        finally:
            ctx.needs_input_grad = needs
        result = result if isinstance(result, tuple) else (result,)
        flat, found = pytree.tree_flatten(result, not_list_of_optional_tensor)
        if found != lists.given:
            raise RuntimeError(
                "Expected the return from backward to be of the same structure as the inputs. Got: "
                f"{found} (return from backward), {lists.given} (inputs)"
            )
        return (*flat, None)

    def apply(*args: Any) -> Any:
        flat, given = pytree.tree_flatten(args, not_list_of_tensor)
        lists = _Lists(given)
        result = pytree.tree_unflatten(list(plain_apply(*flat, lists)), lists.returned)
        return result[0] if lists.single else result

    cls.forward, cls.backward, cls.apply = staticmethod(forward), staticmethod(backward), staticmethod(apply)
    return cls
