"""Numbered names, of the profiler and of views, which torch keeps in its extension: each has a name, a value,
and is an int when it is asked to be one."""

from __future__ import annotations

import enum


class Numbered(enum.Enum):
    """An enumeration as torch's extension makes them: `int(member)` works, members equal no number."""

    def __int__(self) -> int:
        return self.value

    __index__ = __int__


class CreationMeta(Numbered):
    """How a view came about; decides what writing into it in place means."""

    DEFAULT = 0
    IN_CUSTOM_FUNCTION = 1
    MULTI_OUTPUT_NODE = 2
    NO_GRAD_MODE = 3
    INFERENCE_MODE = 4


class DeviceType(Numbered):
    """Where something ran."""

    CPU, CUDA, MKLDNN, OPENGL, OPENCL, IDEEP, HIP, FPGA, MAIA, XLA, Vulkan, Metal, XPU, MPS = range(14)
    Meta, HPU, VE, Lazy, IPU, MTIA, PrivateUse1 = range(14, 21)


class ProfilerActivity(Numbered):
    """What can be measured."""

    CPU = 0
    XPU = 1
    CUDA = 2
    HPU = 3
    MTIA = 4
    PrivateUse1 = 5


class ProfilerState(Numbered):
    """How a profile is taken. Here there are two ways: CPU (of the older functions) and KINETO."""

    Disabled = 0
    CPU = 1
    CUDA = 2
    NVTX = 3
    ITT = 4
    PRIVATEUSE1 = 5
    KINETO = 6
    KINETO_GPU_FALLBACK = 7
    KINETO_PRIVATEUSE1_FALLBACK = 8
    KINETO_PRIVATEUSE1 = 9


class ActiveProfilerType(Numbered):
    """Which kind of profile is being taken."""

    NONE = 0
    LEGACY = 1
    KINETO = 2
    NVTX = 3
    ITT = 4
    PRIVATEUSE1 = 5


class RecordScope(Numbered):
    """Where an event comes from."""

    FUNCTION = 0
    BACKWARD_FUNCTION = 1
    TORCHSCRIPT_FUNCTION = 2
    KERNEL_FUNCTION_DTYPE = 3
    CUSTOM_CLASS = 4
    BUILD_FEATURE = 5
    LITE_INTERPRETER = 6
    USER_SCOPE = 7
    STATIC_RUNTIME_OP = 8
    STATIC_RUNTIME_MODEL = 9


class _EventType(Numbered):
    """What an event of a profile's tree is. Here all are operations or allocations."""

    TorchOp = 0
    Backend = 1
    Vulkan = 2
    Allocation = 3
    PyCall = 5
    PyCCall = 6
    Kineto = 7
