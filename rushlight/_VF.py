"""torch._VF, where torch keeps its operations below the functions of the same name that choose among them.

>>> rushlight._VF.unique_dim(rushlight.tensor([3, 1, 3]), 0)[2]
tensor([1, 2])
"""

from __future__ import annotations

import types
from typing import Any

import rushlight

_OPERATORS = ("__and__", "__or__", "__xor__", "__lshift__", "__rshift__")


def __getattr__(name: str) -> Any:
    found = None if name.startswith("__") else getattr(rushlight, name, None)
    if callable(found) and not isinstance(found, type):
        return found
    if found is None and name in _OPERATORS:
        return getattr(rushlight.Tensor, name)
    found = None if name.startswith("__") else getattr(rushlight.ops.aten, name, None)
    if found is None or isinstance(found, types.ModuleType):
        raise AttributeError(f"module 'torch._VF' has no attribute '{name}'", name=name)
    return found


def __dir__() -> list[str]:
    """The operations that are functions of the package too; what only scripts call is none."""
    from rushlight._aten_names import OVERLOADS
    from rushlight._schema import is_said

    def is_operation(name: str) -> bool:
        found, full = getattr(rushlight, name), f"aten::{name}"
        if not callable(found) or isinstance(found, (type, types.ModuleType, rushlight.dtype)):
            return False
        return not all(
            is_said("scripted", full if overload == "default" else f"{full}.{overload}")
            for overload in OVERLOADS[name]
        )

    return [name for name in dir(rushlight) if name in OVERLOADS and is_operation(name)]
