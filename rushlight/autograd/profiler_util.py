"""Events of a profile: what ran, what it ran inside of, sums over them, tables, exports."""

from __future__ import annotations

import json
import warnings
from collections import defaultdict
from typing import Any, NamedTuple

from rushlight._numbered import DeviceType, RecordScope
from rushlight._warn import warn
from rushlight.autograd._profile_metadata import (  # noqa: F401  (programs import them from here)
    _EVENT_METADATA_KEYS,
    EventMetadata,
    _build_metadata,
    _to_bool,
    _to_str,
)
from rushlight.autograd._profile_table import (  # noqa: F401
    _build_table,
    _format_memory,
    _format_time,
    _format_time_share,
)

__all__ = ["EventList", "EventMetadata", "FormattedTimesMixin", "FunctionEvent", "FunctionEventAvg",
           "Interval", "Kernel", "MemRecordsAcc", "StringTable"]  # fmt: skip

MEMORY_EVENT_NAME = "[memory]"
OUT_OF_MEMORY_EVENT_NAME = "[OutOfMemory]"


class Interval:
    """When something ran, in microseconds."""

    def __init__(self, start: float, end: float) -> None:
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        """How long it took."""
        return self.end - self.start


class Kernel(NamedTuple):
    """Something that an accelerator ran for an event."""

    name: str
    device: int
    duration: float


class StringTable(defaultdict):
    """Names of functions as they are shown."""

    def __missing__(self, key: str) -> str:
        self[key] = key
        return key


# Questions to a tensor that torch's TorchScript notes as operations, and the profiler's own ranges.
_NOT_SHOWN = (
    MEMORY_EVENT_NAME, OUT_OF_MEMORY_EVENT_NAME, "profiler::_record_function_enter",
    "profiler::_record_function_enter_new", "profiler::_record_function_exit", "aten::is_leaf",
    "aten::output_nr", "aten::_version",
)  # fmt: skip


def _filter_name(name: str) -> bool:
    """Whether an event of this name is left out of the list."""
    return name in _NOT_SHOWN


def _rewrite_name(name: str, with_wildcard: bool = False) -> str:
    """The name under which an event is listed; all steps of a training loop are one with a wildcard."""
    return "ProfilerStep*" if with_wildcard and name.startswith("ProfilerStep#") else name


def _filter_stack_entry(entry: str) -> bool:
    """Whether a line of a call stack is worth showing: not those of backward itself."""
    hidden = (
        ("autograd/__init__", "_make_grads"),
        ("autograd/__init__", "backward"),
        ("torch/tensor", "backward"),
    )
    return not any(where in entry and name in entry for where, name in hidden)


class MemRecordsAcc:
    """Records of memory by the time at which they were made, for asking what lies in an interval."""

    def __init__(self, mem_records: Any) -> None:
        self._records = sorted(mem_records, key=lambda record: record[0].start_ns())

    def in_interval(self, start_ns: int, end_ns: int) -> Any:
        """Those from `start_ns` up to `end_ns`."""
        return (record for record in self._records if start_ns <= record[0].start_ns() <= end_ns)


def _attr_formatter(name: str) -> property:
    return property(lambda self: _format_time(getattr(self, name)))


class FormattedTimesMixin:
    """What events and sums of events have in common: times per call, and times as text."""

    count: int
    cpu_time_total: Any
    device_time_total: Any

    cpu_time_str = _attr_formatter("cpu_time")
    device_time_str = _attr_formatter("device_time")
    cpu_time_total_str = _attr_formatter("cpu_time_total")
    device_time_total_str = _attr_formatter("device_time_total")
    self_cpu_time_total_str = _attr_formatter("self_cpu_time_total")
    self_device_time_total_str = _attr_formatter("self_device_time_total")

    @property
    def cpu_time(self) -> float:
        """Microseconds per call."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        """Microseconds per call on an accelerator."""
        return self.device_time_total / self.count if self.count else 0.0

    @property
    def cuda_time(self) -> float:
        """`device_time` under its older name."""
        _say_deprecated("`cuda_time` is deprecated, please use `device_time` instead.")
        return self.device_time


def _say_deprecated(text: str) -> None:
    warnings.warn(text, FutureWarning, stacklevel=3)


def _older_name(name: str) -> property:
    now = name.replace("cuda", "device")

    def older(self: Any) -> Any:
        _say_deprecated(f"`{name}` is deprecated. Use `{now}` instead.")
        return getattr(self, now)

    return property(older, doc=f"`{now}` under its older name.")


class FunctionEvent(FormattedTimesMixin):
    """One operation that ran, one derivative, or one block that was given a name."""

    def __init__(
        self, id: int, name: str, thread: int, start_us: float, end_us: float,
        overload_name: str | None = None, fwd_thread: int | None = None, input_shapes: Any = None,
        stack: Any = None, scope: int = 0, use_device: str | None = None, cpu_memory_usage: int = 0,
        device_memory_usage: int = 0, is_async: bool = False, is_remote: bool = False, sequence_nr: int = -1,
        node_id: int = -1, device_type: Any = DeviceType.CPU, device_index: int = 0,
        device_resource_id: int | None = None, is_legacy: bool = False, flops: int | None = None,
        trace_name: str | None = None, concrete_inputs: Any = None, kwinputs: Any = None,
        is_user_annotation: bool = False, is_python_function: bool = False, activity_type: str | None = None,
        metadata_json: str | None = None, flow_id: int | None = None, flow_type: int | None = None,
        flow_start: bool | None = None, external_id: int = 0, linked_correlation_id: int = 0,
        extra_meta: Any = None, structured_input_shapes: Any = None, structured_input_strides: Any = None,
        input_dtypes: Any = None, python_id: int = -1, python_parent_id: int = -1, python_module_id: int = -1,
    ) -> None:  # fmt: skip
        self.id, self.name, self.thread = id, name, thread
        self.overload_name, self.fwd_thread = overload_name, fwd_thread
        self.time_range = Interval(start_us, end_us)
        self.input_shapes, self.stack, self.scope = input_shapes, stack, scope
        self.use_device, self.device_type, self.device_index = use_device, device_type, device_index
        self.device_resource_id = thread if device_resource_id is None else device_resource_id
        self.cpu_memory_usage, self.device_memory_usage = cpu_memory_usage, device_memory_usage
        self.is_async, self.is_remote, self.is_legacy = is_async, is_remote, is_legacy
        self.sequence_nr, self.node_id, self.flops = sequence_nr, node_id, flops
        self.trace_name = trace_name
        self.concrete_inputs, self.kwinputs = concrete_inputs, kwinputs
        self.is_user_annotation, self.is_python_function = is_user_annotation, is_python_function
        self.activity_type, self._metadata_json = activity_type, metadata_json
        # An arrow leads from an operation to its derivative: both have the same flow.
        self.flow_id, self.flow_type, self.flow_start = flow_id, flow_type, flow_start
        self.external_id, self.linked_correlation_id = external_id, linked_correlation_id
        self.event_metadata = _build_metadata(extra_meta) if extra_meta else None
        self.structured_input_shapes = structured_input_shapes
        self.structured_input_strides, self.input_dtypes = structured_input_strides, input_dtypes
        self.python_id, self.python_parent_id, self.python_module_id = (
            python_id, python_parent_id, python_module_id,
        )  # fmt: skip
        self.count = 1
        self.kernels: list[Kernel] = []
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None

    @property
    def metadata_json(self) -> str | None:
        """What Kineto tells besides, as text: nothing, unless who made the event knew."""
        warn("`metadata_json` is deprecated. Use `event_metadata` instead.", FutureWarning)
        return self._metadata_json

    def append_kernel(self, name: str, device: int, duration: float) -> None:
        """Adds what an accelerator ran for this event."""
        self.kernels.append(Kernel(name, device, duration))

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """Adds an event that ran inside this one."""
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        """Says what this ran inside of."""
        self.cpu_parent = parent

    @property
    def key(self) -> str:
        """What it is counted under."""
        return self.name

    @property
    def cpu_time_total(self) -> float:
        """Microseconds."""
        return self.time_range.elapsed_us() if self.device_type is DeviceType.CPU else 0

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds without what ran inside it."""
        if self.is_async or self.device_type is not DeviceType.CPU:
            return 0
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def device_time_total(self) -> float:
        """Microseconds on an accelerator, with what ran inside it."""
        if self.is_async or not self.use_device:
            return 0
        own = sum(kernel.duration for kernel in self.kernels)
        return own + sum(child.device_time_total for child in self.cpu_children)

    @property
    def self_device_time_total(self) -> float:
        """Microseconds on an accelerator."""
        return self.device_time_total - sum(child.device_time_total for child in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
        """Bytes that it left allocated, without what ran inside it."""
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)

    @property
    def self_device_memory_usage(self) -> int:
        """The same on an accelerator."""
        return self.device_memory_usage - sum(child.device_memory_usage for child in self.cpu_children)

    cuda_time_total = _older_name("cuda_time_total")
    self_cuda_time_total = _older_name("self_cuda_time_total")
    self_cuda_memory_usage = _older_name("self_cuda_memory_usage")

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} overload_name={self.overload_name} "
            f"device_type={self.device_type} node_id={self.node_id} cpu_time={self.cpu_time_str} "
            f"start_us={self.time_range.start} end_us={self.time_range.end} "
            f"cpu_children={[child.id for child in self.cpu_children]} {self.use_device}_time="
            f"{self.device_time_str} name={self.name} thread={self.thread} "
            f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage} "
            f"{self.use_device}_memory_usage={self.device_memory_usage} is_async={self.is_async} "
            f"is_remote={self.is_remote} seq_nr={self.sequence_nr} is_legacy={self.is_legacy}>"
        )


class FunctionEventAvg(FormattedTimesMixin):
    """Events of one name (and, if asked, of the same input shapes or call sites) together."""

    def __init__(self) -> None:
        self.key: str | None = None
        self.overload_name: str | None = None
        self.count = self.node_id = 0
        self.is_async = self.is_remote = self.is_legacy = self.is_user_annotation = False
        self.use_device: str | None = None
        self.cpu_time_total: float = 0
        self.self_cpu_time_total: float = 0
        self.device_time_total: float = 0
        self.self_device_time_total: float = 0
        self.input_shapes: Any = None
        self.stack: Any = None
        self.scope: int | None = None
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0
        self.device_memory_usage = self.self_device_memory_usage = 0
        self.cpu_children: list[FunctionEvent] | None = None
        self.cpu_parent: FunctionEvent | None = None
        self.device_type: Any = DeviceType.CPU
        self.flops = 0

    def add(self, other: Any) -> FunctionEventAvg:
        """Counts an event, or another sum of the same events, in."""
        if not isinstance(other, (FunctionEvent, FunctionEventAvg)):
            raise AssertionError("Expected other to be a FunctionEvent or FunctionEventAvg")
        if self.key is None:
            self.key, self.overload_name, self.node_id = other.key, other.overload_name, other.node_id
            self.is_async, self.is_remote, self.is_legacy = other.is_async, other.is_remote, other.is_legacy
            self.cpu_parent, self.cpu_children = other.cpu_parent, other.cpu_children
            self.input_shapes, self.stack, self.scope = other.input_shapes, other.stack, other.scope
            self.device_type, self.use_device = other.device_type, other.use_device
            self.is_user_annotation = other.is_user_annotation
        if other.key != self.key:
            raise AssertionError(f"Expected keys to match, but got {other.key} vs {self.key}")
        # A function inside itself is not counted twice.
        outer = other.cpu_parent if isinstance(other, FunctionEvent) else None
        while outer is not None and outer.name != other.key:
            outer = outer.cpu_parent
        if outer is None:
            self.cpu_time_total += other.cpu_time_total
            self.device_time_total += other.device_time_total
            self.cpu_memory_usage += other.cpu_memory_usage
            self.device_memory_usage += other.device_memory_usage
        self.self_cpu_time_total += other.self_cpu_time_total
        self.self_device_time_total += other.self_device_time_total
        self.self_cpu_memory_usage += other.self_cpu_memory_usage
        self.self_device_memory_usage += other.self_device_memory_usage
        self.count += other.count
        self.flops += other.flops or 0
        return self

    def __iadd__(self, other: Any) -> FunctionEventAvg:
        return self.add(other)

    def __repr__(self) -> str:
        device = self.use_device or "cuda"
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str}  self_{device}_time={self.self_device_time_total_str} "
            f"{device}_time={self.device_time_str} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} {device}_memory_usage={self.device_memory_usage}>"
        )


_OF_ARGUMENTS = "input_shapes", "structured_input_shapes", "structured_input_strides", "input_dtypes"


def _derivative_around(event: FunctionEvent | None) -> FunctionEvent | None:
    while event is not None and event.scope != RecordScope.BACKWARD_FUNCTION.value:
        event = event.cpu_parent
    return event


class EventList(list):
    """Events, or sums of events, that can be summed up, shown and exported."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._profile_memory = kwargs.pop("profile_memory", False)
        self._with_flops = kwargs.pop("with_flops", False)
        self._use_device = kwargs.pop("use_device", None)
        self._metadata: dict = kwargs.pop("metadata", {})
        self._tree_built = kwargs.pop("tree_built", False)
        super().__init__(*args, **kwargs)

    def _build_tree(self) -> None:
        self._populate_cpu_children()
        self._remove_dup_nodes()
        self._set_backward_stacktraces()
        self._tree_built = True

    def _populate_cpu_children(self) -> None:
        """Finds what each event ran inside of by their times, thread by thread."""
        threads: dict = defaultdict(list)
        for event in self:
            if not event.is_async and event.device_type is DeviceType.CPU:
                threads[event.thread, event.node_id].append(event)
        for events in threads.values():
            around: list[FunctionEvent] = []
            for event in sorted(events, key=lambda e: (e.time_range.start, -e.time_range.end)):
                # What ends before it does not hold it, nor anything that comes later.
                while around and (
                    around[-1].time_range.end <= event.time_range.start
                    or around[-1].time_range.end < event.time_range.end
                ):
                    around.pop()
                if around:
                    around[-1].append_cpu_child(event)
                    event.set_cpu_parent(around[-1])
                around.append(event)

    def _remove_dup_nodes(self) -> None:
        """An event whose only part has its own name is that part: one of them goes."""
        gone: set[int] = set()
        for event in list(self):
            if id(event) in gone:
                continue
            while len(event.cpu_children) == 1 and event.cpu_children[0].name == event.name:
                child = event.cpu_children[0]
                gone.add(id(child))
                event.cpu_children = child.cpu_children
                event.sequence_nr = max(event.sequence_nr, child.sequence_nr)
                for told in _OF_ARGUMENTS:  # it knows its overload
                    setattr(event, told, getattr(child, told) or getattr(event, told))
                event.flops = event.flops or child.flops
                for inner in event.cpu_children:
                    inner.set_cpu_parent(event)
        self[:] = [event for event in self if id(event) not in gone]

    def _set_backward_stacktraces(self) -> None:
        """What runs in a derivative was called where the operation was that it is the derivative of."""
        derivatives = [(event, _derivative_around(event)) for event in self]
        stacks: dict[tuple, Any] = {}
        for event, derivative in derivatives:
            if derivative is None and event.stack is not None:
                stacks.setdefault((event.sequence_nr, event.thread), event.stack)
        for event, derivative in derivatives:
            if derivative is not None:
                if derivative.fwd_thread is None:
                    raise AssertionError("Expected fwd_thread to be set for backward parent")
                event.stack = stacks.get((derivative.sequence_nr, derivative.fwd_thread), [])

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of everything together."""
        return sum(event.self_cpu_time_total for event in self)

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """One entry per name; per input shapes, last lines of the call stack or overload too if asked."""
        if not self._tree_built:
            raise AssertionError("Expected tree to be built before calling key_averages")
        table: dict[tuple, FunctionEventAvg] = defaultdict(FunctionEventAvg)
        for event in self:
            key = [event.key, event.is_legacy, event.is_user_annotation]
            if group_by_input_shapes:
                key.append(str(event.input_shapes))
            if group_by_stack_n > 0:
                key += (event.stack or [])[:group_by_stack_n]
            if group_by_overload_name:
                key.append(event.overload_name)
            table[tuple(key)].add(event)
        for average in table.values():
            average.stack = (average.stack or [])[:group_by_stack_n]
            if not group_by_input_shapes:
                average.input_shapes = ""
            if not group_by_overload_name:
                average.overload_name = ""
        return EventList(
            table.values(), profile_memory=self._profile_memory, with_flops=self._with_flops,
            use_device=self._use_device,
        )  # fmt: skip

    def total_average(self) -> FunctionEventAvg:
        """Everything as one entry."""
        total = FunctionEventAvg()
        for event in self:
            total.key = None
            total.add(event)
        total.key = "Total"
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
        """A text table: name, share of the time, times, memory and operations if measured, calls.

        >>> with rushlight.autograd.profiler.profile() as measured:
        ...     _ = rushlight.ones(2) * 2
        >>> print(measured.key_averages().table(sort_by="cpu_time_total").splitlines()[1].split()[0])
        Name
        """
        return _build_table(
            self, sort_by=sort_by, row_limit=row_limit, max_src_column_width=max_src_column_width,
            max_name_column_width=max_name_column_width, max_shapes_column_width=max_shapes_column_width,
            header=header, with_flops=self._with_flops, profile_memory=self._profile_memory,
            top_level_events_only=top_level_events_only, time_unit=time_unit,
        )  # fmt: skip

    def __str__(self) -> str:
        return self.table()

    def export_chrome_trace(self, path: str) -> None:
        """Writes the events alone for chrome://tracing and Perfetto."""
        events = [
            {"name": event.trace_name, "ph": "X", "ts": event.time_range.start,
             "dur": event.time_range.elapsed_us(), "tid": event.thread, "pid": "CPU functions", "args": {}}
            for event in self if event.trace_name is not None
        ]  # fmt: skip
        with open(path, "w") as file:
            json.dump(events, file)

    def _export_trace(self, path: str, metadata: dict | None = None) -> None:
        """Writes the events with what is known of the profile; arrows lead from operations to derivatives."""
        written: list[dict] = []
        for number, event in enumerate(self):
            where = {"pid": "CPU functions", "tid": event.thread}
            about: dict = {"External id": event.external_id + 1, "Record function id": 0}
            if event.sequence_nr >= 0:
                about |= {"Sequence number": event.sequence_nr, "Fwd thread id": event.fwd_thread}
            if event.input_dtypes:
                about |= {"Input type": event.input_dtypes, "Input Strides": event.structured_input_strides,
                          "Input Dims": event.structured_input_shapes}  # fmt: skip
            if event.stack:
                about["Call stack"] = ";".join(event.stack)
            written.append({
                "ph": "X", "cat": "user_annotation" if event.is_user_annotation else "cpu_op",
                "name": event.trace_name, **where, "ts": event.time_range.start,
                "dur": event.time_range.elapsed_us(), "args": {**about, "Ev Idx": number},
            })  # fmt: skip
            if event.flow_id:
                end = {"ph": "s"} if event.flow_start else {"ph": "f", "bp": "e"}
                written.append({**end, "cat": "fwdbwd", "name": "fwdbwd", "id": event.flow_id, **where,
                                "ts": event.time_range.start})  # fmt: skip
        with open(path, "w") as file:
            head = {"schemaVersion": 1, "deviceProperties": [], **self._metadata, **(metadata or {}),
                    "displayTimeUnit": "ms", "baseTimeNanoseconds": 0, "traceName": path}  # fmt: skip
            json.dump({**head, "traceEvents": written}, file)

    def supported_export_stacks_metrics(self) -> list[str]:
        """What export_stacks can weigh lines by."""
        return ["self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total",
                "self_privateuse1_time_total"]  # fmt: skip

    def export_stacks(self, path: str, metric: str) -> None:
        """Writes a line per call stack with its time, as flame graph tools read it."""
        if metric not in self.supported_export_stacks_metrics():
            raise ValueError(f"metric should be one of: {self.supported_export_stacks_metrics()}")
        weight = metric.replace("cuda", "device").replace("xpu", "device").replace("privateuse1", "device")
        table = str.maketrans(" ;\t\n", "____")
        with open(path, "w") as file:
            for event in self:
                if event.stack and int(getattr(event, weight)) > 0:
                    names = ";".join(line.translate(table) for line in reversed(event.stack))
                    file.write(f"{names} {int(getattr(event, weight))}\n")


def _canonicalize_profiler_events(events: Any) -> str:
    """A line for each event of a Chrome trace in the order of time: its name, its node, the source line."""
    lines = []
    for event in sorted(events, key=lambda event: event.get("ts", 0)):
        about = event["args"]
        trace = [line.strip() for line in about.get("stack_trace", "").split("\n")]
        source = [line for line in trace if line.strip("^~ ")]  # others only point into one
        lines.append(
            f"event={event.get('name', '')[:30]} node={about.get('node_name', '')} "
            f"stack_trace={source[-1] if source else ''}"
        )
    return "\n".join(lines)
