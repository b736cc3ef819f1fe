"""Which processes are workers of loaders, and an error that tells how one of them ended.

The loader itself asks its workers whether they are alive (``dataloader.py``); a program that runs workers of
its own can name them here and be told by a signal.
"""

from __future__ import annotations

import faulthandler
import operator
import os
import signal
import threading
from typing import Any

_worker_pids: dict[int, tuple[int, ...]] = {}
_SIGCHLD_handler_set = False


def _set_worker_pids(loader_id: int, child_pids: tuple[int, ...]) -> None:
    """Names the workers of a loader."""
    if loader_id in _worker_pids:
        raise ValueError("_set_worker_pids should be called only once for each _BaseDataLoaderIter.")
    if not isinstance(child_pids, tuple):
        raise TypeError(
            f"_set_worker_pids expects a tuple for child_pids, but got {type(child_pids).__name__}."
        )
    _worker_pids[operator.index(loader_id)] = tuple(operator.index(pid) for pid in child_pids)


def _remove_worker_pids(loader_id: int) -> None:
    """Forgets the workers of a loader."""
    if loader_id not in _worker_pids:
        raise ValueError(f"Cannot find worker information for _BaseDataLoaderIter with id {loader_id}")
    del _worker_pids[loader_id]


def how_it_ended(pid: int, code: int) -> str | None:
    """A sentence about a process that failed; `code` is that of multiprocessing, negative for signals."""
    if code == 0:
        return None
    if code < 0:
        return f"DataLoader worker (pid {pid}) is killed by signal: {signal.strsignal(-code)}. "
    return (
        f"DataLoader worker (pid {pid}) exited unexpectedly with exit code {code}. Details are lost due to "
        "multiprocessing. Rerunning with num_workers=0 may give better error trace."
    )


def _error_if_any_worker_fails() -> None:
    """An error if one of the workers has failed; its loader's are then forgotten."""
    for loader, pids in list(_worker_pids.items()):
        for pid in pids:
            try:
                # Left for whoever waits for the process.
                ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                continue
            if ended is None:
                continue
            exited = ended.si_code == os.CLD_EXITED
            sentence = how_it_ended(pid, ended.si_status if exited else -ended.si_status)
            if sentence is not None:
                _worker_pids[loader] = ()
                raise RuntimeError(sentence)


def _set_SIGCHLD_handler() -> None:
    """From now on a worker that fails interrupts the main thread with an error."""
    global _SIGCHLD_handler_set
    if _SIGCHLD_handler_set or threading.current_thread() is not threading.main_thread():
        return
    before = signal.getsignal(signal.SIGCHLD)

    def handler(number: int, frame: Any) -> None:
        _error_if_any_worker_fails()
        if callable(before):
            before(number, frame)

    signal.signal(signal.SIGCHLD, handler)
    _SIGCHLD_handler_set = True


def _set_worker_signal_handlers() -> None:
    """In a worker: a crash leaves a traceback."""
    faulthandler.enable()
