"""Which operations a program spends its time and memory on.

`profile` measures what runs inside it: every operation, every derivative the engine runs and every block
named with `record_function`. The events know what they ran inside of, so the time of a block without that of
its parts (`self_cpu_time_total`) can be told. Measuring itself is native (native/python/profiler.cpp).
"""

from __future__ import annotations

import functools
import json
from typing import Any

from rushlight import _C

__all__ = ["profile", "record_function", "EventList", "FunctionEvent", "FunctionEventAvg", "Interval"]


class Interval:
    """When something ran, in microseconds."""

    def __init__(self, start: float, end: float) -> None:
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        """How long it took."""
        return self.end - self.start


class _Times:
    """What events and averages have in common."""

    key: str
    count: int
    cpu_time_total: Any
    self_cpu_time_total: Any

    @property
    def cpu_time(self) -> float:
        """Microseconds per call."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def cpu_time_str(self) -> str:
        """The same as text."""
        return _time_text(self.cpu_time)

    @property
    def cpu_time_total_str(self) -> str:
        """All calls together, as text."""
        return _time_text(self.cpu_time_total)

    @property
    def self_cpu_time_total_str(self) -> str:
        """All calls together without what they called, as text."""
        return _time_text(self.self_cpu_time_total)


class FunctionEvent(_Times):
    """One operation that ran."""

    count = 1

    def __init__(self, id: int, name: str, start: float, end: float, memory: int, thread: int, shapes: Any):
        self.id, self.name, self.key = id, name, name
        self.time_range = Interval(start, end)
        self.cpu_memory_usage = memory
        self.thread = thread
        self.input_shapes = shapes or []
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None

    @property
    def cpu_time_total(self) -> float:
        """Microseconds."""
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds without what it called."""
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
        """Bytes that it left allocated, without what it called."""
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} cpu_time={self.cpu_time_str} "
            f"cpu_start_us={self.time_range.start} cpu_end_us={self.time_range.end} thread={self.thread} "
            f"input_shapes={self.input_shapes}>"
        )


class FunctionEventAvg(_Times):
    """All events of one name (and, if asked, of the same input shapes) together."""

    def __init__(self, key: str, shapes: Any = None) -> None:
        self.key, self.input_shapes = key, shapes
        self.count = 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0

    def add(self, event: FunctionEvent) -> None:
        """Counts an event in."""
        self.count += 1
        # A function inside itself is not counted twice.
        parent = event.cpu_parent
        while parent is not None and parent.name != event.name:
            parent = parent.cpu_parent
        if parent is None:
            self.cpu_time_total += event.cpu_time_total
            self.cpu_memory_usage += event.cpu_memory_usage
        self.self_cpu_time_total += event.self_cpu_time_total
        self.self_cpu_memory_usage += event.self_cpu_memory_usage

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str} count={self.count} input_shapes={self.input_shapes}>"
        )


class EventList(list):
    """Events, or averages of events, that can be summed up, shown and exported."""

    def __init__(self, events: Any = (), profile_memory: bool = False, with_shapes: bool = False) -> None:
        super().__init__(events)
        self._profile_memory, self._with_shapes = profile_memory, with_shapes

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of everything together."""
        return sum(event.self_cpu_time_total for event in self)

    def key_averages(self, group_by_input_shape: bool = False, **ignored: Any) -> EventList:
        """One entry per name, and per input shapes if asked."""
        table: dict = {}
        for event in self:
            shapes = repr(event.input_shapes) if group_by_input_shape else None
            key = (event.name, shapes)
            if key not in table:
                table[key] = FunctionEventAvg(event.name, event.input_shapes if shapes else None)
            table[key].add(event)
        return EventList(table.values(), self._profile_memory, group_by_input_shape)

    def total_average(self) -> FunctionEventAvg:
        """Everything as one entry."""
        total = FunctionEventAvg("Total")
        for event in self:
            total.count += event.count
            total.cpu_time_total += event.self_cpu_time_total
            total.self_cpu_time_total += event.self_cpu_time_total
            total.self_cpu_memory_usage += event.self_cpu_memory_usage
            total.cpu_memory_usage += event.self_cpu_memory_usage
        return total

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """A text table: name, share of the time, times, memory if measured, calls.

        >>> with rushlight.autograd.profiler.profile() as measured:
        ...     _ = rushlight.ones(2) * 2
        >>> print(measured.key_averages().table(sort_by="cpu_time_total").splitlines()[1].split()[0])
        Name
        """
        rows = list(self)
        if sort_by is not None:
            rows.sort(key=lambda event: getattr(event, sort_by), reverse=True)
        if top_level_events_only:
            rows = [event for event in rows if getattr(event, "cpu_parent", None) is None]
        total = sum(event.self_cpu_time_total for event in self) or 1.0
        titles = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
        if self._profile_memory:
            titles += ["CPU Mem", "Self CPU Mem"]
        titles.append("# of Calls")
        if self._with_shapes:
            titles.append("Input Shapes")
        lines = []
        for event in rows[:row_limit] if row_limit >= 0 else rows:
            line = [
                _shortened(event.key, max_name_column_width),
                f"{event.self_cpu_time_total * 100 / total:.2f}%",
                event.self_cpu_time_total_str,
                f"{event.cpu_time_total * 100 / total:.2f}%",
                event.cpu_time_total_str,
                event.cpu_time_str,
            ]
            if self._profile_memory:
                line += [_memory_text(event.cpu_memory_usage), _memory_text(event.self_cpu_memory_usage)]
            line.append(str(event.count))
            if self._with_shapes:
                line.append(_shortened(str(event.input_shapes), max_shapes_column_width))
            lines.append(line)
        widths = [max(len(row[i]) for row in [titles, *lines]) for i in range(len(titles))]
        rule = "  ".join("-" * width for width in widths)

        def text(row):
            return "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))

        shown = [rule, text(titles), rule, *map(text, lines), rule]
        if header is not None:
            shown.insert(0, header)
        return "\n".join([*shown, f"Self CPU time total: {_time_text(self.self_cpu_time_total)}", ""])

    def __str__(self) -> str:
        return self.table()

    def export_chrome_trace(self, path: str) -> None:
        """Writes the events for chrome://tracing and Perfetto."""
        events = [
            {
                "name": event.name,
                "ph": "X",
                "ts": event.time_range.start,
                "dur": event.time_range.elapsed_us(),
                "tid": event.thread,
                "pid": "CPU functions",
                "args": {"Input Dims": [list(shape) for shape in event.input_shapes]},
            }
            for event in self
        ]
        with open(path, "w") as file:
            json.dump({"schemaVersion": 1, "traceEvents": events}, file)


def _time_text(microseconds: float) -> str:
    if microseconds >= 1e6:
        return f"{microseconds / 1e6:.3f}s"
    if microseconds >= 1e3:
        return f"{microseconds / 1e3:.3f}ms"
    return f"{microseconds:.3f}us"


def _memory_text(size: int) -> str:
    for unit, name in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")):
        if abs(size) >= unit:
            return f"{size / unit:.2f} {name}"
    return f"{size} B"


def _shortened(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def _as_events(raw: list) -> list[FunctionEvent]:
    first = raw[0][1] if raw else 0
    events: list[FunctionEvent] = []
    for index, (name, start, end, memory, parent, thread, shapes) in enumerate(raw):
        event = FunctionEvent(index, name, (start - first) / 1e3, (end - first) / 1e3, memory, thread, shapes)
        if parent >= 0:
            event.cpu_parent = events[parent]
            events[parent].cpu_children.append(event)
        events.append(event)
    return events


class profile:
    """Measures what runs inside; afterwards `key_averages()`, `table()` and the events tell.

    >>> with rushlight.autograd.profiler.profile() as measured:
    ...     _ = rushlight.ones(2).exp()
    >>> [event.name for event in measured.function_events]
    ['aten::exp']
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cpu: bool = True,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
    ) -> None:
        for name, wanted in (("use_device", use_device), ("with_flops", with_flops),
                             ("with_stack", with_stack), ("with_modules", with_modules)):  # fmt: skip
            if wanted:
                raise NotImplementedError(
                    f"profile({name}={wanted!r}): Rushlight's profiler does not measure that"
                )
        self.enabled = enabled
        self.record_shapes, self.profile_memory = record_shapes, profile_memory
        self.function_events: EventList | None = None

    def __enter__(self) -> profile | None:
        if not self.enabled:
            return None
        if self.function_events is not None:
            raise RuntimeError("Profiler context manager is not reentrant")
        _C.profiler_start(self.record_shapes)
        return self

    def __exit__(self, *error: object) -> None:
        if self.enabled:
            events = _as_events(_C.profiler_stop())
            self.function_events = EventList(events, self.profile_memory)

    def _events(self) -> EventList:
        if self.function_events is None:
            raise RuntimeError("Profiler didn't finish running")
        return self.function_events

    def key_averages(self, group_by_input_shape: bool = False, **ignored: Any) -> EventList:
        """One entry per operation."""
        return self._events().key_averages(group_by_input_shape)

    def total_average(self) -> FunctionEventAvg:
        """Everything as one entry."""
        return self._events().total_average()

    def table(self, *args: Any, **kwargs: Any) -> str:
        """A text table of the events."""
        return self._events().table(*args, **kwargs)

    def export_chrome_trace(self, path: str) -> None:
        """Writes the events for chrome://tracing and Perfetto."""
        self._events().export_chrome_trace(path)

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of everything together."""
        return self._events().self_cpu_time_total

    def __str__(self) -> str:
        return "<unfinished torch.autograd.profile>" if self.function_events is None else self.table()

    def __repr__(self) -> str:
        return str(self)


class record_function:
    """Gives the code inside a name in the profile; also a decorator.

    >>> with rushlight.autograd.profiler.profile() as measured:
    ...     with rushlight.autograd.profiler.record_function("step"):
    ...         _ = rushlight.ones(2) + 1
    >>> [event.name for event in measured.function_events]
    ['step', 'aten::add']
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args

    def __enter__(self) -> record_function:
        self._event = _C.profiler_begin(self.name)
        return self

    def __exit__(self, *error: object) -> None:
        _C.profiler_end(self._event)

    def __call__(self, function: Any) -> Any:
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return wrapper
