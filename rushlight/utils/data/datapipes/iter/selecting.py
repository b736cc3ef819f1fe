"""Some samples of a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from rushlight.utils.data.datapipes._decorator import functional_datapipe
from rushlight.utils.data.datapipes.datapipe import IterDataPipe
from rushlight.utils.data.datapipes.utils.common import _check_unpickable_fn, validate_input_col

__all__ = ["FilterIterDataPipe"]


@functional_datapipe("filter")
class FilterIterDataPipe(IterDataPipe):
    """The samples for which filter_fn, of the sample or of its columns, is true."""

    def __init__(self, datapipe: IterDataPipe, filter_fn: Callable, input_col: Any = None) -> None:
        self.datapipe = datapipe
        _check_unpickable_fn(filter_fn)
        self.filter_fn, self.input_col = filter_fn, input_col
        validate_input_col(filter_fn, input_col)

    def _apply_filter_fn(self, data: Any) -> bool:
        if self.input_col is None:
            return self.filter_fn(data)
        columns = self.input_col if isinstance(self.input_col, (list, tuple)) else (self.input_col,)
        return self.filter_fn(*(data[column] for column in columns))

    def __iter__(self) -> Iterator:
        for data in self.datapipe:
            wanted = self._apply_filter_fn(data)
            if not isinstance(wanted, bool):
                raise ValueError(
                    "Boolean output is required for `filter_fn` of FilterIterDataPipe, got", type(wanted)
                )
            if wanted:
                yield data
