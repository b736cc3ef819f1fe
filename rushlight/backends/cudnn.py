"""The switches of cuDNN, which is not here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rushlight.backends._precision import Precision

enabled = True
benchmark = False
benchmark_limit: int | None = 10
deterministic = False
allow_tf32 = True
fp32_precision = "none"
depthwise_kernel = "auto"
conv, rnn = Precision("tf32"), Precision("tf32")

_SWITCHES = ("enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32", "fp32_precision",
             "depthwise_kernel")  # fmt: skip


def is_available() -> bool:
    """Whether cuDNN is there: no.

    >>> rushlight.backends.cudnn.is_available()
    False
    """
    return False


def version() -> None:
    """The version of cuDNN: none."""


def is_acceptable(tensor: Any) -> bool:
    """Whether cuDNN could compute with the tensor: no."""
    return False


def set_flags(
    _enabled: bool | None = None,
    _benchmark: bool | None = None,
    _benchmark_limit: int | None = None,
    _deterministic: bool | None = None,
    _allow_tf32: bool | None = None,
    _fp32_precision: str | None = None,
    _depthwise_kernel: str | None = None,
) -> tuple:
    """Sets switches (None leaves one as it is) and returns what all were, in the order of the arguments."""
    before = tuple(globals()[name] for name in _SWITCHES)
    values = (_enabled, _benchmark, _benchmark_limit, _deterministic, _allow_tf32, _fp32_precision,
              _depthwise_kernel)  # fmt: skip
    globals().update(
        (name, value) for name, value in zip(_SWITCHES, values, strict=True) if value is not None
    )
    return before


@contextmanager
def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int | None = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: str = "none",
    depthwise_kernel: str = "auto",
) -> Iterator[None]:
    """Sets all switches for a block.

    >>> with rushlight.backends.cudnn.flags(deterministic=True):
    ...     rushlight.backends.cudnn.deterministic
    True
    """
    wanted = enabled, benchmark, benchmark_limit, deterministic, allow_tf32, fp32_precision, depthwise_kernel
    before = set_flags(*wanted)
    try:
        yield
    finally:
        set_flags(*before)
