"""From indices to a collated batch."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any


class MapFetcher:
    """Asks a dataset for the samples at given indices."""

    def __init__(self, dataset: Any, batched: bool, collate_fn: Callable, drop_last: bool) -> None:
        self.dataset, self.batched, self.collate_fn = dataset, batched, collate_fn

    def fetch(self, index: Any) -> Any:
        """The batch at a list of indices, or the sample at one index."""
        if not self.batched:
            return self.collate_fn(self.dataset[index])
        if callable(getattr(self.dataset, "__getitems__", None)):
            return self.collate_fn(self.dataset.__getitems__(index))
        return self.collate_fn([self.dataset[i] for i in index])


class IterableFetcher:
    """Takes as many samples from a stream as indices are given."""

    def __init__(self, dataset: Any, batched: bool, collate_fn: Callable, drop_last: bool) -> None:
        self.stream = iter(dataset)
        self.batched, self.collate_fn, self.drop_last = batched, collate_fn, drop_last
        self.ended = False

    def fetch(self, index: Any) -> Any:
        """The next batch; StopIteration at the end."""
        if self.ended:
            raise StopIteration
        if not self.batched:
            return self.collate_fn(next(self.stream))
        data = list(itertools.islice(self.stream, len(index)))
        self.ended = len(data) < len(index)
        if not data or (self.ended and self.drop_last):
            raise StopIteration
        return self.collate_fn(data)


def create_fetcher(kind: int, dataset: Any, batched: bool, collate_fn: Callable, drop_last: bool) -> Any:
    """The fetcher for a kind of dataset (`_DatasetKind`)."""
    return (IterableFetcher if kind else MapFetcher)(dataset, batched, collate_fn, drop_last)
