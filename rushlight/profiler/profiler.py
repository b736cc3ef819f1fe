"""Profiles of a training loop: which steps are measured, and what to do with a finished trace.

The measuring is that of `rushlight.autograd.profiler`.
"""

from __future__ import annotations

import enum
import json
import os
import socket
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from rushlight._numbered import ProfilerActivity
from rushlight._warn import warn_once
from rushlight.autograd.profiler import EventList, kineto_available, record_function
from rushlight.autograd.profiler import profile as _measure

__all__ = [
    "supported_activities", "ProfilerAction", "ProfilerActivity", "schedule", "tensorboard_trace_handler",
    "profile", "ExecutionTraceObserver", "kineto_available",
]  # fmt: skip


class ProfilerAction(enum.Enum):
    """What the profiler does during a step. The last is no schedule's to say: there is no device to stop."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3
    DEVICE_STOPPED = 4


_ON_DEVICES = set(ProfilerActivity) - {ProfilerActivity.CPU, ProfilerActivity.PrivateUse1}


def supported_activities() -> set[ProfilerActivity]:
    """What can be measured on this machine."""
    return {ProfilerActivity.CPU}


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """Which steps are measured: skip some, then over and over wait, warm up, measure.

    >>> plan = rushlight.profiler.schedule(wait=1, warmup=1, active=1)
    >>> [plan(step).name for step in range(4)]
    ['NONE', 'WARMUP', 'RECORD_AND_SAVE', 'NONE']
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} (need >= 0), "
            f"active={active} (need > 0), repeat={repeat} (need >= 0), skip_first={skip_first} (need >= 0)."
        )
    if warmup == 0:
        warnings.warn("Profiler won't be using warmup, this can skew profiler results", stacklevel=2)

    def plan(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        cycle = wait + warmup + active
        if repeat and step // cycle >= repeat:
            return ProfilerAction.NONE
        step %= cycle
        if step < wait:
            return ProfilerAction.NONE
        if step < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if step < cycle - 1 else ProfilerAction.RECORD_AND_SAVE

    return plan


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False, use_python_export: bool = False
) -> Callable:
    """An `on_trace_ready` that writes each trace into a directory, as the TensorBoard plugin reads them."""

    def handle(profiler: profile) -> None:
        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as error:
            raise RuntimeError("Can't create directory: " + dir_name) from error
        name = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        suffix = ".pt.trace.json.gz" if use_gzip else ".pt.trace.json"
        path = os.path.join(dir_name, f"{name}.{time.time_ns()}{suffix}")
        profiler.export_chrome_trace(path, use_python_export=use_python_export)

    return handle


class ExecutionTraceObserver:
    """Writes every operation with its arguments as a graph: not implemented."""

    def __init__(self) -> None:
        raise NotImplementedError("execution traces are not implemented; export_chrome_trace writes times")


class _KinetoProfile:
    """A profile that is started and stopped, without steps."""

    def __init__(
        self, *, activities: Iterable[ProfilerActivity] | None = None, record_shapes: bool = False,
        profile_memory: bool = False, with_stack: bool = False, with_flops: bool = False,
        with_modules: bool = False, experimental_config: Any = None, execution_trace_observer: Any = None,
        acc_events: bool = False, custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:  # fmt: skip
        self.post_processing_timeout_s = post_processing_timeout_s
        self.activities = set(activities) if activities is not None else supported_activities()
        if not self.activities & set(ProfilerActivity):
            raise AssertionError("No valid profiler activities found")
        if execution_trace_observer is not None:
            raise NotImplementedError("execution_trace_observer is not implemented")
        self.record_shapes, self.profile_memory = record_shapes, profile_memory
        self.with_stack, self.with_flops, self.with_modules = with_stack, with_flops, with_modules
        self.acc_events, self.experimental_config = acc_events, experimental_config
        self.custom_trace_id_callback = custom_trace_id_callback
        self.profiler: _measure | None = None
        self._preset: dict = {}
        self._kept: list = []

    def start(self) -> None:
        """Begins to measure."""
        self.prepare_trace()
        self.start_trace()

    def stop(self) -> None:
        """Ends measuring."""
        self.stop_trace()

    def prepare_trace(self) -> None:
        """Makes ready to measure; costs nothing here."""
        devices = sorted((a.value, a.name.lower()) for a in self.activities & _ON_DEVICES)
        self.profiler = _measure(
            use_cpu=ProfilerActivity.CPU in self.activities, use_kineto=True,
            use_device=devices[-1][1] if devices else None, record_shapes=self.record_shapes,
            profile_memory=self.profile_memory, with_stack=self.with_stack,
            with_flops=self.with_flops, with_modules=self.with_modules,
            experimental_config=self.experimental_config,
            custom_trace_id_callback=self.custom_trace_id_callback,
        )  # fmt: skip
        self.profiler.metadata.update(self._preset)

    def start_trace(self) -> None:
        """Begins to measure."""
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before starting trace")
        self.profiler._start_trace()

    def stop_trace(self) -> None:
        """Ends measuring."""
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before stopping trace")
        self.profiler.__exit__(None, None, None)
        if self.acc_events:
            self._kept = [*self.profiler.function_events, *self._kept]  # the last first, as in torch

    def events(self) -> EventList:
        """The events of the last trace, or of all with `acc_events`."""
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before accessing events")
        found = self.profiler.function_events
        if not self.acc_events:
            return found
        return EventList(
            self._kept, profile_memory=self.profile_memory, with_flops=self.with_flops, tree_built=True
        )

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """One entry per operation of the trace; per input shapes or call stack too if asked."""
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before getting key averages")
        return self.events().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def export_chrome_trace(self, path: str, use_python_export: bool = False) -> None:
        """Writes the last trace for chrome://tracing and Perfetto; compressed if the name ends in .gz."""
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before exporting chrome trace")
        if not path.endswith(".gz"):
            self.profiler.export_chrome_trace(path)
            return
        import gzip

        plain = path.removesuffix(".gz")
        self.profiler.export_chrome_trace(plain)
        with open(plain, "rb") as source, gzip.open(path, "wb") as target:
            target.write(source.read())
        os.remove(plain)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes call stacks with their times for flame graph tools."""
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before exporting stacks")
        self.profiler.export_stacks(path, metric)

    def export_memory_timeline(self, path: str, device: str | None = None) -> None:
        """Writes how the memory of each category grew and shrank: not implemented."""
        raise NotImplementedError("export_memory_timeline is not implemented; profile_memory counts bytes")

    def toggle_collection_dynamic(self, enable: bool, activities: Any) -> None:
        """Switches measuring off and on again in the middle."""
        if self.profiler is not None:
            self.profiler.toggle_collection_dynamic(enable, activities)

    def add_metadata(self, key: str, value: str) -> None:
        """Puts a text into the exported trace."""
        self._metadata()[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Puts something given as JSON into the exported trace."""
        self._metadata()[key] = json.loads(value)

    def preset_metadata_json(self, key: str, value: str) -> None:
        """The same for all traces that begin from now on."""
        self._preset[key] = json.loads(value)

    def _metadata(self) -> dict:
        return self._preset if self.profiler is None else self.profiler.metadata


class profile(_KinetoProfile):
    """Measures a block of code, or of a loop the steps that `schedule` names.

    >>> with rushlight.profiler.profile(profile_memory=True) as measured:
    ...     _ = rushlight.tensor([1.0]).exp()
    >>> [average.key for average in measured.key_averages()]
    ['aten::tensor', 'aten::exp']
    """

    def __init__(
        self, *, schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None, use_cuda: bool | None = None, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(**options)
        if use_cuda is not None:
            warnings.warn(
                "`use_cuda` is deprecated, use `activities` argument instead", FutureWarning, stacklevel=2
            )
        self.record_steps = schedule is not None
        self.schedule = schedule or (lambda step: ProfilerAction.RECORD)
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.current_action = self.schedule(0)
        self._started = self._measuring = False
        self._traces = 0
        self._step_record: record_function | None = None

    def start(self) -> None:
        """Begins with the first step."""
        self._started = True
        self._enter(self.schedule(self.step_num))

    def stop(self) -> None:
        """Ends the step that runs; a trace that was being measured is ready."""
        self._end_step()
        if self._measuring:
            self._finish()
        elif self.profiler is None:
            raise AssertionError("Profiler must be initialized before stopping trace")

    def step(self) -> None:
        """Says that the next step begins."""
        self._end_step()
        before = self.current_action
        self.step_num += 1
        if not self._started:
            return
        if before is ProfilerAction.RECORD_AND_SAVE and self._measuring:
            self._finish()
        action = self.schedule(self.step_num)
        refused = {ProfilerAction.WARMUP: (ProfilerAction.NONE,),
                    ProfilerAction.RECORD: (ProfilerAction.NONE, ProfilerAction.WARMUP)}  # fmt: skip
        if action in refused.get(before, ()):
            warnings.warn(f"Incorrect schedule: {before.name} followed by {action.name}", stacklevel=2)
            if self._measuring:
                self._measuring = False
                self.stop_trace()
        self._enter(action)

    def _enter(self, action: ProfilerAction) -> None:
        self.current_action = action
        if action is ProfilerAction.NONE:
            return
        if not self._measuring and (action is not ProfilerAction.WARMUP or self.profiler is None):
            self.prepare_trace()
        if action is ProfilerAction.WARMUP:
            return
        if not self._measuring:
            if self._traces == 1 and not self.acc_events:
                warn_once(
                    "Warning: Profiler clears events at the end of each cycle. Only events from the current "
                    "cycle will be reported. To keep events across cycles, set acc_events=True."
                )
            self._traces += 1
            self.start_trace()
            self._measuring = True
        if self.record_steps:
            self._step_record = record_function(f"ProfilerStep#{self.step_num}")
            self._step_record.__enter__()

    def _end_step(self) -> None:
        if self._step_record is not None:
            self._step_record.__exit__()
            self._step_record = None

    def _finish(self) -> None:
        self._measuring = False
        self.stop_trace()
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def set_custom_trace_id_callback(self, callback: Callable[[], str]) -> None:
        """Sets the function that names each trace."""
        self.custom_trace_id_callback = callback

    def get_trace_id(self) -> str | None:
        """The name of the trace."""
        return None if self.profiler is None else self.profiler.trace_id

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()
