"""The part of Tensor that is not made of functions, while somebody wants to see every use of it.

Functions and methods ask `__torch_function__` themselves (native/python/functions.cpp). Operators, attributes
and the few native methods do not: they are slots of the type, and fast. While a TorchFunctionMode is active
anywhere, `install` puts a `_Watched` in front of each of them; `remove` puts the slots back.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from rushlight import _C

Tensor = _C.Tensor

# The function that an operator stands for, where torch names another one than the operator itself.
_MEANS = {
    "__add__": "add", "__radd__": "add", "__iadd__": "add_", "__sub__": "sub", "__isub__": "sub_",
    "__mul__": "mul", "__rmul__": "mul", "__imul__": "mul_", "__truediv__": "div", "__itruediv__": "div_",
    "__ifloordiv__": "floor_divide_", "__mod__": "remainder", "__imod__": "remainder_", "__pow__": "pow",
    "__ipow__": "pow_", "__matmul__": "matmul", "__neg__": "neg", "__pos__": "positive", "__abs__": "abs",
    "__ne__": "ne", "__lt__": "lt", "__le__": "le", "__gt__": "gt", "__ge__": "ge",
    "__iand__": "bitwise_and_", "__ior__": "bitwise_or_", "__ixor__": "bitwise_xor_",
}  # fmt: skip
_NEVER = {"__hash__", "__setattr__", "__delattr__", "__delitem__", "__dict__", "_grad", "_grad_fn"}
_PYTHON = (
    "__contains__",
    "__reversed__",
    "__complex__",
    "__format__",
    "__repr__",
    "__deepcopy__",
    "__array__",
)


class _Watched:
    """Stands in Tensor's dictionary for a slot: `watching()` decides whether a use is reported."""

    def __init__(self, name: str, original: Any, watching: Callable, report: Callable) -> None:
        self.name, self.original = name, original
        self.watching, self.report = watching, report


class _WatchedMethod(_Watched):
    def __get__(self, tensor: Any, owner: Any = None) -> Any:
        if tensor is None or not self.watching():
            return self.original.__get__(tensor, owner)
        function = getattr(Tensor, _MEANS[self.name]) if self.name in _MEANS else self.original
        return lambda *args, **kwargs: self.report(function, (tensor, *args), kwargs)


class _WatchedAttribute(_Watched):
    def __get__(self, tensor: Any, owner: Any = None) -> Any:
        if tensor is None or not self.watching():
            return self.original.__get__(tensor, owner)
        return self.report(self.original.__get__, (tensor,), {})

    def __set__(self, tensor: Any, value: Any) -> None:
        if not self.watching():
            self.original.__set__(tensor, value)
        else:
            self.report(self.original.__set__, (tensor, value), {})

    def __delete__(self, tensor: Any) -> None:
        if not self.watching():
            self.original.__delete__(tensor)
        else:
            self.report(self.original.__delete__, (tensor,), {})


_originals: dict[str, Any] = {}


def install(watching: Callable[[], bool], report: Callable[[Any, tuple, dict], Any]) -> None:
    """Puts a watcher in front of every slot of Tensor."""
    if _originals:
        return
    methods = (types.WrapperDescriptorType, types.MethodDescriptorType)
    for name, slot in list(vars(Tensor).items()):
        if name in _NEVER:
            continue
        kind: Any = None
        if isinstance(slot, methods) or name in _PYTHON:
            kind = _WatchedMethod
        elif isinstance(slot, (types.GetSetDescriptorType, property)):
            kind = _WatchedAttribute
        if kind is not None:
            _originals[name] = slot
            setattr(Tensor, name, kind(name, slot, watching, report))


def remove() -> None:
    """Puts the slots back."""
    while _originals:
        name, slot = _originals.popitem()
        setattr(Tensor, name, slot)
