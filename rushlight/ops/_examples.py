"""What a composed function asks of numbers, and where it writes, that is also right for a batch (torch.func).

Under `vmap` a tensor stands for as many as there are examples: its numbers cannot be read, and memory that
was made for one example cannot be written with others. Outside transforms these cost a test each.
"""

from __future__ import annotations

from rushlight import _C
from rushlight._annotations import Any

Tensor = _C.Tensor
ops = _C.ops


def whole_batch(x: Tensor) -> Tensor:
    """The numbers that it stands for, those of all examples."""
    while _C.is_leveled(x):
        x = x.value
    return x


def as_variables(tensors: Any, wanted: Any, beside: Any) -> list:
    """The same numbers, those `wanted` differentiable by themselves: for a gradient of what is written out
    of them, which is multiplied with those `beside`."""
    level = _C.highest_level((*tensors, *beside))

    def variable(t: Tensor) -> Tensor:
        t = _C.living(t)
        if level and not (_C.is_leveled(t) and t.level == level):
            t = _C.raise_to_level(t, level, False)  # for every example its own gradient
        same = t.view_as(t) if level or t.requires_grad else t.detach()
        return same if same.requires_grad else same.requires_grad_()

    return [variable(t) if want else t for t, want in zip(tensors, wanted, strict=True)]


def known(x: Tensor) -> Tensor:
    """What it stands for, if that is the same for all examples: its numbers can be read."""
    while _C.is_leveled(x) and not is_batch(x):
        x = x.value
    return x


def somewhere(flags: Tensor) -> bool:
    """Whether booleans are true anywhere, in any example: for what then goes another way, or is refused."""
    return bool(whole_batch(flags).any())


def everywhere(flags: Tensor) -> bool:
    """Whether booleans are all true, in every example; that only some of a batch are has no answer."""
    if not _C.is_leveled(flags) or not has_batch(flags):
        return bool(flags.all())
    return bool(whole_batch(flags).all()) or bool(flags.all().item())


def is_derived(*tensors: Tensor) -> bool:
    """Whether a derivative may be wanted of what is computed from tensors: at their level, or of a batch."""
    recording = _C.is_grad_enabled()
    for x in tensors:
        while True:
            if (recording and x.requires_grad) or _C.tangent(x) is not None:
                return True
            if not _C.is_leveled(x):
                break
            x = x.value
    return False


def is_recorded_below(x: Tensor) -> bool:
    """Whether what a batch stands for requires a gradient."""
    return _C.is_leveled(x) and (x.value.requires_grad or is_recorded_below(x.value))


def is_batch(x: Tensor) -> bool:
    """Whether a tensor of a level has examples there."""
    return x.batched and _C.level_depth(x.level) > 0


def has_batch(x: Tensor) -> bool:
    """Whether it stands for several tensors, at whatever level."""
    while _C.is_leveled(x):
        if is_batch(x):
            return True
        x = x.value
    return False


def refuse_batches(name: str, *tensors: Tensor) -> None:
    """Refuses what would be of another size for every example."""
    if any(map(has_batch, tensors)):
        raise RuntimeError(
            "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap "
            f"over aten::{name}. Please file an issue at https://github.com/pytorch/pytorch/issues if you "
            "need this feature."
        )


def sum_where(mask: Tensor, x: Tensor) -> Tensor:
    """The sum of the elements that a mask chooses: in one example more, it may be, than in another."""
    return ops.where(mask, x, 0).sum() if _C.is_leveled(mask) else ops.masked_select(x, mask).sum()


def writable(fresh: Tensor, *sources: Tensor) -> Tensor:
    """A new tensor, or its copy for every example, so that what comes from `sources` may be written there."""
    for source in sources:
        if _C.is_leveled(source):
            fresh = ops.where(source.new_ones((), dtype=_C.bool), fresh, fresh)
    return fresh


def filled(primitive: Any, fresh: Tensor, *args: Any) -> Tensor:
    """What a primitive makes of a new tensor that nobody else has: written there, where that can be."""
    if _C.top_level() is None:
        return _C.in_place(primitive, fresh, *args)
    return primitive(fresh, *args)
