"""Knowing which modules are being computed, forward or backward."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from rushlight import _C

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """Inside, `parents` are the names of the modules whose forward or backward runs, and "Global".

    A module is named after the class of the outermost one that was called and its path in it.

    >>> class Shown(rushlight.nn.Module):
    ...     def forward(self, x):
    ...         print(sorted(tracker.parents))
    ...         return x
    >>> with rushlight.utils.module_tracker.ModuleTracker() as tracker:
    ...     _ = rushlight.nn.Sequential(Shown())(rushlight.ones(1))
    ['Global', 'Sequential', 'Sequential.0']
    """

    def __init__(self) -> None:
        self.parents: set[str] = {"Global"}
        self._names: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
        self._handles: list[Any] = []
        self._resets_after = False

    @property
    def is_bw(self) -> bool:
        """Whether a backward is running."""
        return bool(_C.current_run())

    def __enter__(self) -> ModuleTracker:
        from rushlight.nn.module import register_module_forward_hook, register_module_forward_pre_hook

        self._handles += [
            register_module_forward_pre_hook(self._enter_module),
            register_module_forward_hook(self._leave_module),
        ]
        return self

    def __exit__(self, *error: object) -> None:
        while self._handles:
            self._handles.pop().remove()

    def _name(self, module: Any) -> str:
        if module not in self._names:
            top = type(module).__name__
            for name, child in module.named_modules():
                self._names.setdefault(child, f"{top}.{name}" if name else top)
        return self._names[module]

    def _enter_module(self, module: Any, inputs: Any) -> None:
        name = self._name(module)
        self.parents.add(name)
        self._in_backward(inputs, lambda *grads: self.parents.discard(name), "all")

    def _leave_module(self, module: Any, inputs: Any, outputs: Any) -> None:
        name = self._name(module)
        self.parents.discard(name)

        def enter(*grads: Any) -> None:
            if not self._resets_after:  # what the backward ends within is left when it is over
                _C.call_when_done(self._reset)
                self._resets_after = True
            self.parents.add(name)

        self._in_backward(outputs, enter, "any")

    def _reset(self) -> None:
        self._resets_after = False
        self.parents = {"Global"}

    def _in_backward(self, values: Any, called: Callable, mode: str) -> None:
        """A module's backward begins with a gradient of its outputs and ends with those of its inputs."""
        from rushlight.autograd.graph import register_multi_grad_hook
        from rushlight.utils._pytree import tree_leaves

        if not _C.is_grad_enabled():
            return
        wanted = [x for x in tree_leaves(values) if isinstance(x, _C.Tensor) and x.requires_grad]
        if wanted:
            self._handles.append(register_multi_grad_hook(wanted, called, mode=mode))
