"""Marks for NVIDIA's profiler, which is not there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

__all__ = ["mark", "range", "range_pop", "range_push"]


def _missing(*args: Any, **kwargs: Any) -> None:
    raise RuntimeError("NVTX functions not installed. Are you sure you have a CUDA build?")


mark = range_pop = range_push = range_start = range_end = _missing


@contextlib.contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """Marks the time of a block or function; entering it raises, as there is no such profiler."""
    range_push(msg)
    yield
