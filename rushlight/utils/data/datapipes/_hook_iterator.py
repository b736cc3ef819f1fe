"""Where torch keeps the states of a pipe."""

from rushlight.utils.data.datapipes.datapipe import _SnapshotState

__all__ = ["_SnapshotState"]
