"""How a sparse tensor prints: its indices and values, then what is to be said of it."""

from __future__ import annotations

from typing import Any

from rushlight._printing import _append, _contents, _derivatives, _options, _reads_back_as


def part(label: str, tensor: Any, indent: int) -> str:
    """One of the tensors that are held, under its name."""
    prefix = f"{label}=tensor("
    if tensor.numel() == 0:
        return f"{prefix}[], size={tuple(tensor.shape)})"
    summarize = tensor.numel() > _options.threshold
    return prefix + _contents(tensor, tensor.shape, tensor.dtype, summarize, indent + len(prefix)) + ")"


def text(tensor: Any, contents: str | None = None) -> str:
    """What `repr(tensor)` shows; `contents` replaces the indices and values."""
    indent = len("tensor(")
    indices, values, _ = tensor.parts
    suffixes = []
    if tensor.device.type != "cpu":
        suffixes.append(f"device='{tensor.device}'")
    suffixes += [f"size={tuple(tensor.shape)}", f"nnz={values.shape[0]}"]
    if not _reads_back_as(tensor.dtype):
        suffixes.append(f"dtype={tensor.dtype}")
    suffixes.append("layout=torch.sparse_coo")
    suffixes += _derivatives(tensor)
    if contents is None:
        line = ",\n" + " " * indent
        contents = part("indices", indices, indent) + line + part("values", values, indent)
    return _append("tensor(" + contents, suffixes, indent, True) + ")"
