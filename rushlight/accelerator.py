"""torch.accelerator on a machine without one: it can be asked, and says no."""

from __future__ import annotations

from typing import Any, NoReturn

from ._warn import warn

__all__ = [
    "Graph", "current_accelerator", "current_device_idx", "current_device_index", "current_stream",
    "device_count", "device_index", "empty_cache", "empty_host_cache", "get_device_capability",
    "get_memory_info", "is_available", "max_memory_allocated", "max_memory_reserved", "memory_allocated",
    "memory_reserved", "memory_stats", "reset_accumulated_memory_stats", "reset_peak_memory_stats",
    "set_device_idx", "set_device_index", "set_stream", "synchronize",
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


def _unavailable() -> NoReturn:
    raise RuntimeError("Cannot access accelerator device when none is available.")


def current_device_index() -> int:
    """The index of the accelerator in use."""
    _unavailable()


def current_device_idx(*args: Any) -> int:
    """The old name of `current_device_index`."""
    warn("Use `current_device_index` instead.", FutureWarning)
    return current_device_index(*args)


def set_device_index(device: Any, /) -> None:
    """Chooses an accelerator."""
    if device is None:
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")
    _unavailable()


def set_device_idx(*args: Any) -> None:
    """The old name of `set_device_index`."""
    warn("Use `set_device_index` instead.", FutureWarning)
    set_device_index(*args)


class device_index:
    """A context in which another accelerator is in use; with None, the same.

    >>> with rushlight.accelerator.device_index(None):
    ...     pass
    """

    def __init__(self, device: int | None, /) -> None:
        self.idx = device

    def __enter__(self) -> None:
        if self.idx is not None:
            _unavailable()

    def __exit__(self, *error: object) -> None:
        pass


def current_stream(device: Any = None, /) -> Any:
    """The queue of the accelerator."""
    _unavailable()


def set_stream(stream: Any) -> None:
    """Chooses a queue of the accelerator."""
    _unavailable()


def synchronize(device: Any = None, /) -> None:
    """Waits for the accelerator."""
    _unavailable()


def empty_cache() -> None:
    """Frees cached memory of the accelerator."""
    _unavailable()


def empty_host_cache() -> None:
    """Frees memory of the host that is kept for copies to the accelerator."""
    _unavailable()


def get_device_capability(device: Any = None, /) -> dict[str, Any]:
    """What the accelerator can do."""
    _unavailable()


def get_memory_info(device_index: Any = None, /) -> tuple[int, int]:
    """The accelerator's bytes that are free, and all."""
    _unavailable()


def memory_stats(device_index: Any = None, /) -> dict[str, Any]:
    """What the accelerator's memory was used for."""
    _unavailable()


def memory_allocated(device_index: Any = None, /) -> int:
    """The bytes of the accelerator's tensors."""
    _unavailable()


def max_memory_allocated(device_index: Any = None, /) -> int:
    """The most bytes that the accelerator's tensors took."""
    _unavailable()


def memory_reserved(device_index: Any = None, /) -> int:
    """The bytes that are kept for the accelerator's tensors."""
    _unavailable()


def max_memory_reserved(device_index: Any = None, /) -> int:
    """The most bytes that were kept for the accelerator's tensors."""
    _unavailable()


def reset_accumulated_memory_stats(device_index: Any = None, /) -> None:
    """Counts the accelerator's memory from here."""
    _unavailable()


def reset_peak_memory_stats(device_index: Any = None, /) -> None:
    """Forgets the most bytes so far."""
    _unavailable()


class Graph:
    """Work of the accelerator, recorded to be run again."""

    def __init__(self, keep_graph: bool = False, *, pool: Any = None, capture_error_mode: str = "default"):
        _unavailable()
