"""What operations that work in place hand to hooks on saved tensors: which values, when, and whose."""

import pytest
import torch as torch_itself

import rushlight

WRITES = """
F.elu_(e) | F.elu_(e, 0.5) | F.selu_(e) | F.celu(e, 2.0, True) | F.leaky_relu_(e) | F.leaky_relu_(e, 0.0)
F.hardtanh_(e) | F.hardtanh_(e, -0.5, 2.0) | F.relu6(e, True) | e.logit_() | e.nan_to_num_() | F.relu_(e)
F.hardtanh(e) | F.relu6(e) | F.threshold_(e, 0.1, 0.5) | F.silu(e, True) | e.sigmoid_() | e.pow_(2)
F.elu(e) | F.leaky_relu(e) | F.selu(e)
"""


def told(torch, expression):
    x = torch.tensor([[0.5, -1.0], [2.0, 0.25]], requires_grad=True)
    e = x * 0.75
    seen, kept = [], []

    def pack(saved):
        whose = "itself" if saved is e else "its memory" if saved.data_ptr() == e.data_ptr() else "another"
        numbers = [round(number, 4) for number in saved.detach().flatten().tolist()]
        seen.append((whose, numbers, saved.requires_grad, saved._version, saved.is_leaf))
        kept.append(saved)
        return len(kept) - 1

    def unpack(at):
        seen.append(("unpacked", at))
        return kept[at]

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        result = eval(expression, {"F": torch.nn.functional, "e": e})
    (gradient,) = torch.autograd.grad(result.sum(), x)
    return seen, [round(number, 4) for number in gradient.flatten().tolist()], result.grad_fn.name()


@pytest.mark.parametrize("expression", [e.strip() for e in WRITES.replace("\n", "|").split("|") if e.strip()])
def test_what_is_packed(expression):
    assert repr(told(rushlight, expression)) == repr(told(torch_itself, expression))  # NaN equals NaN


@pytest.mark.parametrize("name", ["elu_", "celu_", "selu_", "leaky_relu_", "hardtanh_"])
def test_the_kernel_is_named(name):
    said = []
    for torch in (rushlight, torch_itself):
        with pytest.raises((RuntimeError, NotImplementedError)) as refused:
            getattr(torch.nn.functional, name)(torch.ones(2, dtype=torch.complex64))
        said.append(str(refused.value).splitlines()[0])
    assert said[0] == said[1]


@pytest.mark.parametrize("write", ["elu_(e, 0.5)", "selu_(e)", "celu_(e, 2.0)", "leaky_relu_(e, 0.2)"])
def test_derivatives_by_the_result(write):
    def written(x):
        e = x * 1
        eval(write, {**vars(rushlight.nn.functional), "e": e})
        return e

    x = rushlight.tensor([-2.0, -0.3, 0.4, 1.7], dtype=rushlight.float64, requires_grad=True)
    assert rushlight.autograd.gradcheck(written, x, check_forward_ad=True)
    assert rushlight.autograd.gradgradcheck(written, x)
