"""Tools around tensors and modules; each part is imported when it is first named."""

from __future__ import annotations

from importlib import import_module as _import
from typing import Any

_PARTS = {
    "_contextlib", "_device", "_traceback", "_dtype_abbrs",
    "_foreach_utils", "_import_utils", "_mode_utils", "_python_dispatch", "_pytree",
    "_triton", "benchmark", "checkpoint", "cpp_extension", "data", "deterministic", "dlpack", "hooks", "npz",
    "safetensors", "serialization", "weak",
}  # fmt: skip


def swap_tensors(t1: Any, t2: Any) -> None:
    """Exchanges two tensors in place: who holds the one sees the values, type and attributes of the other.

    >>> a, b = rushlight.zeros(2), rushlight.ones(3)
    >>> rushlight.utils.swap_tensors(a, b)
    >>> a
    tensor([1., 1., 1.])
    """
    from rushlight import _C

    _C.swap(t1, t2)


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        try:
            return _import(f"rushlight.utils.{name}")
        except ModuleNotFoundError:
            pass
    raise AttributeError(f"module 'torch.utils' has no attribute '{name}'")
