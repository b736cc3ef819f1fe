"""Where torch keeps the printing of tensors; here it is `_printing.py`."""

from __future__ import annotations

from typing import Any

from rushlight._printing import (
    _append,
    _contents,
    _options,
    get_printoptions,
    printoptions,
    set_printoptions,
    tensor_str,
)

__all__ = ["get_printoptions", "printoptions", "set_printoptions"]

PRINT_OPTS = _options


def _tensor_str(self: Any, indent: int) -> str:
    """The elements in their brackets, for a line that starts at column `indent`."""
    if self.numel() == 0:
        return "[]"
    summarize = self.numel() > PRINT_OPTS.threshold
    return _contents(self, self.shape, self.dtype, summarize, indent)


def _add_suffixes(tensor_str: str, suffixes: list[str], indent: int, force_newline: bool) -> str:
    """The text with the suffixes and the closing parenthesis."""
    if force_newline and suffixes:
        return f"{tensor_str},\n{' ' * indent}{', '.join(suffixes)})"
    return _append(tensor_str, suffixes, indent) + ")"


def _str_intern(inp: Any, *, tensor_contents: str | None = None) -> str:
    """repr(inp)"""
    return tensor_str(inp, tensor_contents=tensor_contents)


_str = _str_intern
