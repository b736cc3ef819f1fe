"""What is measured (TaskSpec), the times (Measurement), and how times are written."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import statistics
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

import rushlight

__all__ = [
    "Measurement", "TaskSpec", "ordered_unique", "select_unit", "set_torch_threads", "trim_sigfig",
    "unit_to_english",
]  # fmt: skip

_UNITS = (("s", 1.0, "second"), ("ms", 1e-3, "millisecond"), ("us", 1e-6, "microsecond"))
_NANO = ("ns", 1e-9, "nanosecond")
_MOST_FIGURES = 4
LINE_WIDTH = 80  # of tables
_SHORTEST = 25e-9  # what a clock can tell apart
_VARIES, _VARIES_MUCH = 0.1, 0.25  # quartiles this far apart, relative to the median


@dataclasses.dataclass(init=True, repr=False, eq=True, frozen=True)
class TaskSpec:
    """A statement, and under which names it stands in tables."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label or the statement, with the sub-label."""
        if self.label is not None:
            return self.label + (f": {self.sub_label}" if self.sub_label else "")
        if "\n" not in self.stmt:
            return self.stmt + (f": {self.sub_label}" if self.sub_label else "")
        heading = f"stmt:{f' ({self.sub_label})' if self.sub_label else ''}"
        return f"{heading}\n{textwrap.indent(self.stmt, '  ')}"

    def setup_str(self) -> str:
        """The set-up, if there is one."""
        if self.setup == "pass" or not self.setup:
            return ""
        return (
            f"setup:\n{textwrap.indent(self.setup, '  ')}\n" if "\n" in self.setup else f"setup: {self.setup}"
        )

    def summarize(self) -> str:
        """What was measured, in a few lines."""
        parts = [self.title, self.description or "", self.setup_str()]
        if "\n" in self.stmt and self.label is None:
            parts[0] += "\n"
        return "\n".join(part for part in parts if part)


_SPEC = frozenset(field.name for field in dataclasses.fields(TaskSpec))


@dataclasses.dataclass(repr=False)
class Measurement:
    """The times of a measurement, in seconds per run of the statement."""

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None  # the caller's own

    def __getattr__(self, name: str) -> Any:
        if name in _SPEC:  # the spec's fields count as the measurement's
            return getattr(self.task_spec, name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

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

    def _quartiles(self) -> tuple[float, float]:
        if len(self.times) < 2:
            return self.times[0], self.times[0]
        first, _, third = statistics.quantiles(self.times, n=4, method="inclusive")
        return first, third

    @property
    def iqr(self) -> float:
        """The distance between the quartiles."""
        first, third = self._quartiles()
        return third - first

    @property
    def significant_figures(self) -> int:
        """How many figures of the median mean something, from 1 to 4."""
        ordered = sorted(self.times)
        middle = ordered[len(ordered) // 4 : math.ceil(3 * len(ordered) / 4)]
        spread = statistics.pstdev(middle) / math.sqrt(len(middle))
        interval = max(1.645 * spread, _SHORTEST)
        return min(max(math.floor(math.log10(self.median) - math.log10(interval)), 1), _MOST_FIGURES)

    @property
    def has_warnings(self) -> bool:
        """Whether the times vary much."""
        return len(self.times) >= 4 and self.iqr / self.median >= _VARIES

    def meets_confidence(self, threshold: float = _VARIES) -> bool:
        """Whether the quartiles lie within the threshold, relative to the median."""
        return self.iqr / self.median < threshold

    @property
    def title(self) -> str:
        """The label or the statement, with the sub-label."""
        return self.task_spec.title

    @property
    def env(self) -> str | None:
        """The environment this was measured in, where tables compare several."""
        return self.task_spec.env

    @property
    def as_row_name(self) -> str:
        """The name of the row in a table."""
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """One measurement for each task."""
        groups: dict[TaskSpec, list[Measurement]] = {}
        for each in measurements:
            groups.setdefault(each.task_spec, []).append(each)
        return [
            Measurement(1, [time for each in group for time in each.times], spec)
            for spec, group in groups.items()
        ]

    def __repr__(self) -> str:
        unit, scale = select_unit(self.median)
        count = len(self.times)
        lines = [object.__repr__(self).replace("rushlight.", "torch."), self.task_spec.summarize()]
        shown = f"{self.median / scale:.2f} {unit}"
        lines.append(f"  {shown}" if count == 1 else f"  Median: {shown}")
        if count >= 4:
            first, third = (each / scale for each in self._quartiles())
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({first:.2f} to {third:.2f})")
        threads = f"{self.num_threads} thread{'s' if self.num_threads > 1 else ''}"
        runs = f"{self.number_per_run} runs {'per measurement' if count > 1 else ''}"
        lines.append(f"  {count} measurement{'s' if count > 1 else ''}, {runs}, {threads}")
        if self.has_warnings:
            much = self.iqr / self.median >= _VARIES_MUCH
            lines.append(
                f"  WARNING: Interquartile range is {self.iqr / self.median * 100:.1f}% of the median "
                "measurement.\n           This "
                + (
                    "suggests significant environmental influence."
                    if much
                    else "could indicate system fluctuation."
                )
            )
        return "\n".join(lines)


def select_unit(t: float) -> tuple[str, float]:
    """The unit that suits a time, and its length.

    >>> rushlight.utils.benchmark.select_unit(2e-5)
    ('us', 1e-06)
    """
    unit, scale, _ = next((each for each in _UNITS if t >= each[1]), _NANO)
    return unit, scale


def unit_to_english(u: str) -> str:
    """The word for a unit."""
    return {unit: word for unit, _, word in (*_UNITS, _NANO)}[u]


def trim_sigfig(x: float, n: int) -> float:
    """A number with so many figures."""
    magnitude = math.ceil(math.log10(abs(x))) if x else 0
    scale = 10.0 ** (magnitude - n)
    return float(round(x / scale) * scale)


def ordered_unique(elements: Iterable) -> list:
    """The elements, each once, in their order."""
    return list(dict.fromkeys(elements))


@contextlib.contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """Inside the block, computations use so many threads."""
    before = rushlight.get_num_threads()
    rushlight.set_num_threads(n)
    try:
        yield
    finally:
        rushlight.set_num_threads(before)
