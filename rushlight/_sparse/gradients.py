"""Kernels of operations that occur in derivatives only."""

from __future__ import annotations

from typing import Any, NoReturn

from rushlight import _C
from rushlight._sparse.table import kernel, refuse

Tensor = _C.Tensor


@kernel("slice_backward")
def slice_backward(g: Tensor, *args: Any) -> NoReturn:
    """Refused as the view that torch writes into."""
    refuse("aten::as_strided")
