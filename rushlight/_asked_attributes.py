"""Tensors whose class is asked for their sizes, strides, device or layout, instead of them being read.

`Tensor._make_wrapper_subclass(..., dispatch_sizes_strides_policy="sizes", dispatch_device=True)` marks the
tensor it makes. Its class gets attributes that look for the mark: with it they ask `__torch_dispatch__`,
without it they are the ordinary ones. The native code goes on reading what the tensor was made with.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any

from rushlight import _C
from rushlight._dispatching import ask
from rushlight._ops import handle_named, namespace
from rushlight._size import Size

Tensor = _C.Tensor
_MARK = "_asked_attributes"


def _asks(self: Tensor, what: str) -> bool:
    return what in self.__dict__.get(_MARK, ())


def _of(self: Tensor, name: str) -> Any:
    return ask(handle_named(f"{name}.default"), (self,), {})


def _numbers(what: str, name: str, ordinary: str, whole: Callable) -> Callable:
    plain = getattr(Tensor, ordinary)

    def method(self: Tensor, dim: int | None = None) -> Any:
        if not _asks(self, what):
            return plain(self) if dim is None else plain(self, dim)
        if dim is None:
            answer = _of(self, name)
            return whole(plain(self) if answer is None else answer)  # None: the class does not care
        count = self.dim()
        if not -count <= dim < count:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-count}, {count - 1}], but got {dim})"
            )
        return method(self)[dim]

    return method


def _one(what: str, name: str, ordinary: str) -> Callable:
    plain = getattr(Tensor, ordinary)

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        if not _asks(self, what):
            return plain(self, *args, **kwargs)
        answer = ask(handle_named(f"{name}.default"), (self, *args, *kwargs.values()), {})
        if answer is None and name != "dim":
            return plain(self, *args, **kwargs)
        return answer

    return method


def _attribute(what: str, of: Callable, ordinary: str) -> Callable:
    plain = getattr(Tensor, ordinary)
    return lambda self: of(self) if _asks(self, what) else plain.__get__(self, type(self))


class _Asking:
    """An attribute of tensors that may be asked; looked up on the class it is Tensor's own."""

    def __init__(self, name: str, function: Callable) -> None:
        self._name, self._function = name, function
        self._is_method = callable(getattr(Tensor, name))

    def __get__(self, tensor: Tensor | None, cls: type) -> Any:
        if tensor is None:  # classes check with `cls.size is Tensor.size` that they left it alone
            return getattr(Tensor, self._name)
        return MethodType(self._function, tensor) if self._is_method else self._function(tensor)

    def __set__(self, tensor: Tensor, value: Any) -> None:
        getattr(Tensor, self._name).__set__(tensor, value)


def _length(self: Tensor) -> int:
    return self.size(0) if _asks(self, "sizes") else Tensor.__len__(self)


_ASKING: dict[str, Any] = {
    "size": _numbers("sizes", "sym_size", "size", Size),
    "shape": _attribute("sizes", lambda self: self.size(), "shape"),
    "stride": _numbers("strides", "sym_stride", "stride", tuple),
    "dim": _one("sizes", "dim", "dim"),
    "ndim": _attribute("sizes", lambda self: _of(self, "dim"), "ndim"),
    "numel": _one("sizes", "sym_numel", "numel"),
    "nelement": _one("sizes", "sym_numel", "nelement"),
    "storage_offset": _one("sizes", "sym_storage_offset", "storage_offset"),
    "is_contiguous": _one("strides", "is_contiguous", "is_contiguous"),
    "device": _attribute("device", lambda self: ask(namespace("prim").device.default, (self,), {}), "device"),
    "layout": _attribute("layout", lambda self: ask(namespace("prim").layout.default, (self,), {}), "layout"),
    "__len__": _length,
}


def mark(made: Tensor, policy: str | None, device: bool, layout: bool) -> None:
    """Lets the class of a tensor be asked about it."""
    if policy not in (None, "sizes", "strides"):
        raise ValueError(f"Unknown sizes_strides_policy: {policy}; expected 'strides' or 'sizes'")
    asked = {"sizes": ("sizes", "strides"), "strides": ("strides",), None: ()}[policy]
    asked = (*asked, *(("device",) if device else ()), *(("layout",) if layout else ()))
    if not asked:
        return
    setattr(made, _MARK, asked)
    cls = type(made)
    for name, attribute in _ASKING.items():
        own = next(kind for kind in cls.__mro__ if name in vars(kind))
        if issubclass(Tensor, own):  # not the class's own
            setattr(cls, name, _Asking(name, attribute))
