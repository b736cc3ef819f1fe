"""Beginning and ending a level, and the tensors that go in and come out."""

from __future__ import annotations

from rushlight import _C
from rushlight.func._batching.table import compute
from rushlight.func._named import intercept, lowered, raised
from rushlight.func._tensor import BATCH, GRADIENTS, TANGENTS, Leveled, Tensor
from rushlight.utils._pytree import tree_flatten, tree_map, tree_unflatten

__all__ = ["BATCH", "GRADIENTS", "TANGENTS", "Leveled", "Tensor", "begin_gradients", "level", "lowered",
           "number_of", "raised", "tree_flatten", "tree_map", "tree_unflatten"]  # fmt: skip

_C.set_leveled_type(Leveled, compute)
for _name in Leveled.__slots__:  # written by the native code alone
    setattr(Leveled, _name, property(vars(Leveled)[_name].__get__))


class level:
    """A transform at work; gives the number of its level: `again`, if that is free."""

    __slots__ = ("about", "number")

    def __init__(self, kind: int, size: int = 0, randomness: str = "", again: int = 0) -> None:
        self.about = kind, size, randomness, again

    def __enter__(self) -> int:
        intercept()
        self.number = _C.push_level(*self.about)
        return self.number

    def __exit__(self, *error: object) -> None:
        _C.pop_level(self.number)


_NO_HOOKS = (
    "torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an issue with "
    "your use case."
)


def begin_gradients() -> tuple:
    """A level of gradients begins: what is computed is recorded, and nobody looks on as tensors are kept.
    Returns its number and what `_C.end_gradients` puts back."""
    intercept()
    return _C.begin_gradients(_NO_HOOKS)


def number_of(level: int) -> int:
    """The number of a level that torch counts from the outside in, beginning with 1."""
    levels = _C.all_levels()
    if not 1 <= level <= len(levels):
        raise RuntimeError(f"there is no level {level}")
    return levels[level - 1][0]
