"""Helpers of modes."""

from __future__ import annotations

from typing import Any, TypeVar

from rushlight.utils._python_dispatch import _disable_current_modes

T = TypeVar("T")


def all_same_mode(modes: Any) -> bool:
    """Whether the modes are one and the same."""
    return all(mode == modes[0] for mode in modes)


no_dispatch = _disable_current_modes
