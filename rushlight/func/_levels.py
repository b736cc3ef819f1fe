"""Beginning and ending a level, and the tensors that go in and come out."""

from __future__ import annotations

from rushlight import _C
from rushlight.func._batching.table import compute
from rushlight.func._named import intercept, lowered, raised
from rushlight.func._tensor import BATCH, GRADIENTS, TANGENTS, Leveled, Tensor
from rushlight.utils._pytree import tree_flatten, tree_map, tree_unflatten

__all__ = ["BATCH", "GRADIENTS", "TANGENTS", "Leveled", "Tensor", "level", "lowered", "number_of",
           "raised", "recording_level", "tree_flatten", "tree_map", "tree_unflatten"]  # fmt: skip

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


class recording_level(level):
    """A level of gradients: what is computed is recorded, and nobody looks on as tensors are kept."""

    __slots__ = ("hooks", "recording")

    def __init__(self) -> None:
        self.about = GRADIENTS, 0, "", 0

    def __enter__(self) -> int:
        self.hooks = _C.disabled_saved_hooks()
        _C.disable_saved_hooks(_NO_HOOKS)
        number = super().__enter__()
        self.recording = _C.switch_grad(True)
        return number

    def __exit__(self, *error: object) -> None:
        _C.switch_grad(self.recording)
        super().__exit__()
        _C.allow_saved_hooks(self.hooks)


_NO_HOOKS = (
    "torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an issue with "
    "your use case."
)


def number_of(level: int) -> int:
    """The number of a level that torch counts from the outside in, beginning with 1."""
    levels = _C.all_levels()
    if not 1 <= level <= len(levels):
        raise RuntimeError(f"there is no level {level}")
    return levels[level - 1][0]
