"""Random sparse tensors, which Rushlight does not have."""

from __future__ import annotations

from typing import Any

from rushlight.utils.benchmark.utils.fuzzer import FuzzedTensor

__all__ = ["FuzzedSparseTensor"]


class FuzzedSparseTensor(FuzzedTensor):
    """Would be a tensor of which only some elements are stored."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("FuzzedSparseTensor: Rushlight has no sparse tensors")
