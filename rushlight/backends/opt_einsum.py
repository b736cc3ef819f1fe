"""opt_einsum, which is not used: einsum chooses the order of its products by itself."""

from __future__ import annotations

from typing import Any

enabled = False
strategy = None


def is_available() -> bool:
    """Whether opt_einsum is used: no.

    >>> rushlight.backends.opt_einsum.is_available()
    False
    """
    return False


def get_opt_einsum() -> Any:
    """The package, if it were used."""
