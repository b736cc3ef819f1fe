"""What torch.compile makes of a module: a module that stands before it."""

from __future__ import annotations

from typing import Any

from rushlight.nn.module import Module


class OptimizedModule(Module):
    """Stands before a module, whose parameters and modules have ``_orig_mod`` in their names then.

    There is no compiler: the module itself runs, and has all attributes but the hooks.

    >>> compiled = rushlight.compile(rushlight.nn.Linear(1, 1))
    >>> list(compiled.state_dict()), compiled.in_features
    (['_orig_mod.weight', '_orig_mod.bias'], 1)
    """

    _orig_mod: Module

    def __init__(self, mod: Module) -> None:
        super().__init__()
        del self.__dict__["training"]  # it is the module's
        self._modules["_orig_mod"] = mod

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the module."""
        return self._orig_mod(*args, **kwargs)

    def __len__(self) -> int:
        return len(self._orig_mod)

    @property
    def training(self) -> bool:
        """Whether the module is in training mode."""
        return self._orig_mod.training

    @training.setter
    def training(self, mode: bool) -> None:
        modules = self.__dict__.get("_modules")
        if modules:
            modules["_orig_mod"].training = mode

    def __getattr__(self, name: str) -> Any:
        modules = self.__dict__.get("_modules")
        if name == "_orig_mod" or not modules:
            return super().__getattr__(name)
        return getattr(modules["_orig_mod"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_") or name in ("forward", "training"):
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._orig_mod, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._orig_mod)})
