"""The `__torch_function__` protocol: how user types take part in Rushlight's functions."""

from __future__ import annotations

import contextlib
import functools
import threading
import types as _types
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from rushlight import _C, _function_modes

__all__ = [
    "get_ignored_functions", "get_overridable_functions", "get_testing_overrides", "handle_torch_function",
    "has_torch_function", "resolve_name", "is_tensor_like", "is_tensor_method_or_property",
    "wrap_torch_function", "enable_reentrant_dispatch", "TorchFunctionMode", "BaseTorchFunctionMode",
]  # fmt: skip


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


class _Stack(threading.local):
    """The modes that are active in this thread, innermost last."""

    def __init__(self) -> None:
        self.modes: list[TorchFunctionMode] = []
        self.disabled = False  # inside DisableTorchFunction


_stack = _Stack()
_active = 0  # modes in all threads
_lock = threading.Lock()


def _watching() -> bool:
    return bool(_stack.modes) and not _stack.disabled


def _show_modes() -> None:
    """Tells the native functions whether they have to ask."""
    _C.set_function_modes(_watching())


def _dispatch(function: Any, args: tuple, kwargs: dict | None) -> Any:
    """Asks the innermost mode, then each overriding argument; called off the fast path of functions."""
    kwargs = kwargs or {}
    overriding = _overriding(args, kwargs) if _C._is_torch_function_enabled() else []
    types = tuple(type(value) for value in overriding)
    mode = None
    if _watching():
        with _pop_mode_temporarily() as mode:
            result = mode.__torch_function__(function, types, args, kwargs)
        if result is not NotImplemented:
            return result
    for value in overriding:
        result = type(value).__torch_function__(function, types, args, kwargs)
        if result is not NotImplemented:
            return result
    name = f"{getattr(function, '__module__', 'torch')}.{getattr(function, '__name__', function)}"
    handlers = "" if mode is None else f"\n  - mode object {mode!r}"
    raise TypeError(
        f"Multiple dispatch failed for '{name}'; all __torch_function__ handlers returned NotImplemented:\n"
        + handlers
        + "".join(f"\n  - tensor subclass {kind}" for kind in types)
    )


class TorchFunctionMode:
    """A context in which `__torch_function__` of this object is asked about every function of Rushlight.

    Inside `__torch_function__` the mode is off: calling the function does not ask again.

    >>> from rushlight.overrides import TorchFunctionMode
    >>> class Count(TorchFunctionMode):
    ...     calls = 0
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         self.calls += 1
    ...         return func(*args, **(kwargs or {}))
    >>> with Count() as count:
    ...     x = rushlight.ones(2) * 2 + 1
    >>> count.calls
    3
    """

    inner: TorchFunctionMode

    def __init__(self) -> None:
        pass

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Any:
        _push_mode(self)
        return self

    def __exit__(self, *error: object) -> None:
        _pop_mode()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """An instance of the mode; `with Mode():` says the same."""
        warnings.warn(
            "`Mode.push()` is no longer necessary and can be replaced with just `with Mode()`", stacklevel=2
        )
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """The mode that changes nothing."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def _push_mode(mode: TorchFunctionMode) -> None:
    global _active
    with _lock:
        _active += 1
        _function_modes.install(_watching, _dispatch)
    _stack.modes.append(mode)
    _show_modes()


def _pop_mode() -> TorchFunctionMode:
    global _active
    mode = _stack.modes.pop()
    _show_modes()
    with _lock:
        _active -= 1
        if not _active:
            _function_modes.remove()
    return mode


@contextlib.contextmanager
def _pop_mode_temporarily() -> Iterator[TorchFunctionMode]:
    mode = _stack.modes.pop()
    _show_modes()
    try:
        yield mode
    finally:
        _stack.modes.append(mode)
        _show_modes()


def _get_current_function_mode() -> TorchFunctionMode | None:
    return _stack.modes[-1] if _stack.modes else None


def _get_current_function_mode_stack() -> list[TorchFunctionMode]:
    return list(_stack.modes)


def _len_torch_function_stack() -> int:
    return len(_stack.modes)


def _get_function_stack_at(index: int) -> TorchFunctionMode:
    return _stack.modes[index]


def _is_torch_function_mode_enabled() -> bool:
    return _watching()


def handle_torch_function(public_api: Any, relevant_args: Any, *args: Any, **kwargs: Any) -> Any:
    """Calls `public_api` through the `__torch_function__` of its arguments."""
    return _dispatch(public_api, args, kwargs)


def has_torch_function(relevant_args: Any) -> bool:
    """Whether one of the arguments overrides `__torch_function__`, or a mode is active."""
    return _watching() or (_C._is_torch_function_enabled() and _C.has_torch_function(tuple(relevant_args)))


def has_torch_function_unary(argument: Any) -> bool:
    """has_torch_function for one argument."""
    return has_torch_function((argument,))


def has_torch_function_variadic(*arguments: Any) -> bool:
    """has_torch_function for arguments given one by one."""
    return has_torch_function(arguments)


def _get_overloaded_args(relevant_args: Iterable, get_type_fn: Callable | None = None) -> list:
    """The arguments that override, subclasses before their bases."""
    return _overriding(tuple(relevant_args), {})


def wrap_torch_function(dispatcher: Callable) -> Callable:
    """A decorator that makes a function of tensors ask `__torch_function__` of what `dispatcher` returns.

    >>> from rushlight.overrides import wrap_torch_function
    >>> @wrap_torch_function(lambda a: (a,))
    ... def double(a):
    ...     return a * 2
    >>> double(rushlight.ones(1))
    tensor([2.])
    """

    def inner(function: Callable) -> Callable:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            if has_torch_function(dispatcher(*args, **kwargs)):
                return _dispatch(wrapped, args, kwargs)
            return function(*args, **kwargs)

        return wrapped

    return inner


def is_tensor_like(value: Any) -> bool:
    """Whether a value is a tensor or acts as one."""
    return isinstance(value, _C.Tensor) or hasattr(type(value), "__torch_function__")


class DisableTorchFunction:
    """Inside, neither subclasses nor modes are asked."""

    def __enter__(self) -> None:
        self._before = _C.set_torch_function_enabled(False), _stack.disabled
        _stack.disabled = True
        _show_modes()

    def __exit__(self, *error: object) -> None:
        asked, _stack.disabled = self._before
        _C.set_torch_function_enabled(asked)
        _show_modes()


class DisableTorchFunctionSubclass:
    """Inside, subclasses are treated as plain tensors."""

    def __enter__(self) -> None:
        self._before = _C.set_torch_function_enabled(False)

    def __exit__(self, *error: object) -> None:
        _C.set_torch_function_enabled(self._before)


def _convert(result: Any, cls: type) -> Any:
    if cls is _C.Tensor:
        return result
    if isinstance(result, _C.Tensor) and not isinstance(result, cls):
        return result.as_subclass(cls)
    if isinstance(result, (tuple, list)):
        return type(result)(_convert(value, cls) for value in result)
    return result


# Methods whose result is not made an instance of the subclass.
_NO_WRAP = {"backward", "requires_grad_", "register_hook", "retain_grad"}


def get_default_nowrap_functions() -> set[Callable]:
    """What the default `__torch_function__` of a subclass returns as it is: bases and gradients."""
    tensor: Any = _C.Tensor
    return {tensor._base.__get__, tensor.grad.__get__, tensor._grad.__get__}


def _default_torch_function(cls: type, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Runs the function on the plain tensors and makes the result an instance of the subclass."""
    if not all(issubclass(cls, kind) for kind in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        result = func(*args, **(kwargs or {}))
    return result if getattr(func, "__name__", "") in _NO_WRAP else _convert(result, cls)


# ---- what can be overridden


def _namespaces() -> list[tuple[str, Any]]:
    import rushlight
    from rushlight import fft, linalg, special
    from rushlight.nn import functional, init

    return [
        ("torch", rushlight),
        ("torch.nn.functional", functional),
        ("torch.nn.init", init),
        ("torch.Tensor", _C.Tensor),
        ("torch.linalg", linalg),
        ("torch.fft", fft),
        ("torch.special", special),
    ]


@functools.cache
def _overridable() -> tuple[dict[Any, list[Callable]], dict[Any, str]]:
    """The functions that ask `__torch_function__`, by namespace, and the name of each."""
    found: dict[Any, list[Callable]] = {}
    names: dict[Any, str] = {}
    kinds = (_C.Function, _types.WrapperDescriptorType, _types.MethodDescriptorType)
    for prefix, space in _namespaces():
        functions = found.setdefault(space, [])
        for name, value in sorted(vars(space).items()):
            value = getattr(value, "original", value)  # watched just now
            if isinstance(value, (_types.GetSetDescriptorType, property)) and name != "__dict__":
                functions.append(value.__get__)
                names.setdefault(value.__get__, f"{prefix}.{name}.__get__")
                if getattr(value, "fset", True) is not None:
                    names.setdefault(value.__set__, f"{prefix}.{name}.__set__")
            elif name not in _function_modes._NEVER and (
                isinstance(value, kinds) or (space is _C.Tensor and name in _function_modes._PYTHON)
            ):
                functions.append(value)
                if value not in names or (names[value].startswith(prefix) and name == value.__name__):
                    names[value] = f"{prefix}.{name}"
    return found, names


def get_overridable_functions() -> dict[Any, list[Callable]]:
    """The functions that can be overridden with `__torch_function__`, by namespace."""
    return {space: list(functions) for space, functions in _overridable()[0].items()}


def get_ignored_functions() -> set[Callable]:
    """The functions of the namespaces that never ask `__torch_function__`."""
    ignored: set[Callable] = set()
    for _, space in _namespaces():
        for name, value in vars(space).items():
            if isinstance(value, (_types.FunctionType, _types.BuiltinFunctionType)) and not name.startswith(
                "_"
            ):
                ignored.add(value)
    return ignored


def get_testing_overrides() -> dict[Callable, Callable]:
    """A stand-in for every overridable function: the same parameters, and -1 as the result."""
    import inspect

    def stand_in(function: Any) -> Callable:
        def answer(*args: Any, **kwargs: Any) -> int:
            return -1

        with contextlib.suppress(TypeError, ValueError):
            answer.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
        return answer

    return {
        function: stand_in(function) for functions in _overridable()[0].values() for function in functions
    }


def resolve_name(f: Any) -> str | None:
    """The name a function is known by: "torch.add", "torch.Tensor.shape.__get__"; None if it is none of ours.

    >>> rushlight.overrides.resolve_name(rushlight.Tensor.shape.__get__)
    'torch.Tensor.shape.__get__'
    """
    return _overridable()[1].get(f)


def is_tensor_method_or_property(func: Callable) -> bool:
    """Whether a function is a method or an attribute of Tensor, rather than a function of a namespace."""
    return func in _overridable()[0][_C.Tensor] or getattr(func, "__name__", "") == "__get__"


@contextlib.contextmanager
def enable_reentrant_dispatch() -> Iterator[None]:
    """Inside `__torch_function__`: subclasses are asked again, although the caller has switched that off."""
    before = _C.set_torch_function_enabled(True)
    try:
        yield
    finally:
        _C.set_torch_function_enabled(before)
