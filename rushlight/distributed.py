"""torch.distributed as a torch built without it answers: not available, nothing initialised, one process."""

from __future__ import annotations

from datetime import timedelta
from enum import Enum
from importlib import import_module
from typing import Any

from rushlight._absent import absent_class
from rushlight._absent_names import MODULES

__path__: list[str] = []  # the modules below it are in _absent_names.py
__all__ = ["ProcessGroup", "ReduceOp", "group", "is_available", "is_initialized"]


default_pg_timeout = timedelta(minutes=30)


class ReduceOp(Enum):
    """Ways to combine values of several processes."""

    SUM, PRODUCT, MIN, MAX, AVG, BAND, BOR, BXOR = range(8)


ReduceOp.RedOpType = ReduceOp  # type: ignore[attr-defined]


class ProcessGroup:
    """Only for type annotations: there are no groups."""


Work = Store = DeviceMesh = ProcessGroup


class Backend(str):
    """The name of a way to talk to other processes: there is none to choose."""

    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL = "undefined", "gloo", "nccl", "ucc", "mpi", "xccl"
    default_device_backend_map: dict[str, str] = {}


class GroupMember:
    """What stands for "this process is in no group"."""

    WORLD = None
    NON_GROUP_MEMBER = -100


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
    "scatter_object_list", "send", "batch_isend_irecv", "get_global_rank", "get_group_rank",
    "get_process_group_ranks", "recv_object_list", "send_object_list", "_rank_not_in_group",
}  # fmt: skip


def init_process_group(*args: Any, **kwargs: Any) -> None:
    """Not implemented."""
    raise NotImplementedError("torch.distributed is not implemented: Rushlight runs in one process")


_CLASSES = {
    "DistBackendError", "DistError", "DistNetworkError", "DistStoreError", "FileStore", "HashStore", "P2POp",
    "PrefixStore", "ProcessGroupGloo", "ProcessGroupNCCL", "TCPStore",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _CLASSES:
        base = RuntimeError if name.endswith("Error") else object
        globals()[name] = found = absent_class("torch.distributed", name, base)
        return found
    if name == "init_device_mesh":
        return import_module("rushlight.distributed.device_mesh").init_device_mesh
    if name in _NEEDS_GROUP:

        def call(*args: Any, **kwargs: Any) -> Any:
            raise ValueError(
                "Default process group has not been initialized, please make sure to call init_process_group."
            )

        call.__name__ = call.__qualname__ = name
        return call
    if f"distributed.{name}" in MODULES:
        return import_module(f"rushlight.distributed.{name}")
    raise AttributeError(
        f"module 'torch.distributed' has no attribute '{name}': Rushlight runs in one process"
    )
