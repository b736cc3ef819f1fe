"""The switches of cuDNN, which is not here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

enabled = True
benchmark = False
benchmark_limit: int | None = None
deterministic = False
allow_tf32 = True


def is_available() -> bool:
    """Whether cuDNN is there: no.

    >>> rushlight.backends.cudnn.is_available()
    False
    """
    return False


def version() -> None:
    """The version of cuDNN: none."""


def is_acceptable(tensor: Any) -> bool:
    """Whether cuDNN could compute with the tensor: no."""
    return False


def set_flags(**flags: Any) -> dict[str, Any]:
    """Sets switches and returns what they were."""
    before = {}
    for name, value in flags.items():
        name = name.removeprefix("_")
        if name not in ("enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32"):
            raise TypeError(f"set_flags() got an unexpected keyword argument '{name}'")
        if value is not None:
            before[name] = globals()[name]
            globals()[name] = value
    return before


@contextmanager
def flags(**wanted: Any) -> Iterator[None]:
    """Sets switches for a block."""
    before = set_flags(**wanted)
    try:
        yield
    finally:
        set_flags(**before)
