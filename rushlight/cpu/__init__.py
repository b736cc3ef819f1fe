"""torch.cpu: the CPU as a device among others."""

from __future__ import annotations

import platform
from typing import Any

from rushlight import _C

__all__ = [
    "Event", "Stream", "StreamContext", "current_device", "current_stream", "device_count",
    "get_capabilities", "is_available", "is_initialized", "set_device", "stream", "synchronize",
]  # fmt: skip


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
    if _C.as_device(device).type != "cpu":
        raise ValueError(f"Expected a cpu device, but got: {device}")


def synchronize(device: Any = None) -> None:
    """Waits for nothing: operations are finished when they return."""


def is_initialized() -> bool:
    """True."""
    return True


def get_capabilities() -> dict[str, Any]:
    """What of the processor the kernels use.

    >>> rushlight.cpu.get_capabilities()["avx512_f"]
    False
    """
    avx2 = _C.cpu_capability == "AVX2"
    return {
        "architecture": platform.machine(), "avx2": avx2, "fma3": avx2, "f16c": avx2, "avx512_f": False,
        "avx512_vnni": False, "avx512_bf16": False, "amx_tile": False, "amx_fp16": False,
    }  # fmt: skip


def _is_avx2_supported() -> bool:
    return _C.cpu_capability == "AVX2"


def _not_used() -> bool:
    """Whether the kernels use this instruction set: no."""
    return False


_is_avx512_supported = _is_avx512_bf16_supported = _is_vnni_supported = _not_used
_is_amx_tile_supported = _is_amx_fp16_supported = _not_used


class Stream:
    """A queue of work: the CPU has one, and it is always empty, because operations finish at once."""

    def __init__(self, priority: int = -1) -> None:
        pass

    def wait_stream(self, stream: Any) -> None:
        """Returns at once."""

    record_event = wait_event = wait_stream


class Event:
    """A mark in a queue of work that is always empty."""

    def query(self) -> bool:
        """True: everything before the mark is done."""
        return True

    def record(self, stream: Any = None) -> None:
        """Sets the mark."""

    def synchronize(self) -> None:
        """Returns at once."""

    wait = record


class StreamContext:
    """`with stream(s):` selects a queue; all are the same."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


_queue = Stream()


def stream(stream: Any) -> StreamContext:
    """Selects a queue for a block."""
    return StreamContext(stream)


def current_stream(device: Any = None) -> Stream:
    """The queue."""
    return _queue


def __getattr__(name: str) -> Any:
    if name == "amp":
        from importlib import import_module

        return import_module("rushlight.cpu.amp")
    raise AttributeError(f"module 'torch.cpu' has no attribute '{name}'", name=name)
