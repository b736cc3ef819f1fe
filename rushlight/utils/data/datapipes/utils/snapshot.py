"""Taking a pipe to where it was after some samples."""

from __future__ import annotations

from typing import Any

from rushlight.utils.data.datapipes.datapipe import IterDataPipe, _SnapshotState
from rushlight.utils.data.graph_settings import apply_random_seed


def _simple_graph_snapshot_restoration(datapipe: IterDataPipe, n_iterations: int, rng: Any = None) -> None:
    """Read ``n_iterations`` samples away; the next iterator of the pipe goes on after them.

    A state that the pipe had is dropped, and its random steps are seeded by ``rng``.

    >>> pipe = rushlight.utils.data.datapipes.iter.IterableWrapper(range(4))
    >>> _simple_graph_snapshot_restoration(pipe, 3)
    >>> list(pipe), list(pipe)
    ([3], [0, 1, 2, 3])
    """
    if datapipe._snapshot_state == _SnapshotState.Restored:
        raise RuntimeError(
            "Snapshot restoration cannot be applied. You can only restore simple snapshot to the graph if "
            "your graph has not been restored."
        )
    # What was read before counts for nothing: the pipe starts over.
    datapipe.reset()
    apply_random_seed(datapipe, rng)
    iterator = iter(datapipe)
    for _ in range(n_iterations):
        try:
            next(iterator)
        except StopIteration:
            raise RuntimeError(
                f"Fast-forward {datapipe} by {n_iterations} iterations exceeds the number of samples "
                "available."
            ) from None
    datapipe._fast_forward_iterator = iterator
    datapipe._snapshot_state = _SnapshotState.Restored
