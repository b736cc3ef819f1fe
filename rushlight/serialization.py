"""`save` and `load`: torch's checkpoint format, written and read.

A checkpoint is a zip archive (rushlight/_archive.py) with a pickle in which storages are numbers, and a
record of bytes for each storage. The pickle uses torch's names for everything, so that torch reads our files
and we read torch's: `save` translates names on the way out, `load` on the way in. The two older formats of
torch are in rushlight/_legacy_format.py.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

from rushlight import _C, _serialization_names
from rushlight._archive import ArchiveReader, ArchiveWriter
from rushlight._checkpoint_devices import (
    default_restore_location,
    location_tag,
    register_package,
    restore_location,
    to_meta,
)
from rushlight._checkpoint_pickle import Storages, find_name, make_pickler, memory_of, torch_name
from rushlight._checkpoint_pickle import _get_layout as _get_layout
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
from rushlight.storage import TypedStorage, UntypedStorage
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

for _moved in (SourceChangeWarning, StorageType, default_restore_location, location_tag, register_package):
    _moved.__module__ = __name__


# For annotations; libraries import them.
FILE_LIKE = FileLike = Any  # a path or a file object
MAP_LOCATION = Any  # None, a device, a dict of devices, or a function of (storage, location)


def __getattr__(name: str) -> Any:
    if name in _serialization_names.FURTHER:
        return getattr(_serialization_names, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


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
        storages = Storages()
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
                return _load_archive(archive, map_location, make, weights_only)
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

            kind = f"type object '{f.__name__}'" if isinstance(f, type) else f"'{type_name(f)}' object"
            raise AttributeError(
                f"{kind} has no attribute '{needed}'. You can only torch.load from a file "
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


def _load_archive(archive: ArchiveReader, map_location: Any, make: Callable, restricted: bool) -> Any:
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
            storage = _read_storage(archive, f"data/{key}", count * dtype.itemsize, restore is to_meta)
            if swap:
                storage.byteswap(dtype)
            loaded[key] = TypedStorage(wrap_storage=restore(storage, location), dtype=dtype, _internal=True)
        return loaded[key]

    # What is wrong with a damaged pickle is said as torch says it, which does not look at checksums, if
    # nothing but weights can come of it; it is never returned.
    data = archive.read("data.pkl", check=not restricted)
    try:
        result = make(io.BytesIO(data), persistent_load).load()
    except Exception as error:
        if not archive.fits("data.pkl", data):
            error.add_note("The file is damaged: the checksum of data.pkl does not fit.")
        raise
    archive.check("data.pkl", data)
    return result


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
