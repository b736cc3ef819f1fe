"""What annotations name and nothing else needs.

They are not evaluated (`from __future__ import annotations`), and `typing` with what it imports would take a
fifth of the time of `import rushlight`: so the modules that are imported then take these names from here.
Whoever does evaluate an annotation (`typing.get_type_hints`) finds that anything is taken.
"""

from __future__ import annotations

TYPE_CHECKING = False  # mypy takes it for true

if TYPE_CHECKING:
    from typing import Any, NoReturn, Self, SupportsIndex
else:
    Any = Self = SupportsIndex = object
    NoReturn = None

__all__ = ["TYPE_CHECKING", "Any", "NoReturn", "Self", "SupportsIndex"]
