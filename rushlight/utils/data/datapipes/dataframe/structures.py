"""A batch of data frames."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rushlight.utils.data.datapipes.dataframe import dataframe_wrapper
from rushlight.utils.data.datapipes.datapipe import DataChunk

__all__ = ["DataChunkDF"]


class DataChunkDF(DataChunk):
    """A list of data frames whose rows can be gone through."""

    def __iter__(self) -> Iterator[Any]:
        for frame in self.items:
            yield from dataframe_wrapper.iterate(frame)

    def __len__(self) -> int:
        return sum(dataframe_wrapper.get_len(frame) for frame in self.items)
