"""torch's checkpoint container: a zip archive of uncompressed records, each at a multiple of 64 bytes.

The padding is an extra field "FB" of the record's local header, and sizes and checksum follow the data, as
torch's own writer has it. Records so placed can be mapped into memory. _archive_directory.py reads the
directory.
"""

from __future__ import annotations

import mmap
import struct
import zlib
from typing import IO, Any

from rushlight._archive_directory import CORRUPT, DamagedDirectory, Record, read_directory

ALIGNMENT = 64
MAP_SHARED, MAP_PRIVATE = 1, 2
NEWEST = 10  # the last version of the format
LIMIT = 0xFFFFFFFF  # what does not fit goes into zip64 fields
_CORRUPT = (
    "This is an internal miniz error. If you are seeing this error, there is a high likelihood that your "
    "checkpoint file is corrupted. This can happen if the checkpoint was not saved properly, was transferred "
    "incorrectly, or the file was modified after saving."
)


class ArchiveWriter:
    """Writes records one after the other to a file that need not be seekable."""

    def __init__(self, file: Any, name: str, alignment: int = ALIGNMENT, checksums: bool = True) -> None:
        self.file, self.name = file, name
        self.alignment, self.checksums = alignment, checksums
        self.position = 0
        self.records: list[tuple[bytes, int, int, int]] = []  # name, checksum, size, where its header is

    def _put(self, data: Any) -> None:
        self.file.write(data)
        self.position += len(data)

    def write(self, record: str, data: Any) -> None:
        """Adds a record of bytes."""
        data = memoryview(data).cast("B")
        name = f"{self.name}/{record}".encode()
        size, start = len(data), self.position
        crc = zlib.crc32(data) if self.checksums else 0
        extra = struct.pack("<HHQQ", 1, 16, size, size) if size >= LIMIT else b""
        padding = -(start + 30 + len(name) + len(extra) + 4) % self.alignment
        extra += struct.pack("<2sH", b"FB", padding) + b"Z" * padding
        self._put(struct.pack("<4sHHHHHIIIHH", b"PK\3\4", 0, 0x808, 0, 0, 0, 0, 0, 0, len(name), len(extra)))
        self._put(name + extra)
        self._put(data)
        self._put(struct.pack("<4sIQQ" if size >= LIMIT else "<4sIII", b"PK\7\10", crc, size, size))
        self.records.append((name, crc, size, start))

    def close(self) -> None:
        """Writes the directory of the records."""
        directory = self.position
        for name, crc, size, start in self.records:
            large = [value for value in (size, size, start) if value >= LIMIT]
            extra = struct.pack(f"<HH{len(large)}Q", 1, 8 * len(large), *large) if large else b""
            header = struct.pack(
                "<4sHHHHHHIIIHHHHHII", b"PK\1\2", 0, 0, 0x808, 0, 0, 0, crc,
                min(size, LIMIT), min(size, LIMIT), len(name), len(extra), 0, 0, 0, 0, min(start, LIMIT),
            )  # fmt: skip
            self._put(header + name + extra)
        end, count = self.position, len(self.records)
        length = end - directory
        self._put(
            struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 0x31E, 45, 0, 0, count, count, length, directory)
        )
        self._put(struct.pack("<4sIQI", b"PK\6\7", 0, end, 1))
        few, size, start = min(count, 0xFFFF), min(length, LIMIT), min(directory, LIMIT)
        self._put(struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, few, few, size, start, 0))


class ArchiveReader:
    """The records of an archive by name; `mapped` maps the file into memory instead of reading it."""

    def __init__(self, file: IO[bytes], mapped: bool = False, flags: int = MAP_PRIVATE) -> None:
        self.file = file
        self._length = file.seek(0, 2)
        try:
            records = read_directory(file, self._length)
        except DamagedDirectory as error:
            raise RuntimeError(
                f"PytorchStreamReader failed reading zip archive: {error}. {_CORRUPT}"
            ) from error
        first = records[0].name if records else b""
        if b"/" not in first:
            raise RuntimeError(
                "file in archive is not in a subdirectory: " + first.decode("utf-8", "replace")
            )
        self.name = first.partition(b"/")[0].decode("utf-8", "replace")
        self._records = {record.name.partition(b"/")[2]: record for record in records}
        self._check_version()
        try:
            self.names = [name.decode() for name in self._records]
        except UnicodeDecodeError as error:
            raise RuntimeError(
                f"PytorchStreamReader failed reading zip archive: {CORRUPT}. {_CORRUPT}"
            ) from error
        self.map = None
        self.shared = mapped and flags == MAP_SHARED
        if mapped:
            access = mmap.ACCESS_WRITE if self.shared else mmap.ACCESS_COPY
            self.map = mmap.mmap(file.fileno(), 0, access=access)

    def _check_version(self) -> None:
        record = ".data/version" if self.has_record(".data/version") else "version"
        if not self.has_record(record):
            raise RuntimeError(
                'Expected hasRecord("version") to be true, but got false.  (Could this error message be '
                "improved?  If so, please report an enhancement request to PyTorch.)"
            )
        text = self.read(record).decode("ascii", "replace").strip("\n\0")
        try:
            version = int(text)
        except ValueError:
            raise RuntimeError(f"Couldn't parse the version {text} as Long Long.") from None
        if not 1 <= version <= NEWEST:
            much = "maximum" if version > NEWEST else "minimum"
            advice = (
                "The version of your PyTorch installation may be too old, please upgrade PyTorch to latest "
                "version to mitigate this issue."
                if version > NEWEST
                else "Your PyTorch script module file is too old. Please regenerate it with latest version "
                "of PyTorch to mitigate this issue."
            )
            raise RuntimeError(
                f"Attempted to read a PyTorch file with version {version}, but the {much} supported version "
                f"for reading is {NEWEST if version > NEWEST else 1}. {advice}"
            )

    def has_record(self, record: str) -> bool:
        """Whether there is such a record."""
        return record.encode() in self._records

    def _info(self, record: str) -> Record:
        try:
            return self._records[record.encode()]
        except KeyError:
            raise RuntimeError(
                f"PytorchStreamReader failed locating file {record}: file not found. {_CORRUPT}"
            ) from None

    def size(self, record: str) -> int:
        """The number of bytes of a record."""
        return self._info(record).size

    def read(self, record: str, check: bool = True) -> bytes:
        """The bytes of a record, whose checksum fits unless nobody asked."""
        info = self._info(record)
        if info.size > self._length and not info.method:
            raise self._unreadable(record)
        if info.method:
            return self._inflated(record, info)
        data = bytearray(info.size)
        self.read_into(record, memoryview(data), check)
        return bytes(data)

    def check(self, record: str, data: bytes | memoryview) -> None:
        """Refuses bytes of a record that are not those that were written."""
        if not self.fits(record, data):
            raise self._unreadable(record)

    def fits(self, record: str, data: bytes | memoryview) -> bool:
        """Whether the checksum of a record is that of the bytes; it may have been written without one."""
        return self._info(record).checksum in (0, zlib.crc32(data))

    def _inflated(self, record: str, info: Record) -> bytes:
        self.file.seek(self.offset(record))
        try:
            data = zlib.decompress(self.file.read(info.packed), -15) if info.method == 8 else None
        except zlib.error as error:
            raise self._unreadable(record) from error
        if data is None or len(data) != info.size or zlib.crc32(data) != info.checksum:
            raise self._unreadable(record)
        return data

    def _unreadable(self, record: str, why: str = "file read failed") -> RuntimeError:
        return RuntimeError(f"PytorchStreamReader failed reading file {record}: {why}. {_CORRUPT}")

    def offset(self, record: str) -> int:
        """Where in the file the bytes of an uncompressed record begin."""
        info = self._info(record)
        self.file.seek(info.header)
        header = self.file.read(30)
        if len(header) != 30:
            raise self._unreadable(record)
        name, extra = struct.unpack("<26xHH", header)
        start = info.header + 30 + name + extra
        if header[:4] != b"PK\3\4" or start + info.packed > self._length:
            raise self._unreadable(record, CORRUPT)
        return start

    def read_into(self, record: str, buffer: memoryview, check: bool = True) -> None:
        """Fills a buffer of the record's size with its bytes, and checks them."""
        info = self._info(record)
        if info.method:
            buffer[:] = self.read(record)
            return
        self.file.seek(self.offset(record))
        filled = 0
        while filled < len(buffer):
            count = self.file.readinto(buffer[filled:])  # type: ignore[attr-defined]
            if not count:
                raise self._unreadable(record)
            filled += count
        if check:
            self.check(record, buffer)

    def mapped(self, record: str) -> memoryview | None:
        """The bytes of a record in the mapped file; None where they must be read instead."""
        info = self._info(record)
        if self.map is None or info.method or not info.size:
            return None
        start = self.offset(record)
        if start + info.size > len(self.map):
            raise self._unreadable(record)
        if start % 16:
            return None
        if self.shared and info.checksum:
            self._forget_checksum(info)
        return memoryview(self.map)[start : start + info.size]

    def _forget_checksum(self, info: Record) -> None:
        """A record that is written to through the mapping has no checksum any more."""
        assert self.map is not None
        self.map[info.entry + 16 : info.entry + 20] = bytes(4)
