"""Random numbers around a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import rushlight


def wrapper_set_seed(op: Callable, *args: Any, **kwargs: Any) -> Any:
    """Calls `op` after seeding the generator with 42, and puts the generator's state back.

    >>> a, b = (rushlight.testing._utils.wrapper_set_seed(rushlight.rand, 2) for _ in range(2))
    >>> bool((a == b).all())
    True
    """
    with freeze_rng_state():
        rushlight.manual_seed(42)
        return op(*args, **kwargs)


@contextmanager
def freeze_rng_state() -> Iterator[None]:
    """Puts the generator's state back after the block."""
    state = rushlight.get_rng_state()
    try:
        yield
    finally:
        rushlight.set_rng_state(state)
