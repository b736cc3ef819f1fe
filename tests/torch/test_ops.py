"""The table of operations against torch: values, dtypes, shapes, strides, gradients, and what is refused."""

import pytest
import torch
from comparing import REFUSALS, assert_same
from samples import OPS
from sampling import DTYPES, LAYOUTS, MORE_LAYOUTS, build, dtype_names, tensors_in

import rushlight

pytestmark = pytest.mark.filterwarnings("ignore")


def attempt(lib, op, sample, dtype, layout="contiguous", leaves=None):
    args, kwargs = build(lib, sample, dtype, layout, leaves)
    try:
        return op.function(lib)(*args, **kwargs), None
    except REFUSALS as error:
        return None, error


# Where torch itself is off in float64: by so much, measured against mpmath.
INEXACT = {
    "digamma": 1e-9,
    "polygamma": 3e-8,
    "igamma": 1e-9,
    "igammac": 1e-9,
    "nn.functional.hardsigmoid": 1e-7,
    "special.airy_ai": 1e-6,
    "special.bessel_j0": 1e-6,
    "special.bessel_j1": 1e-6,
    "special.bessel_y0": 1e-6,
    "special.bessel_y1": 1e-6,
}


def scale_for(op, dtype, least=1.0):
    """How many times the usual tolerance of the dtype an operation gets."""
    return max(least * op.tolerance, INEXACT.get(op.name, 0.0) / 1e-12 if dtype == "float64" else 0.0)


every_op = pytest.mark.parametrize("op", [pytest.param(op, id=op.name) for op in OPS.values()])


@every_op
def test_values(op):
    for dtype in DTYPES:
        for sample in op.for_dtype(dtype):
            theirs, refusal = attempt(torch, op, sample, dtype)
            ours, error = attempt(rushlight, op, sample, dtype)
            try:
                if refusal is None:
                    if error is not None:
                        raise error
                    assert_same(ours, theirs, scale=scale_for(op, dtype), strides=op.same_strides)
                elif op.strict and "not implemented for" not in str(refusal):
                    assert error is not None, f"torch refuses: {refusal}"
            except Exception as problem:
                problem.add_note(f"{op.name}{sample} in {dtype}")
                raise


@every_op
def test_strides_of_results(op):
    """What memory order a result has when the inputs are not contiguous."""
    dtype = dtype_names(op.dtypes)[0]
    layouts = (*LAYOUTS, *MORE_LAYOUTS) if op.layouts == LAYOUTS else op.layouts
    if op.name in ("median", "nanmedian"):  # torch is off there: test_torch_is_off.py
        layouts = tuple(layout for layout in layouts if layout != "expanded_last")
    for sample in op.for_dtype(dtype):
        for layout in layouts:
            theirs, refusal = attempt(torch, op, sample, dtype, layout)
            ours, error = attempt(rushlight, op, sample, dtype, layout)
            try:
                if refusal is None:
                    if error is not None:
                        raise error
                    assert_same(ours, theirs, scale=scale_for(op, dtype), strides=op.same_strides)
            except Exception as problem:
                problem.add_note(f"{op.name}{sample} {layout}")
                raise


def gradients(lib, op, sample, dtype):
    leaves = []
    result, error = attempt(lib, op, sample, dtype, leaves=leaves)
    if error is not None:
        return None, error
    outputs = [tensor for tensor in tensors_in(lib, result) if tensor.requires_grad]
    if not outputs:
        return [], None
    cotangents = []
    for output in outputs:
        ramp = [0.25 + 0.5 * (place % 5) for place in range(output.numel())]
        cotangents.append(lib.tensor(ramp, dtype=output.dtype).reshape(tuple(output.shape)))
    try:
        return lib.autograd.grad(outputs, leaves, cotangents, allow_unused=True), None
    except RuntimeError as error:
        return None, error


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128", "bfloat16"])
@pytest.mark.parametrize("op", [pytest.param(op, id=op.name) for op in OPS.values() if op.grad])
def test_gradients(op, dtype):
    if dtype not in dtype_names(op.grad) or dtype not in dtype_names(op.dtypes):
        pytest.skip(f"not differentiable in {dtype}")
    for sample in op.for_dtype(dtype):
        theirs, refusal = gradients(torch, op, sample, dtype)
        ours, error = gradients(rushlight, op, sample, dtype)
        if refusal is not None:
            continue
        try:
            if error is not None:
                raise error
            assert len(ours) == len(theirs), "whether the result requires a gradient"
            for a, b in zip(ours, theirs):
                assert (a is None) == (b is None), f"gradient {a}, torch {b}"
                if b is not None:
                    assert_same(a, b, scale=scale_for(op, dtype, 4.0), strides=False)
        except Exception as problem:
            problem.add_note(f"{op.name}{sample} in {dtype}")
            raise


def test_the_table_declares_what_torch_supports():
    """The dtypes in the table are torch's, as far as the first sample shows."""
    wrong = []
    for op in (op for op in OPS.values() if op.strict):
        for dtype in DTYPES:
            for sample in list(op.for_dtype(dtype))[:1]:
                _, refusal = attempt(torch, op, sample, dtype)
                if (refusal is None) != (dtype in dtype_names(op.dtypes)):
                    wrong.append(f"{op.name} {dtype}: {refusal}")
    assert not wrong, "\n".join(wrong)
