"""Helpers of modes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, TypeVar

from rushlight import _C
from rushlight.utils._python_dispatch import _disable_current_modes

T = TypeVar("T")


def all_same_mode(modes: Any) -> bool:
    """Whether the modes are one and the same."""
    return all(mode == modes[0] for mode in modes)


@contextlib.contextmanager
def no_dispatch() -> Iterator[None]:
    """Inside, neither modes nor classes are asked by `__torch_dispatch__`."""
    disabled = _C.set_dispatch_disabled(True)
    try:
        with _disable_current_modes():
            yield
    finally:
        _C.set_dispatch_disabled(disabled)
