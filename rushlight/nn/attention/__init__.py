"""Which implementation of attention to use. There is one here, so every choice of torch's is granted."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator

__all__ = ["SDPBackend", "WARN_FOR_UNFUSED_KERNELS", "sdpa_kernel"]

WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(enum.IntEnum):
    """torch's implementations of scaled_dot_product_attention.

    >>> import rushlight as torch
    >>> torch.nn.attention.SDPBackend.MATH.name
    'MATH'
    """

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextlib.contextmanager
def sdpa_kernel(backends: list[SDPBackend] | SDPBackend, set_priority: bool = False) -> Iterator[dict]:
    """Within it torch uses only the given implementations; the one here stands for each of them.

    >>> import rushlight as torch
    >>> with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
    ...     pass
    """
    if isinstance(backends, SDPBackend):
        backends = [backends]
    if not isinstance(backends, list) or not all(isinstance(each, SDPBackend) for each in backends):
        raise AssertionError("Backend must be an instance of SDPBackend or a list of SDPBackend instances")
    yield {}
