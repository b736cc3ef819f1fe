"""Arithmetic that torch's tracers see through: here numbers are numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any


def sym_max(a: Any, b: Any) -> Any:
    """The larger number, floating if either is."""
    return _like(max(a, b), a, b)


def sym_min(a: Any, b: Any) -> Any:
    """The smaller number, floating if either is."""
    return _like(min(a, b), a, b)


def _like(result: Any, a: Any, b: Any) -> Any:
    return float(result) if isinstance(a, float) or isinstance(b, float) else result


def sym_float(a: Any) -> float:
    """The number as a float."""
    return float(a)


def sym_int(a: Any) -> int:
    """The number without its fraction."""
    return int(a)


def sym_not(a: Any) -> bool:
    """not a"""
    return not a


def sym_ite(b: bool, t: Any, f: Any) -> Any:
    """t if b holds, else f."""
    if not isinstance(b, bool) or type(t) is not type(f):
        raise AssertionError("sym_ite wants a bool and two values of one type")
    return t if b else f


def sym_sqrt(a: Any) -> float:
    """The square root."""
    return math.sqrt(a)


def sym_sum(args: Iterable[Any]) -> Any:
    """The sum."""
    return sum(args)
