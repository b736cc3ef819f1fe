"""Sparse tensors: both libraries make, show, change and refuse the same.

sparse.txt has an expression on each line. Both evaluate it; what it prints (entries in their order, sizes,
layout, nodes), with whether it is coalesced, or the error type and first sentence, is the same.
"""

from pathlib import Path

import pytest
from expressions import outcome
from test_sparse_gradients import first_sentence

import rushlight

torch = pytest.importorskip("torch")

SETUP = """
torch.sparse.check_sparse_tensor_invariants.disable()  # said aloud, or torch warns once
i, v = torch.tensor([[0, 1, 1], [2, 0, 0]]), torch.tensor([3., 4., 5.])

def X():
    'a matrix with an index that is there twice'
    return torch.sparse_coo_tensor(i, v, (2, 3))

def H():
    'of dense rows'
    return torch.sparse_coo_tensor(i, torch.arange(6.).reshape(3, 2), (2, 3, 2))

def shown(x):
    if isinstance(x, (tuple, list)):
        return [shown(one) for one in x]
    if isinstance(x, torch.Tensor) and x.layout is torch.sparse_coo:
        return x, x.is_coalesced(), x._version
    return x
"""
TABLE = Path(__file__).with_name("sparse.txt").read_text().splitlines()


@pytest.mark.parametrize("text", TABLE)
def test_same(text):
    theirs, ours = (
        first_sentence(outcome(library, f"shown({text})", SETUP)) for library in (torch, rushlight)
    )
    assert ours == theirs
