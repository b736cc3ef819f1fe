"""How a compressed tensor prints: its indices and values, then what is to be said of it."""

from __future__ import annotations

from typing import Any

from rushlight._printing import _append, _derivatives, _reads_back_as
from rushlight._sparse.printing import part


def text(tensor: Any, contents: str | None = None) -> str:
    """What `repr(tensor)` shows; `contents` replaces the indices and values."""
    indent = len("tensor(")
    compressed, plain, values = tensor.parts
    suffixes = [f"size={tuple(tensor.shape)}", f"nnz={tensor._nnz()}"]
    if not _reads_back_as(tensor.dtype):
        suffixes.append(f"dtype={tensor.dtype}")
    suffixes.append(f"layout={tensor.layout}")
    suffixes += _derivatives(tensor)
    if contents is None:
        line = ",\n" + " " * indent
        named = {tensor.form.compressed: compressed, tensor.form.plain: plain, "values": values}
        contents = line.join(part(label, each, indent) for label, each in named.items())
    return _append("tensor(" + contents, suffixes, indent) + ")"
