"""`torch._custom_ops`: operations of one's own as torch had them before `torch.library.custom_op`.

Each function finds the operation by its name and registers one part of it; see `_custom_op/impl.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from rushlight import library
from rushlight._custom_op.impl import (
    _check_prototype,
    _defined,
    _find_custom_op,
    parse_qualname,
    validate_namespace,
)
from rushlight._schema import Tag
from rushlight.library import get_ctx, infer_schema

__all__ = ["custom_op", "impl", "impl_abstract", "get_ctx", "impl_save_for_backward", "impl_backward"]


def custom_op(qualname: str, func_or_schema: Any = None) -> Any:
    """Defines an operation by a schema, or by the annotations of a function that is never called.

    >>> import rushlight._custom_ops as custom_ops
    >>> @custom_ops.custom_op("docs::old_twice")
    ... def old_twice(x: rushlight.Tensor) -> rushlight.Tensor:
    ...     raise NotImplementedError
    >>> @custom_ops.impl("docs::old_twice")
    ... def _(x):
    ...     return 2 * x
    >>> rushlight.ops.docs.old_twice(rushlight.ones(2))
    tensor([2., 2.])
    """
    space, name = parse_qualname(qualname)
    validate_namespace(space)

    def define(func: Callable) -> Callable:
        _check_prototype(func, qualname, name)
        _defined(space, name, infer_schema(func, mutates_args=()), [Tag.needs_fixed_stride_order])
        return func

    if isinstance(func_or_schema, str):
        _defined(space, name, func_or_schema, [Tag.needs_fixed_stride_order])
        return None
    return define if func_or_schema is None else define(func_or_schema)


def _register(qualname: str, func: Callable | None, part: Callable) -> Any:
    away = 3 if func is None else 5  # frames from the line that registers to the one that notes where it was

    def register(fn: Callable) -> Callable:
        part(_find_custom_op(qualname, also_check_torch_library=True), away)(fn)
        return fn

    return register if func is None else register(func)


def impl(
    qualname: str, *, device_types: str | Iterable[str] = ("cpu", "cuda"), func: Callable | None = None
) -> Any:
    """Registers what an operation runs on these types of devices."""
    return _register(qualname, func, lambda op, away: op.impl(device_types, _stacklevel=away))


def impl_abstract(qualname: str, *, func: Callable | None = None) -> Any:
    """Registers what an operation runs on the meta device."""
    return library.register_fake(qualname, func, _stacklevel=2)


def impl_save_for_backward(qualname: str, *, func: Callable | None = None) -> Any:
    """Registers `func(inputs, output)`, which returns what the gradient needs."""
    return _register(qualname, func, lambda op, away: op.impl_save_for_backward(_stacklevel=away))


def impl_backward(
    qualname: str, output_differentiability: list[bool] | None = None, *, func: Callable | None = None
) -> Any:
    """Registers `func(ctx, saved, *grads)`, which returns a dict of gradients by the names of inputs."""
    said = output_differentiability
    return _register(qualname, func, lambda op, away: op.impl_backward(said, _stacklevel=away))


def _destroy(qualname: str) -> None:
    """Takes an operation away, for tests."""
    _find_custom_op(qualname)._destroy()
