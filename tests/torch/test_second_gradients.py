"""Gradients of gradients where little is left of them: where the first is constant, the second is zeros,
or none, or refused, in both libraries alike.

Every operation of torch's op_db runs on its float64 samples; the gradient of the sum of its first output is
taken for each input, and the gradient of that gradient's sum for the same input. RUSHLIGHT_OPDB=all runs all
samples.
"""

import os
import types

import opdb
import pytest
import torch

import rushlight

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

EVERYTHING = os.environ.get("RUSHLIGHT_OPDB") == "all"
SAMPLES = 10

CHAIN = "ours goes by the general formula, torch takes a shorter way and records nothing"
EMPTY = "torch's empty results are constants"
# Ours, torch's, and why.
DIFFERS = {
    "logcumsumexp": ({"zeros"}, "constant", CHAIN),
    "prod": ({"zeros"}, "constant", CHAIN),
    "linalg.det": ({"zeros"}, "constant", CHAIN),
    "native_group_norm": ({"none"}, "constant", "one rule for all inputs: the bias's gradient is recorded"),
    "nn.functional.group_norm": ({"none"}, "constant", "one rule for all inputs: the bias's too"),
    **{
        f"nn.functional.conv{kind}{dims}d": (
            {"constant"},
            "none",
            "torch's backward is one operation: the bias's gradient is recorded, by nothing it depends on",
        )
        for kind in ("", "_transpose")
        for dims in (1, 2, 3)
    },
    "nn.functional.grid_sample": ({"constant"}, "none", "the same, of the nearest pixel's grid"),
    "grid_sampler_2d": ({"constant"}, "none", "the same, of the nearest pixel's grid"),
    "linalg.slogdet": ({"zeros"}, "no gradient", "the sign's: zeros, where torch gives none"),
    "linalg.householder_product": ({"constant"}, "no gradient", EMPTY),
    "ormqr": ({"constant", "zeros"}, "no gradient", EMPTY),
}
OTHER_VALUES = {
    "as_strided_scatter": "torch's first gradient is wrong, which test_torch_is_off.py proves",
    "cov": "rounding errors: the weights are float32",
}
HIDDEN = {"cov"}  # not among the samples that run by default


def outcomes(lib, function, process, args, kwargs, leaves):
    """For each leaf what became of its second gradient, in a word, and the gradients there are."""
    lib.manual_seed(0)
    result = function(*args, **kwargs)
    if process is not None:
        result = process(result)
    outputs = [out for out in opdb.tensors_in(result, lib.Tensor) if out.requires_grad]
    if not outputs:
        return [("constant output",)]
    out = outputs[0].to(lib.complex64) if outputs[0].dtype == lib.complex32 else outputs[0]
    return [outcome(lib, out.sum(), leaf) for leaf in leaves]


def outcome(lib, total, leaf):
    try:
        (first,) = lib.autograd.grad(total, leaf, create_graph=True, allow_unused=True)
    except RuntimeError as error:
        return "first refused", opdb.first_sentence(error)
    if first is None:
        return ("no gradient",)
    if not first.requires_grad:
        return "constant", first
    try:
        (second,) = lib.autograd.grad(first.sum(), leaf, allow_unused=True, retain_graph=True)
    except RuntimeError as error:
        return "refused", opdb.first_sentence(error)
    if second is None:
        return "none", first
    return "second", first, second


def in_a_word(found):
    return found[0] if found[0] != "second" else "values" if found[2].any() else "zeros"


def differences(name):
    """(ours, torch's, what differs) of every sample and leaf."""
    op = opdb.ENTRIES[name]
    for sample in opdb.samples(op, "float64", None if EVERYTHING else SAMPLES, True):
        carry = opdb.Carrier()
        theirs_args, process = (sample.input, *sample.args), sample.output_process_fn_grad
        try:
            args, kwargs = carry(theirs_args), carry(dict(sample.kwargs))
            function, mine = opdb.wrapped(op)
        except opdb.Unfit:
            continue
        own = opdb.rebind(process) if isinstance(process, types.FunctionType) else process
        leaves = ([leaf[side] for leaf in carry.leaves] for side in (0, 1))
        ours = outcomes(rushlight, mine, own, args, kwargs, next(leaves))
        theirs = outcomes(torch, function, process, theirs_args, sample.kwargs, next(leaves))
        assert len(ours) == len(theirs)
        for here, there in zip(ours, theirs):
            if here[0] != there[0]:
                yield in_a_word(here), in_a_word(there), opdb.shorten(sample)
            for a, b in zip(here[1:], there[1:]):
                if isinstance(b, str):
                    assert here[0] != there[0] or a == b, (name, a, b)
                elif isinstance(a, rushlight.Tensor):
                    for problem in opdb.differences(a, b, strides=False):
                        yield "other values", problem, opdb.shorten(sample)


def entries():
    return [name for name, op in opdb.ENTRIES.items() if opdb.supported(op, "grad", "float64")]


@pytest.mark.parametrize("name", entries())
def test_second_gradients(name):
    found = list(differences(name))
    if name in OTHER_VALUES:
        unexpected = [each for each in found if each[0] != "other values"]
    else:
        ours, theirs, _ = DIFFERS.get(name, ((), "", ""))
        unexpected = [each for each in found if each[0] not in ours or each[1] != theirs]
    assert not unexpected, unexpected[:5]
    if (name in DIFFERS or name in OTHER_VALUES) and (EVERYTHING or name not in HIDDEN):
        assert found, f"{name} is listed, but nothing differs any more"


def test_listed_entries_are_operations():
    assert {*DIFFERS, *OTHER_VALUES, *HIDDEN} <= set(entries())
