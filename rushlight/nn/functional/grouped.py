"""Products of groups of matrices that lie one after the other in one tensor: experts of a mixture, say."""

from __future__ import annotations

import enum

import rushlight
from rushlight.nn.functional._checks import functional
from rushlight.ops._public import type_name

__all__ = ["grouped_mm", "scaled_grouped_mm", "scaled_mm"]


class _Numbered(enum.Enum):
    def __int__(self) -> int:
        return self.value


class ScalingType(_Numbered):
    """How many elements of an operand of scaled_mm share a scale."""

    TensorWise = 0
    RowWise = 1
    BlockWise1x16 = 2
    BlockWise1x32 = 3
    BlockWise1x128 = 4
    BlockWise128x128 = 5


class SwizzleType(_Numbered):
    """The order in which the scales of scaled_mm lie."""

    NO_SWIZZLE = 0
    SWIZZLE_32_4_4 = 1


for _kind in (ScalingType, SwizzleType):
    _kind.__name__ = _kind.__qualname__ = f"_{_kind.__name__}"
    _kind.__module__ = "torch.nn.functional"


@functional
def grouped_mm(mat_a, mat_b, *, offs=None, bias=None, out_dtype=None):
    """The product of each group of mat_a with its own matrix of mat_b.

    A three-dimensional operand holds one matrix per group. The groups of a two-dimensional one end at
    `offs`: rows of mat_a, columns of mat_b, or, where both are two-dimensional, the dimension summed over.

    >>> import rushlight as torch
    >>> a, b = torch.ones(3, 2), torch.ones(2, 2, 1)
    >>> torch.nn.functional.grouped_mm(a, b, offs=torch.tensor([1, 3], dtype=torch.int32)).flatten()
    tensor([2., 2., 2.])
    """
    for name, mat in (("mat_a", mat_a), ("mat_b", mat_b)):
        if mat.dtype not in (rushlight.float32, rushlight.bfloat16, rushlight.float16):
            raise RuntimeError(
                f"Expected {name} to be Float32, BFloat16 or Float16 matrix, got {type_name(mat.dtype)}"
            )
        if mat.dim() not in (2, 3):
            raise RuntimeError(f"{name} has to be 2 or 3d")
    flat_a, flat_b = mat_a.dim() == 2, mat_b.dim() == 2
    if not (flat_a and flat_b) and mat_a.size(-1) != mat_b.size(-2):
        raise RuntimeError("contraction dimension of mat_a and mat_b must match")
    if (offs is not None) != (flat_a or flat_b):
        raise RuntimeError(
            "Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d"
        )
    if offs is not None and offs.dim() != 1:
        raise RuntimeError("offs has to be 1D")
    if offs is not None and offs.dtype != rushlight.int32:
        raise RuntimeError("Offsets have to be int32")
    if bias is not None:
        raise RuntimeError("Bias not supported yet")
    if out_dtype is not None and out_dtype != mat_a.dtype:
        raise RuntimeError("Grouped gemm output dtype must match `mat_a` dtype")
    if offs is None:
        return rushlight.bmm(mat_a, mat_b)
    ends = offs.tolist()
    groups = list(zip([0, *ends], ends, strict=False))
    if flat_a and flat_b:
        return rushlight.stack([mat_a[:, i:j] @ mat_b[i:j] for i, j in groups])
    if flat_a:
        parts = [mat_a[i:j] @ mat_b[g] for g, (i, j) in enumerate(groups)]
        rest = mat_a.new_zeros(mat_a.size(0) - ends[-1], mat_b.size(-1))
        return rushlight.cat([*parts, rest])
    parts = [mat_a[g] @ mat_b[:, i:j] for g, (i, j) in enumerate(groups)]
    return rushlight.cat([*parts, mat_a.new_zeros(mat_a.size(1), mat_b.size(-1) - ends[-1])], 1)


def scaled_mm(*args, **kwargs):
    """Would multiply matrices of eight-bit numbers with scales."""
    raise NotImplementedError("scaled_mm: the 8-bit floating point dtypes have no operations here")


def scaled_grouped_mm(*args, **kwargs):
    """Would multiply groups of matrices of eight-bit numbers with scales."""
    raise NotImplementedError("scaled_grouped_mm: the 8-bit floating point dtypes have no operations here")
