"""What gradcheck asks besides that Jacobians agree: of inputs and outputs before it starts, of gradients and
tangents that are zero, missing or a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import rushlight
from rushlight import _C
from rushlight._annotations import Any
from rushlight._warn import warn
from rushlight.autograd._analytical_jacobians import gradients_of, with_zero_tangents
from rushlight.autograd._finite_differences import (
    _get_numerical_jacobian,
    _get_numerical_jvp_wrt_specific_input,
)
from rushlight.autograd._gradcheck_parts import (
    GradcheckError,
    _as_tuple,
    _differentiable_outputs,
    _get_inp_tensors,
    _is_float_or_complex_tensor,
    _is_sparse_any_tensor,
    _iter_tensors,
    _make_vectors,
    is_tensor_like,
)
from rushlight.ops.create import _mkldnn

Tensor = _C.Tensor


# ---- inputs and outputs


def _check_inputs(tupled_inputs: Sequence) -> bool:
    """Raises or warns where finite differences cannot work on the inputs."""
    places, targets = _get_inp_tensors(tupled_inputs)
    for place, value in zip(places, targets, strict=True):
        if value.dtype not in (_C.float64, _C.complex128):
            warn(
                f"Input #{place} requires gradient and is not a double precision floating point or complex. "
                "This check will likely fail if all the inputs are not of double precision floating point or "
                "complex. "
            )
        held: Any = value
        if _is_sparse_any_tensor(value):
            held = held.detach().memory()
        if held.layout is not _mkldnn and any(
            step == 0 and size > 1 for size, step in zip(held.shape, held.stride(), strict=True)
        ):
            raise RuntimeError(
                f"The {place}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                "non-overlapping to be able to compute the numerical gradients correctly. You should call "
                ".contiguous on the input before passing it to gradcheck."
            )
    if not targets:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have "
            "requires_grad=True."
        )
    return True


def _check_outputs(outputs: Any) -> None:
    """Raises if an output cannot be compared with finite differences."""
    tensors = [t for t in outputs if isinstance(t, Tensor)]
    for kind, found in (
        ("Sparse", any(map(_is_sparse_any_tensor, tensors))),
        ("MKLDNN", any(t.layout is _mkldnn for t in tensors)),
    ):
        if found:
            raise ValueError(
                f"{kind} output is not supported at gradcheck yet. Please call to_dense(masked_grad=...) on "
                "the output of fn for gradcheck."
            )


_NOT_ZERO = "Numerical gradient for function expected to be zero"


def _check_no_differentiable_outputs(
    func: Callable, inputs: Any, func_out: Any, eps: float, *, is_forward_ad: bool
) -> bool:
    """A function whose outputs have no gradient must not change with its inputs, unless to integers."""
    for jacobians in _get_numerical_jacobian(func, inputs, func_out, eps=eps, is_forward_ad=is_forward_ad):
        if any(bool((jacobian != 0).any()) for jacobian in jacobians):
            raise GradcheckError(_NOT_ZERO)
    return True


def _check_no_differentiable_outputs_fast(
    func: Callable,
    func_out: Any,
    all_inputs: Any,
    inputs_indices: Sequence[int],
    all_u: Sequence,
    eps: float,
    nondet_tol: float,
) -> bool:
    """The same along a vector: integers count too, and changes within the tolerance do not."""
    for place, u in zip(inputs_indices, all_u, strict=False):
        for slope in _get_numerical_jvp_wrt_specific_input(func, place, all_inputs, u, eps):
            if slope.numel() and bool(slope.abs().max() > nondet_tol):
                raise GradcheckError(_NOT_ZERO)
    return True


# ---- gradients and tangents of zero


def _required(inputs: Any) -> list[Tensor]:
    targets = list(_iter_tensors(inputs, True))
    if not targets:
        raise GradcheckError("no Tensors requiring grad found in input")
    return targets


def _zeros(outputs: Sequence[Tensor]) -> list[Tensor]:
    return [rushlight.zeros_like(o, memory_format=rushlight.legacy_contiguous_format) for o in outputs]


def _test_backward_mul_by_grad_output(outputs: Any, inputs: Any, masked: bool | None) -> bool:
    """backward is linear: of zero it is zero."""
    targets = _required(inputs)
    found: Any = rushlight.autograd.grad(outputs, targets, _zeros(outputs), allow_unused=True)
    for gradient, target in zip(found, targets, strict=True):
        if gradient is None:
            continue
        if gradient.layout is not rushlight.strided:
            _check_layout(gradient, target)
            gradient, target = gradient.to_dense(), target.to_dense()
        zero = gradient.abs() <= 1e-8 if masked else gradient == 0
        if not bool(zero.all()):
            raise GradcheckError("backward not multiplied by grad_output")
        for what, name in (("dtype", "type"), ("device", "device"), ("shape", "size")):
            if getattr(gradient, what) != getattr(target, what):
                raise GradcheckError(f"grad is incorrect {name}")
    return True


def _check_layout(gradient: Tensor, target: Tensor) -> None:
    if target.layout != gradient.layout:
        raise GradcheckError(f"grad is incorrect layout ({gradient.layout} is not {target.layout})")
    if not _is_sparse_any_tensor(gradient):
        return
    kind = str(gradient.layout).removeprefix("torch.").replace("_coo", "")
    for what in ("sparse_dim", "dense_dim"):
        found, expected = getattr(gradient, what)(), getattr(target, what)()
        if found != expected:
            raise GradcheckError(
                f"grad is {kind} tensor, but has incorrect {what} {found}, expected {expected}"
            )


_SEE_NOTES = 'Please look at "Notes about undefined output gradients" in "tools/autograd/derivatives.yaml"'


def _test_undefined_backward_mode(func: Callable, outputs: Any, inputs: Any) -> bool:
    """A gradient that did not arrive must count as zero."""
    targets = _required(inputs)

    def without(missing: Callable) -> list[Tensor]:
        """The outputs, where those that `missing` says pass no gradient on."""
        found = _differentiable_outputs(func(*inputs))
        return [_C._functions.UndefinedGrad()(o) if missing(place) else o for place, o in enumerate(found)]

    checked = [without(lambda place: True)]
    if len(checked[0]) > 1:
        checked += [without(lambda place, one=one: place == one) for one in range(len(outputs))]
    return all(_check_undefined(some, targets) for some in checked)


def _check_undefined(outputs: list[Tensor], targets: list[Tensor]) -> bool:
    try:
        found: Any = rushlight.autograd.grad(outputs, targets, _zeros(outputs), allow_unused=True)
    except RuntimeError as error:
        _warn_of_undefined()
        raise GradcheckError(
            f"Expected backward function to handle undefined output grads. {_SEE_NOTES}"
        ) from error
    if any(g is not None and not bool(g.eq(0).all()) for g in found):
        _warn_of_undefined()
        raise GradcheckError(
            "Expected all input grads to be undefined or zero when all output grads are undefined or zero. "
            f"{_SEE_NOTES}"
        )
    return True


def _warn_of_undefined() -> None:
    warn(
        "Backwards compatibility: New undefined gradient support checking feature is enabled by default, but "
        "it may break existing callers of this function. If this is true for you, you can call this function "
        'with "check_undefined_grad=False" to disable the feature'
    )


def _test_undefined_forward_mode(func: Callable, outputs: Any, inputs: Any) -> bool:
    """A tangent that is not there must count as zero."""
    from rushlight.autograd import forward_ad

    places, targets = _get_inp_tensors(inputs)
    _, all_u, _ = _make_vectors(targets, outputs, use_forward_ad=True)
    with forward_ad.dual_level():
        duals, tangents = with_zero_tangents(inputs)
        for tangent, u in zip(tangents, all_u, strict=True):
            tangent.copy_(u.view_as(tangent))

        def pushed(place: int, value: Tensor) -> list:
            moved = [*duals[:place], value, *duals[place + 1 :]]
            results = filter(_is_float_or_complex_tensor, _as_tuple(func(*moved)))
            return [forward_ad.unpack_dual(result)[1] for result in results]

        for place, target in zip(places, targets, strict=True):
            zero = forward_ad.make_dual(target.detach(), rushlight.zeros_like(target))
            with_zero, without = pushed(place, zero), pushed(place, target.detach())
            for o, (a, b) in enumerate(zip(with_zero, without, strict=False)):
                if a is not None and b is not None and not rushlight.allclose(a, b):
                    raise GradcheckError(
                        "Mismatch in tangent values for output with index: ", o, " when input: ", target,
                        " has an undefined tangent value. ", " Got: ", a, " but expected: ", b,
                    )  # fmt: skip
    return True


# ---- batches

FAILED_BATCHED_GRAD_MSG = """
gradcheck or gradgradcheck failed while testing batched gradient computation.
Call it with `check_batched_grad=False` to leave this test out.
""".strip()
FAILED_BATCHED_GRAD_MSG_FWD_AD = """
gradcheck failed while testing batched gradient computation with forward-mode AD.
Call gradcheck with `check_batched_forward_grad=False` to leave this test out.
"""


def _get_failed_batched_grad_test_msg(
    output_idx: int, input_idx: int, res: Tensor, exp: Tensor, is_forward_ad: bool = False
) -> str:
    about = FAILED_BATCHED_GRAD_MSG_FWD_AD if is_forward_ad else FAILED_BATCHED_GRAD_MSG
    return f"For output {output_idx} and input {input_idx}:\n\n{about}\n\nGot:\n{res}\n\nExpected:\n{exp}"


def _failed(error: RuntimeError, about: str) -> GradcheckError:
    return GradcheckError(f"While computing batched gradients, got: {error}\n\n{about}")


def _zero_of(like: Tensor) -> Tensor:
    """What stands for a gradient or a tangent that is not there."""
    return rushlight.zeros([], dtype=like.dtype, device=like.device).expand(like.shape)


def _test_batched_grad(input: Any, output: Tensor, output_idx: int) -> bool:
    """Gradients of a batch must be those of its members."""
    from rushlight._vmap_internals import _vmap

    grad, targets = gradients_of(output, input), list(_iter_tensors(input, True))

    def vjp(v: Tensor) -> tuple[Tensor, ...]:
        return tuple(_zero_of(t) if g is None else g for g, t in zip(grad(v), targets, strict=True))

    batch = [rushlight.randn_like(output) for _ in range(2)]
    alone = [rushlight.stack(column) for column in zip(*map(vjp, batch), strict=False)]
    try:
        together = _vmap(vjp)(rushlight.stack(batch))
    except RuntimeError as error:
        raise _failed(error, FAILED_BATCHED_GRAD_MSG) from error
    for place, (found, expected) in enumerate(zip(together, alone, strict=False)):
        if not rushlight.allclose(found, expected):
            raise GradcheckError(_get_failed_batched_grad_test_msg(output_idx, place, found, expected))
    return True


def _test_batched_grad_forward_ad(func: Callable, inputs: tuple) -> bool:
    """Tangents of a batch must be those of its members."""
    from rushlight._vmap_internals import _vmap
    from rushlight.autograd import forward_ad

    if not isinstance(inputs, tuple):
        raise AssertionError("Expected inputs to be a tuple")
    for place, target in enumerate(inputs):
        if not (_is_float_or_complex_tensor(target) and target.requires_grad):
            continue
        still = [value.detach() if is_tensor_like(value) else value for value in inputs]

        def jvp(tangent: Tensor, place: int = place, still: list = still) -> tuple[Tensor, ...]:
            with forward_ad.dual_level():
                dual = forward_ad.make_dual(still[place], tangent)
                results = _as_tuple(func(*still[:place], dual, *still[place + 1 :]))
                parts = [forward_ad.unpack_dual(result) for result in results if result is not None]
                return tuple(_zero_of(primal) if t is None else t for primal, t in parts)

        batch = [rushlight.randn_like(target) for _ in range(2)]
        alone = [rushlight.stack(column) for column in zip(*map(jvp, batch), strict=False)]
        try:
            together = _vmap(jvp)(rushlight.stack(batch))
        except RuntimeError as error:
            raise _failed(error, FAILED_BATCHED_GRAD_MSG_FWD_AD) from error
        for index, (found, expected) in enumerate(zip(together, alone, strict=False)):
            if not rushlight.allclose(found, expected):
                raise GradcheckError(_get_failed_batched_grad_test_msg(index, index, found, expected, True))
    return True
