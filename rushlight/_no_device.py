"""What torch.mps, torch.mtia and torch.xpu share here: the devices can be asked for, and the answer is no."""

from __future__ import annotations

from typing import NoReturn

__all__ = [
    "current_device", "device_count", "empty_cache", "get_device_name", "get_device_properties",
    "is_available", "is_initialized", "manual_seed", "manual_seed_all", "set_device", "synchronize",
]  # fmt: skip


def is_available() -> bool:
    """Whether such a device can be used: no.

    >>> rushlight.mps.is_available()
    False
    """
    return False


def device_count() -> int:
    """How many there are: none."""
    return 0


def is_initialized() -> bool:
    """Whether such a device has been set up: no."""
    return False


def current_device(*args: object, **kwargs: object) -> NoReturn:
    """There is none."""
    raise RuntimeError("Rushlight has no such device")


synchronize = get_device_name = get_device_properties = set_device = current_device


def manual_seed(seed: int) -> None:
    """Seeds the device's generator; there is none."""


manual_seed_all = manual_seed


def empty_cache() -> None:
    """Frees the device's cached memory; there is none."""
