"""What runs in a worker process of the loader.

A worker gets tasks through a pipe and puts results into its own queue: `(number of the task, batch)`,
pickled. Large tensors of a batch stay where they are, in memory that the loader shares. A batch may also be
an `ExceptionWrapper` (an exception to be raised again in the loader) or
`_IterableDatasetStopIteration` (its stream is over). The names are torch's: libraries have such loops too.
"""

from __future__ import annotations

import io
import os
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.reduction import ForkingPickler
from typing import Any

import rushlight
from rushlight._utils import ExceptionWrapper
from rushlight.utils.data._utils.fetch import create_fetcher

MP_STATUS_CHECK_INTERVAL = 5.0  # seconds after which an idle worker looks whether the loader still lives
SHARED_BYTES = 1 << 19  # tensors of at least this size are shared; a copy of smaller ones is faster

_worker_info: WorkerInfo | None = None


@dataclass(frozen=True)
class WorkerInfo:
    """What a worker process knows about itself: `id`, `num_workers`, `seed` and its copy of `dataset`."""

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: Any = None  # of workers that are threads: there are none
    worker_method: str = "multiprocessing"


def get_worker_info() -> Any:
    """In a worker process of a DataLoader its WorkerInfo, elsewhere None.

    >>> rushlight.utils.data.get_worker_info() is None
    True
    """
    return _worker_info


@dataclass
class _ResumeIteration:
    """A task that starts another epoch in a persistent worker, with this seed for data pipes."""

    seed: int | None = None


@dataclass
class _IterableDatasetStopIteration:
    """The stream of this worker is over."""

    worker_id: int


class ManagerWatchdog:
    """Tells a worker whether the process that started it still lives."""

    def __init__(self) -> None:
        self.manager_pid = os.getppid()

    def is_alive(self) -> bool:
        """False from the moment another process has taken the parent's place."""
        return os.getppid() == self.manager_pid


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """The seed of NumPy's generator in a worker."""
    import numpy

    entropy = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return numpy.random.SeedSequence(entropy).generate_state(4).tolist()


def _seed_everything(seed: int, base_seed: int, worker: int) -> None:
    random.seed(seed)
    rushlight.manual_seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(_generate_state(base_seed, worker))


def seed_pipe(dataset: Any, shared_seed: int, share: tuple[int, int] | None) -> None:
    """Gives the steps of a data pipe their seeds, the same in all workers, and this worker its share."""
    from rushlight.utils.data import graph_settings

    if share is not None:
        graph_settings.apply_sharding(dataset, *share)
    graph_settings.apply_random_seed(dataset, rushlight.Generator().manual_seed(shared_seed))


def _packed(number: int, result: Any, worker: int) -> bytes:
    """A result as bytes. Pickled here and not by the queue's thread, where a failure would go unseen."""
    stream = io.BytesIO()
    try:
        _ResultPickler(stream).dump((number, result))
    except Exception:
        stream = io.BytesIO()
        failure = ExceptionWrapper(where=f"in DataLoader worker process {worker}")
        _ResultPickler(stream).dump((number, failure))
    return stream.getvalue()


class _ResultPickler(ForkingPickler):
    """Shares large tensors and copies small ones."""

    def reducer_override(self, obj: Any) -> Any:
        own = isinstance(obj, rushlight.Tensor) and obj.layout is rushlight.strided  # others go in parts
        if own and obj.is_leaf and _nbytes(obj) < SHARED_BYTES:
            return obj.__reduce_ex__(4)
        if isinstance(obj, rushlight.UntypedStorage) and obj.nbytes() < SHARED_BYTES:
            return obj.__reduce__()
        return NotImplemented


def _nbytes(tensor: Any) -> int:
    return max(tensor.nbytes, tensor.untyped_storage().nbytes())


def worker_loop(
    kind: int,
    dataset: Any,
    tasks: Any,
    results: Any,
    batched: bool,
    collate_fn: Callable,
    drop_last: bool,
    base_seed: int,
    init_fn: Callable | None,
    worker: int,
    num_workers: int,
    shared_seed: int | None = None,
) -> None:
    """The life of a worker: until the loader sends None or is gone."""
    global _worker_info
    import rushlight.multiprocessing  # it says how tensors are sent

    loader = ManagerWatchdog()
    rushlight.set_num_threads(1)
    failure: ExceptionWrapper | None = None
    fetcher: Any = None
    ended = False

    seed = base_seed + worker
    _seed_everything(seed, base_seed, worker)
    _worker_info = WorkerInfo(id=worker, num_workers=num_workers, seed=seed, dataset=dataset)

    def begin(shared_seed: int | None) -> None:
        nonlocal failure, fetcher, ended
        failure, ended = None, False
        try:
            if shared_seed is not None:
                seed_pipe(dataset, shared_seed, None if fetcher else (num_workers, worker))
            if init_fn is not None and fetcher is None:
                init_fn(worker)
            fetcher = create_fetcher(kind, dataset, batched, collate_fn, drop_last)
        except Exception:
            failure = ExceptionWrapper(where=f"in DataLoader worker process {worker}")

    def answer(index: Any) -> Any:
        nonlocal failure, ended
        if failure is not None:
            result, failure = failure, None
            return result
        try:
            if not ended:
                return fetcher.fetch(index)
        except Exception as error:
            if not isinstance(error, StopIteration) or not kind:
                return ExceptionWrapper(where=f"in DataLoader worker process {worker}")
            ended = True
        return _IterableDatasetStopIteration(worker)

    begin(shared_seed)
    try:
        while True:
            if not tasks.poll(MP_STATUS_CHECK_INTERVAL):
                if not loader.is_alive():
                    return
                continue
            task = tasks.recv()
            if task is None:
                break
            if isinstance(task, _ResumeIteration):
                begin(task.seed)
                continue
            number, index = task
            results.put(_packed(number, answer(index), worker))
    except (EOFError, KeyboardInterrupt):
        results.cancel_join_thread()
    results.close()
