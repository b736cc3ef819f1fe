"""torch._C.PyTorchFileReader and PyTorchFileWriter: the records of a checkpoint, one by one."""

from __future__ import annotations

import contextlib
import os
import sys
import weakref
from typing import Any

from rushlight import _C
from rushlight._archive import ALIGNMENT, ArchiveReader, ArchiveWriter


class PyTorchFileWriter:
    """Writes records to a file, or to an object with `write`."""

    def __init__(self, file: Any, compute_crc32: bool = True, storage_alignment: int = ALIGNMENT) -> None:
        name = "archive"
        self._own = None
        if isinstance(file, (str, os.PathLike)):
            name = os.path.splitext(os.path.basename(os.fspath(file)))[0] or name
            file = self._own = open(file, "wb")  # noqa: SIM115
        self._archive: ArchiveWriter | None = ArchiveWriter(file, name, storage_alignment, compute_crc32)
        self._name, self._version, self._id = name, 3, ""
        self._written: set[str] = set()

    def write_record(self, name: str, data: Any, size: int) -> None:
        """Adds the first `size` bytes of `data`: bytes, text or a storage."""
        if self._archive is None:
            raise RuntimeError("the archive is closed: it has its directory already")
        if name in self._written:
            raise RuntimeError(f"Tried to serialize file twice: {name}")
        if isinstance(data, str):
            data = data.encode()
        elif hasattr(data, "data_ptr"):
            from rushlight._checkpoint_pickle import memory_of

            data = memory_of(getattr(data, "_untyped_storage", data))
        data = memoryview(data).cast("B")
        if not 0 <= size <= len(data):
            raise RuntimeError(f"record {name}: {size} bytes asked for, {len(data)} given")
        self._archive.write(name, data[:size])
        self._written.add(name)

    def write_record_metadata(self, name: str, size: int) -> None:
        """Adds a record of so many zeros, to be filled in later."""
        self.write_record(name, bytes(size), size)

    def set_min_version(self, version: int) -> None:
        """Says which version of the format a reader must know at least."""
        self._version = max(self._version, version)

    def archive_name(self) -> str:
        """The directory that the records are in."""
        return self._name

    def get_all_written_records(self) -> set[str]:
        """The names so far."""
        return set(self._written)

    def serialization_id(self) -> str:
        """The fingerprint, once the file is complete."""
        return self._id

    def write_end_of_file(self) -> None:
        """Adds the version, the byte order, the fingerprint and the directory."""
        from rushlight.serialization import _fingerprint

        assert self._archive is not None
        version = f"{self._version}\n"
        self.write_record(".data/version" if self._version >= 6 else "version", version, len(version))
        if "byteorder" not in self._written:
            self.write_record("byteorder", sys.byteorder, len(sys.byteorder))
        self._id = _fingerprint(self._archive)
        self.write_record(".data/serialization_id", self._id, len(self._id))
        self._archive.close()
        self._archive = None
        if self._own is not None:
            self._own.close()


class PyTorchFileReader:
    """Reads records from a file, or from an object with `read`, `seek` and `tell`."""

    def __init__(self, file: Any) -> None:
        if isinstance(file, (str, os.PathLike)):
            try:
                file = open(file, "rb")  # noqa: SIM115
            except OSError as error:
                raise RuntimeError(
                    f"open file failed because of errno {error.errno} on fopen: {error.strerror}, file path: "
                    f"{os.fspath(file)}"
                ) from None
            weakref.finalize(self, file.close)
        file.tell()
        self._archive = ArchiveReader(file)

    def get_record(self, name: str) -> bytes:
        """The bytes of a record."""
        return self._archive.read(name)

    def has_record(self, name: str) -> bool:
        """Whether there is such a record."""
        return self._archive.has_record(name)

    def get_all_records(self) -> list[str]:
        """The names."""
        return self._archive.names

    def get_record_size(self, name: str) -> int:
        """The number of bytes."""
        return self._archive.size(name)

    def get_record_offset(self, name: str) -> int:
        """Where in the file the bytes begin."""
        return self._archive.offset(name)

    def get_record_header_offset(self, name: str) -> int:
        """Where in the file the record's header begins."""
        return self._archive._info(name).header

    def serialization_id(self) -> str:
        """The fingerprint."""
        name = ".data/serialization_id"
        return self.get_record(name).decode() if self.has_record(name) else ""

    def get_storage_from_record(self, name: str, numel: int, dtype: Any) -> Any:
        """The bytes of a record as a tensor of so many elements."""
        if not isinstance(dtype, _C.dtype):  # a class of storages
            dtype = _C.uint8
        data = self.get_record(name)
        if numel * dtype.itemsize != len(data):
            raise RuntimeError(
                f"record size ({len(data)} bytes) does not match expected size ({numel * dtype.itemsize} "
                f"bytes = {numel} elements * {dtype.itemsize} bytes/element)"
            )
        return _C.from_bytes(data, dtype)


@contextlib.contextmanager
def _open_zipfile_writer(name_or_buffer: Any) -> Any:
    """A writer that completes the file at the end of the block."""
    writer = PyTorchFileWriter(name_or_buffer)
    yield writer
    writer.write_end_of_file()


@contextlib.contextmanager
def _open_zipfile_reader(name_or_buffer: Any) -> Any:
    """A reader, for a block."""
    yield PyTorchFileReader(name_or_buffer)
