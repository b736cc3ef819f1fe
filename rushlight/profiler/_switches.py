"""Taking a profile by hand, as torch's own profilers do it: `_enable_profiler(config, activities)` begins,
`_disable_profiler()` ends and returns what there was. `torch.autograd.profiler.profile` does both."""

from __future__ import annotations

import time
from typing import Any

from rushlight import _C
from rushlight._numbered import ActiveProfilerType, ProfilerActivity, ProfilerState
from rushlight._type_names import type_name
from rushlight.autograd import profiler
from rushlight.profiler._config import _ExperimentalConfig
from rushlight.profiler._results import ProfilerEvent, _ProfilerResult, as_records
from rushlight.profiler.profiler import supported_activities as _supported_activities  # noqa: F401

_NAMES = ["state", "report_input_shapes", "profile_memory", "with_stack", "with_flops", "with_modules"]


class ProfilerConfig:
    """What a profile measures, and how."""

    def __init__(
        self, state: ProfilerState, report_input_shapes: bool, profile_memory: bool, with_stack: bool,
        with_flops: bool, with_modules: bool, experimental_config: _ExperimentalConfig, trace_id: str = "",
    ) -> None:  # fmt: skip
        given = (state, report_input_shapes, profile_memory, with_stack, with_flops, with_modules)
        for name, value in zip(_NAMES, given, strict=True):
            kind = ProfilerState if name == "state" else bool
            if not isinstance(value, kind):
                raise TypeError(
                    f"__init__(): incompatible constructor arguments. {name} must be a {kind.__name__}, not "
                    f"{type_name(value)}"
                )
        self._state, self._shapes, self._memory, self._stacks, self._flops, self._modules = given
        self._experimental, self._trace_id = experimental_config, trace_id


_active: list[tuple[ProfilerConfig, int]] = []  # the profile that is being taken by hand, and its beginning


def _prepare_profiler(config: ProfilerConfig, activities: Any, activity_filter: Any = None) -> None:
    """Gets ready to measure: nothing needs to be."""
    _check(config)


def _check(config: ProfilerConfig) -> None:
    if config._state is ProfilerState.NVTX:
        raise RuntimeError("Can't use NVTX profiler - PyTorch was compiled without CUDA")
    if config._state is not ProfilerState.KINETO:
        raise NotImplementedError(f"a profile of the kind {config._state.name} cannot be taken by hand")


def _start(config: ProfilerConfig) -> None:
    from rushlight._taken_apart import show_steps

    if _C._profiler_enabled():
        raise RuntimeError("Profiler is already enabled on this thread.")
    show_steps()
    every = config._experimental.profile_all_threads
    _C.profiler_start(config._shapes or config._flops, config._stacks, config._memory, every)
    _active[:] = [(config, time.perf_counter_ns())]


def _enable_profiler(config: ProfilerConfig, activities: Any, scopes: Any = frozenset()) -> None:
    """Begins to measure this thread."""
    _check(config)
    if scopes:
        raise NotImplementedError("events of all scopes are measured: some of them cannot be left out")
    if ProfilerActivity.CPU not in activities:
        raise NotImplementedError(
            "a profile without ProfilerActivity.CPU: there is no other device to measure"
        )
    _start(config)


def _stop() -> tuple[ProfilerConfig, int, list]:
    config, start = _active.pop()
    return config, start, _C.profiler_stop()


def _disable_profiler() -> _ProfilerResult:
    """Ends the profile that `_enable_profiler` began; an empty result if there is none."""
    if not _active or not _C._profiler_enabled() or _active[0][0]._state is not ProfilerState.KINETO:
        return _ProfilerResult()
    config, _, raw = _stop()
    return profiler._results(raw, config._flops)


def _enable_profiler_legacy(config: ProfilerConfig) -> None:
    """Begins to measure this thread for the older profiler."""
    if config._state is not ProfilerState.CPU:
        raise NotImplementedError(f"the older profiler measures the CPU, not {config._state.name}")
    if _C._profiler_enabled():
        raise RuntimeError("Profiler is already enabled on this thread")
    _start(config)


def _disable_profiler_legacy(profiler_disable_options: Any = None) -> list[list[ProfilerEvent]]:
    """Ends what `_enable_profiler_legacy` began: the records of every thread, of which there is one."""
    if not _active or not _C._profiler_enabled() or _active[0][0]._state is not ProfilerState.CPU:
        raise RuntimeError("Expected debug info of type PROFILER_STATE")
    config, start, raw = _stop()
    first = raw[0][1] if raw else start
    events = profiler._all_events(raw, config._flops)
    return [as_records(events, (time.perf_counter_ns() - first) / 1e3)]


def _profiler_type() -> ActiveProfilerType:
    """Which kind of profile is being taken."""
    if not _C._profiler_enabled():
        return ActiveProfilerType.NONE
    legacy = bool(_active) and _active[0][0]._state is ProfilerState.CPU
    return ActiveProfilerType.LEGACY if legacy else ActiveProfilerType.KINETO


def _kineto_step() -> None:
    """Tells those who profile a service from outside that a step is done: nobody does here."""


def _is_kineto_stopped() -> bool:
    """Whether a profile taken from outside has ended: none is taken."""
    return False


def _add_metadata_json(key: str, value: str) -> None:
    """Writes something into the trace of the profile that is being taken."""
    if profiler._running is not None:
        profiler._running.metadata[key] = value


def _toggle_collection_dynamic(enable: bool, activities: Any) -> None:
    """Switches measuring off and on again in the middle; other activities than the CPU's are none here."""
    if ProfilerActivity.CPU in activities:
        _C.profiler_pause(not enable)


def _enable_record_function(enabled: bool) -> None:
    """Whether operations of this thread are noted while a profile is taken."""
    if not hasattr(type(enabled), "__bool__"):
        raise TypeError(
            "_enable_record_function(): incompatible function arguments. The following argument types are "
            f"supported:\n    1. (arg0: bool) -> None\n\nInvoked with: {enabled!r}"
        )
    _C.profiler_note(bool(enabled))


def _set_empty_test_observer(is_global: bool, sampling_prob: float) -> None:
    """Adds an observer of operations that does nothing, to measure what observing costs."""
    raise NotImplementedError("there are no observers of operations besides the profiler")


def _clear_callbacks() -> None:
    """Removes all observers of operations: there are none."""


def _soft_assert_raises(value: bool | None) -> None:
    """Whether a failed check within the profiler raises or is only logged: there are no such checks."""


class _ProfilerDisableOptions:
    """How the older profiler ends: nothing can be chosen."""
