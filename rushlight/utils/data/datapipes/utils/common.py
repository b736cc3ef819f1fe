"""Files as streams, and checks of functions given to steps."""

from __future__ import annotations

import fnmatch
import functools
import inspect
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from io import IOBase
from typing import Any, ClassVar

__all__ = [
    "StreamWrapper",
    "get_file_binaries_from_pathnames",
    "get_file_pathnames_from_root",
    "match_masks",
    "validate_input_col",
    "validate_pathname_binary_tuple",
]


def validate_input_col(fn: Callable, input_col: Any) -> None:
    """Raises unless fn can be called with so many samples of a row."""
    try:
        parameters = inspect.signature(fn).parameters.values()
    except ValueError:  # written in C
        return
    given = len(input_col) if isinstance(input_col, (list, tuple)) else 1
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = [p for p in positional if p.default is p.empty]
    name = getattr(fn, "__name__", repr(fn))
    for p in parameters:
        if p.kind is p.KEYWORD_ONLY and p.default is p.empty:
            raise ValueError(
                f"The function {name} takes keyword-only parameter {p.name}, which is not allowed."
            )
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        if len(needed) > given:
            raise ValueError(f"The function {name} takes {len(needed)} positional parameters, "
                             f"but {given} are required.")  # fmt: skip
        return
    if len(needed) > given or len(positional) < given:
        count = len(needed) if len(needed) > given else len(positional)
        raise ValueError(
            f"The function {name} takes {count} positional parameters, but {given} are required."
        )


def _check_unpickable_fn(fn: Callable) -> None:
    """Warns of functions that worker processes started afresh could not get."""
    if not callable(fn):
        raise TypeError(f"A callable function is expected, but {type(fn)} is provided.")
    if isinstance(fn, functools.partial):
        fn = fn.func
    name = getattr(fn, "__qualname__", "")
    kind = "Lambda" if name == "<lambda>" else "Local" if "<locals>" in name else ""
    if kind:
        warnings.warn(
            f"{kind} function is not supported by pickle, please use regular python function or "
            "functools.partial instead.",
            stacklevel=3,
        )


def match_masks(name: str, masks: str | list[str]) -> bool:
    """Whether a name matches any of the patterns; none given means yes."""
    if not masks:
        return True
    return any(fnmatch.fnmatch(name, mask) for mask in ([masks] if isinstance(masks, str) else masks))


def get_file_pathnames_from_root(
    root: str,
    masks: str | list[str],
    recursive: bool = False,
    abspath: bool = False,
    non_deterministic: bool = False,
) -> Iterable[str]:
    """The paths of the files in a directory, by name."""

    def failed(error: OSError) -> None:
        warnings.warn(f"{error.filename} : {error.strerror}", stacklevel=2)
        raise error

    if os.path.isfile(root):
        path = os.path.abspath(root) if abspath else root
        if match_masks(os.path.basename(path), masks):
            yield path
        return
    for place, folders, files in os.walk(root, onerror=failed):
        place = os.path.abspath(place) if abspath else place
        if not non_deterministic:
            files.sort()
            folders.sort()
        yield from (os.path.join(place, name) for name in files if match_masks(name, masks))
        if not recursive:
            break


def get_file_binaries_from_pathnames(
    pathnames: Iterable, mode: str, encoding: str | None = None
) -> Iterator[tuple[str, StreamWrapper]]:
    """Each path with its file, open."""
    mode = f"r{mode}" if mode in ("b", "t") else mode
    for path in pathnames:
        if not isinstance(path, str):
            raise TypeError(f"Expected string type for pathname, but got {type(path)}")
        yield path, StreamWrapper(open(path, mode, encoding=encoding))  # noqa: SIM115


def validate_pathname_binary_tuple(data: Any) -> None:
    """Raises unless data is a path and a stream."""
    if not isinstance(data, tuple):
        raise TypeError(f"pathname binary data should be tuple type, but it is type {type(data)}")
    if len(data) != 2:
        raise TypeError(f"pathname binary stream tuple length should be 2, but got {len(data)}")
    if not isinstance(data[0], str):
        raise TypeError(f"pathname within the tuple should have string type pathname, but it is type "
                        f"{type(data[0])}")  # fmt: skip
    if not isinstance(data[1], (IOBase, StreamWrapper)):
        raise TypeError(
            f"binary stream within the tuple should have IOBase or its subclasses as type, but it is type "
            f"{type(data[1])}"
        )


class StreamWrapper:
    """A stream that closes itself when nobody holds it any more, and its parent after the last child.

    >>> import io
    >>> with StreamWrapper(io.BytesIO(b"abc")) as stream:
    ...     stream.read()
    b'abc'
    """

    session_streams: ClassVar[dict[Any, int]] = {}
    debug_unclosed_streams: ClassVar[bool] = False

    def __init__(self, file_obj: Any, parent_stream: Any = None, name: str | None = None) -> None:
        self.file_obj, self.parent_stream, self.name = file_obj, parent_stream, name
        self.child_counter = 0
        self.close_on_last_child = False
        if parent_stream is not None:
            if not isinstance(parent_stream, StreamWrapper):
                raise RuntimeError(f"Parent stream should be StreamWrapper, {type(parent_stream)} was given")
            parent_stream.child_counter += 1
        if StreamWrapper.debug_unclosed_streams:
            StreamWrapper.session_streams[self] = 1
        self.closed = False

    @classmethod
    def close_streams(cls, v: Any, depth: int = 0) -> None:
        """Closes the streams in nested lists, tuples and dictionaries, once nobody reads from them."""
        if depth > 10:
            return
        if isinstance(v, StreamWrapper):
            v.close()
        elif isinstance(v, dict):
            for entry in v.values():
                cls.close_streams(entry, depth + 1)
        elif isinstance(v, (list, tuple)):
            for entry in v:
                cls.close_streams(entry, depth + 1)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["file_obj"], name)

    def close(self, *args: Any, **kwargs: Any) -> None:
        """Closes the stream."""
        if self.closed:
            return
        if StreamWrapper.debug_unclosed_streams:
            StreamWrapper.session_streams.pop(self, None)
        parent = self.__dict__.get("parent_stream")
        if parent is not None:
            parent.child_counter -= 1
            if not parent.child_counter and parent.close_on_last_child:
                parent.close()
        self.file_obj.close(*args, **kwargs)
        self.closed = True

    def autoclose(self) -> None:
        """Closes the stream if no other reads from it, or else with the last one that does."""
        self.close_on_last_child = True
        if self.child_counter == 0:
            self.close()

    def __dir__(self) -> list[str]:
        own = [*self.__dict__, *StreamWrapper.__dict__, "close"]
        return sorted({*own, *dir(self.file_obj)})

    def __del__(self) -> None:
        if not self.__dict__.get("closed", True):
            self.close()

    def __enter__(self) -> StreamWrapper:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __iter__(self) -> Iterator:
        yield from self.file_obj

    def __next__(self) -> Any:
        return next(self.file_obj)

    def __repr__(self) -> str:
        return (
            f"StreamWrapper<{self.file_obj!r}>"
            if self.name is None
            else f"StreamWrapper<{self.name},{self.file_obj!r}>"
        )

    def __getstate__(self) -> Any:
        return self.file_obj

    def __setstate__(self, file_obj: Any) -> None:
        self.__init__(file_obj)  # type: ignore[misc]
