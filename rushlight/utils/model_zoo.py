"""The old name of the functions that fetch state dicts; see torch.hub."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from rushlight.hub import load_state_dict_from_url as load_url

__all__ = ["load_url", "tqdm"]

try:
    from tqdm import tqdm  # type: ignore[import-untyped, unused-ignore]
except ImportError:  # a counter does where the progress bar is not installed

    class tqdm:  # type: ignore[no-redef]
        """Counts on stderr."""

        def __init__(
            self, iterable: Any = None, total: Any = None, disable: bool = False, **options: Any
        ) -> None:
            self.iterable, self.total, self.disable, self.n = iterable, total, disable, 0

        def __iter__(self) -> Iterator:
            for item in self.iterable:
                yield item
                self.update(1)

        def update(self, n: int = 1) -> None:
            """Counts `n` more."""
            self.n += n
            if not self.disable:
                sys.stderr.write(f"\r{self.n}" + (f" of {self.total}" if self.total else ""))

        def close(self) -> None:
            """Ends the line."""
            if not self.disable:
                sys.stderr.write("\n")

        def __enter__(self) -> Any:
            return self

        def __exit__(self, *error: object) -> None:
            self.close()
