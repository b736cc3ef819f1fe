"""The default generator: seeding it, and keeping its state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rushlight import _C
from rushlight._annotations import Any
from rushlight._deferred import contextmanager

Generator = _C.Generator
default_generator: Generator = _C.default_generator

__all__ = [
    "set_rng_state", "get_rng_state", "manual_seed", "seed", "initial_seed", "fork_rng",
    "thread_safe_generator",
]  # fmt: skip


def manual_seed(seed: int) -> Generator:
    """Starts the default generator's sequence that belongs to `seed`, and returns the generator.

    >>> _ = rushlight.manual_seed(0)
    >>> rushlight.rand(2)
    tensor([0.4963, 0.7682])
    """
    return default_generator.manual_seed(int(seed))


def seed() -> int:
    """Starts the default generator from a seed of the operating system's, which is returned."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed that the default generator started from."""
    return default_generator.initial_seed()


def get_rng_state() -> _C.Tensor:
    """The default generator's state as a tensor of bytes."""
    return default_generator.get_state()


def set_rng_state(new_state: _C.Tensor) -> None:
    """Makes the default generator go on from a state that get_rng_state() gave."""
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(
    devices: Iterable[Any] | None = None,
    enabled: bool = True,
    _caller: str = "fork_rng",
    _devices_kw: str = "devices",
    device_type: str | None = None,
) -> Iterator[None]:
    """Restores the default generator's state at the end of the block.

    >>> with rushlight.random.fork_rng():
    ...     a = rushlight.rand(1)
    >>> bool(a == rushlight.rand(1))
    True
    """
    if enabled and devices is not None and list(devices):
        raise AssertionError("Torch not compiled with CUDA enabled")
    if device_type is not None:
        _C.as_device(device_type)  # raises if there is no such device
    state = get_rng_state() if enabled else None
    try:
        yield
    finally:
        if state is not None:
            set_rng_state(state)


def thread_safe_generator() -> Generator | None:
    """The generator of the worker of a DataLoader that is a thread; None elsewhere, which is the default one.
    A loader of Rushlight's has processes for workers, but `_worker_info` may be set by other loaders.

    >>> rushlight.rand(2, generator=rushlight.random.thread_safe_generator()).shape
    torch.Size([2])
    """
    from rushlight.utils.data import get_worker_info

    info = get_worker_info()
    if info is None or info.worker_method != "thread" or info.rng is None:
        return None
    return info.rng.torch_generator
