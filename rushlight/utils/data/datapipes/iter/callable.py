"""Functions of samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from rushlight.utils.data._utils.collate import default_collate
from rushlight.utils.data.datapipes._decorator import functional_datapipe
from rushlight.utils.data.datapipes.datapipe import IterDataPipe
from rushlight.utils.data.datapipes.utils.common import _check_unpickable_fn, validate_input_col

__all__ = ["CollatorIterDataPipe", "MapperIterDataPipe"]


@functional_datapipe("map")
class MapperIterDataPipe(IterDataPipe):
    """fn of each sample; of its columns `input_col` where it is a row, into `output_col`."""

    def __init__(
        self, datapipe: IterDataPipe, fn: Callable, input_col: Any = None, output_col: Any = None
    ) -> None:
        self.datapipe = datapipe
        _check_unpickable_fn(fn)
        self.fn, self.input_col = fn, input_col
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        if isinstance(output_col, (list, tuple)):
            if len(output_col) > 1:
                raise ValueError("`output_col` must be a single-element list or tuple")
            output_col = output_col[0]
        self.output_col = output_col
        validate_input_col(fn, input_col)

    def _apply_fn(self, data: Any) -> Any:
        if self.input_col is None:
            return self.fn(data)
        columns = self.input_col if isinstance(self.input_col, (list, tuple)) else (self.input_col,)
        result = self.fn(*(data[column] for column in columns))
        row = list(data) if isinstance(data, tuple) else data.copy()
        if self.output_col is None:
            row[columns[0]] = result
            if isinstance(self.input_col, (list, tuple)):
                for column in sorted(columns[1:], reverse=True) if isinstance(row, list) else columns[1:]:
                    del row[column]
        elif self.output_col == -1 and isinstance(row, list):
            row.append(result)
        else:
            row[self.output_col] = result
        return tuple(row) if isinstance(data, tuple) else row

    def __iter__(self) -> Iterator:
        for data in self.datapipe:
            yield self._apply_fn(data)

    def __len__(self) -> int:
        return len(self.datapipe)


@functional_datapipe("collate")
class CollatorIterDataPipe(MapperIterDataPipe):
    """Each sample, a list of samples, collated to a batch."""

    def __init__(
        self, datapipe: IterDataPipe, conversion: Any = default_collate, collate_fn: Callable | None = None
    ) -> None:
        if collate_fn is None and not callable(conversion):
            raise NotImplementedError("collate: a dict of conversions, for data frames, is not supported")
        super().__init__(datapipe, fn=collate_fn if collate_fn is not None else conversion)
