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


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the GPU computes with bfloat16; there is none."""
    return False


def device_memory_used(device: object = None) -> int:
    """Bytes of the GPU's memory in use."""
    _unavailable()


def get_device_name(device: object = None) -> str:
    """The name of a GPU."""
    _unavailable()


def get_device_properties(device: object = None) -> object:
    """What a GPU is like."""
    _unavailable()


def get_device_capability(device: object = None) -> tuple[int, int]:
    """A GPU's version of its instruction set."""
    _unavailable()


def set_device(device: object) -> None:
    """Selects a GPU."""
    _unavailable()


def memory_allocated(device: object = None) -> int:
    """Bytes of GPU memory that tensors take: none."""
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated


def reset_peak_memory_stats(device: object = None) -> None:
    """Forgets the peak of GPU memory; there is none."""


def get_rng_state_all() -> list:
    """The states of the GPUs' generators: none."""
    return []


def set_rng_state_all(new_states: object) -> None:
    """Sets the states of the GPUs' generators; there are none."""


class _NeedsGpu:
    def __init__(self, *args: object, **kwargs: object) -> None:
        _unavailable()


class Stream(_NeedsGpu):
    """A queue of work on a GPU."""


class Event(_NeedsGpu):
    """A mark in a GPU's queue."""


class CUDAGraph(_NeedsGpu):
    """A recorded piece of work for a GPU."""


class StreamContext:
    """`with stream(s):` selects a GPU's queue; stream(None) selects nothing."""

    def __init__(self, stream: object) -> None:
        if stream is not None:
            _unavailable()

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        pass


stream = StreamContext


class graph(_NeedsGpu):
    """`with graph(...):` records work for a GPU."""
