"""Python's multiprocessing under torch's name. Tensors sent between processes are copied; memory that several
processes write (`share_memory_`) is not implemented and says so."""

from __future__ import annotations

import multiprocessing
import sys
from multiprocessing import *  # noqa: F403
from typing import Any

__all__ = [
    *multiprocessing.__all__,
    "ProcessContext",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]

_strategy = "file_system" if sys.platform == "darwin" else "file_descriptor"


def get_all_sharing_strategies() -> set[str]:
    """The names torch knows; tensors are copied whichever is chosen."""
    return {"file_descriptor", "file_system"} if sys.platform != "darwin" else {"file_system"}


def get_sharing_strategy() -> str:
    """The name that was set last."""
    return _strategy


def set_sharing_strategy(new_strategy: str) -> None:
    """Remembers the name."""
    global _strategy
    if new_strategy not in get_all_sharing_strategies():
        raise AssertionError(f"invalid sharing strategy {new_strategy!r}")
    _strategy = new_strategy


class ProcessRaisedException(Exception):
    """A process started by `spawn` ended with an exception."""


class ProcessExitedException(Exception):
    """A process started by `spawn` ended with an exit code other than 0."""


def _run(fn: Any, rank: int, args: tuple, errors: Any) -> None:
    try:
        fn(rank, *args)
    except KeyboardInterrupt:
        pass
    except Exception:
        import traceback

        errors.put((rank, traceback.format_exc()))
        sys.exit(1)


class ProcessContext:
    """The processes of one `spawn`."""

    def __init__(self, processes: list, errors: Any) -> None:
        self.processes, self.errors = processes, errors

    def pids(self) -> list[int]:
        """Their process ids."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Waits; True once all have ended. The first failure ends the others and is raised here."""
        from multiprocessing.connection import wait

        running = {p.sentinel: p for p in self.processes if p.exitcode is None}
        ended = wait(list(running), timeout) if running else []
        for process in [running[sentinel] for sentinel in ended] or self.processes:
            process.join()
            if process.exitcode == 0:
                continue
            for other in self.processes:
                if other.is_alive():
                    other.terminate()
                other.join(grace_period)
            index = self.processes.index(process)
            if not self.errors.empty():
                index, text = self.errors.get()
                raise ProcessRaisedException(
                    f"\n\n-- Process {index} terminated with the following error:\n{text}"
                )
            raise ProcessExitedException(f"process {index} terminated with exit code {process.exitcode}")
        return all(process.exitcode is not None for process in self.processes)


def start_processes(
    fn: Any,
    args: tuple = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Runs fn(rank, *args) in nprocs processes."""
    context = multiprocessing.get_context(start_method)
    errors = context.SimpleQueue()
    processes = []
    for rank in range(nprocs):
        process = context.Process(target=_run, args=(fn, rank, args, errors), daemon=daemon)  # type: ignore
        process.start()
        processes.append(process)
    started = ProcessContext(processes, errors)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(
    fn: Any,
    args: tuple = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """`start_processes` with fresh interpreters."""
    return start_processes(fn, args, nprocs, join, daemon, start_method)
