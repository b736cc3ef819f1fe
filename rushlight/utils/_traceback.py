"""Tracebacks: remembered cheaply, shown short, and with the source of code that was made at run time."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import traceback
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from rushlight.profiler._traceback import gather_traceback, symbolize_tracebacks


@contextlib.contextmanager
def report_compile_source_on_error() -> Iterator[None]:
    """Inside, an error in code whose globals hold `__compile_source__` shows the lines of that source."""
    try:
        yield
    except Exception as error:
        frames: list[TracebackType] = []
        here = error.__traceback__
        while here is not None:
            frames.append(here)
            here = here.tb_next
        shown = None
        for each in reversed(frames):
            source = each.tb_frame.f_globals.get("__compile_source__")
            if source is None:
                shown = TracebackType(shown, each.tb_frame, each.tb_lasti, each.tb_lineno)
                continue
            # The traceback reads files: the source is written to one, and a frame made that is in it.
            with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as file:
                file.write(source)
            name = each.tb_frame.f_code.co_name
            code = compile("__inspect_currentframe()", file.name, "eval").replace(co_name=name)
            frame = eval(code, {"__inspect_currentframe": lambda: sys._getframe(1)})
            shown = TracebackType(shown, frame, each.tb_lasti, each.tb_lineno)
        raise error.with_traceback(shown) from None


def shorten_filename(fn: str, *, base: str | None = None) -> str:
    """The name of a file from the package's directory on, if it is there."""
    base = base or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    try:
        prefix = os.path.commonpath([fn, base])
    except ValueError:
        return fn
    return fn[len(prefix) + 1 :]


def format_frame(frame: traceback.FrameSummary, *, base: str | None = None, line: bool = False) -> str:
    """A frame in one line."""
    extra = f"{frame.line}  # " if line else ""
    return f"{extra}{shorten_filename(frame.filename, base=base)}:{frame.lineno} in {frame.name}"


def format_traceback_short(tb: Any) -> str:
    """Where a traceback ends, in one line."""
    return format_frame(traceback.extract_tb(tb)[-1])


class CapturedTraceback:
    """Where the program was. Frames are kept as code and line, and read when they are shown."""

    def __init__(self, tb: Any, skip: int = 0) -> None:
        self.tb, self.skip = tb, skip

    @staticmethod
    def extract(*, script: bool = False, cpp: bool = False, skip: int = 0) -> CapturedTraceback:
        """Remembers the frames of the caller; `skip` leaves out the innermost ones."""
        return CapturedTraceback(gather_traceback(True, script, cpp), 0 if script or cpp else skip + 1)

    def cleanup(self) -> None:
        """Forgets the frames."""
        self.tb = None

    def summary(self) -> traceback.StackSummary:
        """The frames, outermost first."""
        if self.tb is None:
            return traceback.StackSummary()
        found = symbolize_tracebacks([self.tb])[0][self.skip :]
        frames = [traceback.FrameSummary(f["filename"], f["line"], f["name"]) for f in reversed(found)]
        return traceback.StackSummary.from_list(frames)

    def format(self) -> list[str]:
        """The frames as Python prints them."""
        return traceback.format_list(self.summary())

    @staticmethod
    def format_all(tbs: Any) -> list:
        """The frames of several."""
        return [None if tb is None else tb.format() for tb in tbs]

    def __getstate__(self) -> tuple:
        return None, {"tb": None, "skip": self.skip}
