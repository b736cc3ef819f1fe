"""Compare: measurements as a table, a row for each statement and a column for each description."""

from __future__ import annotations

import enum
import math
from typing import Any

from rushlight.utils.benchmark.utils.common import (
    Measurement,
    ordered_unique,
    select_unit,
    trim_sigfig,
    unit_to_english,
)

__all__ = ["Colorize", "Compare"]

_BEST, _GOOD, _BAD, _VERY_BAD = "\033[92m", "\033[34m", "\033[2m\033[91m", "\033[31m"
_BOLD, _END = "\033[1m", "\033[0m"


class Colorize(enum.Enum):
    """What a time is compared with to choose its colour."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


class Compare:
    """A table of measurements.

    >>> from rushlight.utils.benchmark import Compare, Measurement, TaskSpec
    >>> task = TaskSpec("x + 1", "pass", label="sums", description="small")
    >>> print(Compare([Measurement(10, [2e-5] * 4, task)]))
    [----- sums -----]
                 |  small
    1 threads: -------
          x + 1  |   2.0
    <BLANKLINE>
    Times are in microseconds (us).
    <BLANKLINE>
    """

    def __init__(self, results: list[Measurement]) -> None:
        self._results: list[Measurement] = []
        self.extend_results(results)
        self._trim = self._warn = False
        self._colors = Colorize.NONE

    def extend_results(self, results: Any) -> None:
        """Adds measurements."""
        for result in results:
            if not isinstance(result, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(result)} instead.")
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        """Leaves out figures that mean nothing."""
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Colours times by how they compare with the best of their column or row."""
        self._colors = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Marks times that vary much."""
        self._warn = True

    def __str__(self) -> str:
        merged = Measurement.merge(self._results)
        labels = ordered_unique(each.label for each in merged)
        return "\n".join(self._table([each for each in merged if each.label == label]) for label in labels)

    def print(self) -> None:
        """Prints the table."""
        print(self)

    def _table(self, results: list[Measurement]) -> str:
        unit, scale = select_unit(min(each.median for each in results))
        several = len({each.env for each in results}) > 1

        def row_name(each: Measurement) -> str:
            return f"  ({each.env})  {each.as_row_name}" if several else f"      {each.as_row_name}"

        cells = {(each.num_threads, row_name(each), each.description or ""): each for each in results}
        rows = sorted(ordered_unique((key[0], key[1]) for key in cells), key=lambda row: row[0])
        columns = ordered_unique(key[2] for key in cells)
        texts: dict[tuple, str] = {}
        for column in columns:
            texts.update(self._column([(row, cells.get((*row, column))) for row in rows], column, scale))
        width = max(len(name) for _, name in rows) + 2
        lines = [" " * width + "|  " + "  |  ".join(self._padded(texts, column, None) for column in columns)]
        total = len(lines[0])
        last = None
        for row in rows:
            if row[0] != last:
                last = row[0]
                heading = f"{last} threads: "
                lines.append(heading + "-" * (total - len(heading)))
            shown = [
                self._colored(self._padded(texts, column, row), cells, row, column) for column in columns
            ]
            lines.append(row[1].ljust(width) + "|  " + "  |  ".join(shown))
        label = f" {results[0].label or ''} "
        text = [f"[{label.center(total - 2, '-')}]", *lines, ""]
        text.append(f"Times are in {unit_to_english(unit)}s ({unit}).")
        if self._warn and any(each.has_warnings for each in results):
            text.append("(! XX%) Measurement has high variance, where XX is the IQR / median * 100.")
        return "\n".join(text) + "\n"

    def _column(self, column: list[tuple], name: str, scale: float) -> dict[tuple, str]:
        present = [each for _, each in column if each is not None]
        digits = [math.floor(math.log10(each.median / scale)) + 1 for each in present]
        decimals = 1
        if self._trim:
            decimals = min(max(m.significant_figures - d, 0) for m, d in zip(present, digits))
        length = max(max(digits), 1) + decimals + (1 if decimals else 0)
        texts = {(name, None): name}
        for row, each in column:
            if each is None:
                texts[name, row] = ""
                continue
            value = each.median / scale
            if self._trim:
                value = trim_sigfig(value, each.significant_figures)
            mark = ""
            if self._warn and any(other.has_warnings for other in present):
                share = f" (! {each.iqr / each.median * 100:.0f}%)" if each.has_warnings else ""
                mark = share.rjust(7)
            texts[name, row] = f"{value:>{length}.{decimals}f}{mark}"
        return texts

    def _padded(self, texts: dict[tuple, str], column: str, row: Any) -> str:
        width = max(len(text) for (name, _), text in texts.items() if name == column)
        return texts[column, row].center(width)

    def _colored(self, text: str, cells: dict, row: tuple, column: str) -> str:
        each = cells.get((*row, column))
        if self._colors is Colorize.NONE or each is None:
            return text
        rowwise = self._colors is Colorize.ROWWISE
        rivals = [
            other.median for key, other in cells.items()
            if key[0] == row[0] and (key[1] == row[1] if rowwise else key[2] == column)
        ]  # fmt: skip
        best = min(rivals)
        if each.median <= best * 1.01 or each.median <= best + 100e-9:
            return f"{_BEST}{_BOLD}{text}{_END}{_END}"
        if each.median <= best * 1.1:
            return f"{_GOOD}{_BOLD}{text}{_END}{_END}"
        if each.median >= best * 5:
            return f"{_VERY_BAD}{_BOLD}{text}{_END}{_END}"
        return f"{_BAD}{text}{_END}{_END}" if each.median >= best * 2 else text
