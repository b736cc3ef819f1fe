"""torch's checkpoint formats before 1.6: several pickles followed by raw storages, and a tar archive of such.

The first is written on request (`_use_new_zipfile_serialization=False`) and read, the second only read.
"""

from __future__ import annotations

import contextlib
import io
import pickle
import struct
import sys
import tarfile
from collections.abc import Callable
from typing import Any

from rushlight import _C, _utils
from rushlight._untyped_storage import as_ever
from rushlight.storage import TypedStorage, UntypedStorage

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001


def save_legacy(obj: object, file: Any, pickle_module: Any, protocol: int) -> None:
    """Writes the pickles, then each storage as its number of elements and its bytes."""
    from rushlight._checkpoint_pickle import Storages, make_pickler, memory_of

    storages = Storages()
    sizes: dict[str, int] = {}

    def persistent_id(thing: Any) -> tuple | None:
        described = storages.describe(thing)
        if described is None:
            return None
        sizes[described[2]] = described[4]
        return (*described, None)

    system = {
        "protocol_version": PROTOCOL_VERSION,
        "little_endian": sys.byteorder == "little",
        "type_sizes": {"short": 2, "int": 4, "long": 4},
    }
    for header in (MAGIC_NUMBER, PROTOCOL_VERSION, system):
        pickle_module.dump(header, file, protocol=protocol)
    make_pickler(pickle_module, persistent_id, file, protocol).dump(obj)
    pickle_module.dump(sorted(storages.storages), file, protocol=protocol)
    for key in sorted(storages.storages):
        file.write(struct.pack("<q", sizes[key]))
        file.write(memory_of(storages.storages[key]))


def load_legacy(file: Any, map_location: Any, make: Callable) -> Any:
    """Reads either of the old formats."""
    start = file.tell()
    if start == 0:
        with contextlib.suppress(tarfile.TarError):
            try:
                return _load_tar(file, map_location, make)
            except (LookupError, TypeError, ValueError, AttributeError, EOFError, struct.error) as error:
                raise RuntimeError(f"the records of the checkpoint are damaged: {error}") from error
        file.seek(start)
    unknown = _no_storages
    if make(file, unknown).load() != MAGIC_NUMBER:
        raise RuntimeError("Invalid magic number; corrupt file?")
    version = make(file, unknown).load()
    if version != PROTOCOL_VERSION:
        raise RuntimeError(f"Invalid protocol version: {version}")
    system = make(file, unknown).load()
    if not isinstance(system, dict):
        raise RuntimeError("the checkpoint does not say how it was written; corrupt file?")
    storages = _Deferred(map_location)
    result = make(file, storages.persistent_load).load()
    keys = make(file, unknown).load()
    if not isinstance(keys, list):
        raise RuntimeError("the checkpoint does not list its storages; corrupt file?")
    for key in keys:
        storages.read(file, key)
    storages.finish(bool(system.get("little_endian", True)))
    return result


def _no_storages(pid: Any) -> Any:
    raise pickle.UnpicklingError("the header of the checkpoint refers to a storage")


class _Deferred:
    """Storages that are named in the pickle before their bytes come: memory now, contents later."""

    def __init__(self, map_location: Any) -> None:
        from rushlight._checkpoint_devices import restore_location

        self.restore = restore_location(map_location)
        self.read_into: dict[str, tuple[UntypedStorage, _C.dtype]] = {}
        self.placed: dict[str, UntypedStorage] = {}

    def persistent_load(self, pid: Any) -> Any:
        from rushlight.serialization import storage_dtype

        if type(pid) is not tuple or not pid:
            raise pickle.UnpicklingError(f"the pickle is damaged: {pid} does not describe a storage")
        kind_of_pid = pid[0].decode() if isinstance(pid[0], bytes) else pid[0]
        if kind_of_pid == "module":  # source code that old files carry; the class itself is what counts
            return pid[1]
        if kind_of_pid != "storage" or len(pid) != 6:
            raise RuntimeError(f"Unknown saved id type: {kind_of_pid}")
        kind, key, location, count, view = pid[1:]
        key, location = (each.decode() if isinstance(each, bytes) else each for each in (key, location))
        if type(key) is not str or type(location) is not str or type(count) is not int or count < 0:
            raise pickle.UnpicklingError(f"the pickle is damaged: {pid} does not describe a storage")
        dtype = storage_dtype(kind)
        if key not in self.read_into:
            memory = UntypedStorage(count * dtype.itemsize)
            self.read_into[key] = memory, dtype
            self.placed[key] = self.restore(memory, location)
        storage = self.placed[key]
        if view is not None:  # a storage that is part of another one
            if type(view) is not tuple or len(view) != 3 or not all(type(each) is int for each in view[1:]):
                raise pickle.UnpicklingError(f"the pickle is damaged: {view} is no part of a storage")
            _, offset, size = view
            begin, end = offset * dtype.itemsize, (offset + size) * dtype.itemsize
            storage = UntypedStorage._of(as_ever(storage._all()[begin:end].clone))
        return TypedStorage(wrap_storage=storage, dtype=dtype, _internal=True)

    def read(self, file: Any, key: Any) -> None:
        from rushlight._checkpoint_pickle import memory_of

        key = key.decode() if isinstance(key, bytes) else key
        if type(key) is not str or key not in self.read_into:
            raise RuntimeError(f"the checkpoint has data of an unknown storage {key}; corrupt file?")
        storage, dtype = self.read_into[key]
        header = file.read(8)
        if len(header) < 8:
            raise RuntimeError(
                f"unexpected EOF, expected {8 - len(header)} more bytes. The file might be corrupted."
            )
        if struct.unpack("<q", header)[0] * dtype.itemsize != storage.nbytes():
            raise RuntimeError(f"unexpected size of storage {key}; the file is truncated or corrupt")
        data = file.read(storage.nbytes())
        if len(data) != storage.nbytes():
            raise RuntimeError(
                f"unexpected EOF, expected {storage.nbytes() - len(data)} more bytes. The file might be "
                "corrupted."
            )
        if data:
            memory_of(storage)[:] = data

    def finish(self, little_endian: bool) -> None:
        """Brings the contents to storages that are elsewhere."""
        for key, (storage, dtype) in self.read_into.items():
            if little_endian != (sys.byteorder == "little"):
                storage.byteswap(dtype)
            if self.placed[key] != storage and self.placed[key].device.type != "meta":
                self.placed[key].copy_(storage)


def _load_tar(file: Any, map_location: Any, make: Callable) -> Any:
    from rushlight._checkpoint_devices import restore_location
    from rushlight._checkpoint_pickle import memory_of
    from rushlight.serialization import storage_dtype

    restore = restore_location(map_location)
    storages: dict[Any, TypedStorage] = {}
    tensors: dict[Any, _C.Tensor] = {}

    def lookup(pid: Any) -> Any:
        return tensors[int(pid)] if isinstance(pid, (int, str)) else pid[1]

    with tarfile.open(fileobj=file, mode="r:") as archive:

        def member(name: str) -> io.BytesIO:
            found = archive.extractfile(archive.getmember(name))
            if found is None:
                raise RuntimeError(f"the checkpoint's record {name} is not a file")
            return io.BytesIO(found.read())

        stream = member("storages")
        for _ in range(make(stream, _no_storages).load()):
            key, location, kind = make(stream, _no_storages).load()
            dtype = storage_dtype(kind)
            (count,) = struct.unpack("<q", stream.read(8))
            if not 0 <= count * dtype.itemsize <= len(stream.getbuffer()) - stream.tell():
                raise RuntimeError("the checkpoint's storages are truncated")
            memory = UntypedStorage(count * dtype.itemsize)
            if count:
                memory_of(memory)[:] = stream.read(memory.nbytes())
            storages[key] = TypedStorage(wrap_storage=restore(memory, location), dtype=dtype, _internal=True)
        for target, root, offset, size in make(stream, _no_storages).load() or ():
            whole = storages[root]
            item = whole.dtype.itemsize
            part = whole._untyped_storage._all()[offset * item : (offset + size) * item]
            storages[target] = TypedStorage(
                wrap_storage=UntypedStorage._of(part.clone()), dtype=whole.dtype, _internal=True
            )

        stream = member("tensors")
        for _ in range(make(stream, _no_storages).load()):
            key, storage_id, _ = make(stream, _no_storages).load()
            (ndim,) = struct.unpack("<i4x", stream.read(8))
            if not 0 <= ndim <= 64:
                raise RuntimeError("the checkpoint's tensors are corrupt")
            size = struct.unpack(f"<{ndim}q", stream.read(8 * ndim))
            stride = struct.unpack(f"<{ndim}q", stream.read(8 * ndim))
            (offset,) = struct.unpack("<q", stream.read(8))
            tensors[key] = _utils._rebuild_tensor(storages[storage_id], offset, size, stride)

        return make(member("pickle"), lookup).load()
