"""`torch.cuda` on a machine without a GPU: it can be asked, and says no."""

from __future__ import annotations

from typing import NoReturn

from rushlight import OutOfMemoryError  # noqa: F401  (torch has it here, too)


def is_available() -> bool:
    """Whether a GPU can be used."""
    return False


def device_count() -> int:
    """How many GPUs there are."""
    return 0


def is_initialized() -> bool:
    """Whether the GPU has been set up."""
    return False


def _unavailable() -> NoReturn:
    raise RuntimeError("No CUDA GPUs are available")


def init() -> None:
    """Sets the GPU up."""
    _unavailable()


def current_device() -> int:
    """The index of the selected GPU."""
    _unavailable()


def synchronize(device: object = None) -> None:
    """Waits for the GPU's queue."""
    _unavailable()


def manual_seed(seed: int) -> None:
    """Seeds the current GPU's generator; there is none."""


def manual_seed_all(seed: int) -> None:
    """Seeds all GPUs' generators; there are none."""


def empty_cache() -> None:
    """Frees cached GPU memory; there is none."""
