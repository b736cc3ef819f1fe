"""Anomaly detection: backward says which forward line a failing or NaN-producing derivative belongs to.

While it is on, every node remembers the whole stack of the call that made it (otherwise only the user's line)
and every result of a derivative is searched for NaN.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from rushlight import _C
from rushlight._annotations import Any
from rushlight._type_names import type_name as class_name
from rushlight._warn import warn

__all__ = ["detect_anomaly", "set_detect_anomaly"]

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def _switch(enabled: bool, check_nan: bool) -> tuple[bool, bool]:
    """Sets both; returns what they were."""
    for place, (name, value) in enumerate((("enabled", enabled), ("check_nan", check_nan)), 1):
        if not isinstance(value, bool):
            raise TypeError(
                f"set_anomaly_enabled(): argument '{name}' (position {place}) must be bool, not "
                f"{class_name(value)}"
            )
    return _C.set_anomaly_enabled(enabled), _C.set_anomaly_check_nan(check_nan)


class set_detect_anomaly:
    """Switches anomaly detection at once, and back at the end if used as a context manager.

    >>> with rushlight.autograd.set_detect_anomaly(True):
    ...     print(rushlight.is_anomaly_enabled())
    True
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.prev, self.prev_check_nan = _switch(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        _C.set_anomaly_enabled(self.prev)
        _C.set_anomaly_check_nan(self.prev_check_nan)


class detect_anomaly:
    """Inside, a derivative that fails or gives NaN is traced to the line of the forward pass it belongs to.

    >>> x = rushlight.tensor(-1., requires_grad=True)
    >>> with rushlight.autograd.detect_anomaly():
    ...     y = x.sqrt() * 0
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.prev = _C.is_anomaly_enabled()
        self.prev_check_nan = _C.is_anomaly_check_nan_enabled()
        self.check_nan = check_nan
        warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be "
            "enabled for debugging."
        )

    def __enter__(self) -> None:
        _switch(True, self.check_nan)

    def __exit__(self, *error: object) -> None:
        _C.set_anomaly_enabled(self.prev)
        _C.set_anomaly_check_nan(self.prev_check_nan)


def _forward_trace() -> list[str]:
    """The stack of the user's call that is being recorded; called by native/graph/node.cpp."""
    import traceback

    frames = [frame for frame in traceback.extract_stack() if not frame.filename.startswith(_PACKAGE)]
    return traceback.format_list(frames)


def _explain(node: Any) -> None:
    """Warns where the failing derivative comes from; called by native/graph/engine.cpp."""
    for text in _story(node):
        try:
            warn(text)
        except Warning as refused:  # a warning that is to be an error does not take the place of this one
            print(f"{type(refused).__name__}: {refused}".rstrip("\n"), file=sys.stderr)


def _story(node: Any) -> Iterator[str]:
    """One warning for the failing node and one for each node whose derivative it was computed for."""
    opening, caused = "Error detected in", "caused the error"
    while node is not None:
        trace = node.metadata.get("traceback_")
        if trace is None:
            yield (
                f"Error detected in {node.name()}. No forward pass information available. Enable detect "
                "anomaly during forward pass for more information."
            )
        else:
            yield f"{opening} {node.name()}. Traceback of forward call that {caused}:\n{''.join(trace)}"
        opening, caused = "\n\nPrevious calculation was induced by", "induced the previous calculation"
        parent = node.metadata.get("parent_")
        node = None if parent is node else parent
