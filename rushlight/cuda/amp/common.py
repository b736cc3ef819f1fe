"""Whether mixed precision on a GPU can work."""

from rushlight.cuda import is_available

__all__ = ["amp_definitely_not_available"]


def amp_definitely_not_available() -> bool:
    """Whether there is certainly no GPU."""
    return not is_available()
