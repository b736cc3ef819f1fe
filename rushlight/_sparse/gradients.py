"""Kernels of operations that occur in derivatives only."""

from __future__ import annotations

from typing import Any, NoReturn

from rushlight import _C
from rushlight._sparse.build import coalesced, dense, look_up
from rushlight._sparse.table import kernel, refuse
from rushlight._sparse.tensor import SparseTensor, with_values

Tensor = _C.Tensor
ops = _C.ops


@kernel("threshold_backward")
def threshold_backward(g: Tensor, x: Tensor, threshold: Any) -> Tensor:
    """The entries of g where x is above the threshold; the others stay, as zeros."""
    if type(g) is not SparseTensor:
        return ops.threshold_backward(g, dense(x), threshold)
    g = coalesced(g)
    indices, values, _ = g.parts
    at = look_up(x, indices) if type(x) is SparseTensor else ops.sparse_at(x, indices)
    return with_values(g, ops.threshold_backward(values, at, threshold))


@kernel("slice_backward")
def slice_backward(g: Tensor, *args: Any) -> NoReturn:
    """Refused as the view that torch writes into."""
    refuse("aten::as_strided")
