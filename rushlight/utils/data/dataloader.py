"""DataLoader: batches of a dataset, made in this process or by worker processes ahead of time.

Two iterators do the work. `_SingleProcessDataLoaderIter` fetches when asked. The other one,
`_MultiProcessingDataLoaderIter`, keeps `prefetch_factor` tasks per worker under way and hands the results out
in the order of the tasks; what a worker does is in `_utils/worker.py`.
"""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import multiprocessing.connection
import os
import pickle
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from rushlight import _C
from rushlight._utils import ExceptionWrapper
from rushlight._warn import warn
from rushlight.utils.data import _utils, graph_settings
from rushlight.utils.data._utils.collate import default_collate, default_convert
from rushlight.utils.data._utils.signal_handling import how_it_ended
from rushlight.utils.data._utils.worker import (
    _IterableDatasetStopIteration,
    _ResumeIteration,
    get_worker_info,
    worker_loop,
)
from rushlight.utils.data.datapipes.datapipe import (
    IterDataPipe,
    MapDataPipe,
    _IterDataPipeSerializationWrapper,
    _MapDataPipeSerializationWrapper,
)
from rushlight.utils.data.dataset import IterableDataset
from rushlight.utils.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, draw_seed

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)
# Libraries that make loaders of their own annotate with these.
_worker_init_fn_t = Callable[[int], None]
_collate_fn_t = Callable[[list[_T]], Any]


class _DatasetKind:
    Map = 0
    Iterable = 1
    create_fetcher = staticmethod(_utils.fetch.create_fetcher)


class _InfiniteConstantSampler(Sampler):
    """Stands in for indices where the dataset is a stream."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


def _sharding_worker_init_fn(
    worker_init_fn: Callable | None, world_size: int, rank_id: int, worker_id: int
) -> None:
    """For workers that libraries start: this one's share of a data pipe, split over the ranks first."""
    info = get_worker_info()
    graph_settings.apply_sharding(
        info.dataset, info.num_workers * world_size, worker_id * world_size + rank_id
    )
    if worker_init_fn is not None:
        worker_init_fn(worker_id)


def _check_workers(
    num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool
) -> None:
    if num_workers < 0:
        raise ValueError(
            "num_workers option should be non-negative; use num_workers=0 to disable multiprocessing."
        )
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to enable "
            "multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _check_sampling(
    batch_size: int | None, shuffle: bool | None, sampler: Any, batch_sampler: Any, drop_last: bool
) -> None:
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
        raise ValueError(
            "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
        )
    if batch_sampler is None and batch_size is None and drop_last:
        raise ValueError(
            "batch_size=None option disables auto-batching and is mutually exclusive with drop_last"
        )


class DataLoader(Generic[_T_co]):
    """Iterates over a dataset in batches.

    >>> loader = rushlight.utils.data.DataLoader(range(5), batch_size=2)
    >>> list(loader)
    [tensor([0, 1]), tensor([2, 3]), tensor([4])]
    """

    dataset: Any
    batch_size: int | None
    sampler: Any
    _iterator: Any = None
    __initialized = False

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Callable | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        if num_workers > 0 and prefetch_factor is None:
            prefetch_factor = 2

        if isinstance(dataset, IterDataPipe):
            dataset = _IterDataPipeSerializationWrapper(dataset)
        elif isinstance(dataset, MapDataPipe):
            dataset = _MapDataPipeSerializationWrapper(dataset)
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        if isinstance(dataset, IterableDataset):
            self._dataset_kind = _DatasetKind.Iterable
            if isinstance(dataset, IterDataPipe):  # its own steps do the shuffling
                from rushlight.utils.data import graph_settings

                if shuffle is not None:
                    graph_settings.apply_shuffle_settings(dataset, shuffle=shuffle)
                shuffle = None
            for option, value in (("shuffle", shuffle or None), ("sampler", sampler),
                                  ("batch_sampler", batch_sampler)):  # fmt: skip
                if value is not None:
                    raise ValueError(
                        f"DataLoader with IterableDataset: expected unspecified {option} option, but got "
                        f"{option}={value}"
                    )
        else:
            self._dataset_kind = _DatasetKind.Map
        _check_sampling(batch_size, shuffle, sampler, batch_sampler, drop_last)
        if batch_sampler is not None:
            batch_size, drop_last = None, False
        if sampler is None:
            if self._dataset_kind == _DatasetKind.Iterable:
                sampler = _InfiniteConstantSampler()
            elif shuffle:
                sampler = RandomSampler(dataset, generator=generator)
            else:
                sampler = SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)

        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        if collate_fn is None:
            batched = batch_sampler is not None
            collate_fn = _utils.collate.default_collate if batched else _utils.collate.default_convert
        self.collate_fn = collate_fn
        self.persistent_workers = persistent_workers
        self.__initialized = True
        self._IterableDataset_len_called: int | None = None
        self._iterator = None
        self.check_worker_number_rationality()

    def check_worker_number_rationality(self) -> None:
        """Warns of more worker processes than there are processors for this one."""
        available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        if available is not None and self.num_workers > available:
            warnings.warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our suggested "
                f"max number of worker in current system is {available}, which is smaller than what this "
                "DataLoader is going to create. Please be aware that excessive worker creation might get "
                "DataLoader running slow or even freeze, lower the worker number to avoid potential "
                "slowness/freeze if necessary.",
                stacklevel=3,
            )

    @property
    def multiprocessing_context(self) -> Any:
        """How worker processes are started."""
        return self.__multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        if context is not None:
            if self.num_workers == 0:
                raise ValueError(
                    "multiprocessing_context can only be used with multi-process loading (num_workers > 0), "
                    f"but got num_workers={self.num_workers}"
                )
            if isinstance(context, str):
                methods = multiprocessing.get_all_start_methods()
                if context not in methods:
                    raise ValueError(
                        f"multiprocessing_context option should specify a valid start method in {methods!r}, "
                        f"but got multiprocessing_context={context!r}"
                    )
                context = multiprocessing.get_context(context)
            if not isinstance(context, multiprocessing.context.BaseContext):
                raise TypeError(
                    "multiprocessing_context option should be a valid context object or a string specifying "
                    f"the start method, but got multiprocessing_context={context}"
                )
        self.__multiprocessing_context = context

    def __setattr__(self, name: str, value: Any) -> None:
        fixed = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")
        if self.__initialized and name in fixed:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def _get_iterator(self) -> Any:
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        self.check_worker_number_rationality()
        return _MultiProcessingDataLoaderIter(self)

    def __iter__(self) -> Any:
        if not self.persistent_workers:
            return self._get_iterator()
        if self._iterator is None:
            self._iterator = self._get_iterator()
        else:
            self._iterator._reset(self)
        return self._iterator

    def __len__(self) -> int:
        if self._dataset_kind == _DatasetKind.Map:
            return len(self._index_sampler)
        length = self._IterableDataset_len_called = len(self.dataset)
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)


_SETTINGS = {
    "_dataset": "dataset", "_num_workers": "num_workers", "_collate_fn": "collate_fn", "_timeout": "timeout",
    "_drop_last": "drop_last", "_prefetch_factor": "prefetch_factor",
    "_persistent_workers": "persistent_workers", "_in_order": "in_order", "_worker_init_fn": "worker_init_fn",
    "_index_sampler": "_index_sampler", "_auto_collation": "_auto_collation",
    "_IterableDataset_len_called": "_IterableDataset_len_called",
}  # fmt: skip


class _BaseDataLoaderIter:
    """What both iterators share: where the indices come from, the seed, the count of batches."""

    _pin_memory = False  # also if the loader asks: there is no accelerator to copy to

    def __init__(self, loader: DataLoader) -> None:
        self._dataset_kind = loader._dataset_kind
        _BaseDataLoaderIter._reset(self, loader, first_iter=True)
        # Once: persistent workers go on with their random streams in the next epoch.
        self._base_seed = draw_seed(loader.generator)

    def _reset(self, loader: DataLoader, first_iter: bool = False) -> None:
        # A copy without this iterator: no cycle, so that workers end as soon as nobody holds the loader.
        self._loader = object.__new__(type(loader))
        self._loader.__dict__.update(loader.__dict__, _iterator=None)
        if loader.pin_memory:
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory "
                "won't be used.",
                stacklevel=5,
            )
        pipe = isinstance(loader.dataset, IterDataPipe)
        self._shared_seed = draw_seed(loader.generator) if pipe else None
        self._sampler_iter = iter(loader._index_sampler)
        self._num_yielded = 0

    def __iter__(self) -> _BaseDataLoaderIter:
        return self

    def __getattr__(self, name: str) -> Any:
        # The loader's settings, under the names that iterators have for them in torch.
        if name in _SETTINGS and "_loader" in self.__dict__:
            return getattr(self._loader, _SETTINGS[name])
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _next_index(self) -> Any:
        return next(self._sampler_iter)

    def _next_data(self) -> Any:
        raise NotImplementedError

    def __next__(self) -> Any:
        if _C._profiler_enabled():
            from rushlight.autograd.profiler import record_function

            with record_function(f"enumerate(DataLoader)#{type(self).__name__}.__next__"):
                data = self._next_data()
        else:
            data = self._next_data()
        self._num_yielded += 1
        expected = self._loader._IterableDataset_len_called
        if (
            self._dataset_kind == _DatasetKind.Iterable
            and expected is not None
            and self._num_yielded > expected
        ):
            warnings.warn(
                f"Length of IterableDataset {self._loader.dataset} was reported to be {expected}(when "
                f"accessing len(dataloader)), but {self._num_yielded} samples have been fetched. ",
                stacklevel=2,
            )
        return data

    next = __next__

    def __len__(self) -> int:
        return len(self._loader._index_sampler)

    def __getstate__(self) -> Any:
        raise NotImplementedError("{} cannot be pickled", type(self).__name__)


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    def __init__(self, loader: DataLoader) -> None:
        super().__init__(loader)
        if self._shared_seed is not None:
            _utils.worker.seed_pipe(loader.dataset, self._shared_seed, (1, 0))
        self._dataset_fetcher = _utils.fetch.create_fetcher(
            self._dataset_kind, loader.dataset, loader._auto_collation, loader.collate_fn, loader.drop_last
        )

    def _next_data(self) -> Any:
        return self._dataset_fetcher.fetch(self._next_index())


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Tasks are numbered; a worker answers with the number, so that results can be put in order."""

    def __init__(self, loader: DataLoader) -> None:
        super().__init__(loader)
        self._workers: list[Any] = []
        self._task_pipes: list[Any] = []
        self._results: list[Any] = []
        self._pending: dict[int, int] = {}  # task -> worker
        self._shut_down = False
        self._creator = os.getpid()
        import rushlight.multiprocessing  # noqa: F401  (it says how tensors are sent)

        context = loader.multiprocessing_context or multiprocessing.get_context()
        for number in range(loader.num_workers):
            tasks, ours = context.Pipe(duplex=False)
            results = context.Queue()
            worker = context.Process(
                target=worker_loop,
                args=(self._dataset_kind, loader.dataset, tasks, results, loader._auto_collation,
                      loader.collate_fn, loader.drop_last, self._base_seed, loader.worker_init_fn, number,
                      loader.num_workers, self._shared_seed),
            )  # fmt: skip
            worker.daemon = True
            try:
                worker.start()
            except (TypeError, AttributeError, pickle.PicklingError):
                warn(
                    "Got pickle error when attempting to start a worker Process. The dataset, collate_fn and "
                    "worker_init_fn are sent to it unless it is forked, and Python 3.14+ does not fork by "
                    "default: define them at the top of a module, or use "
                    "multiprocessing.set_start_method('fork')."
                )
                raise
            tasks.close()
            self._workers.append(worker)
            self._task_pipes.append(ours)
            self._results.append(results)
        self._start_epoch()

    def _start_epoch(self) -> None:
        self._sent = 0  # tasks given out
        self._wanted = 0  # the task whose result comes next
        self._pending = {}
        self._arrived: dict[int, Any] = {}
        self._streaming = [True] * len(self._workers)  # false once a worker's stream is over
        self._turns = itertools.cycle(range(len(self._workers)))
        for _ in range((self._loader.prefetch_factor or 1) * len(self._workers)):
            self._send_task()

    def _reset(self, loader: DataLoader, first_iter: bool = False) -> None:
        """Starts the next epoch with the same workers."""
        if self._shut_down:
            raise RuntimeError("the workers of this DataLoader have been shut down")
        while self._pending:  # what the last epoch still had under way
            self._receive()
        super()._reset(loader)
        for pipe in self._task_pipes:
            pipe.send(_ResumeIteration(self._shared_seed))
        self._start_epoch()

    def _send_task(self) -> None:
        if not any(self._streaming):
            return
        try:
            index = self._next_index()
        except StopIteration:
            return
        worker = next(number for number in self._turns if self._streaming[number])
        with contextlib.suppress(BrokenPipeError):  # a dead worker is noticed when its result is waited for
            self._task_pipes[worker].send((self._sent, index))
        self._pending[self._sent] = worker
        self._sent += 1

    def _receive(self) -> None:
        """Waits for one result and notes it."""
        busy = sorted(set(self._pending.values()))
        readers = {self._results[number]._reader: number for number in busy}
        sentinels = {self._workers[number].sentinel: number for number in busy}
        timeout = self._loader.timeout or None
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            ready = multiprocessing.connection.wait([*readers, *sentinels], left)
            for reader in readers:
                if reader in ready:
                    task, data = pickle.loads(self._results[readers[reader]].get())
                    del self._pending[task]
                    self._arrived[task] = data
                    return
            dead = [sentinels[sentinel] for sentinel in sentinels if sentinel in ready]
            dead = [number for number in dead if self._results[number].empty()]
            if dead:
                workers = [self._workers[number] for number in dead]
                pids = ", ".join(str(worker.pid) for worker in workers)
                workers[0].join(1)
                cause = how_it_ended(workers[0].pid, workers[0].exitcode or 0)
                self._shutdown_workers()
                raise RuntimeError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly") from (
                    None if cause is None else RuntimeError(cause)
                )
            if deadline is not None and time.monotonic() >= deadline:
                self._shutdown_workers()
                raise RuntimeError(f"DataLoader timed out after {timeout} seconds")

    def _next_data(self) -> Any:
        while True:
            if self._loader.in_order:
                while self._wanted not in self._arrived:
                    if self._wanted not in self._pending:
                        return self._finish()
                    self._receive()
                data = self._arrived.pop(self._wanted)
                self._wanted += 1
            else:
                if not self._arrived:
                    if not self._pending:
                        return self._finish()
                    self._receive()
                data = self._arrived.pop(next(iter(self._arrived)))
            if isinstance(data, _IterableDatasetStopIteration):
                self._streaming[data.worker_id] = False
                self._send_task()
                continue
            if isinstance(data, ExceptionWrapper):
                self._send_task()
                data.reraise()
            self._send_task()
            return data

    def _finish(self) -> Any:
        if not self._loader.persistent_workers:
            self._shutdown_workers()
        raise StopIteration

    def _shutdown_workers(self) -> None:
        if self._shut_down or self._creator != os.getpid():
            return
        self._shut_down = True
        for pipe in self._task_pipes:
            with contextlib.suppress(OSError):
                pipe.send(None)
            with contextlib.suppress(OSError):  # a collector may have closed it first
                pipe.close()
        waiting = self._loader.timeout == 0 and not self._pending
        for worker, results in zip(self._workers, self._results):
            if waiting:
                worker.join(5)
            if worker.is_alive():
                worker.terminate()
                worker.join()
            results.cancel_join_thread()
            results.close()

    def __del__(self) -> None:
        if "_shut_down" in self.__dict__:
            self._shutdown_workers()
