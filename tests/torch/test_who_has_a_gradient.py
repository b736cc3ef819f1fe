"""Which inputs of an operation have a gradient: each input in turn requires it, and both libraries give one,
give none, or refuse, with the same first sentence. The values are compared elsewhere."""

import pytest
from samples import OPS
from sampling import build, dtype_names, tensors_in

import rushlight

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

# torch's backward fails in these where ours gives the derivative (checked against finite differences).
OURS_WORKS = {
    "narrow_copy": "torch fails for a negative start",
    "convolution": "torch takes no complex numbers here, which conv2d does",
    "scatter": "torch's gradient has the shape of the index",
    "scatter_add": "torch's gradient has the shape of the index",
    "nn.functional.nll_loss": "torch refuses the gradient of a loss it computed",
    "group_norm": "torch fails without a weight",
    "native_group_norm": "the mean and the deviation have gradients, which torch drops",
    "vander": "torch overwrites what it saved",
    "linalg.cond": "torch overwrites what it saved",
    "lu_unpack": "torch's empty results have a derivative that fails",
    "nn.functional.embedding_bag": "torch fails on empty bags",
    "linalg.slogdet": "the sign's gradient: zero, where torch gives none",
    "slogdet": "the sign's gradient: zero, where torch gives none",
}


def outcome(lib, op, sample, dtype, place):
    args, kwargs = build(lib, sample, dtype)
    tensors = tensors_in(lib, (args, list(kwargs.values())))
    leaf = tensors[place]
    if not leaf.is_leaf or not (leaf.dtype.is_floating_point or leaf.dtype.is_complex):
        return None
    for each in tensors:
        if each.is_leaf and each.requires_grad:
            each.requires_grad_(False)
    leaf.requires_grad_(True)
    try:
        made = tensors_in(lib, op.function(lib)(*args, **kwargs))
    except (RuntimeError, NotImplementedError) as error:
        return str(error).split("\n")[0]
    found = []
    for result in made:
        if not result.requires_grad:
            found.append("constant")
            continue
        try:
            total = (result * result.detach()).abs().sum()
            (grad,) = lib.autograd.grad(total, leaf, allow_unused=True, retain_graph=True)
            found.append("none" if grad is None else "gradient")
        except (RuntimeError, NotImplementedError) as error:
            found.append(str(error).split("\n")[0])
    return found


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", [name for name in OPS if name not in OURS_WORKS])
def test_the_same_inputs_have_gradients(name, dtype):
    op = OPS[name]
    if dtype not in dtype_names(op.dtypes):
        pytest.skip(f"not of {dtype}")
    for sample in list(op.for_dtype(dtype))[:3]:
        args, kwargs = build(rushlight, sample, dtype)
        for place in range(len(tensors_in(rushlight, (args, list(kwargs.values()))))):
            theirs = outcome(torch, op, sample, dtype, place)
            if theirs is not None:
                assert outcome(rushlight, op, sample, dtype, place) == theirs, (
                    f"{name}{sample}, tensor {place}"
                )
