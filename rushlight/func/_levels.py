"""Beginning and ending a level, and the tensors that go in and come out."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from rushlight import _C
from rushlight.func._batching.table import compute
from rushlight.func._named import intercept, lowered, raised
from rushlight.func._tensor import BATCH, GRADIENTS, TANGENTS, Leveled, Tensor
from rushlight.utils._pytree import tree_flatten, tree_map, tree_unflatten

__all__ = ["BATCH", "GRADIENTS", "TANGENTS", "Leveled", "Tensor", "level", "lowered", "number_of",
           "raised", "tree_flatten", "tree_map", "tree_unflatten"]  # fmt: skip

_C.set_leveled_type(Leveled, compute)
for _name in Leveled.__slots__:  # written by the native code alone
    setattr(Leveled, _name, property(vars(Leveled)[_name].__get__))


@contextlib.contextmanager
def level(kind: int, size: int = 0, randomness: str = "", again: int = 0) -> Iterator[int]:
    """A transform at work; gives the number of its level: `again`, if that is free."""
    intercept()
    number = _C.push_level(kind, size, randomness, again)
    try:
        yield number
    finally:
        _C.pop_level(number)


def number_of(level: int) -> int:
    """The number of a level that torch counts from the outside in, beginning with 1."""
    levels = _C.all_levels()
    if not 1 <= level <= len(levels):
        raise RuntimeError(f"there is no level {level}")
    return levels[level - 1][0]
