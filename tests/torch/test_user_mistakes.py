"""Programs as users write them, with a mistake that users make (user_mistakes.txt), end alike in both
libraries: with the same value, or the same type of exception and first sentence."""

import sys
import warnings
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from odd_programs import run_program  # noqa: E402

import rushlight  # noqa: E402

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.torch

# A network, a batch for it and an optimiser, and classes that lack what one forgets.
GIVEN = """
import copy, pickle
U = torch.utils.data
net = N.Sequential(N.Linear(5, 6), N.ReLU(), N.Linear(6, 3))
wider = N.Sequential(N.Linear(5, 7), N.ReLU(), N.Linear(7, 3))
conv = N.Conv2d(3, 4, 3)
x, y = torch.zeros(4, 5), torch.tensor([0, 1, 2, 0])
opt = O.SGD(net.parameters(), 0.1)
class Unready(N.Module):
    def __init__(self): self.layer = N.Linear(5, 3)
class Forgets(N.Module): pass
class Stream(U.IterableDataset):
    def __iter__(self): return iter(range(3))
class Unindexed(U.Dataset):
    def __len__(self): return 3
class Unsized(U.Dataset):
    def __getitem__(self, at): return at
class Broken(U.Dataset):
    def __len__(self): return 3
    def __getitem__(self, at): raise KeyError("no such file")
"""
PROGRAMS = [line for line in (HERE / "user_mistakes.txt").read_text().splitlines() if line and line[0] != "#"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_it_ends_as_in_torch(program):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, ours = (run_program(library, program, GIVEN) for library in (torch, rushlight))
    first = theirs[1].startswith(ours[1] + " ") and ours[1].endswith(".")  # torch's line may be longer
    assert ours == theirs or (ours[0] == theirs[0] and first)
