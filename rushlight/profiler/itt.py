"""Ranges for Intel's profiler. Where none listens (the environment names no collector) they go nowhere, as in
torch; Rushlight does not talk to one that does."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

__all__ = ["is_available", "range_push", "range_pop", "mark", "range"]


def is_available() -> bool:
    """Whether ranges can be marked."""
    return True


def _send(name: str, message: str | None = None) -> None:
    if message is not None and not isinstance(message, str):
        raise TypeError(
            f"{name}(): incompatible function arguments. The following argument types are supported:\n"
            f"    1. (arg0: str) -> None\n\nInvoked with: {message!r}"
        )
    if os.environ.get("INTEL_LIBITTNOTIFY64"):
        raise NotImplementedError("a collector listens for ITT ranges, to which Rushlight does not talk")


def range_push(msg: str) -> None:
    """Begins a range within the one that is open.

    >>> rushlight.profiler.itt.range_push("loading")
    >>> rushlight.profiler.itt.range_pop()
    """
    _send("rangePush", msg)


def range_pop() -> None:
    """Ends the innermost range."""
    _send("rangePop")


def mark(msg: str) -> None:
    """Marks a moment."""
    _send("mark", msg)


@contextlib.contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """Marks the time of a block or function with a message, which is formatted with the other arguments."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
