"""The `__torch_function__` protocol: how user types take part in Rushlight's functions."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from rushlight import _C


def _overriding(args: tuple, kwargs: dict) -> list[Any]:
    """The arguments that override, subclasses before their bases, each type once."""
    found: list[Any] = []
    types: set[type] = set()

    def look(value: Any) -> None:
        kind = type(value)
        method = getattr(kind, "__torch_function__", None)
        if method is None or method is _C._disabled_torch_function_impl or kind in types or kind is _C.Tensor:
            return
        types.add(kind)
        at = next((i for i, other in enumerate(found) if issubclass(kind, type(other))), len(found))
        found.insert(at, value)

    for value in (*args, *kwargs.values()):
        if isinstance(value, (tuple, list)):
            for element in value:
                look(element)
        else:
            look(value)
    return found


def _dispatch(function: Any, args: tuple, kwargs: dict | None) -> Any:
    """Asks each overriding argument in turn; called by the native functions off their fast path."""
    kwargs = kwargs or {}
    overriding = _overriding(args, kwargs)
    types = tuple(type(value) for value in overriding)
    for value in overriding:
        result = type(value).__torch_function__(function, types, args, kwargs)
        if result is not NotImplemented:
            return result
    name = f"{getattr(function, '__module__', 'torch')}.{getattr(function, '__name__', function)}"
    raise TypeError(
        f"Multiple dispatch failed for '{name}'; all __torch_function__ handlers returned NotImplemented:\n\n"
        + "\n".join(f"  - tensor subclass {kind}" for kind in types)
    )


def handle_torch_function(public_api: Any, relevant_args: Any, *args: Any, **kwargs: Any) -> Any:
    """Calls `public_api` through the `__torch_function__` of its arguments."""
    return _dispatch(public_api, args, kwargs)


def has_torch_function(relevant_args: Any) -> bool:
    """Whether one of the arguments overrides `__torch_function__`."""
    return _C.has_torch_function(tuple(relevant_args))


def is_tensor_like(value: Any) -> bool:
    """Whether a value is a tensor or acts as one."""
    return isinstance(value, _C.Tensor) or hasattr(type(value), "__torch_function__")


class DisableTorchFunctionSubclass:
    """Inside, subclasses are treated as plain tensors."""

    def __enter__(self) -> None:
        self._before = _C.set_torch_function_enabled(False)

    def __exit__(self, *error: object) -> None:
        _C.set_torch_function_enabled(self._before)


class TorchFunctionMode:
    """A mode that sees every call of a function. It can be subclassed; entering it is not implemented."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Any:
        raise NotImplementedError("TorchFunctionMode is not implemented: use a subclass of Tensor")

    def __exit__(self, *error: object) -> None:
        pass


@contextlib.contextmanager
def enable_reentrant_dispatch() -> Iterator[None]:
    """For code inside `__torch_dispatch__`, which is never called: changes nothing."""
    yield


def _convert(result: Any, cls: type) -> Any:
    if cls is _C.Tensor:
        return result
    if isinstance(result, _C.Tensor) and not isinstance(result, cls):
        return result.as_subclass(cls)
    if isinstance(result, (tuple, list)):
        return type(result)(_convert(value, cls) for value in result)
    return result


# Attributes and queries whose result is the same for a subclass.
_NO_WRAP = {"backward", "requires_grad_", "register_hook", "retain_grad"}


def _default_torch_function(cls: type, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Runs the function on the plain tensors and makes the result an instance of the subclass."""
    if not all(issubclass(cls, kind) for kind in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        result = func(*args, **(kwargs or {}))
    return result if getattr(func, "__name__", "") in _NO_WRAP else _convert(result, cls)
