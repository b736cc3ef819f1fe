"""The names that functorch had, which warn."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from rushlight import func
from rushlight._warn import warn
from rushlight.func import _made_functional


def _old(function: Callable, successor: str | None = None) -> Callable:
    name = function.__name__

    @functools.wraps(function)
    def warned(*args: Any, **kwargs: Any) -> Any:
        new = successor or f"torch.func.{name}"
        warn(
            "We've integrated functorch into PyTorch. As the final step of the integration, "
            f"`functorch.{name}` is deprecated as of PyTorch 2.0 and will be deleted in a future version of "
            f"PyTorch >= 2.3. Please use `{new}` instead; see the PyTorch 2.0 release notes and/or the "
            "`torch.func` migration guide for more details https://pytorch.org/docs/main/func.migrating.html",
            FutureWarning,
        )
        return function(*args, **kwargs)

    return warned


vmap = _old(func.vmap, "torch.vmap")
grad = _old(func.grad)
grad_and_value = _old(func.grad_and_value)
vjp = _old(func.vjp)
jvp = _old(func.jvp)
jacrev = _old(func.jacrev)
jacfwd = _old(func.jacfwd)
hessian = _old(func.hessian)
functionalize = _old(func.functionalize)
make_functional = _old(_made_functional.make_functional, "torch.func.functional_call")
make_functional_with_buffers = _old(
    _made_functional.make_functional_with_buffers, "torch.func.functional_call"
)
combine_state_for_ensemble = _old(
    _made_functional.combine_state_for_ensemble, "torch.func.stack_module_state"
)
