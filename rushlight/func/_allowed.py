"""What torch refuses inside transforms unless it is told otherwise, by thread."""

from __future__ import annotations

import threading


class _Allowed(threading.local):
    in_place_requires_grad = False
    single_level_function = False


allowed = _Allowed()
