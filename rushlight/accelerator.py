"""torch.accelerator on a machine without one: it can be asked, and says no."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = [
    "current_accelerator", "current_device_index", "current_stream", "device_count", "empty_cache",
    "is_available", "set_device_index", "synchronize",
]  # fmt: skip


def is_available() -> bool:
    """Whether there is an accelerator: no.

    >>> rushlight.accelerator.is_available()
    False
    """
    return False


def device_count() -> int:
    """How many accelerators there are: none."""
    return 0


def current_accelerator(check_available: bool = False) -> None:
    """The accelerator: none.

    >>> rushlight.accelerator.current_accelerator() is None
    True
    """


def _unavailable(*args: Any) -> NoReturn:
    raise RuntimeError("Cannot access accelerator device when none is available.")


def current_device_index() -> int:
    """The index of the accelerator in use."""
    _unavailable()


def set_device_index(device: Any, /) -> None:
    """Chooses an accelerator."""
    _unavailable()


def current_stream(device: Any = None, /) -> Any:
    """The queue of the accelerator."""
    _unavailable()


def synchronize(device: Any = None, /) -> None:
    """Waits for the accelerator."""
    _unavailable()


def empty_cache() -> None:
    """Frees cached memory of the accelerator."""
    _unavailable()
