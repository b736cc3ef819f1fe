"""What torch's operations see of the tensors that an operation is called with, where that is a view of them:
the transposed weight of `linear`, the rows of a batch. An error about a tensor that was written since names
the view. `within` is where to start; it is asked when such an error is raised, never before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal

from rushlight import _C

Node = _C.Node
_ATTENTION = "ScaledDotProductFlashAttentionForCpuBackward0"
Seen = tuple[list[int], str] | None  # the sizes, and what the last view is called


def within(node: Node, name: str, value: Any) -> Seen | Literal[False]:
    """What an operand is to torch's operation within; None if that is the operand itself. False if the
    derivative that is being computed does not read it, so that it may have been written."""
    primitive = node._primitive.__name__
    if primitive.startswith("linear"):
        return _of_linear(node, name, value)
    if primitive == "rnn_sequence":
        return _of_steps(node, name, value)
    if primitive.endswith("_pool1d"):
        return ([*value.shape[:-1], 1, value.shape[-1]], "Unsqueeze") if name == "x" else None
    if primitive.startswith("einsum"):
        return ([1] if value.dim() == 2 else []) + list(value.shape), "View"
    if primitive in ("attention", "attention_keeping"):
        return _of_attention(node, name, value)
    if primitive == "nll_loss2d":
        return _of_scores(name, value)
    if name not in ("a", "b"):
        return None
    if primitive == "vecmat":
        return ([1, *value.shape], "Unsqueeze") if name == "a" else None
    return _of_product(node, name, value)


def _turned(value: Any) -> Seen:
    return list(value.shape[::-1]), "T"


def _rows(value: Any) -> Seen:
    return [math.prod(value.shape[:-1]), value.shape[-1]], "View"


def _batch(value: Any, leading: Sequence[int], column: bool = False) -> Seen:
    """A matrix, or one of a batch, repeated for each of the batch that the other operand has."""
    matrix = value.shape[-2:]
    if value.dim() == 1:
        matrix = (*value.shape, 1) if column else (1, *value.shape)
    return [math.prod(leading), *matrix], "View"


def _broadcast(a: tuple, b: tuple) -> list[int]:
    dims = max(len(a), len(b))
    return [y if x == 1 else x for x, y in zip((1,) * (dims - len(a)) + a, (1,) * (dims - len(b)) + b)]


def _given(node: Node, at: int) -> tuple[int, ...] | None:
    """The sizes of an operand that gets a gradient; None for one that does not."""
    source, nr = node._edges()[at]
    return None if source is None else tuple(source._outputs()[nr][0])


def _strides(source: Node) -> list[int] | None:
    """The strides of a leaf, or of a contiguous tensor that was turned; None if it is another result."""
    if hasattr(source, "variable"):
        return list(source.variable.stride())
    size, name = source._outputs()[0][0], source._primitive and source._primitive.__name__
    if name not in ("transpose", "permute"):
        return None
    given = [source._unpack(slot, out) for _, slot, out in source._names_saved()]
    dims = list(given[0]) if name == "permute" else list(range(len(size)))
    if name == "transpose":
        dims[given[0]], dims[given[1]] = dims[given[1]], dims[given[0]]
    before = [0] * len(size)  # the sizes
    for d, dim in enumerate(dims):
        before[dim] = size[d]
    return [math.prod(before[dim % len(size) + 1 :]) for dim in dims]


def _lies_in_rows(node: Node, at: int, turned: bool = False) -> bool:
    """Whether torch takes an operand that was not kept for one matrix of rows in memory, as far as its
    history tells."""
    source, nr = node._edges()[at]
    if source is None:
        return True
    size, steps = source._outputs()[nr][0], _strides(source)
    if steps is None:
        return not turned
    if turned:
        size, steps = [*size[:-2], size[-1], size[-2]], [*steps[:-2], steps[-1], steps[-2]]
    rows = list(zip(size[:-1], steps))
    return all(step == count * inner for (_, step), (count, inner) in pairwise(rows))


def _of_linear(node: Node, name: str, value: Any) -> Seen:
    if "nd" not in node._primitive.__name__:
        return _turned(value) if name == "weight" else None
    if name == "x":
        return _rows(value)
    x, weight = _given(node, 0), _given(node, 1)
    if x is None or len(x) < 3 or weight is not None or _lies_in_rows(node, 0):
        return _turned(value)
    return [math.prod(x[:-2]), *value.shape[::-1]], "View"


def _of_steps(node: Node, name: str, value: Any) -> Seen | Literal[False]:
    """A recurrent layer or cell. A derivative that is differentiated in turn takes its steps again, of all
    that it was given; else no bias is read, no state but for the weights, no weights of a single step but for
    the state."""
    _, state, _, weight, _ = (source for source, _ in node._edges())
    given = {found: node._unpack(slot, out) for found, slot, out in node._names_saved()
             if found in ("mode", "sizes", "states")}  # fmt: skip
    sizes, gated = given["sizes"], given["mode"] in ("gru", "lstm")
    steps = node._outputs()[0][0][0] if sizes is None else len(sizes)
    if name == "out":  # what it was made of is kept, or a copy
        alone = steps == 1 and gated and node.name() != "MkldnnRnnLayerBackward0"
        return False if alone or given["states"].numel() else None
    if not _C.is_grad_enabled():
        if name == "b_hh" or (name == "w_hh" and state is None and steps == 1):
            return False
        if name == "h0" and weight is None and given["mode"] != "gru":
            return False
    return _turned(value) if name == "w_hh" else None


def _of_product(node: Node, name: str, value: Any) -> Seen:
    """matmul folds a batch into rows for a matrix beside it, else it repeats both for a batch of products."""
    if node.name() == _ATTENTION:  # the last of its products
        return list(value.shape), ""
    at = int(name == "b")
    own, other = _given(node, at), _given(node, 1 - at)
    if other is None:
        return None
    if at and own is None and _of_queries(node._edges()[0][0]):
        return list(value.mT.shape), ""
    size = tuple(value.shape)
    dims, beside = len(size), len(other)
    if dims > 2 and beside > 2:
        if dims == beside == 3 and size[0] != other[0]:
            if size[0] == 1 and own is not None:
                return (list(size[1:]), "Squeeze") if at else ([size[2], size[1]], "T")
            if other[0] == 1:
                return _rows(value if name == "a" else value.mT)
        return _batch(value, _broadcast(size[:-2], other[:-2]))
    if dims > 2:
        return _rows(value if name == "a" else value.mT)
    if own is not None or (at and _lies_in_rows(node, 0)):
        return _turned(value) if dims == 2 and not at else None
    if not at and dims == 1 and _lies_in_rows(node, 1, turned=True):
        return None
    return _batch(value, other[:-2], column=at == 1)


def _of_queries(node: Node) -> bool:
    """Whether what comes from here are the scaled queries of attention that is one operation in torch, which
    keeps what it is given."""
    given = node._edges()[0][0] if node.name() == "MulBackward1" else None
    return given is not None and given.name() == "OnceBackward0"


def _of_attention(node: Node, name: str, value: Any) -> Seen:
    """Where attention is no operation of its own in torch, a batch of values is multiplied."""
    if name != "v" or value.dim() == 2 or node._kept:  # what is one operation keeps its result
        return None
    return _batch(value, value.shape[:-2])


def _of_scores(name: str, value: Any) -> Seen:
    """Scores of other dimensions than images have, and their targets, are images of one row."""
    kept = {"x": 2, "target": 1}.get(name)
    if kept is None or value.dim() == kept + 2:
        return None
    return [*value.shape[:kept], 1, math.prod(value.shape[kept:])], "View"
