"""Decorators of steps."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from rushlight.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe


class functional_datapipe:
    """Makes a step a method of every pipe of its kind, under a name."""

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        self.name = name
        self.enable_df_api_tracing = enable_df_api_tracing

    def __call__(self, cls: Any) -> Any:
        for kind in (IterDataPipe, MapDataPipe):
            if isinstance(cls, type) and issubclass(cls, kind):
                kind.register_datapipe_as_function(self.name, cls, self.enable_df_api_tracing)
                return cls
        if callable(cls) and not isinstance(cls, type):  # fork, demux: a function that makes pipes
            IterDataPipe.register_function(self.name, cls)
            return cls
        raise TypeError("`functional_datapipe` can only decorate IterDataPipe or MapDataPipe")


_determinism = False


class guaranteed_datapipes_determinism:
    """Inside the block, steps that say they are not deterministic cannot be made."""

    def __init__(self) -> None:
        self.prev = _determinism

    def __enter__(self) -> None:
        global _determinism
        self.prev, _determinism = _determinism, True

    def __exit__(self, *error: object) -> None:
        global _determinism
        _determinism = self.prev


class non_deterministic:
    """Says of a step that it is not deterministic; with a function, that it is not for these arguments."""

    def __init__(self, arg: Any) -> None:
        self.cls = arg if isinstance(arg, type) else None
        self.is_random: Callable[..., bool] = (lambda *args, **kwargs: True) if self.cls else arg
        if self.cls is not None and not issubclass(self.cls, IterDataPipe):
            raise TypeError("Only `IterDataPipe` can be decorated with `non_deterministic`.")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.cls is not None:
            self._check(self.cls, args, kwargs)
            return self.cls(*args, **kwargs)
        cls = args[0]

        @functools.wraps(cls, updated=())
        def make(*args: Any, **kwargs: Any) -> Any:
            self._check(cls, args, kwargs)
            return cls(*args, **kwargs)

        return make

    def _check(self, cls: type, args: tuple, kwargs: dict) -> None:
        if _determinism and self.is_random(*args, **kwargs):
            raise TypeError(
                f"{cls.__name__} is non-deterministic with the inputs, but you set 'guaranteed_datapipes_"
                "determinism'. You can turn off determinism for this DataPipe if that is acceptable for your "
                "application"
            )


def argument_validation(f: Any) -> Any:
    """Accepted for torch's sake: type hints of a step's arguments are left to type checkers."""
    return f


def runtime_validation(f: Any) -> Any:
    """Accepted for torch's sake: type hints of samples are left to type checkers."""
    return f


class runtime_validation_disabled:
    """A block without the checks that runtime_validation would make."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass
