"""`rearrange`: the dimensions of a tensor in another order, split and joined, as a pattern says."""

from __future__ import annotations

import math
import re
from typing import Any

from rushlight.func._tensor import Tensor

_TOKEN = re.compile(r"\s*(\.\.\.|[()]|[A-Za-z]\w*|\d+|\S)")
_REST = "..."
_BARE = [_REST]  # a dimension (or more, or none) of its own, not in brackets


def _side(text: str) -> list[list[str]]:
    """The dimensions of one side of a pattern, each the list of its axes; (1) and () have none."""
    found: list[list[str]] = []
    group: list[str] | None = None
    seen: set[str] = set()
    for token in _TOKEN.findall(text):
        if token == "(":
            if group is not None:
                raise ValueError("brackets are nested in the rearrange expression")
            group = []
            found.append(group)
        elif token == ")":
            if group is None:
                raise ValueError("brackets do not match in the rearrange expression")
            group = None
        elif token.isdigit():
            if token != "1":
                raise ValueError(f"only 1 may be a number in a rearrange expression, got {token}")
            if group is None:
                found.append([])
        elif token == _REST or token.isidentifier():
            if token in seen:
                raise ValueError(f"Indexing expression contains duplicate dimension '{token}'")
            seen.add(token)
            if group is None:
                found.append(_BARE if token == _REST else [token])
            else:
                group.append(token)
        else:
            raise ValueError(f"unexpected character {token!r} in the rearrange expression")
    if group is not None:
        raise ValueError("brackets do not match in the rearrange expression")
    return found


def _names(side: list[list[str]]) -> set[str]:
    return {name for group in side for name in group}


def _split(group: list[str], size: int, known: dict[str, int]) -> list[int]:
    """The sizes of the axes of a dimension; one of them may be found out."""
    unknown = [name for name in group if name not in known]
    product = math.prod(known[name] for name in group if name in known)
    if len(unknown) > 1:
        raise ValueError(f"the sizes of all but one of {group} must be given")
    if unknown:
        if product == 0 or size % product:
            raise ValueError(f"a dimension of size {size} cannot be split into parts of {product}")
        known[unknown[0]] = size // product
    elif product != size:
        raise ValueError(f"axes {group} have {product} elements, and the dimension {size}")
    return [known[name] for name in group]


def rearrange(
    tensor: Tensor | list[Tensor] | tuple[Tensor, ...], pattern: str, **axes_lengths: int
) -> Tensor:
    """A view (or copy) of a tensor with its dimensions as a pattern names them: `b c h w -> b (h w) c`. What
    stands in brackets is one dimension; of one that is split, all sizes but one are given by name; `...`
    stands for all others. A list of tensors is stacked first.

    >>> torch.func.rearrange(torch.arange(6).reshape(2, 3), "i j -> j i")
    tensor([[0, 3],
            [1, 4],
            [2, 5]])
    >>> torch.func.rearrange(torch.arange(6), "(i j) -> i j", i=2)
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    import rushlight

    if isinstance(tensor, (list, tuple)):
        tensor = rushlight.stack(list(tensor))
    sides = pattern.split("->")
    if len(sides) != 2:
        raise ValueError("Pattern must contain a single '->' separator")
    left, right = map(_side, sides)
    alone = _names(left) ^ _names(right)
    if alone:
        raise ValueError(f"Identifiers only on one side of rearrange expression (should be on both): {alone}")
    unused = set(axes_lengths) - _names(left)
    if unused:
        raise ValueError(f"axes that the pattern does not have: {unused}")
    if any(_REST in group and group is not _BARE for group in left):
        raise ValueError("the dimensions of ... cannot be split")
    if _BARE in left:
        more = tensor.dim() - len(left) + 1
        if more < 0:
            raise ValueError(f"the pattern has {len(left) - 1} dimensions, and the tensor {tensor.dim()}")
        at = left.index(_BARE)
        rest = [f"...{i}" for i in range(more)]
        left[at : at + 1] = [[name] for name in rest]
        spread: list[list[str]] = []
        for group in right:
            if group is _BARE:
                spread += [[name] for name in rest]
            else:
                spread.append([n for name in group for n in (rest if name == _REST else [name])])
        right = spread
    elif len(left) != tensor.dim():
        raise ValueError(
            f"Number of dimensions in pattern ({len(left)}) must be equal to the number of dimensions in the "
            f"tensor ({tensor.dim()})"
        )
    known: dict[str, Any] = dict(axes_lengths)
    shape = [n for group, size in zip(left, tensor.shape, strict=True) for n in _split(group, size, known)]
    order = [name for group in left for name in group]
    turned = [order.index(name) for group in right for name in group]
    joined = [math.prod(known[name] for name in group) for group in right]
    return tensor.reshape(shape).permute(turned).reshape(joined)
