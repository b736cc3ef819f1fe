"""The base of context managers that are decorators as well."""

from __future__ import annotations

from typing import Any

from rushlight.autograd.grad_mode import _Mode as _DecoratorContextManager

__all__ = ["_DecoratorContextManager", "_NoParamDecoratorContextManager"]


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """One without parameters: `@mode` and `@mode()` mean the same."""

    def __new__(cls, orig_func: Any = None) -> Any:
        made = super().__new__(cls)
        return made if orig_func is None else made(orig_func)
