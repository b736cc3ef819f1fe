"""Calls with the factors between the tensors, as programs of torch's first years write them: `p.add_(lr, g)`,
`torch.addmm(beta, m, alpha, a, b)`. torch still takes them and warns once; so does Rushlight.

A public function is called in the form that it declares. Only when it refuses the number of arguments is its
attribute `old_form` asked (native/python/functions.cpp), so the ordinary call pays nothing.
"""

from __future__ import annotations

from rushlight import _C
from rushlight._annotations import Any
from rushlight.ops._public import FUNCTIONS

# The names of the factors, and how many tensors stand behind them.
_FACTORS: dict[str, tuple[tuple[str, ...], int]] = {
    **dict.fromkeys(("add", "sub"), (("alpha",), 1)),
    **dict.fromkeys(("addcmul", "addcdiv"), (("value",), 2)),
    **dict.fromkeys(("addmm", "addmv", "addr", "addbmm", "baddbmm"), (("beta", "alpha"), 2)),
}


def _old_form(name: str, function: Any) -> Any:
    factors, count = _FACTORS[name.rstrip("_")]

    def old_form(*args: Any, **options: Any) -> Any:
        if not 0 < len(args) - count - 1 <= len(factors):
            raise TypeError(f"{name}() takes {count + 1} positional arguments but {len(args)} were given")
        # beta stands in front of the tensor that it scales, unless that is the one whose method is called.
        leading = len(factors) == 2 and not (isinstance(args[0], _C.Tensor) and args[0].dim())
        places = ((0, 2) if leading else (1, 2))[: len(args) - count - 1]
        numbers = [_number(args[at]) for at in places]
        tensors = [arg for at, arg in enumerate(args) if at not in places]
        _warn_once(name, factors)
        return function(*tensors, **dict(zip(factors, numbers, strict=False)), **options)

    return old_form


def _number(value: Any) -> Any:
    """A tensor without dimensions where a factor is expected, as that factor."""
    if isinstance(value, _C.Tensor) and not value.dim() and not value.requires_grad:
        return value.item()
    return value


def _warn_once(name: str, factors: tuple[str, ...]) -> None:
    from rushlight._warn import warn_once

    options = ", ".join(f"{factor}=number" for factor in factors)
    text = f"This overload of {name} is deprecated:\nConsider {name}(tensors ..., {options}) instead."
    warn_once(text, about="old forms")


for _name in _FACTORS:
    for _function in (FUNCTIONS[_name], getattr(_C.Tensor, _name), getattr(_C.Tensor, f"{_name}_")):
        _function.old_form = _old_form(_function.__name__, _function)


def _two_numbers(function: Any) -> Any:
    """The form whose number takes its factor without a name: torch.rsub(x, 1, 2)."""

    def old_form(input: _C.Tensor, *numbers: Any) -> Any:
        if len(numbers) != 2:
            raise TypeError(
                f"{function.__name__}() takes 2 positional arguments but {len(numbers) + 1} were given"
            )
        return function(input, numbers[0], alpha=numbers[1])

    return old_form


for _function in (
    *(FUNCTIONS[name] for name in ("subtract", "rsub")),
    *(getattr(_C.Tensor, name) for name in ("subtract", "subtract_")),
):
    _function.old_form = _two_numbers(_function)


def _one_by_one(function: Any) -> Any:
    """The form of a method whose only argument is a list, with its elements one by one: x.squeeze(0, 1)."""

    def old_form(self: _C.Tensor, *elements: Any) -> Any:
        if len(elements) < 2 or not all(hasattr(element, "__index__") for element in elements):
            raise TypeError(
                f"{function.__name__}() takes 1 positional argument but {len(elements)} were given"
            )
        return function(self, elements)

    return old_form


for _name in ("broadcast_to", "count_nonzero", "squeeze", "squeeze_", "hsplit", "vsplit", "dsplit"):
    _function = getattr(_C.Tensor, _name)
    _function.old_form = _one_by_one(_function)
