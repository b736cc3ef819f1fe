"""Comparing derivatives with finite differences: `gradcheck` and `gradgradcheck`.

A Jacobian has a row per element of the input and a column per element of the output. A complex output is two
real ones, checked one after the other; the derivative with respect to a complex input z is
d/dRe(z) + i d/dIm(z), which is what backward returns for a real loss. The fast mode compares one random
combination of rows and columns instead of all of them.
"""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Iterator, Sequence

import rushlight
from rushlight import _C
from rushlight._annotations import Any
from rushlight._warn import warn
from rushlight.autograd._gradcheck_parts import (  # noqa: F401  (programs import them from here)
    _adjusted_atol,
    _allclose_with_type_promotion,
    _allocate_jacobians_with_inputs,
    _allocate_jacobians_with_outputs,
    _check_jacobians_equal,
    _compute_analytical_jacobian_rows,
    _densify,
    _dot_with_type_promotion,
    _get_analytical_jacobian,
    _get_analytical_jacobian_forward_ad,
    _get_inp_tensors,
    _is_sparse_any_tensor,
    _is_sparse_compressed_tensor,
    _iter_tensor,
    _mul_tensor_or_tuple,
    _real_and_imag_input,
    _real_and_imag_output,
    _reshape_tensor_or_tuple,
    _to_flat_dense_if_sparse,
    _to_real_dtype,
    _transpose,
    _vec_from_tensor,
)
from rushlight.autograd._jacobians import FAST_FAIL_SLOW_OK_MSG as FAST_FAIL_SLOW_OK_MSG  # of torch
from rushlight.autograd._jacobians import (
    GradcheckError,
    Mismatch,
    agree,
    analytical_jacobians,
    considering,
    dense,
    difference,
    gradients_of,
    is_close,
    memory_of,
    numerical_jacobians,
    part_of,
    random_direction,
    results_of,
    slow_says,
    tensors_of,
    with_every_element,
)
from rushlight.autograd._jacobians import (
    _check_outputs_same_dtype_and_shape as _check_outputs_same_dtype_and_shape,
)
from rushlight.autograd._tangent_checks import (
    FAILED_BATCHED_GRAD_MSG_FWD_AD as FAILED_BATCHED_GRAD_MSG_FWD_AD,
)
from rushlight.autograd._tangent_checks import check_batched_forward, check_forward, check_undefined_forward
from rushlight.autograd.function import Function
from rushlight.ops.create import _mkldnn

__all__ = [
    "gradcheck",
    "gradgradcheck",
    "GradcheckError",
    "get_numerical_jacobian",
    "get_analytical_jacobian",
]

Tensor = _C.Tensor
GradcheckError.__module__ = __name__


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
        held = memory_of(value)
        if any(stride == 0 and size > 1 for size, stride in zip(held.shape, held.stride(), strict=True)):
            raise RuntimeError(
                f"The {index}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                "non-overlapping to be able to compute the numerical gradients correctly. You should call "
                ".contiguous on the input before passing it to gradcheck."
            )
        found.append(value)
    if not found:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have "
            "requires_grad=True."
        )
    return found


def _differentiable(result: Any) -> list[Tensor]:
    return [t for t in tensors_of(result) if t.requires_grad]


def _kinds(output: Tensor) -> Iterator[tuple[int, Any, str]]:
    """The real outputs an output consists of: which part, its cotangent, how errors call it."""
    if not output.is_complex():
        yield 0, 1.0, ""
        return
    yield 1, 1j, considering("imaginary", "outputs")
    yield 0, 1.0, considering("real", "outputs")


_NOT_REENTRANT = (
    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives "
    "different values, although analytical gradient matches numerical gradient.The tolerance for "
    "nondeterminism was {}."
)


def _recorded(function, inputs, places) -> list[Tensor]:
    """The outputs to differentiate. Called after finite differences, which write to the inputs."""
    results = tensors_of(function(*inputs))
    return [results[i] for i in places]


def _same_twice(targets, output, unit, tolerance) -> list[Tensor]:
    """The Jacobians by backward, which has to give them a second time."""
    found = analytical_jacobians(targets, output, unit)
    if not agree(found, analytical_jacobians(targets, output, unit), tolerance):
        raise GradcheckError(_NOT_REENTRANT.format(tolerance))
    return found


def _check_analytical_jacobian_attributes(
    inputs: tuple,
    output: Tensor,
    nondet_tol: float,
    check_grad_dtypes: bool,
    fast_mode: bool = False,
    v: Any = None,
) -> tuple[Tensor, ...]:
    """The Jacobians of an output by backward, of the right sizes and dtypes and the same a second time."""
    if fast_mode or v is not None:
        raise NotImplementedError("_check_analytical_jacobian_attributes of a vector is not implemented")
    targets = [t for t in _iter_tensors(inputs) if t.requires_grad]
    return tuple(_same_twice(targets, output, 1.0, nondet_tol))


def _check_slow(function, inputs, targets, places, options) -> None:
    eps, atol, rtol, nondet = options["eps"], options["atol"], options["rtol"], options["nondet_tol"]
    moved = inputs if options["masked"] else tuple(map(with_every_element, inputs))
    numerical = [
        numerical_jacobians(function, moved, places, t, eps)
        for t, given in zip(moved, inputs, strict=True)
        if any(given is target for target in targets)
    ]
    outputs = _recorded(function, inputs, places)
    for o, output in enumerate(outputs):
        for part, unit, kind in _kinds(output):
            for i, found in enumerate(_same_twice(targets, output, unit, nondet)):
                expected = numerical[i][o][part]
                if not is_close(found, expected.to(found.dtype), atol, rtol):
                    raise Mismatch(expected.to(found.dtype), found, o, i, kind or options["kind"](o))


def _check_fast(function, inputs, targets, places, options) -> None:
    eps, atol, rtol, nondet = options["eps"], options["atol"], options["rtol"], options["nondet_tol"]
    generator = rushlight.Generator()
    directions = []  # per target one, of a complex one also one for its imaginary part
    for target in targets:
        count = 2 if target.is_complex() else 1
        directions.append([random_direction(memory_of(target), generator) for _ in range(count)])
    slopes = [
        [
            difference(function, inputs, places, target, direction * unit, eps)
            for direction, unit in zip(each, (1.0, 1j), strict=False)
        ]
        for target, each in zip(targets, directions, strict=True)
    ]
    outputs = _recorded(function, inputs, places)
    for o, output in enumerate(outputs):
        weights = random_direction(output, generator)
        for part, unit, kind in _kinds(output):
            weight = (weights * unit).to(output.dtype)
            grads = gradients_of(output, targets, weight)
            again = gradients_of(output, targets, weight)
            if not agree(grads, again, nondet):
                raise GradcheckError(_NOT_REENTRANT.format(nondet))
            for i, (target, each) in enumerate(zip(targets, directions, strict=True)):
                moved = [part_of(slope[o], "imag" if part else "real") for slope in slopes[i]]
                expected = _number([(m * weights.to(m.dtype)).sum() for m in moved])
                grad = [grads[i].real, grads[i].imag] if target.is_complex() else grads[i : i + 1]
                found = _number([(g * _spread(u, target)).sum() for g, u in zip(grad, each, strict=True)])
                # A sum of many elements may be off by as many tolerances.
                slack = atol * float(each[0].sum()) * float(weights.sum())
                if not is_close(found, expected.to(found.dtype), slack, rtol):
                    more = slow_says(_check_slow, function, inputs, targets, places, options)
                    raise Mismatch(expected, found, o, i, kind or options["kind"](o), more=more)


def _number(parts: list[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else rushlight.complex(parts[0], parts[1].to(parts[0].dtype))


def _spread(values: Tensor, target: Any) -> Tensor:
    """What was added to the elements that `target` stores, as a tensor of its shape."""
    return target.with_memory(values).to_dense() if _C.is_any_sparse(target) else values


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
        if any(g is not None and bool((dense(g) != 0).any()) for g in found):
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


_NOT_DENSE = (
    "{} output is not supported at gradcheck yet. Please call to_dense(masked_grad=...) on the output of fn "
    "for gradcheck."
)
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
        if _C.is_any_sparse(grad):
            _check_layout(grad, target)
        if bool((dense(grad) != 0).any()):
            raise GradcheckError("backward not multiplied by grad_output")
        if check_dtypes and grad.dtype != target.dtype:
            raise GradcheckError("grad is incorrect type")
        if grad.shape != target.shape:
            raise GradcheckError("grad is incorrect size")


def _check_layout(grad: Tensor, target: Tensor) -> None:
    if target.layout != grad.layout:
        raise GradcheckError(f"grad is incorrect layout ({grad.layout} is not {target.layout})")
    for what in ("sparse_dim", "dense_dim"):
        found, expected = getattr(grad, what)(), getattr(target, what)()
        if found != expected:
            raise GradcheckError(
                f"grad is sparse tensor, but has incorrect {what} {found}, expected {expected}"
            )


FAILED_BATCHED_GRAD_MSG = """
gradcheck or gradgradcheck failed while testing batched gradient computation.
Call it with `check_batched_grad=False` to leave this test out.
"""


def _check_batched(outputs, targets) -> None:
    for o, output in enumerate(outputs):
        rows = [rushlight.randn_like(output) for _ in range(2)]
        single = [gradients_of(output, targets, row) for row in rows]
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
            if any(map(_C.is_compressed, targets)):
                raise  # torch stumbles over such a gradient where it does not look for errors
            raise GradcheckError(
                f"While computing batched gradients, got: {error}\n{FAILED_BATCHED_GRAD_MSG}"
            ) from error
        for place, grads in enumerate(batched):
            if _C.is_any_sparse(grads):
                raise GradcheckError(
                    f"While computing batched gradients, got: sparse ones\n{FAILED_BATCHED_GRAD_MSG}"
                )
            expected = rushlight.stack([row[place] for row in single])
            if grads is not None and not is_close(grads, expected, 1e-8, 1e-5):
                raise GradcheckError(
                    f"For output {o} and input {place}:\n{FAILED_BATCHED_GRAD_MSG}\nGot:\n{grads}\n\n"
                    f"Expected:\n{expected}\n"
                )


def _check_no_differentiable_outputs(
    func: Callable, inputs: tuple, func_out: Any, eps: float, *, is_forward_ad: bool
) -> bool:
    """A function whose outputs have no gradient must not change with its inputs, unless to integers."""
    floating = [t.dtype.is_floating_point or t.dtype.is_complex for t in func_out]
    return _check_still(func, inputs, [i for i, one in enumerate(floating) if one], eps)


def _check_still(function, inputs, places, eps) -> bool:
    for target in _moving_inputs(inputs):
        for real, imag in numerical_jacobians(function, inputs, places, target, eps):
            if bool((real != 0).any()) or bool((imag != 0).any()):
                raise GradcheckError("Numerical gradient for function expected to be zero")
    return True


def _moving_inputs(inputs: tuple) -> list[Tensor]:
    return [t for t in inputs if isinstance(t, Tensor) and t.requires_grad]


def _moving_places(func_out: Any) -> list[int]:
    return [i for i, t in enumerate(_as_tuple(func_out)) if t.requires_grad]


def _slow_gradcheck(
    func: Callable,
    func_out: Any,
    tupled_inputs: tuple,
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
    fast_mode: bool = False,
) -> bool:
    """Compares the Jacobians of `outputs`, those of `func_out` that require grad, with finite differences,
    after which they are computed anew, because these write to the inputs. Of one part of a complex function
    `complex_indices` and `test_imag` tell what errors are to say."""
    about = considering("imaginary" if test_imag else "real", "inputs" if use_forward_ad else "outputs")
    parts = complex_indices or ()
    options = {
        "eps": eps, "atol": atol, "rtol": rtol, "nondet_tol": nondet_tol, "masked": masked,
        "fast_mode": fast_mode, "kind": lambda index: about if index in parts else "",
    }  # fmt: skip
    check: Callable = check_forward if use_forward_ad else _check_fast if fast_mode else _check_slow
    inputs = tuple(tupled_inputs)
    check(func, inputs, _moving_inputs(inputs), _moving_places(func_out), options)
    return True


def _fast_gradcheck(*given: Any, **options: Any) -> bool:
    """What `_slow_gradcheck` compares, by one random combination of the elements."""
    return _slow_gradcheck(*given, **options, fast_mode=True)


def _gradcheck_real_imag(
    gradcheck_fn: Callable,
    func: Callable,
    func_out: Any,
    tupled_inputs: tuple,
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
    """Has `gradcheck_fn` compare what backward gives and what forward mode does, also where tangents miss."""
    given = (func, func_out, tupled_inputs, outputs, eps, rtol, atol, check_grad_dtypes, nondet_tol)
    if check_backward_ad:
        gradcheck_fn(*given)
    if check_forward_ad:
        gradcheck_fn(*given, use_forward_ad=True)
        if check_undefined_grad:
            check_undefined_forward(
                func, tupled_inputs, _moving_inputs(tupled_inputs), _moving_places(func_out)
            )


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
    inputs = tuple(inputs) if isinstance(inputs, collections.abc.Sequence) else (inputs,)
    targets = _checked_inputs(inputs)
    if check_forward_ad and any(t.layout is _mkldnn for t in targets):
        raise ValueError("MKLDNN inputs are not support for forward AD gradcheck.")
    for target in targets:
        if check_forward_ad and _C.is_compressed(target):  # there are no tangents of such tensors
            target.stride()
    results = results_of(func(*inputs))
    places = _moving_places(results)
    if not places:
        if fast_mode:  # which moves all elements at once and looks at integers too
            return _check_still(func, inputs, list(range(len(results))), eps)
        return _check_no_differentiable_outputs(func, inputs, results, eps, is_forward_ad=check_forward_ad)
    differentiable = [results[i] for i in places]
    _check_outputs(differentiable)
    _gradcheck_real_imag(
        functools.partial(_fast_gradcheck if fast_mode else _slow_gradcheck, masked=masked),
        func, results, inputs, differentiable, eps, rtol, atol, check_grad_dtypes, check_forward_ad,
        check_backward_ad, nondet_tol, check_undefined_grad,
    )  # fmt: skip
    if check_batched_forward_grad:
        check_batched_forward(func, inputs, targets, places)
    if not check_backward_ad:
        return True
    outputs = _recorded(func, inputs, places)
    if check_batched_grad:
        _check_batched(outputs, targets)
    _check_scaled(outputs, targets, check_grad_dtypes)
    if check_undefined_grad:
        _check_undefined(func, inputs, targets)
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
    inputs = tuple(inputs) if isinstance(inputs, collections.abc.Sequence) else (inputs,)
    count = len(inputs)
    if grad_outputs is None:
        grad_outputs = tuple(
            rushlight.testing.make_tensor(
                output.shape,
                dtype=output.dtype,
                device=output.device,
                low=-1,
                high=1,
                requires_grad=True,
                noncontiguous=gen_non_contig_grad_outputs,
            )
            for output in _differentiable(func(*inputs))
        )
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


def get_numerical_jacobian(
    fn: Callable, inputs: Any, target: Any = None, eps: float = 1e-3, grad_out: float = 1.0
) -> tuple:
    """The Jacobians of `fn`, a function of the sequence `inputs`, by finite differences: per input that
    requires grad (or per `target`), of the first output."""
    _legacy("get_numerical_jacobian", grad_out)
    targets = _iter_tensors(inputs if target is None else target, only_requiring_grad=True)
    return tuple(numerical_jacobians(fn, (inputs,), None, t, eps)[0][0] for t in targets)


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


def get_analytical_jacobian(
    inputs: Any, output: Tensor, nondet_tol: float = 0.0, grad_out: float = 1.0
) -> tuple:
    """The Jacobians by backward, whether two runs agree, and whether sizes and types are right."""
    _legacy("get_analytical_jacobian", grad_out)
    targets = [t for t in tensors_of(inputs) if t.requires_grad]
    first = analytical_jacobians(targets, output, grad_out)
    again = analytical_jacobians(targets, output, grad_out)
    return tuple(first), agree(first, again, nondet_tol), True, True


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
    check_batched_forward(func, inputs, *_moving(func, inputs))
    return True


def _test_undefined_forward_mode(func: Callable, outputs: Any, inputs: tuple) -> bool:
    """A tangent that is not there must count as zero."""
    check_undefined_forward(func, inputs, *_moving(func, inputs))
    return True


def _moving(func: Callable, inputs: tuple) -> tuple[list[Tensor], list[int]]:
    """The inputs that require grad, and the places of the outputs that do."""
    return _moving_inputs(inputs), _moving_places(results_of(func(*inputs)))


def _check_inputs(tupled_inputs: tuple) -> bool:
    """Raises or warns where finite differences cannot work on the inputs."""
    return bool(_checked_inputs(tupled_inputs))


def _check_outputs(outputs: Any) -> None:
    """Raises if an output cannot be compared with finite differences."""
    if any(t.layout is _mkldnn for t in outputs):
        raise ValueError(_NOT_DENSE.format("MKLDNN"))
    if any(t.layout != rushlight.strided for t in outputs):
        raise ValueError(_NOT_DENSE.format("Sparse"))


def _test_backward_mul_by_grad_output(outputs: Any, inputs: Any, masked: bool) -> bool:
    """backward is linear: of zero it is zero."""
    targets = [t for t in _iter_tensors(inputs) if t.requires_grad]
    if not targets:
        raise GradcheckError("no Tensors requiring grad found in input")
    _check_scaled(outputs, targets, True)
    return True


def _test_undefined_backward_mode(func: Callable, outputs: Any, inputs: tuple) -> bool:
    """A gradient that did not arrive must count as zero."""
    _check_undefined(func, inputs, [t for t in _iter_tensors(inputs) if t.requires_grad])
    return True


def get_numerical_jacobian_wrt_specific_input(
    fn: Callable,
    input_idx: int,
    inputs: tuple,
    outputs: Any,
    eps: float,
    input: Any = None,
    is_forward_ad: bool = False,
) -> tuple:
    """The Jacobian of every output by finite differences of one input."""
    target = inputs[input_idx] if input is None else input
    return tuple(real for real, _ in numerical_jacobians(fn, inputs, None, target, eps))


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
    inputs = _as_tuple(inputs)
    if any(t.is_complex() for t in tensors_of(fn(*inputs) if outputs is None else outputs)):
        raise ValueError(
            "Expected output to be non-complex. get_numerical_jacobian no longer supports functions that "
            "return complex outputs."
        )
    targets = _iter_tensors(inputs if target is None else target, only_requiring_grad=True)
    return [tuple(real for real, _ in numerical_jacobians(fn, inputs, None, one, eps)) for one in targets]
