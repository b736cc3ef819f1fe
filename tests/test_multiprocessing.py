"""Memory that processes share, and storages that move, shrink and grow under the tensors on them."""

import contextlib
import os
import random
import subprocess
import sys

import pytest

import rushlight
import rushlight.multiprocessing as mp
from rushlight.utils.data import DataLoader, Dataset

FORK = mp.get_context("fork")


def in_child(work, *args):
    process = FORK.Process(target=work, args=args)
    process.start()
    process.join(20)
    assert process.exitcode == 0


@pytest.fixture(params=["file_descriptor", "file_system"])
def strategy(request):
    before = mp.get_sharing_strategy()
    mp.set_sharing_strategy(request.param)
    yield
    mp.set_sharing_strategy(before)


def fill(queue):
    for tensor in queue.get():
        tensor.fill_(5)


def test_what_a_child_writes_is_seen(strategy):
    t, rows = rushlight.zeros(3), rushlight.zeros(40, 10)
    queue = FORK.SimpleQueue()
    queue.put([t, rows[2:4]])
    in_child(fill, queue)
    assert t.tolist() == [5, 5, 5]
    assert rows.sum() == 100
    assert rows.is_shared() and rows[0].is_shared()


def send(queue, ready):
    t = rushlight.ones(3, 4)
    queue.put([t, t[1], rushlight.nn.Parameter(rushlight.zeros(2)), rushlight.empty(0, 3)])
    ready.wait(20)


def test_tensors_of_a_child_keep_their_storage(strategy):
    queue, ready = FORK.SimpleQueue(), FORK.Event()
    child = FORK.Process(target=send, args=(queue, ready))
    child.start()
    whole, row, parameter, empty = queue.get()
    ready.set()
    child.join()
    whole.fill_(3)
    assert row.tolist() == [3, 3, 3, 3]
    assert type(parameter) is rushlight.nn.Parameter and parameter.requires_grad
    assert empty.shape == (0, 3)


def test_what_comes_back_is_the_storage_that_left(strategy):
    x = rushlight.randn(5, 5)
    queue = FORK.SimpleQueue()
    queue.put([x.untyped_storage(), x, x[2]])
    storage, *tensors = queue.get()
    assert storage is x.untyped_storage()
    assert all(t.untyped_storage() is storage for t in tensors)


def grow(tensor):
    tensor.add_(1)
    return tensor


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_a_small_tensor_goes_to_a_child_and_back(strategy, size):
    """Its memory has room for more than the storage, and the child must not take the room for the storage."""
    sent = rushlight.zeros(size)
    with FORK.Pool(1) as pool:
        back = pool.map(grow, [sent, sent])
        assert sent.tolist() == back[1].tolist() == [2.0] * size
    assert back[0].untyped_storage().nbytes() == sent.untyped_storage().nbytes() == 4 * size


def test_names_are_removed():
    mp.set_sharing_strategy("file_system")
    try:
        queue = FORK.SimpleQueue()
        queue.put(rushlight.ones(3))
        queue.get()
        from rushlight.multiprocessing import _memory

        left = [name for name in _memory._names if os.path.exists(name)]
        assert left == []
    finally:
        mp.set_sharing_strategy("file_descriptor")


def test_history_does_not_cross():
    queue = FORK.SimpleQueue()
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor"):
        queue.put(rushlight.ones(2, requires_grad=True) * 2)


def test_numpy_keeps_its_memory():
    numpy = pytest.importorskip("numpy")
    for count in (2, 3000):
        t = rushlight.ones(count)
        array = t.numpy()
        with pytest.raises(RuntimeError, match="not resizable"):
            t.resize_(100_000)
        t.share_memory_()
        rushlight.zeros(count)
        assert (array == numpy.ones(count)).all()
        assert t.sum() == count


@pytest.mark.parametrize("count", [3, 4, 5, 1000, 2_000_000])
def test_a_storage_shrinks_and_grows(count):
    t = rushlight.arange(count, dtype=rushlight.float32)
    storage = t.untyped_storage()
    storage.resize_(8)
    assert storage.nbytes() == 8
    t.sum()  # reads memory without meaning, and lives
    t[:2].sum()
    storage.resize_(t.nbytes)
    assert t[:2].tolist() == [0, 1]
    storage.resize_(0)
    assert storage.data_ptr() == 0
    storage.resize_(2 * t.nbytes)
    assert t.fill_(2).sum() == 2 * count
    with pytest.raises(RuntimeError):
        storage.resize_(-1)


def test_from_file(tmp_path):
    path = tmp_path / "numbers"
    rushlight.from_file(str(path), shared=True, size=4).copy_(rushlight.arange(4.0))
    private = rushlight.from_file(str(path), shared=False, size=4)
    private.fill_(9)
    assert rushlight.from_file(str(path), size=2).tolist() == [0, 1]
    with pytest.raises(RuntimeError, match="is smaller than the required mapping size"):
        rushlight.from_file(str(path), shared=False, size=5)


class Images(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return rushlight.full((512, 512), float(index)), index


def test_workers_share_large_batches():
    seen = []
    for images, index in DataLoader(Images(), batch_size=2, num_workers=1):
        assert images.is_shared() and not index.is_shared()
        seen += images[:, 0, 0].tolist()
    assert seen == [0, 1, 2, 3]


def fail(rank):
    if rank:
        raise ValueError("of process 1")


def test_spawned_failures_come_back():
    with pytest.raises(mp.ProcessRaisedException, match="of process 1") as info:
        mp.start_processes(fail, nprocs=2, start_method="fork")
    assert info.value.error_index == 1
    with pytest.raises(mp.ProcessExitedException, match="terminated with exit code") as info:
        mp.start_processes(os._exit, nprocs=4, start_method="fork")
    assert info.value.exit_code in (1, 2, 3)


PROGRAM = """
import torch
import torch.multiprocessing as mp

def add(tensor):
    tensor.add_(torch.ones(2))

if __name__ == "__main__":
    t = torch.zeros(2).share_memory_()
    process = mp.get_context("spawn").Process(target=add, args=(t,))
    process.start()
    process.join()
    print(t.tolist())
"""


def test_fresh_processes_find_rushlight_as_torch(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "rushlight", str(program)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout == "[1.0, 1.0]\n", done.stderr


def test_tensors_find_memory_whatever_becomes_of_their_storage():
    pytest.importorskip("numpy")
    rng = random.Random(5)
    pool = []
    for _ in range(3000):
        if len(pool) < 4:
            pool.append(rushlight.ones(rng.choice([0, 1, 4, 5, 300, 100_000])))
        t = rng.choice(pool)
        storage = t.untyped_storage()
        act = rng.randrange(8)
        with contextlib.suppress(RuntimeError):  # not resizable, out of bounds
            if act == 0:
                storage.resize_(rng.choice([0, 1, 8, 17, 1000, storage.nbytes() // 2, storage.nbytes() * 2]))
            elif act == 1:
                t.share_memory_()
            elif act == 2:
                t.numpy().sum()
            elif act == 3:
                pool.append(t[rng.randrange(max(1, t.numel())) :])
            elif act == 4:
                t.fill_(1).sum()
            elif act == 5:
                t.resize_(rng.choice([0, 1, 5, 10_000]))
            elif act == 6:
                pool.append(rushlight.from_dlpack(t))
            elif len(pool) > 12:
                rng.shuffle(pool)
                del pool[4:]
