"""From indices to a batch. The names are torch's: libraries put loaders of their own around them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any


class _BaseDatasetFetcher:
    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Callable, drop_last: bool) -> None:
        self.dataset = dataset
        self.auto_collation = auto_collation  # whether an index is a list, and a batch is asked for
        self.collate_fn = collate_fn
        self.drop_last = drop_last

    def fetch(self, possibly_batched_index: Any) -> Any:
        """The collated batch or sample."""
        raise NotImplementedError


class _MapDatasetFetcher(_BaseDatasetFetcher):
    """Asks a dataset for the samples at given indices."""

    def fetch(self, possibly_batched_index: Any) -> Any:
        """The batch at a list of indices, or the sample at one index."""
        index = possibly_batched_index
        if not self.auto_collation:
            return self.collate_fn(self.dataset[index])
        if callable(getattr(self.dataset, "__getitems__", None)):
            return self.collate_fn(self.dataset.__getitems__(index))
        return self.collate_fn([self.dataset[i] for i in index])


class _IterableDatasetFetcher(_BaseDatasetFetcher):
    """Takes as many samples from a stream as indices are given."""

    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Callable, drop_last: bool) -> None:
        super().__init__(dataset, auto_collation, collate_fn, drop_last)
        self.dataset_iter = iter(dataset)
        self.ended = False

    def fetch(self, possibly_batched_index: Any) -> Any:
        """The next batch; StopIteration at the end."""
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.dataset_iter))
        wanted = len(possibly_batched_index)
        data = list(itertools.islice(self.dataset_iter, wanted))
        self.ended = len(data) < wanted
        if not data or (self.ended and self.drop_last):
            raise StopIteration
        return self.collate_fn(data)


def create_fetcher(
    kind: int, dataset: Any, auto_collation: bool, collate_fn: Callable, drop_last: bool
) -> _BaseDatasetFetcher:
    """The fetcher for a kind of dataset (`_DatasetKind`)."""
    fetcher = _IterableDatasetFetcher if kind else _MapDatasetFetcher
    return fetcher(dataset, auto_collation, collate_fn, drop_last)
