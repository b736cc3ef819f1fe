"""Calls that are wrong in a small way: both libraries refuse them with the same words, or give the same.

Every line is an expression that both libraries evaluate. `o` is torch.ones, `I` ones of int32, `Z` linalg,
`W` signal.windows.
"""

import pytest
from expressions import outcome

import rushlight

torch = pytest.importorskip("torch")

SETUP = """
import math
o, F, Z, W = torch.ones, torch.nn.functional, torch.linalg, torch.signal.windows
L, D, inf, nan = torch.tensor, torch.float64, float('inf'), float('nan')
def I(*size): return torch.ones(*size).int()
def A(*size): return torch.arange(1.0, 1 + math.prod(size), dtype=D).reshape(size)
def slopes(f, x):
    x = x.clone().requires_grad_()
    g, = torch.autograd.grad(f(x).sum(), x, create_graph=True)
    h = torch.autograd.grad((g * g).sum(), x)[0] if g.requires_grad else torch.zeros_like(x)
    return g.detach(), h + 0.0
def written(weight, f):
    return f(weight), weight
h, c = o(2, 3), (o(2, 3), o(2, 3))
def cell(name, x, h, w, v, b=None): return getattr(torch, name + '_cell')(x, h, w, v, b, b)
def params(gates, layers=1): return [o(3 * gates, 3), o(3 * gates, 3), o(3 * gates), o(3 * gates)] * layers
def rnn(name, x, h, p, layers, both=False, biases=True, p_drop=0.0):
    return getattr(torch, name)(x, h, p, biases, layers, p_drop, True, both, False)[0].shape
"""

RECURRENT = """
cell('rnn_tanh', o(2, 2), h, o(5), o(3, 3))
cell('rnn_tanh', o(2, 2), h, o(3), o(3, 3))
cell('rnn_tanh', o(2, 2), h, o(()), o(3, 3))
cell('rnn_tanh', o(2, 2), h, o(3, 2), o(3))
cell('rnn_tanh', o(2, 4), h, o(4, 2), o(3, 3))
cell('rnn_relu', o(2, 2), h, o(3, 2), o(4, 3))
cell('rnn_relu', o(2), o(3), o(3, 2), o(3, 3))
cell('gru', o(2, 2), h, o(9), o(9, 3))
cell('gru', o(2, 4), h, o(10, 2), o(9, 3))
cell('gru', o(2, 2), o(2, 5), o(10, 2), o(9, 3))
cell('gru', o(2, 2), o(()), o(9, 2), o(9, 3))
cell('gru', o(2, 2), h.double(), o(9, 2), o(9, 3))
cell('gru', I(2, 2), I(2, 3), I(9, 2), I(9, 3))
cell('lstm', o(2, 2), c, o(13, 2), o(12, 3))
cell('lstm', o(2, 2), c, o(12, 2), o(13, 3))
cell('lstm', o(2, 2), (o(3, 3), o(3, 3)), o(13, 2), o(12, 3))
cell('lstm', o(()), c, o(12, 2), o(12, 3))
rnn('rnn_tanh', o(4, 1, 3), o(2, 1, 3), params(1), 2)
rnn('rnn_tanh', o(4, 1, 3), o(1, 1, 3), params(1, 2), 1)
rnn('rnn_tanh', o(4, 1, 3), o(1, 1, 3), params(1)[:3], 1)
rnn('rnn_tanh', o(4, 1, 3), o(1, 1, 3), params(1), 0)
rnn('rnn_tanh', o(4, 1, 3), o(2, 1, 3), params(1), 1, both=True)
rnn('rnn_tanh', o(4, 1, 3), o(1, 1, 3), params(1), 1, biases=False)
rnn('rnn_tanh', o(4, 1, 3), o(2, 1, 3), params(1, 2), 2, p_drop=2.0)
rnn('rnn_tanh', o(4, 1, 3), o(2, 1, 3), params(1, 2), 2)
"""

SIZES = """
F.interpolate(o(1, 1, 2, 2), size=3.0)
F.interpolate(o(1, 1, 2, 2), size=(3.0, 3))
F.interpolate(o(1, 1, 2, 2), size=(True, 3))
F.interpolate(o(1, 1, 2, 2), size=(3, None), mode='bilinear')
F.interpolate(o(1, 1, 2, 2), size=2**64)
F.interpolate(o(1, 1, 2, 2), size=(3, 2**64), mode='area')
F.interpolate(o(1, 1, 2, 2), size=(True, 3), mode='area')
F.interpolate(o(1, 1, 2, 2), size=(L(3), 3))
F.interpolate(o(1, 1, 2, 2), size=3, mode='bilinear', align_corners=1)
F.interpolate(o(1, 1, 2, 2), size=3.0, mode='bicubic', antialias=True)
F.interpolate(o(1, 1, 2), scale_factor=L(2.0))
F.interpolate(o(1, 1, 2), scale_factor=L(2.0), mode='area')
F.interpolate(o(1, 1, 2), scale_factor=L(2.0), recompute_scale_factor=True)
F.interpolate(o(1, 1, 2, 2), scale_factor=(2, L(2.0)))
F.interpolate(o(1, 1, 2, 2), scale_factor=(2, 'x'))
F.interpolate(o(1, 1, 2, 2), scale_factor=2j)
F.interpolate(o(1, 1, 2, 2), scale_factor='3')
F.interpolate(o(1, 1, 2, 2), scale_factor=nan)
F.interpolate(o(1, 1, 2, 2), scale_factor=inf, mode='bilinear')
F.interpolate(o(1, 1, 2, 2), scale_factor=nan, recompute_scale_factor=True)
F.interpolate(o(1, 1, 2, 2), scale_factor=True)
F.pad(o(3).byte(), (1, 1), value=-1)
F.pad(o(3).char(), (1, 1), value=-1)
F.adaptive_avg_pool2d(A(40), 1)
F.adaptive_avg_pool2d(A(2, 1, 2, 5, 4), 1)
F.adaptive_avg_pool2d(o(1, 2, 5, 4), (L([1, 2]), None))
F.adaptive_avg_pool2d(o(1, 2, 5, 4), (2, 2**64))
F.adaptive_avg_pool3d(o(2, 0, 3, 3, 3), 2)
F.adaptive_max_pool2d(o(1, 2, 5, 4), True)
F.adaptive_max_pool3d(o(1, 2, 5, 4, 4), (1, 'x', 2))
F.fractional_max_pool3d(o(300), 2, output_size=3, _random_samples=o(1, 2, 3))
F.max_unpool1d(o(2, 2, 1, 2), o(2, 1, 2).long(), 2)
F.max_unpool1d(o(()), o(1, 2, 1).long(), 3)
F.max_unpool1d(o(2, 4, 1, 2), o(1, 2, 4).long(), 3, 2, 1, output_size=(1, 2, 6))
F.max_unpool3d(o(1, 1, 1, 2), o(1, 1, 1, 2), 2)
F.lp_pool1d(o(2, 2, 5), 2, 1j)
torch.group_norm(o(24), 2)
F.group_norm(o(2, 6, 3), 'x')
F.conv1d(o(1, 4, 5), o(3, 4, 8, 3))
F.conv1d(o(8, 4, 2), o(3, 2, 2, 3), o(2), stride=3, padding=1, groups=2, dilation=2)
"""

VALUES = """
F.huber_loss(A(3), -A(3), delta=inf)
F.huber_loss(o(3), o(3).cfloat())
F.binary_cross_entropy(I(2), o(2))
F.binary_cross_entropy(o(3, 4), o(3, 4), o(3, 1))
F.binary_cross_entropy_with_logits(o(5), o(5), weight=o(1, 5))
F.binary_cross_entropy_with_logits(o(2, 5), o(2, 5), weight=o(5))
F.nll_loss(o(3, 1), L(0))
F.multi_margin_loss(o(5, 10), -1)
F.softshrink(o(2), inf)
F.softshrink(o(2), nan)
F.softmin(o(2), 'x')
F.softmin(o(2), 0, dtype=0)
F.softmin(o(2), L([1, 2]))
F.dropout(2, 0.5, False)
F.alpha_dropout(-1, 0.0)
F.feature_alpha_dropout(None)
F.embedding_bag(L([0, 1]), o(3, 3).double(), L([0]), per_sample_weights=o(2), mode='sum')
written(A(3, 3) * 2, lambda w: F.embedding(L([0, 1, 0]), w, max_norm=1.0))
written(I(3, 3), lambda w: F.embedding(L([0, 1, 0]), w, max_norm=1.0))
F.embedding(L([0, 5]), A(3, 3), max_norm=1.0)
F.scaled_dot_product_attention(o(1, 2, 2), o(1, 2, 2), o(1, 2, 2), dropout_p=-2)
F.scaled_dot_product_attention(o(1, 2, 2), o(1, 2, 2), o(1, 2, 2), dropout_p=1.5)
torch.ops.aten.native_dropout_backward(L([True, False]), L([True, True]), 1)
torch.gradient(A(3, 3), spacing=[L(1.0), A(3)], edge_order=2)
torch.addr(o(2, 3), o(2), o(3), beta=True)
torch.addr(o(2, 3), o(2), o(3), alpha=False)
torch.addr(o(2, 3).bool(), o(2).bool(), o(3).bool(), beta=True)
o(2, 3).addr_(o(2), o(3), beta=True)
torch.lu(A(2, 2), -1)
torch.stft(o(5).cdouble(), 7, center=False, return_complex=True)
torch.istft(o(10, 10, 10).cfloat(), n_fft=-1, win_length=8, window=o(8).cfloat())
"""

PRODUCTS = """
torch.matmul(o(2, 2, 3).long(), o(5, 5).byte())
torch.matmul(o(2, 2, 3).long(), o(5).byte())
torch.matmul(o(2, 2, 3).long(), o(2, 5, 5).byte())
torch.matmul(o(2, 2, 3).long(), o(3, 5).byte())
torch.addmm(o(3, 3), o(3, 3), o(2, 2).char())
torch.addmm(I(3, 3), o(3, 3), o(2, 3))
torch.baddbmm(I(2, 3), o(2, 2, 2), o(2, 2, 3))
torch.baddbmm(o(2, 2, 3), I(2, 2, 2), o(2, 2, 3))
torch.baddbmm(o(2, 2, 3), o(2, 2, 2), o(2, 2, 3).double())
torch.baddbmm(o(3, 2, 4), o(3, 2, 3), o(3, 3, 3, 4))
torch.baddbmm(o(()), o(5, 5, 5), o(5, 10))
torch.addbmm(o(2, 4), o(3, 2, 3, 1), o(3, 3, 3, 4))
torch.addbmm(o(2, 4), o(3, 2, 3), o(3, 3))
torch.mv(o(()), o(10))
F.bilinear(o(8, 3), o(8, 4), o(5, 3, 4).short())
F.bilinear(o(8, 3), o(8, 4), o(5, 3, 4), o(5).double())
F.bilinear(o(8, 3), o(8, 4), o(5, 3))
torch.constant_pad_nd(o(3), (1, 2, 3, 4))
torch.conv_tbc(o(4, 2, 3), o(2, 2, 2), o(2))
torch.conv_tbc(A(4, 1, 3), A(2, 3, 2), A(2), -1)
torch.conv_tbc(o(1, 2, 3), o(2, 3, 2), o(2))
torch.conv_tbc(o(4, 2, 3), o(2, 3, 2).double(), o(2))
F.conv1d(o(1, 3, 4).long(), o(3, 3, 3).long(), o(3, 0))
F.conv_transpose1d(o(1, 3, 4), o(3, 3, 3).double(), o(3).double())
"""

LINALG = """
Z.lu_solve(o(3, 2), I(3), o(3, 1))
Z.lu_solve(I(3, 3), I(3), o(3, 1))
Z.lu_solve(o(3, 3).half(), I(3), o(3, 2).half())
Z.ldl_solve(o(3, 3), I(3), o(2, 1))
Z.ldl_solve(o(3, 3), I(3), o(3, 1).double())
Z.lstsq(I(2, 3), I(2, 2))
Z.lstsq(o(2, 2, 3), o(3, 2, 2))
Z.tensorsolve(o(3, 4, 4, 3), o(4))
Z.vector_norm(1e300)
Z.vector_norm(o(2), keepdim=-1)
Z.vector_norm(o(2), ord=(2,))
Z.vector_norm(o(2), ord=o(2))
Z.vector_norm(o(2), dim=('x',))
torch.norm(o(2), o(2))
torch.cholesky(I(2, 2))
torch.cholesky_inverse(I(2, 2))
torch.cholesky_solve(o(2, 1).half(), o(2, 2).half())
torch.svd(o(2))
torch.fft.ihfft2(o(3, 3).cfloat())
torch.fft.rfft2(o(3, 3).cfloat())
torch.fft.irfft2(o(0).half())
torch.fft.fftshift(o(3), dim=(True, 2))
torch.fft.fftshift(o(3), (1.5,))
torch.fft.fftn(o(2, 2), s=('x',))
torch.fft.fftfreq(3, d=0)
torch.fft.fftfreq(5, d=0.5)
torch.fft.fftfreq(2**62)
torch.fft.rfftfreq(0)
torch.fft.rfftfreq(2**62)
"""

WINDOWS = """
W.hann(2.5)
W.hann(True)
W.hann(L(3))
W.hann(L([3, 3]))
W.hann('x')
W.hann(3, requires_grad=1)
W.hann(1, requires_grad=1)
W.hann(0, requires_grad=1)
W.hann(1, device=L([1, 2]))
W.hann(3, dtype=0)
W.cosine(1.0)
W.cosine(0.0)
W.cosine(True)
W.exponential(-1, tau=-1)
W.exponential(2.5, sym=False)
W.gaussian(-1, std=-1)
W.kaiser(True)
W.kaiser(-1, beta=-1)
W.kaiser(2.5)
W.general_cosine(0, a=[])
W.general_cosine(1, a=3)
W.general_cosine(3, a=3)
W.general_cosine(3, a=o(2))
W.general_cosine(3, a=[1, 'x'])
"""

DEGENERATE = """
slopes(lambda x: x.norm(), A(3) * 0)
slopes(lambda x: x.norm(0.5), L([0.0, 1.0], dtype=D))
slopes(lambda x: x.norm(1.5), L([0.0, 1.0], dtype=D))
slopes(lambda x: x.norm(3), L([0.0, 1.0], dtype=D))
slopes(lambda x: Z.vector_norm(x, dim=-1), L([[0.0, 0.0], [1.0, 0.0]], dtype=D))
slopes(lambda x: x.var(0, correction=2), A(2))
slopes(lambda x: x.var(0, correction=3), A(2))
slopes(lambda x: x.var(correction=3), A(2))
slopes(lambda x: x.std((0, 1), correction=5), A(2, 2))
slopes(lambda x: x.std(correction=5), A(2, 2))
slopes(lambda x: torch.var_mean(x, 0, correction=2)[0], A(2))
slopes(lambda x: torch.scatter_reduce(o(2).double(), 0, L([0, 0, 1]), x, 'prod'), A(3) * 0)
slopes(lambda x: torch.index_reduce(o(2).double(), 0, L([0, 0, 1]), x, 'prod'), A(3) * 0)
slopes(lambda x: torch.scatter_reduce(o(2).double(), 0, L([0, 0, 1]), x, 'prod'), L([0, 2, 3]).double())
"""


def lines(text):
    return text.strip().split("\n")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", lines(PRODUCTS + LINALG + RECURRENT + SIZES + VALUES + WINDOWS + DEGENERATE))
def test_same(text):
    theirs = outcome(torch, text, SETUP).partition("\n")[0]
    assert outcome(rushlight, text, SETUP).partition("\n")[0] == theirs
