"""Modes that see every operation below autograd.

Inside `with Mode():` each primitive that runs, also those of a backward, is handed to the mode's
`__torch_dispatch__(func, types, args, kwargs)`, which returns the result, usually `func(*args, **kwargs)`.
Recording goes on around it, so what a mode returns takes part in autograd. `func` is a handle of `torch.ops`;
the arguments are the primitive's: tensors first, then attributes. Factories (`torch.ones`) and what only
changes a tensor's description are no primitives and are not seen. How primitives are intercepted is in
native/python/dispatch_mode.cpp.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from rushlight import _C
from rushlight._ops import _dispatching, handle_of

__all__ = ["TorchDispatchMode", "BaseTorchDispatchMode", "is_traceable_wrapper_subclass"]


class _Stack(threading.local):
    """The modes that are active in this thread, innermost last."""

    def __init__(self) -> None:
        self.modes: list[TorchDispatchMode] = []


_stack = _Stack()
_active = 0  # modes in all threads
_lock = threading.Lock()
# Products with a transposed operand, which torch sees as products of a view.
_TRANSPOSED = {
    "mm_nh": ("mm", False, True), "mm_hn": ("mm", True, False), "bmm_nh": ("bmm", False, True),
    "bmm_hn": ("bmm", True, False), "matmul_nd_nh": ("matmul_nd", False, True),
    "matmul_nd_hn": ("matmul_nd", True, False),
}  # fmt: skip


def _as_torch(primitive: Any, args: tuple) -> tuple[Any, tuple, tuple | None]:
    """A primitive that torch does not have in terms of one that it has: that one, its arguments, and the
    sizes of the result if they are others."""
    name = primitive.__name__
    if name in _TRANSPOSED:
        other, first, second = _TRANSPOSED[name]
        primitive, name = getattr(_C.ops, other), other
        args = (args[0].mH if first else args[0], args[1].mH if second else args[1])
    if name.startswith("linear"):
        x, weight = args[-2:]
        sizes = (*x.shape[:-1], weight.shape[0])
        x, sides = (x, None) if x.dim() == 2 else (x.reshape(-1, x.shape[-1]), sizes)
        if len(args) == 3:
            return _C.ops.addmm, (args[0], x, weight.t(), 1, 1), sides
        return _C.ops.mm, (x, weight.t()), sides
    if name == "matmul_nd":
        a, b = args
        if b.dim() == 2 and a.dim() > 2:
            return _C.ops.mm, (a.reshape(-1, a.shape[-1]), b), (*a.shape[:-1], b.shape[-1])
        if a.dim() > 2 and a.shape[:-2] == b.shape[:-2]:
            sizes = (*a.shape[:-1], b.shape[-1])
            return _C.ops.bmm, (a.reshape(-1, *a.shape[-2:]), b.reshape(-1, *b.shape[-2:])), sizes
    return primitive, args, None


def _handle(primitive: Any, args: tuple, out: Any) -> Any:
    """Asks the innermost mode about a primitive; called by the native code with dispatching switched off."""
    mode = _stack.modes.pop()
    _show_modes()
    try:
        sizes = None
        if out is None:
            primitive, args, sizes = _as_torch(primitive, args)
        handle = handle_of(primitive, out is not None)
        _dispatching.calls = (*_dispatching.calls, (handle, primitive, out))
        try:
            types = tuple({type(x) for x in args if isinstance(x, _C.Tensor)} - {_C.Tensor})
            result = mode.__torch_dispatch__(handle, types, args, {})
            return result if sizes is None else result.reshape(sizes)
        finally:
            _dispatching.calls = _dispatching.calls[:-1]
    finally:
        _stack.modes.append(mode)


def _show_modes() -> None:
    _C.set_dispatch_handler(_handle if _stack.modes else None)


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
        _push_mode(self)
        return self

    def __exit__(self, *error: object) -> None:
        _pop_mode()

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Whether the mode belongs to a compiler: none does."""
        return False

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


def _push_mode(mode: TorchDispatchMode) -> None:
    global _active
    with _lock:
        _active += 1
        if _active == 1:
            _C.set_dispatching(True)
    _stack.modes.append(mode)
    _show_modes()


def _pop_mode() -> TorchDispatchMode:
    global _active
    mode = _stack.modes.pop()
    _show_modes()
    with _lock:
        _active -= 1
        if not _active:
            _C.set_dispatching(False)
    return mode


@contextlib.contextmanager
def _pop_mode_temporarily() -> Iterator[TorchDispatchMode]:
    mode = _pop_mode()
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
    """Whether a mode is active in this thread."""
    return bool(_stack.modes)


is_in_any_mode_without_ignore_compile_internals = is_in_torch_dispatch_mode


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


def return_and_correct_aliasing(func: Any, args: Any, kwargs: Any, out: Any) -> Any:
    """For `__torch_dispatch__` of subclasses that wrap tensors, which is never called."""
    raise NotImplementedError("return_and_correct_aliasing: subclasses have no __torch_dispatch__ here")
