"""Tensors in oneDNN's layout: both libraries show, compute and refuse the same."""

import pytest
from expressions import outcome

import rushlight

torch = pytest.importorskip("torch")

SETUP = """
x = torch.tensor([[1., -2., 3.], [0.5, 4., -1.]])
m = x.to_mkldnn()
g = x.clone().requires_grad_()
leaf = x.to_mkldnn().requires_grad_()

def slope(of, t):
    of(t).to_dense().sum().backward()
    return t.grad

def check(of, *given, **options):
    return torch.autograd.gradcheck(of, given, atol=0.1, rtol=0.1, **options)
"""
TABLE = """
m
m.layout
m.new_zeros(2, layout=torch.strided), m.new_full((2,), 3.0, layout=torch.strided)
torch.ones_like(m, layout=torch.strided), torch.zeros_like(m, dtype=torch.int64, layout=torch.strided)
m.is_mkldnn, x.is_mkldnn
m.to_dense()
m.to_dense(torch.bfloat16)
x.to_mkldnn(torch.bfloat16)
x.double().to_mkldnn()
m + m, m * m, m * 2, m.relu(), m.sigmoid(), m.tanh(), m.softmax(1)
m.reshape(3, 2), m.t(), m.transpose(0, 1), m.clone(), m.detach()
m.add_(m), m
m.view(3, 2)
m.add(x)
m.numpy()
m.data_ptr()
m.untyped_storage()
__import__("copy").deepcopy(m)
g.to_mkldnn()
g.to_mkldnn().to_dense()
leaf
slope(lambda t: t.to_mkldnn(), g)
slope(lambda t: t, leaf)
slope(lambda t: t + t, leaf)
slope(lambda t: (t * t).relu(), leaf)
check(lambda t: t.to_dense(), leaf)
check(lambda t: t.to_dense(), leaf, fast_mode=True)
check(lambda t, u: t + u.to_dense(), g, leaf, check_batched_grad=False)
check(lambda t: t.to_dense() * t.to_dense().detach(), leaf)
check(lambda t: t.to_dense(), leaf, check_forward_ad=True)
check(lambda t: t.to_mkldnn(), g)
check(lambda t: t + t, leaf, fast_mode=True)
""".strip().splitlines()


@pytest.mark.parametrize("text", TABLE)
@pytest.mark.filterwarnings("ignore")
def test_same(text):
    theirs, ours = (outcome(library, text, SETUP) for library in (torch, rushlight))
    assert ours == theirs
