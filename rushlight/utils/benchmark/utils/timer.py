"""Timer: the time that a statement takes."""

from __future__ import annotations

import enum
import statistics
import textwrap
import time
import timeit
from collections.abc import Callable
from typing import Any

import rushlight
from rushlight.utils.benchmark.utils.common import Measurement, TaskSpec, set_torch_threads
from rushlight.utils.benchmark.utils.valgrind_wrapper.timer_interface import (
    CopyIfCallgrind,
    collect_callgrind,
)

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

    _timer_cls: Any = timeit.Timer

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Language | str = Language.PYTHON,
    ) -> None:
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language in (Language.CPP, "cpp", "c++"):
            raise NotImplementedError("Timer: only statements in Python can be measured")
        if language not in (Language.PYTHON, "py", "python"):
            raise ValueError(f"Invalid language `{language}`.")
        if global_setup:
            raise ValueError(
                f"global_setup is C++ only, got `{global_setup}`. Most likely this code can simply be moved "
                "to `setup`."
            )
        # The statement that is given knows the package, and is given as a block of a program may be.
        self._globals = dict(globals or {})
        stmt, setup = (textwrap.dedent(text).strip() for text in (stmt, setup))
        space = {"torch": rushlight, **CopyIfCallgrind.unwrap_all(self._globals)}
        self._timer = self._timer_cls(stmt=stmt, setup=setup, timer=timer, globals=space)
        self._task_spec = TaskSpec(stmt, setup, "", label, sub_label, description, env, num_threads)

    def _timeit(self, number: int) -> float:
        # Where the clock did not move, as little as it can tell.
        return max(self._timer.timeit(number), 1e-9)

    def timeit(self, number: int = 1000000) -> Measurement:
        """Runs the statement so many times, after a hundredth of that to warm up."""
        with set_torch_threads(self._task_spec.num_threads):
            self._timeit(max(int(number // 100), 2))
            return Measurement(number, [self._timeit(number)], self._task_spec)

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        """Not as in Python's timeit."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Any = None) -> None:
        """Not as in Python's timeit."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _estimate_block_size(self, min_run_time: float) -> int:
        """So many runs that the loop around them and the clock cost next to nothing."""
        with set_torch_threads(self._task_spec.num_threads):
            overhead = statistics.median([self._timeit(0) for _ in range(5)])
            number = 1
            while True:
                taken = self._timeit(number)
                if (overhead / taken <= 1e-4 and taken >= min_run_time / 1000) or taken > min_run_time:
                    return number
                number *= 10

    def _measure(
        self, number: int, stop: Callable[[list[float]], bool], least: float, most: float | None,
        callback: Callable[[int, float], Any] | None,
    ) -> Measurement:  # fmt: skip
        """Blocks until `stop` accepts their times and the least time has passed, or the most."""
        times: list[float] = []
        total, enough = 0.0, False
        with set_torch_threads(self._task_spec.num_threads):
            while total < least or not enough:
                times.append(self._timeit(number))
                total += times[-1]
                if callback is not None:
                    callback(number, times[-1])
                enough = stop(times)
                if most and total > most:
                    break
        return Measurement(number, times, self._task_spec)

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Runs blocks that are long compared with the clock's overhead until min_run_time has passed."""
        number = self._estimate_block_size(min_run_time)
        return self._measure(number, lambda times: True, min_run_time, None, callback)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:
        """Runs blocks until the quartiles lie within `threshold` of the median."""
        number = self._estimate_block_size(0.05)

        def steady(times: list[float]) -> bool:
            return len(times) > 3 and Measurement(number, times, self._task_spec).meets_confidence(threshold)

        return self._measure(number, steady, min_run_time, max_run_time, callback)

    def collect_callgrind(
        self,
        number: int = 100,
        *,
        repeats: int | None = None,
        collect_baseline: bool = True,
        retain_out_file: bool = False,
    ) -> Any:
        """Counts the instructions of so many runs, with Valgrind; a tuple of counts if `repeats` is given."""
        result = collect_callgrind(
            self._task_spec,
            self._globals,
            number=number,
            repeats=repeats or 1,
            collect_baseline=collect_baseline,
            retain_out_file=retain_out_file,
        )
        return result[0] if repeats is None else result
