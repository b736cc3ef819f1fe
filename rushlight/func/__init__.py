"""`torch.func`: transforms of functions."""

from rushlight.func import _batching  # noqa: F401
from rushlight.func._derivatives import (
    functionalize, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp
)  # fmt: skip
from rushlight.func._vmap import vmap
from rushlight.nn.utils.stateless import func_functional_call as functional_call

__all__ = ["functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp",
           "linearize", "vjp", "vmap"]  # fmt: skip
