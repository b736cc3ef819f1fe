"""UntypedStorage: the memory behind tensors as an object of its own. See rushlight/storage.py."""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any, NoReturn
from weakref import WeakValueDictionary

import rushlight
from rushlight import _C
from rushlight._type_names import type_name as _kind
from rushlight.ops._public import whole

# One Python object for each storage, as long as somebody holds it.
_objects: WeakValueDictionary[int, UntypedStorage] = WeakValueDictionary()
# What was set on an object that nobody held any more, for the next one: class and attributes, by the number
# of the memory.
_attributes: dict[int, tuple[type, dict[str, Any]]] = {}


def as_ever(function: Any, *args: Any, **kwargs: Any) -> Any:
    """What a function gives where no function is transformed: bytes belong to no level of torch.func."""
    levels = _C.all_levels()
    if not levels:
        return function(*args, **kwargs)
    return _C.below_level(levels[0][0], partial(function, **kwargs), *args)


def _is_sequence(value: Any) -> bool:
    if isinstance(value, (dict, _C.Tensor)) or getattr(value, "shape", None) == ():
        return False
    return hasattr(type(value), "__getitem__")


class StorageBase:
    """What storages are told by; it has no objects of its own."""

    __module__ = "torch._C"

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls is StorageBase:
            raise RuntimeError("Cannot directly construct StorageBase; subclass it and then construct that")
        return super().__new__(cls)


class UntypedStorage(StorageBase):
    """The bytes behind a tensor.

    >>> rushlight.ones(2).untyped_storage().nbytes()
    8
    >>> rushlight.UntypedStorage([1, 2]).tolist()
    [1, 2]
    """

    __module__ = "rushlight.storage"
    _bytes: _C.Tensor  # one dimension, uint8, the whole memory
    filename: str | None = None  # the file that from_file mapped
    is_sparse = is_sparse_csr = is_hpu = False

    def __init__(self, *args: Any, device: Any = None) -> None:
        if len(args) > 1:
            kinds = ", ".join(type(each).__name__ for each in args)
            raise TypeError(
                f"torch.UntypedStorage() received an invalid combination of arguments - got ({kinds}), but "
                "expected one of:\n * (*, torch.device device)\n * (int size, *, torch.device device)\n "
                "* (Sequence data, *, torch.device device)"
            )
        check_device(device)
        size: Any = args[0] if args else 0
        count = whole(size)
        if type(count) is int and type(size).__name__ != "ndarray" and getattr(size, "ndim", 0) == 0:
            check_size(count)
            self._bytes = _C.empty((count,), _C.uint8, device)
        elif type(size).__name__ == "ndarray" and not size.ndim:
            told = "Could not obtain the length of sequence of type"
            raise RuntimeError(f"torch.UntypedStorage(): {told} {_kind(size)}")
        elif not _is_sequence(size):
            raise RuntimeError(f"torch.UntypedStorage(): Expected a sequence type, but got {_kind(size)}")
        else:
            for item in size:
                if not isinstance(item, int):
                    raise RuntimeError(
                        "torch.UntypedStorage(): tried to construct a storage from a sequence "
                        f"({_kind(size)}), but one of the items was of type {_kind(item)} instead of int"
                    )
            data = [_byte(item) for item in size]
            self._bytes = rushlight.tensor(data, dtype=_C.uint8, device=device)
        _objects[self._cdata] = self

    @classmethod
    def _of(cls, tensor: _C.Tensor) -> UntypedStorage:
        known = _objects.get(_C.storage_id(tensor))
        if known is not None:
            return known
        number = _C.storage_number(tensor)
        cls, attributes = _attributes.pop(number, (cls, {})) if number else (cls, {})
        storage = cls.__new__(cls)
        storage.__dict__.update(attributes)
        storage._bytes = _C.storage_bytes(tensor)
        _objects[storage._cdata] = storage
        return storage

    def __del__(self) -> None:
        held = self.__dict__
        if "_bytes" not in held or (len(held) == 1 and type(self) is UntypedStorage):
            return
        if _C is None or _C.storage_uses(self._bytes) == 1:  # the program ends, or nobody else has the memory
            return
        for number in [each for each in _attributes if _C.watched_storage(each) is None]:
            del _attributes[number]
        attributes = {name: value for name, value in held.items() if name != "_bytes"}
        _attributes[_C.watch_storage(self._bytes)] = type(self), attributes

    def _weak_ref(self) -> int:
        """A number for this memory that keeps nothing: Note [weak references to memory], storage_ops.cpp."""
        return _C.watch_storage(self._bytes)

    @staticmethod
    def _expired(number: int) -> bool:
        """Whether the memory of that number is gone."""
        return _C.watched_storage(number) is None

    @staticmethod
    def _free_weak_ref(number: int) -> None:
        """Nothing: there is nothing to free."""

    @classmethod
    def _new_with_weak_ptr(cls, number: int) -> UntypedStorage | None:
        """The storage of that number; None if it is gone."""
        found = _C.watched_storage(number)
        return None if found is None else cls._of(found)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def data_ptr(self) -> int:
        """The address of the first byte."""
        return _C.storage_pointer(self._bytes)

    def nbytes(self) -> int:
        """The number of bytes."""
        return _C.storage_nbytes(self._bytes)

    size = __len__ = nbytes

    def element_size(self) -> int:
        """The size of an element: one byte."""
        return 1

    @property
    def device(self) -> _C.device:
        """Where the bytes are."""
        return self._bytes.device

    @property
    def is_cuda(self) -> bool:
        """Whether the bytes are on a GPU."""
        return self.device.type == "cuda"

    def get_device(self) -> int | None:
        """The number of the device; None in main memory."""
        return self.device.index

    def untyped(self) -> UntypedStorage:
        """This storage."""
        return self

    def resizable(self) -> bool:
        """Whether the memory may change its size: not where other libraries or processes look at it."""
        return _C.is_resizable(self._bytes)

    def is_shared(self) -> bool:
        """Whether other processes can see the memory."""
        return _C.shared_memory_of(self._bytes) is not None

    def share_memory_(self) -> UntypedStorage:
        """Moves the bytes to memory that processes share, with all tensors on them. Sent to another process,
        they are the same bytes there."""
        from rushlight.multiprocessing._memory import share

        share(self._bytes)
        return self

    @classmethod
    def _new_shared(cls, size: int, *, device: Any = "cpu") -> UntypedStorage:
        return cls(size, device=device).share_memory_()

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """The first bytes of a file, mapped into memory. With shared=True writes go to the file, which grows
        as needed; otherwise they stay in memory."""
        storage = cls._of(_map_file(filename, shared, nbytes))
        storage.filename = str(filename) if shared else None
        return storage

    def _write_file(self, file: Any, is_real_file: bool, save_size: bool, element_size: int) -> None:
        if self.device.type == "meta":
            raise NotImplementedError("Cannot copy out of meta tensor; no data!")
        if save_size:
            file.write((self.nbytes() // element_size).to_bytes(8, sys.byteorder))
        file.write(_C.to_bytes(self._all()))

    @classmethod
    def _new_with_file(cls, file: Any, element_size: int) -> UntypedStorage:
        count = int.from_bytes(file.read(8), sys.byteorder)
        data = file.read(count * element_size)
        if len(data) != count * element_size:
            raise RuntimeError("unexpected EOF. The file might be corrupted.")
        return cls._of(_C.from_bytes(data, _C.uint8))

    def _share_fd_cpu_(self, *args: Any, **kwargs: Any) -> Any:
        return self._shared_otherwise("_share_fd_")

    def _share_filename_cpu_(self, *args: Any, **kwargs: Any) -> Any:
        return self._shared_otherwise("_share_filename_")

    def _shared_otherwise(self, name: str) -> NoReturn:
        if self.device.type != "cpu":
            raise RuntimeError(f"{name}: only available on CPU")
        raise NotImplementedError(
            f"{name}cpu_ of storages: share_memory_() shares them, and pickles carry them"
        )

    def _fix_weakref(self) -> None:
        """Nothing: weak references here are always whole."""

    def is_pinned(self, device: Any = None) -> bool:
        """Whether the memory is page-locked; it never is."""
        return False

    def pin_memory(self, device: Any = None) -> UntypedStorage:
        """A copy in page-locked memory, for which a GPU is needed."""
        if self.device.type != "cpu":
            raise TypeError("cannot pin 'torch.storage.UntypedStorage' only CPU memory can be pinned")
        raise RuntimeError("Cannot access accelerator device when none is available.")

    @property
    def _cdata(self) -> int:
        return _C.storage_id(self._bytes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and self._cdata == other._cdata

    def __hash__(self) -> int:
        return self._cdata

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                raise RuntimeError(
                    f"Trying to slice with a step of {step}, but only a step of 1 is supported"
                )
            part = self._all()[start : max(start, stop)]
            if part.is_meta:
                return type(self)._of(as_ever(part.clone))
            _C.hold_storage(part)  # the slice must not be left behind by a storage that moves
            return type(self)._of(_C.from_buffer(_C.export_buffer(part))[0])
        at = self._position(index, TypeError)
        at = at + len(self) if at < 0 else at
        if not 0 <= at < len(self):
            raise IndexError(f"index {at} out of range for storage of size {len(self)}")
        self._with_data()
        return self._all()[at].item()

    def _with_data(self) -> None:
        if self.device.type == "meta":
            raise NotImplementedError("Not available for 'meta' device type")

    def _position(self, index: Any, error: type[Exception]) -> int:
        at = whole(index)
        if type(at) is not int or isinstance(index, _C.Tensor) or type(index).__name__ == "ndarray":
            raise error(f"can't index a torch.UntypedStorage with {_kind(index)}")
        if not -(2**63) <= at < 2**63:
            raise ValueError("Overflow when unpacking long long")
        return at

    def __setitem__(self, index: Any, value: Any) -> None:
        if not isinstance(value, int):
            raise RuntimeError(
                f"can only set storage content with a int types, but got {_kind(value)} instead"
            )
        byte = _byte(value)
        if isinstance(index, slice):
            step = index.indices(len(self))[2]
            if step != 1:
                raise RuntimeError(
                    f"Trying to slice with a step of {step}, but only a step of 1 is supported"
                )
            self._writable()[index] = byte
            return
        at = self._position(index, RuntimeError)
        if not 0 <= at < len(self):
            raise RuntimeError("out of bounds")
        self._writable()[at] = byte

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())

    def _all(self) -> _C.Tensor:
        return _C.storage_bytes(self._bytes)  # anew, for a storage can grow

    def _writable(self) -> _C.Tensor:
        return self._all().data  # tensors do not count what is written into their storage

    def tolist(self) -> list[int]:
        """The bytes as numbers."""
        self._with_data()
        return self._all().tolist()

    def clone(self) -> UntypedStorage:
        """A copy."""
        return type(self)._of(as_ever(self._all().clone))

    def copy_(self, source: UntypedStorage, non_blocking: bool = False) -> UntypedStorage:
        """Overwrites these bytes with those of `source`, which must be as many."""
        from rushlight.storage import TypedStorage

        if not isinstance(source, (UntypedStorage, TypedStorage)):
            raise TypeError(
                f"copy_(): argument 'src' (position 1) must be torch.Storage, not {_kind(source)}"
            )
        source = source.untyped()
        if source.nbytes() != self.nbytes():
            raise RuntimeError("size does not match, self was " f"{self.nbytes()} bytes but src was "
                               f"{source.nbytes()} bytes")  # fmt: skip
        self._writable().copy_(source._all())
        return self

    def fill_(self, value: int) -> UntypedStorage:
        """Sets every byte."""
        if not isinstance(value, int):
            raise RuntimeError(f"fill_ expects int, but got {_kind(value)}")
        self._writable().fill_(_byte(value))
        return self

    def resize_(self, size: Any) -> UntypedStorage:
        """Makes the memory larger or smaller; the bytes that fit stay. A tensor that reaches beyond reads
        bytes without meaning."""
        count = whole(size)
        if type(count) is not int or isinstance(size, _C.Tensor) or type(size).__name__ == "ndarray":
            raise RuntimeError(f"resize_ expects an int, but got {_kind(size)}")
        if not -(2**63) <= count < 2**63:
            raise ValueError("Overflow when unpacking long long")
        check_size(count)
        _C.resize_storage(self._bytes, count)
        return self

    def cuda(self, device: Any = None, non_blocking: bool = False) -> UntypedStorage:
        """This storage on a GPU."""
        return self.to(device=_C.as_device("cuda" if device is None else device))

    def new(self) -> UntypedStorage:
        """An empty storage."""
        return UntypedStorage(0, device=self.device)

    def cpu(self) -> UntypedStorage:
        """This storage in the computer's main memory."""
        return self.to(device="cpu")

    def to(self, *, device: Any, non_blocking: bool = False) -> UntypedStorage:
        """This storage on another device; itself if it is there."""
        if _C.as_device(device) == self.device:
            return self
        return UntypedStorage._of(self._all().to(device))

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of this type."""
        if dtype is not None:
            raise NotImplementedError("UntypedStorage.type(dtype): make a TypedStorage instead")
        return "torch.storage.UntypedStorage"

    def byteswap(self, dtype: _C.dtype) -> None:
        """Reverses the bytes of every element of this dtype, in place."""
        size = dtype.itemsize // 2 if dtype in (_C.complex64, _C.complex128) else dtype.itemsize
        whole = self._writable()
        whole.copy_(whole.reshape(-1, size).flip(1).reshape(-1))

    @classmethod
    def from_buffer(cls, *args: Any, **kwargs: Any) -> UntypedStorage:
        """A copy of the bytes of a buffer."""
        from rushlight.storage import TypedStorage

        if kwargs.get("dtype") is None:
            raise RuntimeError("argument 'dtype' cannot be None")
        return cls._of(TypedStorage.from_buffer(*args, **kwargs)._untyped_storage._bytes)

    def __copy__(self) -> UntypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict) -> UntypedStorage:
        key = ("storage", self.data_ptr() or id(self))  # as the copy of a tensor on it has it
        if key not in memo:
            memo[key] = as_ever(self._all().clone), self
        return UntypedStorage._of(memo[key][0])

    def __reduce__(self) -> tuple:
        return storage_from_bytes, (_C.to_bytes(self._all()),)

    def __repr__(self) -> str:
        elements = rows(self.device, self.tolist)
        return f"{elements}[torch.storage.UntypedStorage(device={self.device}) of size {len(self)}]"


def rows(device: _C.device, tolist: Any) -> str:
    """The elements as a storage prints them, one a line."""
    if device.type == "meta":
        return "...\n"
    return "\n".join(f" {value}" for value in tolist() or [""]) + "\n"


def _byte(value: int) -> int:
    if not -(2**63) <= value < 2**63:
        raise ValueError("Overflow when unpacking long long")
    return value & 255


def check_device(device: Any) -> None:
    """Refuses devices on which no storage can be."""
    kind = "cpu" if device is None else _C.as_device(device).type
    if kind not in ("cpu", "cuda", "meta"):
        raise RuntimeError(f"torch.UntypedStorage(): Storage device not recognized: {kind}")


def check_size(size: int) -> None:
    """Refuses negative sizes as torch's allocator does."""
    if not -(2**63) <= operator.index(size) < 2**63:
        raise ValueError("Overflow when unpacking long long")
    if operator.index(size) < 0:
        raise RuntimeError(
            "[enforce fail at alloc_cpu.cpp] ((ptrdiff_t)nbytes) >= 0. alloc_cpu() seems to have been called "
            f"with negative number: {size & (2**64 - 1)}"
        )


def _map_file(filename: Any, shared: bool, nbytes: int) -> _C.Tensor:
    """The first bytes of a file as a tensor on a mapping of it."""
    import mmap
    import os

    if not nbytes:
        return _C.empty((0,), _C.uint8, None)
    mode = "read-write" if shared else "read-only"
    try:
        handle = os.open(filename, os.O_RDWR | os.O_CREAT if shared else os.O_RDONLY, 0o600)
    except OSError as error:
        raise RuntimeError(
            f"unable to open file <{filename}> in {mode} mode: {error.strerror} ({error.errno})"
        ) from None
    try:
        if os.fstat(handle).st_size < nbytes:
            if not shared:
                raise RuntimeError(
                    f"file <{filename}> size <{os.fstat(handle).st_size}> is smaller than the required "
                    f"mapping size <{nbytes}>"
                )
            os.ftruncate(handle, nbytes)
        mapped = mmap.mmap(handle, nbytes, access=mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY)
    finally:
        os.close(handle)
    return _C.from_buffer(mapped)[0]


def storage_from_bytes(data: bytes) -> UntypedStorage:
    """A storage with a copy of these bytes."""
    return UntypedStorage._of(_C.from_bytes(data, _C.uint8))


_C.name_in_errors(UntypedStorage, "torch.storage.UntypedStorage")
