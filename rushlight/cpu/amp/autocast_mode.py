"""autocast for the device "cpu"."""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight import amp
from rushlight._warn import warn

__all__ = ["autocast"]


def deprecated(name: str) -> None:
    """Warns as torch does of the names that torch.amp has replaced."""
    instead = f"torch.amp.{name}('cpu', args...)"
    warn(f"`torch.cpu.amp.{name}(args...)` is deprecated. Please use `{instead}` instead.", FutureWarning)


class autocast(amp.autocast):
    """torch.amp.autocast("cpu")."""

    def __init__(
        self, enabled: bool = True, dtype: Any = rushlight.bfloat16, cache_enabled: bool = True
    ) -> None:
        deprecated("autocast")
        super().__init__("cpu", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)
