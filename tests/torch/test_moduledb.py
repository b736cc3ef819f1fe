"""Every module of torch's module_db: parameters after a seed, outputs, gradients, text, copies."""

import moduledb
import pytest

MODES = [
    (name, training)
    for name, info in moduledb.INFOS.items()
    for training in ((True, False) if info.train_and_eval_differ else (True,))
]


@pytest.mark.parametrize(
    ("name", "training"), MODES, ids=[f"{n}-{'train' if t else 'eval'}" for n, t in MODES]
)
def test_module(name, training):
    assert not list(moduledb.check(name, "float64", training, count=12))
