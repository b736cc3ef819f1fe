"""What torch refuses inside transforms unless it is told otherwise, by thread."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator


class _Allowed(threading.local):
    in_place_requires_grad = False
    single_level_function = False
    example_by_example = True  # what torch's switches say; see _stack.py
    warns_of_examples = True


allowed = _Allowed()


@contextlib.contextmanager
def enable_single_level_autograd_function() -> Iterator[None]:
    """Inside, a Function without setup_context may be applied inside transforms."""
    before, allowed.single_level_function = allowed.single_level_function, True
    try:
        yield
    finally:
        allowed.single_level_function = before
