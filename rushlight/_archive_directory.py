"""The directory of a zip archive, read and refused as the library that torch reads archives with does."""

from __future__ import annotations

import struct
from typing import IO, NamedTuple

END, LOCATOR, WIDE_END, ENTRY = 22, 20, 56, 46  # the sizes of records
CORRUPT = "invalid header or archive is corrupted"
SEVERAL_DISKS = "unsupported multidisk archive"
_MOST = 0xFFFFFFFF


class Record(NamedTuple):
    """Where a record is and what it is made of."""

    name: bytes
    header: int  # the position of its local header
    size: int
    packed: int  # the size of the bytes in the file
    method: int  # 0: as they are, 8: deflated
    checksum: int
    entry: int  # the position of its entry in the directory


class DamagedDirectory(Exception):
    """The directory cannot be read, for the reason that the message gives."""


def read_directory(file: IO[bytes], length: int) -> list[Record]:
    """The records in the order of the directory."""
    if length < END:
        raise DamagedDirectory("not a ZIP archive")
    end = _find_end(file, length)
    disk, first_disk, here, count, size, start = struct.unpack("<4x4HII", _at(file, end, 20))
    if end >= LOCATOR + WIDE_END:
        signature, place, disks = struct.unpack("<I4xQI", _at(file, end - LOCATOR, LOCATOR))
        if signature == 0x07064B50:
            if place > length - WIDE_END:
                raise DamagedDirectory("not a ZIP archive")
            wide = _at(file, place, WIDE_END)
            if wide[:4] == b"PK\6\6":
                own, disk, first_disk, here, count, size, start = struct.unpack("<4xQ4xIIQQQQ", wide)
                if own < WIDE_END - 12:
                    raise DamagedDirectory(CORRUPT)
                if disks != 1:
                    raise DamagedDirectory(SEVERAL_DISKS)
                if max(count, here) > _MOST:
                    raise DamagedDirectory("too many files")
                if size > _MOST:
                    raise DamagedDirectory("unsupported central directory size")
    if count != here or ((disk | first_disk) and (disk, first_disk) != (1, 1)):
        raise DamagedDirectory(SEVERAL_DISKS)
    if size < count * ENTRY or start + size > length:
        raise DamagedDirectory(CORRUPT)
    return _entries(_at(file, start, size), count, start, disk, length)


def _at(file: IO[bytes], place: int, size: int) -> bytes:
    file.seek(place)
    data = file.read(size)
    if len(data) != size:
        raise DamagedDirectory("file read failed")
    return data


def _find_end(file: IO[bytes], length: int) -> int:
    """The last place where an end record may begin; a comment behind it has at most 65535 bytes."""
    start = max(length - 65535 - END, 0)
    found = _at(file, start, length - start).rfind(b"PK\5\6", 0, length - start - END + 4)
    if found < 0:
        raise DamagedDirectory("failed finding central directory")
    return start + found


def _entries(data: bytes, count: int, start: int, disk: int, length: int) -> list[Record]:
    records, at = [], 0
    for _ in range(count):
        left = len(data) - at
        if left < ENTRY or data[at : at + 4] != b"PK\1\2":
            raise DamagedDirectory(CORRUPT)
        fields = struct.unpack_from("<4x4xHH4xIIIHHHH6xI", data, at)
        flags, method, checksum, packed, size, name, extra, comment, own_disk, header = fields
        total = ENTRY + name + extra + comment
        names = data[at + ENTRY : at + ENTRY + name]
        if _MOST in (packed, size, header):
            wide = data[at + ENTRY + name : at + ENTRY + name + extra]
            size, packed, header = _wide_fields(wide, size, packed, header)
        elif (not method and size != packed) or (size and not packed):
            raise DamagedDirectory(CORRUPT)
        if own_disk == 0xFFFF or own_disk not in (disk, 1):
            raise DamagedDirectory(SEVERAL_DISKS)
        if header + 30 + packed > length:
            raise DamagedDirectory(CORRUPT)
        if flags & 0x2000:
            raise DamagedDirectory("unsupported encryption")
        if total > left:
            raise DamagedDirectory(CORRUPT)
        records.append(Record(names, header, size, packed, method, checksum, start + at))
        at += total
    return records


def _wide_fields(extra: bytes, *narrow: int) -> list[int]:
    """Sizes and place that do not fit into 32 bits, from the field of an entry that has them."""
    while len(extra) >= 4:
        kind, size = struct.unpack_from("<HH", extra)
        if size + 4 > len(extra):
            break
        if kind == 1:
            values = iter(struct.unpack_from(f"<{size // 8}Q", extra, 4))
            return [next(values, value) if value == _MOST else value for value in narrow]
        extra = extra[4 + size :]
    raise DamagedDirectory(CORRUPT)
