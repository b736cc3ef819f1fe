"""torch.distributed as a torch built without it answers: not available, nothing initialised, one process."""

from __future__ import annotations

from enum import Enum
from typing import Any

__all__ = ["ProcessGroup", "ReduceOp", "group", "is_available", "is_initialized"]


class ReduceOp(Enum):
    """Ways to combine values of several processes."""

    SUM, PRODUCT, MIN, MAX, AVG, BAND, BOR, BXOR = range(8)


class ProcessGroup:
    """Only for type annotations: there are no groups."""


Work = Store = DeviceMesh = ProcessGroup


class group:
    """The default group does not exist either."""

    WORLD = None


def is_available() -> bool:
    """False: Rushlight runs in one process."""
    return False


def is_initialized() -> bool:
    """False."""
    return False


def is_mpi_available() -> bool:
    """False."""
    return False


is_nccl_available = is_gloo_available = is_ucc_available = is_xccl_available = is_mpi_available
is_torchelastic_launched = is_mpi_available

_NEEDS_GROUP = {
    "all_gather", "all_gather_into_tensor", "all_gather_object", "all_reduce", "all_to_all",
    "all_to_all_single", "barrier", "broadcast", "broadcast_object_list", "destroy_process_group", "gather",
    "gather_object", "get_backend", "get_rank", "get_world_size", "irecv", "isend", "monitored_barrier",
    "new_group", "recv", "reduce", "reduce_scatter", "reduce_scatter_tensor", "scatter",
    "scatter_object_list", "send",
}  # fmt: skip


def init_process_group(*args: Any, **kwargs: Any) -> None:
    """Not implemented."""
    raise NotImplementedError("torch.distributed is not implemented: Rushlight runs in one process")


def __getattr__(name: str) -> Any:
    if name in _NEEDS_GROUP:

        def call(*args: Any, **kwargs: Any) -> Any:
            raise ValueError(
                "Default process group has not been initialized, please make sure to call init_process_group."
            )

        call.__name__ = call.__qualname__ = name
        return call
    raise AttributeError(
        f"module 'torch.distributed' has no attribute '{name}': Rushlight runs in one process"
    )
