"""Opens a library, after it has been told that it has no unwind tables if they are gone.

objcopy takes the tables out and leaves the program header that points to them; torch, for one, follows those
of all libraries in its process when it looks for a stack.
"""

import ctypes
import struct
import sys

GNU_EH_FRAME = struct.pack("<I", 0x6474E550)
TYPE_AND_SIZE = struct.Struct("<4s28xQ")

with open(sys.argv[1], "r+b") as file:
    start = file.read(64)
    if start[:6] == b"\x7fELF\x02\x01":  # 64 bits, little endian
        (headers,) = struct.unpack_from("<Q", start, 32)
        size, count = struct.unpack_from("<HH", start, 54)
        for at in range(headers, headers + size * count, size):
            file.seek(at)
            if TYPE_AND_SIZE.unpack(file.read(TYPE_AND_SIZE.size)) == (GNU_EH_FRAME, 0):
                file.seek(at)
                file.write(bytes(4))  # PT_NULL: a header that is to be ignored

ctypes.CDLL(sys.argv[1])
