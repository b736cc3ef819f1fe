"""The arguments of `Tensor.to` and `Module.to`: three forms, of which the first that fits is meant."""

from __future__ import annotations

from collections import namedtuple

from rushlight import _C, _signatures
from rushlight._annotations import Any
from rushlight._type_names import type_name
from rushlight.ops._public import Tensor, as_dtype, invalid_combination
from rushlight.ops.layout import memory_format

# What is asked for; None leaves it as it is.
To = namedtuple(
    "To",
    ("device", "dtype", "non_blocking", "copy", "memory_format"),
    defaults=(None, None, False, False, None),
)


def _is_number(value: Any) -> bool:
    """A number that passes for a tensor; whole ones are devices where that form fits."""
    return isinstance(value, (int, float, complex)) or (
        type_name(value).startswith("numpy.") and not hasattr(value, "__len__")
    )


def _is_device(value: Any) -> bool:
    if value is None or isinstance(value, (_C.device, str, bytes)):
        return True
    return hasattr(value, "__index__") and not isinstance(value, (bool, Tensor)) and not _is_array(value)


def _is_array(value: Any) -> bool:
    return type_name(value) in ("numpy.ndarray", "numpy.bool")


_FITS = {
    "device": _is_device,
    "dtype": lambda value: isinstance(value, _C.dtype),
    "tensor": lambda value: isinstance(value, Tensor) or _is_number(value),
    "non_blocking": lambda value: isinstance(value, bool),
    "copy": lambda value: isinstance(value, bool),
    "memory_format": lambda value: value is None or isinstance(value, memory_format),
}
_FORMS = (
    ("device", "dtype", "non_blocking", "copy"),
    ("dtype", "non_blocking", "copy"),
    ("tensor", "non_blocking", "copy"),
)


def to_arguments(args: tuple, kwargs: dict[str, Any]) -> To:
    if len(args) == 1 and not kwargs and isinstance(args[0], _C.dtype):
        return To(dtype=args[0])
    positional = [as_dtype(value) for value in args]
    named = {name: as_dtype(value) for name, value in kwargs.items()}
    for names in _FORMS:
        given = dict(zip(names, positional))
        if len(positional) > len(names) or given.keys() & named.keys():
            continue
        given |= named
        if names[0] == "device" and given.get("dtype", 0) is None:  # only this form does without one
            del given["dtype"]
        elif names[0] not in given and names[0] != "device":
            continue
        allowed = {*names, "memory_format"}
        if all(name in allowed and _FITS[name](value) for name, value in given.items()):
            return _asked(given)
    _signatures.check("to", _signatures.text_of(".to"), args, kwargs)
    raise invalid_combination("to", args, "torch.device device", "torch.dtype dtype", "Tensor tensor")


def _asked(given: dict[str, Any]) -> To:
    if given.get("device") is not None:
        given["device"] = _C.as_device(given["device"])
    if "tensor" in given:
        other = given.pop("tensor")
        if isinstance(other, Tensor):
            given |= {"device": other.device, "dtype": other.dtype}
        else:
            whole = _C.uint64 if type(other) is int and other >= 2**63 else _C.int64
            kinds = {bool: _C.bool, int: whole, complex: _C.complex128}
            given |= {"device": _C.as_device("cpu"), "dtype": kinds.get(type(other), _C.float64)}
    return To(**given)
