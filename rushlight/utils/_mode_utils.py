"""Helpers around dispatch modes, which do not exist here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def all_same_mode(modes: Any) -> bool:
    """Whether all modes are the first one."""
    return all(mode == modes[0] for mode in modes)


@contextmanager
def no_dispatch() -> Iterator[None]:
    """A block without dispatch to `__torch_dispatch__`: there is never any."""
    yield
