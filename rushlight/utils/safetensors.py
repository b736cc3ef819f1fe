"""Tensors in safetensors files, through the library `safetensors` where it is installed.

Under `python -m rushlight` the library's own `safetensors.torch` works as it is. These functions do the same
without torch's name, and next to an installed torch.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import rushlight
from rushlight import _C

__all__ = ["load", "load_file", "load_model", "save", "save_file", "save_model"]

_DTYPES = {
    "F64": _C.float64, "F32": _C.float32, "F16": _C.float16, "BF16": _C.bfloat16, "I64": _C.int64,
    "I32": _C.int32, "I16": _C.int16, "I8": _C.int8, "U8": _C.uint8, "BOOL": _C.bool, "C64": _C.complex64,
    "U16": _C.uint16, "U32": _C.uint32, "U64": _C.uint64, "F8_E4M3": _C.float8_e4m3fn,
    "F8_E5M2": _C.float8_e5m2, "F8_E8M0": _C.float8_e8m0fnu,
}  # fmt: skip


def _library() -> Any:
    try:
        import safetensors
    except ImportError:
        raise ImportError("safetensors files need the library: pip install safetensors") from None
    if sys.byteorder != "little":
        raise NotImplementedError("safetensors files are read and written on little-endian machines only")
    return safetensors


def _described(tensors: dict[str, Any], library: Any) -> tuple[dict, list]:
    """What the library is told about the tensors, and the memory that must live until it has read it."""
    storages: dict[int, str] = {}
    described, kept = {}, []
    for name, tensor in tensors.items():
        if not isinstance(tensor, rushlight.Tensor):
            raise ValueError(f"Key `{name}` is invalid, expected torch.Tensor but received {type(tensor)}")
        if not tensor.is_contiguous():
            raise ValueError(
                f"You are trying to save a non contiguous tensor: `{name}` which is not allowed. Call "
                "`.contiguous()` before saving."
            )
        if tensor.dtype not in _DTYPES.values():
            raise ValueError(f"safetensors files have no dtype for {tensor.dtype} (of `{name}`)")
        other = storages.setdefault(tensor.untyped_storage()._cdata, name) if tensor.numel() else name
        if other != name:
            raise RuntimeError(
                f"Some tensors share memory, this will lead to duplicate memory on disk and potential "
                f"differences when loading them again: `{other}` and `{name}`. Use save_model, or clone one."
            )
        tensor = tensor.detach().cpu()
        kind, shape = str(tensor.dtype).removeprefix("torch."), list(tensor.shape)
        if hasattr(library, "TensorSpec"):
            where, length = tensor.data_ptr(), tensor.nbytes
            described[name] = library.TensorSpec(dtype=kind, shape=shape, data_ptr=where, data_len=length)
            kept.append(tensor)
        else:
            described[name] = {"dtype": kind, "shape": shape, "data": _C.to_bytes(tensor)}
    return described, kept


def save(tensors: dict[str, Any], metadata: dict[str, str] | None = None) -> bytes:
    """The bytes of a safetensors file with these tensors."""
    library = _library()
    described, _kept = _described(tensors, library)
    return library.serialize(described, metadata=metadata)


def save_file(tensors: dict[str, Any], filename: Any, metadata: dict[str, str] | None = None) -> None:
    """Writes tensors by name; the file takes its place when it is complete."""
    from rushlight.serialization import _open_for_writing

    data = save(tensors, metadata)
    with _open_for_writing(os.fspath(filename)) as file:
        file.write(data)


def load(data: bytes) -> dict[str, Any]:
    """The tensors in the bytes of a safetensors file."""
    tensors = {}
    for name, entry in _library().deserialize(data):
        if entry["dtype"] not in _DTYPES:
            raise NotImplementedError(f"`{name}` has the dtype {entry['dtype']}, which Rushlight lacks")
        dtype = _DTYPES[entry["dtype"]]
        tensors[name] = _C.from_bytes(bytes(entry["data"]), dtype).reshape(entry["shape"])
    return tensors


def load_file(filename: Any, device: Any = "cpu") -> dict[str, Any]:
    """The tensors of a safetensors file, on a device."""
    with open(filename, "rb") as file:
        tensors = load(file.read())
    return {name: tensor.to(device) for name, tensor in tensors.items()}


def save_model(model: Any, filename: Any, metadata: dict[str, str] | None = None) -> None:
    """Writes the state of a module. Of names that share one tensor the first is written; the file says which
    stand for it."""
    first: dict[int, str] = {}
    state, notes = {}, dict(metadata or {})
    for name, tensor in sorted(model.state_dict().items()):
        known = first.setdefault(tensor.untyped_storage()._cdata, name) if tensor.numel() else name
        if known == name:
            state[name] = tensor.contiguous()
        elif tensor.shape == state[known].shape:
            notes[name] = known
        else:
            raise RuntimeError(f"`{name}` and `{known}` are different parts of one memory: save a clone")
    save_file(state, filename, notes)


def load_model(model: Any, filename: Any, strict: bool = True, device: Any = "cpu") -> tuple[list, list]:
    """Reads the state of a module; the names that were missing and those that nobody wanted."""
    state = load_file(filename, device)
    own = model.state_dict()
    alike: dict[int, list[str]] = {}
    for name, tensor in own.items():
        alike.setdefault(tensor.untyped_storage()._cdata, []).append(name)
    present = {name for names in alike.values() if any(each in state for each in names) for name in names}
    result = model.load_state_dict(state, strict=False)
    missing = [name for name in result.missing_keys if name not in present]
    unexpected = list(result.unexpected_keys)
    if strict and (missing or unexpected):
        text = "".join(f"\n    Missing key: {name}" for name in missing)
        text += "".join(f"\n    Unexpected key: {name}" for name in unexpected)
        raise RuntimeError(f"Error(s) in loading state_dict for {type(model).__name__}:{text}")
    return missing, unexpected
