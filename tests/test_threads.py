"""Several threads at one tensor: numbers may be anybody's, memory never."""

import platform
import subprocess
import sys
import threading

import pytest

import rushlight as torch
from rushlight import nn

SIZE = 1_500_000


def while_running(kernel, change):
    """What `kernel` returns; `change` is called while it is at work, on another thread."""
    begun, results = threading.Event(), []

    def work():
        begun.set()
        results.append(kernel())

    thread, interval = threading.Thread(target=work), sys.getswitchinterval()
    sys.setswitchinterval(100)  # the other thread has its turn when the kernel lets it, not before
    try:
        thread.start()
        begun.wait()
        change()
    finally:
        sys.setswitchinterval(interval)
    thread.join()
    return results[0]


def take_freed_memory():
    return [torch.full((SIZE,), 7.0) for _ in range(3)]


CHANGES = {
    "resize_": lambda x: x.resize_(SIZE + 10),
    "set_": lambda x: x.set_(torch.full((3,), 7.0)),
    "data": lambda x: setattr(x, "data", torch.full((3,), 7.0)),
    "storage": lambda x: x.untyped_storage().resize_(8 * SIZE),
    "share_memory_": lambda x: x.share_memory_(),
    "swap_tensors": lambda x: torch.utils.swap_tensors(x, torch.full((3,), 7.0)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_memory_is_not_taken_from_a_kernel(name):
    x, kept = torch.full((SIZE,), 3.0), []

    def change():
        CHANGES[name](x)
        kept.extend(take_freed_memory())

    expected = torch.lgamma(torch.tensor(3.0))
    assert (while_running(lambda: torch.lgamma(x), change) == expected).all()


def test_sizes_are_not_changed_under_a_kernel():
    x = torch.ones(1000, 2000)[:, :1500]
    expected = torch.lgamma(x + 2)
    x.add_(2)
    assert torch.equal(while_running(lambda: torch.lgamma(x), x.t_), expected)


def test_tensors_of_a_list_outlive_the_kernel_that_reads_them():
    tensors, kept = [torch.zeros(SIZE) for _ in range(4)], []

    def change():
        tensors.clear()
        kept.extend(take_freed_memory())

    assert not while_running(lambda: torch.cat(tensors), change).any()


def test_changes_that_come_all_the_time_do_not_wait_for_ever():
    x = torch.ones(200, 200)
    done = threading.Event()

    def work():
        while not done.is_set():
            torch.lgamma(x)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for n in range(300):
        x.resize_(200, 200 + n % 2)
    done.set()
    for thread in threads:
        thread.join()


# Each is run while its indices are being overwritten with what is no index.
READERS = {
    "gather": "x.gather(0, i)",
    "index": "x[i]",
    "index_put_": "x.index_put_((i,), x)",
    "scatter_add_": "x.scatter_add_(0, i, x)",
    "take": "x.take(i)",
    "embedding": "F.embedding(i, x[:, None])",
    "embedding_bag": "F.embedding_bag(i[None], x[:, None])",
    "max_unpool1d": "F.max_unpool1d(x[None], i[None] // 2, 2)",
    "searchsorted": "torch.searchsorted(x, x, sorter=i)",
}
PROGRAM = """
import threading
import rushlight as torch
import rushlight.nn.functional as F

n = 200_000
x, i, done = torch.ones(n), torch.arange(n), threading.Event()

def overwrite():
    while not done.is_set():
        i.fill_(2**50)
        torch.arange(n, out=i)

thread = threading.Thread(target=overwrite)
thread.start()
for _ in range(60):
    try:
        {reader}
    except (IndexError, RuntimeError):
        pass
done.set()
thread.join()
"""


@pytest.mark.parametrize("name", READERS)
def test_indices_that_another_thread_overwrites_crash_nothing(name, tmp_path):
    program = PROGRAM.format(reader=READERS[name])
    ran = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_a_model_is_trained_and_moved_at_once():
    model = nn.Linear(300, 300)
    x, done, failed = torch.ones(300, 300), threading.Event(), []

    def train():
        while not done.is_set():
            try:
                model(x).sum().backward()
            except RuntimeError as error:
                failed.append(error)

    thread = threading.Thread(target=train)
    thread.start()
    for _ in range(100):
        for p in model.parameters():
            p.data = p.data.clone()
            p.grad = None
    done.set()
    thread.join()
    assert not failed


def test_the_program_ends_while_a_daemon_is_in_a_kernel(tmp_path):
    program = """
import threading
import time
import rushlight as torch

x = torch.ones(1000, 1000)

def work():
    while True:
        torch.lgamma(x)

for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.1)
"""
    for _ in range(3):
        ran = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
        assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="the flag is x86's")
def test_denormal_numbers_are_flushed_in_workers_too():
    small = torch.full((1 << 21,), 1e-30)
    assert (small * 1e-10).min() > 0  # the workers are there by now
    try:
        assert torch.set_flush_denormal(True)
        assert not (small * 1e-10).any() and not (torch.tensor(1e-300, dtype=torch.float64) * 1e-15).any()
    finally:
        assert torch.set_flush_denormal(False)
    assert (small * 1e-10).all() and 1e-300 * 1e-15 > 0
    with pytest.raises(RuntimeError, match="flush_denormal expects a bool, but got int"):
        torch.set_flush_denormal(1)
