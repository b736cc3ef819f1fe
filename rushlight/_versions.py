"""Writes that are not counted as writes."""

from __future__ import annotations

from rushlight import _C


class uncounted:
    """What is written inside is part of another write, or of making the tensor: `_version` stays."""

    __slots__ = "tensor", "version"

    def __init__(self, tensor: _C.Tensor) -> None:
        self.tensor = tensor

    def __enter__(self) -> None:
        self.version = None if self.tensor.is_inference() else self.tensor._version

    def __exit__(self, *error: object) -> None:
        if self.version is not None:
            _C.set_version(self.tensor, self.version)
