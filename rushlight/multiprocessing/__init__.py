"""Python's multiprocessing under torch's name: queues, pipes and processes carry tensors by sharing their
memory, so that what one process writes the other sees."""

from __future__ import annotations

import multiprocessing
import sys
from multiprocessing import *

from rushlight.multiprocessing._memory import (
    get_all_sharing_strategies,
    get_sharing_strategy,
    set_sharing_strategy,
)
from rushlight.multiprocessing.reductions import init_reductions
from rushlight.multiprocessing.spawn import (
    ProcessContext,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

# spawn is a function here and a module in sys.modules, as in torch.
__all__ = [
    *multiprocessing.__all__,
    "ProcessContext",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "init_reductions",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]

init_reductions()

_PR_SET_NAME, _PR_GET_NAME = 15, 16


def _set_thread_name(name: str) -> None:
    """The calling thread's name, as `top` and debuggers show it (Linux; 15 bytes of it)."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_NAME, name.encode()[:15], 0, 0, 0)


def _get_thread_name() -> str:
    """The name that `_set_thread_name` gave, or the program's."""
    if sys.platform != "linux":
        return ""
    import ctypes

    name = ctypes.create_string_buffer(16)
    ctypes.CDLL(None).prctl(_PR_GET_NAME, name, 0, 0, 0)
    return name.value.decode(errors="replace")


def _keep_torch_meaning_rushlight() -> None:
    """Under `python -m rushlight`, fresh interpreters that are started must find Rushlight as torch, too."""
    from multiprocessing import spawn as started

    from rushlight._alias import TorchFinder

    if not any(isinstance(finder, TorchFinder) for finder in sys.meta_path):
        return
    plain = started.get_command_line

    def get_command_line(**options):
        line = plain(**options)
        if "-c" in line:
            at = line.index("-c") + 1
            line[at] = f"from rushlight.__main__ import prepare; prepare(); {line[at]}"
        return line

    started.get_command_line = get_command_line
    multiprocessing.set_forkserver_preload(["rushlight.multiprocessing._as_torch"])


_keep_torch_meaning_rushlight()
