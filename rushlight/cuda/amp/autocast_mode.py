"""autocast and the decorators of Function methods for the device "cuda"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import amp
from rushlight._warn import warn

__all__ = ["autocast", "custom_bwd", "custom_fwd"]


def deprecated(name: str, instead: str) -> None:
    """Warns as torch does of the names that torch.amp has replaced."""
    text = f"`torch.cuda.amp.{name}(args...)` is deprecated. Please use `torch.amp.{instead}` instead."
    warn(text, FutureWarning)


class autocast(amp.autocast):
    """torch.amp.autocast("cuda"), which does nothing but warn where there is no GPU."""

    def __init__(
        self, enabled: bool = True, dtype: Any = rushlight.float16, cache_enabled: bool = True
    ) -> None:
        deprecated("autocast", "autocast('cuda', args...)")
        super().__init__("cuda", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


def custom_fwd(fwd: Callable | None = None, *, cast_inputs: Any = None) -> Any:
    """torch.amp.custom_fwd for the device "cuda"."""
    deprecated("custom_fwd", "custom_fwd(args..., device_type='cuda')")
    return amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Callable) -> Any:
    """torch.amp.custom_bwd for the device "cuda"."""
    deprecated("custom_bwd", "custom_bwd(args..., device_type='cuda')")
    return amp.custom_bwd(bwd, device_type="cuda")
