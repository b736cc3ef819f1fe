"""torch.compiler, for programs that mark their functions for a compiler: there is none here, so marking a
function returns it unchanged and nothing is ever being compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight._settings import compile

__all__ = [
    "allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin", "disable",
    "is_compiling", "is_dynamo_compiling", "is_exporting", "list_backends", "reset", "set_stance",
]  # fmt: skip


def is_compiling() -> bool:
    """Whether this code is being compiled: never.

    >>> rushlight.compiler.is_compiling()
    False
    """
    return False


def is_dynamo_compiling() -> bool:
    """Whether this code is being traced: never."""
    return False


def is_exporting() -> bool:
    """Whether this code is being exported: never."""
    return False


def disable(fn: Callable | None = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """The function itself.

    >>> rushlight.compiler.disable(len) is len
    True
    """
    return fn if fn is not None else lambda wrapped: wrapped


def allow_in_graph(fn: Callable) -> Callable:
    """The function itself."""
    return fn


def assume_constant_result(fn: Callable) -> Callable:
    """The function itself."""
    return fn


def list_backends(exclude_tags: tuple = ("debug", "experimental")) -> list[str]:
    """The compilers there are: none."""
    return []


def reset() -> None:
    """Forgets what was compiled: nothing was."""


def cudagraph_mark_step_begin() -> None:
    """Marks the begin of a step for recorded GPU graphs, which do not exist here."""


class set_stance:
    """What to do about compiling ("default", "force_eager", ...): everything runs eagerly already."""

    def __init__(
        self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend: Any = None
    ):
        if stance not in ("default", "force_eager", "eager_on_recompile", "fail_on_recompile"):
            raise RuntimeError(f"invalid torch.compile stance '{stance}'")

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass

    def __call__(self, fn: Callable) -> Callable:
        return fn
