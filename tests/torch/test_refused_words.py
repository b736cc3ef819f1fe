"""Main families of functions: the words, the type and the point at which a call is refused are torch's.
Every line is evaluated by both libraries; `o` is torch.ones, `z` zeros, `g` ones with a gradient wanted."""

import pytest
from expressions import outcome

import rushlight

torch = pytest.importorskip("torch")

SETUP = """
import numpy
o, z, L, K, N = torch.ones, torch.zeros, torch.tensor, torch.masked, torch.nn.functional
inf, nan, B, U = float('inf'), float('nan'), torch.uint8, torch.uint16
def g(*size, **options): return torch.ones(*size, **options).requires_grad_()
few = o(4).bool()
"""

CALLS = """
torch.clamp(o(2), 1j)
torch.clamp(o(2).cfloat(), o(3))
torch.clamp(o(2), o(2).cfloat(), o(2))
torch.clamp_min(o(2), o(2).cfloat())
torch.clamp_max(o(2).cfloat(), o(2))
o(2).short().clamp_(-1.0, 1)
o(2).bool().clamp_(1.5)
o(2).cfloat().clamp_(o(2))
L([1, 2, 3], dtype=B) ** 300
L([1, 2, 3], dtype=B).pow_(70000)
L([1, 2, 3], dtype=B).pow_(-1)
o(2).half() ** 70000
o(2) ** 1e300
torch.normal(L(300), 1.0, (2, 2)).shape
torch.normal(o(2), 1.0, (2, 2))
torch.eye(L([-3]))
torch.take_along_dim(o(3, 4), o(3).short())
torch.take_along_dim(o(3, 4), o(3).short(), 0)
torch.take_along_dim(o(3, 4), o(3, 4).short(), 0)
torch.gather(o(3, 4), 0, o(3, 4).to(U))
torch.index_reduce(o(3), 0, o(2).to(U), o(2), 'prod')
o(2, 3).stride(o(2))
o(2, 3).stride(L([1]))
o(2, 3).stride(L(1))
o(2, 3).size(dim=1.5)
torch.norm_except_dim(o(3, 4).int(), 2, 0)
torch.norm_except_dim(z(0, 3), 2, 0)
torch.norm(z(2, 3), 2, True)
torch.norm(z(2, 3), 2, 1.5)
torch.norm(z(2, 3), 'fro', 'x')
torch.norm(z(2, 3), 2, (0, 'x'))
torch.frobenius_norm(o(3, 4), (0, 1, 1))
torch.histogramdd(o(9, 2), [o(3), True])
torch.histogramdd(o(9, 2), [3, o(2)])
torch.histogramdd(o(9, 2), False)
torch.histogram(o(20), o(4).cfloat())
torch.histc(z(0).cfloat(), 3)
torch.gradient(-1, spacing=0.5)
torch.gradient(o(4), out=o(4))
torch.gradient(o(4), spacing=[o(4)])
torch.gradient(o(4, 4), dim=-2**64)
torch.gradient(o(4, 4), spacing=(1.0, 2.0), dim=(0, 1))
torch.unique(o(3), out=o(3))
torch.unique(o(3), return_inverse=True, return_counts=True, out=o(3))
torch.unique_consecutive(o(3), return_counts=True, out=o(3))
torch.nanmedian(o(3, 0), 1)
torch.embedding(o(3, 2), o(2).bool())
torch.embedding(o(3, 2), o(2).cfloat())
N.embedding_bag(L([0]), o(3, 2).bool(), L([0]))
K.sum(o(4), 1, mask=o(3, 4).bool())
K.mean(o(4), 1, mask=o(3, 4).bool())
K.mean(o(3, 4), [])
K.sum(o(3, 4), (-1, 0, 0))
K.amax(o(3, 4), 1.5)
K.amin(o(3, 4), (0, None))
K.amax(o(3, 4).bool(), 0, mask=o(5).bool())
K.amax(o(3, 4).to(U), 0, mask=few)
K.prod(o(3, 4), [])
K.argmax(o(3, 4), o(2))
K.argmin(o(3, 4), True, mask=few)
K.cumsum(o(3, 4), (1, 0))
K.cumprod(o(3, 4), o(2))
K.softmax(o(3, 4), [])
K.softmin(L(1.0), 1, mask=few)
K.logsumexp(o(3, 4), 0, keepdim=1)
K.logaddexp(o(3).byte(), o(3))
K.norm(o(3, 4), o(2, 2), 5)
K.var(o(3, 4), ..., keepdim=True)
K.sum(o(3), 0, mask=1)
K.softmax(1.5, 0)
torch.tensor([o(2), 1.5])
torch.tensor([o(2).int(), 1])
torch.tensor([o(2), o(2)])
torch.tensor([[1, 2], o(2)])
torch.tensor([o(1, 1), 2])
torch.combinations(o(2), 63, True)
torch.combinations(o(3), 70000)
torch.cat([o(2, 3), o(1, 2, 3)], out=o(3).bool())
torch.dstack([o(1, 2).cfloat(), o(3, 1, 2)], out=z(0).char())
torch.baddbmm(o(5), o(3, 2, 3), o(3, 4, 4))
torch.baddbmm(o(4).int(), o(3, 2, 3), o(3, 4, 4))
o(3, 2, 5).baddbmm_(o(3, 2, 3), o(3, 4, 4))
torch.addbmm(o(5), o(3, 2, 3), o(2, 3, 4))
torch.device(1, out=o(2))
torch.inner(g(2, 2), L(1.0), out=z(0))
torch.clamp(o(5), min=o(2, 3).cfloat())
torch.softmax(L(-3).char(), 0)
torch.histogramdd(o(9, 2), [-1, 2])
torch.histogramdd(o(9, 2, 1), [o(3), o(2)])
torch.segment_reduce(o(5), 'prod', offsets=L([0, 2, 5]).char())
o(3, 4).sum_to_size(1, False)
torch.fft.fftshift(o(2, 3), dim=L(1))
torch.fft.rfft2(o(2, 3), s=(-1, False))
torch.stft(o(9).half(), 4, return_complex=True)
torch.stft(L(1.0), 4, 2, pad_mode='constant', return_complex=True)
torch.matmul(o(2, 2), o(2, 2).to(U))
torch.index_copy(o(3, 4).to(torch.complex32), 0, L([0]), o(1, 4).char())
torch.index_put(o(3, 4).to(torch.float8_e5m2), (L([0]),), o(4).bool())
torch.linalg.lu(z(0, 2).to(U))
"""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", CALLS.strip().split("\n"))
def test_same(text):
    theirs = outcome(torch, text, SETUP).partition("\n")[0]
    assert outcome(rushlight, text, SETUP).partition("\n")[0] == theirs
