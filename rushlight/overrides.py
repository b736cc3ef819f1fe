"""The `__torch_function__` protocol: how user types and modes take part in Rushlight's functions.

A call of a public function, an operator or an attribute asks, in this order: the innermost TorchFunctionMode,
then the arguments whose type overrides, subclasses before their bases. `_dispatch` is where the native core
arrives when somebody is to be asked. The lists of what can be overridden are made when they are wanted, by
looking through the namespaces (_overridable.py).
"""

from __future__ import annotations

import contextlib
import functools
import threading
import types as _types
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from rushlight import _C
from rushlight._put_back import keep
from rushlight._told_by_name import told
from rushlight._warn import warn, warn_once

__all__ = [
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "resolve_name",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "wrap_torch_function",
    "enable_reentrant_dispatch",
    "TorchFunctionMode",
    "BaseTorchFunctionMode",
    "redispatch_function",
]


class _Skip(threading.local):
    """Whether the next question of this thread whether somebody overrides is answered with no."""

    next = False

    def taken(self) -> bool:
        taken, self.next = self.next, False
        return taken


_skip = _Skip()


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether one of the arguments overrides functions, or a mode does."""
    return not _skip.taken() and _C._has_torch_function(relevant_args)


def has_torch_function_unary(obj: Any) -> bool:
    """The same for one argument."""
    return not _skip.taken() and _C._has_torch_function_unary(obj)


def has_torch_function_variadic(*args: Any) -> bool:
    """The same for arguments that are given one by one."""
    return not _skip.taken() and _C._has_torch_function_variadic(*args)


class _Unanswered(TypeError):
    """Nobody who was asked has an answer; an operator then returns NotImplemented."""


_Unanswered.__name__ = _Unanswered.__qualname__ = "TypeError"


# ---- modes


class _Stack(threading.local):
    def __init__(self) -> None:
        self.modes: list[Any] = []
        self.off = False  # nobody is asked


_stack = _Stack()


def _put_back(modes: list[Any]) -> None:
    _stack.modes = modes


def _push_mode(mode: Any) -> None:
    keep(_get_current_function_mode_stack, _put_back)
    _stack.modes.append(mode)
    _C.set_function_mode(not _is_torch_function_all_disabled())


def _pop_mode() -> Any:
    if not _stack.modes:
        raise RuntimeError("trying to pop from empty mode stack")
    keep(_get_current_function_mode_stack, _put_back)
    mode = _stack.modes.pop()
    _C.set_function_mode(bool(_stack.modes) and not _is_torch_function_all_disabled())
    return mode


@contextlib.contextmanager
def _pop_mode_temporarily():
    """Inside, the innermost mode is not asked."""
    mode = _pop_mode()
    try:
        yield mode
    finally:
        _push_mode(mode)


def _get_current_function_mode() -> Any:
    return _stack.modes[-1] if _stack.modes else None


def _get_current_function_mode_stack() -> list[Any]:
    return list(_stack.modes)


class TorchFunctionMode:
    """Sees every call of a public function inside its `with` block, whatever the arguments are.

    >>> class Count(rushlight.overrides.TorchFunctionMode):
    ...     calls = 0
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         self.calls += 1
    ...         return func(*args, **(kwargs or {}))
    >>> with Count() as count:
    ...     _ = rushlight.ones(2) + 1
    >>> count.calls
    2
    """

    inner: TorchFunctionMode

    def __init__(self) -> None:
        pass

    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError

    def __enter__(self):
        _push_mode(self)
        return self

    def __exit__(self, *error):
        _pop_mode()

    @classmethod
    def push(cls, *args, **kwargs):
        """An instance of the mode; `with Mode():` says the same."""
        warnings.warn(
            "`Mode.push()` is no longer necessary and can be replaced with just `with Mode()`", stacklevel=2
        )
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class DisableTorchFunctionSubclass:
    """Inside, subclasses are treated as plain tensors; modes are still asked."""

    def __enter__(self) -> None:
        self._before = _C.set_torch_function_enabled(False)

    def __exit__(self, *error: object) -> None:
        _C.set_torch_function_enabled(self._before)


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """Inside, neither subclasses nor modes are asked."""

    def __enter__(self) -> None:
        super().__enter__()
        self._modes, self._off = _C.set_function_mode(False), _is_torch_function_all_disabled()
        _stack.off = True

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        _stack.off = self._off
        _C.set_function_mode(self._modes)


class _EnableTorchFunction:
    """Inside, subclasses and modes are asked again."""

    def __enter__(self) -> None:
        self._before = _C.set_torch_function_enabled(True)
        self._off, _stack.off = _is_torch_function_all_disabled(), False
        self._modes = _C.set_function_mode(bool(_stack.modes))

    def __exit__(self, *error: object) -> None:
        _C.set_torch_function_enabled(self._before)
        _stack.off = self._off
        _C.set_function_mode(self._modes)


def _is_torch_function_all_disabled() -> bool:
    """Whether this thread is inside of `DisableTorchFunction`."""
    return _stack.off


@contextlib.contextmanager
def _enable_torch_function() -> Iterator[None]:
    """A context in which subclasses are asked again."""
    with _EnableTorchFunction():
        yield


# ---- asking


def _get_overloaded_args(relevant_args: Iterable[Any], get_type_fn: Callable | None = None) -> list[Any]:
    """The arguments that override, subclasses before their bases, each type once."""
    kind_of = get_type_fn or type
    if not _C._is_torch_function_enabled():
        return []
    found: list[Any] = []
    types: list[type] = []
    for value in relevant_args:
        kind = kind_of(value)
        method = getattr(kind, "__torch_function__", None)
        if method is None or method is _C._disabled_torch_function_impl or kind in types:
            continue
        at = next((i for i, other in enumerate(types) if issubclass(kind, other)), len(types))
        types.insert(at, kind)
        found.insert(at, value)
    return found


def _flat(args: tuple, kwargs: dict) -> Iterable[Any]:
    for value in (*args, *kwargs.values()):
        if type(value) in (tuple, list):
            yield from value
        else:
            yield value


def _method_of_mode(mode: Any, name: str) -> Any:
    method = getattr(mode, name)
    if getattr(method, "__self__", mode) is not mode:
        raise RuntimeError(
            f"Defining your mode's `{name}` as a classmethod is not supported, please make it a plain method"
        )
    return method


def _method_of(value: Any, function: Any, in_python: bool) -> Any:
    method = value.__torch_function__
    if getattr(method, "__self__", None) is value:
        said = "as a plain method is deprecated and will be an error in future, please define it as a "
        said += "classmethod."
        if in_python or getattr(function, "__module__", "").startswith("rushlight.nn.functional"):
            warn(f"Defining your `__torch_function__ {said}", DeprecationWarning)
        else:
            warn_once(f"Defining your `__torch_function__` {said}")
    return method


def _ask(
    function: Any, overriding: list[Any], types: tuple, args: tuple, kwargs: dict, in_python: bool = False
) -> Any:
    """The answer of a mode or of an argument; NotImplemented if there is none. Torch words its warnings
    otherwise for functions that it has in Python."""
    if _C._is_torch_function_mode_enabled():
        with _pop_mode_temporarily() as mode:
            result = _method_of_mode(mode, "__torch_function__")(function, types, args, kwargs)
        if result is not NotImplemented:
            return result
    for value in overriding:
        result = _method_of(value, function, in_python)(function, types, args, kwargs)
        if result is not NotImplemented:
            return result
    return NotImplemented


def _dispatch(function: Any, args: tuple, kwargs: dict | None) -> Any:
    """Asks whom the arguments of a native call concern; called off the fast path."""
    kwargs = kwargs or {}
    name = getattr(function, "__name__", "")
    # These take data, of which a tensor is one kind: only modes are asked.
    if name in ("tensor", "as_tensor", "asarray") and not _C._is_torch_function_mode_enabled():
        with DisableTorchFunctionSubclass():
            return function(*args, **kwargs)
    if name == "einsum" and len(args) == 2 and isinstance(args[1], (list, tuple)):
        args = (args[0], *args[1])  # the operands one by one, however they were given
    function, args, kwargs, known = told(function, args, kwargs)
    overloaded = _get_overloaded_args(_flat(args, kwargs))
    overriding = [value for value in overloaded if type(value) is not _C.Tensor]
    types = tuple(type(value) for value in (overloaded if known and known.in_python else overriding))
    if not types and (name in ("__get__", "__set__") or (known and known.alone)):
        types = (type(args[0]),)
    result = _ask(function, overriding, types, args, kwargs)
    if result is not NotImplemented:
        return result
    if known and known.in_python:
        raise _unanswered_in_python(function, types)
    asked = [f"  - tensor subclass {kind}" for kind in types]
    if _C._is_torch_function_mode_enabled():
        asked.insert(0, f"  - mode object {_stack.modes[-1]!r}")
    called = resolve_name(function)
    if called == "torch.spmm":  # which is torch.mm
        called = "torch.mm"
    raise _Unanswered(
        f"Multiple dispatch failed for '{called}'; all __torch_function__ handlers returned "
        "NotImplemented:\n\n" + "\n".join(asked) + "\n\n"
        "For more information, try re-running with TORCH_LOGS=not_implemented"
    )


def handle_torch_function(public_api: Any, relevant_args: Any, *args: Any, **kwargs: Any) -> Any:
    """Calls `public_api` through the `__torch_function__` of its arguments."""
    overriding = _get_overloaded_args(relevant_args)
    types = tuple(map(type, overriding))
    result = _ask(public_api, overriding, types, args, kwargs, in_python=True)
    if result is not NotImplemented:
        return result
    raise _unanswered_in_python(public_api, types)


def _unanswered_in_python(function: Any, types: tuple) -> _Unanswered:
    message = (
        f"no implementation found for '{_full_name(function)}' on types that "
        f"implement __torch_function__: {list(types)}"
    )
    if _C._is_torch_function_mode_enabled():
        message += f" nor in mode {_stack.modes[-1]}"
    return _Unanswered(message)


def _full_name(function: Any) -> str:
    name = resolve_name(function) if isinstance(function, _C.Function) else None
    return name or f"{function.__module__}.{function.__name__}".replace("rushlight.", "torch.", 1)


def wrap_torch_function(dispatcher: Callable) -> Callable:
    """Makes a function ask `__torch_function__` of the arguments that `dispatcher(*args)` returns."""

    def wrap(function):
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return wrap


def redispatch_function(func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """Calls a function as if nobody had overridden it, for a handler that wants to see what it is made of: a
    function in Python is entered, and what it calls is asked about again."""
    if isinstance(func, _C.Function) or not isinstance(func, _IN_PYTHON):
        with DisableTorchFunction():
            return func(*args, **(kwargs or {}))
    _skip.next = True
    try:
        return func(*args, **(kwargs or {}))
    finally:
        _skip.next = False


_IN_PYTHON = (_types.FunctionType, functools.partial)


@contextlib.contextmanager
def enable_reentrant_dispatch():
    """Inside `__torch_dispatch__`: operations are recorded again as where the question came from."""
    from rushlight._ops import _dispatching

    if not _dispatching.calls:
        raise RuntimeError("Accessing torch dispatch state outside of '__torch_dispatch__' is not allowed.")
    calls, _dispatching.calls = _dispatching.calls, ()
    grad = _C.set_grad_enabled(_C.dispatch_outer_grad())
    try:
        with _EnableTorchFunction():
            yield
    finally:
        _C.set_grad_enabled(grad)
        _dispatching.calls = calls


def is_tensor_like(inp: Any) -> bool:
    """Whether a value is a tensor or acts as one."""
    return type(inp) is _C.Tensor or hasattr(inp, "__torch_function__")


# ---- what Tensor.__torch_function__ does


def get_default_nowrap_functions() -> set[Any]:
    """Functions whose result the default `__torch_function__` leaves as it is."""
    tensor: Any = _C.Tensor
    return {tensor._base.__get__, tensor.grad.__get__, tensor._grad.__get__}


_NO_WRAP = get_default_nowrap_functions()


def _convert(result: Any, cls: type) -> Any:
    if cls is _C.Tensor:
        return result
    if isinstance(result, _C.Tensor) and not isinstance(result, cls):
        return result.as_subclass(cls)
    if isinstance(result, (tuple, list)):
        parts = [_convert(value, cls) for value in result]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    return result


def _default_torch_function(cls: type, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Runs the function on the plain tensors and makes the result an instance of the subclass."""
    if not all(issubclass(cls, kind) for kind in types):
        return NotImplemented
    before = _C.set_torch_function_enabled(False)
    try:
        result = func(*args, **(kwargs or {}))
        return result if func in _NO_WRAP else _convert(result, cls)
    finally:
        _C.set_torch_function_enabled(before)


# ---- lists


def resolve_name(f: Callable) -> str | None:
    """The name under which a function that `__torch_function__` was given is found.

    >>> rushlight.overrides.resolve_name(rushlight.Tensor.add)
    'torch.Tensor.add'
    """
    from rushlight import _overridable

    return _overridable.name_of(f)


def is_tensor_method_or_property(func: Callable) -> bool:
    """Whether a function that `__torch_function__` was given belongs to Tensor.

    >>> rushlight.overrides.is_tensor_method_or_property(rushlight.Tensor.shape.__get__)
    True
    """
    from rushlight import _overridable

    return func in _overridable.tensor_methods() or getattr(func, "__name__", None) == "__get__"


def get_overridable_functions() -> dict[Any, list[Callable]]:
    """The functions that ask `__torch_function__`, by namespace."""
    from rushlight import _overridable

    return _overridable.by_namespace()


def get_ignored_functions() -> set[Callable]:
    """Public functions that ask nobody: factories, settings, what has no tensor argument."""
    from rushlight import _overridable

    return _overridable.ignored()


def get_testing_overrides() -> dict[Callable, Callable]:
    """For every overridable function one with its signature that returns -1."""
    from rushlight import _overridable

    return _overridable.dummies()


_UNDER_C = ("_len_torch_function_stack", "_get_function_stack_at", "_push_on_torch_function_stack",
            "_pop_torch_function_stack", "_is_torch_function_mode_enabled")  # fmt: skip
_has_torch_function, _has_torch_function_unary = has_torch_function, has_torch_function_unary
_has_torch_function_variadic = has_torch_function_variadic


def __getattr__(name: str) -> Any:
    if name in _UNDER_C:
        return getattr(_C, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
