"""Numbers of other kinds than Python's: NumPy's integers and tensors without dimensions where torch takes
them, and factors that a real result cannot hold refused, never cut."""

import numpy
import pytest
import torch
from expressions import outcome

import rushlight

SETUP = """
import numpy
x, i, c = torch.arange(24.0).view(2, 3, 4), torch.arange(4).view(2, 2), torch.ones(2, 2) * 1j
m, y, v = torch.arange(4.0).view(2, 2), torch.ones(2, 2), torch.ones(2)
n, t, a, s = numpy.int64(2), torch.tensor(2), numpy.array(2), torch.tensor(2.0)
"""
WHOLE = [
    "x.chunk(K)", "torch.roll(x, K)", "torch.roll(x, K, 1)",
    "x.repeat_interleave(K, 0)", "torch.tensor_split(x, K)", "torch.movedim(x, K, 0)",
    "torch.cdist(x, x, p=K)",
    "torch.linalg.norm(x, 2, dim=K)", "torch.hann_window(K)",
    "torch.polygamma(K, y)", "torch.hsplit(x[:, :2], K)",
    "torch.histogramdd(m, K).hist", "torch.var(x, correction=K)",
]  # fmt: skip
GIVEN = [text.replace("K", name) for text in WHOLE for name in "nt"] + [
    "torch.Tensor(n).shape", "torch.Tensor(a).shape", "torch.LongTensor(n, 3).shape",
    "torch.Tensor(numpy.ones(2))", "torch.tensor_split(x, a)", "x.split(t, 2)",
    "torch.split(x, t, -1)",
    # factors between the tensors, as tensors
    "m.clone().add_(s, y)", "torch.add(m, t, y)", "m.sub(s, y)", "m.clone().addcdiv_(-s, m, m + 1)",
    "torch.addmm(s, m, t, y, y)", "torch.addmm(s, m, y, y)", "m.addmm(s, y, y)", "v.addmv(s, t, m, v)",
    # factors that the result cannot hold
    "m.add(y, alpha=1j)", "m.add_(y, alpha=1j)", "m.add(y, alpha=True)", "i.add(i, alpha=1.0)",
    "i.add_(i, alpha=1.5)", "i.sub_(i, alpha=True)", "c.add(c, alpha=1j)", "m.add(c, alpha=1j)",
    "m.sub(y, alpha=1j)", "torch.rsub(m, y, alpha=1j)", "torch.add(m, 1, alpha=1j)",
    "m.addcmul(m, y, value=1j)",
    "m.addcdiv(m, y, value=1j)", "m.double().addcdiv(m, y, value=1j)", "m.lerp(y, 1j)", "m.add(1j, y)",
    "m.index_add(0, torch.tensor([0, 1]), y, alpha=1j)", "torch.nn.functional.leaky_relu(m, 1j)",
    "torch.nn.functional.elu(m, 1j)", "torch.nn.functional.softplus(m, 1j)", "m.var(correction=1j)",
    "m.addcmul(m, y, value=1 + 0j)", "torch._foreach_add([m], [y], alpha=1j)",
]  # fmt: skip


@pytest.mark.parametrize("text", GIVEN)
def test_numbers_of_other_kinds(text):
    assert numpy.ones(1).shape  # the expressions use it
    said = [outcome(library, text, SETUP).split("\nUserWarning")[0] for library in (rushlight, torch)]
    assert said[0] == said[1]
