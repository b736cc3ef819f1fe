"""The steps that a pipe consists of."""

from __future__ import annotations

import io
import pickle
import warnings
from typing import Any

from rushlight.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe

__all__ = ["traverse", "traverse_dps"]

DataPipe = IterDataPipe | MapDataPipe


def traverse_dps(datapipe: DataPipe) -> dict[int, tuple[DataPipe, dict]]:
    """The pipe and, below it, those that it reads from: {id: (pipe, {...})}."""
    return _traverse(datapipe, only_datapipe=True, cache=set())


def traverse(datapipe: DataPipe, only_datapipe: bool | None = None) -> dict[int, tuple[DataPipe, dict]]:
    """As traverse_dps; only_datapipe=False also looks for pipes in what other attributes hold."""
    if only_datapipe is None:
        warnings.warn(
            "`traverse` function will be removed in the future. Please use `traverse_dps` instead.",
            FutureWarning,
            stacklevel=2,
        )
        only_datapipe = False
    return _traverse(datapipe, only_datapipe, set())


def _traverse(datapipe: DataPipe, only_datapipe: bool, cache: set[int]) -> dict[int, tuple[DataPipe, dict]]:
    if not isinstance(datapipe, (IterDataPipe, MapDataPipe)):
        raise RuntimeError(f"Expected `IterDataPipe` or `MapDataPipe`, but {type(datapipe)} is found")
    if id(datapipe) in cache:
        return {}
    cache = cache | {id(datapipe)}
    found: list[DataPipe] = []
    holders = datapipe.__dict__.values() if only_datapipe else [datapipe.__dict__]
    for value in holders:
        found += _pipes_in(value, only_datapipe)
    below: dict[int, tuple[DataPipe, dict]] = {}
    for pipe in found:
        below.update(_traverse(pipe, only_datapipe, cache))
    return {id(datapipe): (datapipe, below)}


def _pipes_in(value: Any, only_datapipe: bool) -> list[DataPipe]:
    if isinstance(value, (IterDataPipe, MapDataPipe)):
        return [value]
    if only_datapipe:
        if isinstance(value, (tuple, list, set)):
            return [pipe for each in value for pipe in _pipes_in(each, True)]
        if isinstance(value, dict):
            return _pipes_in(list(value.values()), True)
        return []
    found: list[DataPipe] = []

    class Collector(pickle.Pickler):
        def persistent_id(self, obj: Any) -> Any:
            if isinstance(obj, (IterDataPipe, MapDataPipe)):
                found.append(obj)
                return id(obj)
            return None

    Collector(io.BytesIO()).dump(value)
    return found
