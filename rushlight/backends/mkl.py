"""Intel's MKL, in whose place OpenBLAS computes."""


def is_available() -> bool:
    """Whether MKL is there: no.

    >>> rushlight.backends.mkl.is_available()
    False
    """
    return False
