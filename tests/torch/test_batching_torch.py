"""The samples of the table under `vmap`, against torch's: values, dtypes and sizes of what it computes, and
of the examples' gradients. What torch refuses, for want of a rule or of a name, we may compute."""

import pytest
import torch
from batches import REFUSALS, at_once, make_call, pulled_for_good, pushed
from comparing import assert_same
from samples import OPS
from sampling import dtype_names

import rushlight

pytestmark = pytest.mark.filterwarnings("ignore")
# What reads memory as it lies: examples along the last dimension lie elsewhere in torch.
_AS_IT_LIES = ("as_strided", "as_strided_copy", "as_strided_scatter")
# Where torch's vmap does not do what torch does of one example: `dim=[]` means every dimension there, the
# mask that is dropped is of numbers, and what was not asked for is no batch.
_OTHERWISE = ("all", "any", "lu_unpack", "native_dropout")
# Whose tangents in torch are not what finite differences are, without vmap either.
_WRONG_TANGENTS = ("cholesky_inverse", "scatter_reduce", "triangular_solve")
every_op = pytest.mark.parametrize(
    "op", [pytest.param(op, id=op.name) for op in OPS.values() if op.name not in _OTHERWISE]
)
# Where torch itself is off in float64: by so much, measured against mpmath.
_INEXACT = {
    **dict.fromkeys(("digamma", "igamma", "igammac", "polygamma", "special.airy_ai"), 1e-6),
    **{f"special.bessel_{name}": 1e-6 for name in ("j0", "j1", "y0", "y1")},
    "nn.functional.hardsigmoid": 1e-6,
}


def attempt(lib, op, sample, dtype, way, which, dim):
    try:
        call = make_call(lib, op, sample, dtype)
        if not call.columns:
            return None, None
        if way is not None and not call.differentiable:
            return None, None
        batched = call.choices()[which]
        f = call.function if way is None else way(call, call.function)
        return at_once(call, f, batched, dim), None
    except (*REFUSALS, IndexError, AttributeError) as error:
        return None, error


def compare(op, sample, dtype, way=None, which=0, dim=0, scale=4.0):
    theirs, _ = attempt(torch, op, sample, dtype, way, which, dim)
    # Of what is the same for all examples torch says nonsense with `out_dims=-1`.
    if not theirs or any(max(t.shape, default=0) > 2**30 for t in theirs):
        return
    scale = max(scale * op.tolerance, _INEXACT.get(op.name, 0.0) / 1e-12)
    ours, error = attempt(rushlight, op, sample, dtype, way, which, dim)
    try:
        if error is not None:
            raise error
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs):
            assert_same(a, b, scale=scale, strides=False)
    except Exception as problem:
        problem.add_note(f"{op.name}{sample} in {dtype}, choice {which}, dim {dim}")
        raise


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "complex128"])
@every_op
def test_values(op, dtype):
    if dtype not in dtype_names(op.dtypes):
        pytest.skip(f"does not take {dtype}")
    for sample in op.for_dtype(dtype):
        for which in range(min(3, len(sample.inputs()))):
            compare(op, sample, dtype, which=which)
        if op.name not in _AS_IT_LIES:
            compare(op, sample, dtype, dim=-1)


@pytest.mark.parametrize("derived", [pulled_for_good, pushed])
@every_op
def test_derivatives_of_examples(op, derived):
    if "float64" not in dtype_names(op.grad) or "float64" not in dtype_names(op.dtypes):
        pytest.skip("not differentiable")
    if derived is pushed and op.name in _WRONG_TANGENTS:
        pytest.skip("torch is off")
    for sample in op.for_dtype("float64"):
        if sample.grad:
            compare(op, sample, "float64", derived)
