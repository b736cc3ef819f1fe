"""Argument checks that the functions of this package share, worded as torch words them."""

from rushlight import Tensor
from rushlight.ops._public import check_tensor, public, type_name


def functional(function):
    """A function of this package: tensor-like arguments are asked for ``__torch_function__`` first."""
    return public(function, method=False, namespace=False)


def require_tensor(function, value, position=1, name="input"):
    check_tensor(value, function, name, position)


def require_floating(function, kernel, value):
    """Refuse all but tensors of real floating-point numbers; torch names ``kernel`` in the message."""
    if not isinstance(value, Tensor):
        require_tensor(function, value)
    if not value.is_floating_point():
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{type_name(value.dtype)}'")
