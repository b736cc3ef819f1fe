"""Mixed precision under the name it had when only GPUs had it: torch.amp with the device "cuda"."""

from rushlight.cuda.amp.autocast_mode import autocast, custom_bwd, custom_fwd
from rushlight.cuda.amp.common import amp_definitely_not_available
from rushlight.cuda.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "amp_definitely_not_available", "autocast", "custom_bwd", "custom_fwd"]
