"""The steps of gradcheck under torch's private names: every name with its signature, and what each step gives
for real, complex and sparse tensors, and for several inputs and outputs."""

import inspect
from importlib import import_module
from pathlib import Path

import pytest
import torch as torch_itself
from expressions import outcome

import rushlight

# What the lines use, and the lines; one that is indented goes on.
SETUP, LINES = Path(__file__).with_name("gradcheck_steps.txt").read_text().split("----\n")
SPARSE = ("coo", "hybrid", "loose", "csr", "csc", "bsr", "bsc")
LINES = [line.replace("\n", "") for line in LINES.replace("\n    ", " ").splitlines() if line]
for _kind in SPARSE:
    LINES += [
        f"[(tuple(a.shape), i, n, a[i].item()) for a, i, n in G._iter_tensor({_kind})]",
        f"rounded(G._densify([{_kind}, 3, ({_kind}, x)])), G._densify({_kind}).requires_grad",
        f"rounded([G._vec_from_tensor({_kind}, gen(), k) for k in (False, True)])",
        f"rounded([G._vec_from_tensor({_kind} * (1 + 1j), gen(), k) for k in (False, True)])",
        f"rounded(G._to_flat_dense_if_sparse({_kind}))",
        f"rounded(G._get_numerical_jacobian(lambda s: s.to_dense() ** 2, ({_kind},), eps=1e-6))",
        f"rounded(G._get_numerical_jacobian(lambda s: s.to_dense() ** 2, G._densify(({_kind},)), eps=1e-6))",
        f"rounded(G._get_numerical_jvp_wrt_specific_input(lambda s: s.to_dense() ** 2, 0, ({_kind},),"
        f" G._vec_from_tensor({_kind}, gen()), 1e-6))",
        f"rounded(G._get_input_to_perturb({_kind})), G._get_input_to_perturb({_kind}) is {_kind}",
        f"[t.shape for t in G._allocate_jacobians_with_inputs(({_kind},), 3)]",
        f"[t.shape for t in G._allocate_jacobians_with_outputs(({_kind},), 3)]",
        *(
            f"[lines(G.gradcheck, lambda s: s.to_dense(masked_grad={masked}), ({_kind},), masked={of_check},"
            f" fast_mode=k) for k in (False, True)]"
            for masked in (True, False, None)
            for of_check in (True, False)
        ),
    ]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", LINES)
def test_as_in_torch(text):
    assert outcome(rushlight, text, SETUP) == outcome(torch_itself, text, SETUP)


def test_every_name_has_torchs_signature():
    ours, theirs = (import_module(f"{name}.autograd.gradcheck") for name in ("rushlight", "torch"))
    own = [
        name
        for name, value in vars(theirs).items()
        if getattr(value, "__module__", None) == theirs.__name__ or isinstance(value, str)
    ]
    assert len(own) > 60
    assert [name for name in own if not hasattr(ours, name)] == []
    for name in own:
        if inspect.isfunction(getattr(theirs, name)):
            found, expected = (
                inspect.signature(getattr(m, name)).parameters.values() for m in (ours, theirs)
            )
            assert [(p.name, p.kind, p.default) for p in found] == [
                (p.name, p.kind, p.default) for p in expected
            ]
    assert sorted(ours.__all__) == sorted(theirs.__all__)
