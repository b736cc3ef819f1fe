"""Data pipes: the same samples in the same order, and the same refusals, as in torch."""

import warnings

import pytest
import torch
import torch.utils.data.datapipes

import rushlight
import rushlight.utils.data.datapipes


def increase(x):
    return x + 1


def parity(x):
    return x % 2


PIPES = [
    lambda lib, it, mp: list(it.map(increase)),
    lambda lib, it, mp: list(it.filter(lambda x: x > 2)),
    lambda lib, it, mp: [list(batch) for batch in it.batch(3)],
    lambda lib, it, mp: [list(batch) for batch in it.batch(3, drop_last=True)],
    lambda lib, it, mp: len(it.batch(3)),
    lambda lib, it, mp: list(it.batch(2).batch(2).unbatch(-1)),
    lambda lib, it, mp: list(it.batch(2).unbatch()),
    lambda lib, it, mp: [list(group) for group in it.groupby(parity)],
    lambda lib, it, mp: [list(group) for group in it.groupby(parity, group_size=2)],
    lambda lib, it, mp: [list(each) for each in it.fork(2)],
    lambda lib, it, mp: list(zip(*it.fork(2))),
    lambda lib, it, mp: [list(each) for each in it.demux(2, parity)],
    lambda lib, it, mp: list(it.zip(mp.shuffle().set_shuffle(False))),
    lambda lib, it, mp: list(it.mux(mp.shuffle().set_shuffle(False))),
    lambda lib, it, mp: list(it.concat(mp.shuffle().set_shuffle(False))),
    lambda lib, it, mp: list(it.shuffle()),
    lambda lib, it, mp: list(it.shuffle(buffer_size=3).set_seed(5)),
    lambda lib, it, mp: list(it.shuffle().set_shuffle(False)),
    lambda lib, it, mp: [batch.tolist() for batch in it.batch(4).collate()],
    lambda lib, it, mp: list(mp.shuffle()),
    lambda lib, it, mp: list(mp.shuffle().set_seed(3)),
    lambda lib, it, mp: [list(batch) for batch in mp.batch(4)],
    lambda lib, it, mp: list(mp.map(increase).zip(mp.concat(mp))),
    lambda lib, it, mp: [int(x) for x in lib.utils.data.DataLoader(it.shuffle(), None, shuffle=True)],
    lambda lib, it, mp: [x.tolist() for x in lib.utils.data.DataLoader(mp, batch_size=3, shuffle=True)],
    lambda lib, it, mp: sorted(
        int(x) for x in lib.utils.data.DataLoader(it.sharding_filter(), None, num_workers=2)
    ),
    lambda lib, it, mp: it.batch(0),
    lambda lib, it, mp: it.fork(0),
    lambda lib, it, mp: it.zip(1),
    lambda lib, it, mp: it.concat(1),
    lambda lib, it, mp: it.map(3),
    lambda lib, it, mp: it.map(lambda a, b: a),
    lambda lib, it, mp: list(it.unbatch()),
    lambda lib, it, mp: list(it.filter(lambda x: 1)),
    lambda lib, it, mp: list(it.zip(it)),
    lambda lib, it, mp: len(it.filter(bool)),
    lambda lib, it, mp: [list(each) for each in it.fork(2, buffer_size=3)],
    lambda lib, it, mp: lib.utils.data.functional_datapipe("map")(
        type("Own", (lib.utils.data.IterDataPipe,), {})
    ),
]


def outcome(lib, pipe):
    lib.manual_seed(0)
    pipes = lib.utils.data.datapipes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return pipe(lib, pipes.iter.IterableWrapper(range(8)), pipes.map.SequenceWrapper(range(10, 18)))
        except Exception as error:
            return type(error), str(error).split("\n")[0]


@pytest.mark.parametrize("pipe", PIPES, ids=range(len(PIPES)))
def test_pipes(pipe):
    assert outcome(rushlight, pipe) == outcome(torch, pipe)


def test_columns():
    def columns(lib):
        wrap = lib.utils.data.datapipes.iter.IterableWrapper
        rows = [(1, 2), (3, 4)]
        return [
            list(wrap(rows).map(increase, input_col=1)),
            list(wrap(rows).map(increase, input_col=1, output_col=0)),
            list(wrap(rows).map(max, input_col=[0, 1], output_col=-1)),
            list(wrap([{"a": 1}]).map(increase, input_col="a", output_col="b")),
            list(wrap(rows).filter(bool, input_col=0)),
        ]

    assert columns(rushlight) == columns(torch)
