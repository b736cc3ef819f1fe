"""Several streams made one, and one made several."""

from __future__ import annotations

import copy
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from rushlight.utils.data.datapipes._decorator import functional_datapipe
from rushlight.utils.data.datapipes.datapipe import IterDataPipe
from rushlight.utils.data.datapipes.utils.common import _check_unpickable_fn

__all__ = [
    "ConcaterIterDataPipe",
    "DemultiplexerIterDataPipe",
    "ForkerIterDataPipe",
    "MultiplexerIterDataPipe",
    "ZipperIterDataPipe",
]


@functional_datapipe("concat")
class ConcaterIterDataPipe(IterDataPipe):
    """One stream after the other."""

    def __init__(self, *datapipes: IterDataPipe) -> None:
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        if not all(isinstance(pipe, IterDataPipe) for pipe in datapipes):
            raise TypeError("Expected all inputs to be `IterDataPipe`")
        self.datapipes: Any = datapipes

    def __iter__(self) -> Iterator:
        for pipe in self.datapipes:
            yield from pipe

    def __len__(self) -> int:
        return sum(len(pipe) for pipe in self.datapipes)


@functional_datapipe("zip")
class ZipperIterDataPipe(IterDataPipe):
    """Tuples of the samples of several streams, up to the end of the shortest."""

    def __init__(self, *datapipes: IterDataPipe) -> None:
        if not all(isinstance(pipe, IterDataPipe) for pipe in datapipes):
            raise TypeError("All inputs are required to be `IterDataPipe` for `ZipIterDataPipe`.")
        self.datapipes: Any = datapipes

    def __iter__(self) -> Iterator:
        iterators = [iter(pipe) for pipe in self.datapipes]
        yield from zip(*iterators)

    def __len__(self) -> int:
        return min(len(pipe) for pipe in self.datapipes)


@functional_datapipe("mux")
class MultiplexerIterDataPipe(IterDataPipe):
    """A sample of each stream in turn, until one of them ends."""

    def __init__(self, *datapipes: Any) -> None:
        self.datapipes = datapipes

    def __iter__(self) -> Iterator:
        for row in zip(*[iter(pipe) for pipe in self.datapipes]):
            yield from row

    def __len__(self) -> int:
        return min(len(pipe) for pipe in self.datapipes) * len(self.datapipes)


class ForkerIterDataPipe(IterDataPipe):
    """Streams that each have all samples of one, which is read once; makes a list of streams."""

    def __new__(
        cls, datapipe: IterDataPipe, num_instances: int, buffer_size: int = 1000, copy: str | None = None
    ) -> Any:
        _check_count(num_instances)
        if num_instances == 1:
            return datapipe
        main = _ForkerIterDataPipe(datapipe, num_instances, buffer_size, copy)
        return [_ChildDataPipe(main, i) for i in range(num_instances)]


class DemultiplexerIterDataPipe(IterDataPipe):
    """Streams that each have the samples that a function gives their number; makes a list of streams."""

    def __new__(
        cls,
        datapipe: IterDataPipe,
        num_instances: int,
        classifier_fn: Callable,
        drop_none: bool = False,
        buffer_size: int = 1000,
    ) -> Any:
        _check_count(num_instances)
        _check_unpickable_fn(classifier_fn)
        main = _DemultiplexerIterDataPipe(datapipe, num_instances, classifier_fn, drop_none, buffer_size)
        return [_ChildDataPipe(main, i) for i in range(num_instances)]


def _check_count(num_instances: int) -> None:
    if num_instances < 1:
        raise ValueError(f"Expected `num_instances` larger than 0, but {num_instances} is found")


IterDataPipe.register_datapipe_as_function("fork", ForkerIterDataPipe)
IterDataPipe.register_datapipe_as_function("demux", DemultiplexerIterDataPipe)


class _Shared(IterDataPipe):
    """What the children of a fork or demux read from: the source, and for each a queue of what it has not
    read yet."""

    overflow: str

    def __init__(self, datapipe: IterDataPipe, num_instances: int, buffer_size: int) -> None:
        self.main_datapipe, self.num_instances, self.buffer_size = datapipe, num_instances, buffer_size
        if buffer_size < 0:
            warnings.warn(
                "Unlimited buffer size is set, please be aware of OOM risks", UserWarning, stacklevel=4
            )
        self.generation = 0
        self._clear()

    def _clear(self) -> None:
        self._queues: list[deque] = [deque() for _ in range(self.num_instances)]
        self._iterator: Iterator | None = None
        self._started = [False] * self.num_instances
        self._ended = False

    def _distribute(self, item: Any) -> None:
        raise NotImplementedError

    def __iter__(self) -> Iterator:
        raise TypeError(f"{type(self).__name__} is read through its children")

    def __getstate__(self) -> Any:  # queues and iterators stay here
        return {name: value for name, value in self.__dict__.items() if name not in ("_queues", "_iterator")}

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        self._clear()

    def begin(self, child: int) -> int:
        """A child starts over: if it has been started since the source was, all do."""
        if self._started[child] or self.generation == 0:
            if any(self._queues) or (self._iterator is not None and not self._ended):
                warnings.warn(
                    "Some child DataPipes are not exhausted when __iter__ is called. We are resetting the "
                    "buffer and each child DataPipe will read from the start again.",
                    UserWarning,
                    stacklevel=4,
                )
            self._clear()
            self.generation += 1
        self._started[child] = True
        return self.generation

    def read(self, child: int) -> Iterator:
        """The samples of a child."""
        queue, generation = self._queues[child], self.generation
        while generation == self.generation:
            if queue:
                yield queue.popleft()
                continue
            if self._ended:
                return
            if self._iterator is None:
                self._iterator = iter(self.main_datapipe)
            try:
                item = next(self._iterator)
            except StopIteration:
                self._ended = True
                continue
            self._distribute(item)
            if self.buffer_size >= 0 and max(map(len, self._queues)) > self.buffer_size:
                raise BufferError(f"{self.overflow}buffer size {self.buffer_size} is insufficient.")


class _ForkerIterDataPipe(_Shared):
    overflow = "ForkerIterDataPipe buffer overflow,"

    def __init__(self, datapipe: Any, num_instances: int, buffer_size: int, copying: str | None) -> None:
        super().__init__(datapipe, num_instances, buffer_size)
        copiers: dict[Any, Callable] = {
            None: lambda item: item, "shallow": copy.copy, "deep": copy.deepcopy,
        }  # fmt: skip
        if copying not in copiers:
            raise ValueError(
                f"Unknown copy method `{copying}` requested, choose one of None, `shallow` or `deep`."
            )
        self._copying = copying

    def _distribute(self, item: Any) -> None:
        for queue in self._queues:
            if self._copying == "shallow":
                queue.append(copy.copy(item))
            else:
                queue.append(copy.deepcopy(item) if self._copying == "deep" else item)


class _DemultiplexerIterDataPipe(_Shared):
    overflow = "DemultiplexerIterDataPipe buffer overflow, "

    def __init__(
        self, datapipe: Any, num_instances: int, classifier_fn: Callable, drop_none: bool, buffer_size: int
    ) -> None:
        super().__init__(datapipe, num_instances, buffer_size)
        self.classifier_fn, self.drop_none = classifier_fn, drop_none

    def _distribute(self, item: Any) -> None:
        number = self.classifier_fn(item)
        if number is None and self.drop_none:
            return
        if number is None or not 0 <= number < self.num_instances:
            raise ValueError(
                f"Output of the classification fn should be between 0 and {self.num_instances - 1}. {number} "
                "is returned."
            )
        self._queues[number].append(item)


class _ChildDataPipe(IterDataPipe):
    def __init__(self, main_datapipe: _Shared, instance_id: int) -> None:
        self.main_datapipe, self.instance_id = main_datapipe, instance_id

    def __iter__(self) -> Iterator:
        return self.main_datapipe.read(self.instance_id)

    def __len__(self) -> int:
        if isinstance(self.main_datapipe, _DemultiplexerIterDataPipe):
            raise TypeError
        return len(self.main_datapipe.main_datapipe)

    def _is_child_datapipe(self) -> bool:
        return True

    def _set_main_datapipe_valid_iterator_id(self) -> int:
        return self.main_datapipe.begin(self.instance_id)

    def _check_valid_iterator_id(self, own: int) -> bool:
        return own == self.main_datapipe.generation
