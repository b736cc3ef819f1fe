"""What a profile was before it became FunctionEvents: the events one by one and as a tree, under the names
that torch's extension gives them (`profile.kineto_results`), and the records of its older profiler."""

from __future__ import annotations

import threading

from rushlight._numbered import DeviceType, RecordScope, _EventType
from rushlight.autograd.profiler_util import MEMORY_EVENT_NAME, EventList, FunctionEvent


class _KinetoEvent:
    """One event; every method answers one question about it."""

    def __init__(self, event: FunctionEvent, number: int, origin: int) -> None:
        self._event, self._number = event, number
        self._start = origin + round(event.time_range.start * 1e3)
        self._end = origin + round(event.time_range.end * 1e3)

    def name(self) -> str:
        """The operation, the derivative, or the name of the block."""
        return self._event.trace_name or self._event.name

    def overload_name(self) -> str:
        """Which overload it was: that is not measured."""
        return ""

    def start_ns(self) -> int:
        """When it began, in nanoseconds since 1970."""
        return self._start

    def end_ns(self) -> int:
        """When it ended."""
        return self._end

    def duration_ns(self) -> int:
        """How long it took."""
        return self._end - self._start

    def shapes(self) -> list:
        """Of the arguments, if they were measured."""
        return self._event.input_shapes

    def structured_input_shapes(self) -> list:
        """The same, with those of the tensors in lists."""
        return self._event.structured_input_shapes

    def dtypes(self) -> list[str]:
        """Of the arguments, if they were measured."""
        return self._event.input_dtypes

    def structured_input_strides(self) -> list:
        """Of the arguments, if they were measured."""
        return self._event.structured_input_strides

    def concrete_inputs(self) -> list:
        """Arguments that are no tensors: not measured."""
        return []

    def kwinputs(self) -> dict:
        """Arguments by name: not measured."""
        return {}

    def stack(self) -> list[str]:
        """Where it was called, if that was measured."""
        return self._event.stack

    def sequence_nr(self) -> int:
        """The number of the node that it recorded or ran, -1 if none."""
        return self._event.sequence_nr

    def scope(self) -> int:
        """A number of RecordScope."""
        return self._event.scope

    def flops(self) -> int:
        """Floating-point operations, if they were counted."""
        return self._event.flops or 0

    def nbytes(self) -> int:
        """How many bytes came or went, if it is about memory."""
        return self._event.cpu_memory_usage if self.name() == MEMORY_EVENT_NAME else 0

    def fwd_thread_id(self) -> int:
        """Of a derivative: the thread that recorded it."""
        return int(self._event.scope == RecordScope.BACKWARD_FUNCTION.value)

    def start_thread_id(self) -> int:
        """The thread it ran on: the one that is measured."""
        return 1

    end_thread_id = start_thread_id

    def device_type(self) -> DeviceType:
        """Where it ran."""
        return DeviceType.CPU

    def device_index(self) -> int:
        """Which of the devices of its kind: on a CPU its process."""
        return self.device_resource_id()

    def device_resource_id(self) -> int:
        """The thread it ran on, as the system numbers it."""
        return threading.get_native_id()

    def correlation_id(self) -> int:
        """Its number."""
        return self._number

    external_id = correlation_id

    def linked_correlation_id(self) -> int:
        """The event on another device that belongs to it: none does."""
        return 0

    def activity_type(self) -> str:
        """What kind of event it is."""
        if self.name() == MEMORY_EVENT_NAME:
            return "cpu_instant_event"
        return "user_annotation" if self.is_user_annotation() else "cpu_op"

    def is_user_annotation(self) -> bool:
        """Whether it is a block that the program named."""
        return self._event.is_user_annotation

    def is_async(self) -> bool:
        """Whether it ended on another thread."""
        return False

    is_python_function = is_hidden_event = is_async

    def metadata_json(self) -> str:
        """More about it: nothing."""
        return ""

    def extra_meta(self) -> dict:
        """More about it: nothing."""
        return {}

    def flow_id(self) -> int:
        """The number that an operation and its derivative have in common; 0 if there is none."""
        return self._event.flow_id or 0

    def flow_type(self) -> int:
        """1 if there is one."""
        return self._event.flow_type or 0

    def flow_start(self) -> bool:
        """Whether it is the operation."""
        return bool(self._event.flow_start)

    def cuda_elapsed_us(self) -> int:
        """Time on a GPU: none was measured."""
        return -1

    privateuse1_elapsed_us = python_id = python_parent_id = python_module_id = cuda_elapsed_us


class _ExtraFields_TorchOp:
    """What is known of an event that is an operation, a derivative or a named block."""

    def __init__(self, event: FunctionEvent) -> None:
        self.name, self.sequence_number = event.trace_name, event.sequence_nr
        self.scope, self.allow_tf32_cublas = RecordScope(event.scope), False

    @property
    def inputs(self) -> list:
        """The arguments: not measured."""
        raise NotImplementedError("the profiler does not note the memory of tensors")


class _ExtraFields_Allocation:
    """What is known of an event about memory."""

    def __init__(self, event: FunctionEvent) -> None:
        import rushlight

        self.alloc_size, self.device = event.cpu_memory_usage, rushlight.device("cpu")
        self.id = self.allocation_id = None

    @property
    def ptr(self) -> int:
        """Where the memory is: not measured."""
        raise NotImplementedError("the profiler notes how much memory comes and goes, not where it is")

    total_allocated = total_reserved = ptr


class _ProfilerEvent:
    """An event in the tree: with those that it ran inside of and those that ran inside it."""

    def __init__(self, event: FunctionEvent, number: int, origin: int, parent: _ProfilerEvent | None) -> None:
        is_memory = event.trace_name == MEMORY_EVENT_NAME
        self.name, self.overload_name, self.parent = event.trace_name, "", parent
        self.tag = _EventType.Allocation if is_memory else _EventType.TorchOp
        self.extra_fields = _ExtraFields_Allocation(event) if is_memory else _ExtraFields_TorchOp(event)
        self.correlation_id, self.start_tid = number, 1
        self.start_time_ns = origin + round(event.time_range.start * 1e3)
        self.end_time_ns = origin + round(event.time_range.end * 1e3)
        self.children: list[_ProfilerEvent] = []

    @property
    def typed(self) -> tuple:
        """What it is, and what is known of it."""
        return self.tag, self.extra_fields

    @property
    def duration_time_ns(self) -> int:
        """How long it took."""
        return self.end_time_ns - self.start_time_ns

    @property
    def id(self) -> int:
        """A number that no other event of the tree has."""
        return id(self)


class _ProfilerResult:
    """What `_disable_profiler` returns."""

    def __init__(self, events: EventList | None = None, origin: int = 0) -> None:
        self._found, self._origin = EventList(tree_built=True) if events is None else events, origin

    def trace_start_ns(self) -> int:
        """When the first event began, in nanoseconds since 1970."""
        return self._origin

    def events(self) -> list[_KinetoEvent]:
        """The events in the order they began."""
        return [_KinetoEvent(event, at, self._origin) for at, event in enumerate(self._found, 1)]

    def experimental_event_tree(self) -> list[_ProfilerEvent]:
        """The outermost events; each knows those inside it."""
        made: dict[int, _ProfilerEvent] = {}
        roots: list[_ProfilerEvent] = []
        for at, event in enumerate(self._found, 1):
            parent = None if event.cpu_parent is None else made[id(event.cpu_parent)]
            one = made[id(event)] = _ProfilerEvent(event, at, self._origin, parent)
            (roots if parent is None else parent.children).append(one)
        return roots

    def trace_activities(self) -> list:
        """Kineto's own records: there are none."""
        raise NotImplementedError("trace_activities are records of Kineto, which does not measure here")

    def save(self, path: str) -> None:
        """Writes the events for chrome://tracing and Perfetto."""
        self._found._export_trace(path)


class ProfilerEvent:
    """A record of the older profiler: that an event began ("push"), that one ended ("pop"), or a "mark"."""

    def __init__(self, kind: str, time: float, event: FunctionEvent | None = None, handle: int = 0) -> None:
        self._kind, self._time, self._event, self._handle = kind, time, event, handle
        self._name = ""
        self._shapes: list = []
        self._stack: list = []
        self._scope, self._sequence, self._flops, self._memory = 0, -1, 0, 0
        if event is not None and kind != "pop":
            self._name, self._shapes, self._stack = (
                event.trace_name or event.name,
                event.input_shapes,
                event.stack,
            )
            self._scope, self._sequence = event.scope, event.sequence_nr
            self._flops = event.flops or 0
            self._memory = event.cpu_memory_usage if kind == "memory_alloc" else 0

    def kind(self) -> str:
        """push, pop, mark or memory_alloc."""
        return self._kind

    def name(self) -> str:
        """What began; of an end nothing."""
        return self._name

    def handle(self) -> int:
        """The number that a beginning and its end share."""
        return self._handle

    def thread_id(self) -> int:
        """The thread: the one that is measured."""
        return 1

    def fwd_thread_id(self) -> int:
        """Of a derivative: the thread that recorded it."""
        return int(self._scope == RecordScope.BACKWARD_FUNCTION.value)

    def node_id(self) -> int:
        """The process of several that it ran in: there is one."""
        return -1

    def device(self) -> int:
        """The GPU that it ran on: none."""
        return -1

    def start_us(self) -> float:
        """When it was noted, in microseconds."""
        return self._time

    def cpu_elapsed_us(self, other: ProfilerEvent) -> float:
        """From this one to another."""
        return other._time - self._time

    def cuda_elapsed_us(self, other: ProfilerEvent) -> float:
        """The same on a GPU: refused."""
        raise RuntimeError("Events were not recorded for CUDA")

    def has_cuda(self) -> bool:
        """Whether a GPU was measured."""
        return False

    is_async = is_remote = has_cuda

    def cpu_memory_usage(self) -> int:
        """How many bytes came or went, if it is about memory."""
        return self._memory

    def cuda_memory_usage(self) -> int:
        """The same on a GPU."""
        return 0

    correlation_id = cuda_memory_usage

    def shapes(self) -> list:
        """Of the arguments, if they were measured."""
        return self._shapes

    def stack(self) -> list[str]:
        """Where it was called, if that was measured."""
        return self._stack

    def scope(self) -> int:
        """A number of RecordScope."""
        return self._scope

    def sequence_nr(self) -> int:
        """The number of the node that it recorded or ran, -1 if none."""
        return self._sequence

    def flops(self) -> int:
        """Floating-point operations, if they were counted."""
        return self._flops


def as_records(events: EventList, end: float) -> list[ProfilerEvent]:
    """Beginnings and ends of events in their order, between two marks."""
    start = ProfilerEvent("mark", 0.0)
    stop = ProfilerEvent("mark", end)
    start._name, stop._name = "__start_profile", "__stop_profile"
    records = [start]
    around: list[tuple[FunctionEvent, int]] = []

    def close(until: FunctionEvent | None) -> None:
        while around and around[-1][0] is not until:
            event, handle = around.pop()
            records.append(ProfilerEvent("pop", event.time_range.end, event, handle))

    for handle, event in enumerate(events, 1):
        close(event.cpu_parent)
        if event.trace_name == MEMORY_EVENT_NAME:
            records.append(ProfilerEvent("memory_alloc", event.time_range.start, event))
            continue
        records.append(ProfilerEvent("push", event.time_range.start, event, handle))
        around.append((event, handle))
    close(None)
    return [*records, stop]
