"""Batches of a stream, and their samples again."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from rushlight.utils.data.datapipes._decorator import functional_datapipe
from rushlight.utils.data.datapipes.datapipe import DataChunk, IterDataPipe
from rushlight.utils.data.datapipes.utils.common import _check_unpickable_fn

__all__ = ["BatcherIterDataPipe", "GrouperIterDataPipe", "UnBatcherIterDataPipe"]


@functional_datapipe("batch")
class BatcherIterDataPipe(IterDataPipe):
    """Lists of batch_size samples."""

    def __init__(
        self,
        datapipe: IterDataPipe,
        batch_size: int,
        drop_last: bool = False,
        wrapper_class: type = DataChunk,
    ) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe, self.batch_size, self.drop_last = datapipe, batch_size, drop_last
        self.wrapper_class = wrapper_class

    def __iter__(self) -> Iterator:
        batch: list = []
        for item in self.datapipe:
            batch.append(item)
            if len(batch) == self.batch_size:
                yield self.wrapper_class(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.wrapper_class(batch)

    def __len__(self) -> int:
        total = len(self.datapipe)
        return total // self.batch_size if self.drop_last else -(-total // self.batch_size)


@functional_datapipe("unbatch")
class UnBatcherIterDataPipe(IterDataPipe):
    """The samples of batches: of so many levels, or of all of them with -1."""

    def __init__(self, datapipe: IterDataPipe, unbatch_level: int = 1) -> None:
        self.datapipe, self.unbatch_level = datapipe, unbatch_level

    def __iter__(self) -> Iterator:
        for element in self.datapipe:
            yield from self._dive(element, self.unbatch_level)

    def _dive(self, element: Any, level: int) -> Iterator:
        if level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        if level == 0:
            yield element
        elif isinstance(element, (list, DataChunk)):
            for item in element:
                yield from self._dive(item, level if level == -1 else level - 1)
        elif level == -1:
            yield element
        else:
            raise IndexError(f"unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe")


@functional_datapipe("groupby")
class GrouperIterDataPipe(IterDataPipe):
    """Lists of samples with the same key. Groups wait in a buffer until they have group_size samples or the
    stream ends; if the buffer is full the largest one goes first."""

    def __init__(
        self,
        datapipe: IterDataPipe,
        group_key_fn: Callable,
        *,
        keep_key: bool = False,
        buffer_size: int = 10000,
        group_size: int | None = None,
        guaranteed_group_size: int | None = None,
        drop_remaining: bool = False,
    ) -> None:
        _check_unpickable_fn(group_key_fn)
        if guaranteed_group_size is None and group_size is not None:
            guaranteed_group_size = group_size if buffer_size >= group_size else None
        if guaranteed_group_size is not None and not 0 < guaranteed_group_size <= (group_size or 0):
            raise AssertionError("guaranteed_group_size must be > 0 and <= group_size")
        self.datapipe, self.group_key_fn, self.keep_key = datapipe, group_key_fn, keep_key
        self.max_buffer_size, self.group_size = buffer_size, group_size
        self.guaranteed_group_size, self.drop_remaining = guaranteed_group_size, drop_remaining
        self.wrapper_class = DataChunk

    def _packed(self, key: Any, items: list) -> Any:
        result: Any = self.wrapper_class(items)
        return (key, result) if self.keep_key else result

    def __iter__(self) -> Iterator:
        groups: dict[Any, list] = defaultdict(list)
        waiting = 0
        for item in self.datapipe:
            key = self.group_key_fn(item)
            groups[key].append(item)
            waiting += 1
            if self.group_size is not None and self.group_size == len(groups[key]):
                waiting -= len(groups[key])
                yield self._packed(key, groups.pop(key))
            if waiting == self.max_buffer_size:
                largest = max(groups, key=lambda each: len(groups[each]))
                small = self.guaranteed_group_size is not None
                small = small and len(groups[largest]) < (self.guaranteed_group_size or 0)
                if small and not self.drop_remaining:
                    raise RuntimeError("Failed to group items", str(groups[largest]))
                items = groups.pop(largest)
                waiting -= len(items)
                if not small:
                    yield self._packed(largest, items)
        for key in tuple(groups):
            items = groups.pop(key)
            small = self.guaranteed_group_size is not None and len(items) < self.guaranteed_group_size
            if small and self.drop_remaining:
                warnings.warn(f"Failed to group items of the key {key!r}", stacklevel=2)
                continue
            yield self._packed(key, items)
