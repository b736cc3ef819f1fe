"""The steps of torch's derivatives, for who looks on.

A derivative of Rushlight's (rushlight/ops) may take other steps than torch's: fewer, or of its own kernels.
While `__torch_dispatch__` is asked, the rules of this package are called instead; they name what they read as
those do, and what they read is saved meanwhile. Where the gradient itself is recorded, where tangents are
carried, and for complex numbers the derivative is Rushlight's own.

    seen("tan", x=lambda g, out: g * (out**2 + 1))

The order of the rules is the order of the steps. An operation that torch has under torch.ops.aten only is
asked about by `show`; what computes it is in rushlight/_aten_gradients.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import _C
from rushlight._aten_calls import named as show
from rushlight.ops._rules import _bits, _parameters

Tensor = _C.Tensor
ops = _C.ops
_NEEDS = (5, 0)  # which inputs want a gradient; ops/_rules.py


def keep_whole(name: str, outputs: str) -> None:
    """Has these outputs of the primitive kept as they are: they have no derivative in torch."""
    primitive = getattr(ops, name)
    primitive.set_undetached(_bits(primitive.outputs, outputs))


def seen(
    name: str,
    joint: Callable | None = None,
    *,
    undefined: bool = False,
    undetached: str = "",
    complex: bool = False,
    **rules: Callable,
) -> None:
    """Sets the steps that are seen of the derivative of a primitive: a rule per input, or one for all.
    undetached names the outputs that have no derivative in torch; complex says that the rules are right for
    complex numbers."""
    primitive = getattr(ops, name)
    if undetached:
        keep_whole(name, undetached)
    values: list[tuple[int, int]] = []
    calls = []
    for input_name, rule in ({"": joint} if joint else rules).items():
        wanted = _parameters(primitive, primitive.args, primitive.outputs, rule)
        values.extend(value for value in wanted if value not in values)
        index = primitive.args.index(input_name) if input_name else -1
        calls.append((index, rule, [values.index(value) for value in wanted]))
    count = primitive.input_count

    def run(*given: Any) -> Any:
        needs = given[-1]
        if any(map(_C.is_leveled, given)):  # nobody looks on: the levels of torch.func compute
            return NotImplemented
        if not complex and any(isinstance(value, Tensor) and value.is_complex() for value in given):
            return NotImplemented
        found: list[Any] = [None] * count
        for index, rule, places in calls:
            arguments = [(*given, needs)[place] for place in places]
            if index < 0:
                return rule(*arguments)
            if needs[index]:
                found[index] = rule(*arguments)
                if found[index] is NotImplemented:
                    return NotImplemented
        return tuple(found)

    if _NEEDS in values:  # a joint rule asks
        values.remove(_NEEDS)
        calls = [
            (index, rule, [place if place < len(values) else -1 for place in places])
            for index, rule, places in calls
        ]
    primitive.set_rule(-2, run, [*values, _NEEDS], undefined, 0)


preserving = {"memory_format": rushlight.preserve_format}


def options(like: Tensor) -> dict[str, Any]:
    """The keywords by which torch makes a tensor as another one is."""
    return {"dtype": like.dtype, "layout": like.layout, "device": like.device}


def zeros(like: Tensor, size: Any = None) -> Tensor:
    """torch.zeros of the size and kind of a tensor."""
    return show("zeros.default", list(like.shape if size is None else size), **options(like))


def number(value: Any, like: Tensor) -> Tensor:
    """A number as a tensor, as where() takes it."""
    return show("scalar_tensor.default", value, **options(like))


def filled(value: Any, like: Tensor) -> Tensor:
    """A new tensor of one number: the left side of `1 - x` and `1 / x`, which then work in place."""
    made = show("empty_like.default", like, **preserving)
    return made.fill_(value)


def unsqueezed(x: Tensor, dim: Any, ndim: int, keepdim: bool) -> Tensor:
    """With the reduced dimensions back as dimensions of size one."""
    if keepdim or not ndim:
        return x
    if isinstance(dim, int):
        return x.unsqueeze(dim)
    dims = range(ndim) if not dim else sorted(d % ndim for d in dim)
    if len(list(dims)) == 1 and dim:
        return x.unsqueeze(next(iter(dim)))
    for d in dims:
        x = x.unsqueeze(d)
    return x
