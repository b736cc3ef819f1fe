"""Events of a profile: what ran, what it ran inside of, sums over them, tables, exports."""

from __future__ import annotations

import json
import warnings
from collections import defaultdict
from typing import Any, NamedTuple

from rushlight._numbered import DeviceType
from rushlight._warn import warn

__all__ = ["EventList", "FormattedTimesMixin", "FunctionEvent", "FunctionEventAvg", "Interval", "Kernel",
           "MemRecordsAcc", "StringTable"]  # fmt: skip

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


def _format_time(time_us: float) -> str:
    if time_us >= 1e6:
        return f"{time_us / 1e6:.3f}s"
    if time_us >= 1e3:
        return f"{time_us / 1e3:.3f}ms"
    return f"{time_us:.3f}us"


def _format_time_share(time_us: float, total_time_us: float) -> str:
    if not total_time_us:
        if time_us:
            raise AssertionError(f"Expected time_us == 0 but got {time_us}")
        return "NaN"
    return f"{time_us * 100 / total_time_us:.2f}%"


def _format_memory(nbytes: int) -> str:
    for unit, name in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")):
        if abs(nbytes) >= unit:
            return f"{nbytes / unit:.2f} {name}"
    return f"{nbytes} B"


def _as_text(name: str) -> property:
    return property(lambda self: _format_time(getattr(self, name)))


class FormattedTimesMixin:
    """What events and sums of events have in common: times per call, and times as text."""

    count: int
    cpu_time_total: Any
    device_time_total: Any

    cpu_time_str = _as_text("cpu_time")
    device_time_str = _as_text("device_time")
    cpu_time_total_str = _as_text("cpu_time_total")
    device_time_total_str = _as_text("device_time_total")
    self_cpu_time_total_str = _as_text("self_cpu_time_total")
    self_device_time_total_str = _as_text("self_device_time_total")

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


NOT_MEASURED = object()  # what an event would tell if profiles noted it


def not_measured(what: str) -> NotImplementedError:
    return NotImplementedError(f"the profiler notes the shapes of tensors, not their {what}")


def _unless_measured(value: Any, what: str) -> Any:
    if value is NOT_MEASURED:
        raise not_measured(what)
    return value


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
        if extra_meta:
            raise NotImplementedError("what an accelerator tells of its kernels is not read")
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
        self.event_metadata = None
        self.structured_input_shapes = structured_input_shapes
        self._strides, self._dtypes = structured_input_strides, input_dtypes
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

    @property
    def structured_input_strides(self) -> Any:
        """The strides of the arguments, where who made the event knew them."""
        return _unless_measured(self._strides, "strides")

    @property
    def input_dtypes(self) -> Any:
        """The dtypes of the arguments, where who made the event knew them."""
        return _unless_measured(self._dtypes, "dtypes")

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
                while around and around[-1].time_range.end <= event.time_range.start:
                    around.pop()
                if around and event.time_range.end <= around[-1].time_range.end:
                    around[-1].append_cpu_child(event)
                    event.set_cpu_parent(around[-1])
                around.append(event)

    def _remove_dup_nodes(self) -> None:
        """An event whose only part has its own name is that part: one of them goes."""
        gone: set[int] = set()
        for event in list(self):
            while len(event.cpu_children) == 1 and event.cpu_children[0].name == event.name:
                child = event.cpu_children[0]
                gone.add(id(child))
                event.cpu_children = child.cpu_children
                event.sequence_nr = max(event.sequence_nr, child.sequence_nr)
                event.input_shapes = child.input_shapes or event.input_shapes  # it knows its overload
                event.flops = event.flops or child.flops
                for inner in event.cpu_children:
                    inner.set_cpu_parent(event)
        self[:] = [event for event in self if id(event) not in gone]

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
        if not self:
            return ""
        if time_unit not in (None, "s", "ms", "us"):
            raise ValueError(f"invalid time_unit: {time_unit}, it should be one of s, ms, us")
        rows = list(self)
        if sort_by is not None:
            sort_by = (
                sort_by.replace("cuda", "device").replace("xpu", "device").replace("privateuse1", "device")
            )
            rows.sort(key=lambda event: getattr(event, sort_by), reverse=True)
        total = sum(event.self_cpu_time_total for event in self)

        def time(microseconds):
            if time_unit is None:
                return _format_time(microseconds)
            return f"{microseconds / {'s': 1e6, 'ms': 1e3, 'us': 1.0}[time_unit]:.3f}{time_unit}"

        shapes = any(event.input_shapes for event in self)
        stacks = any(event.stack for event in self)
        titles = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
        if self._profile_memory:
            titles += ["CPU Mem", "Self CPU Mem"]
        titles.append("# of Calls")
        titles += ["Input Shapes"] * shapes + ["Source Location"] * stacks
        unit, unit_name = _flops_unit([event.flops or 0 for event in self])
        titles += [f"Total {unit_name}FLOPs"] * self._with_flops
        lines: list[list[str]] = []
        rest: list[list[str]] = []  # of the call stacks, below the line
        for event in rows:
            if len(lines) == row_limit:
                break
            if top_level_events_only and event.cpu_parent is not None:
                continue
            line = [
                _shortened(event.key, max_name_column_width),
                _format_time_share(event.self_cpu_time_total, total),
                time(event.self_cpu_time_total),
                _format_time_share(event.cpu_time_total, total) if not event.is_async else "0",
                time(event.cpu_time_total),
                time(event.cpu_time),
            ]
            if self._profile_memory:
                line += [_format_memory(event.cpu_memory_usage), _format_memory(event.self_cpu_memory_usage)]
            line.append(str(event.count))
            if shapes:
                line.append(str(event.input_shapes)[:max_shapes_column_width])
            if stacks:
                line.append(_shortened_front((event.stack or [""])[0], max_src_column_width))
            if self._with_flops:
                line.append(f"{event.flops / unit:.3f}" if event.flops else "--")
            lines.append(line)
            rest.append([_shortened_front(entry, max_src_column_width) for entry in (event.stack or [])[1:]])
        # Columns of text are as wide as what is in them; those of figures all alike.
        limits = {
            "Name": max_name_column_width,
            "Input Shapes": max_shapes_column_width,
            "Source Location": max_src_column_width,
        }
        words = {
            "Name": [event.key for event in self],
            "Input Shapes": [str(event.input_shapes) for event in self],
            "Source Location": [entry for event in self for entry in event.stack or []],
        }
        widths = []
        for title in titles:
            width = 12
            if title in words:
                width = max(map(len, words[title]), default=0) + 4
                width = width if limits[title] is None else min(width, limits[title])
            widths.append(width)

        def text(row):
            aligned = (
                cell.ljust(width) if title == "Source Location" else cell.rjust(width)
                for title, cell, width in zip(titles, row, widths, strict=True)
            )
            return "".join(cell + "  " for cell in aligned)

        def below(entry):
            return text([entry if title == "Source Location" else "" for title in titles])

        rule = text(["-" * width for width in widths])
        shown = [rule, text(titles), rule]
        for line, entries in zip(lines, rest, strict=True):
            shown += [text(line), *(below(entry) for entry in [*entries, ""] if stacks)]
        shown.append(rule)
        across = "=" * (len(rule) - 2)
        if top_level_events_only:
            shown = [across, "This report only display top-level ops statistics", *shown]
        if header is not None:
            shown = [across, header, *shown]
        return "\n".join([*shown, f"Self CPU time total: {time(total)}", ""])

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

    def _export_trace(self, path: str) -> None:
        """Writes the events with what is known of the profile; arrows lead from operations to derivatives."""
        written: list[dict] = []
        for event in self:
            where = {"pid": "CPU functions", "tid": event.thread}
            written.append({
                "ph": "X", "cat": "user_annotation" if event.is_user_annotation else "cpu_op",
                "name": event.trace_name, **where, "ts": event.time_range.start,
                "dur": event.time_range.elapsed_us(),
                "args": {"Input Dims": event.input_shapes or [], "Sequence number": event.sequence_nr},
            })  # fmt: skip
            if event.flow_id:
                end = {"ph": "s"} if event.flow_start else {"ph": "f", "bp": "e"}
                written.append({**end, "cat": "fwdbwd", "name": "fwdbwd", "id": event.flow_id, **where,
                                "ts": event.time_range.start})  # fmt: skip
        with open(path, "w") as file:
            head = {"schemaVersion": 1, "deviceProperties": [], **self._metadata, "displayTimeUnit": "ms",
                    "baseTimeNanoseconds": 0, "traceName": path}  # fmt: skip
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


def _flops_unit(flops: list[int]) -> tuple[float, str]:
    most = min((f for f in flops if f > 0), default=0)
    for unit, name in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "K")):
        if most >= unit:
            return unit, name
    return 1.0, ""


def _shortened_front(path: str, width: int | None) -> str:
    return path if width is None or len(path) <= width else "..." + path[3 - width :]


def _shortened(text: str, width: int | None) -> str:
    return text if width is None or len(text) <= width else text[: width - 3] + "..."
