"""Files as streams: their paths, the open files, their contents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rushlight.utils.data.datapipes._decorator import functional_datapipe
from rushlight.utils.data.datapipes.datapipe import IterDataPipe
from rushlight.utils.data.datapipes.iter.utils import IterableWrapperIterDataPipe
from rushlight.utils.data.datapipes.utils.common import (
    get_file_binaries_from_pathnames,
    get_file_pathnames_from_root,
)

__all__ = ["FileListerIterDataPipe", "FileOpenerIterDataPipe", "StreamReaderIterDataPipe"]


class _OfLength(IterDataPipe):
    """A stream whose length is told, or unknown with -1."""

    length = -1

    def __len__(self) -> int:
        if self.length == -1:
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return self.length


@functional_datapipe("list_files")
class FileListerIterDataPipe(_OfLength):
    """The paths of the files in directories."""

    def __init__(
        self,
        root: str | Sequence[str] | IterDataPipe = ".",
        masks: str | list[str] = "",
        *,
        recursive: bool = False,
        abspath: bool = False,
        non_deterministic: bool = False,
        length: int = -1,
    ) -> None:
        roots: Any = [root] if isinstance(root, str) else root
        self.datapipe = roots if isinstance(roots, IterDataPipe) else IterableWrapperIterDataPipe(roots)
        self.masks, self.recursive, self.abspath = masks, recursive, abspath
        self.non_deterministic, self.length = non_deterministic, length

    def __iter__(self) -> Iterator[str]:
        for path in self.datapipe:
            yield from get_file_pathnames_from_root(
                path, self.masks, self.recursive, self.abspath, self.non_deterministic
            )


@functional_datapipe("open_files")
class FileOpenerIterDataPipe(_OfLength):
    """Each path with its file, open."""

    def __init__(
        self, datapipe: Iterable[str], mode: str = "r", encoding: str | None = None, length: int = -1
    ) -> None:
        if mode not in ("b", "t", "rb", "rt", "r"):
            raise ValueError(f"Invalid mode {mode}")
        if "b" in mode and encoding is not None:
            raise ValueError("binary mode doesn't take an encoding argument")
        self.datapipe, self.mode, self.encoding, self.length = datapipe, mode, encoding, length

    def __iter__(self) -> Iterator:
        yield from get_file_binaries_from_pathnames(self.datapipe, self.mode, self.encoding)


@functional_datapipe("read_from_stream")
class StreamReaderIterDataPipe(IterDataPipe):
    """Each path with the contents of its file, in pieces of `chunk` bytes if given."""

    def __init__(self, datapipe: IterDataPipe, chunk: int | None = None) -> None:
        self.datapipe, self.chunk = datapipe, chunk

    def __iter__(self) -> Iterator:
        for path, stream in self.datapipe:
            while True:
                data = stream.read(self.chunk)
                if not data:
                    stream.close()
                    break
                yield path, data
