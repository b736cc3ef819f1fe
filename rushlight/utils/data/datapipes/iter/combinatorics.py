"""Other orders of a stream."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import rushlight
from rushlight.utils.data.datapipes._decorator import functional_datapipe
from rushlight.utils.data.datapipes.datapipe import IterDataPipe
from rushlight.utils.data.sampler import SequentialSampler

__all__ = ["SamplerIterDataPipe", "ShufflerIterDataPipe"]


class SamplerIterDataPipe(IterDataPipe):
    """What a sampler makes of a stream of known length: its indices."""

    def __init__(
        self,
        datapipe: IterDataPipe,
        sampler: Any = SequentialSampler,
        sampler_args: tuple | None = None,
        sampler_kwargs: dict | None = None,
    ) -> None:
        if not hasattr(datapipe, "__len__"):
            raise TypeError("Sampler class requires input datapipe implemented `__len__`")
        self.datapipe = datapipe
        self.sampler = sampler(data_source=datapipe, *(sampler_args or ()), **(sampler_kwargs or {}))  # noqa: B026

    def __iter__(self) -> Iterator:
        return iter(self.sampler)

    def __len__(self) -> int:
        return len(self.sampler)


@functional_datapipe("shuffle")
class ShufflerIterDataPipe(IterDataPipe):
    """The samples in random order, drawn from a buffer. The seed is drawn from the default generator when an
    iterator starts, unless `set_seed` gives it."""

    def __init__(self, datapipe: IterDataPipe, *, buffer_size: int = 10000, unbatch_level: int = 0) -> None:
        if buffer_size <= 0:
            raise AssertionError("buffer_size should be larger than 0")
        self.datapipe = datapipe if unbatch_level == 0 else datapipe.unbatch(unbatch_level=unbatch_level)
        self.buffer_size = buffer_size
        self._buffer: list = []
        self._enabled = True
        self._seed: int | None = None
        self._rng = random.Random()

    def set_shuffle(self, shuffle: bool = True) -> ShufflerIterDataPipe:
        """Switches shuffling on or off."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> ShufflerIterDataPipe:
        """The seed of the next iterator."""
        self._seed = seed
        return self

    def reset(self) -> None:
        self._buffer = []
        if self._enabled:
            if self._seed is None:
                self._seed = int(rushlight.empty((), dtype=rushlight.int64).random_().item())
            self._rng.seed(self._seed)
            self._seed = None

    def __iter__(self) -> Iterator:
        if not self._enabled:
            yield from self.datapipe
            return
        for item in self.datapipe:
            if len(self._buffer) < self.buffer_size:
                self._buffer.append(item)
                continue
            at = self._rng.randint(0, len(self._buffer) - 1)
            chosen, self._buffer[at] = self._buffer[at], item
            yield chosen
        while self._buffer:
            yield self._buffer.pop(self._rng.randint(0, len(self._buffer) - 1))

    def __len__(self) -> int:
        return len(self.datapipe)
