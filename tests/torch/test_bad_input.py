"""Samples of torch's operations with one argument spoilt: Rushlight answers or refuses, and never crashes.

Torch itself is not called on these: some of them end its process.
"""

import random

import opdb
import pytest
import torch
from comparing import REFUSALS
from gaps import operations

pytestmark = pytest.mark.filterwarnings("ignore")

# Python's own errors and assertions, where torch's functions raise them, too.
ALLOWED = (*REFUSALS, ArithmeticError, AssertionError)
NUMBERS = (-(2**63), -100, -3, -1, 0, 1, 2, 3, 7, 64, 65, 2**63 - 1)
FLOATS = (float("nan"), float("inf"), -1.0, 0.0, 1e308)
DTYPES = (torch.int64, torch.bool, torch.float64, torch.complex64, torch.uint8, torch.bfloat16)
# Make what they are told to (a large size is a large tensor), or call torch.ops, which there is not here.
LEFT_OUT = {
    "bincount", "repeat_interleave", "nn.functional.one_hot", "mvlgamma", "max_pool2d_with_indices_backward",
}  # fmt: skip


def spoilt_tensor(rng, tensor):
    tensor = tensor.detach()
    kind = rng.randrange(6)
    if kind == 0:
        return torch.zeros([rng.choice((0, 1, 2, 3, 5)) for _ in range(rng.randrange(5))], dtype=tensor.dtype)
    if kind == 1:
        return tensor.to(rng.choice(DTYPES))
    if kind == 2:
        return torch.empty(0, dtype=tensor.dtype)
    if kind == 3:
        return tensor.new_full((), 3)
    if kind == 4 and tensor.dtype == torch.int64:
        return torch.full_like(tensor, rng.choice((-100, 100, -1)))
    return tensor.unsqueeze(0)


def spoilt(rng, item):
    if isinstance(item, torch.Tensor):
        return spoilt_tensor(rng, item)
    if isinstance(item, bool):
        return rng.choice((True, False, None))
    if isinstance(item, int):
        return rng.choice(NUMBERS)
    if isinstance(item, float):
        return rng.choice(FLOATS)
    return "nonsense" if isinstance(item, str) else item


def leaves(tree):
    if type(tree) in (list, tuple):
        return sum(map(leaves, tree))
    return sum(map(leaves, tree.values())) if type(tree) is dict else 1


def with_one_spoilt(rng, tree):
    place = iter(range(leaves(tree)))
    chosen = rng.randrange(leaves(tree))

    def walk(item):
        if type(item) in (list, tuple):
            return type(item)(map(walk, item))
        if type(item) is dict:
            return {name: walk(value) for name, value in item.items()}
        return spoilt(rng, item) if next(place) == chosen else item

    return walk(tree)


NAMES = [
    row["name"]
    for row in operations()
    if row["autograd"] == "1" and opdb.ENTRIES[row["name"]].name not in LEFT_OUT
]


@pytest.mark.parametrize("entry", NAMES)
def test_spoilt_arguments(entry):
    op = opdb.ENTRIES[entry]
    rng = random.Random(entry)
    for sample in opdb.samples(op, "float32" if torch.float32 in op.dtypes else "float64", 3):
        for _ in range(3):
            args, kwargs = with_one_spoilt(rng, ((sample.input, *sample.args), dict(sample.kwargs)))
            try:
                carry = opdb.Carrier()
                opdb.ours(op.op, op.name)(*carry(args), **carry(kwargs))
            except (*ALLOWED, opdb.Unfit, opdb.Absent):
                continue
