"""torch.mtia: Meta's accelerators, not used here."""

from rushlight._no_device import *  # noqa: F403
