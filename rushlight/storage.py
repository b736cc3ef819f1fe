"""Storages: the memory behind tensors as an object of its own, with and without a dtype.

An UntypedStorage holds one tensor of bytes that covers the whole memory; a TypedStorage is an UntypedStorage
and a dtype. Checkpoints are made of them (rushlight/serialization.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import rushlight
from rushlight import _C

__all__ = ["TypedStorage", "UntypedStorage"]


class UntypedStorage:
    """The bytes behind a tensor.

    >>> rushlight.ones(2).untyped_storage().nbytes()
    8
    >>> rushlight.UntypedStorage([1, 2]).tolist()
    [1, 2]
    """

    _bytes: _C.Tensor  # one dimension, uint8, the whole memory

    def __init__(self, size: Any = 0, *, device: Any = None) -> None:
        if isinstance(size, int):
            self._bytes = _C.empty((size,), _C.uint8, device)
        else:
            self._bytes = rushlight.tensor(list(size), dtype=_C.uint8, device=device)

    @classmethod
    def _of(cls, tensor: _C.Tensor) -> UntypedStorage:
        storage = cls.__new__(cls)
        storage._bytes = _C.storage_bytes(tensor)
        return storage

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

    def is_shared(self) -> bool:
        """Whether other processes see the memory; they never do."""
        return False

    def is_pinned(self, device: Any = None) -> bool:
        """Whether the memory is page-locked; it never is."""
        return False

    @property
    def _cdata(self) -> int:
        return _C.storage_id(self._bytes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and self._cdata == other._cdata

    def __hash__(self) -> int:
        return self._cdata

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return UntypedStorage._of(self._all()[index].clone())
        return self._all()[index].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._all()[index] = value

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())

    def _all(self) -> _C.Tensor:
        return _C.storage_bytes(self._bytes)  # anew, for a storage can grow

    def tolist(self) -> list[int]:
        """The bytes as numbers."""
        return self._all().tolist()

    def clone(self) -> UntypedStorage:
        """A copy."""
        return UntypedStorage._of(self._all().clone())

    def copy_(self, source: UntypedStorage, non_blocking: bool = False) -> UntypedStorage:
        """Overwrites these bytes with those of `source`, which must be as many."""
        if source.nbytes() != self.nbytes():
            raise RuntimeError("size does not match, self was " f"{self.nbytes()} bytes but src was "
                               f"{source.nbytes()} bytes")  # fmt: skip
        self._all().copy_(source._all())
        return self

    def fill_(self, value: int) -> UntypedStorage:
        """Sets every byte."""
        self._all().fill_(value)
        return self

    def resize_(self, size: int) -> UntypedStorage:
        """Makes the memory larger; what is there stays."""
        if size < self.nbytes():
            raise NotImplementedError(
                "UntypedStorage.resize_: Rushlight does not shrink a storage, tensors may still use its "
                "memory"
            )
        _C.grow_storage(self._bytes, size)
        return self

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
        return cls._of(
            TypedStorage.from_buffer(*args, **{"dtype": _C.uint8, **kwargs})._untyped_storage._bytes
        )

    def __copy__(self) -> UntypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict) -> UntypedStorage:
        copies = memo.setdefault("rushlight.storages", {})
        if self._cdata not in copies:
            copies[self._cdata] = self.clone()
        return copies[self._cdata]

    def __reduce__(self) -> tuple:
        return _storage_from_bytes, (_C.to_bytes(self._all()),)

    def __repr__(self) -> str:
        rows = "".join(f" {value}\n" for value in self.tolist()) if self.device.type != "meta" else "...\n"
        return f"{rows}[torch.storage.UntypedStorage(device={self.device}) of size {len(self)}]"


def _storage_from_bytes(data: bytes) -> UntypedStorage:
    return UntypedStorage._of(_C.from_bytes(data, _C.uint8))


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
        if wrap_storage is not None:
            if args:
                raise RuntimeError(
                    "TypedStorage(wrap_storage=...): positional arguments cannot be given with wrap_storage"
                )
            if dtype is None:
                raise RuntimeError("Argument 'dtype' must be specified")
            if not isinstance(wrap_storage, UntypedStorage):
                raise TypeError(
                    f"Argument 'wrap_storage' must be UntypedStorage, but got {type(wrap_storage)}"
                )
            self._untyped_storage, self.dtype = wrap_storage, dtype
            return
        self.dtype = dtype or _C.get_default_dtype()
        if len(args) > 1:
            raise TypeError(
                f"TypedStorage() takes at most one positional argument but {len(args)} were given"
            )
        if args and not isinstance(args[0], int):
            elements = rushlight.tensor(list(args[0]), dtype=self.dtype, device=device)
        else:
            elements = _C.empty((args[0] if args else 0,), self.dtype, device)
        self._untyped_storage = UntypedStorage._of(elements)

    def _elements(self) -> _C.Tensor:
        return _C.on_storage(self._untyped_storage._bytes, self.dtype, 0, (len(self),), (1,))

    def untyped(self) -> UntypedStorage:
        """The storage without the dtype."""
        return self._untyped_storage

    def __len__(self) -> int:
        return self._untyped_storage.nbytes() // self.dtype.itemsize

    size = __len__

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

    def is_shared(self) -> bool:
        """Whether other processes see the memory; they never do."""
        return False

    @property
    def _cdata(self) -> int:
        return self._untyped_storage._cdata

    def _pickle_storage_type(self) -> str:
        return STORAGE_NAMES[self.dtype]

    pickle_storage_type = _pickle_storage_type

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        return self._elements()[index].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._elements()[index] = value

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def tolist(self) -> list:
        """The elements as Python numbers."""
        return self._elements().tolist()

    def fill_(self, value: Any) -> TypedStorage:
        """Sets every element."""
        self._elements().fill_(value)
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> TypedStorage:
        """Overwrites the elements with those of another storage, converting them."""
        if isinstance(source, UntypedStorage):
            self._untyped_storage.copy_(source)
        else:
            self._elements().copy_(source._elements())
        return self

    def clone(self) -> TypedStorage:
        """A copy."""
        return TypedStorage(wrap_storage=self._untyped_storage.clone(), dtype=self.dtype)

    def resize_(self, size: int) -> TypedStorage:
        """Makes room for this many elements."""
        self._untyped_storage.resize_(size * self.dtype.itemsize)
        return self

    def to(self, *, device: Any, non_blocking: bool = False) -> TypedStorage:
        """This storage on another device."""
        return TypedStorage(wrap_storage=self._untyped_storage.to(device=device), dtype=self.dtype)

    def cpu(self) -> TypedStorage:
        """This storage in the computer's main memory."""
        return self.to(device="cpu")

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of this type, or this storage with another dtype."""
        if dtype is None:
            return f"torch.{STORAGE_NAMES[self.dtype]}"
        wanted = dtype if isinstance(dtype, _C.dtype) else dtype.dtype
        return TypedStorage(wrap_storage=UntypedStorage._of(self._elements().to(wanted)), dtype=wanted)

    @staticmethod
    def from_buffer(
        buffer: Any, byte_order: str | None = None, *, dtype: _C.dtype, count: int = -1, offset: int = 0
    ) -> TypedStorage:
        """A copy of the elements in a buffer, whose bytes are in 'little', 'big' or 'native' order."""
        size = dtype.itemsize
        if size > 1 and byte_order not in ("little", "big", "native"):
            raise ValueError(
                f"from_buffer: byte_order must be 'native', 'little' or 'big', not {byte_order!r}"
            )
        data = memoryview(buffer).cast("B")[offset:]
        if count >= 0:
            if count * size > len(data):
                raise ValueError(
                    f"buffer has only {len(data)} bytes after offset {offset}, but specified a size of "
                    f"{count}"
                )
            data = data[: count * size]
        elif len(data) % size:
            raise ValueError(f"buffer size ({len(data)}) must be a multiple of element size ({size})")
        storage = _storage_from_bytes(bytes(data))
        import sys

        if size > 1 and byte_order not in ("native", sys.byteorder):
            storage.byteswap(dtype)
        return TypedStorage(wrap_storage=storage, dtype=dtype)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedStorage) and self._cdata == other._cdata and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash((self._cdata, self.dtype))

    def __deepcopy__(self, memo: dict) -> TypedStorage:
        return TypedStorage(wrap_storage=self._untyped_storage.__deepcopy__(memo), dtype=self.dtype)

    def __reduce__(self) -> tuple:
        return _typed_storage, (self._untyped_storage, self.dtype)

    def __repr__(self) -> str:
        rows = "".join(f" {value}\n" for value in self.tolist()) if self.device.type != "meta" else "...\n"
        kind = f"torch.storage.TypedStorage(dtype={self.dtype}, device={self.device})"
        return f"{rows}[{kind} of size {len(self)}]"


def _conversion(name: str, dtype: _C.dtype) -> None:
    def convert(self: TypedStorage) -> TypedStorage:
        return self.type(dtype)

    convert.__name__ = convert.__qualname__ = name
    convert.__doc__ = f"The elements as {dtype}."
    setattr(TypedStorage, name, convert)


for _name, _dtype in {
    "double": _C.float64, "float": _C.float32, "half": _C.float16, "bfloat16": _C.bfloat16, "long": _C.int64,
    "int": _C.int32, "short": _C.int16, "char": _C.int8, "byte": _C.uint8, "bool": _C.bool,
    "complex_float": _C.complex64, "complex_double": _C.complex128,
}.items():  # fmt: skip
    _conversion(_name, _dtype)


def _typed_storage(untyped: UntypedStorage, dtype: _C.dtype) -> TypedStorage:
    return TypedStorage(wrap_storage=untyped, dtype=dtype)


# ---- the old names: FloatStorage is TypedStorage with a dtype

STORAGE_NAMES = {
    _C.float64: "DoubleStorage", _C.float32: "FloatStorage", _C.float16: "HalfStorage",
    _C.int64: "LongStorage", _C.int32: "IntStorage", _C.int16: "ShortStorage", _C.int8: "CharStorage",
    _C.uint8: "ByteStorage", _C.bool: "BoolStorage", _C.bfloat16: "BFloat16Storage",
    _C.complex128: "ComplexDoubleStorage", _C.complex64: "ComplexFloatStorage",
}  # fmt: skip


class _LegacyMeta(type):
    dtype: _C.dtype

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, TypedStorage) and instance.dtype == cls.dtype

    def __call__(cls, *args: Any, **kwargs: Any) -> TypedStorage:
        return TypedStorage(*args, dtype=cls.dtype, **kwargs)


def _legacy(name: str, dtype: _C.dtype) -> type:
    doc = f"The old name of a TypedStorage of {dtype}."
    return _LegacyMeta(name, (), {"dtype": dtype, "__module__": "rushlight", "__doc__": doc})


LEGACY = {name: _legacy(name, dtype) for dtype, name in STORAGE_NAMES.items()}


def data_of(tensor: _C.Tensor) -> TypedStorage:
    """The typed storage of a tensor."""
    return TypedStorage(wrap_storage=UntypedStorage._of(tensor), dtype=tensor.dtype)


def set_(tensor: _C.Tensor, source: Any, offset: int, size: Sequence | None, stride: Sequence | None) -> Any:
    """What Tensor.set_ does: `tensor` moves to the memory of `source`."""
    if source is None:
        source, size = rushlight.empty(0, dtype=tensor.dtype, device=tensor.device), (0,)
    if isinstance(source, _C.Tensor):
        if source.dtype != tensor.dtype:
            raise RuntimeError(
                f"Could not set tensor of type {tensor.dtype} to a tensor of type {source.dtype}"
            )
        if size is None:
            offset, size, stride = source.storage_offset(), source.shape, source.stride()
        memory = source
    elif isinstance(source, TypedStorage):
        if source.dtype != tensor.dtype:
            raise RuntimeError(f"Expected a Storage of type {tensor.dtype} or an UntypedStorage, but got "
                               f"{source.dtype}")  # fmt: skip
        memory = source._untyped_storage._bytes
    elif isinstance(source, UntypedStorage):
        memory = source._bytes
    else:
        raise TypeError(f"set_(): argument 'source' must be Storage or Tensor, not {type(source).__name__}")
    if size is None:
        size = (_C.storage_nbytes(memory) // tensor.dtype.itemsize,)
    if isinstance(size, int):
        size = (size,)
    if stride is None:
        stride, step = [], 1
        for length in reversed(size):
            stride.insert(0, step)
            step *= max(length, 1)
    return _C.set_storage(tensor, memory, tensor.dtype, offset, tuple(size), tuple(stride))
