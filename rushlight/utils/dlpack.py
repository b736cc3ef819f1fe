"""Exchange of tensors with other libraries without copying, through DLPack."""

from __future__ import annotations

import enum
from typing import Any

from rushlight import _C
from rushlight._exchange import from_dlpack
from rushlight._type_names import type_name as class_name

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]


class DLDeviceType(enum.IntEnum):
    """DLPack's numbers for kinds of devices."""

    kDLCPU, kDLCUDA, kDLCUDAHost = 1, 2, 3
    kDLOpenCL, kDLVulkan, kDLMetal, kDLVPI, kDLROCM, kDLROCMHost = 4, 7, 8, 9, 10, 11
    kDLExtDev, kDLCUDAManaged, kDLOneAPI, kDLWebGPU, kDLHexagon, kDLMAIA = 12, 13, 14, 15, 16, 17


def to_dlpack(tensor: Any) -> Any:
    """A DLPack capsule on this tensor's memory, to be taken once by another library's `from_dlpack`.

    >>> x = rushlight.arange(3)
    >>> rushlight.utils.dlpack.from_dlpack(rushlight.utils.dlpack.to_dlpack(x))
    tensor([0, 1, 2])
    """
    if not isinstance(tensor, _C.Tensor):
        given = class_name(tensor)
        raise TypeError(f"_to_dlpack(): argument 'data' (position 1) must be Tensor, not {given}")
    # Unlike __dlpack__, which refuses it, this function hands out what requires grad.
    return tensor.detach().__dlpack__()
