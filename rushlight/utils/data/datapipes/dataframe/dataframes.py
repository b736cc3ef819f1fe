"""Operations on a data frame that is not there yet: written down, and carried out on each frame of a stream.

``Capture`` is what an expression of a captured frame is: a way to compute it from the frame. A statement such
as ``df["c"] = df.a + 1`` is added to the list that all expressions of one frame share; ``apply_ops`` runs the
list on a real frame.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

from rushlight.utils.data.datapipes.dataframe.structures import DataChunkDF
from rushlight.utils.data.datapipes.datapipe import DFIterDataPipe, IterDataPipe

__all__ = [
    "Capture",
    "CaptureDataFrame",
    "CaptureDataFrameWithDataPipeOps",
    "DFIterDataPipe",
    "DataFrameTracedOps",
    "DataFrameTracer",
]


def _value(item: Any, frame: Any) -> Any:
    """What a captured expression is for this frame; other values are what they are."""
    if isinstance(item, Capture):
        return item.compute(frame)
    if isinstance(item, (list, tuple)):
        return type(item)(_value(entry, frame) for entry in item)
    if isinstance(item, dict):
        return {key: _value(entry, frame) for key, entry in item.items()}
    return item


class Capture:
    """An expression of a data frame that will be there later."""

    compute: Callable[[Any], Any]
    statements: list[Callable[[Any], Any]]

    def __init__(self, compute: Callable[[Any], Any], statements: list[Callable[[Any], Any]]) -> None:
        self.__dict__["compute"], self.__dict__["statements"] = compute, statements

    def _then(self, compute: Callable[[Any], Any]) -> Capture:
        return Capture(compute, self.statements)

    def __getattr__(self, name: str) -> Capture:
        if name.startswith("__"):  # asked for by copy and pickle
            raise AttributeError(name)
        return self._then(lambda frame: getattr(self.compute(frame), name))

    def __getitem__(self, key: Any) -> Capture:
        return self._then(lambda frame: self.compute(frame)[_value(key, frame)])

    def __setitem__(self, key: Any, value: Any) -> None:
        def assign(frame: Any) -> None:
            self.compute(frame)[_value(key, frame)] = _value(value, frame)

        self.statements.append(assign)

    def __call__(self, *args: Any, **kwargs: Any) -> Capture:
        return self._then(lambda frame: self.compute(frame)(*_value(args, frame), **_value(kwargs, frame)))

    def _binary(self, operation: Callable[[Any, Any], Any], other: Any) -> Capture:
        return self._then(lambda frame: operation(self.compute(frame), _value(other, frame)))

    def __add__(self, other: Any) -> Capture:
        return self._binary(operator.add, other)

    def __sub__(self, other: Any) -> Capture:
        return self._binary(operator.sub, other)

    def __mul__(self, other: Any) -> Capture:
        return self._binary(operator.mul, other)

    def apply_ops(self, dataframe: Any) -> Any:
        """Carry the statements out on a frame and give this expression's value."""
        for statement in self.statements:
            statement(dataframe)
        return self.compute(dataframe)

    apply_ops_2 = apply_ops


class CaptureDataFrame(Capture):
    """Stands for a data frame.

    >>> df = CaptureDataFrame()
    >>> df["c"] = df["a"] * 7
    >>> df.apply_ops({"a": 2})
    {'a': 2, 'c': 14}
    """

    def __init__(self) -> None:
        super().__init__(lambda frame: frame, [])


class CaptureDataFrameWithDataPipeOps(CaptureDataFrame):
    """Stands for the frames of a stream; the steps of a stream can be taken as well."""

    source_datapipe: Any

    def as_datapipe(self) -> DataFrameTracedOps:
        """The stream of the frames after the statements."""
        return DataFrameTracedOps(self.__dict__["source_datapipe"], self)

    def raw_iterator(self) -> Iterator[Any]:
        """The frames after the statements."""
        return iter(self.as_datapipe())

    def __iter__(self) -> Iterator[Any]:
        return iter(self._dataframes_as_tuples())

    def batch(self, batch_size: int = 10, drop_last: bool = False, wrapper_class: Any = DataChunkDF) -> Any:
        """Batches of rows."""
        frames = self._dataframes_per_row()._dataframes_concat(batch_size)
        return frames.as_datapipe().batch(batch_size=1, drop_last=drop_last, wrapper_class=wrapper_class)

    def groupby(
        self,
        group_key_fn: Any,
        *,
        buffer_size: int = 10000,
        group_size: int | None = None,
        guaranteed_group_size: int | None = None,
        drop_remaining: bool = False,
    ) -> Any:
        """Rows with the same key."""
        return self._dataframes_per_row().as_datapipe().groupby(
            group_key_fn,
            buffer_size=buffer_size,
            group_size=group_size,
            guaranteed_group_size=guaranteed_group_size,
            drop_remaining=drop_remaining,
        )  # fmt: skip

    def shuffle(self, *args: Any, **kwargs: Any) -> Any:
        """The rows in another order."""
        return self._dataframes_shuffle(*args, **kwargs)

    def filter(self, *args: Any, **kwargs: Any) -> Any:
        """The rows for which a function is true."""
        return self._dataframes_filter(*args, **kwargs)

    def collate(self, *args: Any, **kwargs: Any) -> Any:
        """Frames are not batches of samples."""
        raise RuntimeError("Can't collate unbatched DataFrames stream")

    def __getattr__(self, name: str) -> Any:
        if name in IterDataPipe.functions:
            return getattr(self.as_datapipe(), name)
        return super().__getattr__(name)


class DataFrameTracer(CaptureDataFrameWithDataPipeOps):
    """A stream of frames as if it were one frame: what is done to it is done to each."""

    def __init__(self, source_datapipe: Any, schema_df: Any = None) -> None:
        super().__init__()
        self.__dict__["source_datapipe"], self.__dict__["schema_df"] = source_datapipe, schema_df

    def is_shardable(self) -> bool:
        """Frames are not spread over workers."""
        return False

    def set_shuffle_settings(self, *args: Any, **kwargs: Any) -> None:
        """Nothing here shuffles by itself."""


IterDataPipe.register_function("trace_as_dataframe", DataFrameTracer)


class DataFrameTracedOps(DFIterDataPipe):
    """The frames of a stream after the captured statements."""

    def __init__(self, source_datapipe: Any, output_var: Any) -> None:
        self.source_datapipe, self.output_var = source_datapipe, output_var

    def __iter__(self) -> Iterator[Any]:
        for item in self.source_datapipe:
            yield self.output_var.apply_ops(item)
