"""op_db's samples under `vmap`: what is computed of a batch is what is computed of each example, and nothing
is refused that torch's `vmap` takes.

Several examples are made of a sample, those behind the first with other numbers.
"""

import itertools
from collections.abc import Iterator
from typing import Any

import opdb
import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

import rushlight
import rushlight.func

# Which tensors of a sample are batches, where their examples lie, and how deep `vmap` is nested.
WAYS = (("all", 0, 1), ("first", 0, 1), ("all", -1, 1), ("last", 0, 1), ("all", 0, 2))
TAKEN: set[str] = set()  # the entries that torch's `vmap` has taken
LARGE = 20_000  # elements, of samples that say no more than others
RANDOM = "called random operation while in randomness error mode"
# What reads memory as it lies: examples along the last dimension lie elsewhere in torch.
AS_IT_LIES = ("as_strided", "as_strided_copy", "as_strided_scatter")


def examples(tensor: torch.Tensor, count: int) -> list[torch.Tensor]:
    """As many as there are to be: the tensor, and others whose numbers differ a little, as far as any do."""
    inexact = tensor.is_floating_point() or tensor.is_complex()
    return [tensor * (1 + i / 16) if i and inexact else tensor for i in range(count)]


def batch(tensor: torch.Tensor, dim: int, depth: int) -> torch.Tensor:
    stacked = torch.stack(examples(tensor, 2**depth), dim if depth == 1 else 0)
    return stacked if depth == 1 else stacked.unflatten(0, (2, 2))


def places(leaves: list, which: str) -> list[int]:
    """The tensors that are mapped over."""
    found = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    return found if which == "all" else found[:1] if which == "first" else found[1:][-1:]


def mapped(
    lib: Any, op: Any, spec: Any, leaves: list, where: list[int], dim: int, depth: int, random: str
) -> Any:
    """What the operation makes of all examples."""

    def one(*tensors: Any) -> tuple:
        given = list(leaves)
        for place, tensor in zip(where, tensors, strict=True):
            given[place] = tensor
        args, kwargs = tree_unflatten(given, spec)
        return tuple(opdb.tensors_in(op(*args, **kwargs), lib.Tensor))

    for _ in range(depth):
        one = lib.func.vmap(one, in_dims=dim, randomness=random)
    lib.manual_seed(0)
    return one(*(leaves[i] for i in where))


def one_by_one(op: Any, spec: Any, leaves: list, where: list[int], dim: int, depth: int) -> Any:
    """The same by a call for each example."""
    rows = []
    for at in itertools.product(range(2), repeat=depth):
        given = list(leaves)
        for place in where:
            for i in at:
                given[place] = given[place].select(dim, i).clone()
        args, kwargs = tree_unflatten(given, spec)
        rows.append(opdb.tensors_in(op(*args, **kwargs), rushlight.Tensor))
    return [rushlight.stack(column).unflatten(0, (2,) * depth) for column in zip(*rows, strict=True)]


def check_vmap(op: Any, sample: Any, way: tuple) -> Iterator[str]:
    """What differs of one way to map over a sample."""
    which, dim, depth = way
    leaves, spec = tree_flatten(((sample.input, *sample.args), dict(sample.kwargs)))
    where = places(leaves, which)
    size = sum(leaf.numel() for leaf in leaves if isinstance(leaf, torch.Tensor))
    if not where or size > LARGE or (dim == -1 and op.name in AS_IT_LIES):
        return
    theirs_leaves = [leaf.detach() if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
    for place in where:
        theirs_leaves[place] = batch(theirs_leaves[place], dim, depth)
    carry = opdb.Carrier(requires_grad=False)
    our_leaves = [carry(leaf) for leaf in theirs_leaves]
    mine = opdb.ours(op.op, op.name)
    drawn = False
    for random in ("error", "same", "different"):
        theirs, refusal = opdb.attempt(mapped, torch, op.op, spec, theirs_leaves, where, dim, depth, random)
        result, error = opdb.attempt(mapped, rushlight, mine, spec, our_leaves, where, dim, depth, random)
        if refusal is None:
            TAKEN.add(opdb.entry_name(op))
        if random == "error" and refusal is not None and RANDOM in str(refusal):
            drawn = True
            if error is None or RANDOM not in str(error):
                yield f"randomness='error': {error or 'computed'}"
            continue
        if refusal is None and error is not None:
            yield f"{type(error).__name__}: {opdb.first_sentence(error)}"
        elif refusal is None and drawn:
            for a, b in zip(result, theirs, strict=True):
                yield from opdb.differences(a, b, values=False, strides=False)
        elif error is None and not drawn:
            yield from compared(op, result, mine, spec, our_leaves, where, dim, depth)
        if not drawn:
            return


def compared(op: Any, result: Any, mine: Any, *given: Any) -> Iterator[str]:
    wanted, alone = opdb.attempt(one_by_one, mine, *given)
    if alone is not None:
        return
    for a, b in zip(result, wanted, strict=True):
        if op.name in opdb.PHASE:
            a, b = a.abs(), b.abs()
        if (a.dtype, a.shape) != (b.dtype, b.shape):
            yield f"{a.dtype}{list(a.shape)}, one by one {b.dtype}{list(b.shape)}"
        elif op.name not in opdb.UNDEFINED and a.numel():
            a, b = a.detach(), b.detach()
            yield from opdb.value_differences(opdb.array_of(a), opdb.array_of(b), str(a.dtype).split(".")[1])
