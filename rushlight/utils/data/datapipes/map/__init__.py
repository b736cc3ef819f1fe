"""Steps over samples by index."""

from __future__ import annotations

import builtins
import copy
import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import rushlight
from rushlight.utils.data.datapipes._decorator import functional_datapipe
from rushlight.utils.data.datapipes.datapipe import DataChunk, IterDataPipe, MapDataPipe
from rushlight.utils.data.datapipes.utils.common import _check_unpickable_fn

__all__ = ["Batcher", "Concater", "Mapper", "SequenceWrapper", "Shuffler", "Zipper"]


class SequenceWrapperMapDataPipe(MapDataPipe):
    """The samples of a sequence or a mapping, copied first."""

    def __init__(self, sequence: Any, deepcopy: bool = True) -> None:
        self.sequence = sequence
        if deepcopy:
            try:
                self.sequence = copy.deepcopy(sequence)
            except TypeError:  # what cannot be copied is used as it is
                warnings.warn(
                    "The input sequence can not be deepcopied, please be aware of in-place modification "
                    "would affect source data",
                    stacklevel=2,
                )

    def __getitem__(self, index: Any) -> Any:
        return self.sequence[index]

    def __len__(self) -> int:
        return len(self.sequence)


def default_fn(data: Any) -> Any:
    """The sample itself."""
    return data


@functional_datapipe("map")
class MapperMapDataPipe(MapDataPipe):
    """fn of each sample."""

    def __init__(self, datapipe: MapDataPipe, fn: Callable = default_fn) -> None:
        self.datapipe = datapipe
        _check_unpickable_fn(fn)
        self.fn = fn

    def __len__(self) -> int:
        return len(self.datapipe)

    def __getitem__(self, index: Any) -> Any:
        return self.fn(self.datapipe[index])


@functional_datapipe("batch")
class BatcherMapDataPipe(MapDataPipe):
    """Lists of batch_size samples."""

    def __init__(
        self,
        datapipe: MapDataPipe,
        batch_size: int,
        drop_last: bool = False,
        wrapper_class: type = DataChunk,
    ) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe, self.batch_size, self.drop_last = datapipe, batch_size, drop_last
        self.wrapper_class = wrapper_class

    def __getitem__(self, index: int) -> Any:
        total = len(self.datapipe)
        start = index * self.batch_size
        end = builtins.min(start + self.batch_size, total)
        if not 0 <= index < len(self):
            raise IndexError(f"Index {index} is out of bound.")
        return self.wrapper_class([self.datapipe[i] for i in range(start, end)])

    def __len__(self) -> int:
        total = len(self.datapipe)
        return total // self.batch_size if self.drop_last else -(-total // self.batch_size)


class _OfSeveral(MapDataPipe):
    def __init__(self, *datapipes: MapDataPipe) -> None:
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        if not all(isinstance(pipe, MapDataPipe) for pipe in datapipes):
            raise TypeError("Expected all inputs to be `MapDataPipe`")
        self.datapipes: Any = datapipes


@functional_datapipe("concat")
class ConcaterMapDataPipe(_OfSeveral):
    """The samples of several pipes one after the other."""

    def __getitem__(self, index: int) -> Any:
        offset = 0
        for pipe in self.datapipes:
            if index - offset < len(pipe):
                return pipe[index - offset]
            offset += len(pipe)
        raise IndexError(f"Index {index} is out of range.")

    def __len__(self) -> int:
        return sum(len(pipe) for pipe in self.datapipes)


@functional_datapipe("zip")
class ZipperMapDataPipe(_OfSeveral):
    """Tuples of the samples of several pipes."""

    def __getitem__(self, index: Any) -> tuple:
        row = []
        for pipe in self.datapipes:
            try:
                row.append(pipe[index])
            except IndexError as error:
                raise IndexError(f"Index {index} is out of range for one of the input MapDataPipes {pipe}.") \
                    from error  # fmt: skip
        return tuple(row)

    def __len__(self) -> int:
        return min(len(pipe) for pipe in self.datapipes)


class ShufflerIterDataPipe(IterDataPipe):
    """The samples of a map pipe in random order, as a stream."""

    def __init__(self, datapipe: MapDataPipe, *, indices: list | None = None) -> None:
        self.datapipe: Any = datapipe
        self.indices = list(range(len(self.datapipe))) if indices is None else indices
        self._enabled = True
        self._seed: int | None = None
        self._rng = random.Random()
        self._shuffled_indices: Sequence = self.indices

    def set_shuffle(self, shuffle: bool = True) -> ShufflerIterDataPipe:
        """Switches shuffling on or off."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> ShufflerIterDataPipe:
        """The seed of the next iterator."""
        self._seed = seed
        return self

    def reset(self) -> None:
        self._shuffled_indices = self.indices
        if self._enabled:
            if self._seed is None:
                self._seed = int(rushlight.empty((), dtype=rushlight.int64).random_().item())
            self._rng.seed(self._seed)
            self._seed = None
            self._shuffled_indices = self._rng.sample(self.indices, len(self.indices))[::-1]

    def __iter__(self) -> Iterator:
        for index in self._shuffled_indices:
            yield self.datapipe[index]

    def __len__(self) -> int:
        return len(self.datapipe)


MapDataPipe.register_datapipe_as_function("shuffle", ShufflerIterDataPipe)

Batcher, Concater, Mapper = BatcherMapDataPipe, ConcaterMapDataPipe, MapperMapDataPipe
SequenceWrapper, Shuffler, Zipper = SequenceWrapperMapDataPipe, ShufflerIterDataPipe, ZipperMapDataPipe
