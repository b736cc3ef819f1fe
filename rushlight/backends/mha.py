"""The fast path of attention in evaluation: one kernel computes it here, so the switch changes nothing."""

_enabled = True


def get_fastpath_enabled() -> bool:
    """What set_fastpath_enabled was last told.

    >>> rushlight.backends.mha.get_fastpath_enabled()
    True
    """
    return _enabled


def set_fastpath_enabled(value: bool) -> None:
    """Allows a fast path for attention in evaluation."""
    global _enabled
    _enabled = bool(value)
