"""torch.profiler: profiles of a training loop, step by step."""

from rushlight.autograd.profiler import KinetoStepTracker, record_function
from rushlight.autograd.profiler_util import DeviceType
from rushlight.profiler import itt, profiler
from rushlight.profiler.profiler import (
    ExecutionTraceObserver,
    ProfilerAction,
    ProfilerActivity,
    _KinetoProfile,
    kineto_available,
    profile,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)

__all__ = [
    "profile", "schedule", "supported_activities", "tensorboard_trace_handler", "ProfilerAction",
    "ProfilerActivity", "kineto_available", "DeviceType", "record_function", "ExecutionTraceObserver",
]  # fmt: skip


def __getattr__(name):
    if name in ("_ExperimentalConfig", "RecordScope"):
        from rushlight.profiler import _config

        return getattr(_config, name)
    raise AttributeError(f"module 'torch.profiler' has no attribute '{name}'")
