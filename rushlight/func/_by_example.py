"""Functions that read the numbers of an argument, and so cannot compute a batch at once: example by example.

`by_example(function)` goes down level by level. At one of `vmap` it calls the function once for each example
and stacks what comes; at one of derivatives it records a node whose gradient, and tangent, are computed
example by example in their turn.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from rushlight import _C
from rushlight.autograd.function import Function
from rushlight.func._tensor import BATCH, TAPE, Tensor
from rushlight.ops._examples import has_batch
from rushlight.utils._pytree import tree_flatten, tree_unflatten


class _OneByOne(Function):
    """The node of such a function of tensors at a level of derivatives."""

    @staticmethod
    def forward(ctx: Any, function: Callable, *tensors: Tensor) -> Any:
        ctx.function = function
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)
        made = _computed(function, tensors)
        several = made if isinstance(made, tuple) else (made,)
        fixed = [x for x in several if not (x.is_floating_point() or x.is_complex())]
        ctx.mark_non_differentiable(*fixed)
        return made

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        tensors, needed = ctx.saved_tensors, ctx.needs_input_grad[1:]
        wanted = [i for i, need in enumerate(needed) if need]

        def pull(*given: Tensor) -> Any:
            inputs, cotangents = given[: len(tensors)], given[len(tensors) :]
            return _pulled(ctx.function, wanted, inputs, cotangents)

        found = _called(pull, (*tensors, *gradients))
        given = dict(zip(wanted, found, strict=True))
        return None, *(given.get(i) for i in range(len(tensors)))

    @staticmethod
    def jvp(ctx: Any, _: None, *tangents: Any) -> Any:
        from rushlight.func._derivatives import jvp

        tensors = ctx.saved_tensors
        moving = [i for i, tangent in enumerate(tangents) if tangent is not None]

        def push(*given: Tensor) -> Any:
            inputs, along = given[: len(tensors)], given[len(tensors) :]

            def of_moving(*values: Tensor) -> Any:
                return ctx.function(*_with(inputs, moving, values))

            return jvp(of_moving, tuple(inputs[i] for i in moving), along)[1]

        return _called(push, (*tensors, *(tangents[i] for i in moving)))


def _with(inputs: tuple, places: list[int], values: tuple) -> list:
    made = list(inputs)
    for place, value in zip(places, values, strict=True):
        made[place] = value
    return made


def _pulled(function: Callable, wanted: list[int], inputs: tuple, cotangents: tuple) -> Any:
    from rushlight.func._derivatives import vjp

    def of_wanted(*values: Tensor) -> Any:
        made = function(*_with(inputs, wanted, values))
        several = made if isinstance(made, tuple) else (made,)
        return tuple(x for x in several if x.is_floating_point() or x.is_complex())

    made, pull = vjp(of_wanted, *(inputs[i] for i in wanted))
    return pull(tuple(g for g in cotangents if g.is_floating_point() or g.is_complex())[: len(made)])


def _computed(function: Callable, tensors: tuple) -> Any:
    """What the function makes of the tensors, nothing of it recorded at their level."""
    number = _C.highest_level(tensors)
    below = tuple(_C.lower_from_level(x, number) for x in tensors)
    kind = _C.level_about(number)[0]
    if kind == TAPE:
        raise NotImplementedError("linearize: what is computed example by example cannot be written down")
    if kind != BATCH:
        return _raised(_C.below_level(number, _called, function, below), number, False)
    size = _C.level_about(number)[1]
    flags = [x is not y and x.batched for x, y in zip(tensors, below, strict=True)]

    def each() -> Any:
        import rushlight

        results = [
            _called(
                function, tuple(x.select(0, i) if flag else x for x, flag in zip(below, flags, strict=True))
            )
            for i in range(size)
        ]
        if isinstance(results[0], tuple):
            return tuple(rushlight.stack(column) for column in zip(*results, strict=True))
        return rushlight.stack(results)

    return _raised(_C.below_level(number, each), number, True)


def _raised(made: Any, number: int, batched: bool) -> Any:
    if isinstance(made, tuple):
        return tuple(_C.raise_to_level(x, number, batched) for x in made)
    return _C.raise_to_level(made, number, batched)


def _called(function: Callable, tensors: tuple) -> Any:
    """The function of the tensors, at whatever levels they are."""
    tensors = tuple(map(_C.living, tensors))
    if not any(map(has_batch, tensors)):
        return function(*tensors)
    if _C.level_about(_C.highest_level(tensors))[0] == BATCH:
        return _computed(function, tensors)
    return _OneByOne.apply(function, *tensors)


def by_example(function: Callable, reads: Callable = lambda x: True) -> Callable:
    """The function, one example at a time where a tensor that it `reads` differs among the examples."""

    @functools.wraps(function)
    def computed(*args: Any, **kwargs: Any) -> Any:
        values, spec = tree_flatten((args, kwargs))
        places = [i for i, value in enumerate(values) if isinstance(value, Tensor)]
        if not any(has_batch(values[i]) and reads(values[i]) for i in places):
            return function(*args, **kwargs)
        structure: list[Any] = []

        def of_tensors(*tensors: Tensor) -> Any:
            given, options = tree_unflatten(_with(tuple(values), places, tensors), spec)
            made = function(*given, **options)
            flat, form = tree_flatten(made)
            structure[:] = [form]
            return flat[0] if len(flat) == 1 else tuple(flat)

        made = _called(of_tensors, tuple(values[i] for i in places))
        return tree_unflatten(list(made) if isinstance(made, tuple) else [made], structure[0])

    return computed
