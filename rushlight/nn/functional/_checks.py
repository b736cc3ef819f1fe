"""Argument checks that the functions of this package share, worded as torch words them."""

from rushlight import _C, Tensor
from rushlight.ops._public import public, type_name


def functional(function):
    """A function of this package: tensor-like arguments are asked for ``__torch_function__`` first."""
    return public(function, method=False, namespace=False)


def require_tensor(function, value, position=1, name="input"):
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{function}(): argument '{name}' (position {position}) must be Tensor, not "
            f"{type(value).__name__}"
        )


def require_floating(function, kernel, value):
    """Refuse all but tensors of real floating-point numbers; torch names ``kernel`` in the message."""
    if not isinstance(value, Tensor):
        require_tensor(function, value)
    if not value.is_floating_point():
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{type_name(value.dtype)}'")


def refuse_gradient(function, **given):
    """Refuse tensors that require grad where torch has no derivative."""
    for name, value in given.items():
        if value is not None and value.requires_grad and _C.is_grad_enabled():
            raise RuntimeError(
                f"The function '{function}' is not differentiable with respect to argument '{name}'. This "
                "input cannot have requires_grad True."
            )
