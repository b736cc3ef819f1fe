"""Modes and classes that see every operation below autograd.

Inside `with Mode():` each operation that runs, also those of a backward, is handed to the mode's
`__torch_dispatch__(func, types, args, kwargs)`, which returns the result, usually `func(*args, **kwargs)`.
A Tensor subclass with a `__torch_dispatch__` is asked likewise about operations on its instances. Recording
goes on around it, so what is returned takes part in autograd. `func` is a handle of `torch.ops`; the
arguments are torch's where torch has the operation (rushlight/_aten_calls.py), else those of a primitive. Who
is asked and when is in rushlight/_dispatching.py.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
import threading
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from rushlight import _C, _dispatching
from rushlight._dispatching import show_modes as _show_modes
from rushlight._dispatching import stack as _stack
from rushlight._put_back import keep
from rushlight._taken_apart import show_steps as _show_steps

__all__ = ["TorchDispatchMode", "BaseTorchDispatchMode", "is_traceable_wrapper_subclass"]

_active = 0  # modes in all threads
_lock = threading.Lock()
_show_steps()
_C.set_dispatch_handler(_dispatching.handle, _dispatching.detach, _dispatching.item)


def _start() -> None:
    """From now on there are tensors whose class is asked; called by the native code."""
    _dispatching.intercept()
    _C.set_dispatching(True)


class TorchDispatchMode:
    """A context whose `__torch_dispatch__` is asked about every primitive that runs.

    >>> from rushlight.utils._python_dispatch import TorchDispatchMode
    >>> class Log(TorchDispatchMode):
    ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
    ...         print(func)
    ...         return func(*args, **(kwargs or {}))
    >>> x = rushlight.ones(2, requires_grad=True)
    >>> with Log():
    ...     y = x.sin() * 2
    aten.sin.default
    aten.mul.Tensor
    """

    def __init__(self, _dispatch_key: Any = None) -> None:
        if _dispatch_key is not None:
            raise NotImplementedError("Rushlight has no dispatch keys: a mode sees every primitive")

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Any:
        if not isinstance(self, TorchDispatchMode):
            raise TypeError(f"TorchDispatchMode.__enter__ is of modes, not of {type(self).__name__}")
        _push_mode(self)
        _stack.entered.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        _pop_mode()
        if _stack.entered:
            _stack.entered.pop()

    supports_higher_order_operators = False  # there are none

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Whether the mode belongs to a compiler: none does."""
        return False

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Whether what a compiler does inside is not looked at."""
        return False

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return True

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """An instance of the mode; `with Mode():` says the same."""
        import warnings

        warnings.warn(
            "`Mode.push()` is no longer necessary and can be replaced with just `with Mode()`", stacklevel=2
        )
        return cls(*args, **kwargs)


class BaseTorchDispatchMode(TorchDispatchMode):
    """The mode that changes nothing."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def _put_back(modes: list[TorchDispatchMode]) -> None:
    while _stack.modes:
        _pop_mode()
    for mode in modes:
        _push_mode(mode)


def _push_mode(mode: TorchDispatchMode) -> None:
    global _active
    keep(_get_current_dispatch_mode_stack, _put_back)
    with _lock:
        _active += 1
        if _active == 1:
            _dispatching.intercept()
            _C.set_dispatching(True)
    _stack.modes.append(mode)
    _show_modes()


def _pop_mode(k: Any = None) -> TorchDispatchMode:
    global _active
    if k is not None:
        raise NotImplementedError("the modes of a compiler, which have keys, do not exist here")
    if not _stack.modes:
        raise RuntimeError("trying to pop from empty mode stack")
    keep(_get_current_dispatch_mode_stack, _put_back)
    mode = _stack.modes.pop()
    _show_modes()
    with _lock:
        _active -= 1
        if not _active:
            _C.set_dispatching(False)
    return mode


@contextlib.contextmanager
def _pop_mode_temporarily(k: Any = None) -> Iterator[TorchDispatchMode]:
    mode = _pop_mode(k)
    try:
        yield mode
    finally:
        _push_mode(mode)


@contextlib.contextmanager
def _disable_current_modes() -> Iterator[list[TorchDispatchMode]]:
    modes, _stack.modes = _stack.modes, []
    _show_modes()
    try:
        yield modes
    finally:
        _stack.modes = modes
        _show_modes()


def _get_current_dispatch_mode() -> TorchDispatchMode | None:
    return _stack.modes[-1] if _stack.modes else None


def _get_current_dispatch_mode_stack() -> list[TorchDispatchMode]:
    return list(_stack.modes)


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Whether this thread is inside of a mode, be it one that is just being asked."""
    return bool(_stack.entered)


def is_in_any_mode_without_ignore_compile_internals() -> bool:
    """Whether a mode is active that looks at what a compiler does inside."""
    return any(not mode.ignore_compile_internals() for mode in _stack.entered)


def any_torch_dispatch_mode_on_stack() -> bool:
    """Whether a mode is active in this thread that no compiler made."""
    return bool(_stack.modes)


def _detect_infra_mode(key: Any) -> None:
    """The mode of a compiler that has this key: there is none."""
    if key not in (_C._TorchDispatchModeKey.FUNCTIONAL, _C._TorchDispatchModeKey.PROXY):
        raise AssertionError(
            f"key must be either FUNCTIONAL ({_C._TorchDispatchModeKey.FUNCTIONAL}) or PROXY "
            f"({_C._TorchDispatchModeKey.PROXY}) _TorchDispatchModeKey, got {key}"
        )


_unset_infra_mode = _detect_infra_mode


def _has_traceable_wrapper_subclass_protocol(t: object) -> bool:
    """Whether something says how to take it apart and put it together."""
    return hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")


class TensorWithFlatten(Protocol):
    """A tensor that says how to take it apart and put it together."""

    def __tensor_flatten__(self) -> tuple[Sequence[str], object]:
        """The names of the tensors in it, and whatever else is needed to make another one."""

    @staticmethod
    def __tensor_unflatten__(
        inner_tensors: Any, flatten_spec: Any, outer_size: Any, outer_stride: Any
    ) -> Any:
        """A tensor like it made of other tensors."""


def __getattr__(name: str) -> Any:
    if name in ("_len_torch_dispatch_stack", "_get_dispatch_stack_at", "_pop_torch_dispatch_stack",
                "_push_on_torch_dispatch_stack", "DispatchKey"):  # fmt: skip
        return getattr(_C, name)
    if name in ("_is_in_torch_dispatch_mode", "_is_in_non_infra_torch_dispatch_mode"):
        return bool(_stack.entered)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Whether a class wraps tensors and says how to take it apart."""
    return (
        issubclass(t, _C.Tensor)
        and t is not _C.Tensor
        and hasattr(t, "__tensor_flatten__")
        and hasattr(t, "__tensor_unflatten__")
    )


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether a tensor wraps tensors and says how to take it apart."""
    return is_traceable_wrapper_subclass_type(type(t))


def transform_subclass(t: Any, callback: Any, outer_size: Any = None, outer_stride: Any = None) -> Any:
    """A wrapper like `t` around `callback(name, inner)` of each tensor that it wraps."""
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    size = t.size() if outer_size is None else outer_size
    stride = t.stride() if outer_stride is None else outer_stride
    made = type(t).__tensor_unflatten__(inner, context, size, stride)
    if made.shape != size or made.stride() != stride:
        raise AssertionError(
            f"Expected return value from {type(t)}__tensor_unflatten__() to have shape equal to {size} and "
            f"stride equal to {stride}, but got: shape={made.shape}, stride={made.stride()}"
        )
    return made


def return_and_correct_aliasing(func: Any, args: Any, kwargs: Any, out: Any) -> Any:
    """What `__torch_dispatch__` of a wrapper returns: the wrapper that was written to, if one was. Views are
    told what they are views of by whoever asked."""
    written = (kwargs or {}).get("out")
    if written is not None:
        return written
    name = func.__name__.partition(".")[0]
    if name.endswith("_") and not name.endswith("__") and isinstance(args[0], _C.Tensor):
        return args[0]
    return out


@dataclasses.dataclass
class AliasInfo:
    """What an argument or a result of an operation shares."""

    alias_set: set[str]
    is_write: bool
    name: str | None


@dataclasses.dataclass
class SchemaInfo:
    """What an operation's schema says of memory that is shared or written."""

    args: list[AliasInfo]
    outs: list[AliasInfo]
    is_inplace_view_op: bool
    outs_write_aliases: list[str] | None
    read_only_alias_match_indexes: list[tuple[int, int]]


def get_alias_info(func: Any) -> SchemaInfo:
    """Which arguments an operation writes, and which results share memory with arguments.

    >>> from rushlight.utils._python_dispatch import get_alias_info
    >>> get_alias_info(rushlight.ops.aten.add_.Tensor).args[0]
    AliasInfo(alias_set={'a'}, is_write=True, name='self')
    """

    def told(one: Any) -> AliasInfo:
        letter = re.search(r"\((\w+)", one.declared)  # also of a list, whose elements are shared
        writes = one.alias_info is not None and one.alias_info.is_write
        return AliasInfo({letter[1]} if letter else set(), writes, one.name or None)

    schema = func._schema
    args, outs = [told(one) for one in schema.arguments], [told(one) for one in schema.returns]
    written = (
        [next(iter(out.alias_set)) for out in outs if out.is_write] if outs and outs[0].is_write else None
    )
    read = [
        (at, k)
        for k, out in enumerate(outs)
        for at, argument in enumerate(args)
        if not out.is_write and not argument.is_write and argument.alias_set & out.alias_set
    ]
    return SchemaInfo(args, outs, _is_view_in_place(func), written, read)


def _is_view_in_place(func: Any) -> bool:
    return any(getattr(tag, "name", str(tag)) == "inplace_view" for tag in func.tags)
