"""Storages: the memory behind tensors as an object of its own, with and without a dtype.

An UntypedStorage holds one tensor of bytes that covers the whole memory; a TypedStorage is an UntypedStorage
and a dtype. Checkpoints are made of them (rushlight/serialization.py).
"""

from __future__ import annotations

import functools
import io
import operator
import types
import warnings
from collections.abc import Iterator, Sequence
from typing import Any
from weakref import WeakValueDictionary

import rushlight
from rushlight import _C
from rushlight._type_names import type_name as _kind
from rushlight.ops._public import whole

__all__ = ["TypedStorage", "UntypedStorage"]

# One Python object for each storage, as long as somebody holds it.
_objects: WeakValueDictionary[int, UntypedStorage] = WeakValueDictionary()


def _is_sequence(value: Any) -> bool:
    if isinstance(value, (dict, _C.Tensor)) or getattr(value, "shape", None) == ():
        return False
    return hasattr(type(value), "__getitem__")


class UntypedStorage:
    """The bytes behind a tensor.

    >>> rushlight.ones(2).untyped_storage().nbytes()
    8
    >>> rushlight.UntypedStorage([1, 2]).tolist()
    [1, 2]
    """

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
        size: Any = args[0] if args else 0
        count = whole(size)
        if type(count) is int and type(size).__name__ != "ndarray" and getattr(size, "ndim", 0) == 0:
            _check_size(count)
            self._bytes = _C.empty((count,), _C.uint8, device)
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
        storage = cls.__new__(cls)
        storage._bytes = _C.storage_bytes(tensor)
        _objects[storage._cdata] = storage
        return storage

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

    def get_device(self) -> int:
        """The number of the device; -1 in main memory."""
        return self._bytes.get_device()

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
        storage = cls._of(map_file(filename, shared, nbytes))
        storage.filename = str(filename)
        return storage

    def is_pinned(self, device: Any = None) -> bool:
        """Whether the memory is page-locked; it never is."""
        return False

    def pin_memory(self, device: Any = None) -> UntypedStorage:
        """A copy in page-locked memory, for which a GPU is needed."""
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
            return UntypedStorage._of(self._all()[start : max(start, stop)].clone())
        at = self._position(index, TypeError)
        at = at + len(self) if at < 0 else at
        if not 0 <= at < len(self):
            raise IndexError(f"index {at} out of range for storage of size {len(self)}")
        return self._all()[at].item()

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
            self._all()[index] = byte
            return
        at = self._position(index, RuntimeError)
        if not 0 <= at < len(self):
            raise RuntimeError("out of bounds")
        self._all()[at] = byte

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())

    def _all(self) -> _C.Tensor:
        return _C.storage_bytes(self._bytes)  # anew, for a storage can grow

    def tolist(self) -> list[int]:
        """The bytes as numbers."""
        return self._all().tolist()

    def clone(self) -> UntypedStorage:
        """A copy."""
        return type(self)._of(self._all().clone())

    def copy_(self, source: UntypedStorage, non_blocking: bool = False) -> UntypedStorage:
        """Overwrites these bytes with those of `source`, which must be as many."""
        if not isinstance(source, (UntypedStorage, TypedStorage)):
            raise TypeError(
                f"copy_(): argument 'src' (position 1) must be torch.Storage, not {_kind(source)}"
            )
        source = source.untyped()
        if source.nbytes() != self.nbytes():
            raise RuntimeError("size does not match, self was " f"{self.nbytes()} bytes but src was "
                               f"{source.nbytes()} bytes")  # fmt: skip
        self._all().copy_(source._all())
        return self

    def fill_(self, value: int) -> UntypedStorage:
        """Sets every byte."""
        if not isinstance(value, int):
            raise RuntimeError(f"fill_ expects int, but got {_kind(value)}")
        self._all().fill_(_byte(value))
        return self

    def resize_(self, size: Any) -> UntypedStorage:
        """Makes the memory larger or smaller; the bytes that fit stay. A tensor that reaches beyond reads
        bytes without meaning."""
        count = whole(size)
        if type(count) is not int or isinstance(size, _C.Tensor) or type(size).__name__ == "ndarray":
            raise RuntimeError(f"resize_ expects an int, but got {_kind(size)}")
        if not -(2**63) <= count < 2**63:
            raise ValueError("Overflow when unpacking long long")
        _check_size(count)
        _C.resize_storage(self._bytes, count)
        return self

    def cuda(self, device: Any = None, non_blocking: bool = False) -> UntypedStorage:
        """This storage on a GPU."""
        return self.to(device=_C.device("cuda" if device is None else device))

    def new(self) -> UntypedStorage:
        """An empty storage."""
        return UntypedStorage(0, device=self.device)

    def cpu(self) -> UntypedStorage:
        """This storage in the computer's main memory."""
        return self.to(device="cpu")

    def to(self, *, device: Any, non_blocking: bool = False) -> UntypedStorage:
        """This storage on another device; itself if it is there."""
        if _C.device(device) == self.device:
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
        whole = self._all()
        whole.copy_(whole.reshape(-1, size).flip(1).reshape(-1))

    @classmethod
    def from_buffer(cls, *args: Any, **kwargs: Any) -> UntypedStorage:
        """A copy of the bytes of a buffer."""
        if kwargs.get("dtype") is None:
            raise RuntimeError("argument 'dtype' cannot be None")
        return cls._of(TypedStorage.from_buffer(*args, **kwargs)._untyped_storage._bytes)

    def __copy__(self) -> UntypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict) -> UntypedStorage:
        key = ("storage", self.data_ptr() or id(self))  # as the copy of a tensor on it has it
        if key not in memo:
            memo[key] = self._all().clone(), self
        return UntypedStorage._of(memo[key][0])

    def __reduce__(self) -> tuple:
        return _storage_from_bytes, (_C.to_bytes(self._all()),)

    def __repr__(self) -> str:
        rows = _rows(self.device, self.tolist)
        return f"{rows}[torch.storage.UntypedStorage(device={self.device}) of size {len(self)}]"


_StorageBase = UntypedStorage  # by this name torch's storages are recognised


def _rows(device: _C.device, tolist: Any) -> str:
    if device.type == "meta":
        return "...\n"
    return "\n".join(f" {value}" for value in tolist() or [""]) + "\n"


def _byte(value: int) -> int:
    if not -(2**63) <= value < 2**63:
        raise ValueError("Overflow when unpacking long long")
    return value & 255


def _check_size(size: int) -> None:
    if operator.index(size) < 0:
        raise RuntimeError(
            "[enforce fail at alloc_cpu.cpp] ((ptrdiff_t)nbytes) >= 0. alloc_cpu() seems to have been called "
            f"with negative number: {size & (2**64 - 1)}"
        )


def map_file(filename: Any, shared: bool, nbytes: int) -> _C.Tensor:
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


def _storage_from_bytes(data: bytes) -> UntypedStorage:
    return UntypedStorage._of(_C.from_bytes(data, _C.uint8))


_COMBINATIONS = (
    "TypedStorage.__init__ received an invalid combination of arguments. Expected one of:\n"
    " * (*, torch.device device, torch.dtype dtype)\n * (int size, *, torch.device device, torch.dtype dtype)"
    "\n * (Sequence data, *, torch.device device, torch.dtype dtype)\n"
    " * (*, UntypedStorage wrap_storage, torch.dtype dtype)"
)


class TypedStorage:
    """The elements behind a tensor, in the order of memory: an UntypedStorage and a dtype.

    >>> rushlight.TypedStorage([1., 2.], dtype=rushlight.float64).tolist()
    [1.0, 2.0]
    """

    _untyped_storage: UntypedStorage
    dtype: _C.dtype

    def __init__(
        self,
        *args: Any,
        wrap_storage: UntypedStorage | None = None,
        dtype: _C.dtype | None = None,
        device: Any = None,
        _internal: bool = False,
    ) -> None:
        if not _internal:
            warn_of_typed_storage()
        if wrap_storage is not None:
            if args:
                raise RuntimeError(
                    f"{_COMBINATIONS}\nNo positional arguments should be given when using 'wrap_storage'"
                )
            if dtype is None:
                raise RuntimeError(f"{_COMBINATIONS}\nArgument 'dtype' must be specified")
            if not isinstance(wrap_storage, UntypedStorage):
                raise TypeError(
                    f"{_COMBINATIONS}\nArgument 'wrap_storage' must be UntypedStorage, but got "
                    f"{type(wrap_storage)}"
                )
            self._untyped_storage, self.dtype = wrap_storage, dtype
            return
        self.dtype = dtype or _C.get_default_dtype()
        if len(args) > 1:
            raise RuntimeError(f"{_COMBINATIONS}\nToo many positional arguments")
        if args and not isinstance(args[0], int):
            if not isinstance(args[0], Sequence):
                raise TypeError(f"{_COMBINATIONS}\nArgument type not recognized: {type(args[0])}")
            elements = rushlight.tensor(args[0], dtype=self.dtype, device=device)
        else:
            _check_size((args[0] if args else 0) * self.dtype.itemsize)
            elements = _C.empty((args[0] if args else 0,), self.dtype, device)
        self._untyped_storage = UntypedStorage._of(elements)

    def _elements(self) -> _C.Tensor:
        return _C.on_storage(self._untyped_storage._bytes, self.dtype, 0, (self._size(),), (1,))

    def _size(self) -> int:
        return self._untyped_storage.nbytes() // self.dtype.itemsize

    def untyped(self) -> UntypedStorage:
        """The storage without the dtype."""
        return self._untyped_storage

    def __len__(self) -> int:
        return self._size()

    def size(self) -> int:
        """The number of elements."""
        return self._size()

    def nbytes(self) -> int:
        """The number of bytes."""
        return self._untyped_storage.nbytes()

    def element_size(self) -> int:
        """The number of bytes of an element."""
        return self.dtype.itemsize

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._untyped_storage.data_ptr()

    @property
    def device(self) -> _C.device:
        """Where the elements are."""
        return self._untyped_storage.device

    @property
    def is_cuda(self) -> bool:
        """Whether the elements are on a GPU."""
        return self._untyped_storage.is_cuda

    is_sparse = is_hpu = False

    def get_device(self) -> int:
        """The number of the device; -1 in main memory."""
        return self._untyped_storage.get_device()

    @property
    def filename(self) -> str | None:
        """The file that from_file mapped."""
        return self._untyped_storage.filename

    def resizable(self) -> bool:
        """Whether the memory may change its size."""
        return self._untyped_storage.resizable()

    def is_shared(self) -> bool:
        """Whether other processes can see the memory."""
        return self._untyped_storage.is_shared()

    def share_memory_(self) -> TypedStorage:
        """Moves the elements to memory that processes share."""
        self._untyped_storage.share_memory_()
        return self

    @classmethod
    def _new_shared(cls, size: int, *, device: Any = "cpu", dtype: Any = None) -> TypedStorage:
        return cls(size, device=device, **({} if dtype is None else {"dtype": dtype})).share_memory_()

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, size: int = 0) -> TypedStorage:
        """The first elements of a file, mapped into memory (see UntypedStorage.from_file)."""
        dtype = getattr(cls, "_dtype", None) or _C.get_default_dtype()
        untyped = UntypedStorage.from_file(filename, shared, size * dtype.itemsize)
        return _typed_storage(untyped, dtype)

    def is_pinned(self, device: Any = None) -> bool:
        """Whether the memory is page-locked; it never is."""
        return False

    def pin_memory(self, device: Any = None) -> TypedStorage:
        """A copy in page-locked memory, for which a GPU is needed."""
        raise RuntimeError("Cannot access accelerator device when none is available.")

    @property
    def _cdata(self) -> int:
        return self._untyped_storage._cdata

    def _pickle_storage_type(self) -> str:
        return STORAGE_NAMES[self.dtype]

    def pickle_storage_type(self) -> str:
        """The old name of this type."""
        return self._pickle_storage_type()

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self._untyped_storage.nbytes()

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        self._check_index(index)
        at = index + self._size() if index < 0 else index
        if not 0 <= at < self._size():
            raise IndexError(f"index {index} out of range for storage of size {self._size()}")
        return self._elements()[at].item()

    def _check_index(self, index: Any) -> None:
        if not isinstance(index, int):
            raise RuntimeError(f"can't index a <class 'torch.storage.TypedStorage'> with {type(index)}")

    def __setitem__(self, index: Any, value: Any) -> None:
        if not isinstance(index, slice):
            self._check_index(index)
        self._elements()[index] = value

    def __iter__(self) -> Iterator[Any]:
        return iter(self._elements().tolist())

    def tolist(self) -> list:
        """The elements as Python numbers."""
        return self._elements().tolist()

    def fill_(self, value: Any) -> TypedStorage:
        """Sets every element."""
        self._elements().fill_(value)
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> TypedStorage:
        """Overwrites the bytes with those of another storage, which must be as many."""
        self._untyped_storage.copy_(getattr(source, "_untyped_storage", source))
        return self

    def clone(self) -> TypedStorage:
        """A copy."""
        return _typed_storage(self._untyped_storage.clone(), self.dtype)

    def resize_(self, size: int) -> None:
        """Makes room for this many elements."""
        self._untyped_storage.resize_(size * self.dtype.itemsize)

    def cuda(self, device: Any = None, non_blocking: bool = False) -> TypedStorage:
        """This storage on a GPU."""
        return _typed_storage(self._untyped_storage.cuda(device), self.dtype)

    def to(self, *, device: Any, non_blocking: bool = False) -> TypedStorage:
        """This storage on another device."""
        return _typed_storage(self._untyped_storage.to(device=device), self.dtype)

    def cpu(self) -> TypedStorage:
        """This storage in the computer's main memory."""
        return self.to(device="cpu")

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of this type, or this storage with another dtype."""
        if dtype is None:
            name = STORAGE_NAMES.get(self.dtype)
            return f"torch.{name}" if name else "torch.storage.TypedStorage"
        if isinstance(dtype, str):
            dtype = getattr(rushlight, dtype.removeprefix("torch."))
        wanted = dtype if isinstance(dtype, _C.dtype) else dtype.dtype
        return _typed_storage(UntypedStorage._of(self._elements().to(wanted)), wanted)

    @classmethod
    def from_buffer(
        cls,
        buffer: Any,
        byte_order: str | None = None,
        count: int = -1,
        offset: int = 0,
        *,
        dtype: _C.dtype | None = None,
        device: Any = None,
    ) -> TypedStorage:
        """A copy of the elements in a buffer, whose bytes are in 'little', 'big' or 'native' order."""
        fixed = getattr(cls, "_dtype", None)
        if fixed is not None and dtype is not None:
            raise RuntimeError(
                "from_buffer: 'dtype' can only be specified in UntypedStorage.from_buffer and "
                "TypedStorage.from_buffer"
            )
        dtype = fixed or dtype or _C.get_default_dtype()
        size = dtype.itemsize
        if byte_order is None and size > 1:
            raise RuntimeError("function missing required argument 'byte_order' (pos 2)")
        if size > 1 and byte_order not in (None, "little", "big", "native"):
            raise ValueError(f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')")
        try:
            data = memoryview(buffer).cast("B")
        except TypeError:
            raise TypeError(f"a bytes-like object is required, not '{type(buffer).__name__}'") from None
        if not 0 <= offset <= len(data):
            raise ValueError(
                f"offset must be non-negative and no greater than buffer length ({offset}) , but got "
                f"{len(data)}"
            )
        length = len(data)
        data = data[offset:]
        if count >= 0:
            if count * size > len(data):
                raise ValueError(
                    f"buffer has only {length} elements after offset {offset}, but specified a size of "
                    f"{count}"
                )
            data = data[: count * size]
        elif len(data) % size:
            raise ValueError(f"buffer size ({len(data)}) must be a multiple of element size ({size})")
        storage = _storage_from_bytes(bytes(data))
        import sys

        if size > 1 and byte_order not in ("native", sys.byteorder):
            storage.byteswap(dtype)
        return _typed_storage(storage, dtype)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedStorage) and self._cdata == other._cdata and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash((self._cdata, self.dtype))

    def __copy__(self) -> TypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict) -> TypedStorage:
        return _typed_storage(self._untyped_storage.__deepcopy__(memo), self.dtype)

    def __reduce__(self) -> tuple:
        return _typed_storage, (self._untyped_storage, self.dtype)

    def __repr__(self) -> str:
        device = self._untyped_storage.device
        kind = f"torch.storage.TypedStorage(dtype={self.dtype}, device={device})"
        rows = _rows(device, self._elements().tolist if self._size() else list)
        return f"{rows}[{kind} of size {self._size()}]"


def _warning_first(function: Any) -> Any:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        warn_of_typed_storage()
        return function(*args, **kwargs)

    return call


# Every use of a typed storage says that it is on its way out; the package uses names with an underscore.
for _name, _held in list(vars(TypedStorage).items()):
    if isinstance(_held, property) and _name not in ("_cdata", "filename"):
        setattr(TypedStorage, _name, property(_warning_first(_held.fget), doc=_held.__doc__))
    elif isinstance(_held, classmethod) and not _name.startswith("_"):
        setattr(TypedStorage, _name, classmethod(_warning_first(_held.__func__)))
    elif isinstance(_held, types.FunctionType) and (
        not _name.startswith("_")
        or _name
        in ("__len__", "__getitem__", "__setitem__", "__iter__", "__copy__", "__deepcopy__", "__repr__")
    ):
        setattr(TypedStorage, _name, _warning_first(_held))


def _conversion(name: str, dtype: _C.dtype) -> None:
    def convert(self: Any) -> TypedStorage:
        if not isinstance(self, TypedStorage):
            return _typed_storage(UntypedStorage._of(self._all().to(dtype)), dtype)
        return self.type(dtype)

    convert.__name__ = convert.__qualname__ = name
    convert.__doc__ = f"The elements as {dtype}."
    setattr(TypedStorage, name, convert)
    setattr(UntypedStorage, name, convert)


for _name, _dtype in {
    "double": _C.float64, "float": _C.float32, "half": _C.float16, "bfloat16": _C.bfloat16, "long": _C.int64,
    "int": _C.int32, "short": _C.int16, "char": _C.int8, "byte": _C.uint8, "bool": _C.bool,
    "complex_float": _C.complex64, "complex_double": _C.complex128,
}.items():  # fmt: skip
    _conversion(_name, _dtype)


def _load_from_bytes(b: bytes) -> Any:
    """The storage in a pickle that torch wrote, which holds it as a checkpoint of its own."""
    return rushlight.load(io.BytesIO(b), weights_only=False)


def _typed_storage(untyped: UntypedStorage, dtype: _C.dtype) -> TypedStorage:
    return TypedStorage(wrap_storage=untyped, dtype=dtype, _internal=True)


# ---- the old names: FloatStorage is TypedStorage with a dtype

STORAGE_NAMES = {
    _C.float64: "DoubleStorage", _C.float32: "FloatStorage", _C.float16: "HalfStorage",
    _C.int64: "LongStorage", _C.int32: "IntStorage", _C.int16: "ShortStorage", _C.int8: "CharStorage",
    _C.uint8: "ByteStorage", _C.bool: "BoolStorage", _C.bfloat16: "BFloat16Storage",
    _C.complex128: "ComplexDoubleStorage", _C.complex64: "ComplexFloatStorage",
}  # fmt: skip


class _LegacyMeta(type):
    _dtype: _C.dtype

    @property
    def dtype(cls) -> _C.dtype:
        warn_of_typed_storage()
        return cls._dtype

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, TypedStorage) and instance.dtype == cls.dtype

    def __repr__(cls) -> str:
        return f"<class 'torch.{cls.__name__}'>"

    def __call__(
        cls, *args: Any, wrap_storage: Any = None, device: Any = None, **options: Any
    ) -> TypedStorage:
        trouble = "Too many positional arguments" if len(args) > 1 else ""
        if options:
            trouble = f"Keyword argument '{next(iter(options))}' cannot be specified"
        elif args and wrap_storage is not None:
            trouble = "No positional arguments should be given when using 'wrap_storage'"
        elif args and not isinstance(args[0], (int, Sequence)):
            raise TypeError(f"{cls._combinations()}\nArgument type not recognized: {type(args[0])}")
        if trouble:
            raise RuntimeError(f"{cls._combinations()}\n{trouble}")
        return TypedStorage(*args, wrap_storage=wrap_storage, dtype=cls._dtype, device=device)

    def _combinations(cls) -> str:
        return f"{cls}.__new__ " + _COMBINATIONS.partition(" ")[2].replace(", torch.dtype dtype", "")


def _legacy(name: str, dtype: _C.dtype) -> Any:
    doc = f"The old name of a TypedStorage of {dtype}."
    return _LegacyMeta(name, (TypedStorage,), {"_dtype": dtype, "__module__": "rushlight", "__doc__": doc})


LEGACY = {name: _legacy(name, dtype) for dtype, name in STORAGE_NAMES.items()}


_warned = False
_always_warn = False


def _get_always_warn_typed_storage_removal() -> bool:
    """Whether every use of a typed storage is warned about, not only the first."""
    return _always_warn


def _set_always_warn_typed_storage_removal(always_warn: bool) -> None:
    """Asks for a warning about every use of a typed storage."""
    global _always_warn
    if not isinstance(always_warn, bool):
        raise AssertionError(f"always_warn must be bool, got {type(always_warn)}")
    _always_warn = always_warn


def _reset_warn_typed_storage_removal() -> None:
    """Forgets that the warning was given."""
    global _warned
    _warned = False


def warn_of_typed_storage() -> None:
    """Says once that typed storages are on their way out of torch."""
    global _warned
    if not _warned or _always_warn:
        _warned = True
        warnings.warn(
            "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the "
            "only storage class. This should only matter to you if you are using storages directly.  To "
            "access UntypedStorage directly, use tensor.untyped_storage() instead of tensor.storage()",
            stacklevel=3,
        )


def data_of(tensor: _C.Tensor) -> TypedStorage:
    """The typed storage of a tensor."""
    return _typed_storage(UntypedStorage._of(tensor), tensor.dtype)
