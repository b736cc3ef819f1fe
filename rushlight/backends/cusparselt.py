"""cuSPARSELt, which is not here."""


def is_available() -> bool:
    """Whether cuSPARSELt is there: no.

    >>> rushlight.backends.cusparselt.is_available()
    False
    """
    return False


def version() -> None:
    """The version of cuSPARSELt: none."""


def get_max_alg_id() -> None:
    """The number of its algorithms: none."""
