"""Every parameter, buffer, input and output of every module of module_db, written between the forward and the
backward: both libraries refuse the same writes, in the same words.

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
    assert not found, found[:1]


if __name__ == "__main__":
    for module in sys.argv[2:] or INFOS:
        for line in differences(module, int(sys.argv[1])):
            print(module, line)
