"""What others import from torch.serialization beside `save` and `load`: questions about files, versions."""

from __future__ import annotations

import os
import tempfile
import warnings
from typing import Any

import rushlight
from rushlight._archive_names import _open_zipfile_reader, _open_zipfile_writer
from rushlight._legacy_format import MAGIC_NUMBER, PROTOCOL_VERSION
from rushlight.storage import STORAGE_NAMES
from rushlight.utils.serialization import config

# Found in torch.serialization, though not among its public names.
FURTHER = (
    "INT_SIZE", "LONG_SIZE", "MAGIC_NUMBER", "PROTOCOL_VERSION", "SHORT_SIZE", "STORAGE_KEY_SEPARATOR",
    "_get_storage_alignment", "_is_compressed_file", "_is_path", "_is_torchscript_zip", "_is_zipfile",
    "_maybe_decode_ascii", "_open_zipfile_reader", "_open_zipfile_writer", "_should_read_directly",
)  # fmt: skip
__all__ = ["MAGIC_NUMBER", "PROTOCOL_VERSION", "_open_zipfile_reader", "_open_zipfile_writer"]

LONG_SIZE, INT_SIZE, SHORT_SIZE = 4, 4, 2  # of the oldest format
STORAGE_KEY_SEPARATOR = ","


class SourceChangeWarning(Warning):
    """torch's warning about classes whose source has changed; files no longer carry their source."""


class StorageType:
    """The storage class that a checkpoint names, by its dtype."""

    def __init__(self, name: str) -> None:
        dtypes = {name: dtype for dtype, name in STORAGE_NAMES.items()}
        if name not in dtypes:
            raise KeyError(f'pickle storage type "{name}" is not recognized')
        self._dtype = dtypes[name]

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return self._dtype

    def __str__(self) -> str:
        return f"StorageType(dtype={self.dtype})"


def check_module_version_greater_or_equal(
    module: Any, req_version_tuple: tuple, error_if_malformed: bool = True
) -> bool:
    """Whether the version of a module is at least this tuple; what cannot be told is an error or passes."""
    try:
        words = zip(module.__version__.split("."), req_version_tuple)
        version = tuple(type(required)(word) for word, required in words)
    except Exception as error:
        text = (
            f"'{module.__name__}' module version string is malformed '{module.__version__}' and cannot be "
            f"compared with tuple {req_version_tuple!s}"
        )
        if error_if_malformed:
            raise RuntimeError(text) from error
        warnings.warn(f"{text}, but continuing assuming that requirement is met", stacklevel=2)
        return True
    return version >= req_version_tuple


def normalize_storage_type(storage_type: Any) -> Any:
    """The class of a storage under its name in the package."""
    return getattr(rushlight, storage_type.__name__)


def mkdtemp() -> Any:
    """A directory for the length of a block."""
    return tempfile.TemporaryDirectory()


def storage_to_tensor_type(storage: Any) -> Any:
    """The class of tensors of such a storage."""
    return getattr(rushlight, STORAGE_NAMES[storage.dtype].replace("Storage", "Tensor"))


def validate_cuda_device(location: str) -> int:
    """The number of the GPU that "cuda:1" names; an error if there is none."""
    if not str(location).startswith("cuda"):
        raise ValueError(f"Expected a cuda device, but got: {location}")
    if not rushlight.cuda.is_available():
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If "
            "you are running on a CPU-only machine, please use torch.load with "
            "map_location=torch.device('cpu') to map your storages to the CPU."
        )
    return rushlight.device(location).index or 0


def validate_hpu_device(location: str) -> int:
    """There are no such devices."""
    raise RuntimeError(
        "The HPU device module is not registered. If you are running on a CPU-only machine, please use "
        "torch.load with map_location=torch.device('cpu') to map your storages to the CPU."
    )


def _get_storage_alignment() -> int:
    return config.save.storage_alignment


def _is_path(name_or_buffer: Any) -> bool:
    return isinstance(name_or_buffer, (str, os.PathLike))


def _is_zipfile(f: Any) -> bool:
    """Whether a zip archive begins where the file stands."""
    start = f.tell()
    found = f.read(4) == b"PK\3\4"
    f.seek(start)
    return found


def _is_torchscript_zip(zip_file: Any) -> bool:
    """Whether an archive holds a TorchScript program."""
    return "constants.pkl" in zip_file.get_all_records()


def _is_compressed_file(f: Any) -> bool:
    return getattr(f, "__module__", None) == "gzip"


def _should_read_directly(f: Any) -> bool:
    """Whether the file is one of the operating system's."""
    if _is_compressed_file(f):
        return False
    try:
        return f.fileno() >= 0
    except (AttributeError, OSError):
        return False


def _maybe_decode_ascii(text: bytes | str) -> str:
    return text.decode("ascii") if isinstance(text, bytes) else text
