"""`Size`, the type of `tensor.shape`: a tuple of ints that stays a Size when sliced, joined or repeated."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable

from rushlight._annotations import TYPE_CHECKING, Any, Self, SupportsIndex
from rushlight._type_names import type_name

# A generic base is a question that type checkers at run time ask of a class; torch's Size answers: a tuple.
if TYPE_CHECKING:
    _Tuple = tuple[int, ...]
else:
    _Tuple = tuple


class Size(_Tuple):
    """The sizes of a tensor's dimensions.

    >>> rushlight.ones(2, 3).shape
    torch.Size([2, 3])
    >>> rushlight.ones(2, 3).shape.numel()
    6
    """

    # The native core builds sizes without calling `__new__`, so there must be no further state.
    __slots__ = ()
    __module__ = "rushlight"

    def __new__(cls, sizes: Iterable[Any] = (), /) -> Self:
        items = tuple(sizes)
        for item in items:
            if type(item) is not int or not -(1 << 63) <= item < 1 << 63:
                items = tuple(_as_int(position, item) for position, item in enumerate(items))
                break
        return tuple.__new__(cls, items)

    def numel(self, *args: Any, **kwargs: Any) -> int:
        """The number of elements of a tensor of this size."""
        if kwargs:
            raise TypeError("Size.numel() takes no keyword arguments")
        if args:
            raise TypeError(f"Size.numel() takes no arguments ({len(args)} given)")
        count = math.prod(self)
        return (count + (1 << 63)) % (1 << 64) - (1 << 63)  # of 64 bits, as torch counts

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(repr, self))}])"

    if TYPE_CHECKING:

        def __getitem__(self, index: Any) -> Any: ...  # native: _C.set_size_type

    def __add__(self, other: Any) -> Size:
        if not isinstance(other, tuple):
            if hasattr(other, "__array_ufunc__"):  # NumPy adds its own
                return NotImplemented
            raise TypeError(f"can only concatenate tuple (not {type_name(other)}) to torch.Size")
        return Size(tuple(self) + tuple(other))

    def __radd__(self, other: Any) -> Size:
        if not isinstance(other, tuple):
            return NotImplemented
        return Size(tuple(other) + tuple(self))

    def __mul__(self, count: SupportsIndex) -> Size:
        if type_name(count) == "numpy.ndarray":
            return NotImplemented
        if not hasattr(count, "__index__"):
            raise TypeError(f"can't multiply sequence by non-int of type '{type_name(count)}'")
        return tuple.__new__(Size, tuple.__mul__(self, count))

    def __rmul__(self, count: SupportsIndex) -> Size:
        if isinstance(count, (tuple, list, str, bytes, bytearray)):  # which repeat themselves
            raise TypeError("can't multiply sequence by non-int of type 'torch.Size'")
        return self * count

    def __reduce__(self) -> tuple[Any, ...]:
        return (Size, (tuple(self),))


def _as_int(position: int, item: Any) -> int:
    try:
        value = operator.index(item)
    except (TypeError, ValueError, RuntimeError):
        name = type_name(item)
        raise TypeError(f"torch.Size() takes an iterable of 'int' (item {position} is '{name}')") from None
    if not -(1 << 63) <= value < 1 << 63:
        raise ValueError("Overflow when unpacking long long")
    return value
