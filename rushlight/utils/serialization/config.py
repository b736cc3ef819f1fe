"""How `save` and `load` do their work where they are not told.

>>> from rushlight.utils.serialization import config
>>> with config.patch("save.storage_alignment", 4096):
...     rushlight.save(rushlight.ones(2), io.BytesIO())
"""

from __future__ import annotations

from contextlib import ContextDecorator
from dataclasses import dataclass
from typing import Any

MAP_SHARED, MAP_PRIVATE = 1, 2


@dataclass
class _Load:
    mmap: bool = False
    endianness: Any = None  # a LoadEndianness
    mmap_flags: int = MAP_PRIVATE
    calculate_storage_offsets: bool = False  # torch's way to save reads; here there is nothing to save


@dataclass
class _Save:
    compute_crc32: bool = True
    use_pinned_memory_for_d2h: bool = False  # for GPUs of torch
    storage_alignment: int = 64


load = _Load()
save = _Save()


def _find(name: str) -> tuple[Any, str]:
    part, _, option = name.partition(".")
    section = {"load": load, "save": save}.get(part)
    if section is None or not hasattr(section, option):
        raise AttributeError(f"torch.utils.serialization.config.{name} does not exist")
    return section, option


class patch(ContextDecorator):
    """Inside the block, or the function it decorates, options have other values: patch("load.mmap", True) or
    patch({"load.mmap": True})."""

    def __init__(self, arg1: Any = None, arg2: Any = None, **changes: Any) -> None:
        if isinstance(arg1, str):
            changes[arg1] = arg2
        elif arg1 is not None:
            changes.update(arg1)
        self.changes = {name.replace("__", "."): value for name, value in changes.items()}
        for name in self.changes:
            _find(name)

    def __enter__(self) -> None:
        self.before = {name: getattr(*_find(name)) for name in self.changes}
        for name, value in self.changes.items():
            setattr(*_find(name), value)

    def __exit__(self, *error: object) -> None:
        for name, value in self.before.items():
            setattr(*_find(name), value)
