"""Arithmetic that torch's tracers see through: here numbers are numbers, and what overrides is asked."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from typing import Any

from rushlight import _C


def _asking(function: Callable) -> Callable:
    """Asks those arguments that have a `__torch_function__` first."""

    @functools.wraps(function)
    def wrapped(*args: Any) -> Any:
        if _C._has_torch_function(args):
            from rushlight.overrides import handle_torch_function

            return handle_torch_function(wrapped, args, *args)
        return function(*args)

    return wrapped


@_asking
def sym_max(a: Any, b: Any) -> Any:
    """The larger number, floating if either is."""
    return _like(max(a, b), a, b)


@_asking
def sym_min(a: Any, b: Any) -> Any:
    """The smaller number, floating if either is."""
    return _like(min(a, b), a, b)


def _like(result: Any, a: Any, b: Any) -> Any:
    return float(result) if isinstance(a, float) or isinstance(b, float) else result


@_asking
def sym_float(a: Any) -> float:
    """The number as a float."""
    return float(a)


@_asking
def sym_int(a: Any) -> int:
    """The number without its fraction."""
    return int(a)


@_asking
def sym_not(a: Any) -> bool:
    """not a"""
    return not a


@_asking
def sym_ite(b: bool, t: Any, f: Any) -> Any:
    """t if b holds, else f."""
    if not isinstance(b, bool):
        raise AssertionError(f"expected SymBool or bool, got {type(b)}")
    if type(t) is not type(f):
        raise AssertionError(f"type mismatch: {type(t)} vs {type(f)}")
    return t if b else f


@_asking
def sym_sqrt(a: Any) -> float:
    """The square root."""
    return math.sqrt(a)


def sym_sum(args: Iterable[Any]) -> Any:
    """The sum."""
    asked = (args,) if hasattr(type(args), "__torch_function__") else tuple(args)
    if _C._has_torch_function(asked):
        from rushlight.overrides import handle_torch_function

        return handle_torch_function(sym_sum, asked, args)
    return sum(asked)
