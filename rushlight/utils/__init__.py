"""Tools around tensors and modules; each part is imported when it is first named."""

from __future__ import annotations

from importlib import import_module as _import
from typing import Any

_PARTS = {"benchmark", "checkpoint", "data", "dlpack", "hooks", "swap_tensors"}


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        try:
            return _import(f"rushlight.utils.{name}")
        except ModuleNotFoundError:
            pass
    raise AttributeError(f"module 'torch.utils' has no attribute '{name}'")
