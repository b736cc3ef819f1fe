"""`torch.func`: transforms of functions."""

from rushlight.func import _batching
from rushlight.func._derivatives import (
    functionalize,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    vjp,
)  # fmt: skip
from rushlight.func._linearize import linearize
from rushlight.func._modules import debug_unwrap, replace_all_batch_norm_modules_, stack_module_state
from rushlight.func._rearrange import rearrange
from rushlight.func._vmap import vmap
from rushlight.nn.utils.stateless import func_functional_call as functional_call

__all__ = ["debug_unwrap", "functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd",
           "jacrev", "jvp", "linearize", "rearrange", "replace_all_batch_norm_modules_", "stack_module_state",
           "vjp", "vmap"]  # fmt: skip

for _name in __all__:
    globals()[_name].__module__ = "torch.func"
