"""Tensors whose class is asked for their sizes, strides, device or layout, instead of them being read.

`Tensor._make_wrapper_subclass(..., dispatch_sizes_strides_policy="sizes", dispatch_device=True)` marks the
tensor it makes. Its class gets attributes that look for the mark: with it they ask `__torch_dispatch__`,
without it they are the ordinary ones. The native code goes on reading what the tensor was made with.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any

import rushlight
from rushlight import _C
from rushlight._dispatching import ask
from rushlight._ops import handle_named, namespace
from rushlight._returned import _refuse
from rushlight._size import Size
from rushlight.overrides import _Unanswered

Tensor = _C.Tensor
_MARK = "_asked_attributes"


def _asks(self: Tensor, what: str) -> bool:
    return what in self.__dict__.get(_MARK, ())


def _answer(handle: Any, *args: Any) -> Any:
    """What the class of a tensor says."""
    try:
        return ask(handle, args, {})
    except _Unanswered as error:
        shown = f"torch.ops.{handle.overloadpacket}"
        raise TypeError(str(error).replace(f"torch._ops.{handle}", shown)) from None


def _of(self: Tensor, name: str, *args: Any) -> Any:
    return _answer(handle_named(name if "." in name else f"{name}.default"), self, *args)


def _checked(answer: Any, name: str, kind: type, called: str = "") -> Any:
    if not isinstance(answer, kind):
        called = called or kind.__name__
        raise RuntimeError(f"{name} returned invalid type {type(answer).__name__}, expected {called}")
    return answer


def _number(answer: Any) -> int:
    if not isinstance(answer, int):
        _refuse(answer)
    return int(answer)


def _numbers(what: str, name: str, said: str, ordinary: str, whole: Callable) -> Callable:
    plain = getattr(Tensor, ordinary)

    def method(self: Tensor, dim: int | None = None) -> Any:
        if not _asks(self, what):
            return plain(self) if dim is None else plain(self, dim)
        if dim is None:
            answer = _of(self, name)
            if answer is None:  # the class does not care
                return plain(self)
            if not isinstance(answer, (list, tuple)):
                raise RuntimeError(f"{said} must be a list or a tuple")
            return whole(map(_number, answer))
        count = self.dim()
        if not -count <= dim < count:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-count}, {count - 1}], but got {dim})"
            )
        return method(self)[dim]

    return method


def _one(what: str, name: str, ordinary: str) -> Callable:
    plain = getattr(Tensor, ordinary)

    def method(self: Tensor) -> Any:
        answer = _of(self, name) if _asks(self, what) else None
        return plain(self) if answer is None else _number(answer)

    return method


def _dim(self: Tensor) -> int:
    return int(_checked(_of(self, "dim"), "dim", int)) if _asks(self, "sizes") else Tensor.dim(self)


def is_contiguous(self: Tensor, memory_format: Any = None) -> bool:
    """Whether the elements lie in memory in the order of a memory format."""
    memory_format = memory_format or rushlight.contiguous_format
    if type(self) is not Tensor and _asks(self, "strides"):
        plain = memory_format is rushlight.contiguous_format
        name, more = ("is_contiguous", ()) if plain else ("is_contiguous.memory_format", (memory_format,))
        answer = _of(self, name, *more)
        if answer is not None:
            return bool(_checked(answer, "is_contiguous", bool))
    return Tensor.is_contiguous(self, memory_format=memory_format)


def _contiguous(self: Tensor, *, memory_format: Any = None) -> Tensor:
    memory_format = memory_format or rushlight.contiguous_format
    if _asks(self, "strides") and is_contiguous(self, memory_format):
        return self
    return Tensor.contiguous(self, memory_format=memory_format)


def is_non_overlapping_and_dense(self: Tensor) -> bool:
    """Whether the elements lie side by side, in whatever order of dimensions."""
    if type(self) is not Tensor and _asks(self, "strides"):
        answer = _of(self, "is_non_overlapping_and_dense")
        if answer is not None:
            return bool(_checked(answer, "is_non_overlapping_and_dense", bool))
    next_stride = 1
    for stride, size in sorted(zip(Tensor.stride(self), Tensor.size(self), strict=True)):
        if size == 1:
            continue
        if stride != next_stride and Tensor.numel(self):
            return False
        next_stride *= size
    return True


def is_strides_like_format(self: Tensor, memory_format: Any) -> bool:
    """Whether the dimensions lie in the order of a memory format, though there may be gaps between them."""
    if type(self) is not Tensor and _asks(self, "strides"):
        answer = _of(self, "is_strides_like_format", memory_format)
        if answer is not None:
            return bool(_checked(answer, "is_strides_like_format", bool))
    ranks = {rushlight.channels_last: 4, rushlight.channels_last_3d: 5}
    if ranks.get(memory_format) != Tensor.dim(self):
        return False
    sizes, strides = Tensor.size(self), Tensor.stride(self)
    least = 0
    if strides[1] == 0:
        return False
    for d in (1, *range(len(sizes) - 1, 1, -1), 0):
        if sizes[d] == 0 or strides[d] < least or (d == 0 and least == strides[1]):
            return False
        least = strides[d] * (sizes[d] if sizes[d] > 1 else 1)
    return True


def stride(self: Tensor) -> tuple[int, ...]:
    """How far apart in memory neighbours along each dimension are."""
    if type(self) is not Tensor and _asks(self, "strides"):
        answer = _of(self, "stride")
        if answer is not None:
            return tuple(map(_number, answer))
    return Tensor.stride(self)


def _data_ptr(self: Tensor) -> int:
    if _asks(self, "sizes"):  # nothing has no address: torch asks how much there is
        _of(self, "numel")
        return 0 if self.is_meta else Tensor.data_ptr(self)
    return Tensor.data_ptr(self)


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


def _device(self: Tensor) -> Any:
    answer = _answer(namespace("prim").device.default, self)
    if not isinstance(answer, (str, int, rushlight.device)):
        raise RuntimeError("unpackString: expected bytes or unicode object")
    return rushlight.device(answer)


def _layout(self: Tensor) -> Any:
    return _checked(_answer(namespace("prim").layout.default, self), "layout", rushlight.layout, "Layout")


_ASKING: dict[str, Any] = {
    "size": _numbers("sizes", "sym_size", "sym_size", "size", Size),
    "shape": _attribute("sizes", lambda self: self.size(), "shape"),
    "stride": _numbers("strides", "sym_stride", "sym_strides", "stride", tuple),
    "dim": _dim,
    "ndimension": _dim,
    "ndim": _attribute("sizes", _dim, "ndim"),
    "numel": _one("sizes", "sym_numel", "numel"),
    "nelement": _one("sizes", "sym_numel", "nelement"),
    "storage_offset": _one("sizes", "sym_storage_offset", "storage_offset"),
    "is_contiguous": is_contiguous,
    "contiguous": _contiguous,
    "data_ptr": _data_ptr,
    "device": _attribute("device", _device, "device"),
    "layout": _attribute("layout", _layout, "layout"),
    **{
        f"is_{kind}": _attribute("device", lambda self, kind=kind: self.device.type == kind, f"is_{kind}")
        for kind in ("cpu", "cuda", "meta")
    },
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
