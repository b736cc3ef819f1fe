"""The base of context managers that are decorators as well."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from rushlight.autograd.grad_mode import _Mode as _DecoratorContextManager

__all__ = ["_DecoratorContextManager", "_NoParamDecoratorContextManager"]


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """One without parameters: `@mode` and `@mode()` mean the same."""

    def __new__(cls, orig_func: Any = None) -> Any:
        made = super().__new__(cls)
        return made if orig_func is None else made(orig_func)


def context_decorator(ctx: Any, func: Callable) -> Callable:
    """The function, running inside `ctx` (a context manager, or a function that makes one for each call). A
    generator is inside only while it runs."""
    if isinstance(func, type):
        raise RuntimeError(
            "Cannot decorate classes; it is ambiguous whether or not only the constructor or all methods "
            "should have the context manager applied; additionally, decorating a class at definition-site "
            "will prevent use of the identifier as a conventional type.  To specify which methods to "
            "decorate, decorate each of them individually."
        )
    if hasattr(ctx, "__enter__") and callable(ctx):
        raise AssertionError("Passed in a context manager that is also callable")
    make = ctx if callable(ctx) else lambda: ctx
    if inspect.isgeneratorfunction(func):
        return _wrap_generator(make, func)

    @functools.wraps(func)
    def inside(*args, **kwargs):
        with make():
            return func(*args, **kwargs)

    return inside


def _wrap_generator(ctx_factory: Callable, func: Callable) -> Callable:
    """A generator that is inside the context while it runs, and outside while its caller does."""

    @functools.wraps(func)
    def inside(*args, **kwargs):
        generator = func(*args, **kwargs)
        try:
            with ctx_factory():
                value = generator.send(None)
            while True:
                try:
                    sent = yield value
                except GeneratorExit:
                    with ctx_factory():
                        generator.close()
                    raise
                except BaseException as error:
                    with ctx_factory():
                        value = generator.throw(error)
                else:
                    with ctx_factory():
                        value = generator.send(sent)
        except StopIteration as end:
            return end.value

    return inside
