"""What gradcheck asks of forward mode: that tangents are what finite differences say."""

from __future__ import annotations

import rushlight
from rushlight import _C
from rushlight.autograd._jacobians import (
    GradcheckError,
    Mismatch,
    considering,
    difference,
    indices_of,
    is_close,
    one_at,
    random_direction,
    results_of,
    slow_says,
)
from rushlight.ops._tangents import batching

Tensor = _C.Tensor


def check_forward(function, inputs, targets, places, options) -> None:
    """Compares the Jacobians of forward mode with finite differences. A complex input is two real ones."""
    if any(map(_C.is_any_sparse, targets)):  # they have no tangents
        raise NotImplementedError("Cannot access storage of SparseTensorImpl")
    check = _check_pushed if options["fast_mode"] else _check_rows
    imaginary = [i for i, target in enumerate(targets) if target.is_complex()]
    for part, unit in (("imaginary", 1j), ("real", 1.0)):
        if part == "imaginary" and not imaginary:
            continue
        units = [unit if i in imaginary else 1.0 for i in range(len(targets))]
        kinds = [considering(part, "inputs") if i in imaginary else options["kind"](i)
                 for i in range(len(targets))]  # fmt: skip
        check(function, inputs, targets, units, kinds, places, options)


def _check_rows(function, inputs, targets, units, kinds, places, options) -> None:
    for i, (target, unit) in enumerate(zip(targets, units, strict=True)):
        numerical: list[list] = [[] for _ in places]
        analytical: list[list] = [[] for _ in places]
        for element, index in enumerate(indices_of(target)):
            slopes = difference(function, inputs, places, target, (index, unit), options["eps"])
            tangents = _pushed(function, inputs, targets, {i: one_at(target, element, unit)}, places)
            for o, (slope, tangent) in enumerate(zip(slopes, tangents, strict=True)):
                found = rushlight.zeros_like(slope) if tangent is None else tangent.detach()
                numerical[o].append(slope.reshape(-1))
                analytical[o].append(found.reshape(-1))
        for o in range(len(places) if target.numel() else 0):
            expected, found = rushlight.stack(numerical[o]), rushlight.stack(analytical[o])
            if not is_close(found, expected, options["atol"], options["rtol"]):
                raise Mismatch(expected, found, o, i, kinds[i], forward=True)


def _check_pushed(function, inputs, targets, units, kinds, places, options) -> None:
    """Both ways must move the outputs alike if an input moves into a random direction."""
    generator = rushlight.Generator()
    directions = [random_direction(target, generator) for target in targets]
    for i, (target, direction) in enumerate(zip(targets, directions, strict=True)):
        step = (direction * units[i]).to(target.dtype)
        slopes = difference(function, inputs, places, target, step, options["eps"])
        tangents = _pushed(function, inputs, targets, {i: step}, places)
        # Many elements move at once, and may be off by as many tolerances.
        slack = options["atol"] * float(direction.sum())
        for o, (slope, tangent) in enumerate(zip(slopes, tangents, strict=True)):
            found = rushlight.zeros_like(slope) if tangent is None else tangent.detach()
            if not is_close(found, slope, slack, options["rtol"]):
                slowly = {**options, "fast_mode": False}
                more = slow_says(check_forward, function, inputs, targets, places, slowly)
                raise Mismatch(slope.reshape(-1), found.reshape(-1), o, i, kinds[i], forward=True, more=more)


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
        results = results_of(function(*moved))
        return [forward_ad.unpack_dual(results[place]).tangent for place in places]


def check_undefined_forward(function, inputs, targets, places) -> None:
    """A tangent that is not there must count as zero."""
    generator = rushlight.Generator()
    directions = {i: random_direction(t, generator).to(t.dtype) for i, t in enumerate(targets)}
    for i, target in enumerate(targets):
        others = {k: direction for k, direction in directions.items() if k != i}
        expected = _pushed(function, inputs, targets, others, places)
        found = _pushed(function, inputs, targets, others, places, still=(i,))
        for o, (a, b) in enumerate(zip(expected, found, strict=True)):
            if a is not None and b is not None and not is_close(a, b, 1e-8, 1e-5):
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


FAILED_BATCHED_GRAD_MSG_FWD_AD = """

gradcheck failed while testing batched gradient computation with forward-mode AD.
Call gradcheck with `check_batched_forward_grad=False` to leave this test out.
"""


def check_batched_forward(function, inputs, targets, places) -> None:
    """A batch of tangents, pushed at once as their sum, must move the outputs as its members do in turn."""
    for i, target in enumerate(targets):
        batch = [rushlight.randn_like(target) for _ in range(2)]
        single = [_pushed(function, inputs, targets, {i: tangent}, places) for tangent in batch]
        both = batch[0] + batch[1]
        _C.mark_batched(both, True)
        try:
            with batching:
                joint = _pushed(function, inputs, targets, {i: both}, places)
        except RuntimeError as error:
            raise GradcheckError(
                f"While computing batched gradients, got: {error}\n{FAILED_BATCHED_GRAD_MSG_FWD_AD}"
            ) from error
        for o, found in enumerate(joint):
            expected = [row[o] for row in single]
            if found is None or any(e is None for e in expected):
                continue
            if not is_close(found, expected[0] + expected[1], 1e-8, 1e-5):
                raise GradcheckError(
                    f"For output {o} and input {i}:\n{FAILED_BATCHED_GRAD_MSG_FWD_AD}\nGot:\n{found}\n\n"
                    f"Expected:\n{expected[0] + expected[1]}\n"
                )
