"""What torch cannot differentiate: the gradient, the gradient of the gradient and the tangents of every
operation of torch's op_db exist in both libraries, or are refused with the same type and first sentence.
test_opdb.py compares the values. RUSHLIGHT_OPDB=all runs all samples.
"""

import os
import types

import opdb
import pytest
import torch

import rushlight
import rushlight.autograd.forward_ad

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

EVERYTHING = os.environ.get("RUSHLIGHT_OPDB") == "all"
SAMPLES = 3

# What is refused otherwise, or in one library only, by entry: here and there.
DIFFERS = {
    # Torch's tangent has the size of the mean, not that of the result.
    "normal": [([], ["RuntimeError: Trying to set a forward gradient that has a different size than that of "
                     "the original Tensor, this is not supported"])],
    # Torch loses the edge to the only tensor of several that requires grad.
    "_chunk_cat": [(["RuntimeError: derivative for aten::_chunk_cat is not implemented"], [None])],
}  # fmt: skip


def refusal(error):
    return f"{type(error).__name__}: {opdb.first_sentence(error)}"


def refusals_in_reverse(lib, function, process, args, kwargs, leaves):
    """For the call, and for each leaf, what was refused first, or None."""
    lib.manual_seed(0)
    try:
        result = function(*args, **kwargs)
        result = result if process is None else process(result)
    except Exception as error:
        return [refusal(error)]
    outputs = [out for out in opdb.tensors_in(result, lib.Tensor) if out.requires_grad]
    return [refused_gradient(lib, out, leaf, 2) for out in outputs[:1] for leaf in leaves]


def refused_gradient(lib, out, leaf, order):
    try:
        weights = lib.ones_like(out)
        (found,) = lib.autograd.grad(out, leaf, weights, create_graph=True, allow_unused=True)
    except Exception as error:
        return refusal(error)
    if order == 1 or found is None or not found.requires_grad:
        return None
    return refused_gradient(lib, found, leaf, order - 1)


def refusals_in_forward_mode(lib, function, process, args, kwargs, leaves):
    dual_of = lib.autograd.forward_ad

    def dual(item):
        if any(item is leaf for leaf in leaves):
            return dual_of.make_dual(item.detach(), lib.ones_like(item.detach()))
        return type(item)(map(dual, item)) if type(item) in (list, tuple) else item

    with dual_of.dual_level():
        duals, named = dual(args), {name: dual(value) for name, value in kwargs.items()}
        lib.manual_seed(0)
        try:
            result = function(*duals, **named)
            result if process is None else process(result)
        except Exception as error:
            return [refusal(error)]
    return []


def differences(name, dtype):
    op = opdb.ENTRIES[name]
    for sample in opdb.samples(op, dtype, None if EVERYTHING else SAMPLES, True):
        carry = opdb.Carrier()
        theirs_args, process = (sample.input, *sample.args), sample.output_process_fn_grad
        try:
            args, kwargs = carry(theirs_args), carry(dict(sample.kwargs))
            function, mine = opdb.wrapped(op)
        except (opdb.Unfit, opdb.Absent):
            continue
        own = opdb.rebind(process) if isinstance(process, types.FunctionType) else process
        ours, theirs = ([leaf[side] for leaf in carry.leaves] for side in (0, 1))
        for run in (refusals_in_reverse, refusals_in_forward_mode):
            here = run(rushlight, mine, own, args, kwargs, ours)
            there = run(torch, function, process, theirs_args, sample.kwargs, theirs)
            if here != there:
                yield run.__name__, here, there, opdb.shorten(sample)


def entries():
    for name, op in opdb.ENTRIES.items():
        for dtype in opdb.GRAD_DTYPES:
            if opdb.supported(op, "function", dtype):
                yield name, dtype


@pytest.mark.parametrize(("name", "dtype"), list(entries()))
def test_refusals(name, dtype):
    found = [d for d in differences(name, dtype) if d[1:3] not in DIFFERS.get(name, ())]
    assert not found, found[:3]
