"""Comparing derivatives with finite differences: `gradcheck` and `gradgradcheck`.

A Jacobian has a row per element of the input and a column per element of the output. A complex output is two
real ones, checked one after the other; the derivative with respect to a complex input z is
d/dRe(z) + i d/dIm(z), which is what backward returns for a real loss. The fast mode compares one random
combination of rows and columns instead of all of them.
"""

from __future__ import annotations

import collections
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import rushlight
from rushlight import _C
from rushlight._warn import warn
from rushlight.autograd.function import Function

__all__ = [
    "gradcheck",
    "gradgradcheck",
    "GradcheckError",
    "get_numerical_jacobian",
    "get_analytical_jacobian",
]

Tensor = _C.Tensor


class GradcheckError(RuntimeError):
    """A derivative is wrong."""


def _tensors(value: Any) -> tuple:
    return (value,) if isinstance(value, Tensor) else tuple(v for v in value if isinstance(v, Tensor))


def _results(value: Any) -> tuple:
    """What a function returned: one tensor or several."""
    found = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    for each in found:
        each.requires_grad  # noqa: B018  torch asks every result, also one that cannot answer
    return found


def _checked_inputs(inputs: tuple) -> list[Tensor]:
    """The inputs that require grad, warned about or refused if finite differences cannot work on them."""
    found = []
    for index, value in enumerate(inputs):
        if not isinstance(value, Tensor) or not value.requires_grad:
            continue
        if value.dtype not in (_C.float64, _C.complex128):
            warn(
                f"Input #{index} requires gradient and is not a double precision floating point or complex. "
                "This check will likely fail if all the inputs are not of double precision floating point or "
                "complex. "
            )
        if any(stride == 0 and size > 1 for size, stride in zip(value.shape, value.stride(), strict=True)):
            raise RuntimeError(
                f"The {index}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                "non-overlapping to be able to compute the numerical gradients correctly. You should call "
                ".contiguous on the input before passing it to gradcheck."
            )
        value.retain_grad()
        found.append(value)
    if not found:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have "
            "requires_grad=True."
        )
    return found


def _differentiable(result: Any) -> list[Tensor]:
    return [t for t in _tensors(result) if t.requires_grad]


# ---- finite differences


def _outputs(function: Callable, inputs: tuple, places: list[int] | None) -> list[Tensor]:
    results = _results(function(*inputs))
    chosen = results if places is None else [results[i] for i in places]
    # Clones: a function may return its input, which is about to change.
    return [t.detach().clone() for t in chosen]


def _difference(function, inputs, places, target, direction, eps) -> list[Tensor]:
    """(f(x + eps d) - f(x - eps d)) / (2 eps) for every output. A direction is a tensor, or one element's
    (index, step): then only its memory is written, which others may share. The function runs as ever: it may
    have hooks to register."""
    values = target.data
    before = values.clone()
    index, step = direction if isinstance(direction, tuple) else (..., direction)
    try:
        values[index] = before[index] - eps * step
        below = _outputs(function, inputs, places)
        values[index] = before[index] + eps * step
        above = _outputs(function, inputs, places)
    finally:
        values[index] = before[index]
    moved = f"perturbed{f' on index {index}' if index is not ... else ''} by {eps}"
    for a, b in zip(above, below, strict=True):
        for what, pair in (("shape", (a.shape, b.shape)), ("dtype", (a.dtype, b.dtype))):
            if pair[0] != pair[1]:
                raise AssertionError(
                    f"Expected `func` to return outputs with the same {what} when inputs are {moved}, but "
                    "got: "
                    f"{what}s {pair[1]} and {pair[0]}."
                )
    return [(a - b) / (2 * eps) for a, b in zip(above, below, strict=True)]


def _indices(like: Tensor) -> Iterator[tuple]:
    return itertools.product(*map(range, like.shape))


def _unit(like: Tensor, element: int, value: Any) -> Tensor:
    unit = rushlight.zeros(like.shape, dtype=like.dtype)
    unit.view(-1)[element] = value
    return unit


def _numerical_jacobians(function, inputs, places, target, eps) -> list[tuple[Tensor, Tensor]]:
    """Per output: the Jacobian of its real part, and of its imaginary part."""
    rows: list[list] = []
    for index in _indices(target):
        slopes = _difference(function, inputs, places, target, (index, 1.0), eps)
        turned = None
        if target.is_complex():
            turned = _difference(function, inputs, places, target, (index, 1j), eps)
        rows.append([])
        for output, slope in enumerate(slopes):
            parts = []
            for part in ("real", "imag"):
                here = _part(slope, part)
                if turned is not None:
                    here = rushlight.complex(here, _part(turned[output], part))
                parts.append(here.reshape(-1))
            rows[-1].append(tuple(parts))
    if not rows:
        results = _outputs(function, inputs, places)
        empty = [rushlight.zeros(0, r.numel(), dtype=target.dtype) for r in results]
        return [(e, e) for e in empty]
    return [
        (rushlight.stack([row[output][0] for row in rows]), rushlight.stack([row[output][1] for row in rows]))
        for output in range(len(rows[0]))
    ]


def _part(t: Tensor, part: str) -> Tensor:
    if t.is_complex():
        return t.real if part == "real" else t.imag
    t = t.double() if t.dtype != _C.float64 and t.dtype.is_floating_point else t
    return t if part == "real" else rushlight.zeros_like(t)


def get_numerical_jacobian(
    fn: Callable, inputs: Any, target: Any = None, eps: float = 1e-3, grad_out: float = 1.0
) -> tuple:
    """The Jacobians of `fn`, a function of the sequence `inputs`, by finite differences: per input that
    requires grad (or per `target`), of the first output."""
    _legacy("get_numerical_jacobian", grad_out)
    targets = _iter_tensors(inputs if target is None else target, only_requiring_grad=True)
    return tuple(_numerical_jacobians(fn, (inputs,), None, t, eps)[0][0] for t in targets)


def _legacy(name: str, grad_out: float) -> None:
    warn(
        f"`{name}` was part of PyTorch's private API and not meant to be exposed. We are deprecating it and "
        "it will be removed in a future version of PyTorch. If you have a specific use for this or feature "
        "request for this to be a stable API, please file us an issue at "
        "https://github.com/pytorch/pytorch/issues/new",
        FutureWarning,
    )
    if grad_out != 1.0:
        raise ValueError(f"Expected grad_out to be 1.0. {name} no longer supports values of grad_out != 1.0.")


# ---- backward


def _gradients(output, inputs, cotangent, **options) -> list[Tensor]:
    found = rushlight.autograd.grad(
        output, inputs, cotangent, retain_graph=True, allow_unused=True, **options
    )
    for grad, value in zip(found, inputs, strict=True):
        if grad is not None and grad.shape != value.shape:
            raise GradcheckError("Analytical gradient has incorrect size")
        if grad is not None and grad.dtype != value.dtype:
            raise GradcheckError("Analytical gradient has incorrect type")
    return [
        rushlight.zeros_like(value) if grad is None else grad
        for grad, value in zip(found, inputs, strict=True)
    ]


def _analytical_jacobians(inputs, output, unit) -> list[Tensor]:
    """Per input: the Jacobian of the output's real part (unit 1) or imaginary part (unit 1j)."""
    columns: list[list] = [[] for _ in inputs]
    for element in range(output.numel()):
        for place, grad in enumerate(_gradients(output, inputs, _unit(output, element, unit))):
            columns[place].append(grad.detach().reshape(-1))
    return [
        rushlight.stack(column, 1) if column else rushlight.zeros(value.numel(), 0, dtype=value.dtype)
        for column, value in zip(columns, inputs, strict=True)
    ]


def get_analytical_jacobian(
    inputs: Any, output: Tensor, nondet_tol: float = 0.0, grad_out: float = 1.0
) -> tuple:
    """The Jacobians by backward, whether two runs agree, and whether sizes and types are right."""
    _legacy("get_analytical_jacobian", grad_out)
    targets = [t for t in _tensors(inputs) if t.requires_grad]
    first = _analytical_jacobians(targets, output, grad_out)
    again = _analytical_jacobians(targets, output, grad_out)
    return tuple(first), _agree(first, again, nondet_tol), True, True


def _close(a: Tensor, b: Tensor, atol: float, rtol: float) -> bool:
    if a.numel() == 0:
        return True
    return bool(((a - b).abs() <= atol + rtol * b.abs()).all())


def _agree(first: Sequence[Tensor], again: Sequence[Tensor], tolerance: float) -> bool:
    """Whether two runs gave the same. NaN, which differs from itself, does not say otherwise."""
    return not any(bool(((a - b).abs() > tolerance).any()) for a, b in zip(first, again, strict=True))


class _Mismatch(GradcheckError):
    """Two Jacobians, or what is left of them, that differ."""

    def __init__(self, numerical, analytical, output, target, kind, forward=False, more="") -> None:
        mode = " computed with forward mode" if forward else ""
        self.numerical, self.analytical = numerical, analytical
        super().__init__(
            f"{kind}Jacobian{mode} mismatch for output {output} with respect to input {target},\n"
            f"numerical:{numerical}\nanalytical:{analytical}\n{more}"
        )


_Mismatch.__name__ = _Mismatch.__qualname__ = "GradcheckError"


def _kinds(output: Tensor) -> Iterator[tuple[int, Any, str]]:
    """The real outputs an output consists of: which part, its cotangent, how errors call it."""
    if not output.is_complex():
        yield 0, 1.0, ""
        return
    yield 1, 1j, "While considering the imaginary part of complex outputs only, "
    yield 0, 1.0, "While considering the real part of complex outputs only, "


_NOT_REENTRANT = (
    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives "
    "different values, although analytical gradient matches numerical gradient.The tolerance for "
    "nondeterminism was {}."
)


def _recorded(function, inputs, places) -> list[Tensor]:
    """The outputs to differentiate. Called after finite differences, which write to the inputs."""
    results = _tensors(function(*inputs))
    return [results[i] for i in places]


def _check_slow(function, inputs, targets, places, options) -> None:
    eps, atol, rtol, nondet = options["eps"], options["atol"], options["rtol"], options["nondet_tol"]
    numerical = [_numerical_jacobians(function, inputs, places, t, eps) for t in targets]
    outputs = _recorded(function, inputs, places)
    for o, output in enumerate(outputs):
        for part, unit, kind in _kinds(output):
            analytical = _analytical_jacobians(targets, output, unit)
            again = _analytical_jacobians(targets, output, unit)
            if not _agree(analytical, again, nondet):
                raise GradcheckError(_NOT_REENTRANT.format(nondet))
            for i, found in enumerate(analytical):
                expected = numerical[i][o][part]
                if not _close(found, expected.to(found.dtype), atol, rtol):
                    raise _Mismatch(expected.to(found.dtype), found, o, i, kind)


def _random_direction(like: Tensor, generator) -> Tensor:
    real = rushlight.rand(like.shape, dtype=_C.float64, generator=generator)
    if like.is_complex():
        real = rushlight.complex(real, rushlight.rand(like.shape, dtype=_C.float64, generator=generator))
    return (real / max(float(real.abs().pow(2).sum()) ** 0.5, 1e-12)).to(like.dtype)


def _slow_says(check, function, inputs, targets, places, options) -> str:
    said = (
        "\nThe above quantities relating the numerical and analytical jacobians are computed \nin fast mode. "
    )
    try:
        check(function, inputs, targets, places, options)
    except _Mismatch as error:
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


def _check_fast(function, inputs, targets, places, options) -> None:
    eps, atol, rtol, nondet = options["eps"], options["atol"], options["rtol"], options["nondet_tol"]
    generator = rushlight.Generator().manual_seed(0)
    directions = [_random_direction(t, generator) for t in targets]
    slopes = [
        _difference(function, inputs, places, target, direction, eps)
        for target, direction in zip(targets, directions, strict=True)
    ]
    outputs = _recorded(function, inputs, places)
    for o, output in enumerate(outputs):
        weights = _random_direction(output, generator)
        for part, unit, kind in _kinds(output):
            weight = (weights.abs() * unit).to(output.dtype)
            grads = _gradients(output, targets, weight)
            again = _gradients(output, targets, weight)
            if not _agree(grads, again, nondet):
                raise GradcheckError(_NOT_REENTRANT.format(nondet))
            for i, (target, direction) in enumerate(zip(targets, directions, strict=True)):
                moved = _part(slopes[i][o], "imag" if part else "real")
                expected = (moved * weights.abs().double()).sum()
                found = (grads[i] * direction.conj()).sum()
                found = found.real.double() if target.is_complex() else found.double()
                # A sum of many elements may be off by as many tolerances.
                slack = atol * float(direction.abs().sum()) * max(float(weights.abs().sum()), 1.0)
                if not _close(found, expected, slack, rtol):
                    more = _slow_says(_check_slow, function, inputs, targets, places, options)
                    raise _Mismatch(expected, found, o, i, kind, more=more)


def _check_forward(function, inputs, targets, places, options) -> None:
    for i, target in enumerate(targets):
        kinds: list[tuple[complex, str]] = [(1.0, "")]
        if target.is_complex():
            kinds = [
                (1j, "While considering the imaginary part of complex inputs only, "),
                (1.0, "While considering the real part of complex inputs only, "),
            ]
        for unit, kind in kinds:
            if options["fast_mode"]:
                _check_pushed(function, inputs, targets, i, unit, kind, places, options)
                continue
            numerical: list[list] = [[] for _ in places]
            analytical: list[list] = [[] for _ in places]
            for element, index in enumerate(_indices(target)):
                slopes = _difference(function, inputs, places, target, (index, unit), options["eps"])
                tangents = _pushed(function, inputs, targets, {i: _unit(target, element, unit)}, places)
                for o, (slope, tangent) in enumerate(zip(slopes, tangents, strict=True)):
                    found = rushlight.zeros_like(slope) if tangent is None else tangent.detach()
                    numerical[o].append(slope.reshape(-1))
                    analytical[o].append(found.reshape(-1))
            for o in range(len(places) if target.numel() else 0):
                expected, found = rushlight.stack(numerical[o]), rushlight.stack(analytical[o])
                if not _close(found, expected, options["atol"], options["rtol"]):
                    raise _Mismatch(expected, found, o, i, kind, forward=True)


def _check_pushed(function, inputs, targets, i, unit, kind, places, options) -> None:
    """Both ways must move the outputs alike if an input moves into a random direction."""
    target = targets[i]
    generator = rushlight.Generator().manual_seed(0)
    direction = (_random_direction(target, generator).abs() * unit).to(target.dtype)
    slopes = _difference(function, inputs, places, target, direction, options["eps"])
    tangents = _pushed(function, inputs, targets, {i: direction}, places)
    # Many elements move at once, and may be off by as many tolerances.
    slack = options["atol"] * max(float(direction.abs().sum()), 1.0)
    for o, (slope, tangent) in enumerate(zip(slopes, tangents, strict=True)):
        found = rushlight.zeros_like(slope) if tangent is None else tangent.detach()
        if not _close(found, slope, slack, options["rtol"]):
            slowly = {**options, "fast_mode": False}
            more = _slow_says(_check_forward, function, inputs, targets, places, slowly)
            raise _Mismatch(slope.reshape(-1), found.reshape(-1), o, i, kind, forward=True, more=more)


def _pushed(function, inputs, targets, directions, places, still=()) -> list:
    """The tangents of the outputs if the targets move into `directions`, the others by zero; those in `still`
    have no tangent at all. The function sees values that do not require grad."""
    from rushlight.autograd import forward_ad

    with forward_ad.dual_level():
        moved, number = [], 0
        for value in inputs:
            if isinstance(value, Tensor) and value.requires_grad:
                tangent, value = directions.get(number), value.detach()
                if number not in still:
                    tangent = rushlight.zeros_like(value) if tangent is None else tangent
                    value = forward_ad.make_dual(value, tangent)
                number += 1
            moved.append(value)
        results = _results(function(*moved))
        return [forward_ad.unpack_dual(results[place]).tangent for place in places]


def _check_undefined_forward(function, inputs, targets, places) -> None:
    """A tangent that is not there must count as zero."""
    generator = rushlight.Generator().manual_seed(0)
    directions = {i: _random_direction(t, generator) for i, t in enumerate(targets)}
    for i, target in enumerate(targets):
        others = {k: direction for k, direction in directions.items() if k != i}
        expected = _pushed(function, inputs, targets, others, places)
        found = _pushed(function, inputs, targets, others, places, still=(i,))
        for o, (a, b) in enumerate(zip(expected, found, strict=True)):
            if a is not None and b is not None and not _close(a, b, 1e-8, 1e-5):
                raise GradcheckError(
                    "Mismatch in tangent values for output with index: ",
                    o,
                    " when input: ",
                    target,
                    " has an undefined tangent value. ",
                    " Got: ",
                    a,
                    " but expected: ",
                    b,
                )


_BATCHED_FORWARD = """

gradcheck failed while testing batched gradient computation with forward-mode AD.
Call gradcheck with `check_batched_forward_grad=False` to leave this test out.
"""


def _check_batched_forward(function, inputs, targets, places) -> None:
    """A batch of tangents, pushed at once as their sum, must move the outputs as its members do in turn."""
    generator = rushlight.Generator().manual_seed(0)
    for i, target in enumerate(targets):
        batch = [_random_direction(target, generator) for _ in range(2)]
        single = [_pushed(function, inputs, targets, {i: tangent}, places) for tangent in batch]
        state = rushlight.random.get_rng_state()
        joint = _pushed(function, inputs, targets, {i: batch[0] + batch[1]}, places)
        if not rushlight.equal(state, rushlight.random.get_rng_state()):
            raise GradcheckError(
                "While computing batched gradients, got: vmap: We do not yet support calling random "
                "operations inside of vmap. Please perform random operations outside of vmap as a "
                "workaround\n" + _BATCHED_FORWARD
            )
        for o, found in enumerate(joint):
            expected = [row[o] for row in single]
            if found is None or any(e is None for e in expected):
                continue
            if not _close(found, expected[0] + expected[1], 1e-8, 1e-5):
                raise GradcheckError(
                    f"For output {o} and input {i}:\n{_BATCHED_FORWARD}\nGot:\n{found}\n\nExpected:\n"
                    f"{expected[0] + expected[1]}\n"
                )


def _check_undefined(function, inputs, targets) -> None:
    """A gradient that did not arrive must count as zero."""
    outputs = _differentiable(function(*inputs))

    def check(undefined: set) -> None:
        grads = [None if i in undefined else rushlight.zeros_like(o) for i, o in enumerate(outputs)]
        given = [
            (_blocked(o) if g is None else o, rushlight.zeros_like(o) if g is None else g)
            for o, g in zip(outputs, grads, strict=True)
        ]
        try:
            found = rushlight.autograd.grad(
                [o for o, _ in given], targets, [g for _, g in given], retain_graph=True, allow_unused=True
            )
        except RuntimeError as error:
            warn(_UNDEFINED_IS_NEW)
            raise GradcheckError(
                "Expected backward function to handle undefined output grads. Please look at "
                '"Notes about undefined output gradients" in "tools/autograd/derivatives.yaml"'
            ) from error
        if any(g is not None and bool((g != 0).any()) for g in found):
            warn(_UNDEFINED_IS_NEW)
            raise GradcheckError(
                "Expected all input grads to be undefined or zero when all output grads are undefined or "
                'zero. Please look at "Notes about undefined output gradients" in '
                '"tools/autograd/derivatives.yaml"'
            )

    check(set(range(len(outputs))))
    if len(outputs) > 1:
        for index in range(len(outputs)):
            check({index})
            check(set(range(len(outputs))) - {index})


_UNDEFINED_IS_NEW = (
    "Backwards compatibility: New undefined gradient support checking feature is enabled by default, but it "
    "may break existing callers of this function. If this is true for you, you can call this function with "
    '"check_undefined_grad=False" to disable the feature'
)


class _Block(Function):
    """Passes a value on and no gradient back."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return None


def _blocked(t: Tensor) -> Tensor:
    return _Block.apply(t)


def _check_scaled(outputs, targets, check_dtypes) -> None:
    """backward is linear: of zero it is zero."""
    zeros = [rushlight.zeros_like(o) for o in outputs]
    found: Any = rushlight.autograd.grad(outputs, targets, zeros, retain_graph=True, allow_unused=True)
    for grad, target in zip(found, targets, strict=True):
        if grad is None:
            continue
        if bool((grad != 0).any()):
            raise GradcheckError("backward not multiplied by grad_output")
        if check_dtypes and grad.dtype != target.dtype:
            raise GradcheckError("grad is incorrect type")
        if grad.shape != target.shape:
            raise GradcheckError("grad is incorrect size")


_BATCHED = """
gradcheck or gradgradcheck failed while testing batched gradient computation.
Call it with `check_batched_grad=False` to leave this test out.
"""


def _check_batched(outputs, targets) -> None:
    for o, output in enumerate(outputs):
        rows = [rushlight.randn(output.shape, dtype=output.dtype) for _ in range(2)]
        single = [_gradients(output, targets, row) for row in rows]
        try:
            batched = rushlight.autograd.grad(
                output,
                targets,
                rushlight.stack(rows),
                retain_graph=True,
                allow_unused=True,
                is_grads_batched=True,
            )
        except RuntimeError as error:
            raise GradcheckError(f"While computing batched gradients, got: {error}\n{_BATCHED}") from error
        for place, grads in enumerate(batched):
            expected = rushlight.stack([row[place] for row in single])
            if grads is not None and not _close(grads, expected, 1e-8, 1e-5):
                raise GradcheckError(
                    f"For output {o} and input {place}:\n{_BATCHED}\nGot:\n{grads}\n\nExpected:\n{expected}\n"
                )


def _check(function: Callable, inputs: Any, options: dict) -> bool:
    if not options["check_forward_ad"] and not options["check_backward_ad"]:
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if options["check_batched_grad"] and not options["check_backward_ad"]:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if options["check_batched_forward_grad"] and not options["check_forward_ad"]:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    inputs = tuple(inputs) if isinstance(inputs, collections.abc.Sequence) else (inputs,)
    targets = _checked_inputs(inputs)
    results = _results(function(*inputs))
    places = [i for i, t in enumerate(results) if t.requires_grad]
    if not places:
        still = [i for i, t in enumerate(results) if t.dtype.is_floating_point or t.dtype.is_complex]
        if options["fast_mode"]:  # which moves all elements at once and looks at integers too
            still = list(range(len(results)))
        for target in targets:
            for real, imag in _numerical_jacobians(function, inputs, still, target, options["eps"]):
                if bool((real != 0).any()) or bool((imag != 0).any()):
                    raise GradcheckError("Numerical gradient for function expected to be zero")
        return True
    if options["check_backward_ad"]:
        check = _check_fast if options["fast_mode"] else _check_slow
        check(function, inputs, targets, places, options)
    if options["check_forward_ad"]:
        _check_forward(function, inputs, targets, places, options)
        if options["check_undefined_grad"]:
            _check_undefined_forward(function, inputs, targets, places)
    if options["check_batched_forward_grad"]:
        _check_batched_forward(function, inputs, targets, places)
    if not options["check_backward_ad"]:
        return True
    outputs = _recorded(function, inputs, places)
    if options["check_batched_grad"]:
        _check_batched(outputs, targets)
    _check_scaled(outputs, targets, options["check_grad_dtypes"])
    if options["check_undefined_grad"]:
        _check_undefined(function, inputs, targets)
    return True


def gradcheck(
    func: Callable,
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compares the gradients of `func` at `inputs` with finite differences; raises GradcheckError otherwise.

    >>> x = rushlight.ones(3, dtype=rushlight.float64, requires_grad=True)
    >>> rushlight.autograd.gradcheck(rushlight.sin, (x,))
    True
    """
    options = dict(locals())
    del options["func"], options["inputs"]
    if raise_exception:
        return _check(func, inputs, options)
    try:
        return _check(func, inputs, options)
    except GradcheckError:
        return False


def gradgradcheck(
    func: Callable,
    inputs: Any,
    grad_outputs: Sequence[Tensor] | Tensor | None = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """The same for the gradients of the gradients, with respect to `inputs` and to the `grad_outputs`.

    >>> x = rushlight.ones(3, dtype=rushlight.float64, requires_grad=True)
    >>> rushlight.autograd.gradgradcheck(rushlight.sin, (x,))
    True
    """
    if not check_fwd_over_rev and not check_rev_over_rev:
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    if check_undefined_grad and not check_rev_over_rev:
        raise AssertionError("Setting check_undefined_grad=True requires check_rev_over_rev to be True")
    if check_batched_grad and not check_rev_over_rev:
        raise AssertionError("Setting check_batched_grad=True requires check_rev_over_rev to be True")
    inputs = tuple(inputs) if isinstance(inputs, collections.abc.Sequence) else (inputs,)
    count = len(inputs)
    if grad_outputs is None:
        outputs = _differentiable(func(*inputs))
        generator = rushlight.Generator().manual_seed(0)
        made = []
        for output in outputs:
            dtype = output.dtype if output.dtype.is_floating_point or output.is_complex() else _C.float64
            one = rushlight.randn(output.shape, dtype=dtype, generator=generator)
            if gen_non_contig_grad_outputs and one.dim():
                one = rushlight.stack([one, one], -1)[..., 0]
            made.append(one.requires_grad_())
        grad_outputs = tuple(made)
    else:
        grad_outputs = (grad_outputs,) if isinstance(grad_outputs, Tensor) else tuple(grad_outputs)

    def gradients(*args):
        values, weights = args[:count], args[count:]
        # Inside forward mode and finite differences nothing is recorded otherwise.
        with rushlight.enable_grad():
            for value, given in zip(values, needs, strict=True):
                if given:
                    value.requires_grad_()
            outputs = _differentiable(func(*values))
            targets = [v for v in values if isinstance(v, Tensor) and v.requires_grad]
            found = rushlight.autograd.grad(outputs, targets, weights, create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    needs = [isinstance(v, Tensor) and v.requires_grad for v in inputs]
    return gradcheck(
        gradients,
        (*inputs, *grad_outputs),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        masked=masked,
    )


# ---- names that test suites import


def _as_tuple(x: Any) -> tuple:
    return x if isinstance(x, tuple) else tuple(x) if isinstance(x, list) else (x,)


def _is_float_or_complex_tensor(obj: Any) -> bool:
    return isinstance(obj, Tensor) and (obj.is_floating_point() or obj.is_complex())


def _differentiable_outputs(x: Any) -> tuple:
    return tuple(o for o in _as_tuple(x) if o.requires_grad)


def _test_batched_grad(input: Any, output: Tensor, output_idx: int) -> bool:
    """Gradients of a batch must be those of its members."""
    _check_batched([output], [t for t in _iter_tensors(input) if t.requires_grad])
    return True


def _test_batched_grad_forward_ad(func: Callable, inputs: tuple) -> bool:
    """Tangents of a batch must be those of its members."""
    _check_batched_forward(func, inputs, *_moving(func, inputs))
    return True


def _test_undefined_forward_mode(func: Callable, outputs: Any, inputs: tuple) -> bool:
    """A tangent that is not there must count as zero."""
    _check_undefined_forward(func, inputs, *_moving(func, inputs))
    return True


def _moving(func: Callable, inputs: tuple) -> tuple[list[Tensor], list[int]]:
    """The inputs that require grad, and the places of the outputs that do."""
    targets = [t for t in inputs if isinstance(t, Tensor) and t.requires_grad]
    return targets, [i for i, t in enumerate(_results(func(*inputs))) if t.requires_grad]


def _test_undefined_backward_mode(func: Callable, outputs: Any, inputs: tuple) -> bool:
    """A gradient that did not arrive must count as zero."""
    _check_undefined(func, inputs, [t for t in _iter_tensors(inputs) if t.requires_grad])
    return True


def get_numerical_jacobian_wrt_specific_input(
    fn: Callable, input_idx: int, inputs: tuple, outputs: Any, eps: float, input: Any = None
) -> tuple:
    """The Jacobian of every output by finite differences of one input."""
    target = inputs[input_idx] if input is None else input
    return tuple(real for real, _ in _numerical_jacobians(fn, inputs, None, target, eps))


def _iter_tensors(x: Any, only_requiring_grad: bool = False) -> Iterator[Tensor]:
    """The tensors in nested sequences."""
    if isinstance(x, Tensor):
        if x.requires_grad or not only_requiring_grad:
            yield x
    elif isinstance(x, collections.abc.Iterable) and not isinstance(x, str):
        for element in x:
            yield from _iter_tensors(element, only_requiring_grad)


def _get_numerical_jacobian(
    fn: Callable,
    inputs: Any,
    outputs: Any = None,
    target: Any = None,
    eps: float = 1e-3,
    is_forward_ad: bool = False,
) -> list[tuple[Tensor, ...]]:
    """Per tensor of `target` (or of the inputs) that requires grad: the Jacobian of every output."""
    targets = list(_iter_tensors(inputs if target is None else target, only_requiring_grad=True))
    results = fn(inputs)
    if any(t.is_complex() for t in (*targets, *_tensors(results))):
        raise NotImplementedError("_get_numerical_jacobian of complex values: see get_numerical_jacobian")
    return [tuple(real for real, _ in _numerical_jacobians(fn, (inputs,), None, one, eps)) for one in targets]
