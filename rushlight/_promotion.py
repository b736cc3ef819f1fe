"""The dtype of an elementwise operation on tensors and numbers, asked for as in `torch._prims_common`.

Tests written for torch take their expectations from it.
"""

from __future__ import annotations

import enum
import functools
from typing import Any

from rushlight import _C

_WIDER = {_C.float16: _C.float32, _C.bfloat16: _C.float32, _C.complex32: _C.complex64}


class ELEMENTWISE_TYPE_PROMOTION_KIND(enum.Enum):
    """What becomes of the common dtype of the inputs."""

    DEFAULT = (0,)
    NO_OPMATH = (1,)
    INT_TO_FLOAT = (2,)
    ALWAYS_BOOL = (3,)
    COMPLEX_TO_FLOAT = (4,)
    BOOL_TO_LONG = (5,)


def _common(inputs: list[Any]) -> _C.dtype:
    """Tensors with dimensions count first, then those without, then numbers."""
    groups: list[list[Any]] = [[], [], []]
    for value in inputs:
        groups[(0 if value.dim() else 1) if isinstance(value, _C.Tensor) else 2].append(value)
    representatives = []
    for size, tensors in zip(((1,), ()), groups[:2]):
        if tensors:
            dtype = functools.reduce(_C.promote_types, (t.dtype for t in tensors))
            representatives.append(_C.empty(size, dtype, None))
    representatives += sorted(groups[2], key=lambda n: (bool, int, float, complex).index(type(n)))[-1:]
    first, *others = representatives
    for other in others:
        dtype = _C.result_type(first, other)
        first = _C.empty(tuple(first.shape), dtype, None)
    return first.dtype if isinstance(first, _C.Tensor) else _C.result_type(first, first)


def elementwise_dtypes(
    *args: Any, type_promotion_kind: ELEMENTWISE_TYPE_PROMOTION_KIND
) -> tuple[_C.dtype, _C.dtype]:
    """The dtype to compute in and that of the result.

    >>> kinds = rushlight._prims_common.ELEMENTWISE_TYPE_PROMOTION_KIND
    >>> half = rushlight.ones(2, dtype=rushlight.float16)
    >>> rushlight._prims_common.elementwise_dtypes(half, 1.0, type_promotion_kind=kinds.DEFAULT)
    (torch.float32, torch.float16)
    """
    kinds = ELEMENTWISE_TYPE_PROMOTION_KIND
    result = _common([value for value in args if value is not None])
    if type_promotion_kind is kinds.INT_TO_FLOAT and not (result.is_floating_point or result.is_complex):
        result = _C.get_default_dtype()
    if type_promotion_kind is kinds.BOOL_TO_LONG and result == _C.bool:
        result = _C.int64
    computed = result if type_promotion_kind is kinds.NO_OPMATH else _WIDER.get(result, result)
    if type_promotion_kind is kinds.ALWAYS_BOOL:
        result = _C.bool
    if type_promotion_kind is kinds.COMPLEX_TO_FLOAT:
        result = result.to_real()
    return computed, result
