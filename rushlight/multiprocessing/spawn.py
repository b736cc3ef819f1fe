"""`spawn`: one function in several processes, whose failures come back to the one that started them."""

from __future__ import annotations

import multiprocessing
import signal
import sys
from multiprocessing.connection import wait
from typing import Any


class ProcessException(Exception):
    """A process started by `spawn` failed: which one, and its process id."""

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.error_pid = msg, error_index, error_pid

    def __reduce__(self) -> tuple:
        return type(self), (self.msg, self.error_index, self.error_pid)


class ProcessRaisedException(ProcessException):
    """A process started by `spawn` ended with an exception."""


class ProcessExitedException(ProcessException):
    """A process started by `spawn` ended with an exit code other than 0, or by a signal."""

    def __init__(
        self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self) -> tuple:
        return type(self), (self.msg, self.error_index, self.error_pid, self.exit_code, self.signal_name)


def _run(fn: Any, rank: int, args: tuple, errors: Any) -> None:
    try:
        fn(rank, *args)
    except KeyboardInterrupt:
        pass
    except Exception:
        import traceback

        errors.put(traceback.format_exc())
        sys.exit(1)


class ProcessContext:
    """The processes of one `spawn`."""

    def __init__(self, processes: list, error_queues: list) -> None:
        self.processes, self.error_queues = processes, error_queues
        self.sentinels = {process.sentinel: index for index, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """Their process ids."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Waits until one ends; True once all have. The first failure ends the others, which have
        `grace_period` seconds before they are killed, and is raised here."""
        if not self.sentinels:
            return True
        failed = None
        for sentinel in wait(list(self.sentinels), timeout):
            index = self.sentinels.pop(sentinel)
            self.processes[index].join()
            if self.processes[index].exitcode != 0:
                failed = index
                break
        if failed is None:
            return not self.sentinels
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        for process in self.processes:
            process.join(30 if grace_period is None else grace_period)
            if process.is_alive():
                process.kill()
                process.join()
        self._raise(failed)
        return False

    def _raise(self, index: int) -> None:
        process = self.processes[index]
        if not self.error_queues[index].empty():
            text = self.error_queues[index].get()
            raise ProcessRaisedException(
                f"\n\n-- Process {index} terminated with the following error:\n{text}", index, process.pid
            )
        code = process.exitcode
        if code >= 0:
            raise ProcessExitedException(
                f"process {index} terminated with exit code {code}", index, process.pid, code
            )
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"<Unknown signal {-code}>"
        raise ProcessExitedException(
            f"process {index} terminated with signal {name}", index, process.pid, code, name
        )


class SpawnContext(ProcessContext):
    """The processes of one `spawn`, by its older name."""


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
    processes, errors = [], []
    for rank in range(nprocs):
        queue = context.SimpleQueue()
        process = context.Process(target=_run, args=(fn, rank, args, queue), daemon=daemon)  # type: ignore
        process.start()
        processes.append(process)
        errors.append(queue)
    started = (SpawnContext if start_method == "spawn" else ProcessContext)(processes, errors)
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
    if start_method != "spawn":
        import warnings

        warnings.warn(
            f"This method only supports start_method=spawn (got: {start_method}).\nTo use a different "
            "start_method use:\n\t\t torch.multiprocessing.start_processes(...)",
            FutureWarning,
            stacklevel=2,
        )
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")
