"""Apple's GPU, which is not here."""


def is_available() -> bool:
    """Whether Apple's GPU can be used: no.

    >>> rushlight.backends.mps.is_available()
    False
    """
    return False


def is_built() -> bool:
    """Whether support for Apple's GPU is compiled in: no."""
    return False


def is_macos_or_newer(major: int, minor: int) -> bool:
    """Whether Apple's GPU is on a system of at least this version: there is none."""
    return False
