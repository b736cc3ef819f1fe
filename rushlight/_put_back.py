"""What a hook enters or leaves for good ends with the backward that called it: modes, autocast."""

from __future__ import annotations

from collections.abc import Callable

from rushlight import _C
from rushlight._annotations import Any

_kept: set[tuple[int, Callable]] = set()


def keep(now: Callable[[], Any], put_back: Callable[[Any], None]) -> None:
    """To be called before a change: when the backward that runs ends, `put_back` gets what is `now`."""
    run = _C.current_run()
    if not run or (run, put_back) in _kept:
        return
    before = now()
    _kept.add((run, put_back))

    def end() -> None:
        try:
            put_back(before)
        finally:
            _kept.discard((run, put_back))

    _C.put_back_when_done(end)
