"""Names of torch.jit that programs use around ordinary code. There is no compiler here: what is given to
`script` is Python already and runs as such, with the same results."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Final

from rushlight.nn import Module

__path__: list[str] = []  # the modules below it are in _absent_names.py
__all__ = [
    "Attribute",
    "Error",
    "Final",
    "ScriptFunction",
    "ScriptModule",
    "annotate",
    "enable_onednn_fusion",
    "export",
    "fork",
    "freeze",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "load",
    "optimized_execution",
    "save",
    "script",
    "script_if_tracing",
    "trace",
    "trace_module",
    "unused",
    "wait",
]

_isinstance = isinstance


class Error(RuntimeError):
    """Raised in torch for errors inside compiled code; nothing raises it here."""


class TracerWarning(Warning):
    """Warns in torch of what a trace does not see; nothing is traced here."""


class ScriptModule(Module):
    """Only for `isinstance` checks and as a base class: an ordinary module."""


class ScriptFunction:
    """Only for `isinstance` checks: no function is ever one."""


class Attribute:
    """A value with the type it is declared to have."""

    def __init__(self, value: Any, type: Any) -> None:
        self.value, self.type = value, type


def script(obj: Any, *args: Any, **kwargs: Any) -> Any:
    """The function, class or module itself: it runs as the Python that it is.

    >>> @rushlight.jit.script
    ... def twice(x):
    ...     return 2 * x
    >>> twice(rushlight.ones(2))
    tensor([2., 2.])
    """
    return obj


def script_if_tracing(fn: Callable) -> Callable:
    """The function itself: nothing is ever traced."""
    return fn


def _identity(fn: Any = None, **options: Any) -> Any:
    return fn if callable(fn) else lambda f: f


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Decorator without effect: there is no compiler that could ignore the function."""
    return _identity(drop)


def unused(fn: Callable) -> Callable:
    """Decorator without effect."""
    return fn


def export(fn: Callable) -> Callable:
    """Decorator without effect."""
    return fn


def interface(obj: Any) -> Any:
    """Decorator without effect."""
    return obj


def _overload(fn: Callable) -> Callable:
    return fn


_overload_method = _script_if_tracing = _overload


def is_scripting() -> bool:
    """False: code always runs as Python."""
    return False


def is_tracing() -> bool:
    """False: nothing is ever traced."""
    return False


def annotate(the_type: Any, the_value: Any) -> Any:
    """the_value."""
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:
    """As the builtin; of a generic type such as list[int] the container is checked."""
    from typing import get_origin

    kinds = target_type if _isinstance(target_type, tuple) else (target_type,)
    return any(_isinstance(obj, get_origin(kind) or kind) for kind in kinds)


@contextlib.contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """Context manager without effect."""
    yield


def enable_onednn_fusion(enabled: bool) -> None:
    """Without effect."""


def _say_deprecated(name: str) -> None:
    warnings.warn(
        f"`torch.jit.{name}` is deprecated. Please use `torch.compile` instead.",
        DeprecationWarning,
        stacklevel=3,
    )


def fork(func: Callable, *args: Any, **kwargs: Any) -> Any:
    """Calls func at once; a future of its result, which is complete."""
    from rushlight.futures import Future

    _say_deprecated("fork")
    result: Any = Future()
    result.set_result(func(*args, **kwargs))
    return result


def wait(future: Any) -> Any:
    """The value of a future."""
    from rushlight.futures import Future

    _say_deprecated("wait")
    if not _isinstance(future, Future):
        raise TypeError(f"wait(): incompatible function arguments. A Future is expected, not {future!r}")
    return future.wait()


_fork, _wait = fork, wait


def trace(func: Callable, example_inputs: Any = (), *args: Any, **kwargs: Any) -> Callable:
    """The function or module itself, after one call with the example: it goes on running as Python. A branch
    that depends on data is taken anew in every call, where torch's trace repeats the first one."""
    inputs = kwargs.get("example_kwarg_inputs")
    if inputs is not None:
        func(**inputs)
    else:
        func(*example_inputs if _isinstance(example_inputs, (tuple, list)) else (example_inputs,))
    return func


def freeze(mod: Any, *args: Any, **kwargs: Any) -> Any:
    """The module itself, which must be in evaluation mode as in torch."""
    if mod.training:
        raise RuntimeError("Freezing is currently only implemented for modules in eval mode. Please call "
                           ".eval() on your module before freezing.")  # fmt: skip
    return mod


def _missing(what: str) -> Callable:
    def raises(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"torch.jit.{what} is not implemented: Rushlight has no TorchScript")

    return raises


trace_module, save, load, _get_trace_graph = (
    _missing(what) for what in ("trace_module", "save", "load", "_get_trace_graph")
)
