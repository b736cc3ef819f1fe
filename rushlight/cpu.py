"""torch.cpu: the CPU as a device among others."""

from __future__ import annotations

from typing import Any

from rushlight import _C

__all__ = ["current_device", "device_count", "is_available", "set_device", "synchronize"]


def is_available() -> bool:
    """True.

    >>> rushlight.cpu.is_available()
    True
    """
    return True


def device_count() -> int:
    """1: all cores together are one device."""
    return 1


def current_device() -> str:
    """The name of the device."""
    return "cpu"


def set_device(device: Any) -> None:
    """Chooses the CPU, which is always chosen."""
    if _C.device(device).type != "cpu":
        raise ValueError(f"Expected a cpu device, but got: {device}")


def synchronize(device: Any = None) -> None:
    """Waits for nothing: operations are finished when they return."""
