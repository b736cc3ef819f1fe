"""KleidiAI, which is not here."""


def is_available() -> bool:
    """Whether KleidiAI is there: no.

    >>> rushlight.backends.kleidiai.is_available()
    False
    """
    return False
