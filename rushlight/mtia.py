"""torch.mtia: Meta's accelerators, which are not used here; they can be asked for, and the answer is no."""

from __future__ import annotations

from typing import NoReturn


def is_available() -> bool:
    """Whether such a device can be used: no.

    >>> rushlight.mtia.is_available()
    False
    """
    return False


def device_count() -> int:
    """How many there are: none."""
    return 0


def is_initialized() -> bool:
    """Whether such a device has been set up: no."""
    return False


def _unavailable(*args: object, **kwargs: object) -> NoReturn:
    raise RuntimeError("Rushlight has no device of type 'mtia'")


current_device = synchronize = get_device_name = get_device_properties = set_device = _unavailable


def manual_seed(seed: int) -> None:
    """Seeds the device's generator; there is none."""


manual_seed_all = manual_seed


def empty_cache() -> None:
    """Frees the device's cached memory; there is none."""
