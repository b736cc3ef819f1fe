"""The views through which an operand of torch's goes into a product: known from sizes and strides alone, so
that nothing is computed to tell them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple


class Step(NamedTuple):
    """A view on the way into a product, or behind it. Inward is towards the product."""

    name: str
    primitive: str
    size: tuple  # of the view
    inward: Callable
    outward: Callable  # of a gradient
    shows: dict[str, Any]
    repeats: bool = False  # a gradient outside is a sum of those within, which it does not tell


def _same(g: Any) -> Any:
    return g


def dense_strides(size: tuple) -> tuple:
    """The strides of a contiguous tensor."""
    return tuple(math.prod(max(n, 1) for n in size[d + 1 :]) for d in range(len(size)))


def is_contiguous(size: tuple, stride: tuple) -> bool:
    """Whether elements lie one after the other; the strides of single ones say nothing."""
    if 0 in size:
        return True
    pairs = zip(size, stride, dense_strides(size))
    return all(count == 1 or own == dense for count, own, dense in pairs)


def viewed_strides(size: tuple, stride: tuple, new: tuple) -> tuple | None:
    """The strides that read the same memory as a tensor of another size; None if there are none."""
    if 0 in size:
        return dense_strides(new)
    found: list[int] = []
    left = list(new)  # what has to be covered yet, from the last dimension on
    count, step = 1, stride[-1] if stride else 1
    for d in reversed(range(len(size))):
        count *= size[d]
        joined = d and (size[d - 1] == 1 or stride[d - 1] == count * step)
        if joined:
            continue
        covered = 1
        while left and (covered < count or left[-1] == 1):
            found.insert(0, covered * step)
            covered *= left.pop()
        if covered != count:
            return None
        count, step = 1, stride[d - 1]
    return None if left else tuple(found)


class Operand:
    """What an operation was called with, and the steps from there; the nearest to the product first."""

    def __init__(self, at: int, name: str, required: bool, size: Any, stride: Any, steps: tuple = ()) -> None:
        self.at, self.name, self.required = at, name, required  # among the node's edges, in its rules
        self.size = tuple(size)
        self.stride = dense_strides(self.size) if stride is None else tuple(stride)
        self.steps: tuple[Step, ...] = steps
        self.copied = False

    def _after(self, step: Step, stride: tuple) -> Operand:
        return Operand(self.at, self.name, self.required, step.size, stride, (step, *self.steps))

    def t(self) -> Operand:
        turned = lambda g: g.t()  # noqa: E731
        return self._after(Step("TBackward0", "t", self.size[::-1], turned, turned, {}), self.stride[::-1])

    def mT(self) -> Operand:
        turn = lambda dims: (*dims[:-2], dims[-1], dims[-2])  # noqa: E731
        return self._after(turned_step(turn(self.size)), turn(self.stride))

    def unsqueeze(self, dim: int) -> Operand:
        size, stride = list(self.size), list(self.stride)
        stride.insert(dim, size[dim] * stride[dim] if dim < len(size) else 1)
        size.insert(dim, 1)
        step = Step("UnsqueezeBackward0", "unsqueeze", tuple(size), lambda g: g.unsqueeze(dim),
                    lambda g: g.squeeze(dim), {"dim": dim})  # fmt: skip
        return self._after(step, tuple(stride))

    def squeeze(self) -> Operand:
        """Without the first dimension, of size 1."""
        shows = {"dim": 0, "self_sym_sizes": self.size}
        step = Step("SqueezeBackward1", "squeeze_dim", self.size[1:], lambda g: g.squeeze(0),
                    lambda g: g.unsqueeze(0), shows)  # fmt: skip
        return self._after(step, self.stride[1:])

    def expand(self, size: tuple) -> Operand:
        before, missing = self.size, len(size) - len(self.size)
        repeats = math.prod(size) != math.prod(before)
        outward = (lambda g: g.sum_to_size(before)) if repeats else (lambda g: g.reshape(before))
        step = Step("ExpandBackward0", "expand", size, lambda g: g.expand(size), outward,
                    {"self_sym_sizes": before}, repeats)  # fmt: skip
        stride: list[int] = []
        for d in reversed(range(len(size))):
            own = d - missing
            if own >= 0 and before[own] == size[d]:
                stride.insert(0, self.stride[own])
            elif own < 0 and size[d] == 1:
                stride.insert(0, stride[0] * size[d + 1] if stride else 1)
            else:
                stride.insert(0, 0)
        return self._after(step, tuple(stride))

    def reshape(self, size: tuple) -> Operand:
        stride, name, operand = dense_strides(size), "ViewBackward0", self
        if self.copied:
            name = "UnsafeViewBackward0"
        elif not is_contiguous(self.size, self.stride):
            found = viewed_strides(self.size, self.stride, size)
            name = "UnsafeViewBackward0" if found is None else "ReshapeAliasBackward0"
            stride = found or stride
            if found is None:
                copy = Step("CloneBackward0", "clone", self.size, _same, _same, {})
                operand = self._after(copy, dense_strides(self.size))
        return operand._after(reshaped_step(name, self.size, size), stride)


def reshaped_step(name: str, before: tuple, size: tuple) -> Step:
    return Step(name, "view", size, lambda g: g.reshape(size), lambda g: g.reshape(before),
                {"self_sym_sizes": before})  # fmt: skip


def turned_step(size: tuple) -> Step:
    """The matrices of a batch turned round."""
    turned = lambda g: g.mT  # noqa: E731
    return Step("TransposeBackward0", "transpose", size, turned, turned, {"dim0": -2, "dim1": -1})
