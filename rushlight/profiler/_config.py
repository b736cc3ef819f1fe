"""Settings of the profiler that torch calls experimental, and its fast ranges."""

from __future__ import annotations

from typing import Any

from rushlight._numbered import RecordScope as RecordScope  # where programs look for it
from rushlight.autograd.profiler import record_function


class _ExperimentalConfig:
    """Settings of a profile. Those about devices that are not there change nothing, as in torch; those that
    would change a profile of the CPU are refused, except `verbose`: call stacks are written anyway."""

    def __init__(
        self, profiler_metrics: Any = (), profiler_measure_per_kernel: bool = False, verbose: bool = False,
        performance_events: Any = (), enable_cuda_sync_events: bool = False,
        adjust_profiler_step: bool = False, disable_external_correlation: bool = False,
        profile_all_threads: bool = False, capture_overload_names: bool = False,
        record_python_gc_info: bool = False, expose_kineto_event_metadata: bool = False,
        custom_profiler_config: str = "", adjust_timestamps: bool = False, trace_only: bool = False,
    ) -> None:  # fmt: skip
        refused = {
            "capture_overload_names": capture_overload_names, "record_python_gc_info": record_python_gc_info,
            "expose_kineto_event_metadata": expose_kineto_event_metadata, "trace_only": trace_only,
            "custom_profiler_config": custom_profiler_config, "adjust_profiler_step": adjust_profiler_step,
        }  # fmt: skip
        for name, value in refused.items():
            if value:
                raise NotImplementedError(f"experimental_config with {name} is not implemented")
        self.profile_all_threads = profile_all_threads
        self.profiler_metrics, self.verbose = list(profiler_metrics), verbose
        self.custom_profiler_config, self.trace_only = custom_profiler_config, trace_only


class _RecordFunctionFast:
    """A named range; `record_function` under the name of torch's native one."""

    def __init__(self, name: str, input_values: Any = None, keyword_values: Any = None) -> None:
        self._name = name
        self._range: record_function | None = None

    def __enter__(self) -> None:
        self._range = record_function(self._name)
        self._range.__enter__()

    def __exit__(self, *error: Any) -> None:
        if self._range is not None:
            self._range.__exit__(*error)
