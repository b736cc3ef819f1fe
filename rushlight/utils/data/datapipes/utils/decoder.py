"""Decoding files by their extension. ``Decoder`` is where to start: it asks its handlers in turn."""

from __future__ import annotations

import io
import json
import os.path
import pickle
import tempfile
from collections.abc import Callable, Iterable
from typing import Any

import rushlight
from rushlight.utils.data.datapipes.utils.common import StreamWrapper

__all__ = [
    "Decoder",
    "ImageHandler",
    "MatHandler",
    "audiohandler",
    "basichandlers",
    "extension_extract_fn",
    "handle_extension",
    "imagehandler",
    "mathandler",
    "videohandler",
]

_TEXT = {"txt", "text", "transcript"}
_NUMBER = {"cls", "cls2", "class", "count", "index", "inx", "id"}


def basichandlers(extension: str, data: Any) -> Any:
    """Text, whole numbers, JSON, pickles and tensors by their extension; None for other files.

    >>> basichandlers("json", b"[1, 2]")
    [1, 2]
    """
    if extension in _TEXT:
        return data.decode("utf-8")
    if extension in _NUMBER:
        try:
            return int(data)
        except ValueError:
            return None
    if extension in {"json", "jsn"}:
        return json.loads(data)
    if extension in {"pyd", "pickle"}:
        return pickle.loads(data)
    if extension == "pt":
        return rushlight.load(io.BytesIO(data))
    return None


def handle_extension(extensions: str, f: Callable[[Any], Any]) -> Callable[[str, Any], Any]:
    """A handler that calls ``f`` for files whose name ends in one of the extensions.

    >>> handle_extension("bin raw", len)("raw", b"123")
    3
    """
    wanted = [extension.split(".") for extension in extensions.lower().split()]

    def handler(extension: str, data: Any) -> Any:
        parts = extension.lower().split(".")
        for target in wanted:
            if len(target) <= len(parts) and parts[-len(target) :] == target:
                return f(data)
        return None

    return handler


imagespecs = {
    f"{kind}{mode}{size}": (made, "uint8" if size else "float", mode)
    for kind, made in (("", "numpy"), ("torch", "torch"))
    for size in ("8", "")
    for mode in ("l", "rgb", "rgba")
}
imagespecs |= {"torch": ("torch", "float", "rgb")}
imagespecs |= {
    name: ("pil", None, mode)  # type: ignore[misc]
    for name, mode in (("pill", "l"), ("pil", "rgb"), ("pilrgb", "rgb"), ("pilrgba", "rgba"))
}
_IMAGES = {"jpg", "jpeg", "png", "ppm", "pgm", "pbm", "pnm"}


class ImageHandler:
    """Images as arrays, tensors or objects of Pillow: ``imagespecs`` lists how they can be asked for."""

    def __init__(self, imagespec: str) -> None:
        if imagespec not in imagespecs:
            raise AssertionError(f"unknown image specification: {imagespec}")
        self.imagespec = imagespec.lower()

    def __call__(self, extension: str, data: Any) -> Any:
        if extension.lower() not in _IMAGES:
            return None
        try:
            import numpy as np
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                "Package `numpy` is required to be installed for default image decoder."
                "Please use `pip install numpy` to install the package"
            ) from error
        try:
            import PIL.Image
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                "Package `PIL` is required to be installed for default image decoder."
                "Please use `pip install Pillow` to install the package"
            ) from error
        kind, dtype, mode = imagespecs[self.imagespec]
        with io.BytesIO(data) as stream:
            image = PIL.Image.open(stream)
            image.load()
            image = image.convert(mode.upper())
        if kind == "pil":
            return image
        array = np.asarray(image)
        if array.dtype != np.uint8:
            raise AssertionError(f"numpy image array should be type uint8, but got {array.dtype}")
        if kind == "numpy":
            return array if dtype == "uint8" else array.astype("f") / 255.0
        channels = np.array(array.transpose(2, 0, 1) if array.ndim == 3 else array)
        tensor = rushlight.from_numpy(channels)
        return tensor if dtype == "uint8" else tensor.float() / 255.0


def imagehandler(imagespec: str) -> ImageHandler:
    """A handler of images."""
    return ImageHandler(imagespec)


_VIDEOS = {"mp4", "ogv", "mjpeg", "avi", "mov", "h264", "mpg", "webm", "wmv"}
_SOUNDS = {"flac", "mp3", "sox", "wav", "m4a", "ogg", "wma"}


def _missing(package: str, what: str) -> ModuleNotFoundError:
    return ModuleNotFoundError(
        f"Package `{package}` is required to be installed for default {what} file loader."
        f"Please use `pip install {package}`to install the package"
    )


def videohandler(extension: str, data: Any) -> Any:
    """Videos, through torchvision."""
    if extension not in _VIDEOS:
        return None
    try:
        import torchvision.io
    except ImportError as error:
        raise _missing("torchvision", "video") from error
    return _from_file(torchvision.io.read_video, extension, data)


def audiohandler(extension: str, data: Any) -> Any:
    """Sounds, through torchaudio."""
    if extension not in _SOUNDS:
        return None
    try:
        import torchaudio
    except ImportError as error:
        raise _missing("torchaudio", "audio") from error
    return _from_file(torchaudio.load, extension, data)


def _from_file(read: Callable[[str], Any], extension: str, data: bytes) -> Any:
    """What a library reads that wants the name of a file."""
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, f"file.{extension}")
        with open(path, "wb") as file:
            file.write(data)
        return read(path)


class MatHandler:
    """Files of MATLAB, through SciPy."""

    def __init__(self, **loadmat_kwargs: Any) -> None:
        try:
            import scipy.io
        except ImportError as error:
            raise _missing("scipy", "mat") from error
        self.sio, self.loadmat_kwargs = scipy.io, loadmat_kwargs

    def __call__(self, extension: str, data: Any) -> Any:
        if extension != "mat":
            return None
        with io.BytesIO(data) as stream:
            return self.sio.loadmat(stream, **self.loadmat_kwargs)


def mathandler(**loadmat_kwargs: Any) -> MatHandler:
    """A handler of files of MATLAB."""
    return MatHandler(**loadmat_kwargs)


def extension_extract_fn(pathname: str) -> str:
    """The extension of a file, without its dot.

    >>> extension_extract_fn("a/b.tar.gz")
    'gz'
    """
    return os.path.splitext(pathname)[1].removeprefix(".")


class Decoder:
    """Decodes pairs of a path and a stream or bytes: the first handler that knows the extension does it.

    >>> Decoder(basichandlers)([("a.txt", b"hello")])
    {'a.txt': 'hello'}
    """

    def __init__(
        self, *handler: Callable[[str, Any], Any], key_fn: Callable[[str], str] = extension_extract_fn
    ):
        self.handlers: list[Callable[[str, Any], Any]] = list(handler)
        self.key_fn = key_fn

    def add_handler(self, *handler: Callable[[str, Any], Any] | None) -> None:
        """Ask these as well, after those that are there."""
        if not handler:
            return
        self.handlers.extend(handler)  # type: ignore[arg-type]

    @staticmethod
    def _is_stream_handle(data: Any) -> bool:
        inner = data.file_obj if isinstance(data, StreamWrapper) else data
        return isinstance(inner, (io.BufferedIOBase, io.RawIOBase))

    def decode1(self, key: str, data: Any) -> Any:
        """One file's contents; bytes that nobody knows stay bytes."""
        if not data:
            return data
        for handler in self.handlers:
            result = handler(key, data)
            if result is not None:
                return result
        return data

    def decode(self, data: Any) -> dict[str, Any]:
        """The contents of each file by its path."""
        result = {}
        pairs: Iterable[Any] = [data] if isinstance(data, tuple) and len(data) == 2 else data
        for key, value in pairs:
            if key[0] == "_":
                if isinstance(value, bytes):
                    value = value.decode("utf-8")
                result[key] = value
                continue
            if self._is_stream_handle(value):
                stream, value = value, value.read()
                stream.close()
            result[key] = self.decode1(self.key_fn(key), value)
        return result

    def __call__(self, data: Any) -> dict[str, Any]:
        return self.decode(data)
