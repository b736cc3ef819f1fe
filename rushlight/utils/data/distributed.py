"""The part of a dataset that belongs to one of several processes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, TypeVar

import rushlight
from rushlight.utils.data.sampler import Sampler

__all__ = ["DistributedSampler"]

_T_co = TypeVar("_T_co", covariant=True)


class DistributedSampler(Sampler[_T_co]):
    """Every `num_replicas`-th index from `rank` on, after the same shuffle in all processes."""

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None or rank is None:
            try:
                from rushlight import distributed
            except ImportError:
                raise RuntimeError("Requires distributed package to be available") from None
            num_replicas = distributed.get_world_size() if num_replicas is None else num_replicas
            rank = distributed.get_rank() if rank is None else rank
        if rank >= num_replicas or rank < 0:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        size = len(dataset)
        if drop_last and size % num_replicas:
            self.num_samples = math.ceil((size - num_replicas) / num_replicas)
        else:
            self.num_samples = math.ceil(size / num_replicas)
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self) -> Iterator[_T_co]:
        size = len(self.dataset)
        if self.shuffle:
            generator = rushlight.Generator().manual_seed(self.seed + self.epoch)
            indices = rushlight.randperm(size, generator=generator).tolist()
        else:
            indices = list(range(size))
        missing = self.total_size - len(indices)
        if missing > 0 and not self.drop_last:  # the first ones once more, so that all get equally many
            indices += (indices * math.ceil(missing / len(indices)))[:missing]
        return iter(indices[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Makes the shuffle that of another epoch."""
        self.epoch = epoch
