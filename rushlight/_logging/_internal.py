"""What lies behind torch._logging: the registered loggers, and the levels they are set to."""

from __future__ import annotations

import logging
from typing import Any

from rushlight import _logging
from rushlight._logging import _init_logs, getArtifactLogger, set_logs, warning_once  # noqa: F401


class LogState:
    """The levels of loggers that differ from what they were at the start, by their qualified names."""

    def __init__(self) -> None:
        self.log_qname_to_level: dict[str, int] = {}

    def clear(self) -> None:
        """Sets every logger back."""
        self.log_qname_to_level.clear()
        set_logs()


class LogRegistry:
    """The names of the loggers that `set_logs` knows."""

    def get_log_qnames(self) -> set[str]:
        """The qualified names of the loggers; each has a handler."""
        names = {name for names in _logging._LOGGERS.values() for name in names}
        for name in names:
            _logging._add_handler(logging.getLogger(name))
        return names


log_registry = LogRegistry()
log_state = LogState()


def _get_log_state() -> LogState:
    state = LogState()
    state.log_qname_to_level = {name: logging.getLogger(name).level for name in _logging._changed}
    return state


def _set_log_state(state: Any) -> None:
    set_logs()
    for name, level in state.log_qname_to_level.items():
        _logging._set(name, level)
