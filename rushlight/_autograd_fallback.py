"""What autograd makes of an operation of one's own that says nothing about its gradient.

`torch.library.Library.impl(name, kernel, "CPU")` registers what is computed and no derivative. The kernel
may record by itself, out of operations that have one; where it does not, its results would be constants
without a word. So they get a node that warns when a gradient passes.
`torch._C._set_autograd_fallback_mode("nothing")` leaves the results as the kernel made them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight import _C
from rushlight._warn import warn
from rushlight.autograd.function import Function, _in_namespace

_mode = "warn"


def _get_autograd_fallback_mode() -> str:
    """What is done about operations without a derivative: "nothing" or "warn"."""
    return _mode


def _set_autograd_fallback_mode(mode: str) -> None:
    """Chooses what is done about operations without a derivative."""
    global _mode
    if mode == "error":
        raise RuntimeError("NYI: mode='error'")
    if mode not in ("nothing", "warn"):
        raise RuntimeError(f"Unsupported AutogradFallbackMode: {mode}")
    _mode = mode


def _tensors(values: Any) -> list:
    if isinstance(values, _C.Tensor):
        return [values]
    if isinstance(values, (tuple, list)):
        return [tensor for value in values for tensor in _tensors(value)]
    return []


def _complain(name: str) -> None:
    warn(
        f"{name}: an autograd kernel was not registered to the Autograd key(s) but we are trying to backprop "
        "through it. This may lead to silently incorrect behavior. This behavior is deprecated and will be "
        "removed in a future version of PyTorch. If your operator is differentiable, please ensure you have "
        "registered an autograd kernel to the correct Autograd key (e.g. DispatchKey::Autograd, "
        "DispatchKey::CompositeImplicitAutograd). If your operator is not differentiable, or to squash this "
        "warning and use the previous behavior, please register torch::CppFunction::makeFallthrough() to "
        "DispatchKey::Autograd."
    )


class _Warns(Function):
    """Values of unknown derivative: a gradient that comes back is dropped, with a warning."""

    _node_name = "WarnNotImplemented"

    @staticmethod
    def forward(ctx, name, values, *inputs):
        ctx.operator = name
        return tuple(values)

    @staticmethod
    def backward(ctx, *grads):
        _complain(ctx.operator)
        return (None,) * (2 + len(ctx.needs_input_grad[2:]))


_in_namespace(_Warns)


def _differentiable(tensor: _C.Tensor) -> bool:
    return tensor.dtype.is_floating_point or tensor.dtype.is_complex


def call(name: str, kernel: Callable, schema: str, args: tuple, kwargs: dict) -> Any:
    """Runs a kernel without a derivative."""
    inputs = _tensors([*args, *kwargs.values()])
    watched = _mode == "warn" and _C.is_grad_enabled() and any(tensor.requires_grad for tensor in inputs)
    output = kernel(*args, **kwargs)
    if not watched:
        return output
    known = {id(tensor) for tensor in inputs}
    constant: dict[int, _C.Tensor] = {}
    hooked: dict[int, _C.Tensor] = {}
    returns = schema.rpartition("->")[2].split(",")  # "(Tensor(a!), Tensor)": the first was written
    values = output if len(returns) > 1 and isinstance(output, (tuple, list)) else [output]
    for value, declared in zip(values, returns, strict=False):
        written = "!" in declared
        for tensor in filter(_differentiable, _tensors(value)):
            if tensor.requires_grad:
                hooked[id(tensor)] = tensor
                base = tensor._base
                if written and base is not None and base.requires_grad:
                    hooked[id(base)] = base
            elif not written and id(tensor) not in known:
                constant[id(tensor)] = tensor
    for tensor in hooked.values():
        tensor.register_hook(lambda grad: _complain(name))
    if not constant:
        return output
    fresh = _Warns.apply(name, list(constant.values()), *(t for t in inputs if t.requires_grad))
    replaced = dict(zip(constant, fresh, strict=True))

    def swap(value: Any) -> Any:
        if isinstance(value, (tuple, list)):
            return type(value)(map(swap, value))
        return replaced.get(id(value), value)

    return swap(output)
