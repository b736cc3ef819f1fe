"""Steps over streams of data frames."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from rushlight.utils.data.datapipes._decorator import functional_datapipe
from rushlight.utils.data.datapipes.dataframe import dataframe_wrapper
from rushlight.utils.data.datapipes.datapipe import DFIterDataPipe, IterDataPipe

__all__ = [
    "ConcatDataFramesPipe",
    "DataFramesAsTuplesPipe",
    "ExampleAggregateAsDataFrames",
    "FilterDataFramesPipe",
    "PerRowDataFramesPipe",
    "ShuffleDataFramesPipe",
]


@functional_datapipe("_dataframes_as_tuples")
class DataFramesAsTuplesPipe(IterDataPipe):
    """The rows of all frames as tuples."""

    def __init__(self, source_datapipe: Any) -> None:
        self.source_datapipe = source_datapipe

    def __iter__(self) -> Iterator[Any]:
        for frame in self.source_datapipe:
            yield from dataframe_wrapper.iterate(frame)


@functional_datapipe("_dataframes_per_row")
class PerRowDataFramesPipe(DFIterDataPipe):
    """The rows of all frames as frames of one row."""

    def __init__(self, source_datapipe: Any) -> None:
        self.source_datapipe = source_datapipe

    def __iter__(self) -> Iterator[Any]:
        for frame in self.source_datapipe:
            for i in range(len(frame)):
                yield frame[i : i + 1]


@functional_datapipe("_dataframes_concat")
class ConcatDataFramesPipe(DFIterDataPipe):
    """Frames put together, ``batch`` at a time."""

    def __init__(self, source_datapipe: Any, batch: int = 3) -> None:
        self.source_datapipe, self.n_batch = source_datapipe, batch

    def __iter__(self) -> Iterator[Any]:
        buffer = []
        for frame in self.source_datapipe:
            buffer.append(frame)
            if len(buffer) == self.n_batch:
                yield dataframe_wrapper.concat(buffer)
                buffer = []
        if buffer:
            yield dataframe_wrapper.concat(buffer)


@functional_datapipe("_dataframes_shuffle")
class ShuffleDataFramesPipe(DFIterDataPipe):
    """The rows of all frames in another order, in frames of the same size."""

    def __init__(self, source_datapipe: Any) -> None:
        self.source_datapipe = source_datapipe

    def __iter__(self) -> Iterator[Any]:
        size, rows = None, []
        for frame in self.source_datapipe:
            size = dataframe_wrapper.get_len(frame) if size is None else size
            rows += [(frame, i) for i in range(dataframe_wrapper.get_len(frame))]
        random.shuffle(rows)
        for start in range(0, len(rows), size or 1):
            taken = rows[start : start + (size or 1)]
            yield dataframe_wrapper.concat([dataframe_wrapper.get_item(frame, i) for frame, i in taken])


@functional_datapipe("_dataframes_filter")
class FilterDataFramesPipe(DFIterDataPipe):
    """The rows for which a function is true, in frames of the same size."""

    def __init__(self, source_datapipe: Any, filter_fn: Callable[[Any], Any]) -> None:
        self.source_datapipe, self.filter_fn = source_datapipe, filter_fn

    def __iter__(self) -> Iterator[Any]:
        size, kept = None, []
        for frame in self.source_datapipe:
            size = len(frame.index) if size is None else size
            for i, row in enumerate(dataframe_wrapper.iterate(frame)):
                if self.filter_fn(row):
                    kept.append(dataframe_wrapper.get_item(frame, i))
                    if len(kept) == size:
                        yield dataframe_wrapper.concat(kept)
                        kept = []
        if kept:
            yield dataframe_wrapper.concat(kept)


@functional_datapipe("_to_dataframes_pipe", enable_df_api_tracing=True)
class ExampleAggregateAsDataFrames(DFIterDataPipe):
    """Samples as frames of ``dataframe_size`` rows."""

    def __init__(self, source_datapipe: Any, dataframe_size: int = 10, columns: Any = None) -> None:
        self.source_datapipe, self.columns, self.dataframe_size = source_datapipe, columns, dataframe_size

    def _as_list(self, item: Any) -> list[Any]:
        try:
            return list(item)
        except TypeError:  # a number is a row of one
            return [item]

    def __iter__(self) -> Iterator[Any]:
        rows: list[Any] = []
        for item in self.source_datapipe:
            rows.append(self._as_list(item))
            if len(rows) == self.dataframe_size:
                yield dataframe_wrapper.create_dataframe(rows, columns=self.columns)
                rows = []
        if rows:
            yield dataframe_wrapper.create_dataframe(rows, columns=self.columns)
