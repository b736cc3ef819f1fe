"""The samples of the table as batches: the same call for several examples, and what a loop makes of them.

The examples of a batch differ: floating inputs are scaled a little (so what is positive definite, or inside a
domain, stays so), the others are turned around in one example where the operation takes that, and repeated
where it does not. Everything here is given a library, so that the same batches go to torch. `WAYS` has what
is done with them, each as the batched computation and the loop that it stands for.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sampling import Input, Op, Sample, make_tensor, map_inputs, resolve, tensors_in

FACTORS = (1.0, 0.96, 0.9)
OUTER = (1.0, 0.98)
REFUSALS = (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError)


def varied(lib: Any, item: Input, dtype: str, i: int, turn: bool, scale: float) -> Any:
    """The input in example i."""
    x = make_tensor(lib, item, dtype)
    if x.dtype.is_floating_point or x.dtype.is_complex:
        factor = FACTORS[i] * scale
        return x * factor if factor != 1 and item.dtype is None else x
    return x.flip(tuple(range(x.dim()))) if turn and i == 1 and x.dim() else x


@dataclass
class Call:
    """A call for several examples: `function` of its tensors, and for each tensor those of all examples."""

    lib: Any
    function: Callable
    columns: list[list[Any]]
    differentiable: list[int]

    def batch(self, batched: tuple[int, ...], dim: int = 0) -> tuple[list[Any], tuple]:
        """The tensors with the examples along `dim`, and `in_dims`."""
        given = [
            self.lib.stack(column, dim) if place in batched else column[0]
            for place, column in enumerate(self.columns)
        ]
        return given, tuple(dim if place in batched else None for place in range(len(given)))

    def every(self) -> tuple[int, ...]:
        return tuple(range(len(self.columns)))

    def choices(self) -> list[tuple[int, ...]]:
        """All tensors batched, and each alone."""
        alone = [(place,) for place in self.every()] if len(self.columns) > 1 else []
        return [self.every(), *alone]


def make_call(lib: Any, op: Op, sample: Sample, dtype: str, turn: bool = False, scale: float = 1.0) -> Call:
    inputs = sample.inputs()
    columns = [[varied(lib, item, dtype, i, turn, scale) for i in range(len(FACTORS))] for item in inputs]
    differentiable = [place for place, item in enumerate(inputs) if item.differentiable]

    def function(*tensors: Any) -> Any:
        given = iter(tensors)
        args, kwargs = resolve(lib, map_inputs(lambda item: next(given), (sample.args, sample.kwargs)))
        return packed(tensors_in(lib, op.function(lib)(*args, **kwargs)))

    return Call(lib, function, columns, differentiable)


def in_place(lib: Any, op: Op, sample: Sample) -> Callable:
    """The method that writes into the first tensor, as a function that returns what is there then."""

    def function(*tensors: Any) -> Any:
        given = iter(tensors)
        args, kwargs = resolve(lib, map_inputs(lambda item: next(given), (sample.args, sample.kwargs)))
        target = args[0].clone()
        assert getattr(target, op.name + "_")(*args[1:], **kwargs) is target
        return target

    return function


def packed(found: list[Any]) -> Any:
    return found[0] if len(found) == 1 else tuple(found)


def unpacked(found: Any) -> list[Any]:
    return list(found) if isinstance(found, (list, tuple)) else [found]


def stacked(lib: Any, results: list[Any], dim: int = 0) -> list[Any]:
    return [lib.stack(column, dim) for column in zip(*map(unpacked, results), strict=True)]


def ramp(lib: Any, x: Any) -> Any:
    """Cotangents and tangents: some numbers of the size of x."""
    numbers = [0.25 + 0.5 * (place % 5) for place in range(x.numel())]
    return lib.tensor(numbers, dtype=x.dtype).reshape(tuple(x.shape))


def pulled(call: Call, function: Callable) -> Callable:
    """The gradients of a function of the differentiable tensors among all."""
    lib = call.lib

    def gradients(*tensors: Any) -> Any:
        def of_chosen(*chosen: Any) -> Any:
            given = list(tensors)
            for place, value in zip(call.differentiable, chosen, strict=True):
                given[place] = value
            return packed([o for o in unpacked(function(*given)) if o.is_floating_point() or o.is_complex()])

        out, pull = lib.func.vjp(of_chosen, *(tensors[place] for place in call.differentiable))
        return pull(packed([ramp(lib, o) for o in unpacked(out)]))

    return gradients


def pull_of(call: Call) -> tuple[Callable, list[list[Any]]]:
    """What pulls cotangents back through one example, and several cotangents for each result."""
    lib, tensors = call.lib, [column[0] for column in call.columns]

    def of_chosen(*chosen: Any) -> Any:
        given = list(tensors)
        for place, value in zip(call.differentiable, chosen, strict=True):
            given[place] = value
        found = unpacked(call.function(*given))
        return tuple(o for o in found if o.is_floating_point() or o.is_complex())

    outs, pull = lib.func.vjp(of_chosen, *(tensors[place] for place in call.differentiable))
    return lambda *given: pull(given), [[ramp(lib, o) * factor for factor in FACTORS] for o in outs]


def pulled_for_good(call: Call, function: Callable) -> Callable:
    """The same where nothing is recorded of it: then a gradient may be computed in one step."""
    gradients = pulled(call, function)

    def unrecorded(*tensors: Any) -> Any:
        with call.lib.no_grad():
            return gradients(*tensors)

    return unrecorded


def pushed(call: Call, function: Callable) -> Callable:
    """The derivatives of a function along the differentiable tensors among all."""
    lib = call.lib

    def tangents(*tensors: Any) -> Any:
        def of_chosen(*chosen: Any) -> Any:
            given = list(tensors)
            for place, value in zip(call.differentiable, chosen, strict=True):
                given[place] = value
            return packed([o for o in unpacked(function(*given)) if o.is_floating_point() or o.is_complex()])

        chosen = tuple(tensors[place] for place in call.differentiable)
        return lib.func.jvp(of_chosen, chosen, tuple(ramp(lib, x) for x in chosen))[1]

    return tangents


def looped(call: Call, function: Callable, batched: tuple[int, ...], dim: int = 0) -> list[Any]:
    results = [
        function(*(column[i if place in batched else 0] for place, column in enumerate(call.columns)))
        for i in range(len(FACTORS))
    ]
    return stacked(call.lib, results, dim)


def at_once(call: Call, function: Callable, batched: tuple[int, ...], dim: int = 0) -> list[Any]:
    given, dims = call.batch(batched, dim)
    return unpacked(call.lib.vmap(function, dims, dim, randomness="same")(*given))
