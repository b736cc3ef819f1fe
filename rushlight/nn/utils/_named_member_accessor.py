"""Tensors of a module by name, as `functional_call` exchanges them."""

from __future__ import annotations

from typing import Any

from rushlight import Tensor

_MISSING = object()


def swap_tensor(module: Any, name: str, tensor: Tensor | None, allow_missing: bool = False) -> Any:
    """Puts `tensor` in the place of a parameter, buffer or attribute and returns what was there."""
    if "." in name:
        raise KeyError('tensor name can\'t contain "."')
    if not name:
        raise KeyError('tensor name can\'t be empty string ""')
    for place in (module._parameters, module._buffers):
        if name in place:
            before = place[name]
            if tensor is _MISSING:
                del place[name]
            else:
                place[name] = tensor
            return before
    before = getattr(module, name, _MISSING)
    if before is _MISSING and not allow_missing:
        raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
    if before is not _MISSING and not isinstance(before, Tensor):
        raise TypeError(f"attribute `{name}`: {before} is not an instance of torch.Tensor")
    if tensor is _MISSING:
        delattr(module, name)
    else:
        setattr(module, name, tensor)
    return before
