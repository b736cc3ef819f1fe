"""GradScaler for the device "cpu"."""

from __future__ import annotations

from rushlight import amp
from rushlight.cpu.amp.autocast_mode import deprecated

__all__ = ["GradScaler"]


class GradScaler(amp.GradScaler):
    """torch.amp.GradScaler("cpu")."""

    def __init__(
        self,
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        deprecated("GradScaler")
        super().__init__("cpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
