"""Which devices compute lists of tensors in one kernel, and the grouping optimisers do for it."""

from __future__ import annotations

from typing import Any

from rushlight import _C

_foreach_supported_types = [_C.Tensor]


def _get_foreach_kernels_supported_devices() -> list[str]:
    """The devices on which optimisers use list kernels by themselves: none of those here."""
    return ["cuda", "xpu", "mtia", _C._get_privateuse1_backend_name()]


def _get_fused_kernels_supported_devices() -> list[str]:
    """The devices on which fused optimisers run."""
    return ["mps", "cuda", "xpu", "hpu", "cpu", "mtia", _C._get_privateuse1_backend_name()]


def _has_foreach_support(tensors: list, device: Any) -> bool:
    """Whether list functions take these tensors: on the CPU, any plain ones."""
    return device.type in ("cpu", *_get_foreach_kernels_supported_devices()) and all(
        t is None or type(t) in (_C.Tensor, _parameter()) for t in tensors
    )


def _device_has_foreach_support(device: Any) -> bool:
    return device.type in ("cpu", *_get_foreach_kernels_supported_devices())


def _parameter() -> type:
    from rushlight.nn import Parameter

    return Parameter


def _group_tensors_by_device_and_dtype(tensorlistlist: list[list], with_indices: bool = False) -> dict:
    """Sorts parallel lists by the device and dtype of the first list's tensors.

    >>> a, b = rushlight.ones(1), rushlight.ones(1, dtype=rushlight.float64)
    >>> groups = rushlight.utils._foreach_utils._group_tensors_by_device_and_dtype([[a, b]])
    >>> [str(dtype) for device, dtype in groups]
    ['torch.float32', 'torch.float64']
    """
    _check_parallel(tensorlistlist)
    groups: dict[Any, Any] = {}
    for index, first in enumerate(tensorlistlist[0]):
        key = (first.device, first.dtype)
        lists, indices = groups.setdefault(key, ([[] for _ in tensorlistlist], []))
        for target, source in zip(lists, tensorlistlist, strict=True):
            if source:
                target.append(source[index])
        if with_indices:
            indices.append(index)
    return groups


def _check_parallel(lists: list[list]) -> None:
    """Lists of one length (or empty), whose tensors of one place go together: they share device and dtype, or
    are counts of steps or states of lower precision."""
    if not lists or not lists[0] or any(len(each) not in (0, len(lists[0])) for each in lists):
        raise RuntimeError("Expected one list of tensors or more, all of the same length or empty")
    for index, first in enumerate(lists[0]):
        if first is None:
            raise RuntimeError(
                "Tensors of the first list of nested Tensor lists are supposed to be defined but the "
                f"{index}-th Tensor is not."
            )
        for other in (each[index] for each in lists[1:] if each and each[index] is not None):
            alike = other.device == first.device and other.dtype in (first.dtype, _C.bfloat16)
            step = other.device.type == "cpu" and other.dtype in (_C.float32, _C.float64)
            if not (alike or step):
                raise RuntimeError(
                    "Tensors of the same index must be on the same device and the same dtype except `step` "
                    "tensors that can be CPU and float32/64, and optimizer states that can be bfloat16 for "
                    "mixed-precision training"
                )
