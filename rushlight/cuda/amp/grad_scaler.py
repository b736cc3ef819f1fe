"""GradScaler for the device "cuda"."""

from __future__ import annotations

from rushlight import amp
from rushlight.amp.grad_scaler import OptState
from rushlight.cuda.amp.autocast_mode import deprecated

__all__ = ["GradScaler", "OptState"]


class GradScaler(amp.GradScaler):
    """torch.amp.GradScaler("cuda"), which warns and scales nothing where there is no GPU."""

    def __init__(
        self,
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        deprecated("GradScaler", "GradScaler('cuda', args...)")
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
