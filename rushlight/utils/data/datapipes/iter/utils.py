"""The beginning of a stream."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

from rushlight.utils.data.datapipes.datapipe import IterDataPipe

__all__ = ["IterableWrapperIterDataPipe"]


class IterableWrapperIterDataPipe(IterDataPipe):
    """A stream of what an iterable holds, copied first so that steps cannot change it."""

    def __init__(self, iterable: Iterable, deepcopy: bool = True) -> None:
        self.iterable, self.deepcopy = iterable, deepcopy

    def __iter__(self) -> Iterator:
        source: Any = self.iterable
        if self.deepcopy:
            try:
                source = copy.deepcopy(self.iterable)
            except TypeError:  # what cannot be copied is used as it is
                warnings.warn(
                    "The input iterable can not be deepcopied, please be aware of in-place modification "
                    "would affect source data.",
                    stacklevel=2,
                )
        yield from source

    def __len__(self) -> int:
        return len(self.iterable)  # type: ignore[arg-type]
