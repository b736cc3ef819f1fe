"""What runs in a worker process of the loader.

A worker gets tasks through a pipe and puts results into its own queue: `(number of the task, batch)`,
pickled. A batch may also be `Failure` (an exception to be raised again in the loader) or `Ended` (its stream
is over).
"""

from __future__ import annotations

import os
import pickle
import random
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import rushlight
from rushlight.utils.data._utils.fetch import create_fetcher

POLL_SECONDS = 5.0  # how often an idle worker looks whether the loader's process still lives

_worker_info: WorkerInfo | None = None


class WorkerInfo:
    """What a worker process knows about itself: `id`, `num_workers`, `seed` and its copy of `dataset`."""

    def __init__(self, **entries: Any) -> None:
        self.__dict__.update(entries)
        self._names = tuple(entries)

    def __setattr__(self, name: str, value: Any) -> None:
        if "_names" in self.__dict__:
            raise RuntimeError(f"Cannot assign attributes to {type(self).__name__} objects")
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)}' for name in self._names)})"


def get_worker_info() -> Any:
    """In a worker process of a DataLoader its WorkerInfo, elsewhere None.

    >>> rushlight.utils.data.get_worker_info() is None
    True
    """
    return _worker_info


@dataclass
class Resume:
    """A task that starts another epoch in a persistent worker."""

    seed: int


@dataclass
class Ended:
    """The stream of this worker is over."""

    worker: int


class Failure:
    """An exception that crosses to the loader's process, with its traceback as text."""

    def __init__(self, where: str) -> None:
        kind, error, trace = sys.exc_info()
        self.kind: Any = kind
        self.where = where
        self.text = "".join(traceback.format_exception(kind, error, trace))

    def reraise(self) -> None:
        """Raises the exception with what happened in the worker in its text."""
        message = f"Caught {self.kind.__name__} {self.where}.\nOriginal {self.text}"
        if self.kind is KeyError:
            raise KeyError(_Message(message))
        try:
            error = self.kind(message)
        except Exception:
            # An exception that takes other arguments than a text.
            raise RuntimeError(message) from None
        raise error


class _Message(str):
    """KeyError shows its argument by repr: this one keeps its line breaks."""

    def __repr__(self) -> str:
        return str(self)


def _seed_everything(seed: int, base_seed: int, worker: int) -> None:
    random.seed(seed)
    rushlight.manual_seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        entropy = [worker, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
        numpy.random.seed(numpy.random.SeedSequence(entropy).generate_state(4))


def _packed(number: int, result: Any, worker: int) -> bytes:
    """A result as bytes. Pickled here and not by the queue's thread, where a failure would go unseen."""
    try:
        return pickle.dumps((number, result), pickle.HIGHEST_PROTOCOL)
    except Exception:
        return pickle.dumps((number, Failure(f"in DataLoader worker process {worker}")))


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
) -> None:
    """The life of a worker: until the loader sends None or is gone."""
    global _worker_info
    parent = os.getppid()
    rushlight.set_num_threads(1)
    failure: Failure | None = None
    fetcher: Any = None

    def begin(first_seed: int) -> None:
        nonlocal failure, fetcher
        global _worker_info
        failure = None
        seed = first_seed + worker
        _seed_everything(seed, first_seed, worker)
        _worker_info = WorkerInfo(id=worker, num_workers=num_workers, seed=seed, dataset=dataset)
        try:
            if init_fn is not None and fetcher is None:
                init_fn(worker)
            fetcher = create_fetcher(kind, dataset, batched, collate_fn, drop_last)
        except Exception:
            failure = Failure(f"in DataLoader worker process {worker}")

    begin(base_seed)
    ended = False
    try:
        while True:
            if not tasks.poll(POLL_SECONDS):
                if os.getppid() != parent:
                    return
                continue
            task = tasks.recv()
            if task is None:
                break
            if isinstance(task, Resume):
                begin(task.seed)
                ended = False
                continue
            number, index = task
            result: Any
            if failure is not None:
                result, failure = failure, None
            elif ended:
                result = Ended(worker)
            else:
                try:
                    result = fetcher.fetch(index)
                except Exception as error:
                    if isinstance(error, StopIteration) and kind:
                        ended = True
                        result = Ended(worker)
                    else:
                        result = Failure(f"in DataLoader worker process {worker}")
            results.put(_packed(number, result, worker))
    except (EOFError, KeyboardInterrupt):
        results.cancel_join_thread()
    results.close()
