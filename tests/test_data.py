"""torch.utils.data without torch: order and seeds, worker processes and their accidents, collating."""

import collections
import itertools
import os
import pickle
import sys
import time
import types

import numpy
import pytest

import rushlight as torch
from rushlight.utils.data import (
    ConcatDataset,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    default_collate,
    default_convert,
    get_worker_info,
)


class Squares(Dataset):
    def __len__(self):
        return 10

    def __getitem__(self, index):
        return torch.tensor(index**2), index


class Stream(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        start, step = (0, 1) if info is None else (info.id, info.num_workers)
        return iter(range(start, 10, step))


class Accident(Dataset):
    """Does something bad at index 3."""

    def __init__(self, what):
        self.what = what

    def __len__(self):
        return 6

    def __getitem__(self, index):
        if index == 3:
            if self.what == "raise":
                raise KeyError("no such sample")
            if self.what == "die":
                os._exit(3)
            if self.what == "sleep":
                time.sleep(30)
            if self.what == "unpicklable":
                return lambda: 0
        return index


class Who(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        info = get_worker_info()
        return info.id, info.seed == torch.initial_seed(), torch.rand(1).item()


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_batches_come_in_order(workers):
    batches = list(DataLoader(Squares(), batch_size=4, num_workers=workers))
    assert [index.tolist() for _, index in batches] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert batches[1][0].tolist() == [16, 25, 36, 49]
    assert len(list(DataLoader(Squares(), batch_size=4, num_workers=workers, drop_last=True))) == 2


def test_workers_do_not_change_what_is_drawn():
    def run(workers):
        torch.manual_seed(3)
        loader = DataLoader(Squares(), batch_size=4, shuffle=True, num_workers=workers)
        return [[index.tolist() for _, index in loader] for _ in range(2)], torch.rand(1).item()

    assert run(0) == run(2)


def test_streams():
    assert [batch.tolist() for batch in DataLoader(Stream(), batch_size=4)] == [
        [0, 1, 2, 3],
        [4, 5, 6, 7],
        [8, 9],
    ]
    loader = DataLoader(Stream(), batch_size=None, num_workers=3)
    assert sorted(loader) == list(range(10))
    assert sorted(
        itertools.chain(*(b.tolist() for b in DataLoader(Stream(), batch_size=2, num_workers=2)))
    ) == list(range(10))


def test_persistent_workers_and_seeds():
    loader = DataLoader(Who(), batch_size=None, num_workers=2, persistent_workers=True)
    first, second = list(loader), list(loader)
    assert [row[0] for row in first] == [0, 1, 0, 1] and all(row[1] for row in first + second)
    assert len({row[2] for row in first + second}) == 8
    pids = [worker.pid for worker in loader._iterator._workers]
    list(loader)
    assert pids == [worker.pid for worker in loader._iterator._workers]
    next(iter(loader))  # an epoch that is given up does not disturb the next one
    assert len(list(loader)) == 4


def set_seven(worker):
    torch.manual_seed(7)


def test_worker_init_fn():
    expected = torch.rand(1, generator=torch.Generator().manual_seed(7)).item()
    rows = list(DataLoader(Who(), batch_size=None, num_workers=2, worker_init_fn=set_seven))
    assert rows[0][2] == rows[1][2] == expected


@pytest.mark.parametrize("what, error, text", [
    ("raise", KeyError, "Caught KeyError in DataLoader worker process 1"),
    ("die", RuntimeError, r"DataLoader worker \(pid\(s\) \d+\) exited unexpectedly"),
    ("sleep", RuntimeError, "DataLoader timed out after 1 seconds"),
    ("unpicklable", Exception, "in DataLoader worker process 1"),
])  # fmt: skip
def test_accidents_are_clear_errors(what, error, text):
    loader = DataLoader(Accident(what), batch_size=None, num_workers=2, timeout=1 if what == "sleep" else 0)
    seen = []
    with pytest.raises(error, match=text):
        for sample in loader:
            seen.append(sample)  # noqa: PERF402
    # A process that dies takes results with it that were on their way.
    assert seen == [0, 1, 2] if what != "die" else seen == [0, 1, 2][: len(seen)]


def test_collating():
    point = collections.namedtuple("point", "x y")
    assert default_collate([point(1, 2.0), point(3, 4.0)])[0].tolist() == [1, 3]
    batch = default_collate([{"a": numpy.ones(2, "float32"), "b": ["x", 1]}] * 3)
    assert (
        batch["a"].shape == (3, 2) and batch["b"][0] == ("x", "x", "x") and batch["b"][1].tolist() == [1] * 3
    )
    assert default_collate([numpy.float64(1), numpy.float64(2)]).dtype == torch.float64
    with pytest.raises(TypeError, match="batch must contain tensors, numpy arrays, numbers, dicts or lists"):
        default_collate([None])
    converted = default_convert({"a": numpy.arange(3), "b": "text", "c": (1, numpy.float32(2))})
    assert converted["a"].dtype == torch.int64 and converted["b"] == "text" and converted["c"][1].item() == 2


def test_datasets():
    both = ConcatDataset([Squares(), range(100, 103)])
    assert len(both) == 13 and both[10] == 100 and both[-1] == 102
    data = TensorDataset(torch.arange(4), torch.arange(4) * 2)
    assert [tuple(map(int, row)) for row in Subset(data, [3, 1])] == [(3, 6), (1, 2)]
    stacked = StackDataset(a=data, b=range(4))
    batch = next(iter(DataLoader(stacked, batch_size=2)))
    assert batch["a"][1].tolist() == [0, 2] and batch["b"].tolist() == [0, 1]
    parts = [list(DistributedSampler(range(10), 3, rank)) for rank in range(3)]
    assert all(len(part) == 4 for part in parts) and set(itertools.chain(*parts)) == set(range(10))


@pytest.mark.parametrize("options", [
    {"batch_size": 0}, {"num_workers": -1}, {"timeout": -1}, {"prefetch_factor": 2},
    {"persistent_workers": True}, {"shuffle": True, "sampler": [1]}, {"batch_sampler": [1], "batch_size": 2},
    {"batch_size": None, "drop_last": True}, {"multiprocessing_context": "fork"},
])  # fmt: skip
def test_contradictions_are_refused(options):
    with pytest.raises(ValueError):
        DataLoader(Squares(), **options)
    loader = DataLoader(Squares())
    with pytest.raises(ValueError, match="should not be set after DataLoader is initialized"):
        loader.batch_size = 3


def test_how_a_worker_ended_is_told():
    class Dies(torch.utils.data.Dataset):
        def __len__(self):
            return 2

        def __getitem__(self, index):
            os._exit(3)

    with pytest.raises(RuntimeError, match="exited unexpectedly") as caught:
        list(torch.utils.data.DataLoader(Dies(), num_workers=1))
    assert "with exit code 3" in str(caught.value.__cause__)


def test_films_are_read_from_a_complete_file(monkeypatch):
    from rushlight.utils.data.datapipes.utils import decoder

    def read(path):
        with open(path, "rb") as file:
            return path.rpartition(".")[2], file.read()

    films = types.SimpleNamespace(io=types.SimpleNamespace(read_video=read))
    monkeypatch.setitem(sys.modules, "torchvision", films)
    monkeypatch.setitem(sys.modules, "torchvision.io", films.io)
    monkeypatch.setitem(sys.modules, "torchaudio", types.SimpleNamespace(load=read))
    assert decoder.videohandler("mp4", b"film") == ("mp4", b"film")
    assert decoder.audiohandler("wav", b"sound") == ("wav", b"sound")


@pytest.mark.parametrize("workers", [0, 1])
def test_an_iterator_shows_the_settings_of_its_loader(workers):
    loader = DataLoader(Squares(), batch_size=2, num_workers=workers)
    batches = iter(loader)
    next(batches)
    assert (batches._num_workers, batches._dataset, batches._num_yielded) == (workers, loader.dataset, 1)
    assert batches._index_sampler is loader.batch_sampler and batches._auto_collation
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        batches.nothing


class Counted(torch.utils.data.dataloader._BaseDataLoaderIter):
    """An iterator as libraries write them, around torch's fetchers."""

    def __init__(self, loader):
        super().__init__(loader)
        kind = torch.utils.data._DatasetKind
        self.fetcher = kind.create_fetcher(
            self._dataset_kind, self._dataset, self._auto_collation, self._collate_fn, self._drop_last
        )

    def _reset(self, loader, first_iter=False):
        super()._reset(loader, first_iter)
        self.resets = getattr(self, "resets", 0) + 1

    def _next_data(self):
        return self.fetcher.fetch(self._next_index())


@pytest.mark.parametrize("data", [[1, 2, 3], Stream()])
@pytest.mark.filterwarnings("ignore:'pin_memory' argument")
def test_iterators_of_libraries_are_made_of_the_parts_of_ours(data):
    loader = DataLoader(data, batch_size=2, pin_memory=True)
    batches = Counted(loader)
    assert [list(batch) for batch in batches] == [list(batch) for batch in loader]
    assert batches.fetcher.dataset is data and not batches._pin_memory
    if isinstance(data, list):
        batches._reset(loader)
        assert batches.resets == 1 and len(list(batches)) == 2
    else:
        assert batches.fetcher.ended and next(batches.fetcher.dataset_iter, None) is None


def test_workers_of_libraries_find_their_share_and_their_parent():
    worker = torch.utils.data._utils.worker
    assert worker.ManagerWatchdog().is_alive()
    assert worker._ResumeIteration().seed is None and worker._IterableDatasetStopIteration(3).worker_id == 3
    pipe = torch.utils.data.datapipes.iter.IterableWrapper(range(12)).sharding_filter()
    started = []
    worker._worker_info = worker.WorkerInfo(id=1, num_workers=2, seed=0, dataset=pipe)
    try:
        torch.utils.data.dataloader._sharding_worker_init_fn(started.append, 3, 2, 1)
    finally:
        worker._worker_info = None
    assert list(pipe) == [5, 11] and started == [1]


def test_what_cannot_be_sent_to_a_worker_is_told():
    loader = DataLoader(
        Squares(), num_workers=1, multiprocessing_context="spawn", collate_fn=lambda batch: batch
    )
    with (
        pytest.warns(UserWarning, match="Got pickle error") as told,
        pytest.raises((AttributeError, pickle.PicklingError), match="local object"),
    ):
        iter(loader)
    assert told[0].filename == __file__
