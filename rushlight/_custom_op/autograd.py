"""The gradient of a `CustomOp`: what its two parts, saving and going back, become in the graph."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any, NoReturn

import rushlight
from rushlight import Tensor
from rushlight.autograd.function import Function
from rushlight.utils import _pytree as pytree


def kernel_of(op: Any) -> Callable:
    """What runs for an operation where autograd looks on, by what is registered when it is called."""

    def run(*args: Any, **kwargs: Any) -> Any:
        parts = [part for part in ("backward", "save_for_backward") if op._has_impl(part)]
        if len(parts) == 1:
            (found,) = parts
            missing = "save_for_backward" if found == "backward" else "backward"
            raise RuntimeError(
                f"We found a '{found}' registration for {op} at {op._get_impl(found).location} but were "
                f"unable to find a '{missing}' registration. To use the CustomOp API to register a backward "
                "formula, please provide us both a backward function and a 'save for backward' function via "
                "`impl_backward` and `impl_save_for_backward` respectively."
            )
        if parts:
            return _recorded(op, args, kwargs)
        given = pytree.tree_leaves((args, kwargs))
        if rushlight.is_grad_enabled() and any(isinstance(t, Tensor) and t.requires_grad for t in given):
            raise RuntimeError("Autograd has not been implemented for operator")
        return _computed(op, args, kwargs)

    return run


def _computed(op: Any, args: tuple, kwargs: dict) -> Any:
    with rushlight.no_grad():
        return op._ophandle(*args, **kwargs)


class _Call:
    """One call of an operation: its arguments, and how the tensors in its result are arranged."""

    def __init__(self, op: Any, args: tuple, kwargs: dict) -> None:
        self.op, self.args, self.kwargs = op, args, kwargs
        self.returned: Any = None

    def named(self, values: tuple) -> Any:
        """What belongs to the arguments, by their names."""
        schema = self.op._schema
        return namedtuple(f"{schema.name}_args", [a.name for a in schema.arguments])(*values)


def _recorded(op: Any, args: tuple, kwargs: dict) -> Any:
    call = _Call(op, args, kwargs)
    if op._node is None:
        op._node = type(f"{op._opname}_customop", (_Recorded,), {})
    flat = op._node.apply(call, *pytree.tree_leaves((args, tuple(kwargs.values()))))
    return pytree.tree_unflatten(list(flat), call.returned)


class _Recorded(Function):
    """A call in the graph: its tensors are given flat, after the call itself."""

    @staticmethod
    def forward(ctx: Any, call: _Call, *leaves: Any) -> tuple:
        op = call.op
        given = (*call.args, *call.kwargs.values())
        output = _computed(op, call.args, call.kwargs)
        saved = op._get_impl("save_for_backward").func(call.named(given), output)
        kept, ctx.saved_spec = pytree.tree_flatten(saved)
        ctx.places = [place for place, value in enumerate(kept) if isinstance(value, Tensor)]
        ctx.save_for_backward(*(kept[place] for place in ctx.places))
        ctx.others = [None if isinstance(value, Tensor) else value for value in kept]
        ctx.kinds = call.named(tuple(pytree.tree_map(type, value) for value in given))
        ctx.op = op
        _mark_non_differentiable(ctx, output, op._output_differentiability)
        flat, call.returned = pytree.tree_flatten(output)
        ctx.output_spec = call.returned
        return tuple(flat)

    @staticmethod
    def backward(ctx: Any, *flat: Any) -> tuple:
        grads = pytree.tree_unflatten(list(flat), ctx.output_spec)
        kept = list(ctx.others)
        for place, tensor in zip(ctx.places, ctx.saved_tensors, strict=True):
            kept[place] = tensor
        saved = pytree.tree_unflatten(kept, ctx.saved_spec)
        grads = grads if isinstance(grads, tuple) else (grads,)
        found = ctx.op._get_impl("backward").func(object(), saved, *grads)
        _check(ctx.op, found, ctx.kinds)
        flat_grads: list = []
        for name, kind in ctx.kinds._asdict().items():
            count = len(pytree.tree_leaves(kind))
            if name not in found:
                flat_grads += [None] * count
            else:
                flat_grads += found[name] if isinstance(kind, list) else [found[name]]
        return (None, *flat_grads)


def _mark_non_differentiable(ctx: Any, output: Any, differentiable: list[bool] | None) -> None:
    if differentiable is None:
        return
    outputs = output if isinstance(output, tuple) else (output,)
    constant: list[Tensor] = []
    for index, (yes, value) in enumerate(zip(differentiable, outputs, strict=True)):
        if yes and not isinstance(value, (Tensor, list)):
            raise RuntimeError(
                f"With output_differentiability={differentiable}. At idx {index}, we received an object of "
                f"type {type(value)} that is not a Tensor, so it cannot have be marked as differentiable in "
                "output_differentiability."
            )
        if not yes and isinstance(value, (Tensor, list)):
            constant += value if isinstance(value, list) else [value]
    if constant:
        ctx.mark_non_differentiable(*constant)


def _check(op: Any, grads: Any, kinds: Any) -> None:
    """Raises if a backward function returned anything but one gradient per input that may be a tensor."""
    if not isinstance(grads, dict):
        _refuse(op, f"expected the output of the backward function to be a dict but got {type(grads)}")
    expected = {a.name for a in op._schema.arguments if a.word == "Tensor"}
    if grads.keys() != expected:
        _refuse(
            op,
            f"expected the returned grad_input dict to have keys {expected} but got {grads.keys()}. The "
            "backward function must return a gradient (can be None) for each arg to the CustomOp that may "
            "be a Tensor or Sequence[Tensor]. Args declared to be non-Tensor-like types should not appear "
            "in the grad_input dict",
        )
    for name, grad in grads.items():
        kind = getattr(kinds, name)
        if isinstance(kind, list):
            _check_list(op, name, grad, kind)
        elif grad is not None and not isinstance(grad, Tensor):
            _refuse(
                op,
                f"got object of type {type(grad)} as the gradient for input '{name}', but expected the "
                "gradient to be either None or a Tensor",
            )
        elif grad is not None and not issubclass(kind, Tensor):
            _refuse(
                op,
                f"got a Tensor as the gradient for input '{name}' but expected None as the gradient because "
                f"input '{name}' was not a Tensor (it was type {kind}).",
            )


def _check_list(op: Any, name: str, grads: Any, kinds: list) -> None:
    start = f"for input '{name}' expected the grad_input dict to hold a list of "
    if not isinstance(grads, (tuple, list)):
        _refuse(op, f"{start}gradients but got object of type {type(grads)}.")
    if len(grads) != len(kinds):
        _refuse(op, f"{start}{len(kinds)} gradients but got {len(grads)}")
    for index, (grad, kind) in enumerate(zip(grads, kinds, strict=True)):
        if grad is not None and not isinstance(grad, Tensor):
            _refuse(op, f"{start}None or Tensor gradients but got object of {type(grad)} at index {index}")
        if grad is not None and not issubclass(kind, Tensor):
            _refuse(
                op,
                f"for input '{name}', got a Tensor as the gradient for the {index}-th value but expected "
                f"None because the {index}-th value was not a Tensor (it was type {kinds}",
            )


def _refuse(op: Any, what: str) -> NoReturn:
    raise RuntimeError(
        f"In the backward function defined for {op} at {op._get_impl('backward').location} using the "
        f"CustomOp API, {what}"
    )
