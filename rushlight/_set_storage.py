"""`Tensor.set_`: a tensor moves to the memory of another tensor or of a storage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import rushlight
from rushlight import _C
from rushlight.ops._public import C_NAMES
from rushlight.storage import TypedStorage


def set_storage(
    tensor: _C.Tensor, source: Any, offset: int, size: Sequence | None, stride: Sequence | None
) -> _C.Tensor:
    """What Tensor.set_ does: `tensor` moves to the memory of `source`."""
    if any(isinstance(t, _C.Tensor) and _C.tangent(t) is not None for t in (tensor, source)):
        raise NotImplementedError(
            "Trying to use forward AD with set_ that does not support it because it has not been implemented "
            "yet."
        )
    if isinstance(source, _C.Tensor) and source.dtype != tensor.dtype:
        raise RuntimeError(
            f"Could not set tensor of type {C_NAMES[source.dtype]} to a tensor of type "
            f"{C_NAMES[tensor.dtype]}"
        )
    _C.check_inplace(tensor)
    operands = (tensor,) if source is None else (tensor, source)
    if source is None:
        source, size = rushlight.empty(0, dtype=tensor.dtype, device=tensor.device), (0,)
    if isinstance(source, _C.Tensor):
        if size is None:
            offset, size, stride = source.storage_offset(), source.shape, source.stride()
        memory = source
    elif isinstance(source, TypedStorage):
        if source.dtype != tensor.dtype:
            raise RuntimeError(
                f"Expected a Storage of type {C_NAMES[tensor.dtype]} or an UntypedStorage, but got type "
                f"{source._pickle_storage_type().removesuffix('Storage')} for argument 1 'storage'"
            )
        memory = source._untyped_storage._bytes
    else:
        memory = source._bytes
    if size is None:
        size = (_C.storage_nbytes(memory) // tensor.dtype.itemsize,)
    size, given = tuple(map(int, size)), stride
    if size and (min(size) < 0 or (0 not in size and math.prod(size) >= 2**63)):
        raise RuntimeError("numel: integer multiplication overflow")
    if not stride:
        stride, step = [], 1
        for length in reversed(size):
            stride.insert(0, step)
            step *= max(length, 1)
        if max(stride, default=0) >= 2**63:
            raise RuntimeError("Stride calculation overflowed")
    if len(size) != len(stride):
        raise RuntimeError(f"unequal size length ({len(size)}) and stride length ({len(stride)})")
    offset = int(offset)
    if offset >= 0 and size and min(*size, *stride) >= 0 and all(size):
        reach = offset + 1 + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
        if max(reach, math.prod(size)) * tensor.dtype.itemsize >= 2**63:
            told = f"sizes={list(size)}" + (f" and strides={list(stride)}" if given is not None else "")
            raise RuntimeError(f"Storage size calculation overflowed with {told}")
        moved = tensor.shape != size or tensor.stride() != tuple(stride)  # torch grows for no other reason
        if moved and reach * tensor.dtype.itemsize > _C.storage_nbytes(memory) and _C.is_resizable(memory):
            _C.resize_storage(memory, reach * tensor.dtype.itemsize)
    made = None
    if _C.is_grad_enabled() and any(isinstance(t, _C.Tensor) and t.requires_grad for t in operands):
        # What the graph says about the old memory is not true of the new one.
        from rushlight.autograd.function import without_derivative

        alike = _C.empty(size, tensor.dtype, tensor.device)
        made = without_derivative("set_", alike, *operands, space="")
    _C.set_storage(tensor, memory, tensor.dtype, offset, tuple(size), tuple(stride))
    if made is not None:
        _C.take_history(tensor, made)
    return tensor
