"""oneDNN, which is not here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rushlight.backends._precision import Precision

enabled = False
deterministic = False
allow_tf32 = True
fp32_precision = "none"
matmul, conv, rnn = Precision(), Precision(), Precision()

_SWITCHES = ("enabled", "deterministic", "allow_tf32", "fp32_precision")


def is_available() -> bool:
    """Whether oneDNN is there: no.

    >>> rushlight.backends.mkldnn.is_available()
    False
    """
    return False


def is_acl_available() -> bool:
    """Whether Arm's compute library is there: no."""
    return False


def set_flags(
    _enabled: bool | None = None,
    _deterministic: bool | None = None,
    _allow_tf32: bool | None = None,
    _fp32_precision: str | None = None,
) -> tuple:
    """Sets switches (None leaves one as it is) and returns what all were, in the order of the arguments."""
    before = tuple(globals()[name] for name in _SWITCHES)
    values = _enabled, _deterministic, _allow_tf32, _fp32_precision
    globals().update(
        (name, value) for name, value in zip(_SWITCHES, values, strict=True) if value is not None
    )
    return before


@contextmanager
def flags(
    enabled: bool = False, deterministic: bool = False, allow_tf32: bool = True, fp32_precision: str = "none"
) -> Iterator[None]:
    """Sets all switches for a block."""
    before = set_flags(enabled, deterministic, allow_tf32, fp32_precision)
    try:
        yield
    finally:
        set_flags(*before)
