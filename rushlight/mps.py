"""torch.mps: Apple's GPU, not used here."""

from rushlight._no_device import *  # noqa: F403
