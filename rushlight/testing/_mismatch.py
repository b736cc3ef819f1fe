"""How two results differ, in words."""

from __future__ import annotations

import cmath
from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import _C


def scalar_text(actual: Any, expected: Any, *, rtol: float, atol: float, identifier: Any = None) -> str:
    """Of two numbers."""
    difference = abs(actual - expected)
    relative = difference / abs(expected) if expected else float("inf")
    return (
        f"{_named('Scalars', identifier)} are not {'equal' if _exact(rtol, atol) else 'close'}!\n\n"
        f"Expected {expected} but got {actual}.\n"
        f"Absolute difference: {difference}{_allowed(rtol, atol, atol)}\n"
        f"Relative difference: {relative}{_allowed(rtol, atol, rtol)}"
    )


def tensor_text(
    actual: Any, expected: Any, matches: Any, *, rtol: float, atol: float, identifier: Any = None
) -> str:
    """Of two tensors; `matches` says which elements do not."""
    shape = tuple(actual.shape)
    if not (actual.is_floating_point() or actual.is_complex()):  # so that differences do not wrap around
        actual, expected = actual.to(_C.int64), expected.to(_C.int64)
    matches, actual, expected = matches.reshape(-1), actual.reshape(-1), expected.reshape(-1)
    wrong, total = int((~matches).sum().item()), matches.numel()
    absolute = (actual - expected).abs()
    relative = absolute / expected.abs()

    def greatest(differences: Any) -> str:
        # What matches within the tolerance does not count.
        differences = rushlight.where(matches, rushlight.zeros_like(differences), differences)
        value, at = rushlight.max(differences, 0)
        return f"{value.item()} at index {_place(int(at), shape)}"

    return (
        f"{_named('Tensor-likes', identifier)} are not {'equal' if _exact(rtol, atol) else 'close'}!\n\n"
        f"Mismatched elements: {wrong} / {total} ({wrong / total:.1%})\n"
        f"Greatest absolute difference: {greatest(absolute)}{_allowed(rtol, atol, atol)}\n"
        f"Greatest relative difference: {greatest(relative)}{_allowed(rtol, atol, rtol)}"
    )


def numbers_match(actual: Any, expected: Any, *, rtol: float, atol: float, equal_nan: bool) -> bool:
    """Whether two numbers are equal up to rounding."""
    if actual == expected or (equal_nan and cmath.isnan(actual) and cmath.isnan(expected)):
        return True
    near = abs(actual - expected) <= atol + rtol * abs(expected)
    return near and cmath.isfinite(actual) and cmath.isfinite(expected)


def _named(default: str, identifier: str | Callable[[str], str] | None) -> str:
    if identifier is None:
        return default
    return identifier(default) if callable(identifier) else identifier


def _exact(rtol: float, atol: float) -> bool:
    return rtol == 0 and atol == 0


def _allowed(rtol: float, atol: float, tolerance: float) -> str:
    return "" if _exact(rtol, atol) else f" (up to {tolerance} allowed)"


def _place(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    place: list[int] = []
    for length in reversed(shape):
        flat, here = divmod(flat, length)
        place.insert(0, here)
    return tuple(place)
