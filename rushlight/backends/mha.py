"""torch.backends.mha: whether a TransformerEncoder in evaluation may leave out padded positions."""

from __future__ import annotations

__all__ = ["get_fastpath_enabled", "set_fastpath_enabled"]

_fastpath_enabled = True


def get_fastpath_enabled() -> bool:
    """Whether encoders may take their short path.

    >>> rushlight.backends.mha.get_fastpath_enabled()
    True
    """
    return _fastpath_enabled


def set_fastpath_enabled(value: bool) -> None:
    """Say whether encoders may take their short path: without it padded positions are computed, too."""
    global _fastpath_enabled
    _fastpath_enabled = value
