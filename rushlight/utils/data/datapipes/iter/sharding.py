"""A share of a stream for each worker."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import Any

from rushlight.utils.data.datapipes._decorator import functional_datapipe
from rushlight.utils.data.datapipes.datapipe import IterDataPipe

__all__ = ["SHARDING_PRIORITIES", "ShardingFilterIterDataPipe"]


class SHARDING_PRIORITIES(IntEnum):
    """Among whom a stream is shared."""

    DEFAULT = 1
    DISTRIBUTED = 2
    MULTIPROCESSING = 3


@functional_datapipe("sharding_filter")
class ShardingFilterIterDataPipe(IterDataPipe):
    """Every n-th sample, once `apply_sharding` has said who this is among how many."""

    def __init__(self, source_datapipe: IterDataPipe, sharding_group_filter: Any = None) -> None:
        self.source_datapipe, self.sharding_group_filter = source_datapipe, sharding_group_filter
        self.groups: dict[int, tuple[int, int]] = {}
        self.num_of_instances, self.instance_id = 1, 0

    def apply_sharding(
        self, num_of_instances: int, instance_id: int, sharding_group: Any = SHARDING_PRIORITIES.DEFAULT
    ) -> None:
        """Says who this is among how many; groups are nested."""
        if instance_id >= num_of_instances:
            raise ValueError(
                f"instance_id({instance_id}) should be smaller than num_of_instances({num_of_instances})"
            )
        default = SHARDING_PRIORITIES.DEFAULT
        if self.groups and (sharding_group == default) != (default in self.groups):
            raise RuntimeError("ShardingFilter cannot mix DEFAULT and non DEFAULT groups")
        self.groups[sharding_group] = (num_of_instances, instance_id)
        self.num_of_instances, self.instance_id = 1, 0
        for group in sorted(self.groups, reverse=True):
            if self.sharding_group_filter is None or group == self.sharding_group_filter:
                count, number = self.groups[group]
                self.instance_id += self.num_of_instances * number
                self.num_of_instances *= count

    def __iter__(self) -> Iterator:
        for i, item in enumerate(self.source_datapipe):
            if i % self.num_of_instances == self.instance_id:
                yield item

    def __len__(self) -> int:
        total = len(self.source_datapipe)
        return total // self.num_of_instances + (self.instance_id < total % self.num_of_instances)
