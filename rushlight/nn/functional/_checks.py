"""Argument checks that the functions of this package share, worded as torch words them."""

from math import inf

from rushlight import Tensor
from rushlight._dtype_info import extremes
from rushlight._signatures import check_call
from rushlight.ops._direct import FUNCTIONAL
from rushlight.ops._public import C_NAMES, check_tensor, public, type_name


def functional(function):
    """A function of this package: tensor-like arguments are asked for ``__torch_function__`` first."""
    made = public(function, method=False, namespace=False)
    made.direct = FUNCTIONAL.get(function.__name__)
    return made


def require_tensor(function, value, position=1, name="input"):
    check_tensor(value, function, name, position)


def number(function, signature, *given, kind=""):
    """The last of what is given to torch's native function, as a number. What is none is refused by name.
    `kind` is what torch makes of it, if not the dtype of the first."""
    value = given[-1]
    if value.__class__ is float or (value.__class__ is int and -(2**63) <= value < 2**63):
        return value
    check_call(function, signature, *given)
    if isinstance(value, complex):
        kind = kind or C_NAMES[given[0].dtype]
        raise RuntimeError(f"value cannot be converted to type {kind} without overflow")
    return float(value)


def require_representable(input, *numbers):
    """Refuse numbers beyond the floating-point dtype of the input, but for infinities."""
    if not input.is_floating_point():
        return
    largest = extremes(input.dtype)[1]
    for n in numbers:
        if largest < abs(n) < inf:
            raise RuntimeError(f"value cannot be converted to type {C_NAMES[input.dtype]} without overflow")


def require_floating(function, kernel, value):
    """Refuse all but tensors of real floating-point numbers; torch names ``kernel`` in the message."""
    if not isinstance(value, Tensor):
        require_tensor(function, value)
    if not value.is_floating_point():
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{type_name(value.dtype)}'")
