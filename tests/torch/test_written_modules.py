"""Every parameter, buffer, input and output of every module of module_db, written between the forward and the
backward: both libraries refuse the same writes, in the same words.

DIFFER lists the modules of which that is not so, and why. One that has become better than listed fails, so
that the list stays true.

    python tests/torch/test_written_modules.py COUNT [module ...]

looks at COUNT samples of each module and prints what differs.
"""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import written
from moduledb import INFOS

COUNT = 4  # samples of each module and mode
FEWER = {"nn.Transformer": 1, "nn.TransformerEncoderLayer": 2, "nn.TransformerDecoderLayer": 2}

DIFFER = {
    "torch keeps the weights as large as the input": "BCELoss",
    "the state before a step is kept, in torch its difference from the new one": "GRUCell",
}
LISTED = {f"nn.{name}" for names in DIFFER.values() for name in names.split()}


def differences(name: str, count: int) -> list[str]:
    """Evaluation is looked at where the module does something else there."""
    return [
        f"{'train' if training else 'eval'} {what}: {mine}; torch: {theirs}"
        for training in ((True, False) if INFOS[name].train_and_eval_differ else (True,))
        for what, mine, theirs in written.endings(name, training, count)
        if mine != theirs
    ]


@pytest.mark.parametrize("name", INFOS)
def test_writes_are_refused_in_the_same_words(name):
    found = differences(name, FEWER.get(name, COUNT))
    assert bool(found) == (name in LISTED), found[:1] or f"{name} is the same now: take it off the list"


def test_nothing_unknown_is_listed():
    assert not LISTED - set(INFOS)


if __name__ == "__main__":
    for module in sys.argv[2:] or INFOS:
        for line in differences(module, int(sys.argv[1])):
            print(module, line)
