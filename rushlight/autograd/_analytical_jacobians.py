"""Jacobians by backward and by forward mode, for gradcheck: all of one or its product with a vector."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence

import rushlight
from rushlight import _C
from rushlight._annotations import Any
from rushlight.autograd._gradcheck_parts import (
    GradcheckError,
    _allocate_jacobians_with_inputs,
    _allocate_jacobians_with_outputs,
    _as_tuple,
    _check_jacobians_equal,
    _is_float_or_complex_tensor,
    _iter_tensors,
    is_tensor_like,
)
from rushlight.ops.create import _mkldnn

Tensor = _C.Tensor
Columns = list[list[Tensor | None]]  # per input, per column of its Jacobian: a gradient

FAILED_NONDET_MSG = """

Where a function or its derivative is known to give results that differ in their last bits from run to run,
call gradcheck and gradgradcheck with the difference to put up with: `nondet_tol=...`.
"""


# ---- backward


def gradients_of(output: Tensor, inputs: Any) -> Callable:
    """The gradients of the inputs that require grad as a function of the output's."""
    targets = list(_iter_tensors(inputs, True))

    def vjp_fn(grad_output: Tensor) -> tuple:
        return rushlight.autograd.grad(output, targets, grad_output, retain_graph=True, allow_unused=True)

    return vjp_fn


def _compute_analytical_jacobian_rows(vjp_fn: Callable, sample_output: Tensor) -> Columns:
    """What `vjp_fn` gives for each element of an output alone: a list per input."""
    unit = rushlight.zeros_like(sample_output, memory_format=rushlight.legacy_contiguous_format)
    flat, found = unit.view(-1), []
    for element in range(flat.numel()):
        flat.zero_()
        flat[element] = 1.0
        found.append(_clones(vjp_fn(unit)))
    return [list(of_input) for of_input in zip(*found, strict=True)]


def _get_analytical_vjps_wrt_specific_output(vjp_fn: Callable, sample_output: Tensor, v: Tensor) -> Columns:
    """What `vjp_fn` gives for a vector v of the output's elements: a list of one per input."""
    return [[gradient] for gradient in _clones(vjp_fn(v.reshape(sample_output.shape)))]


def _clones(gradients: Sequence) -> list[Tensor | None]:
    return [g.clone() if isinstance(g, Tensor) else None for g in gradients]


def _stack_and_check_tensors(
    list_of_list_of_tensors: Columns, inputs: Any, numel_outputs: int
) -> tuple[tuple[Tensor, ...], bool, bool]:
    """The Jacobians with these columns; and whether gradients have the sizes and the dtypes of the inputs."""
    jacobians = _allocate_jacobians_with_inputs(inputs, numel_outputs)
    targets = list(_iter_tensors(inputs, True))
    sizes_fit = dtypes_fit = True
    for place, (target, gradients) in enumerate(zip(targets, list_of_list_of_tensors, strict=False)):
        jacobian = jacobians[place]  # fails for a tensor in a list, which nobody moves
        for column, gradient in enumerate(gradients):
            if gradient is None:
                continue
            if gradient.size() != target.size():
                sizes_fit = False
            elif gradient.dtype != target.dtype:
                dtypes_fit = False
            dense = gradient if gradient.layout is rushlight.strided else gradient.to_dense()
            if dense.numel() != len(jacobian):
                raise AssertionError(
                    f"Expected out_jacobian column to have {dense.numel()} elements, but got {len(jacobian)}"
                )
            jacobian[:, column] = dense.reshape(-1)
    return jacobians, sizes_fit, dtypes_fit


def twice(
    inputs: Any, output: Tensor, nondet_tol: float, columns: Callable, count: int
) -> tuple[tuple[Tensor, ...], bool, bool, bool]:
    """Jacobians of `count` columns; whether they came again as they were; whether sizes and dtypes fit."""
    vjp_fn = gradients_of(output, inputs)
    first, again = (columns(vjp_fn, output.clone()) for _ in range(2))
    jacobians, sizes_fit, dtypes_fit = _stack_and_check_tensors(first, inputs, count)
    others, _, _ = _stack_and_check_tensors(again, inputs, count)
    return jacobians, _check_jacobians_equal(jacobians, others, nondet_tol), sizes_fit, dtypes_fit


def _check_analytical_jacobian_attributes(
    inputs: Any,
    output: Tensor,
    nondet_tol: float,
    check_grad_dtypes: bool,
    fast_mode: bool = False,
    v: Any = None,
) -> tuple[Tensor, ...]:
    """The Jacobians of an output by backward, in the fast mode v times them: of the right sizes and dtypes
    and the same a second time."""
    columns, count = _compute_analytical_jacobian_rows, output.numel()
    if fast_mode:
        columns, count = functools.partial(_get_analytical_vjps_wrt_specific_output, v=v), 1
    jacobians, same, sizes_fit, dtypes_fit = twice(inputs, output, nondet_tol, columns, count)
    if check_grad_dtypes and not dtypes_fit:
        raise GradcheckError("Gradient has dtype mismatch")
    if not sizes_fit:
        raise GradcheckError("Analytical gradient has incorrect size")
    if not same:
        raise GradcheckError(
            "Backward is not reentrant, i.e., running backward with same input and grad_output multiple "
            "times gives different values, although analytical gradient matches numerical gradient."
            f"The tolerance for nondeterminism was {nondet_tol}.{FAILED_NONDET_MSG}"
        )
    return jacobians


def _get_analytical_jacobian(inputs: Any, outputs: Any, input_idx: int, output_idx: int) -> Tensor:
    """The Jacobian of one output by one of the inputs that require grad, whatever a second run may give."""
    return _check_analytical_jacobian_attributes(inputs, outputs[output_idx], float("inf"), False)[input_idx]


def _get_analytical_vJu_backward_mode(
    inputs: Any,
    outputs: Sequence[Tensor],
    nondet_tol: float,
    check_grad_dtypes: bool,
    all_v: Sequence,
    all_u: Sequence,
) -> list[list[Tensor]]:
    """Per output, per input: the product of the Jacobian with the output's v and the input's u."""
    found: list[list[Tensor]] = []
    for output, v in zip(outputs, all_v, strict=False):
        row = _check_analytical_jacobian_attributes(inputs, output, nondet_tol, check_grad_dtypes, True, v)
        found.append([_times(vJ.T.squeeze(0), u) for vJ, u in zip(row, all_u, strict=False)])
    return found


def _times(vJ: Tensor, u: Any) -> Tensor:
    return vJ.real.dot(u[0]) + 1j * vJ.imag.dot(u[1]) if vJ.is_complex() else vJ.dot(u)


# ---- forward mode


def _get_analytical_jacobian_forward_ad(
    fn: Callable, inputs: Any, outputs: Any, *, check_grad_dtypes: bool = False, all_u: Any = None
) -> tuple[tuple[Tensor, ...], ...]:
    """Per input that requires grad the Jacobian of every output, or its product with the input's u. `fn` has
    to use what it is given: it sees dual numbers, not the inputs."""
    from rushlight.autograd import forward_ad

    targets = [value for value in inputs if is_tensor_like(value) and value.requires_grad]
    if any(target.is_complex() for target in targets):
        raise ValueError("Expected inputs to be non-complex for _get_analytical_jacobian_forward_ad.")
    jacobians = [_allocate_jacobians_with_outputs(outputs, 1 if all_u else t.numel()) for t in targets]
    with forward_ad.dual_level():
        duals, tangents = with_zero_tangents(inputs)
        for place, tangent in enumerate(tangents):
            for row, unit in enumerate([all_u[place].view_as(tangent)] if all_u else _units(tangent)):
                tangent.copy_(unit)
                results = filter(_is_float_or_complex_tensor, _as_tuple(fn(*duals)))
                for jacobian, result in zip(jacobians[place], results, strict=False):
                    primal, found = forward_ad.unpack_dual(result)
                    if found is None:
                        continue
                    if check_grad_dtypes and primal.is_complex() != found.is_complex():
                        raise GradcheckError("Forward AD gradient has dtype mismatch.")
                    jacobian[row].copy_(found.reshape(-1))
            tangent.zero_()
    return tuple(tuple(j.squeeze(0) for j in of_input) if all_u else of_input for of_input in jacobians)


def with_zero_tangents(inputs: Any) -> tuple[list, list]:
    """Inputs for forward mode, and the tangents of those that require grad: zeros to be written."""
    from rushlight.autograd import forward_ad

    duals, tangents = [], []
    for value in inputs:
        if is_tensor_like(value) and value.requires_grad:
            if value.layout is _mkldnn:
                raise ValueError("MKLDNN inputs are not support for forward AD gradcheck.")
            value = forward_ad.make_dual(value.detach(), rushlight.zeros_like(value))
            tangents.append(forward_ad.unpack_dual(value)[1])  # that of a view may be another than was given
        duals.append(value)
    return duals, tangents


def _units(like: Tensor) -> Any:
    """For every element a tensor of zeros with a one there."""
    unit = rushlight.zeros_like(like, memory_format=rushlight.contiguous_format)
    for index in itertools.product(*map(range, like.shape)):
        unit[index] = 1.0
        yield unit
        unit[index] = 0.0
