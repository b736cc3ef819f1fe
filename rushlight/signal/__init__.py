"""Signal processing: torch.signal has windows only, and so has Rushlight."""

from rushlight.signal import windows

__all__ = ["windows"]
