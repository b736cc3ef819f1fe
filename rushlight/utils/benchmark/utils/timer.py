"""Timer: the time that a statement takes."""

from __future__ import annotations

import enum
import time
import timeit as _timeit
from typing import Any

import rushlight
from rushlight.utils.benchmark.utils.common import Measurement, TaskSpec, set_torch_threads

__all__ = ["Language", "Timer", "timer"]

timer = time.perf_counter


class Language(enum.Enum):
    """The language of a statement."""

    PYTHON = 0
    CPP = 1


class Timer:
    """Measures a statement with a number of threads.

    >>> measured = rushlight.utils.benchmark.Timer("x + 1", globals={"x": rushlight.ones(2)}).timeit(10)
    >>> measured.median > 0
    True
    """

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Any = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Any = Language.PYTHON,
    ) -> None:
        if language is not Language.PYTHON and str(language).lower() not in ("python", "py"):
            raise NotImplementedError("Timer: only statements in Python can be measured")
        if global_setup:
            raise ValueError("global_setup is only supported in C++, most likely you wanted `setup`")
        space = {"torch": rushlight, **(globals or {})}
        self._timer = _timeit.Timer(stmt, setup, timer, space)
        self._task_spec = TaskSpec(stmt, setup, "", label, sub_label, description, env, num_threads)

    def _run(self, number: int) -> float:
        with set_torch_threads(self._task_spec.num_threads):
            return self._timer.timeit(number)

    def _measured(self, number: int, times: list[float]) -> Measurement:
        return Measurement(number, times, self._task_spec)

    def timeit(self, number: int = 1000000) -> Measurement:
        """Runs the statement so many times, after a hundredth of that to warm up."""
        self._run(max(number // 100, 2))
        return self._measured(number, [self._run(number)])

    def _block_size(self, least: float) -> int:
        number = 1
        while self._run(number) < least and number < 10**9:
            number *= 10
        return number

    def blocked_autorange(self, callback: Any = None, min_run_time: float = 0.2) -> Measurement:
        """Runs blocks that are long compared with the clock's overhead until min_run_time has passed."""
        number = self._block_size(min_run_time / 1000)
        times: list[float] = []
        while sum(times) < min_run_time:
            times.append(self._run(number))
            if callback is not None:
                callback(number, times[-1])
        return self._measured(number, times)

    def adaptive_autorange(
        self, threshold: float = 0.1, *, min_run_time: float = 0.01, max_run_time: float = 10.0,
        callback: Any = None,
    ) -> Measurement:  # fmt: skip
        """Runs blocks until the quartiles lie within `threshold` of the median."""
        number = self._block_size(min_run_time / 100)
        times: list[float] = []
        while sum(times) < max_run_time:
            times.append(self._run(number))
            if callback is not None:
                callback(number, times[-1])
            measured = self._measured(number, times)
            if sum(times) >= min_run_time and len(times) > 3 and measured.meets_confidence(threshold):
                break
        return self._measured(number, times)

    def collect_callgrind(self, *args: Any, **kwargs: Any) -> Any:
        """Would count instructions with Valgrind."""
        raise NotImplementedError(
            "Timer.collect_callgrind: Rushlight does not count instructions; valgrind --tool=callgrind does"
        )
