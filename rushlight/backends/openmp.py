"""OpenMP, in whose place Rushlight's own threads work."""


def is_available() -> bool:
    """Whether OpenMP is there: no.

    >>> rushlight.backends.openmp.is_available()
    False
    """
    return False
