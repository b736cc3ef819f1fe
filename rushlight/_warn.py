"""Warnings that point at the user's line."""

import os
import sys
import warnings

from rushlight import _settings

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def warn(text, category=UserWarning):
    """Warn at the innermost line outside this package, however deep inside it the reason was found."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)


_warned: set = set()


def warn_once(text, category=UserWarning, about=None):
    """Warn the first time only. What is warned of under set_warn_always(True) is not remembered."""
    about = about or text
    if _settings.is_warn_always_enabled():
        warn(text, category)
    elif about not in _warned:
        _warned.add(about)
        warn(text, category)
