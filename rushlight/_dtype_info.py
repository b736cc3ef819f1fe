"""`finfo` and `iinfo`: the limits of floating-point and integer dtypes."""

from __future__ import annotations

from functools import cache

import rushlight
from rushlight import _C
from rushlight._annotations import Any, NoReturn
from rushlight._type_names import type_name


def _ieee(bits: int, digits: int, exponent: int, decimals: int) -> tuple[float, ...]:
    """From the digits of the mantissa after the leading one, and the largest exponent."""
    eps = 2.0**-digits
    largest = (2.0 - eps) * 2.0**exponent
    return bits, eps, largest, -largest, float(f"1e-{decimals}"), 2.0 ** (1 - exponent)


_FLOATS: dict[str, tuple[float, ...]] = {  # bits, eps, max, min, resolution, smallest_normal
    "float16": _ieee(16, 10, 15, 3),
    "bfloat16": _ieee(16, 7, 127, 2),
    "float32": _ieee(32, 23, 127, 6),
    "float64": _ieee(64, 52, 1023, 15),
    "float8_e4m3fn": (8, 0.125, 448.0, -448.0, 1.0, 2.0**-6),
    "float8_e5m2": _ieee(8, 2, 15, 0),
    "float8_e4m3fnuz": (8, 0.125, 240.0, -240.0, 1.0, 2.0**-7),
    "float8_e5m2fnuz": (8, 0.125, 57344.0, -57344.0, 1.0, 2.0**-15),
    "float8_e8m0fnu": (8, 1.0, 2.0**127, 2.0**-127, 1.0, 2.0**-127),
}
_KNOWN: dict[_C.dtype, Any] = {}  # what finfo() found for a dtype
_COMPONENT = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}
_INTEGERS = {"uint8": (0, 8), "int8": (1, 8), "int16": (1, 16), "int32": (1, 32), "int64": (1, 64),
             "uint16": (0, 16), "uint32": (0, 32), "uint64": (0, 64)}  # fmt: skip


class _DtypeInfo:
    __slots__ = ("_name",)
    __hash__ = None  # type: ignore[assignment]
    _name: str

    @property
    def dtype(self) -> str:
        """The name of the dtype described."""
        return self._name

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_name" and not hasattr(self, "_name"):
            object.__setattr__(self, name, value)
            return
        kind = f"torch.{type(self).__name__}"
        if name != "_name" and hasattr(getattr(type(self), name, None), "__set__"):
            raise AttributeError(f"attribute '{name}' of '{kind}' objects is not writable")
        raise AttributeError(f"'{kind}' object has no attribute '{name}'")

    def __delattr__(self, name: str) -> None:
        self.__setattr__(name, None)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._name == self._name

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"cannot pickle 'torch.{type(self).__name__}' object")


class finfo(_DtypeInfo):
    """Limits of a floating-point dtype, of the default dtype if none is given; of a complex one's components.

    >>> rushlight.finfo(rushlight.float32).eps
    1.1920928955078125e-07
    """

    __slots__ = {
        "bits": "The number of bits the dtype takes.",
        "eps": "The difference between 1.0 and the next larger number.",
        "max": "The largest finite number.",
        "min": "The most negative finite number.",
        "resolution": "The approximate decimal resolution.",
        "smallest_normal": "The smallest positive number with full precision.",
        "tiny": "Another name of `smallest_normal`.",
    }
    __module__ = "rushlight"
    bits: int
    eps: float
    max: float
    min: float
    resolution: float
    smallest_normal: float
    tiny: float

    def __new__(cls, type: Any = ...) -> finfo:
        # Nothing about it can change, so there is one for each dtype: masks ask for it at every step.
        if type.__class__ is _C.dtype and cls is finfo and (known := _KNOWN.get(type)) is not None:
            return known
        name = _dtype_name("finfo", rushlight.get_default_dtype() if type is ... else type)
        name = _COMPONENT.get(name, name)
        if name not in _FLOATS:
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.finfo'"
            )
        self = object.__new__(cls)
        values = _FLOATS[name]
        for each, value in zip(finfo.__slots__, (*values, values[-1])):
            object.__setattr__(self, each, value)
        self._name = name
        if type.__class__ is _C.dtype and cls is finfo:
            _KNOWN[type] = self
        return self

    def __repr__(self) -> str:
        names = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        values = ", ".join(f"{name}={getattr(self, name):g}" for name in names)
        return f"finfo({values}, dtype={self._name})"


@cache
def extremes(dtype: Any) -> tuple[float, float]:
    """The most negative and the largest finite number of a floating-point dtype."""
    limits = finfo(dtype)
    return limits.min, limits.max


class iinfo(_DtypeInfo):
    """Limits of an integer dtype.

    >>> rushlight.iinfo(rushlight.int8).max
    127
    """

    __slots__ = ()
    __module__ = "rushlight"

    def __init__(self, type: Any) -> None:
        name = _dtype_name("iinfo", type)
        if name == "bool":
            raise TypeError("torch.bool is not supported by torch.iinfo")
        if name not in _INTEGERS:
            raise TypeError(
                "torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'"
            )
        self._name = name

    @property
    def bits(self) -> int:
        """The number of bits the dtype takes."""
        return _INTEGERS[self._name][1]

    @property
    def max(self) -> int:
        """The largest number."""
        signed, bits = _INTEGERS[self._name]
        return (1 << (bits - signed)) - 1

    @property
    def min(self) -> int:
        """The smallest number."""
        signed, bits = _INTEGERS[self._name]
        return -(1 << (bits - 1)) if signed else 0

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self._name})"


def _dtype_name(function: str, dtype: Any) -> str:
    python_types = {float: "float64", int: "int64", bool: "bool", complex: "complex128"}
    if isinstance(dtype, type) and dtype in python_types:
        return python_types[dtype]
    if not isinstance(dtype, rushlight.dtype):
        kind = type_name(dtype)
        raise TypeError(f"{function}(): argument 'type' (position 1) must be torch.dtype, not {kind}")
    return str(dtype).removeprefix("torch.")
