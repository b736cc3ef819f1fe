"""Operators of Tensor that torch has in Python: what `Tensor.__rsub__(t, 2)` is, called by name.

`2 - t` itself goes to a native slot, which these do not replace: see Note [operators by name] in
native/python/named_operators.cpp.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import rushlight
from rushlight import _C
from rushlight._annotations import Any

Tensor = _C.Tensor


def _operator(function: Callable) -> Callable:
    """Whatever does not fit is the other operand's to answer."""

    @functools.wraps(function)
    def wrapped(self, *args, **kwargs):
        try:
            if _C._has_torch_function((self, *args)):
                from rushlight.overrides import _dispatch

                return _dispatch(wrapped, (self, *args), kwargs)
            return function(self, *args, **kwargs)
        except TypeError:
            return NotImplemented

    return wrapped


def python_method(function: Callable, name: str) -> Callable:
    """A method of Tensor that is a Python function in torch, too, and is told by that name where a call does
    not fit. The tensor itself is asked, no other argument."""
    function.__name__, function.__qualname__ = name, f"Tensor.{name}"

    @functools.wraps(function)
    def asking(*args, **kwargs):
        if args and _C._has_torch_function_unary(args[0]):
            from rushlight.overrides import _dispatch

            return _dispatch(asking, args, kwargs)
        return function(*args, **kwargs)

    return asking


def _named(name: str, qualname: str) -> Callable:
    def name_it(function: Callable) -> Callable:
        function.__name__, function.__qualname__ = name, qualname
        return _operator(function)

    return name_it


@_named("pow", "TensorBase.pow")
def _pow(self, *args, **kwargs):
    return Tensor.pow(self, *args, **kwargs)


@_named("pow_", "TensorBase.pow_")
def _ipow(self, *args, **kwargs):
    return Tensor.pow_(self, *args, **kwargs)


class TensorBase:
    """Where a pickle finds what torch calls TensorBase.pow."""

    pow, pow_ = _pow, _ipow


@_named("__rdiv__", "Tensor.__rdiv__")
def _rdiv(self, other):
    return self.reciprocal().__mul__(other)


@_named("__rsub__", "Tensor.__rsub__")
def _rsub(self, other):
    return rushlight.rsub(self, other)


@_named("__floordiv__", "Tensor.__floordiv__")
def _floordiv(self, other):
    return rushlight.floor_divide(self, other)


def _reflected(name: str, function: str) -> Callable:
    def compute(self, other):
        return getattr(rushlight, function)(other, self)

    return _named(name, f"Tensor.{name}")(compute)


def _len(self):
    if self.dim() == 0:
        raise TypeError("len() of a 0-d tensor")
    return self.shape[0]


def _hash(self):
    return id(self)


_hash.__name__, _hash.__qualname__ = "__hash__", "Tensor.__hash__"


def attach() -> None:
    """Gives Tensor these methods, once it has those that some of them are."""
    found: dict[str, Any] = {
        "__pow__": _pow, "__ipow__": _ipow, "__rsub__": _rsub, "__rdiv__": _rdiv, "__rtruediv__": _rdiv,
        "__itruediv__": getattr(Tensor, "__idiv__"),  # noqa: B009  (the stubs do not have it)
        "__floordiv__": _floordiv, "__hash__": _hash, "__len__": python_method(_len, "__len__"),
        "__abs__": Tensor.abs, "__neg__": Tensor.neg, "__pos__": Tensor.positive,
    }  # fmt: skip
    for name, function in (
        ("__rfloordiv__", "floor_divide"),
        ("__rmod__", "remainder"),
        ("__rpow__", "pow"),
        ("__rmatmul__", "matmul"),
        ("__rlshift__", "bitwise_left_shift"),
        ("__rrshift__", "bitwise_right_shift"),
    ):
        found[name] = _reflected(name, function)
    for name, method in found.items():
        _C.put_operator(name, method)
