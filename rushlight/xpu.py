"""torch.xpu: Intel's GPUs, not used here."""

from rushlight._no_device import *  # noqa: F403
