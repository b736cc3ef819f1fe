"""The profiler as it was before torch had another one: the same measurements, fewer settings."""

from __future__ import annotations

import warnings
from typing import Any

from rushlight._numbered import ProfilerState
from rushlight.autograd.profiler_util import MEMORY_EVENT_NAME, EventList, FunctionEvent, FunctionEventAvg
from rushlight.profiler._config import _ExperimentalConfig
from rushlight.profiler._switches import ProfilerConfig, _disable_profiler_legacy, _enable_profiler_legacy

__all__ = ["profile"]
_UNFINISHED = "<unfinished profiler_legacy.profile>"


class profile:
    """Measures what this thread runs inside; `torch.autograd.profiler.profile` can do more."""

    def __init__(
        self, enabled: bool = True, *, use_cuda: bool = False, record_shapes: bool = False,
        with_flops: bool = False, profile_memory: bool = False, with_stack: bool = False,
        with_modules: bool = False,
    ) -> None:  # fmt: skip
        self.enabled = enabled
        if not enabled:
            return
        if use_cuda:
            warnings.warn("CUDA is not available, disabling CUDA profiling", stacklevel=2)
        self.use_cuda, self.entered = False, False
        self.function_events: EventList | None = None
        self.record_shapes, self.with_flops = record_shapes or with_flops, with_flops
        self.profile_memory, self.with_stack, self.with_modules = profile_memory, with_stack, with_modules
        self.profiler_kind = ProfilerState.CPU

    def config(self) -> ProfilerConfig:
        """What it measures."""
        return ProfilerConfig(
            self.profiler_kind, self.record_shapes, self.profile_memory, self.with_stack, self.with_flops,
            self.with_modules, _ExperimentalConfig(),
        )  # fmt: skip

    def __enter__(self) -> profile | None:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self.entered = True
        self._start_trace()
        return self

    def _start_trace(self) -> None:
        _enable_profiler_legacy(self.config())

    def __exit__(self, *error: object) -> bool | None:
        if not self.enabled:
            return None
        events = _parse_legacy_records(_disable_profiler_legacy())
        options = {"profile_memory": self.profile_memory, "with_flops": self.with_flops}
        self.function_events = EventList(events, **options)
        self.function_events._build_tree()
        return False

    def __repr__(self) -> str:
        return _UNFINISHED if self.function_events is None else repr(self.function_events)

    def __str__(self) -> str:
        return _UNFINISHED if self.function_events is None else str(self.function_events)

    def _check_finish(self) -> EventList:
        if self.function_events is None:
            raise RuntimeError("Profiler didn't finish running")
        return self.function_events

    def table(
        self, sort_by: str | None = None, row_limit: int = 100, max_src_column_width: int = 75,
        max_name_column_width: int = 55, max_shapes_column_width: int = 80, header: str | None = None,
        top_level_events_only: bool = False,
    ) -> str:  # fmt: skip
        """A text table of the events."""
        return self._check_finish().table(
            sort_by, row_limit, max_src_column_width, max_name_column_width, max_shapes_column_width, header,
            top_level_events_only,
        )  # fmt: skip

    def export_chrome_trace(self, path: str) -> None:
        """Writes the events for chrome://tracing and Perfetto."""
        self._check_finish().export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes call stacks with their times for flame graph tools."""
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self._check_finish().export_stacks(path, metric)

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> EventList:
        """One entry per operation; per input shapes or call stack too if asked."""
        return self._check_finish().key_averages(group_by_input_shape, group_by_stack_n)

    def total_average(self) -> FunctionEventAvg:
        """Everything as one entry."""
        return self._check_finish().total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of everything together."""
        return self._check_finish().self_cpu_time_total


def _parse_legacy_records(thread_records: list) -> list[FunctionEvent]:
    """The events that records of beginnings and ends tell of, in the order they began."""
    found: list[FunctionEvent] = []
    for records in thread_records:
        first, begun = records[0], {}
        memory: dict = {}
        for record in records:
            if record.kind() == "push":
                begun[record.handle()], memory[record.handle()] = record, 0
            elif record.kind() == "memory_alloc":
                for handle in memory:
                    memory[handle] += record.cpu_memory_usage()
                if not memory:
                    found.append(
                        _event(
                            len(found), first, record, record, MEMORY_EVENT_NAME, record.cpu_memory_usage()
                        )
                    )
            elif record.kind() == "pop":
                start = begun.pop(record.handle())
                used = memory.pop(record.handle())
                found.append(_event(record.handle(), first, start, record, start.name(), used))
    return sorted(found, key=lambda event: (event.time_range.start, -event.time_range.end))


def _event(number: int, first: Any, start: Any, end: Any, name: str, memory: int) -> FunctionEvent:
    return FunctionEvent(
        number, name, start.thread_id(), first.cpu_elapsed_us(start), first.cpu_elapsed_us(end),
        fwd_thread=start.fwd_thread_id(), input_shapes=start.shapes(), stack=start.stack(),
        scope=start.scope(), cpu_memory_usage=memory, sequence_nr=start.sequence_nr(),
        node_id=start.node_id(), is_legacy=True, flops=start.flops(), trace_name=name,
    )  # fmt: skip
