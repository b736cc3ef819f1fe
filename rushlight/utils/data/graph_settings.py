"""Settings of all steps of a pipe at once: sharding, shuffling, seeds."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import rushlight
from rushlight.utils.data.datapipes.iter.sharding import SHARDING_PRIORITIES
from rushlight.utils.data.graph import DataPipe, traverse_dps

__all__ = [
    "apply_random_seed",
    "apply_sharding",
    "apply_shuffle_seed",
    "apply_shuffle_settings",
    "get_all_graph_pipes",
]


def get_all_graph_pipes(graph: dict) -> list[DataPipe]:
    """The pipes of a graph, each once."""
    found: dict[int, DataPipe] = {}
    for key, (pipe, below) in graph.items():
        found.setdefault(key, pipe)
        for each in get_all_graph_pipes(below):
            found.setdefault(id(each), each)
    return list(found.values())


def _is_sharding(pipe: Any) -> bool:
    return inspect.ismethod(getattr(pipe, "apply_sharding", None))


def _is_shuffling(pipe: Any) -> bool:
    return all(inspect.ismethod(getattr(pipe, name, None)) for name in ("set_shuffle", "set_seed"))


def apply_sharding(
    datapipe: DataPipe,
    num_of_instances: int,
    instance_id: int,
    sharding_group: Any = SHARDING_PRIORITIES.DEFAULT,
) -> DataPipe:
    """Tells every `sharding_filter` who this is among how many."""

    def apply(graph: dict, above: Any) -> None:
        for pipe, below in graph.values():
            sharding = _is_sharding(pipe)
            if sharding and above is not None:
                raise RuntimeError(
                    "Sharding twice on a single pipeline is likely unintended and will cause data loss. "
                    f"Sharding already applied to {above} while trying to apply to {pipe}"
                )
            if sharding:
                takes_group = len(inspect.signature(pipe.apply_sharding).parameters) >= 3
                more = {"sharding_group": sharding_group} if takes_group else {}
                pipe.apply_sharding(num_of_instances, instance_id, **more)
            apply(below, pipe if sharding else above)

    apply(traverse_dps(datapipe), None)
    return datapipe


def apply_shuffle_settings(datapipe: DataPipe, shuffle: bool | None = None) -> DataPipe:
    """Switches every `shuffle` on or off; adds one if there is none and it is asked for."""
    if shuffle is None:
        return datapipe
    shufflers: list[Any] = [
        pipe for pipe in get_all_graph_pipes(traverse_dps(datapipe)) if _is_shuffling(pipe)
    ]
    if shuffle and not shufflers:
        warnings.warn(
            "`shuffle=True` was set, but the datapipe does not contain a `Shuffler`. Adding one at the end. "
            "Be aware that the default buffer size might not be sufficient for your task.",
            stacklevel=2,
        )
        datapipe = datapipe.shuffle()
        shufflers = [datapipe]
    for shuffler in shufflers:
        shuffler.set_shuffle(shuffle)
    return datapipe


def apply_shuffle_seed(datapipe: DataPipe, rng: Any) -> DataPipe:
    """The older name of apply_random_seed."""
    warnings.warn(
        "`apply_shuffle_seed` is deprecated since 1.12 and will be removed in the future releases.\n"
        "Please use `apply_random_seed` instead.",
        FutureWarning,
        stacklevel=2,
    )
    return apply_random_seed(datapipe, rng)


def apply_random_seed(datapipe: DataPipe, rng: Any) -> DataPipe:
    """Gives every step with a `set_seed` a seed drawn from a generator."""
    for pipe in get_all_graph_pipes(traverse_dps(datapipe)):
        set_seed = getattr(pipe, "set_seed", None)
        if inspect.ismethod(set_seed):
            seed = rushlight.empty((), dtype=rushlight.int64).random_(generator=rng).item()
            set_seed(int(seed))
    return datapipe
