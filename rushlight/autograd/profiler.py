"""Which operations a program spends its time and memory on.

`profile` measures what runs inside it: every public function, every primitive, every derivative the engine
runs and every block named with `record_function`. Measuring itself is native (native/python/profiler.cpp);
the events and what can be done with them are in profiler_util.py.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import threading
import time
import uuid
import warnings
from typing import Any

from rushlight import _C
from rushlight._script_object import ScriptObject
from rushlight.autograd._profiled_arguments import arguments_shown
from rushlight.autograd.profiler_util import (
    MEMORY_EVENT_NAME,
    OUT_OF_MEMORY_EVENT_NAME,
    DeviceType,
    EventList,
    FunctionEvent,
    FunctionEventAvg,
    Interval,
    Kernel,
    MemRecordsAcc,
)

__all__ = ["profile", "record_function", "emit_itt", "emit_nvtx", "load_nvprof", "EnforceUnique",
           "parse_nvprof_trace", "KinetoStepTracker", "EventList", "FunctionEvent", "MemRecordsAcc",
           "Interval", "Kernel", "FunctionEventAvg", "DeviceType", "MEMORY_EVENT_NAME",
           "OUT_OF_MEMORY_EVENT_NAME"]  # fmt: skip

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# Functions whose operation has another name in torch; "": there it is none, as of those that no table names.
_FUNCTIONS = {
    "cross_entropy": "cross_entropy_loss", "nll_loss": "nll_loss_nd", "logsigmoid": "log_sigmoid",
    "interpolate": "", "once": "", "is_contiguous": "", "broadcast_shapes": "",
    "bfloat16": "to", "bool": "to", "byte": "to", "cdouble": "to", "cfloat": "to", "chalf": "to",
    "char": "to", "double": "to", "float": "to", "half": "to", "int": "to", "long": "to", "short": "to",
}  # fmt: skip
# Primitives that are several operations in torch, one within the other.
_CHAINS = {
    "softmax": "softmax _softmax", "log_softmax": "log_softmax _log_softmax", "relu": "relu clamp_min",
    "nll_loss": "nll_loss_nd nll_loss nll_loss_forward",
    "nll_loss2d": "nll_loss_nd nll_loss2d nll_loss2d_forward",
    "convolution": "convolution _convolution", "conv_transpose": "convolution _convolution",
    "max_pool2d": "max_pool2d max_pool2d_with_indices", "max_pool3d": "max_pool3d max_pool3d_with_indices",
    "max_pool1d": "max_pool1d max_pool1d_with_indices", "log_sigmoid": "log_sigmoid log_sigmoid_forward",
    "batch_norm_train": "_batch_norm_impl_index native_batch_norm",
    "batch_norm": "_batch_norm_impl_index native_batch_norm",
    "attention": "_scaled_dot_product_flash_attention_for_cpu",
    "attention_keeping": "_scaled_dot_product_flash_attention_for_cpu",
    "attention_backward": "_scaled_dot_product_flash_attention_for_cpu_backward",
    "attention_keeping_backward": "_scaled_dot_product_flash_attention_for_cpu_backward",
    "elu_written": "elu", "leaky_relu_written": "leaky_relu", "random_full": "random",
    "t": "t transpose", "sum_to": "sum", "square": "pow", "restore": "expand", "once": "", "vecmat": "mv",
    "conv_input_gradient": "convolution_backward", "conv_weight_gradient": "convolution_backward",
    "linear": "linear", "linear_unbiased": "linear", "linear_nd_unbiased": "linear",
}  # fmt: skip
_OF_ZEROS = ("aten::zeros", "aten::zeros_like", "aten::new_zeros")
_UNFINISHED = "<unfinished torch.autograd.profile>"


def _profiler_enabled() -> bool:
    return _C._profiler_enabled()


def kineto_available() -> bool:
    """Whether a profile may be asked for with `use_kineto`. There is one way of measuring, and it may."""
    return True


def _set_is_profiler_enabled(enable: bool) -> None:
    """Notes whether a profile is being taken, for programs that ask before they name their blocks."""
    global _is_profiler_enabled
    _is_profiler_enabled = enable


def _run_on_profiler_start() -> None:
    _set_is_profiler_enabled(True)


def _run_on_profiler_stop() -> None:
    _set_is_profiler_enabled(False)


_is_profiler_enabled = False
_running: profile | None = None


_OF_THE_EXTENSION = {
    "ProfilerActivity", "ProfilerConfig", "ProfilerState", "_ProfilerResult", "_disable_profiler",
    "_enable_profiler", "_kineto_step", "_prepare_profiler", "_supported_activities",
    "_toggle_collection_dynamic",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _OF_THE_EXTENSION:
        return getattr(_C._autograd, name)
    if name == "_ExperimentalConfig":
        from rushlight.profiler._config import _ExperimentalConfig

        return _ExperimentalConfig
    raise AttributeError(f"module 'torch.autograd.profiler' has no attribute '{name}'")


# Products with a transposed operand, which torch sees as products of a view.
_PLAIN_PRODUCT = {
    f"{name}_{form}": name for name in ("mm", "bmm", "matmul_nd") for form in ("nh", "hn", "t")
} | {"einsum_mm": "bmm", "einsum_bmm": "bmm"}  # fmt: skip


@functools.cache
def _shown_names(name: str) -> tuple[str, ...]:
    """The names of an event, one within the other: those of the primitive as torch has it, `aten::sum` for
    `sum_dim`, or that of a function."""
    from rushlight._aten_names import OVERLOADS
    from rushlight._ops import _OF_PRIMITIVE

    space, _, own = name.rpartition("::")
    if space == "aten":
        shown = _FUNCTIONS.get(own, own)
        return (f"aten::{shown}",) if shown in OVERLOADS else ()
    if space != "primitive":
        return (name,)
    ending = "_" if own.endswith("_") else ""
    own = own.removesuffix("_") if ending else own
    own = _PLAIN_PRODUCT.get(own, own)
    if own in _CHAINS:
        return tuple(f"aten::{part}{ending}" for part in _CHAINS[own].split())
    return (f"aten::{_OF_PRIMITIVE.get(own, own).partition('.')[0]}{ending}",)


@functools.cache
def _is_composed(shown: str) -> bool:
    """Whether torch composes the operation of others, so that these are recorded and not itself."""
    from rushlight._aten_names import OVERLOADS
    from rushlight._schema import is_said

    forms = OVERLOADS.get(shown.removeprefix("aten::"), ())
    return any(is_said("decomposes", f"{shown}.{form}".removesuffix(".default")) for form in forms)


def _product(sizes: Any) -> int:
    return functools.reduce(lambda a, b: a * b, sizes, 1)


def _flops(name: str, shapes: list, result: Any) -> int:
    """Of products, convolutions, sums and multiplications, from the sizes of what went in and came out."""
    if result is None:
        return 0
    name = name.removeprefix("aten::").removesuffix("_")
    if name in ("mul", "add"):
        return _product(result)
    if name in ("mm", "bmm", "matmul"):
        return 2 * _product(result) * shapes[0][-1]
    if name in ("addmm", "baddbmm", "linear"):
        return 2 * _product(result) * shapes[0 if name == "linear" and len(shapes) == 2 else 1][-1]
    if name == "convolution":
        return 2 * _product(result) * _product(shapes[1][1:])
    return 0


def _count_outside(event: FunctionEvent, around: FunctionEvent | None) -> None:
    """Torch counts what conv2d computes, and there."""
    if around is not None and around.name == "aten::conv2d":
        around.flops = event.flops
    event.flops = 0


def _as_events(raw: list, with_flops: bool, **options: Any) -> EventList:
    found = _all_events(raw, with_flops, **options)
    found._remove_dup_nodes()
    found._set_backward_stacktraces()
    _lead_to_derivatives(found)
    return found


def _results(raw: list, with_flops: bool) -> Any:
    """What the extension of torch calls the result of a profile."""
    from rushlight.profiler._results import _ProfilerResult

    first = raw[0][1] if raw else time.perf_counter_ns()
    found = _all_events(raw, with_flops)
    _lead_to_derivatives(found)
    return _ProfilerResult(found, time.time_ns() - time.perf_counter_ns() + first)


def _all_events(raw: list, with_flops: bool, **options: Any) -> EventList:
    """Every event, also those that are the only part of another one of their name."""
    first = raw[0][1] if raw else 0
    events: list[FunctionEvent] = []
    innermost: list[FunctionEvent | None] = []  # of each row
    for row in raw:
        name, start, end, memory, parent, scope, sequence, noted, result, stack, thread = row
        while parent >= 0 and raw[parent][2] < end:  # a range that was left before one inside it
            parent = raw[parent][4]
        around = innermost[parent] if parent >= 0 else None
        names = _shown_names(name)
        if around is not None and around.name in ("aten::_unsafe_view", *(f"{shown}_" for shown in names)):
            names = ()  # the view that it is made of
        while len(names) > 1 and around is not None and around.name in names[:-1]:
            names = names[1:]
        outer = around
        inner = around is not None and around.name in _shown_names(name)[:-1] and sequence >= 0
        if around is not None and inner:
            around.sequence_nr, outer = sequence, around.cpu_parent  # the outermost is recorded
        while outer is not None and sequence >= 0 and outer.sequence_nr < 0 and _is_composed(outer.name):
            outer.sequence_nr, outer = sequence, outer.cpu_parent
        sequence = -1 if inner else sequence
        if stack is not None:
            stack = [line for line in stack if not line.startswith(_PACKAGE)]
        for shown in names:
            if shown == "aten::fill_" and around is not None and around.name in _OF_ZEROS:
                shown = "aten::zero_"
            told = arguments_shown(shown, name, noted)
            event = FunctionEvent(
                len(events), shown, thread, (start - first) / 1e3, (end - first) / 1e3, overload_name="",
                fwd_thread=thread if scope == 1 or shown.startswith("autograd::engine") else 0,
                input_shapes=told.shapes, stack=stack or [], scope=scope,
                cpu_memory_usage=memory,
                sequence_nr=sequence, flops=_flops(shown, told.shapes, result) if with_flops else 0,
                is_user_annotation=scope == 7, trace_name=shown, concrete_inputs=[], kwinputs={},
                activity_type="user_annotation" if scope == 7 else "cpu_op", metadata_json="",
                flow_id=0, flow_type=0, flow_start=False, external_id=len(events),
                structured_input_shapes=told.structured_shapes, structured_input_strides=told.strides,
                input_dtypes=told.dtypes,
            )  # fmt: skip
            if shown == "aten::convolution" and event.flops:
                _count_outside(event, around)
            if shown.startswith("ProfilerStep#"):  # all steps are one in the averages
                event.name = "ProfilerStep*"
            events.append(event)
            if around is not None:
                event.set_cpu_parent(around)
                around.append_cpu_child(event)
            around, sequence = event, -1
        innermost.append(around)
    return EventList(events, with_flops=with_flops, tree_built=True, **options)


def _lead_to_derivatives(events: list[FunctionEvent]) -> None:
    """Numbers the pairs of an operation, the innermost one that recorded its node, and its derivative."""
    recorded, count = {}, 0
    for event in events:
        if event.sequence_nr < 0 or event.name.startswith("autograd::engine"):
            continue
        if not event.fwd_thread:
            recorded[event.sequence_nr] = event
        elif (source := recorded.pop(event.sequence_nr, None)) is not None:
            count += 1
            for end in (source, event):
                end.flow_id, end.flow_type, end.flow_start = count, 1, end is source


@dataclasses.dataclass
class _ProfilerStats:
    """What measuring itself took."""

    profiling_window_duration_sec: float = 0
    number_of_events: int = 0
    profiler_prepare_call_duration_us: int = 0
    profiler_enable_call_duration_us: int = 0
    profiler_disable_call_duration_us: int = 0
    parse_kineto_call_duration_us: int = 0
    function_events_build_tree_call_duration_us: int = 0


class profile:
    """Measures what this thread runs inside; afterwards `key_averages()`, `table()` and the events tell.

    `with_modules` changes nothing: it is about TorchScript's modules. The other switches measure the shapes
    of arguments, floating-point operations, memory and call stacks.

    >>> with rushlight.autograd.profiler.profile() as measured:
    ...     _ = rushlight.tensor([1.0]).exp()
    >>> [event.name for event in measured.function_events]
    ['aten::tensor', 'aten::exp']
    """

    def __init__(
        self, enabled: bool = True, *, use_cuda: bool = False, use_device: str | None = None,
        record_shapes: bool = False, with_flops: bool = False, profile_memory: bool = False,
        with_stack: bool = False, with_modules: bool = False, use_kineto: bool = False, use_cpu: bool = True,
        experimental_config: Any = None, acc_events: bool = False, custom_trace_id_callback: Any = None,
        post_processing_timeout_s: float | None = None, activity_filters: dict | None = None,
    ) -> None:  # fmt: skip
        self.enabled = enabled
        if not enabled:
            return
        if use_cuda:
            warnings.warn(
                "The attribute `use_cuda` will be deprecated soon, please use ``use_device = 'cuda'`` "
                "instead.",
                FutureWarning,
                stacklevel=2,
            )
            use_device = "cuda"
        if use_device is not None:
            known = use_device in ("cuda", "xpu", "mtia", "hpu")
            warnings.warn(
                f"{use_device.upper()} is not available, disabling {use_device.upper()} profiling"
                if known
                else f"The {use_device} is not a valid device option.",
                stacklevel=2,
            )
        if not use_cpu:
            raise AssertionError(
                "No activities specified for the profiler"
                if use_kineto
                else "Device-only events supported only with Kineto (use_kineto=True)"
            )
        self.use_cuda, self.use_device, self.use_cpu = False, None, use_cpu
        self.record_shapes, self.profile_memory = record_shapes or with_flops, profile_memory
        self.with_flops, self.with_stack, self.with_modules = with_flops, with_stack, with_modules
        self.acc_events = acc_events
        self.entered = False
        self.trace_id = ""
        self.custom_trace_id_callback = custom_trace_id_callback
        self.post_processing_timeout_s, self.activity_filters = (
            post_processing_timeout_s,
            activity_filters or {},
        )
        self.metadata: dict = {}
        self._found: EventList | None = None
        self._raw: list | None = None
        self.profiling_start_time_ns = self.profiling_end_time_ns = 0
        self._stats = _ProfilerStats()
        from rushlight._numbered import ProfilerActivity, ProfilerState
        from rushlight.profiler._config import _ExperimentalConfig

        self.kineto_activities, self.profiler_kind = {ProfilerActivity.CPU}, ProfilerState.KINETO
        self.experimental_config = experimental_config or _ExperimentalConfig()

    def config(self, create_trace_id: bool = False) -> Any:
        """What it measures, as the functions of the extension want it said."""
        from rushlight.profiler._switches import ProfilerConfig

        trace_id = self.create_trace_id() if create_trace_id else self.trace_id
        return ProfilerConfig(
            self.profiler_kind, self.record_shapes, self.profile_memory, self.with_stack, self.with_flops,
            self.with_modules, self.experimental_config, trace_id,
        )  # fmt: skip

    def default_trace_id(self) -> str:
        """A name for the trace that no other one has."""
        return uuid.uuid4().hex.upper()

    def create_trace_id(self) -> str:
        """A name for the trace: what the callback says, if there is one."""
        make = self.custom_trace_id_callback
        return self.default_trace_id() if make is None else make()

    @property
    def kineto_results(self) -> Any:
        """The events one by one and as a tree, as torch's extension shows them; None before the end."""
        return None if self._raw is None else _results(self._raw, self.with_flops)

    def __enter__(self) -> profile | None:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self._start_trace()
        return self

    def _prepare_trace(self) -> None:
        self.entered = True

    def _start_trace(self) -> None:
        self.entered = True
        if _C._profiler_enabled():  # the inner one takes over, as in torch
            warnings.warn(
                "Profiler is already enabled on this thread: the events of the outer profile are lost",
                stacklevel=3,
            )
            _C.profiler_stop()
        from rushlight._taken_apart import show_steps

        before = time.perf_counter_ns()
        show_steps()
        every = self.experimental_config.profile_all_threads
        _C.profiler_start(self.record_shapes, self.with_stack, self.profile_memory, every)
        _run_on_profiler_start()
        global _running
        _running = self
        self.trace_id = self.create_trace_id()
        self.metadata["trace_id"] = self.trace_id
        self.profiling_start_time_ns = time.perf_counter_ns()
        self._stats.profiler_enable_call_duration_us = (self.profiling_start_time_ns - before) // 1000

    def __exit__(self, *error: object) -> None:
        if not self.enabled:
            return
        _run_on_profiler_stop()
        global _running
        _running = None
        self.profiling_end_time_ns = time.perf_counter_ns()
        self._raw = _C.profiler_stop() if _C._profiler_enabled() else []
        for name in ("record_shapes", "with_stack", "with_flops", "profile_memory", "with_modules"):
            if getattr(self, name):
                self.metadata.setdefault(name, 1)
        measured, self._found = time.perf_counter_ns(), None
        self._ensure_function_events()
        stats, end = self._stats, self.profiling_end_time_ns
        stats.number_of_events = len(self.function_events)
        stats.profiling_window_duration_sec = (end - self.profiling_start_time_ns) * 1e-9
        stats.profiler_disable_call_duration_us = (measured - end) // 1000
        stats.parse_kineto_call_duration_us = (time.perf_counter_ns() - measured) // 1000

    def _ensure_function_events(self) -> None:
        if self._found is None and self._raw is not None:
            self._found = _as_events(
                self._raw, self.with_flops, profile_memory=self.profile_memory, metadata=self.metadata
            )

    def _parse_kineto_results(self, result: Any, timeout_s: float | None = None) -> list[FunctionEvent]:
        """The events that `kineto_results` tells of. They are there already, so that no time is limited."""
        if timeout_s is not None and timeout_s < 0:
            raise ValueError("timeout_s must be non-negative")
        return list(result._found)

    @property
    def function_events(self) -> EventList:
        """The events, in the order they began."""
        return EventList(tree_built=True) if self._found is None else self._found

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """One entry per operation; per input shapes or call stack too if asked."""
        return self.function_events.key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name
        )

    def total_average(self) -> FunctionEventAvg:
        """Everything as one entry."""
        return self.function_events.total_average()

    def table(
        self, sort_by: str | None = None, row_limit: int = 100, max_src_column_width: int = 75,
        max_name_column_width: int = 55, max_shapes_column_width: int = 80, header: str | None = None,
        top_level_events_only: bool = False,
    ) -> str:  # fmt: skip
        """A text table of the events."""
        return self.function_events.table(
            sort_by, row_limit, max_src_column_width, max_name_column_width, max_shapes_column_width, header,
            top_level_events_only,
        )  # fmt: skip

    def export_chrome_trace(
        self, path: str, metadata: dict | None = None, use_python_export: bool = False
    ) -> None:
        """Writes the events for chrome://tracing and Perfetto; `metadata` only with `use_python_export`."""
        told = metadata if use_python_export else None
        self.function_events._export_trace(path, told)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes call stacks with their times for flame graph tools."""
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self.function_events.export_stacks(path, metric)

    def toggle_collection_dynamic(self, enabled: bool, activities: Any) -> None:
        """Switches measuring off and on again in the middle."""
        from rushlight.profiler._switches import _toggle_collection_dynamic

        _toggle_collection_dynamic(enabled, activities)

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of everything together."""
        return self.function_events.self_cpu_time_total

    def __str__(self) -> str:
        return _UNFINISHED if self._found is None else str(self._found)

    def __repr__(self) -> str:
        return _UNFINISHED if self._found is None else repr(self._found)


class record_function:
    """Gives the code inside a name in the profile; also a decorator.

    >>> with rushlight.autograd.profiler.profile() as measured:
    ...     with rushlight.autograd.profiler.record_function("step"):
    ...         _ = rushlight.tensor([1.0]) + 1
    >>> [event.name for event in measured.function_events]
    ['step', 'aten::tensor', 'aten::add']
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args
        self.run_callbacks_on_exit = True
        self.record: ScriptObject | None = None

    def __enter__(self) -> record_function:
        self.record = _enter(self.name, self.args)
        return self

    def __exit__(self, *error: object) -> None:
        if self.run_callbacks_on_exit:
            if self.record is None:
                raise AssertionError("Expected record to be set")
            _exit(self.record)

    def _recreate_cm(self) -> record_function:
        return record_function(self.name, self.args)

    def __call__(self, func: Any) -> Any:
        @functools.wraps(func)
        def wrapper(*args, **kwargs):
            with self._recreate_cm():
                return func(*args, **kwargs)

        return wrapper

    def _call_end_callbacks_on_future(self, fut: Any) -> Any:
        """Ends the block when the future is complete; a future of the same value, complete after that."""
        if not self.run_callbacks_on_exit:
            raise RuntimeError("_call_end_callbacks_on_future can only be called once.")
        if self.record is None:
            raise AssertionError("Expected record to be set")
        ended = _end_with(self.record, fut)
        self.run_callbacks_on_exit = False
        return ended


_RANGE = "profiler._RecordFunction"
_MARK = b"RLRECORD"  # in a handle that is a tensor, before its number


def _enter(*args: Any, **kwargs: Any) -> ScriptObject:
    """Begins a range of this name; what `_exit` takes to end it."""
    if args and isinstance(args[0], str) and (len(args) == 1 or args[1] is None):
        return ScriptObject._of(_RANGE, _C.profiler_begin(args[0]))
    _refuse("_record_function_enter_new(str name, str? args=None) -> Any", args, kwargs)
    return ScriptObject._of(_RANGE, _C.profiler_begin(kwargs.get("name", *args[:1])))


def _enter_as_tensor(*args: Any, **kwargs: Any) -> Any:
    """The same with a tensor for a handle, as it was in older versions of torch."""
    import rushlight

    written = bytearray(_MARK + bytes(8))
    handle = rushlight.frombuffer(written, dtype=_C.uint8)  # before the range begins: it is no part of it
    written[8:] = _enter(*args, **kwargs)._held.to_bytes(8, "little", signed=True)
    return handle


def _exit(handle: Any) -> None:
    _C.profiler_end(_number(handle, "_record_function_exit(Tensor handle) -> ()"))


def _number(handle: Any, schema: str, *more: Any) -> int:
    """The number of the range that a handle stands for."""
    if isinstance(handle, ScriptObject) and handle._type().name() == "_RecordFunction":
        return handle._held
    if not isinstance(handle, _C.Tensor):
        _refuse(
            schema,
            (handle, *more),
            {},
            "Overloaded torch operator invoked from Python failed to match any schema:\n",
        )
    if handle.dtype is not _C.uint8 or bytes(handle.tolist())[:8] != _MARK:
        raise RuntimeError("Expected temporary cpp type wrapper")
    return int.from_bytes(bytes(handle.tolist())[8:], "little", signed=True)


def _end_with(handle: Any, fut: Any) -> Any:
    """Ends a range when a future is complete; a future of the same value, complete after that."""
    from rushlight.futures import Future

    number = _number(handle, "_call_end_callbacks_on_jit_fut(Tensor x, Any y) -> Any", fut)
    if not isinstance(fut, Future):
        raise RuntimeError(
            "profiler::_call_end_callbacks_on_jit_fut() Expected a value of type 'Future[t]' for argument "
            f"'y' but instead found type '{type(fut).__name__}'."
        )

    def end(complete: Future) -> Any:
        _C.profiler_end(number)
        return complete.value()

    return fut.then(end)


def _refuse(schema: str, args: tuple, kwargs: dict, before: str = "") -> None:
    """Raises what is wrong with the arguments, if something is."""
    from rushlight._schema import parse

    refusal = parse(f"profiler::{schema}").refusal(args, kwargs)
    if refusal is not None:
        raise RuntimeError(before + refusal)


_PROFILER_OPS = {
    "_record_function_enter": _enter_as_tensor,
    "_record_function_enter_new": _enter,
    "_record_function_exit": _exit,
    "_call_end_callbacks_on_jit_fut": _end_with,
}


def _record_function_with_args_enter(name: str, *args: Any) -> ScriptObject:
    if not isinstance(name, str):
        raise TypeError(
            "_record_function_with_args_enter(): incompatible function arguments. The following argument "
            "types are supported:\n    a name and whatever is to be noted"
        )
    return ScriptObject._of(_RANGE, _C.profiler_begin(name, *args))


def _record_function_with_args_exit(handle: Any) -> None:
    _exit(handle)


class emit_nvtx:
    """Every operation as an NVTX range, for NVIDIA's profiler: not implemented."""

    _what = "NVTX"

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled, self.entered, self.record_shapes = enabled, False, record_shapes

    def _listen(self) -> None:
        raise AssertionError("Torch not compiled with CUDA enabled")

    def __enter__(self) -> Any:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError(f"{self._what} annotation context manager is not reentrant")
        self.entered = True
        self._listen()
        return self

    def __exit__(self, *error: object) -> bool | None:
        return False if self.enabled else None


class emit_itt(emit_nvtx):
    """Every operation as an ITT range, for Intel's profiler: not implemented where one listens."""

    _what = "ITT"

    def _listen(self) -> None:
        from rushlight.profiler import itt

        itt.mark("emit_itt")  # refuses where a collector listens


class EnforceUnique:
    """Raises an error if a key is seen twice."""

    def __init__(self) -> None:
        self.seen: set = set()

    def see(self, *key: Any) -> None:
        """Notes a key."""
        if key in self.seen:
            raise RuntimeError("duplicate key: " + str(key))
        self.seen.add(key)


def load_nvprof(path: str) -> EventList:
    """The events of a trace that nvprof wrote: not implemented."""
    return EventList(parse_nvprof_trace(path))


def parse_nvprof_trace(path: str) -> list[FunctionEvent]:
    """The events of a trace that nvprof wrote: not implemented."""
    raise NotImplementedError("traces of nvprof are not read: Rushlight does not run on that device")


class KinetoStepTracker:
    """Which step a training run is at, when several parts of it count steps of their own."""

    _current_step = 0
    _step_dict: dict[str, int] = {}
    _lock = threading.Lock()

    @classmethod
    def init_step_count(cls, requester: str) -> None:
        """A part begins to count."""
        with cls._lock:
            cls._step_dict[requester] = cls._current_step

    @classmethod
    def erase_step_count(cls, requester: str) -> bool:
        """A part no longer counts; whether it did."""
        with cls._lock:
            return cls._step_dict.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester: str) -> int:
        """A part has made a step; the step of the whole is that of the furthest part."""
        with cls._lock:
            cls._step_dict[requester] = cls._step_dict.get(requester, cls._current_step) + 1
            cls._current_step = max(cls._current_step, *cls._step_dict.values())
            return cls._current_step

    @classmethod
    def current_step(cls) -> int:
        """The step of the whole."""
        return cls._current_step
