"""How a sparse tensor prints: its indices and values, then what is to be said of it."""

from __future__ import annotations

from typing import Any

from rushlight import _C
from rushlight._printing import _append, _contents, _node_name, _options, _reads_back_as


def _part(label: str, tensor: Any, indent: int) -> str:
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
    if tensor.grad_fn is not None:
        suffixes.append(f"grad_fn=<{_node_name(tensor.grad_fn)}>")
    elif tensor.requires_grad:
        suffixes.append("requires_grad=True")
    tangent = _C.tangent(tensor) if _C._is_fwd_grad_enabled() else None
    if tangent is not None:
        suffixes.append(f"tangent={tangent}")
    if contents is None:
        line = ",\n" + " " * indent
        contents = _part("indices", indices, indent) + line + _part("values", values, indent)
    return _append("tensor(" + contents, suffixes, indent, True) + ")"
