"""`save` and `load`: torch's checkpoint format, written and read.

A checkpoint is a zip archive (rushlight/_archive.py) with a pickle in which storages are numbers, and a
record of bytes for each storage. The pickle uses torch's names for everything, so that torch reads our files
and we read torch's: `save` translates names on the way out, `load` on the way in. The two older formats of
torch are in rushlight/_legacy_format.py.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import pickle
import sys
import tempfile
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from enum import Enum
from types import FunctionType
from typing import Any

import rushlight
from rushlight import _C, _serialization_names, _utils
from rushlight._archive import ArchiveReader, ArchiveWriter
from rushlight._serialization_names import (
    SourceChangeWarning,
    StorageType,
    check_module_version_greater_or_equal,
    mkdtemp,
    normalize_storage_type,
    storage_to_tensor_type,
    validate_cuda_device,
    validate_hpu_device,
)
from rushlight.storage import LEGACY, STORAGE_NAMES, TypedStorage, UntypedStorage
from rushlight.utils.serialization import config

__all__ = [
    "LoadEndianness",
    "SourceChangeWarning",
    "StorageType",
    "add_safe_globals",
    "check_module_version_greater_or_equal",
    "clear_safe_globals",
    "default_restore_location",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "location_tag",
    "mkdtemp",
    "normalize_storage_type",
    "register_package",
    "safe_globals",
    "save",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
    "storage_to_tensor_type",
    "validate_cuda_device",
    "validate_hpu_device",
]

DEFAULT_PROTOCOL = 2


class LoadEndianness(Enum):
    """The byte order of a file that does not say its own."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


class _Options(threading.local):
    skip_data = False


_options = _serialization_tls = _Options()

for _class in (SourceChangeWarning, StorageType):
    _class.__module__ = __name__


# For annotations; libraries import them.
FILE_LIKE = FileLike = Any  # a path or a file object
MAP_LOCATION = Any  # None, a device, a dict of devices, or a function of (storage, location)


def __getattr__(name: str) -> Any:
    if name in _serialization_names.FURTHER:
        return getattr(_serialization_names, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# ---- names: rushlight's on this side, torch's in the file

_FILES = {
    "rushlight.optim._lr_base": "torch.optim.lr_scheduler",
    "rushlight.optim._lr_cycles": "torch.optim.lr_scheduler",
    "rushlight.nn.parallel": "torch.nn.parallel.data_parallel",
    "rushlight.ops.create": "torch",
    "rushlight.ops.shape": "torch",
}
_NOT_LAYERS = {"functional", "init", "parameter", "utils"}


def torch_name(module: str, name: str) -> tuple[str, str]:
    """Where torch has what is `name` in our `module`."""
    if (module, name) == ("rushlight._utils", "_rebuild_from_type_v2"):
        return "torch._tensor", name
    if module in _FILES:
        return _FILES[module], name
    parts = module.split(".")
    if parts[1:2] == ["nn"] and len(parts) == 3 and parts[2] not in _NOT_LAYERS:
        return f"torch.nn.modules.{_layer_file(name, parts[2])}", name
    return ".".join(["torch", *parts[1:]]), name


def _layer_file(name: str, file: str) -> str:
    from rushlight._torch_names import LAYER_FILES

    return LAYER_FILES.get(name, file)


def find_name(module: str, name: str) -> Any:
    """What a pickle means by a name: torch's are ours, others are imported."""
    if module != "torch" and not module.startswith("torch."):
        return None
    if (module, name) == ("torch._tensor", "_rebuild_from_type_v2"):
        return _utils._rebuild_from_type_v2
    if (module, name) == ("torch.storage", "_load_from_bytes"):
        return _load_from_bytes
    ours = "rushlight" + module.removeprefix("torch")
    candidates = [ours]
    if module.startswith("torch.nn."):
        candidates.append("rushlight.nn")
    if module in sys.modules:  # somebody else's, that a program has put beside ours
        candidates.append(module)
    for candidate in candidates:
        try:
            found: Any = importlib.import_module(candidate)
            for part in name.split("."):
                found = getattr(found, part)
            return found
        except (ImportError, AttributeError):
            continue
    raise AttributeError(f"the file uses {module}.{name}, which Rushlight does not have")


def _load_from_bytes(data: bytes) -> Any:
    return load(io.BytesIO(data), weights_only=False)


def _get_layout(name: str) -> Any:
    """The layout of this name."""
    if name != "torch.strided":
        raise NotImplementedError(f"Rushlight does not have the layout {name}")
    return rushlight.strided


def _reduce_module(module: Any) -> tuple:
    """torch expects the hook tables of a module, which ours has only once there are hooks."""
    made, arguments, *rest = module.__reduce_ex__(2)
    if rest and isinstance(rest[0], dict):
        state = {name: value for name, value in rest[0].items() if name != "_hooked"}
        for name in ("_backward_pre_hooks", "_backward_hooks", "_forward_hooks", "_forward_hooks_with_kwargs",
                     "_forward_hooks_always_called", "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs",
                     "_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks",
                     "_load_state_dict_post_hooks"):  # fmt: skip
            state.setdefault(name, OrderedDict())
        state.setdefault("_is_full_backward_hook", None)
        rest[0] = state
    return (made, arguments, *rest)


_PythonPickler: Any = vars(pickle)["_Pickler"]


class _NamesPickler(_PythonPickler):
    """Pickles tensors as torch does, with torch's names. In Python, for only there a name can be changed."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, _C.Tensor) and type(obj).__reduce_ex__ is _C.Tensor.__reduce_ex__:
            return _utils.reduce_tensor(obj)
        if obj is rushlight.strided:
            return _get_layout, (str(obj),)
        if isinstance(obj, rushlight.nn.Module):
            return _reduce_module(obj)
        return NotImplemented

    def save_global(self, obj: Any, name: str | None = None) -> None:
        if obj is _C.Tensor:
            module, name = "torch", "Tensor"
        elif isinstance(obj, _C.dtype):
            module, name = "torch", str(obj).removeprefix("torch.")
        else:
            name = name or getattr(obj, "__qualname__", None) or obj.__name__
            module = vars(pickle)["whichmodule"](obj, name)
            if module.partition(".")[0] != "rushlight" or "." in name:
                super().save_global(obj, name)
                return
            module, name = torch_name(module, name)
        if self.proto >= 4:
            self.save(module)
            self.save(name)
            self.write(pickle.STACK_GLOBAL)
        else:
            self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())
        self.memoize(obj)

    dispatch = {**_PythonPickler.dispatch, FunctionType: save_global}


class _Storages:
    """The storages of a pickle being written: each once, under a number."""

    def __init__(self) -> None:
        self.keys: dict[int, str] = {}
        self.storages: dict[str, UntypedStorage] = {}
        self.dtypes: dict[int, _C.dtype] = {}

    def describe(self, obj: Any) -> tuple | None:
        """What stands in the pickle for a storage; None for any other object."""
        if isinstance(obj, TypedStorage):
            untyped, dtype, kind = obj._untyped_storage, obj.dtype, LEGACY[STORAGE_NAMES[obj.dtype]]
        elif isinstance(obj, UntypedStorage):
            untyped, dtype, kind = obj, _C.uint8, UntypedStorage
        else:
            return None
        count = untyped.nbytes() // dtype.itemsize
        where = untyped.data_ptr()
        if where and self.dtypes.setdefault(where, dtype) != dtype:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as different types"
            )
        key = self.keys.setdefault(untyped._cdata, str(len(self.keys)))
        self.storages[key] = untyped
        return "storage", kind, key, location_tag(untyped), count


def make_pickler(pickle_module: Any, persistent_id: Callable, file: Any, protocol: int) -> Any:
    """A pickler of this module that asks persistent_id about storages and writes tensors as torch does."""
    base = _NamesPickler if pickle_module is pickle else pickle_module.Pickler
    namespace: dict[str, Any] = {"persistent_id": lambda self, obj: persistent_id(obj)}
    if base is not _NamesPickler:
        namespace["reducer_override"] = _NamesPickler.reducer_override
    return type("CheckpointPickler", (base,), namespace)(file, protocol=protocol)


def memory_of(storage: UntypedStorage) -> memoryview:
    """The bytes of a storage, without a copy."""
    if storage.nbytes() == 0:
        return memoryview(b"")
    return memoryview(_C.export_buffer(storage.cpu()._all()))


# ---- saving


def save(
    obj: object,
    f: Any,
    pickle_module: Any = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Writes an object to a file in torch's format; to a path through a temporary file that takes its place
    when it is complete.

    >>> buffer = io.BytesIO()
    >>> rushlight.save({"weight": rushlight.ones(2)}, buffer)
    >>> _ = buffer.seek(0)
    >>> rushlight.load(buffer)
    {'weight': tensor([1., 1.])}
    """
    name = "archive"
    if isinstance(f, (str, os.PathLike)):
        stem = os.path.splitext(os.path.basename(os.fspath(f)))[0]
        name = stem if stem.isascii() and stem else "archive"
    elif not hasattr(f, "write"):
        raise AttributeError(
            "expected 'f' to be string, path, or a file-like object with a 'write' attribute"
        )
    with _open_for_writing(f) as file:
        if not _use_new_zipfile_serialization:
            from rushlight._legacy_format import save_legacy

            save_legacy(obj, file, pickle_module, pickle_protocol)
            return
        storages = _Storages()
        stream = io.BytesIO()
        make_pickler(pickle_module, storages.describe, stream, pickle_protocol).dump(obj)
        archive = ArchiveWriter(file, name, config.save.storage_alignment, config.save.compute_crc32)
        archive.write("data.pkl", stream.getbuffer())
        archive.write(".format_version", b"1")
        archive.write(".storage_alignment", str(config.save.storage_alignment).encode())
        if not _disable_byteorder_record:
            archive.write("byteorder", sys.byteorder.encode())
        for key, storage in storages.storages.items():
            data = bytes(storage.nbytes()) if _options.skip_data else memory_of(storage)
            archive.write(f"data/{key}", data)
        archive.write("version", b"3\n")
        if _disable_byteorder_record:  # then torch's archive says it itself, at its end
            archive.write("byteorder", sys.byteorder.encode())
        archive.write(".data/serialization_id", _fingerprint(archive).encode())
        archive.close()


def _fingerprint(archive: ArchiveWriter) -> str:
    """Forty digits that depend on the names and the contents of the records."""
    import zlib

    names = zlib.crc32(b"".join(name for name, *_ in archive.records))
    contents = 0
    for _, crc, *_ in archive.records:
        contents = (contents * 31 + crc) % 10**20
    return f"{names:020d}{contents:020d}"


@contextlib.contextmanager
def _open_for_writing(f: Any) -> Iterator[Any]:
    if not isinstance(f, (str, os.PathLike)):
        yield f
        if hasattr(f, "flush"):
            f.flush()
        return
    path = os.fspath(f)
    if not path:
        raise RuntimeError("invalid file name: ")
    directory = os.path.dirname(path) or "."
    if not os.path.isdir(directory):
        raise RuntimeError(f"Parent directory {os.path.dirname(path)} does not exist.")
    if os.path.isdir(path):
        raise RuntimeError("open file failed with strerror: Is a directory")
    if os.path.exists(path) and not os.path.isfile(path):  # a device or a pipe is written to, not replaced
        with open(path, "wb") as file:
            yield file
        return
    target = os.path.realpath(path)
    handle, temporary = tempfile.mkstemp(prefix=f".{os.path.basename(target)}.", dir=os.path.dirname(target))
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        os.chmod(temporary, os.stat(target).st_mode & 0o777 if os.path.exists(target) else 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


# ---- loading


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Reads what `save` or torch wrote.

    weights_only=True, the default, reads tensors, containers, numbers and what add_safe_globals names, and
    runs nothing that the file brings; False reads any pickle and runs whatever it says. mmap=True maps the
    file into memory instead of reading it; changes to such tensors stay in memory.
    """
    weights_only = _weights_only(weights_only, pickle_module)
    if weights_only and pickle_load_args:
        warnings.warn("pickle_load_args only works if `weights_only=False`.", stacklevel=2)
    is_path = isinstance(f, (str, os.PathLike))
    if mmap is None:
        mmap = config.load.mmap
    if mmap and not is_path:
        raise ValueError("f must be a file path in order to use the mmap argument")
    pickle_load_args.setdefault("encoding", "utf-8")
    shared = mmap and config.load.mmap_flags == config.MAP_SHARED
    with open(f, "rb+" if shared else "rb") if is_path else contextlib.nullcontext(_seekable(f)) as file:
        start = file.tell()
        zipped = file.read(4) == b"PK\3\4"
        file.seek(start)
        make = _unpickler(weights_only, pickle_module or pickle, pickle_load_args)
        try:
            if zipped:
                source = file if start == 0 and hasattr(file, "readinto") else io.BytesIO(file.read())
                archive = ArchiveReader(source, bool(mmap), config.load.mmap_flags)
                if weights_only and archive.has_record("constants.pkl"):
                    raise RuntimeError(
                        "Cannot use ``weights_only=True`` with TorchScript archives passed to "
                        f"``torch.load``. {_UNSAFE}"
                    )
                return _load_archive(archive, map_location, make)
            if mmap:
                raise RuntimeError(
                    f"mmap can only be used with files saved with `torch.save({f}, "
                    "_use_new_zipfile_serialization=True), please torch.save your checkpoint with this "
                    "option in order to use mmap."
                )
            from rushlight._legacy_format import load_legacy

            return load_legacy(file, map_location, make)
        except pickle.UnpicklingError as error:
            if weights_only:
                raise pickle.UnpicklingError(_explained(str(error))) from None
            raise


def _is_set(variable: str) -> bool:
    return os.environ.get(variable, "0") in ("1", "y", "yes", "true")


def _weights_only(weights_only: bool | None, pickle_module: Any) -> bool:
    """What is meant: the argument, its default, and what the environment forces."""
    always, never = "TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"
    if _is_set(always) and _is_set(never):
        raise RuntimeError(f"Only one of `{always}` or `{never}` should be set, but both were set.")
    if weights_only is None:
        weights_only = pickle_module is None
        if _is_set(never):
            weights_only = False
            warnings.warn(
                f"Environment variable {never} detected, since the`weights_only` argument was not explicitly "
                "passed to `torch.load`, forcing weights_only=False.",
                stacklevel=3,
            )
    weights_only = weights_only or _is_set(always)
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    return weights_only


def _seekable(f: Any) -> Any:
    for needed in ("seek", "tell", "read", "readline"):
        if not hasattr(f, needed):
            from rushlight._type_names import type_name

            raise AttributeError(
                f"'{type_name(f)}' object has no attribute '{needed}'. You can only torch.load from a file "
                "that is seekable. Please pre-load the data into a buffer like io.BytesIO and try to load "
                "from it instead."
            )
    try:
        f.seek(f.tell())
    except io.UnsupportedOperation as error:
        raise io.UnsupportedOperation(
            f"{error}. You can only torch.load from a file that is seekable. Please pre-load the data into a "
            "buffer like io.BytesIO and try to load from it instead."
        ) from None
    return f


_UNSAFE = (
    "In PyTorch 2.6, we changed the default value of the `weights_only` argument in `torch.load` from "
    "`False` to `True`. Re-running `torch.load` with `weights_only` set to `False` will likely succeed, but "
    "it can result in arbitrary code execution. Do it only if you got the file from a trusted source."
)


def _explained(problem: str) -> str:
    """torch's sentences around what the restricted unpickler refused."""
    end = (
        "\n\nCheck the documentation of torch.load to learn more about types accepted by default with "
        "weights_only https://pytorch.org/docs/stable/generated/torch.load.html."
    )
    if problem.startswith("Unsupported global"):
        return (
            "Weights only load failed. This file can still be loaded, to do so you have two options, "
            "\033[1mdo those steps only if you trust the source of the checkpoint\033[0m. "
            f"\n\t(1) {_UNSAFE}\n\t(2) Alternatively, to load with `weights_only=True` please check the "
            f"recommended steps in the following error message.\n\tWeightsUnpickler error: {problem}{end}"
        )
    issue = (
        "Please file an issue with the following so that we can make `weights_only=True` compatible with "
        "your "
        "use case: WeightsUnpickler error: "
    )
    return f"Weights only load failed. {_UNSAFE}\n{'' if 'blocked' in problem else issue}\n\n{problem}{end}"


def _unpickler(weights_only: bool, pickle_module: Any, arguments: dict) -> Callable:
    """make(file, persistent_load): an object with load()."""

    def make(file: Any, persistent_load: Callable[[Any], Any]) -> Any:
        if weights_only:
            from rushlight._weights_only_unpickler import Unpickler

            machine = Unpickler(file, **arguments)
            machine.persistent_load = persistent_load
            return machine

        class CheckpointUnpickler(pickle_module.Unpickler):
            def find_class(self, module: str, name: str) -> Any:
                found = find_name(module, name)
                return super().find_class(module, name) if found is None else found

            def persistent_load(self, pid: Any) -> Any:
                return persistent_load(pid)

        return CheckpointUnpickler(file, **arguments)

    return make


def storage_dtype(kind: Any) -> _C.dtype:
    """The dtype of a storage class of a checkpoint."""
    if kind is UntypedStorage:
        return _C.uint8
    dtype = getattr(kind, "_dtype", None) or getattr(kind, "dtype", None)
    if not isinstance(dtype, _C.dtype):
        raise RuntimeError(f"the checkpoint has a storage of an unknown type {kind!r}")
    return dtype


def _load_archive(archive: ArchiveReader, map_location: Any, make: Callable) -> Any:
    if archive.has_record("constants.pkl"):
        raise NotImplementedError("the file is a TorchScript archive; Rushlight reads checkpoints only")
    restore = restore_location(map_location)
    swap = _needs_swap(archive)
    loaded: dict[str, TypedStorage] = {}

    def persistent_load(pid: Any) -> TypedStorage:
        if type(pid) is not tuple or len(pid) != 5:
            raise pickle.UnpicklingError(
                f"Unknown typename for persistent_load, expected 'storage' but got {pid}"
            )
        kind, key, location, count = pid[1:]
        key = key.decode() if isinstance(key, bytes) else key
        location = location.decode() if isinstance(location, bytes) else location
        if type(key) is not str or type(location) is not str or type(count) is not int or count < 0:
            raise pickle.UnpicklingError(f"the pickle is damaged: {pid} does not describe a storage")
        dtype = storage_dtype(kind)
        if key not in loaded:
            storage = _read_storage(archive, f"data/{key}", count * dtype.itemsize, restore is _to_meta)
            if swap:
                storage.byteswap(dtype)
            loaded[key] = TypedStorage(wrap_storage=restore(storage, location), dtype=dtype, _internal=True)
        return loaded[key]

    return make(io.BytesIO(archive.read("data.pkl")), persistent_load).load()


def _read_storage(archive: ArchiveReader, record: str, nbytes: int, no_data: bool) -> UntypedStorage:
    if archive.size(record) != nbytes:
        raise RuntimeError(
            f"record size ({archive.size(record)} bytes) does not match expected size ({nbytes} bytes = "
            f"{nbytes} elements * 1 bytes/element) for dtype Byte"
        )
    if no_data:
        return UntypedStorage(nbytes, device="meta")
    mapped = archive.mapped(record)
    if mapped is not None:
        return UntypedStorage._of(_C.from_buffer(mapped)[0])
    storage = UntypedStorage(nbytes)
    if nbytes and not _options.skip_data:
        archive.read_into(record, memory_of(storage))
    return storage


def _needs_swap(archive: ArchiveReader) -> bool:
    if archive.has_record("byteorder"):
        order = archive.read("byteorder").decode("ascii", "replace")
        if order not in ("little", "big"):
            raise ValueError("Unknown endianness type: " + order)
    elif config.load.endianness in (None, LoadEndianness.LITTLE):
        order = "little"
    else:
        order = sys.byteorder if config.load.endianness is LoadEndianness.NATIVE else "big"
    return order != sys.byteorder


# ---- devices

_packages: list[tuple[int, Callable, Callable]] = []


def register_package(priority: int, tagger: Callable, deserializer: Callable) -> None:
    """Adds a pair of functions that name the place of a storage and bring one there; low numbers first."""
    _packages.append((priority, tagger, deserializer))
    _packages.sort(key=lambda entry: entry[0])


def location_tag(storage: Any) -> str:
    """The name of the device that a storage is on."""
    for _, tagger, _ in _packages:
        tag = tagger(storage)
        if tag is not None:
            return tag
    return sys.intern(str(storage.device))


def default_restore_location(storage: UntypedStorage, location: str) -> UntypedStorage:
    """Brings a storage that was read to the device of this name."""
    for _, _, deserializer in _packages:
        result = deserializer(storage, location)
        if result is not None:
            return result
    if location == "cpu":
        return storage
    if location.startswith("cuda"):
        _C.device(location)
        validate_cuda_device(location)
    try:
        if location.startswith("cpu:"):
            raise RuntimeError("the place is called cpu")
        return storage.to(device=location)
    except RuntimeError:
        raise RuntimeError(
            f"don't know how to restore data location of torch.storage.{type(storage).__name__} (tagged with "
            f"{location})"
        ) from None


def _to_meta(storage: UntypedStorage, location: str) -> UntypedStorage:
    return storage if storage.device.type == "meta" else UntypedStorage(storage.nbytes(), device="meta")


def restore_location(map_location: Any) -> Callable[[UntypedStorage, str], UntypedStorage]:
    """The function that brings storages to where map_location says."""
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):
        return lambda storage, location: default_restore_location(
            storage, map_location.get(location, location)
        )
    if isinstance(map_location, (str, _C.device)):
        place = str(map_location)
        return _to_meta if place == "meta" else lambda storage, _: default_restore_location(storage, place)

    def ask(storage: UntypedStorage, location: str) -> UntypedStorage:
        result = map_location(storage, location)
        return default_restore_location(storage, location) if result is None else result

    return ask


# ---- options


def _as_named(obj: Any) -> tuple[str, Any]:
    from rushlight._weights_only_unpickler import full_name

    if isinstance(obj, tuple):
        if len(obj) != 2:
            raise ValueError(f"Expected tuple of length 2 (global, str of callable full path), but got {obj}")
        return obj[1], obj[0]
    name = getattr(obj, "__qualname__", "")
    if getattr(obj, "__module__", "").partition(".")[0] == "rushlight" and name:
        return ".".join(torch_name(obj.__module__, name)), obj
    return full_name(obj), obj


def _allowed() -> dict[str, Any]:
    from rushlight._weights_only_unpickler import user_allowed

    return user_allowed


def add_safe_globals(safe_globals: list) -> None:
    """Lets load(weights_only=True) use these classes and functions."""
    _allowed().update(_as_named(obj) for obj in safe_globals)


def get_safe_globals() -> list:
    """The classes and functions that add_safe_globals named."""
    return [obj if _as_named(obj)[0] == name else (obj, name) for name, obj in _allowed().items()]


def clear_safe_globals() -> None:
    """Takes back every add_safe_globals."""
    _allowed().clear()


class safe_globals:
    """Inside the block, load(weights_only=True) may also use these classes and functions."""

    def __init__(self, safe_globals: list) -> None:
        self.names = safe_globals

    def __enter__(self) -> None:
        self.before = dict(_allowed())
        add_safe_globals(self.names)

    def __exit__(self, *error: object) -> None:
        clear_safe_globals()
        _allowed().update(self.before)


class skip_data:
    """Inside the block, save writes zeros for the data of tensors and load leaves it uninitialised."""

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        if materialize_fake_tensors:
            raise NotImplementedError(
                "skip_data(materialize_fake_tensors=True): Rushlight has no fake tensors"
            )

    def __enter__(self) -> None:
        self.before = _options.skip_data
        _options.skip_data = True

    def __exit__(self, *error: object) -> None:
        _options.skip_data = self.before


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """The names a checkpoint uses that load(weights_only=True) would refuse."""
    import pickletools

    from rushlight._weights_only_unpickler import Unpickler, renamed

    with open(f, "rb") if isinstance(f, (str, os.PathLike)) else contextlib.nullcontext(f) as file:
        if file.read(4) != b"PK\3\4":
            raise ValueError("Expected input to be a checkpoint returned by torch.save")
        file.seek(0)
        data = ArchiveReader(file).read("data.pkl")
    machine = Unpickler(io.BytesIO())
    names = {argument for code, argument, _ in pickletools.genops(data) if code.name == "GLOBAL"}
    unsafe = []
    for module, name in sorted(renamed(*str(each).split(" ", 1)) for each in names):
        try:
            machine.find(module, name)
        except (pickle.UnpicklingError, NotImplementedError):
            unsafe.append(f"{module}.{name}")
    return unsafe


def get_default_load_endianness() -> LoadEndianness | None:
    """The byte order assumed of a file that does not say its own; None for little."""
    return config.load.endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Says which byte order to assume of a file that does not say its own."""
    if not isinstance(endianness, LoadEndianness) and endianness is not None:
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    config.load.endianness = endianness


def get_default_mmap_options() -> int:
    """How load(mmap=True) maps files: MAP_PRIVATE or MAP_SHARED."""
    return config.load.mmap_flags


class set_default_mmap_options:
    """Says how load(mmap=True) maps files, for good or inside a block: with mmap.MAP_PRIVATE what is written
    to tensors stays in memory, with mmap.MAP_SHARED it goes to the file."""

    def __init__(self, flags: int) -> None:
        if flags not in (config.MAP_PRIVATE, config.MAP_SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or "
                f"mmap.MAP_SHARED, but got {flags}"
            )
        self.prev = config.load.mmap_flags
        config.load.mmap_flags = flags

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        config.load.mmap_flags = self.prev


def get_crc32_options() -> bool:
    """Whether save computes checksums."""
    return config.save.compute_crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """Says whether save computes checksums, which is how load notices damage."""
    config.save.compute_crc32 = compute_crc32
