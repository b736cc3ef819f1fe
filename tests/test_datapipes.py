"""Data pipes without torch: one iterator at a time, graphs, pickles, files."""

import pickle

import pytest

import rushlight
from rushlight.utils.data import IterDataPipe, functional_datapipe, graph, graph_settings
from rushlight.utils.data.datapipes.iter import FileLister, IterableWrapper
from rushlight.utils.data.datapipes.map import SequenceWrapper


def double(x):
    return 2 * x


def test_a_stream_has_one_iterator():
    pipe = IterableWrapper(range(3))
    first = iter(pipe)
    assert next(first) == 0
    assert next(iter(pipe)) == 0
    with pytest.raises(RuntimeError, match="has been invalidated"):
        next(first)


def test_children_of_a_fork_start_over_together():
    one, other = IterableWrapper(range(3)).fork(2)
    assert list(one) == list(other) == [0, 1, 2]
    assert list(one) == [0, 1, 2]
    with pytest.warns(UserWarning, match="not exhausted"):
        assert list(one) == [0, 1, 2]
    reading = iter(other)
    assert next(reading) == 0
    assert len(one) == 3


def test_own_steps_are_methods():
    @functional_datapipe("tripled")
    class Tripler(IterDataPipe):
        def __init__(self, source):
            self.source = source

        def __iter__(self):
            for x in self.source:
                yield 3 * x

    try:
        assert list(IterableWrapper([1, 2]).tripled()) == [3, 6]
        assert "tripled" in dir(IterableWrapper([1]))
    finally:
        del IterDataPipe.functions["tripled"]


def test_pickles_and_graphs():
    pipe = IterableWrapper(range(6)).map(double).sharding_filter().shuffle()
    assert sorted(pickle.loads(pickle.dumps(pipe))) == [0, 2, 4, 6, 8, 10]
    assert len(graph_settings.get_all_graph_pipes(graph.traverse_dps(pipe))) == 4
    graph_settings.apply_sharding(pipe, 3, 1)
    graph_settings.apply_shuffle_settings(pipe, False)
    assert list(pipe) == [2, 8] and len(pipe) == 2
    with pytest.raises(RuntimeError, match="Sharding twice"):
        graph_settings.apply_sharding(pipe.sharding_filter(), 2, 0)
    with pytest.raises(ValueError, match="should be smaller"):
        graph_settings.apply_sharding(pipe, 2, 2)


def test_seeds_reach_every_step():
    pipe = IterableWrapper(range(20)).shuffle()
    orders = []
    for _ in range(2):
        graph_settings.apply_random_seed(pipe, rushlight.Generator().manual_seed(1))
        orders.append(list(pipe))
    assert orders[0] == orders[1] != list(range(20))


def test_files(tmp_path):
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "b.csv").write_text("two")
    paths = FileLister(str(tmp_path), "*.txt")
    assert [path.rpartition("/")[2] for path in paths] == ["a.txt"]
    assert [text for _, text in FileLister(str(tmp_path)).open_files().read_from_stream()] == ["one", "two"]


def test_map_pipes():
    pipe = SequenceWrapper({"x": 1, "y": 2}).map(double)
    assert pipe["y"] == 4 and len(pipe) == 2
    with pytest.raises(IndexError):
        SequenceWrapper([1]).batch(1)[1]
    assert sorted(SequenceWrapper([1, 2, 3]).shuffle()) == [1, 2, 3]
