"""What the modules about compilers hold that can be answered truly; see `_absent_names.py`."""

from __future__ import annotations

import contextlib
import os
import warnings
from types import SimpleNamespace
from typing import Any

from rushlight import _C
from rushlight.compiler import disable as _disable_dynamo

__all__ = ["_disable_dynamo"]

unset_fake = contextlib.nullcontext  # there are no fake tensors
GPU_TYPES = ["cuda", "mps", "xpu", "mtia"]
no_range: tuple = ()
no_settings = SimpleNamespace()
dsl_registry = SimpleNamespace(is_dsl_available=lambda name: False, list_all_dsls=list)


class patch(contextlib.ContextDecorator):
    """Settings of a compiler for a block or a function: there is no compiler, so nothing changes.

    >>> with rushlight._dynamo.config.patch(suppress_errors=True):
    ...     rushlight._dynamo.config.suppress_errors
    False
    """

    def __init__(self, *settings: Any, **changes: Any) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass

    def __call__(self, function: Any) -> Any:
        return function


def posix_path(path: Any) -> str:
    """The path with forward slashes."""
    return str(path).replace(os.sep, "/")


def writable_path(path: str) -> str:
    """The path, which is left to the caller to be writable."""
    return path


def clone_input(x: Any, *, dtype: Any = None) -> Any:
    """A copy of a tensor that lies in memory as it does, gaps and shared places included."""
    import rushlight

    with rushlight.no_grad():
        span = 1 + sum((size - 1) * stride for size, stride in zip(x.shape, x.stride(), strict=True))
        memory = x.as_strided((span if x.numel() else 0,), (1,)).to(dtype or x.dtype, copy=True)
        result = memory.as_strided(x.shape, x.stride())
    return result.requires_grad_(x.requires_grad)


_told: set[str] = set()


def warn_once(msg: str, stacklevel: int = 1) -> None:
    """A warning at the caller's line, the first time that it is given."""
    if msg not in _told:
        _told.add(msg)
        warnings.warn(msg, stacklevel=stacklevel + 1)


def joined_path(*path_components: str) -> str:
    """A path of these parts."""
    return os.path.join(*path_components)


def file_path(*parts: str) -> str:
    """A path below the package."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), *parts)


def no_fake_mode(*inputs: Any) -> None:
    """None: there are no fake tensors."""


def no_signpost(**event: Any) -> None:
    """Tells nobody."""


def dtype_to_type(dtype: _C.dtype) -> type:
    """The type of Python's numbers that the elements become."""
    if dtype == _C.bool:
        return bool
    return complex if dtype.is_complex else float if dtype.is_floating_point else int


def cond(pred: Any, true_fn: Any, false_fn: Any, operands: Any = ()) -> Any:
    """true_fn(*operands) if `pred`, a bool or a tensor with one element, holds, else false_fn(*operands).

    >>> x = rushlight.tensor([1.0])
    >>> rushlight.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))
    tensor([2.])
    """
    if not isinstance(pred, (bool, _C.Tensor)):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if isinstance(pred, _C.Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    return (true_fn if pred else false_fn)(*operands)


def gpu_type() -> str:
    """The kind of device that would be compiled for, were there one."""
    return GPU_TYPES[0]


class CompileError(RuntimeError):
    """What asking for compiled code ends in."""


class CppCodeCache:
    """Compiled C++, of which there is none: who asks in order to find out is told so."""

    @classmethod
    def load(cls, source: str, *args: Any, **kwargs: Any) -> None:
        """Raises CompileError."""
        raise CompileError("Rushlight has no compiler")
