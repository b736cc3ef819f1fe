"""Event files as TensorBoard reads them: records with a checksum, each an `Event` in protobuf's encoding.

`message` writes fields by number: an int becomes a varint, a float a double, `Single` a float, str and bytes
a string, a list of floats a packed array of doubles. `EventFile.write` frames one event.
"""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from typing import Any


class Single(float):
    """A number that is written with four bytes."""


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1  # a negative number takes all 64 bits
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def message(*fields: tuple[int, Any]) -> bytes:
    """A protobuf message of (number, value) pairs; None is left out.

    >>> from rushlight.utils.tensorboard._events import message
    >>> message((1, 150), (2, "hi"))
    b'\\x08\\x96\\x01\\x12\\x02hi'
    """
    out = bytearray()
    for number, value in fields:
        if value is None:
            continue
        if isinstance(value, (bool, int)):
            out += _varint(number << 3) + _varint(int(value))
        elif isinstance(value, Single):
            out += _varint(number << 3 | 5) + struct.pack("<f", value)
        elif isinstance(value, float):
            out += _varint(number << 3 | 1) + struct.pack("<d", value)
        else:
            if isinstance(value, str):
                value = value.encode()
            elif isinstance(value, list):
                value = struct.pack(f"<{len(value)}d", *value)
            out += _varint(number << 3 | 2) + _varint(len(value)) + value
    return bytes(out)


def _crc_table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _crc_table()


def masked_crc(data: bytes) -> int:
    """The checksum of the record format: CRC-32C, rotated and shifted."""
    crc, table = 0xFFFFFFFF, _TABLE
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


_count = 0
_count_lock = threading.Lock()


class EventFile:
    """One file of events in a directory, which is made. Several threads may write."""

    def __init__(self, directory: str, suffix: str = "") -> None:
        global _count
        os.makedirs(directory, exist_ok=True)
        with _count_lock:
            number, _count = _count, _count + 1
        now = int(time.time())
        name = f"events.out.tfevents.{now:010d}.{socket.gethostname()}.{os.getpid()}.{number}{suffix}"
        self.path = os.path.join(directory, name)
        self._file = open(self.path, "wb")  # noqa: SIM115 (closed by close)
        self._lock = threading.Lock()
        version = message((1, time.time()), (3, "brain.Event:2"), (10, message((1, "rushlight"))))
        self._record(version)

    def _record(self, event: bytes) -> None:
        length = struct.pack("<Q", len(event))
        with self._lock:
            self._file.write(length + struct.pack("<I", masked_crc(length)) + event)
            self._file.write(struct.pack("<I", masked_crc(event)))

    def write(self, value: bytes, step: int | None, walltime: float | None) -> None:
        """Adds the value of a summary."""
        when = time.time() if walltime is None else float(walltime)
        at = None if step is None else int(step)
        self._record(message((1, when), (2, at), (5, message((1, value)))))

    def purge(self, step: int) -> None:
        """Says that the program began again at `step`: what an earlier run wrote from there on is void."""
        log = message((1, 1))  # SessionLog.START
        self._record(message((1, time.time()), (2, step), (7, log)))

    def flush(self) -> None:
        """Writes what is in the buffer."""
        with self._lock:
            if not self._file.closed:
                self._file.flush()

    def close(self) -> None:
        """Ends the file."""
        with self._lock:
            self._file.close()
