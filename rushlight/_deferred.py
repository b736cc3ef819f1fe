"""`contextlib.contextmanager`, which is imported when a block is first entered: with what it defines it would
take a twentieth of the time of `import rushlight`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

from rushlight._annotations import TYPE_CHECKING

if TYPE_CHECKING:
    from contextlib import contextmanager
else:

    def contextmanager(function: Callable[..., Iterator]) -> Callable:
        """Makes the generator function one that returns a context manager."""

        @functools.wraps(function)
        def managed(*args, **kwargs):
            import contextlib

            return contextlib.contextmanager(function)(*args, **kwargs)

        return managed


__all__ = ["contextmanager"]
