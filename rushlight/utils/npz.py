"""Tensors in NumPy's `.npz` files, by name."""

from __future__ import annotations

from typing import Any

import rushlight

__all__ = ["load_npz", "save_npz"]


def save_npz(filename: Any, tensors: dict[str, Any], compressed: bool = False) -> None:
    """Writes tensors (and arrays and numbers) under their names to a path or a file object; a file takes its
    place when it is complete.

    >>> import io
    >>> file = io.BytesIO()
    >>> rushlight.utils.npz.save_npz(file, {"weight": rushlight.ones(2)})
    >>> _ = file.seek(0)
    >>> rushlight.utils.npz.load_npz(file)
    {'weight': tensor([1., 1.])}
    """
    import numpy

    from rushlight.serialization import _open_for_writing

    arrays = {}
    for name, tensor in tensors.items():
        if isinstance(tensor, rushlight.Tensor):
            kind = str(tensor.dtype).removeprefix("torch.")
            if kind in ("bfloat16", "complex32") or kind.startswith("float8"):
                raise TypeError(f"NumPy has no {kind}: save `{name}` as float32, or with rushlight.save")
            tensor = tensor.detach().cpu().resolve_conj().numpy()
        arrays[name] = numpy.asarray(tensor)
        if arrays[name].dtype.hasobject:
            raise TypeError(f"`{name}` is not an array of numbers")
    with _open_for_writing(filename) as file:
        write: Any = numpy.savez_compressed if compressed else numpy.savez
        write(file, **arrays)


def load_npz(filename: Any, device: Any = None) -> dict[str, Any]:
    """The tensors of a `.npz` file by name. Pickled objects in it are refused, not run."""
    import numpy

    with numpy.load(filename, allow_pickle=False) as archive:
        if not hasattr(archive, "files"):
            raise ValueError("this file holds one array: read it with numpy.load")
        return {name: rushlight.from_numpy(archive[name]).to(device or "cpu") for name in archive.files}
