"""Timing small pieces of code: Timer, as torch.utils.benchmark has it."""

from __future__ import annotations

import statistics
import time
import timeit as _timeit
from typing import Any

import rushlight

__all__ = ["Measurement", "Timer", "timer"]

timer = time.perf_counter


class Measurement:
    """The times of a measurement, in seconds per run of the statement."""

    def __init__(self, number_per_run: int, raw_times: list[float], **about: Any) -> None:
        self.number_per_run = number_per_run
        self.raw_times = raw_times
        self.about = about

    @property
    def times(self) -> list[float]:
        """Seconds per run."""
        return [each / self.number_per_run for each in self.raw_times]

    @property
    def median(self) -> float:
        """The median of the times."""
        return statistics.median(self.times)

    @property
    def mean(self) -> float:
        """The mean of the times."""
        return statistics.fmean(self.times)

    @property
    def iqr(self) -> float:
        """The distance between the quartiles."""
        if len(self.times) < 2:
            return 0.0
        first, _, third = statistics.quantiles(self.times, n=4, method="inclusive")
        return third - first

    def __repr__(self) -> str:
        scale, unit = next(
            (
                (scale, unit)
                for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"))
                if self.median >= scale
            ),
            (1e-9, "ns"),
        )
        name = self.about.get("label") or self.about.get("stmt", "")
        threads = self.about.get("num_threads", 1)
        return (
            f"<{type(self).__module__}.{type(self).__name__} object>\n{name}\n  Median: "
            f"{self.median / scale:.2f} {unit}\n  IQR:    {self.iqr / scale:.2f} {unit}\n  "
            f"{len(self.times)} measurement{'s' if len(self.times) > 1 else ''}, "
            f"{self.number_per_run} runs per measurement, {threads} thread{'s' if threads > 1 else ''}"
        )


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
        language: str = "python",
    ) -> None:
        if str(getattr(language, "value", language)).lower() not in ("python", "py"):
            raise NotImplementedError("Timer: only statements in Python can be measured")
        if global_setup:
            raise ValueError("global_setup is only supported in C++, most likely you wanted `setup`")
        space = {"torch": rushlight, **(globals or {})}
        self._timer = _timeit.Timer(stmt, setup, timer, space)
        self._about = {
            "stmt": stmt, "label": label, "sub_label": sub_label, "description": description, "env": env,
            "num_threads": num_threads,
        }  # fmt: skip
        self._num_threads = num_threads

    def _run(self, number: int) -> float:
        before = rushlight.get_num_threads()
        rushlight.set_num_threads(self._num_threads)
        try:
            return self._timer.timeit(number)
        finally:
            rushlight.set_num_threads(before)

    def timeit(self, number: int = 1000000) -> Measurement:
        """Runs the statement so many times, after a hundredth of that to warm up."""
        self._run(max(number // 100, 2))
        return Measurement(number, [self._run(number)], **self._about)

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
        return Measurement(number, times, **self._about)

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
            measured = Measurement(number, times, **self._about)
            enough = sum(times) >= min_run_time and len(times) > 3
            if enough and measured.iqr < threshold * measured.median:
                break
        return Measurement(number, times, **self._about)
