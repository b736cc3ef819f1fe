"""Composed operations under saved-tensor hooks: one node, which packs what torch's node would.

An operation that is one node in torch and several here keeps other values than torch does: those of its
steps. Nobody sees that but hooks on saved tensors. While there are any, such an operation is recorded as one
node that keeps what COMPOSED (_node_names.py) says, and its derivative takes the steps again, of what the
hooks unpacked. `recorded` is what native/python/functions.cpp calls.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from rushlight import _C
from rushlight._annotations import Any
from rushlight.ops import _node_names
from rushlight.ops._rules import derivative

Tensor = _C.Tensor
ops = _C.ops
_NOT = {"rrelu"}  # random numbers would be drawn again


class At(int):
    """Which of the tensors of the call is shown under a name."""


class _Call:
    """The operation as a function of the tensors that are kept; whatever else it was given is held here."""

    def __init__(self, function: Any, args: tuple, kwargs: dict, kept: list[Tensor]) -> None:
        self.function = function
        # What is kept under two names has its gradient under the first one.
        first = [not any(tensor is one for one in kept[:at]) for at, tensor in enumerate(kept)]
        self.wanted = [tensor.requires_grad and one for tensor, one in zip(kept, first)]

        def place(value: Any) -> Any:
            return next((At(at) for at, tensor in enumerate(kept) if value is tensor), value)

        self.args, self.kwargs = [place(arg) for arg in args], {name: place(kwargs[name]) for name in kwargs}

    def __call__(self, tensors: Any) -> Any:
        return self.taken(self.function, tensors)

    def steps(self, tensors: Any) -> Any:
        """The same without this node, also where hooks are active."""
        if isinstance(self.function, _C.Primitive):
            return self.taken(functools.partial(_C.unhooked, self.function), tensors)
        return self.taken(getattr(self.function, "__wrapped__", self.function), tensors)

    def taken(self, function: Callable, tensors: Any) -> Any:
        def given(value: Any) -> Any:
            return tensors[value] if type(value) is At else value

        kwargs = {name: given(value) for name, value in self.kwargs.items()}
        return function(*map(given, self.args), **kwargs)


def _gradient(g: Tensor, tensors: Any, call: _Call) -> tuple:
    return (gradients_of_steps(call.steps, tensors, call.wanted, g),)


def gradients_of_steps(steps: Callable, tensors: Any, wanted: list[bool], g: Any) -> list[Any]:
    """What comes back to the `wanted` ones of the tensors where the gradients g arrive at steps(tensors), one
    tensor or a tuple (with None for a gradient that does not arrive); None for the others."""
    from rushlight.autograd import grad

    record = _C.is_grad_enabled()
    before = _C.set_grad_enabled(True)
    # What the steps save is read at once, if the gradient is not recorded: torch's formula saves nothing.
    rested = _C.rest_saved_hooks(True) if not record else None
    try:
        if not record:
            tensors = [_C.requires_grad_(t.detach(), one) for t, one in zip(tensors, wanted)]
        results = steps(tensors)
    finally:
        _C.set_grad_enabled(before)
        if rested is not None:
            _C.rest_saved_hooks(rested)
    asked = [t for t, one in zip(tensors, wanted) if one]
    if not isinstance(results, Tensor):
        arrived = [(result, each) for result, each in zip(results, g) if each is not None]
        results, g = zip(*arrived) if arrived else ((), ())
    found = iter(grad(results, asked, g, allow_unused=True, create_graph=record))
    return [next(found) if one else None for one in wanted]


derivative("again", _gradient)
derivative("again_from_result", _gradient, shows="out")
derivative("listed", lambda gs: (gs,), undefined=True)  # of lists: rushlight/_foreach.py


def recorded(function: Any, name: Any, args: tuple, kwargs: dict) -> Any:
    """The result of `function`, a composed operation; NotImplemented where its steps are to be recorded."""
    called = function.__name__
    if called in _NOT or called.endswith("_") or kwargs.get("out") is not None:
        return NotImplemented
    given = [value for value in (*args, *kwargs.values()) if isinstance(value, Tensor)]
    if not any(tensor.requires_grad for tensor in given):
        return NotImplemented
    told = _node_names.named_plainly(name, args, kwargs)
    if not isinstance(told, tuple) or not told[0] or told[0].startswith("="):
        return NotImplemented
    # What is kept must be all there is to differentiate by, and nothing with a history that the namer made.
    shown = [value for value in told[1].values() if isinstance(value, Tensor)]
    if any(tensor.requires_grad and not any(tensor is one for one in given) for tensor in shown):
        return NotImplemented
    if not shown or any(tensor.requires_grad and not any(tensor is one for one in shown) for tensor in given):
        return NotImplemented
    # As torch packs them: what it was called with, and then what it computed.
    computed = {key for key, value in told[1].items() if not any(value is one for one in given)}
    ordered = {key: told[1][key] for key in sorted(told[1], key=lambda key: (key in computed, key))}
    return one_node(function, args, told[0], ordered, told[2] if len(told) > 2 else None, kwargs)


def one_node(
    function: Any, args: tuple, name: str, shown: dict, inputs: tuple | None = None, kwargs: Any = None
) -> Tensor:
    """The result of `function`, recorded as one node of that name that keeps the tensors of `shown`; those
    that are no arguments of it are kept for hooks to see. `...` stands for the result."""
    kept = [value for value in shown.values() if isinstance(value, Tensor)]
    call = _Call(function, args, kwargs or {}, kept)
    since = _C.next_sequence()
    primitive = ops.again_from_result if ... in shown.values() else ops.again
    result = primitive(tuple(kept), call)
    about = {
        key: next((At(at) for at, tensor in enumerate(kept) if value is tensor), value)
        for key, value in shown.items()
        if value is not ...
    }
    return _C.name_node(result, name, since, about, tuple(kept) if inputs is None else inputs)


def looked_on(*tensors: Any) -> bool:
    """Whether hooks on saved tensors will see what an operation on these tensors keeps, and nobody else
    is asked about it."""
    if _C.top_saved_hooks() is None or not _C.is_grad_enabled():
        return False
    given = [tensor for tensor in tensors if isinstance(tensor, Tensor)]
    others = any(_C.tangent(tensor) is not None or _C.asks_dispatch(tensor) for tensor in given)
    return any(tensor.requires_grad for tensor in given) and not others


def while_hooked(name: str) -> Callable[[Callable], Callable]:
    """Has the primitive recorded by a function of its arguments where hooks on saved tensors look on. It may
    return NotImplemented, and calls the primitive itself by `one_node` or `_C.unhooked` only."""

    def settle(function: Callable) -> Callable:
        getattr(ops, name).set_while_hooked(function)
        return function

    return settle


def _in_steps(name: str, steps: Callable) -> None:
    """Has a product or a pool recorded in the steps that torch takes (_taken_apart.py)."""

    @while_hooked(name)
    def record(*args: Any) -> Any:
        from rushlight import _taken_apart

        return steps(_taken_apart, *args)


# Lines are images of one row, which costs a view on both sides; a weight is turned, and a batch of rows or
# matrices made one.
def _as_image(apart: Any, x: Tensor, *args: Any, name: str) -> Any:
    return apart.PARTS[name](x, *args) if x.dim() in (2, 3) else NotImplemented  # refused before it is seen


for _name in ("avg_pool1d", "adaptive_avg_pool1d", "adaptive_max_pool1d", "max_pool1d_with_indices"):
    _in_steps(_name, functools.partial(_as_image, name=_name))
for _name in ("matmul_nd", "linear", "linear_unbiased", "linear_nd_unbiased", "vecmat"):
    _in_steps(_name, lambda apart, *args, name=_name: apart.PARTS[name](*args))
