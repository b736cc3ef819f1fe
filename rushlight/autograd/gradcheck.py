"""Comparing derivatives with finite differences: `gradcheck` and `gradgradcheck`.

A Jacobian has a row per element of the input and a column per element of the output. A complex output is two
real ones, checked one after the other; the derivative with respect to a complex input z is
d/dRe(z) + i d/dIm(z), which is what backward returns for a real loss. In forward mode a complex input is two
real ones. The fast mode compares one random combination of rows and columns instead of all of them.

`_gradcheck_helper` is where to start. What it does step by step is in the files beside this one; programs
import the steps from here, under torch's names.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import rushlight
from rushlight import _C
from rushlight._annotations import Any
from rushlight._warn import warn
from rushlight.autograd._analytical_jacobians import (  # noqa: F401  (as below: programs import all of them)
    FAILED_NONDET_MSG,
    _check_analytical_jacobian_attributes,
    _compute_analytical_jacobian_rows,
    _get_analytical_jacobian,
    _get_analytical_jacobian_forward_ad,
    _get_analytical_vjps_wrt_specific_output,
    _get_analytical_vJu_backward_mode,
    _stack_and_check_tensors,
    twice,
)
from rushlight.autograd._finite_differences import (  # noqa: F401
    _check_outputs_same_dtype_and_shape,
    _combine_jacobian_cols,
    _compute_numerical_gradient,
    _compute_numerical_jvps_wrt_specific_input,
    _get_input_to_perturb,
    _get_numerical_jacobian,
    _get_numerical_jvp_fn,
    _get_numerical_jvp_wrt_specific_input,
    _get_numerical_vJu,
    _prepare_input,
    _with_prepare_inputs,
    get_numerical_jacobian_wrt_specific_input,
)
from rushlight.autograd._gradcheck_conditions import (  # noqa: F401
    FAILED_BATCHED_GRAD_MSG,
    FAILED_BATCHED_GRAD_MSG_FWD_AD,
    _check_inputs,
    _check_no_differentiable_outputs,
    _check_no_differentiable_outputs_fast,
    _check_outputs,
    _get_failed_batched_grad_test_msg,
    _test_backward_mul_by_grad_output,
    _test_batched_grad,
    _test_batched_grad_forward_ad,
    _test_undefined_backward_mode,
    _test_undefined_forward_mode,
)
from rushlight.autograd._gradcheck_parts import (  # noqa: F401
    GradcheckError,
    _adjusted_atol,
    _allclose_with_type_promotion,
    _allocate_jacobians_with_inputs,
    _allocate_jacobians_with_outputs,
    _as_tuple,
    _check_jacobians_equal,
    _densify,
    _differentiable_outputs,
    _dot_with_type_promotion,
    _get_inp_tensors,
    _get_notallclose_msg,
    _is_float_or_complex_tensor,
    _is_sparse_any_tensor,
    _is_sparse_compressed_tensor,
    _iter_tensor,
    _iter_tensors,
    _make_vectors,
    _mul_tensor_or_tuple,
    _reshape_tensor_or_tuple,
    _to_flat_dense_if_sparse,
    _to_real_dtype,
    _transpose,
    _vec_from_tensor,
    is_tensor_like,
)

__all__ = [
    "gradcheck",
    "gradgradcheck",
    "GradcheckError",
    "get_numerical_jacobian",
    "get_analytical_jacobian",
    "get_numerical_jacobian_wrt_specific_input",
]

Tensor = _C.Tensor


# ---- comparing


def _slow_gradcheck(
    func: Callable,
    func_out: Any,
    tupled_inputs: Any,
    outputs: Any,
    eps: float,
    rtol: float,
    atol: float,
    check_grad_dtypes: bool,
    nondet_tol: float,
    *,
    use_forward_ad: bool = False,
    complex_indices: Any = None,
    test_imag: bool = False,
    masked: bool | None = False,
) -> bool:
    """Compares the Jacobians of `outputs`, those of `func_out` that require grad, with finite differences. Of
    one part of a complex function `complex_indices` and `test_imag` tell what errors are to say."""
    results = _as_tuple(func_out)
    if not outputs:
        return _check_no_differentiable_outputs(
            func, tupled_inputs, results, eps=eps, is_forward_ad=use_forward_ad
        )
    moved = tupled_inputs if masked else _densify(tupled_inputs)
    by_input = _get_numerical_jacobian(func, moved, results, eps=eps, is_forward_ad=use_forward_ad)
    numerical = [row for row, o in zip(_transpose(by_input), results, strict=False) if o.requires_grad]

    def compare(found: Any, output: int) -> None:
        for place, (a, n) in enumerate(zip(found, numerical[output], strict=False)):
            if not _allclose_with_type_promotion(a, n.to(a.device), rtol, atol):
                raise GradcheckError(
                    _get_notallclose_msg(a, n, output, place, complex_indices, test_imag, use_forward_ad)
                )

    if use_forward_ad:
        pushed = _get_analytical_jacobian_forward_ad(
            func, tupled_inputs, results, check_grad_dtypes=check_grad_dtypes
        )
        for i in range(len(numerical)):
            compare([of_input[i] for of_input in pushed], i)
        return True
    for i, output in enumerate(outputs):
        compare(
            _check_analytical_jacobian_attributes(tupled_inputs, output, nondet_tol, check_grad_dtypes), i
        )
    return True


def _fast_gradcheck(
    func: Callable,
    func_out: Any,
    inputs: Any,
    outputs: Any,
    eps: float,
    rtol: float,
    atol: float,
    check_grad_dtypes: bool,
    nondet_tol: float,
    *,
    use_forward_ad: bool = False,
    complex_indices: Any = None,
    test_imag: bool = False,
    masked: bool | None = False,
) -> bool:
    """What `_slow_gradcheck` compares, along one random direction of every input and, in reverse mode, in one
    random sum of every output's elements."""
    places, targets = _get_inp_tensors(inputs)
    all_v, all_u, all_u_dense = _make_vectors(targets, outputs, use_forward_ad=use_forward_ad)
    moved, along = (inputs, all_u) if masked else _densify((inputs, all_u))
    numerical = _get_numerical_vJu(func, moved, places, func_out, along, all_v, eps, use_forward_ad)
    if use_forward_ad:
        found: Any = _get_analytical_jacobian_forward_ad(
            func, inputs, _as_tuple(func_out), check_grad_dtypes=check_grad_dtypes, all_u=all_u
        )
    else:
        if not outputs:
            _check_no_differentiable_outputs_fast(func, func_out, inputs, places, all_u, eps, nondet_tol)
        found = _get_analytical_vJu_backward_mode(
            inputs, outputs, nondet_tol, check_grad_dtypes, all_v or [], all_u_dense
        )
    _check_analytical_numerical_equal(
        found, numerical, complex_indices, inputs, outputs, func, all_v, all_u, rtol, atol, eps, test_imag,
        is_forward_ad=use_forward_ad,
    )  # fmt: skip
    return True


def _check_analytical_numerical_equal(
    all_analytical: Any,
    all_numerical: Any,
    complex_indices: Any,
    tupled_inputs: Any,
    outputs: Any,
    func: Callable,
    all_v: Any,
    all_u: Any,
    rtol: float,
    atol: float,
    eps: float,
    test_imag: bool,
    *,
    is_forward_ad: bool = False,
) -> None:
    """Compares what a direction of an input does to an output; if it is not the same, the slow mode has a
    word too. Backward has a row per output, the others one per input."""
    for i, row in enumerate(all_numerical):
        for j, n in enumerate(row):
            a = all_analytical[i][j] if is_forward_ad else all_analytical[j][i]
            n = n.to(device=a.device)
            if _allclose_with_type_promotion(
                a, n, rtol, _adjusted_atol(atol, all_u[i], all_v[j] if all_v else None)
            ):
                continue
            slowly = _run_slow_mode_and_get_error(
                func, tupled_inputs, outputs, i, j, rtol, atol, eps, is_forward_ad
            )
            raise GradcheckError(
                _get_notallclose_msg(a, n, j, i, complex_indices, test_imag, is_forward_ad) + slowly
            )


FAST_FAIL_SLOW_OK_MSG = """
Fast gradcheck failed but element-wise differences are small. This means that the
test might've passed in slow_mode!
""".strip()


def _run_slow_mode_and_get_error(
    func: Callable,
    tupled_inputs: Any,
    outputs: Any,
    input_idx: int,
    output_idx: int,
    rtol: float,
    atol: float,
    eps: float,
    is_forward_ad: bool,
) -> str:
    """What is said of the whole Jacobians where the fast mode found a difference."""
    jacobians = _get_numerical_jacobian(func, tupled_inputs, outputs, eps=eps, is_forward_ad=is_forward_ad)
    numerical = jacobians[input_idx][output_idx]
    if is_forward_ad:

        def alone(value: Tensor) -> Tensor:
            given = (*tupled_inputs[:input_idx], value, *tupled_inputs[input_idx + 1 :])
            return _as_tuple(func(*given))[output_idx]

        ((analytical,),) = _get_analytical_jacobian_forward_ad(
            alone, (tupled_inputs[input_idx],), (outputs[output_idx],)
        )
    else:
        analytical = _get_analytical_jacobian(tupled_inputs, outputs, input_idx, output_idx)
    largest = (numerical - analytical).abs().max()
    passes = rushlight.allclose(analytical, numerical, rtol, atol)
    return (
        "\nThe above quantities relating the numerical and analytical jacobians are computed \nin fast mode. "
        "Below, we recompute numerical and analytical jacobians in slow mode:\n\n"
        f"Numerical:\n {numerical}\nAnalytical:\n{analytical}\n\n"
        f"The max per-element difference (slow mode) is: {largest}.\n"
    ) + FAST_FAIL_SLOW_OK_MSG * passes


# ---- complex functions as two real ones


def _real_and_imag_output(fn: Callable) -> tuple[Callable, Callable]:
    """Two functions: the real parts of the outputs of `fn`, and the imaginary parts of complex ones."""

    def part(of: Callable) -> Callable:
        def of_outputs(*inputs: Any) -> tuple:
            return tuple(of(one) if one.is_complex() else one for one in _as_tuple(fn(*inputs)))

        return of_outputs

    return part(rushlight.real), part(rushlight.imag)


def _real_and_imag_input(
    fn: Callable, complex_inp_indices: Any, tupled_inputs: Any
) -> tuple[Callable, Callable]:
    """Two functions that return tuples: of the real parts of those inputs, the imaginary ones being as given,
    and the reverse."""

    def part(of: Callable) -> Callable:
        def of_inputs(*inputs: Any) -> tuple:
            given = list(inputs)
            for at in complex_inp_indices:
                given[at] = of(given[at], tupled_inputs[at])
            return _as_tuple(fn(*given))

        return of_inputs

    return part(lambda x, z: x + z.imag * 1j), part(lambda x, z: z.real + x * 1j)


def _gradcheck_real_imag(
    gradcheck_fn: Callable,
    func: Callable,
    func_out: Any,
    tupled_inputs: Any,
    outputs: Any,
    eps: float,
    rtol: float,
    atol: float,
    check_grad_dtypes: bool,
    check_forward_ad: bool,
    check_backward_ad: bool,
    nondet_tol: float,
    check_undefined_grad: bool,
) -> None:
    """Has `gradcheck_fn` compare what backward gives and what forward mode does, also where tangents miss.
    The imaginary parts come first."""

    def compare(function: Callable, results: Any, inputs: Any, some: Any, **options: Any) -> None:
        gradcheck_fn(
            function, results, inputs, some, eps, rtol, atol, check_grad_dtypes, nondet_tol, **options
        )

    if check_backward_ad and not any(o.is_complex() for o in _as_tuple(func_out)):
        compare(func, func_out, tupled_inputs, outputs)
    elif check_backward_ad:
        complex_outputs = [i for i, o in enumerate(outputs) if o.is_complex()]
        real, imag = _real_and_imag_output(func)
        for function, about in ((imag, {"test_imag": True}), (real, {})):
            results = function(*tupled_inputs)
            some = _differentiable_outputs(results)
            compare(function, results, tupled_inputs, some, complex_indices=complex_outputs, **about)
    if not check_forward_ad:
        return
    places = [i for i, value in enumerate(tupled_inputs) if is_tensor_like(value) and value.is_complex()]
    if not places:
        compare(func, func_out, tupled_inputs, outputs, use_forward_ad=True)
        if check_undefined_grad:
            _test_undefined_forward_mode(func, outputs, tupled_inputs)
        return
    real, imag = _real_and_imag_input(func, places, tupled_inputs)
    compared = []
    for function, name, about in ((imag, "imag", {"test_imag": True}), (real, "real", {})):
        inputs = [getattr(value, name) if i in places else value for i, value in enumerate(tupled_inputs)]
        results = function(*inputs)
        some = _differentiable_outputs(results)
        compare(function, results, inputs, some, complex_indices=places, use_forward_ad=True, **about)
        compared.append((function, results, inputs))
    if check_undefined_grad:
        for each in compared:
            _test_undefined_forward_mode(*each)


# ---- the public functions


def _gradcheck_helper(
    func: Callable,
    inputs: Any,
    eps: float,
    atol: float,
    rtol: float,
    nondet_tol: float,
    check_undefined_grad: bool,
    check_grad_dtypes: bool,
    check_batched_grad: bool,
    check_batched_forward_grad: bool,
    check_forward_ad: bool,
    check_backward_ad: bool,
    fast_mode: bool,
    masked: bool | None,
) -> bool:
    """What gradcheck does; it raises."""
    given = _as_tuple(inputs)
    _check_inputs(given)
    func_out = func(*given)
    outputs = _differentiable_outputs(func_out)
    _check_outputs(outputs)
    _gradcheck_real_imag(
        functools.partial(_fast_gradcheck if fast_mode else _slow_gradcheck, masked=masked),
        func, func_out, given, outputs, eps, rtol, atol, check_grad_dtypes, check_forward_ad,
        check_backward_ad, nondet_tol, check_undefined_grad,
    )  # fmt: skip
    if check_batched_forward_grad:
        _test_batched_grad_forward_ad(func, given)
    if not check_backward_ad:
        return True
    if check_batched_grad:
        for place, output in enumerate(outputs):
            _test_batched_grad(given, output, place)
    _test_backward_mul_by_grad_output(outputs, given, masked)
    if check_undefined_grad:
        _test_undefined_backward_mode(func, outputs, given)
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
    if not check_forward_ad and not check_backward_ad:
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    del options["raise_exception"]
    try:
        return _gradcheck_helper(**options)
    except GradcheckError:
        if raise_exception:
            raise
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
    given = _as_tuple(inputs)
    if grad_outputs is None:
        weights = tuple(
            rushlight.testing.make_tensor(
                output.shape,
                dtype=output.dtype,
                device=output.device,
                low=-1,
                high=1,
                requires_grad=True,
                noncontiguous=gen_non_contig_grad_outputs,
            )
            for output in _differentiable_outputs(func(*given))
        )
    else:
        weights = _as_tuple(grad_outputs)
    count = len(weights)
    needed = {
        *_get_inp_tensors(given)[0],
        *(len(given) + i for i, w in enumerate(weights) if w.requires_grad),
    }

    def gradients(*args: Any) -> tuple[Tensor, ...]:
        for place, value in enumerate(args):
            if place in needed:  # what was detached for forward mode requires grad again
                value.requires_grad_()
        outputs = _differentiable_outputs(func(*args[:-count]))
        targets = [value for place, value in enumerate(args[:-count]) if place in needed]
        found = rushlight.autograd.grad(outputs, targets, args[-count:], create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    return gradcheck(
        gradients,
        given + weights,
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


# ---- names from before there was __all__


def _legacy(name: str, grad_out: float, output: Tensor | None = None) -> None:
    warn(
        f"`{name}` was part of PyTorch's private API and not meant to be exposed. We are deprecating it and "
        "it will be removed in a future version of PyTorch. If you have a specific use for this or feature "
        "request for this to be a stable API, please file us an issue at "
        "https://github.com/pytorch/pytorch/issues/new",
        FutureWarning,
    )
    if grad_out != 1.0:
        raise ValueError(f"Expected grad_out to be 1.0. {name} no longer supports values of grad_out != 1.0.")
    if output is not None and output.is_complex():
        raise ValueError(
            f"Expected output to be non-complex. {name} no longer supports functions that return complex "
            "outputs."
        )


def get_numerical_jacobian(
    fn: Callable, inputs: Any, target: Any = None, eps: float = 1e-3, grad_out: float = 1.0
) -> tuple:
    """The Jacobians of `fn`, a function of the sequence `inputs`, by finite differences: per input that
    requires grad (or per `target`), of the first output."""
    _legacy("get_numerical_jacobian", grad_out)
    jacobians = _get_numerical_jacobian(lambda *values: fn(values), inputs, None, target, eps)
    return tuple(of_outputs[0] for of_outputs in jacobians)


def get_analytical_jacobian(
    inputs: Any, output: Tensor, nondet_tol: float = 0.0, grad_out: float = 1.0
) -> tuple:
    """The Jacobians by backward, whether two runs agree, and whether sizes and types are right."""
    _legacy("get_analytical_jacobian", grad_out, output)
    return twice(inputs, output, nondet_tol, _compute_analytical_jacobian_rows, output.numel())
