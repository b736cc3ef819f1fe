"""Jacobians by finite differences, all of one or its product with a vector. `_compute_numerical_gradient` is
where an input is moved; the rest finds what to move and puts together what comes of it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from rushlight import _C
from rushlight._annotations import Any
from rushlight.autograd._gradcheck_parts import (
    _allocate_jacobians_with_outputs,
    _as_tuple,
    _dot_with_type_promotion,
    _is_float_or_complex_tensor,
    _is_sparse_any_tensor,
    _is_sparse_compressed_tensor,
    _iter_tensor,
    _iter_tensors,
    _mul_tensor_or_tuple,
    _reshape_tensor_or_tuple,
    is_tensor_like,
)
from rushlight.ops.create import _mkldnn

Tensor = _C.Tensor


def _compute_numerical_gradient(
    fn: Callable, entry: Any, v: Any, norm_v: float, nbhd_checks_fn: Callable
) -> tuple[Tensor, ...]:
    """How the outputs of `fn` change if `entry`, a tensor it reads, moves along `v`: (fn at entry + v - fn at
    entry - v) / (2 norm_v), flat. `nbhd_checks_fn` sees both outputs first."""
    if _is_sparse_compressed_tensor(entry):  # v has its elements where the entry has them
        if entry.layout != v.layout:
            raise AssertionError(
                f"Expected entry and v to have the same layout, but got {entry.layout} and {v.layout}"
            )
        if entry._nnz() != v._nnz():
            raise AssertionError(
                f"Expected entry and v to have the same nnz, but got {entry._nnz()} and {v._nnz()} with "
                f"entry shape {entry.shape}"
            )
        entry, v = entry.memory(), v.memory()
    before, writes = entry.clone(), _C.silent_writes(entry)
    try:
        entry.copy_(before - v)
        below = fn()
        entry.copy_(before + v)
        above = fn()
    finally:
        entry.copy_(before)
        _C.silent_writes(entry, writes)  # what a graph has saved is as it was
    for a, b in zip(below, above, strict=False):
        nbhd_checks_fn(a, b)
    return tuple(((b - a) / (2 * norm_v)).detach().reshape(-1) for a, b in zip(below, above, strict=False))


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


def _compute_numerical_jvps_wrt_specific_input(
    jvp_fn: Callable, delta: Any, input_is_complex: bool, is_forward_ad: bool = False
) -> list[Tensor]:
    """What `jvp_fn` says of moving an input by `delta`, per output. A complex input moves along the imaginary
    axis too, by the second of two deltas if there are two, and the answer is their d/dRe + i d/dIm."""
    first, second = delta if isinstance(delta, tuple) else (delta, delta)
    slopes = list(jvp_fn(first))
    complex_is_wrong = input_is_complex or not is_forward_ad
    if complex_is_wrong and any(slope.is_complex() for slope in slopes):
        raise AssertionError("Expected ds_dx to be real-valued, not complex.")
    if not input_is_complex:
        return slopes
    return [x + y * 1j for x, y in zip(slopes, jvp_fn(second * 1j), strict=False)]


def _get_numerical_jvp_fn(
    wrapped_fn: Callable, input_to_perturb: Tensor, eps: float, nbhd_checks_fn: Callable
) -> Callable:
    """The slopes of `wrapped_fn`, of no arguments, as a function of how `input_to_perturb` moves."""

    def jvp_fn(delta: Any) -> tuple[Tensor, ...]:
        return _compute_numerical_gradient(wrapped_fn, input_to_perturb, delta, eps, nbhd_checks_fn)

    return jvp_fn


# ---- what moves, and who sees it


def _get_input_to_perturb(input: Any) -> Any:
    """What is written to move an input as a whole: its memory, or a tensor that takes its place."""
    if input.layout is _mkldnn:
        return input.to_dense()
    return input.clone() if _is_sparse_any_tensor(input) else input.data


def _prepare_input(input: Any, maybe_perturbed_input: Any, fast_mode: bool = False) -> Any:
    """What the function is given for an input: the tensor that is moved in its place, if it is one that takes
    its place. Else the input itself, whose memory moved; a function that computes gradients needs it."""
    if maybe_perturbed_input is None:
        return input
    if input.layout is _mkldnn:
        return maybe_perturbed_input.to_mkldnn()
    return maybe_perturbed_input if fast_mode and _is_sparse_any_tensor(input) else input


def _with_prepare_inputs(
    fn: Callable, inputs: Any, input_idx: int, input_to_perturb: Any, fast_mode: bool = False
) -> Callable:
    """`fn` of these inputs as they are when it is called. It gives clones, since it may return an input."""

    def wrapped_fn() -> tuple[Tensor, ...]:
        given = tuple(
            _prepare_input(value, input_to_perturb if i == input_idx else None, fast_mode)
            if is_tensor_like(value)
            else value
            for i, value in enumerate(_as_tuple(inputs))
        )
        return tuple(output.clone() for output in _as_tuple(fn(*given)))

    return wrapped_fn


# ---- element by element


def get_numerical_jacobian_wrt_specific_input(
    fn: Callable,
    input_idx: int,
    inputs: Any,
    outputs: Any,
    eps: float,
    input: Any = None,
    is_forward_ad: bool = False,
) -> tuple[Tensor, ...]:
    """The Jacobian of every output by one input. Rows of elements that a sparse input does not store are
    zeros."""
    input = inputs[input_idx] if input is None else input
    if not input.requires_grad:
        raise AssertionError("Expected input to have requires_grad=True")
    rows: dict[int, list[Tensor]] = {}
    for memory, index, number in _iter_tensor(input):
        same = functools.partial(_check_outputs_same_dtype_and_shape, idx=index, eps=eps)
        moved = _with_prepare_inputs(fn, inputs, input_idx, memory)
        jvp_fn = _get_numerical_jvp_fn(moved, memory[index], eps, same)
        rows[number] = _compute_numerical_jvps_wrt_specific_input(
            jvp_fn, eps, memory.is_complex(), is_forward_ad
        )
    return _combine_jacobian_cols(rows, outputs, input, input.numel())


def _combine_jacobian_cols(
    jacobians_cols: dict[int, list[Tensor]], outputs: Any, input: Tensor, numel: int
) -> tuple[Tensor, ...]:
    """The Jacobians of the outputs from their slopes, by number of the element that moved and by output."""
    dtype = input.dtype if input.dtype.is_complex else None
    jacobians = _allocate_jacobians_with_outputs(outputs, numel, dtype=dtype)
    for number, slopes in jacobians_cols.items():
        for jacobian, slope in zip(jacobians, slopes, strict=False):
            jacobian[number] = slope
    return jacobians


def _get_numerical_jacobian(
    fn: Callable,
    inputs: Any,
    outputs: Any = None,
    target: Any = None,
    eps: float = 1e-3,
    is_forward_ad: bool = False,
) -> list[tuple[Tensor, ...]]:
    """Per tensor of `target` (or of the inputs) that requires grad: the Jacobian of every output that is not
    of integers."""
    if outputs is None:
        outputs = _as_tuple(fn(*_as_tuple(inputs)))
    if not is_forward_ad and any(o.is_complex() for o in outputs):
        raise ValueError(
            "Expected output to be non-complex. get_numerical_jacobian no longer supports functions that "
            "return complex outputs."
        )
    target = inputs if target is None else target
    places = [i for i, value in enumerate(target) if is_tensor_like(value) and value.requires_grad]
    return [
        get_numerical_jacobian_wrt_specific_input(
            fn, place, inputs, outputs, eps, input=one, is_forward_ad=is_forward_ad
        )
        for one, place in zip(_iter_tensors(target, True), places, strict=False)
    ]


# ---- all elements at once, along a vector


def _get_numerical_jvp_wrt_specific_input(
    fn: Callable, input_idx: int, inputs: Any, u: Any, eps: float, is_forward_ad: bool = False
) -> list[Tensor]:
    """How the outputs change if one input moves along u, or along both of a complex one's."""
    input = inputs[input_idx]
    memory = _get_input_to_perturb(input)
    moved = _with_prepare_inputs(fn, inputs, input_idx, memory, True)
    same = functools.partial(_check_outputs_same_dtype_and_shape, eps=eps)
    step = _mul_tensor_or_tuple(_reshape_tensor_or_tuple(u, memory.shape), eps)
    return _compute_numerical_jvps_wrt_specific_input(
        _get_numerical_jvp_fn(moved, memory, eps, same), step, input.is_complex(), is_forward_ad
    )


def _get_numerical_vJu(
    fn: Callable,
    inputs: Any,
    inp_indices: Sequence[int],
    func_out: Any,
    all_u: Sequence,
    all_v: Sequence | None,
    eps: float,
    is_forward_ad: bool,
) -> list[list[Tensor]]:
    """Per input, per output: how it changes along u, of which v takes a weighted sum if there are v."""
    results = _as_tuple(func_out)
    found: list[list[Tensor]] = []
    for place, u in zip(inp_indices, all_u, strict=False):
        slopes = _get_numerical_jvp_wrt_specific_input(fn, place, inputs, u, eps, is_forward_ad)
        if len(slopes) != len(results):
            raise AssertionError(
                f"Expected all_Ju and func_out to have the same length, but got {len(slopes)} and "
                f"{len(results)}"
            )
        slopes = [s for s, o in zip(slopes, results, strict=True) if _is_float_or_complex_tensor(o)]
        if all_v is not None:
            slopes = [_dot_with_type_promotion(v, s) for v, s in zip(all_v, slopes, strict=False)]
        found.append(slopes)
    return found
