"""torch.profiler: profiles of a training loop, step by step.

The measuring is that of `rushlight.autograd.profiler`; here are the schedule (which steps are measured) and
what to do with a finished trace.
"""

from __future__ import annotations

import enum
import os
import socket
import time
from collections.abc import Callable, Iterable
from typing import Any

from rushlight.autograd.profiler import EventList, record_function
from rushlight.autograd.profiler import profile as _measure

__all__ = [
    "profile", "schedule", "tensorboard_trace_handler", "ProfilerAction", "ProfilerActivity",
    "record_function", "supported_activities",
]  # fmt: skip


class ProfilerActivity(enum.Enum):
    """What can be measured."""

    CPU = 0
    XPU = 1
    CUDA = 2


class ProfilerAction(enum.Enum):
    """What the profiler does during a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


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
        raise ValueError("Invalid profiler schedule arguments")

    def plan(step: int) -> ProfilerAction:
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
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable:
    """An `on_trace_ready` that writes each trace into a directory, as the TensorBoard plugin reads them."""

    def handle(profiler: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        name = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        suffix = ".pt.trace.json.gz" if use_gzip else ".pt.trace.json"
        profiler.export_chrome_trace(os.path.join(dir_name, f"{name}.{time.time_ns()}{suffix}"))

    return handle


class profile:
    """Measures a block of code, or of a loop the steps that `schedule` names.

    >>> with rushlight.profiler.profile(profile_memory=True) as measured:
    ...     _ = rushlight.ones(1000).exp()
    >>> [average.key for average in measured.key_averages()]
    ['aten::exp']
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        acc_events: bool = False,
    ) -> None:
        wanted = set(activities) if activities is not None else supported_activities()
        if not wanted & supported_activities():
            raise ValueError("No valid profiler activities found")
        for name, value in (("with_stack", with_stack), ("with_flops", with_flops),
                            ("with_modules", with_modules)):  # fmt: skip
            if value:
                raise NotImplementedError(f"profile({name}=True): Rushlight's profiler does not measure that")
        self.activities = wanted
        self.schedule = schedule or (lambda step: ProfilerAction.RECORD)
        self.on_trace_ready = on_trace_ready
        self.options: Any = {"record_shapes": record_shapes, "profile_memory": profile_memory}
        self.acc_events = acc_events
        self.step_num = 0
        self.current_action = ProfilerAction.NONE
        self._running: _measure | None = None
        self._kept: list = []
        self._step_record: record_function | None = None

    def start(self) -> None:
        """Begins with the first step."""
        self._enter(self.schedule(self.step_num))

    def stop(self) -> None:
        """Ends the step that runs; a trace that was being measured is ready."""
        self._end_step()
        if self._running is not None:
            self._finish()

    def step(self) -> None:
        """Says that the next step begins."""
        self._end_step()
        before = self.current_action
        self.step_num += 1
        if before is ProfilerAction.RECORD_AND_SAVE:
            self._finish()
        self._enter(self.schedule(self.step_num))

    def _enter(self, action: ProfilerAction) -> None:
        self.current_action = action
        if action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE):
            if self._running is None:
                self._running = _measure(**self.options)
                self._running.__enter__()
            if self.step_num:
                self._step_record = record_function(f"ProfilerStep#{self.step_num}")
                self._step_record.__enter__()

    def _end_step(self) -> None:
        if self._step_record is not None:
            self._step_record.__exit__()
            self._step_record = None

    def _finish(self) -> None:
        assert self._running is not None
        self._running.__exit__()
        found = list(self._running._events())
        self._kept = [*self._kept, *found] if self.acc_events else found
        self._running = None
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def events(self) -> EventList:
        """The events of the last trace."""
        return EventList(self._kept, self.options["profile_memory"])

    def key_averages(self, group_by_input_shape: bool = False, **ignored: Any) -> EventList:
        """One entry per operation of the last trace."""
        return self.events().key_averages(group_by_input_shape)

    def export_chrome_trace(self, path: str) -> None:
        """Writes the last trace for chrome://tracing and Perfetto; compressed if the name ends in .gz."""
        if not path.endswith(".gz"):
            self.events().export_chrome_trace(path)
            return
        import gzip

        plain = path.removesuffix(".gz")
        self.events().export_chrome_trace(plain)
        with open(plain, "rb") as source, gzip.open(path, "wb") as target:
            target.write(source.read())
        os.remove(plain)
