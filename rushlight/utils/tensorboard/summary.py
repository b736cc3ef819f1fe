"""Summaries for an event file: the functions of tensorboardX, which are given arrays for tensors."""

from __future__ import annotations

from types import FunctionType

import tensorboardX.summary as _summary

import rushlight.utils.tensorboard.writer as _writer

_functions = {name: value for name, value in vars(_summary).items() if isinstance(value, FunctionType)}
__all__ = [name for name in _functions if not name.startswith("_")]

for _name in __all__:
    globals()[_name] = _writer.taking_tensors(_functions[_name])
