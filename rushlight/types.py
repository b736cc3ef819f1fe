"""torch.types: names for annotations."""

from __future__ import annotations

import builtins
import os
from collections.abc import Sequence
from typing import IO, Any, TypeAlias

from rushlight import Size, Tensor, device, dtype, layout
from rushlight.autograd.graph import GradientEdge
from rushlight.storage import UntypedStorage as Storage

__all__ = ["Device", "FileLike", "Number", "Size", "Storage", "_size", "_symsize"]

_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
_TensorOrOptionalTensors: TypeAlias = Tensor | Sequence[Tensor | None]
_TensorOrTensorsOrGradEdge: TypeAlias = Tensor | Sequence[Tensor] | GradientEdge | Sequence[GradientEdge]

_dtype: TypeAlias = dtype
_device: TypeAlias = device
_layout: TypeAlias = layout
_int: TypeAlias = builtins.int
_float: TypeAlias = builtins.float
_bool: TypeAlias = builtins.bool
_complex: TypeAlias = builtins.complex
_str: TypeAlias = builtins.str
_bytes: TypeAlias = builtins.bytes
_size: TypeAlias = Size | list[builtins.int] | tuple[builtins.int, ...]
_symsize: TypeAlias = Size | Sequence[builtins.int]

Number: TypeAlias = builtins.int | builtins.float | builtins.bool
_Number = (builtins.int, builtins.float, builtins.bool)
IntLikeType: TypeAlias = builtins.int
FloatLikeType: TypeAlias = builtins.float
BoolLikeType: TypeAlias = builtins.bool
py_sym_types = ()
FileLike: TypeAlias = str | os.PathLike[str] | IO[bytes]
Device: TypeAlias = device | str | builtins.int | None
DispatchKey: TypeAlias = Any
