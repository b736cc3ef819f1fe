"""oneDNN, which is not here."""

enabled = False
deterministic = False
allow_tf32 = True


def is_available() -> bool:
    """Whether oneDNN is there: no.

    >>> rushlight.backends.mkldnn.is_available()
    False
    """
    return False
