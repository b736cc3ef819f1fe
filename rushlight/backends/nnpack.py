"""NNPACK, which is not here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

enabled = False


def is_available() -> bool:
    """Whether NNPACK is there: no.

    >>> rushlight.backends.nnpack.is_available()
    False
    """
    return False


def set_flags(_enabled: bool) -> tuple[bool]:
    """Sets the switch and returns what it was."""
    global enabled
    before, enabled = enabled, bool(_enabled)
    return (before,)


@contextmanager
def flags(enabled: bool = False) -> Iterator[None]:
    """Sets the switch for a block."""
    before = set_flags(enabled)
    try:
        yield
    finally:
        set_flags(*before)
