"""Exchange of tensors with other libraries without copying, through DLPack."""

from __future__ import annotations

from typing import Any

from rushlight import _C
from rushlight._exchange import from_dlpack

__all__ = ["from_dlpack", "to_dlpack"]


def to_dlpack(tensor: _C.Tensor) -> Any:
    """A DLPack capsule on this tensor's memory, to be taken once by another library's `from_dlpack`.

    >>> x = rushlight.arange(3)
    >>> rushlight.utils.dlpack.from_dlpack(rushlight.utils.dlpack.to_dlpack(x))
    tensor([0, 1, 2])
    """
    return tensor.__dlpack__()
