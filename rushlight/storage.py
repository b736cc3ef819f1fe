"""Storages: the memory behind tensors as an object of its own, with and without a dtype.

An UntypedStorage holds one tensor of bytes that covers the whole memory; a TypedStorage is an UntypedStorage
and a dtype. Checkpoints are made of them (rushlight/serialization.py).
"""

from __future__ import annotations

import functools
import io
import types
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import rushlight
from rushlight import _C
from rushlight._untyped_storage import (
    UntypedStorage,
    as_ever,
    check_device,
    check_size,
    rows,
    storage_from_bytes,
)

__all__ = ["TypedStorage", "UntypedStorage"]

_StorageBase = UntypedStorage  # by this name torch's storages are recognised

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
            _warn_typed_storage_removal()
        if wrap_storage is not None:
            if args:
                raise RuntimeError(
                    f"{_COMBINATIONS}\nNo positional arguments should be given when using 'wrap_storage'"
                )
            if dtype is None:
                raise RuntimeError(f"{_COMBINATIONS}\nArgument 'dtype' must be specified")
            if not isinstance(dtype, _C.dtype):
                raise TypeError(f"{_COMBINATIONS}\nArgument 'dtype' must be torch.dtype, not {type(dtype)}")
            if device is not None:
                raise RuntimeError(
                    f"{_COMBINATIONS}\nArgument 'device' should not be specified when 'wrap_storage' is given"
                )
            if not isinstance(wrap_storage, UntypedStorage):
                raise TypeError(
                    f"{_COMBINATIONS}\nArgument 'wrap_storage' must be UntypedStorage, but got "
                    f"{type(wrap_storage)}"
                )
            self._untyped_storage, self.dtype = wrap_storage, dtype
            return
        if dtype is not None and not isinstance(dtype, _C.dtype):
            raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
        check_device(device)
        self.dtype = dtype or _C.get_default_dtype()
        if len(args) > 1:
            raise RuntimeError(f"{_COMBINATIONS}\nToo many positional arguments")
        if args and not isinstance(args[0], int):
            if not isinstance(args[0], Sequence):
                raise TypeError(f"{_COMBINATIONS}\nArgument type not recognized: {type(args[0])}")
            elements = rushlight.tensor(args[0], dtype=self.dtype, device=device)
        else:
            check_size((args[0] if args else 0) * self.dtype.itemsize)
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

    def get_device(self) -> int | None:
        """The number of the device; None in main memory."""
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
        return _typed_storage(self._untyped_storage.pin_memory(device), self.dtype)

    def _new_wrapped_storage(self, untyped_storage: UntypedStorage) -> TypedStorage:
        return _typed_storage(untyped_storage, self.dtype)

    def _write_file(self, *args: Any) -> None:
        self._untyped_storage._write_file(*args)

    def _share_fd_cpu_(self, *args: Any, **kwargs: Any) -> Any:
        return self._untyped_storage._share_fd_cpu_(*args, **kwargs)

    def _share_filename_cpu_(self, *args: Any, **kwargs: Any) -> Any:
        return self._untyped_storage._share_filename_cpu_(*args, **kwargs)

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
        if self._untyped_storage.device.type == "meta":
            raise NotImplementedError("Not available for 'meta' device type")
        return self._elements()[at].item()

    def _check_index(self, index: Any) -> None:
        if not isinstance(index, int):
            raise RuntimeError(f"can't index a <class 'torch.storage.TypedStorage'> with {type(index)}")

    def __setitem__(self, index: Any, value: Any) -> None:
        if not isinstance(index, slice):
            self._check_index(index)
        if isinstance(value, (TypedStorage, UntypedStorage)):
            raise RuntimeError(f"cannot set item with value type {type(value)}")
        self._elements().data[index] = value

    def __iter__(self) -> Iterator[Any]:
        return iter(self._elements().tolist())

    def tolist(self) -> list:
        """The elements as Python numbers."""
        if self._untyped_storage.device.type == "meta":
            raise NotImplementedError("Not available for 'meta' device type")
        return self._elements().tolist()

    def fill_(self, value: Any) -> TypedStorage:
        """Sets every element."""
        if isinstance(value, (TypedStorage, UntypedStorage)):
            raise RuntimeError(f"cannot set item with value type {type(value)}")
        self._elements().data.fill_(value)
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
        return _typed_storage(UntypedStorage._of(as_ever(self._elements().to, wanted)), wanted)

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
        if fixed is not None and device is not None:
            raise RuntimeError(
                "from_buffer: 'device' can only be specified in UntypedStorage.from_buffer and "
                "TypedStorage.from_buffer"
            )
        if device is not None and _C.as_device(device).type != "cpu":
            raise RuntimeError(
                f"TypedStorage.from_buffer: Not available for device {_C.as_device(device).type}"
            )
        if dtype is not None and not isinstance(dtype, _C.dtype):
            raise RuntimeError("argument 'dtype' must be of type torch.dtype")
        dtype = fixed or dtype or _C.get_default_dtype()
        size = dtype.itemsize
        if byte_order is None and (size > 1 or dtype == _C.bool):
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
        storage = storage_from_bytes(bytes(data))
        import sys

        if size > 1 and byte_order not in ("native", sys.byteorder):
            storage.byteswap(dtype)
        return _typed_storage(storage, dtype)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedStorage) and self._cdata == other._cdata and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash((self._cdata, self.dtype))

    def __copy__(self) -> TypedStorage:
        return _typed_storage(self._untyped_storage.clone(), self.dtype)

    def __deepcopy__(self, memo: dict) -> TypedStorage:
        return _typed_storage(self._untyped_storage.__deepcopy__(memo), self.dtype)

    def __reduce__(self) -> tuple:
        return _typed_storage, (self._untyped_storage, self.dtype)

    def __repr__(self) -> str:
        device = self._untyped_storage.device
        kind = f"torch.storage.TypedStorage(dtype={self.dtype}, device={device})"
        elements = rows(device, self._elements().tolist if self._size() else list)
        return f"{elements}[{kind} of size {self._size()}]"


# Under these names torch itself uses typed storages, without the warning.
for _name in ("data_ptr", "element_size", "is_shared", "nbytes", "resize_", "share_memory_"):
    setattr(TypedStorage, f"_{_name}", vars(TypedStorage)[_name])
for _name in ("deepcopy", "getitem", "setitem"):
    setattr(TypedStorage, f"_{_name}", vars(TypedStorage)[f"__{_name}__"])


def _warning_first(function: Any) -> Any:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        _warn_typed_storage_removal()
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
            return _typed_storage(UntypedStorage._of(as_ever(self._all().to, dtype)), dtype)
        return self.type(dtype)

    convert.__name__ = convert.__qualname__ = name
    convert.__doc__ = f"The elements as {dtype}."
    setattr(TypedStorage, name, convert)
    setattr(UntypedStorage, name, convert)


for _name, _dtype in {
    "double": _C.float64, "float": _C.float32, "half": _C.float16, "bfloat16": _C.bfloat16, "long": _C.int64,
    "int": _C.int32, "short": _C.int16, "char": _C.int8, "byte": _C.uint8, "bool": _C.bool,
    "complex_float": _C.complex64, "complex_double": _C.complex128, "float8_e5m2": _C.float8_e5m2,
    "float8_e4m3fn": _C.float8_e4m3fn, "float8_e5m2fnuz": _C.float8_e5m2fnuz,
    "float8_e4m3fnuz": _C.float8_e4m3fnuz,
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


def _dtype_to_storage_type_map() -> dict[_C.dtype, str]:
    """The old name of a storage of each dtype that had one."""
    return dict(STORAGE_NAMES)


def _storage_type_to_dtype_map() -> dict[str, _C.dtype]:
    """The dtype of each old name."""
    return {name: dtype for dtype, name in STORAGE_NAMES.items()}


def _get_dtype_from_pickle_storage_type(pickle_storage_type: str) -> _C.dtype:
    """The dtype that a file means by the old name of a storage."""
    found = _storage_type_to_dtype_map()
    if pickle_storage_type not in found:
        raise KeyError(f'pickle storage type "{pickle_storage_type}" is not recognized')
    return found[pickle_storage_type]


def _new_dtypes() -> set[_C.dtype]:
    """The dtypes that came after the old names: those of which a file says the dtype itself."""
    names = "float8_e5m2 float8_e4m3fn float8_e5m2fnuz float8_e4m3fnuz float8_e8m0fnu complex32"
    return {getattr(rushlight, name) for name in (*names.split(), "uint16", "uint32", "uint64")}


class _LegacyMeta(type):
    _dtype: _C.dtype

    @property
    def dtype(cls) -> _C.dtype:
        if cls is _LegacyStorage:
            raise AttributeError("type object '_LegacyStorage' has no attribute 'dtype'")
        _warn_typed_storage_removal()
        return cls._dtype

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, TypedStorage) and instance.dtype == cls.dtype

    def __repr__(cls) -> str:
        module = "torch.storage" if cls is _LegacyStorage else "torch"
        return f"<class '{module}.{cls.__name__}'>"

    def __call__(cls, *args: Any, wrap_storage: Any = None, **options: Any) -> TypedStorage:
        internal = options.pop("_internal", False)
        if not internal:
            _warn_typed_storage_removal()
        if cls is _LegacyStorage:
            raise RuntimeError("Only child classes of _LegacyStorage can be instantiated")
        for name in options:
            if name not in ("device", "dtype"):
                raise TypeError(f"TypedStorage.__new__() got an unexpected keyword argument '{name}'")
            cls._refuse(f"Keyword argument '{name}' cannot be specified")
        if len(args) > 1:
            cls._refuse("Too many positional arguments")
        if args and wrap_storage is not None:
            cls._refuse("No positional arguments should be given when using 'wrap_storage'")
        if args and not isinstance(args[0], (int, Sequence)):
            cls._refuse(f"Argument type not recognized: {type(args[0])}", TypeError)
        if wrap_storage is not None:
            if not isinstance(wrap_storage, UntypedStorage):
                kind = type(wrap_storage)
                cls._refuse(f"Argument 'wrap_storage' must be UntypedStorage, but got {kind}", TypeError)
            if wrap_storage.device.type != "cpu":
                cls._refuse(f"Device of 'wrap_storage' must be cpu, but got {wrap_storage.device.type}")
        return TypedStorage(*args, wrap_storage=wrap_storage, dtype=cls._dtype, _internal=True)

    def _refuse(cls, trouble: str, error: type[Exception] = RuntimeError) -> NoReturn:
        raise error(
            f"{cls}.__new__ received an invalid combination of arguments. Expected one of:\n * no arguments\n"
            f" * (int size)\n * (Sequence data)\n * (*, UntypedStorage wrap_storage)\n{trouble}"
        )


class _LegacyStorage(TypedStorage, metaclass=_LegacyMeta):
    """What FloatStorage and its kin are classes of."""


def _legacy(name: str, dtype: _C.dtype) -> Any:
    doc = f"The old name of a TypedStorage of {dtype}."
    return _LegacyMeta(name, (_LegacyStorage,), {"_dtype": dtype, "__module__": "rushlight", "__doc__": doc})


LEGACY = {name: _legacy(name, dtype) for dtype, name in STORAGE_NAMES.items()}
CLASSES = {UntypedStorage, TypedStorage, *LEGACY.values()}  # torch._storage_classes


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


def _warn_typed_storage_removal(stacklevel: int = 2) -> None:
    """Says once that typed storages are on their way out of torch."""
    global _warned
    if not _warned or _always_warn:
        _warned = True
        warnings.warn(
            "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the "
            "only storage class. This should only matter to you if you are using storages directly.  To "
            "access UntypedStorage directly, use tensor.untyped_storage() instead of tensor.storage()",
            stacklevel=stacklevel + 1,
        )


def data_of(tensor: _C.Tensor) -> TypedStorage:
    """The typed storage of a tensor."""
    return _typed_storage(UntypedStorage._of(tensor), tensor.dtype)
