"""Memory that several processes see, for the storages of tensors.

A `SharedMemory` is a mapping of a file that lives in memory. How another process gets at the file depends on
the strategy: with "file_descriptor" its descriptor is sent and nothing has a name; with "file_system" every
message carries a name of its own, which the receiver removes, and what was never received is removed when the
sender ends.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import sys
import tempfile
from multiprocessing import reduction, util
from typing import Any
from weakref import WeakValueDictionary

from rushlight import _C

_strategy = "file_system" if sys.platform == "darwin" else "file_descriptor"
# The shared memory this process knows, by device and number of its file.
_known: WeakValueDictionary[tuple[int, int], SharedMemory] = WeakValueDictionary()
_names: set[str] = set()  # links that nobody has received yet
_names_pid = 0


def get_all_sharing_strategies() -> set[str]:
    """The ways in which processes can get at each other's tensors."""
    return {"file_descriptor", "file_system"} if sys.platform != "darwin" else {"file_system"}


def get_sharing_strategy() -> str:
    """The way that is used."""
    return _strategy


def set_sharing_strategy(new_strategy: str) -> None:
    """Chooses the way: "file_descriptor" keeps a descriptor open for each shared storage, "file_system" does
    not."""
    global _strategy
    if new_strategy not in get_all_sharing_strategies():
        raise AssertionError(
            f"invalid sharing strategy {new_strategy!r}, expected one of {get_all_sharing_strategies()}"
        )
    _strategy = new_strategy


def _directory() -> str:
    return "/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir()


class SharedMemory(mmap.mmap):
    """A mapped file without a name, or with one under "file_system"."""

    handle: int
    name: str | None

    def __new__(cls, handle: int, size: int) -> SharedMemory:
        memory = super().__new__(cls, handle, size)
        memory.handle, memory.name = handle, None
        _known[_file_id(handle)] = memory
        return memory

    @classmethod
    def create(cls, size: int) -> SharedMemory:
        """New memory of zeros."""
        name = None
        if _strategy == "file_system":
            handle, name = tempfile.mkstemp(prefix="torch_", dir=_directory())
        elif hasattr(os, "memfd_create"):
            handle = os.memfd_create("torch_shared")
        else:
            handle, path = tempfile.mkstemp(prefix="torch_", dir=_directory())
            os.unlink(path)
        os.ftruncate(handle, size)
        memory = cls(handle, size)
        if name is not None:
            memory.name, memory.owner = name, os.getpid()
            os.close(handle)
            memory.handle = -1
        return memory

    owner = 0  # the process that removes the name

    def __del__(self) -> None:
        if self.handle >= 0:
            os.close(self.handle)
        if self.name is not None and self.owner == os.getpid():
            _remove(self.name)


def _file_id(handle: int) -> tuple[int, int]:
    status = os.fstat(handle)
    return status.st_dev, status.st_ino


def _remove(name: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name)


def _remove_names() -> None:
    if _names_pid == os.getpid():
        for name in _names:
            _remove(name)


def share(tensor: _C.Tensor) -> SharedMemory:
    """Moves the storage of a tensor to shared memory, unless it is there."""
    memory = _C.shared_memory_of(tensor)
    if memory is None:
        if tensor.device.type != "cpu":
            raise RuntimeError(f"Cannot share memory of a tensor on the device {tensor.device}")
        # A storage that has shrunk still has tensors that reach beyond its end.
        memory = SharedMemory.create(max(_C.storage_room(tensor), 1))
        _C.share_storage(tensor, memory)
    return memory


def ticket(memory: SharedMemory) -> tuple[Any, tuple]:
    """A function and its arguments that give another process this memory: what a pickle of it holds."""
    global _names_pid
    if memory.name is None:
        return from_descriptor, (reduction.DupFd(memory.handle), len(memory))
    link = f"{memory.name}_{os.getpid()}_{len(_names)}_{os.urandom(4).hex()}"
    os.link(memory.name, link)
    if _names_pid != os.getpid():
        _names.clear()
        _names_pid = os.getpid()
        util.Finalize(None, _remove_names, exitpriority=1)
    _names.add(link)
    return from_name, (link, len(memory))


def from_descriptor(descriptor: Any, size: int) -> SharedMemory:
    """The memory behind a descriptor that was sent."""
    return _open(descriptor.detach(), size)


def from_name(name: str, size: int) -> SharedMemory:
    """The memory behind a link made for this message."""
    handle = os.open(name, os.O_RDWR)
    _remove(name)
    return _open(handle, size)


def _open(handle: int, size: int) -> SharedMemory:
    known = _known.get(_file_id(handle))
    if known is None:
        return SharedMemory(handle, size)
    os.close(handle)
    return known
