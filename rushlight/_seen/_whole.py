"""Functions that are one operation in torch and several here: for who looks on, in one step.

While somebody is to be asked, another stands in for such a function (`intercept`, rushlight/_dispatching.py):
he is asked about torch's operation, and the node that is recorded has torch's gradient. Its own gradient, if
the gradient is recorded, is that of the function as it is made here.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

from rushlight import _C
from rushlight._aten_calls import named as show
from rushlight._aten_layers import trimmed
from rushlight._taken_apart import deriving, rule_of
from rushlight.autograd.function import Function

Tensor = _C.Tensor


class _Plain(threading.local):
    """Whether functions are to be taken as they are made here."""

    now = False


_plain = _Plain()


class _Constant:
    """A tensor that is no variable to torch, in the place of an argument: the node has no edge for it."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


_ABSENT = _C.Tensor()  # in the place of None: the node has an edge that leads nowhere


def _as_variables(args: tuple, inputs: int) -> Iterator[Any]:
    for at, value in enumerate(args):
        if at < inputs:
            yield _ABSENT if value is None else value
        else:
            yield _Constant(value) if isinstance(value, Tensor) else value


def _as_given(value: Any) -> Any:
    return None if value is _ABSENT else value.tensor if isinstance(value, _Constant) else value


class _Recorded(Function):
    """A node with torch's gradient. Its arguments are the row of the table, the function, and torch's."""

    @staticmethod
    def forward(ctx, row, original, *variables):
        args = tuple(map(_as_given, variables))
        shown = row.overload, *trimmed(args, *row.defaults)
        found = show(*shown)
        results = found if isinstance(found, (tuple, list)) else (found,)
        ctx.row, ctx.original, ctx.hidden = row, original, results[1:]
        ctx.args = [None if isinstance(value, Tensor) else value for value in args]
        ctx.places = [at for at, value in enumerate(args) if isinstance(value, Tensor)]
        tensors = [args[at] for at in ctx.places]
        ctx.save_for_backward(*tensors, *([results[0]] if row.saves_result else []))
        return results[0]

    @staticmethod
    def backward(ctx, g):
        saved = ctx.saved_tensors
        args = list(ctx.args)
        for at, tensor in zip(ctx.places, saved, strict=False):
            args[at] = tensor
        if _C.is_grad_enabled():
            return None, None, *_recorded_again(ctx, args, g)
        extra = [saved[-1]] if ctx.row.saves_result else list(ctx.hidden)
        deriving.now = True
        try:
            found = ctx.row.gradients(g, ctx.needs_input_grad[2:], *args, *extra)
        finally:
            deriving.now = False
        return None, None, *found, *[None] * (len(args) - len(found))


@functools.cache
def _named(node: str) -> Any:
    """A `_Recorded` whose nodes are called as torch's are."""
    return type("_Recorded", (_Recorded,), {"_node_name": node})


def _node_name(function: Any, name: str, args: tuple, kwargs: dict) -> str:
    found = getattr(function, "node_name", None)
    try:
        found = found(*args, **kwargs) if callable(found) else found
    except TypeError:  # called in a way that the namer does not know
        found = None
    found = found[0] if isinstance(found, tuple) else found
    camel = "".join(part.capitalize() for part in name.removesuffix("_forward").split("_"))
    return found.removeprefix("=") if found else f"{camel}Backward0"


def _recorded_again(ctx: Any, args: list, g: Tensor) -> list:
    """The gradients of the function as it is made here, recorded."""
    from rushlight.autograd import grad

    wanted = [at for at in ctx.places if ctx.needs_input_grad[2 + at]]
    _plain.now = True
    try:
        result = ctx.row.run(ctx.original, args)
        found = grad(result, [args[at] for at in wanted], g, create_graph=True, allow_unused=True)
    finally:
        _plain.now = False
    gradients: list[Any] = [None] * len(args)
    for at, gradient in zip(wanted, found, strict=True):
        gradients[at] = gradient
    return gradients


class Row:
    """One function: `arguments` of a call gives torch's (or None, if the call is another operation in torch),
    of which those at `defaults` are not shown; `gradients(g, needs, *arguments)` those of its arguments;
    `run(function, arguments)` computes it as it is made here."""

    def __init__(self, overload: str, arguments: Callable, gradients: Callable, defaults: tuple,
                 run: Callable, saves_result: bool, inputs: int) -> None:  # fmt: skip
        self.overload, self.arguments, self.gradients = overload, arguments, gradients
        self.defaults, self.run, self.saves_result, self.inputs = defaults, run, saves_result, inputs


ROWS: dict[str, Row] = {}


def whole(
    name: str,
    overload: str,
    arguments: Callable,
    gradients: Callable,
    *defaults: Any,
    run: Callable = lambda function, args: function(*args),
    saves_result: bool = False,
    inputs: int = 1,
) -> None:
    """Adds a function to the table, of whose arguments the first `inputs` may require grad."""
    ROWS[name] = Row(overload, arguments, gradients, defaults, run, saves_result, inputs)


def _taken(row: Row, given: tuple) -> bool:
    """Whether the row is right for these arguments; else the function itself sees to them."""
    tensors = [(at, value) for at, value in enumerate(given) if isinstance(value, Tensor)]
    return not any(x.is_complex() or (x.requires_grad and at >= row.inputs) for at, x in tensors)


def catching(name: str, original: Any, wanted: Callable) -> Callable:
    """The function while somebody is to be asked."""
    row = ROWS[name]

    def caught(*args: Any, **kwargs: Any) -> Any:
        if _plain.now or kwargs.get("out") is not None or _C.carries_tangents() or not wanted(args, kwargs):
            return original(*args, **kwargs)
        try:
            given = row.arguments(*args, **kwargs)
        except TypeError:  # refused by the function itself
            given = None
        if given is None or rule_of() is not None or not _taken(row, given):
            return original(*args, **kwargs)
        node = _node_name(original, row.overload.partition(".")[0], args, kwargs)
        return _named(node).apply(row, original, *_as_variables(given, row.inputs))

    return caught
