"""Where the program is, remembered now and spelled out later."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterable
from typing import Any


class CapturedTraceback:
    """The frames of a moment: code and line, innermost first."""

    def __init__(self, frames: list[tuple[Any, int]]) -> None:
        self.frames = frames


def gather_traceback(python: bool, script: bool, cpp: bool) -> CapturedTraceback:
    """Remembers the Python frames of the caller; there is no script, and native frames are not looked at."""
    frames = []
    if python:
        for frame, line in traceback.walk_stack(sys._getframe(1)):
            frames.append((frame.f_code, line))
    return CapturedTraceback(frames)


def symbolize_tracebacks(tracebacks: Iterable[CapturedTraceback]) -> list[list[dict]]:
    """The frames as dicts of name, filename and line."""
    return [
        [
            {"line": line, "name": code.co_name,
             "filename": code.co_filename}
            for code, line in captured.frames
        ]
        for captured in tracebacks
    ]  # fmt: skip
