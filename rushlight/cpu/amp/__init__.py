"""Mixed precision on the CPU under its older name: torch.amp with the device "cpu"."""

from rushlight.cpu.amp.autocast_mode import autocast
from rushlight.cpu.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast"]
