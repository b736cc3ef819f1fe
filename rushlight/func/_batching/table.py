"""The batching rule of every primitive: how it computes a whole batch of calls at once.

A rule is given the primitive, the `Batch`, and the arguments, where a batched one has its examples along the
first dimension; what it returns has them there too. It is made of primitives, so that the results have
derivatives of their own below. `@batching("softmax")` registers one. A primitive without a rule is computed
example by example, which is as right, and slower; views must have one, for they share memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from rushlight import _C

Tensor = _C.Tensor
ops = _C.ops
RULES: dict[str, Callable] = {}
# Whose rules know of attributes that are batches.
_WITH_TENSORS = ("linalg_lstsq_given", "linalg_pinv", "once")


class Batch:
    """What a rule is told beside its arguments."""

    __slots__ = ("batched", "number", "size")

    def __init__(self, size: int, batched: tuple, number: int) -> None:
        self.size = size
        self.batched = batched  # of each input, of a list: of each element
        self.number = number

    def whole(self, x: Tensor, batched: bool) -> Tensor:
        """The tensor with a dimension for the examples, whether it differs among them or not."""
        return x if batched else x.unsqueeze(0).expand(self.size, *x.shape)

    def rows(self, x: Tensor) -> Tensor:
        """All elements of each example in a row, also where there are no examples."""
        return x.reshape(self.size, math.prod(x.shape[1:]))


def batching(*names: str) -> Callable:
    """Registers the rule of these primitives."""

    def register(rule: Callable) -> Callable:
        RULES.update(dict.fromkeys(names, rule))
        return rule

    return register


def place(dim: int, count: int) -> int:
    """Where a dimension of an example that has `count` of them is in a batch."""
    least = max(count, 1)
    if not -least <= dim < least:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-least}, {least - 1}], but got {dim})"
        )
    return dim % least + 1


def places(dims: Any, count: int) -> Any:
    """The same of one dimension or several; None and () stay as they are, for all of them."""
    if dims is None:
        return None
    if isinstance(dims, (tuple, list)):
        return tuple(place(dim, count) for dim in dims)
    return place(dims, count)


def _any(flags: tuple) -> bool:
    """Whether there is a true one among them, or in tuples among them."""
    for flag in flags:  # noqa: SIM110 (a generator costs more than the flags)
        if flag and (flag is True or _any(flag)):
            return True
    return False


def compute(primitive: Any, values: tuple, batched: tuple, size: int, number: int, in_place: bool) -> Any:
    """What a primitive computes of a batch; called by the native code, below the level of that number."""
    named, count = primitive.__name__, primitive.input_count
    rule: Callable | None = by_attributes
    rest = batched[count:]
    if not _any(rest) or named in _WITH_TENSORS:
        rule, batched = RULES.get(named), batched[:count]
    if rule is None:
        rule = elementwise if primitive.is_elementwise else example_by_example
    result = rule(primitive, Batch(size, batched, number), *values)
    return _C.in_place(ops.copy, values[0], result) if in_place else result


def _promoted(values: list, batched: tuple, ranks: list) -> list:
    """Numbers among the examples do not decide a dtype against tensors with dimensions; in a batch they would
    be such."""
    from rushlight import promote_types

    def kind(dtype: Any) -> int:
        return 3 if dtype.is_complex else 2 if dtype.is_floating_point else 0 if dtype == _C.bool else 1

    tensors = [(value, rank) for value, rank in zip(values, ranks, strict=True) if rank is not None]
    wide = narrow = None
    for value, rank in tensors:
        if rank:
            wide = value.dtype if wide is None else promote_types(wide, value.dtype)
        else:
            narrow = value.dtype if narrow is None else promote_types(narrow, value.dtype)
    if wide is None or narrow is None or kind(narrow) > kind(wide):
        return values
    return [
        value.to(wide) if rank == 0 and flag and value.dtype != wide else value
        for value, rank, flag in zip(values, ranks, batched, strict=True)
    ]


def aligned(batch: Batch, values: Any, batched: Any) -> list:
    """Tensors (and numbers) so that those of a batch broadcast as their examples would."""
    ranks = [
        value.dim() - flag if isinstance(value, Tensor) else None for value, flag in zip(values, batched)
    ]
    most = max(rank for rank in ranks if rank is not None)
    return [
        value.reshape(batch.size, *(1,) * (most - rank), *value.shape[1:]) if flag and rank < most else value
        for value, flag, rank in zip(values, batched, ranks)
    ]


def elementwise(op: Any, batch: Batch, *args: Any) -> Any:
    """Loops over elements: whatever is batched broadcasts along the examples."""
    count = op.input_count
    values, flags = list(args[:count]), batch.batched[:count]
    if count > 1:
        since = 1 if op.__name__ == "where" else 0  # a condition decides no dtype
        tensors = [value for value in values[since:] if isinstance(value, Tensor)]
        if tensors and any(value.dtype != tensors[0].dtype for value in tensors):
            ranks = [
                v.dim() - f if isinstance(v, Tensor) else None for v, f in zip(values, flags, strict=True)
            ]
            values[since:] = _promoted(values[since:], flags[since:], ranks[since:])
        values = aligned(batch, values, flags)
    return op(*values, *args[count:])


def _example(value: Any, batched: Any, i: int) -> Any:
    if isinstance(batched, tuple):
        return tuple(_example(part, flag, i) for part, flag in zip(value, batched, strict=True))
    return ops.select(value, 0, i) if batched else value


def by_attributes(op: Any, batch: Batch, *args: Any) -> Any:
    """Where what says how to compute differs among the examples, as an offset, or how many dimensions."""
    if not op.is_view:
        results = computed_alone(op, batch, *args)
        if not any(_differ(column) for column in _columns(results)):
            return _stacked(results)
    raise RuntimeError(
        "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() "
        "on a Tensor, please try to rewrite what you're doing with other operations. An argument of "
        f"{op.__name__} that decides what it makes of an example is not the same for all of them."
    )


def _columns(results: list) -> Iterable:
    return zip(*results, strict=True) if isinstance(results[0], tuple) else (results,)


def _differ(tensors: Any) -> bool:
    return any(t.shape != tensors[0].shape for t in tensors)


def _stacked(results: list) -> Any:
    if isinstance(results[0], tuple):
        return tuple(ops.stack(column, 0) for column in zip(*results, strict=True))
    return ops.stack(tuple(results), 0)


def example_by_example(op: Any, batch: Batch, *args: Any) -> Any:
    """One call for each example."""
    if op.is_view:
        raise NotImplementedError(f"vmap: there is no batching rule for the view {op.__name__}")
    if batch.size == 0:
        raise RuntimeError(
            f"vmap: {op.__name__} has no batching rule, and of an empty batch it has nothing to compute"
        )
    return _stacked(computed_alone(op, batch, *args))


def computed_alone(op: Any, batch: Batch, *args: Any) -> list:
    """What the primitive makes of each example."""
    flags, rest = batch.batched, args[len(batch.batched) :]
    return [
        op(*_numbered(op, [*map(_example, args, flags, (i,) * len(flags)), *rest])) for i in range(batch.size)
    ]


def _numbered(op: Any, args: list) -> list:
    """The arguments of a call, attributes as numbers."""
    for i in range(op.input_count, len(args)):
        if isinstance(args[i], Tensor) and not args[i].dim() and op.__name__ not in _WITH_TENSORS:
            args[i] = args[i].item()
    return args
