"""Jacobians by finite differences and by backward, and what says that they differ. See gradcheck.py."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import rushlight
from rushlight import _C
from rushlight._annotations import Any
from rushlight._unstored import Unstored

Tensor = _C.Tensor


class GradcheckError(RuntimeError):
    """A derivative is wrong."""


def tensors_of(value: Any) -> tuple:
    return (value,) if isinstance(value, Tensor) else tuple(v for v in value if isinstance(v, Tensor))


def results_of(value: Any) -> tuple:
    """What a function returned: one tensor or several."""
    found = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    for each in found:
        each.requires_grad  # noqa: B018  torch asks every result, also one that cannot answer
    return found


def _outputs(function: Callable, inputs: tuple, places: list[int] | None) -> list[Tensor]:
    results = results_of(function(*inputs))
    chosen = results if places is None else [results[i] for i in places]
    # Clones: a function may return its input, which is about to change.
    return [t.detach().clone() for t in chosen]


def memory_of(t: Any) -> Tensor:
    """The elements of a tensor, to be written: of a sparse one those that it stores."""
    return t.memory() if isinstance(t, Unstored) else t.data


def dense(t: Tensor) -> Tensor:
    return t if t.layout is rushlight.strided else t.to_dense()


def with_every_element(t: Any) -> Any:
    """A sparse tensor that stores all its elements, those too that were not there."""
    if not _C.is_any_sparse(t):
        return t
    return t.with_every_element().requires_grad_(t.requires_grad)


def difference(function, inputs, places, target, direction, eps) -> list[Tensor]:
    """(f(x + eps d) - f(x - eps d)) / (2 eps) for every output. A direction is a tensor, or one element's
    (index, step): then only its memory is written, which others may share. The function runs as ever: it may
    have hooks to register."""
    values = memory_of(target)
    before = values.clone()
    index, step = direction if isinstance(direction, tuple) else (..., direction)
    try:
        values[index] = before[index] - eps * step
        below = _outputs(function, inputs, places)
        values[index] = before[index] + eps * step
        above = _outputs(function, inputs, places)
    finally:
        values[index] = before[index]
    for a, b in zip(above, below, strict=True):
        _check_outputs_same_dtype_and_shape(b, a, eps, None if index is ... else index)
    return [(a - b) / (2 * eps) for a, b in zip(above, below, strict=True)]


def _check_outputs_same_dtype_and_shape(output1: Tensor, output2: Tensor, eps: Any, idx: Any = None) -> None:
    """Raises if what a function returned beside two inputs differs in more than its values."""
    moved = f"perturbed{'' if idx is None else f' on index {idx}'} by {eps}"
    for what in ("shape", "dtype"):
        one, other = getattr(output1, what), getattr(output2, what)
        if one != other:
            raise AssertionError(
                f"Expected `func` to return outputs with the same {what} when inputs are {moved}, but got: "
                f"{what}s {one} and {other}."
            )


def indices_of(like: Tensor) -> Iterator[tuple]:
    return itertools.product(*map(range, like.shape))


def _stored(target: Any) -> Iterator[tuple[int, tuple]]:
    """The elements that can be moved: the number of each among all of them, and its index in memory."""
    if not _C.is_any_sparse(target):
        yield from enumerate(indices_of(target))
        return
    yield from zip(target.numbers().reshape(-1).tolist(), indices_of(memory_of(target)), strict=True)


def one_at(like: Tensor, element: int, value: Any) -> Tensor:
    unit = rushlight.zeros(like.shape, dtype=like.dtype, device=like.device)
    unit.view(-1)[element] = value
    return unit


def numerical_jacobians(function, inputs, places, target, eps) -> list[tuple[Tensor, Tensor]]:
    """Per output: the Jacobian of its real part, and of its imaginary part. Elements that a sparse input does
    not store have rows of zeros."""
    rows: dict[int, list] = {}
    for row, index in _stored(target):
        slopes = difference(function, inputs, places, target, (index, 1.0), eps)
        turned = None
        if target.is_complex():
            turned = difference(function, inputs, places, target, (index, 1j), eps)
        rows[row] = []
        for output, slope in enumerate(slopes):
            parts = []
            for part in ("real", "imag"):
                here = part_of(slope, part)
                if turned is not None:
                    here = rushlight.complex(here, part_of(turned[output], part))
                parts.append(here.reshape(-1))
            rows[row].append(tuple(parts))
    if not rows:
        results = _outputs(function, inputs, places)
        device = target.device
        empty = [
            rushlight.zeros(target.numel(), r.numel(), dtype=target.dtype, device=device) for r in results
        ]
        return [(e, e) for e in empty]
    none = [tuple(map(rushlight.zeros_like, parts)) for parts in next(iter(rows.values()))]
    full = [rows.get(row, none) for row in range(target.numel())]
    return [
        (rushlight.stack([row[output][0] for row in full]), rushlight.stack([row[output][1] for row in full]))
        for output in range(len(none))
    ]


def part_of(t: Tensor, part: str) -> Tensor:
    if t.is_complex():
        return t.real if part == "real" else t.imag
    t = t.double() if t.dtype != _C.float64 and t.dtype.is_floating_point else t
    return t if part == "real" else rushlight.zeros_like(t)


def gradients_of(output, inputs, cotangent, **options) -> list[Tensor]:
    found = rushlight.autograd.grad(
        output, inputs, cotangent, retain_graph=True, allow_unused=True, **options
    )
    for grad, value in zip(found, inputs, strict=True):
        if grad is not None and grad.shape != value.shape:
            raise GradcheckError("Analytical gradient has incorrect size")
        if grad is not None and grad.dtype != value.dtype:
            raise GradcheckError("Analytical gradient has incorrect type")
    return [
        rushlight.zeros(value.shape, dtype=value.dtype, device=value.device) if grad is None else dense(grad)
        for grad, value in zip(found, inputs, strict=True)
    ]


def analytical_jacobians(inputs, output, unit) -> list[Tensor]:
    """Per input: the Jacobian of the output's real part (unit 1) or imaginary part (unit 1j)."""
    columns: list[list] = [[] for _ in inputs]
    for element in range(output.numel()):
        for place, grad in enumerate(gradients_of(output, inputs, one_at(output, element, unit))):
            columns[place].append(grad.detach().reshape(-1))
    return [
        rushlight.stack(column, 1)
        if column
        else rushlight.zeros(value.numel(), 0, dtype=value.dtype, device=value.device)
        for column, value in zip(columns, inputs, strict=True)
    ]


def is_close(a: Tensor, b: Tensor, atol: float, rtol: float) -> bool:
    if a.numel() == 0:
        return True
    away = (a - b).abs()  # an infinity is close to itself only
    return bool(((a == b) | (away.isfinite() & (away <= atol + rtol * b.abs()))).all())


def agree(first: Sequence[Tensor], again: Sequence[Tensor], tolerance: float) -> bool:
    """Whether two runs gave the same. NaN, which differs from itself, does not say otherwise."""
    return not any(bool(((a - b).abs() > tolerance).any()) for a, b in zip(first, again, strict=True))


class Mismatch(GradcheckError):
    """Two Jacobians, or what is left of them, that differ."""

    def __init__(self, numerical, analytical, output, target, kind, forward=False, more="") -> None:
        mode = " computed with forward mode" if forward else ""
        self.numerical, self.analytical = numerical, analytical
        super().__init__(
            f"{kind}Jacobian{mode} mismatch for output {output} with respect to input {target},\n"
            f"numerical:{numerical}\nanalytical:{analytical}\n{more}"
        )


Mismatch.__name__ = Mismatch.__qualname__ = "GradcheckError"


def considering(part: str, which: str) -> str:
    """How errors begin that are about one part of complex numbers."""
    return f"While considering the {part} part of complex {which} only, "


def random_direction(like: Tensor, generator: Any) -> Tensor:
    """A vector of length 1 for every element, of torch's numbers: real, also for complex elements."""
    found = rushlight.rand(like.numel(), generator=generator, dtype=_C.float32, device="cpu")
    dtype = like.real.dtype if like.is_complex() else like.dtype
    found = found.to(like.device, dtype).reshape(like.shape)
    return found / found.norm()


def slow_says(check, function, inputs, targets, places, options) -> str:
    said = (
        "\nThe above quantities relating the numerical and analytical jacobians are computed \nin fast mode. "
    )
    try:
        check(function, inputs, targets, places, options)
    except Mismatch as error:
        largest = float((error.numerical - error.analytical).abs().max())
        return (
            f"{said}Below, we recompute numerical and analytical jacobians in slow mode:\n\n"
            f"Numerical:\n {error.numerical}\nAnalytical:\n{error.analytical}\n\n"
            f"The max per-element difference (slow mode) is: {largest}.\n"
        )
    except GradcheckError as error:
        return f"{said}The slow mode says:\n\n{error}"
    return said + FAST_FAIL_SLOW_OK_MSG


FAST_FAIL_SLOW_OK_MSG = """
Fast gradcheck failed but element-wise differences are small. This means that the
test might've passed in slow_mode!
"""
