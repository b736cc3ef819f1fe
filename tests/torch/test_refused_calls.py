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
o, F, Z, W, N = torch.ones, torch.nn.functional, torch.linalg, torch.signal.windows, torch.nn
L, D, inf, nan = torch.tensor, torch.float64, float('inf'), float('nan')
def I(*size): return torch.ones(*size).int()
def A(*size): return torch.arange(1.0, 1 + math.prod(size), dtype=D).reshape(size)
def slopes(f, x):
    x = x.clone().requires_grad_()
    g, = torch.autograd.grad(f(x).sum(), x, create_graph=True)
    h = torch.autograd.grad((g * g).sum(), x)[0] if g.requires_grad else torch.zeros_like(x)
    return g.detach(), h + 0.0
def stepped(name, **options):
    w = o(2, 2).requires_grad_()
    optimizer = getattr(torch.optim, name)([w], **options)
    w.grad = o(2, 2)
    optimizer.step()
    return w.detach()
def spread_out(number):
    w = o(4, 1, 3, 3)
    w[0, 0, 0, 0] = number
    return F.conv_transpose2d(o(1, 4, 5, 5), w, stride=2, groups=4)[0, 0].tolist()
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
rnn('rnn_tanh', o(4, 1, 3), o(1, 1, 3), [o(3, 3), o(1, 3, 3)], 1, biases=False)
rnn('gru', o(4, 1, 3), o(1, 1, 3), [o(9, 3), o(9, 1, 3)], 1, biases=False)
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

WINDOWED = """
F.max_pool2d(o(1, 2, 9, 9), (3, 5), 1, 2, 2)
F.max_pool3d(o(1, 2, 9, 9, 9), 3, 1, 2, 2)
F.max_pool1d(o(1, 2, 9), 3, 1, 2, 2, return_indices=True)
F.max_pool2d(o(1, 2, 5, 5), -2, 1, 0)
F.avg_pool2d(o(1, 1, 4, 4), (-2, 2))
F.avg_pool2d(o(1, 1, 4, 4), -1)
F.avg_pool1d(o(1, 2, 5), -1)
F.avg_pool1d(o(1, 3, 0), 6, 3, 2)
F.avg_pool2d(o(1, 3, 9, 9, 1), 3)
F.lp_pool1d(o(1, 2, 5), 2, 2, -1)
F.conv1d(o(1, 3, 4).cfloat(), o(3, 3, 3))
F.conv1d(o(1, 3, 4).cfloat(), o(3, 3, 3).cdouble())
F.interpolate(3, size=2)
F.max_unpool2d(3, L([1]), 2)
F.adaptive_avg_pool2d(3, 2)
F.pixel_shuffle(o(1, 4, 2, 2), 2**40)
Z.solve(o(3), o(3).double())
"""

VALUES = """
F.dropout(o(2), p=nan)
F.dropout(o(2), p=(1,))
F.dropout(I(2), p=1.0)
F.embedding(L([0]), o(3), max_norm=1.0)
F.embedding_bag(L([[0]]), o(3, 0))
F.rms_norm(o(2, 3), (1, 2, 3))
F.poisson_nll_loss(o(2), o(2), reduction=0)
F.huber_loss(I(2), o(2))
F.binary_cross_entropy_with_logits(o(2), o(2), pos_weight=1.0)
F.binary_cross_entropy_with_logits(o(2).bfloat16(), o(2).half(), weight=o(2).bfloat16())
F.grid_sample(o(1, 1, 2, 2), o(1, 1, 1, 2), mode=[1])
torch.cdist(o(1, 2), o(1, 2) * 2, True)
torch.cholesky(o(0))
F.ctc_loss(o(3, 2, 3) * 0, L([[1, 2], [1, 2]]), L([[3], [3]]), L([1, 1]))
F.ctc_loss(o(3, 2, 3) * 0, L([[1, 2], [1, 2]]), (3, 3), 1)
F.ctc_loss(o(3, 2, 3) * 0, L([[1, 2], [1, 2]]), (3, 3), (1, 1), zero_infinity=1)
F.ctc_loss(o(3, 2, 3, 1), L([[1, 2], [1, 2]]), (3, 3), (1, 1))
F.ctc_loss(o(3, 0, 3), o(0, 2).long(), (), ())
F.multilabel_margin_loss(o(()), L([0]))
F.nll_loss(o(2, 3, 2, 2), o(2, 2, 2).long(), weight=o(0))
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

LAYERS = """
N.KLDivLoss(log_target=3)(o(2), o(2))
N.PoissonNLLLoss(full=1)(o(2), o(2))
N.PoissonNLLLoss()(o(2), 2)
N.GELU(3)(o(2))
N.Hardshrink(o(4))(o(2))
N.Threshold(o(4), 2)(o(2))
N.CrossEntropyLoss()(o(2, 3), 3)
N.GLU(1.5)(o(2))
N.AvgPool1d(o(2))(o(1, 1, 4))
N.AvgPool2d((1.5, 2))(o(1, 1, 4, 4))
N.ReflectionPad1d(o(2))(o(1, 1, 4))
N.ReplicationPad2d(False)(o(1, 4, 4))
N.ConstantPad3d(1, o(1))(o(1, 3, 3, 3))
N.ZeroPad1d(2**64)(o(1, 3))
N.LogSoftmax(L(True))(o(2, 2))
N.GRU(2, 3, bidirectional=1)(o(3, 1, 2))
N.GRUCell(5, 10)(o(1, 5), o(10))
N.LSTMCell(2, 2)(o(2))[0].shape
N.BatchNorm1d(2, momentum=o(2))(o(2, 2))
N.Unfold(o(2))(o(1, 1, 4, 4))
N.FractionalMaxPool3d((2, 0, 2), output_size=2)
N.MultiMarginLoss(weight=o(2, 2))
N.MultiMarginLoss(weight=o(10).bfloat16())(o(5, 10), I(5).long())
N.LocalResponseNorm(0)(o(1, 6, 3))
N.LocalResponseNorm(-1)(o(1, 6, 3, 3))
N.Conv1d(4, 5, (-3, -2, -1), padding='same')
F.avg_pool1d(o(1, 1, 4), 2**62)
F.avg_pool2d(o(1, 1, 4, 4), 2, 2**40)
F.fractional_max_pool3d(o(1, 1, 6, 6, 6), (1, 2), 2)
F.fractional_max_pool2d(o(1, 1, 6, 6), 2, 2, _random_samples=o(1, 1, 2).double())
F.adaptive_max_pool2d(o(1, 1, 4, 4), (torch.float32, 2))
F.lp_pool1d(A(1, 7) - 4, inf, 3, 2)
F.lp_pool2d(A(1, 4, 4) - 8, -inf, 2)
F.lp_pool3d(A(1, 2, 4, 4) - 8, inf, 2)
slopes(lambda x: F.lp_pool1d(x, inf, 2), A(1, 4) - 2.5)[0]
F.cross_entropy(A(2, 3), L([0, 1]), label_smoothing=-0.5)
F.cross_entropy(A(2, 3), L([0, 1]), label_smoothing=nan)
F.cross_entropy(A(2, 3), L([0, 1]), label_smoothing=1.5)
"""

OPTIMISERS = """
stepped('SGD', lr=nan)
stepped('SGD', lr=-1)
stepped('SGD', lr='x')
stepped('SGD', momentum=nan)
stepped('Adam', lr='x')
stepped('Adam', lr=nan)
stepped('Adam', betas=(0.9,))
stepped('Adam', betas={})
stepped('Adam', betas=(0.9, 1.5))
stepped('ASGD', weight_decay=None)
stepped('Adafactor', d='x')
stepped('Adafactor', beta2_decay=1)
stepped('Muon', momentum='x')
torch.distributions.Normal(1j, 1.0)
torch.distributions.Bernoulli(1j)
torch.distributions.Gamma(-1.0, 1.0, validate_args=True)
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
torch.masked.logaddexp(I(3), I(3), input_mask=L([True, False, True]))
torch.masked.logaddexp(o(3) > 0, o(3), input_mask=L([True, False, True]))
torch.linalg.matrix_rank(o(2, 2), hermitian=True)
torch.view_copy(o(2, 2), torch.int32)
"""

# Masks without dimensions are no index in index_put, one value is written by a mask as masked_fill does.
MASKS = """
A(4).index_put((L(True),), L(7.0))
A(4).index_put((L(False),), L([[7.0]]))
A(2, 3).index_put((L(False), L([1, 0])), A(2, 3) * 10).tolist()
A(2, 3).index_put((L([1]), L(True)), L([7.0, 8.0, 9.0], dtype=D)).tolist()
A(2, 3).index_put((L(True),), L([7.0, 8.0], dtype=D)).tolist()
A(2, 3).index_put((L(True), L(True), L(True)), L(7.0)).tolist()
A(0, 3).index_put((L(True), L(False)), L(7.0, dtype=D), accumulate=True).tolist()
A(2, 3).index_put((L([True, False]), L(True)), L(7.0, dtype=D)).tolist()
o(()).index_put((L(1, dtype=torch.uint8),), L(7.0))
I(4).index_put((L([True, False, True, False]),), L(7.5))
A(4).index_put((L([True, False, True, False]),), L([[True]]))
I(4).index_put((L([True, False, True, False]),), L(2j))
I(4).to(torch.uint8).index_put((L([True, False, True, False]),), L(300))
A(4).index_put((L([True, False, True, False]),), L([7.5]), accumulate=True)
A(2, 3).index_put_((L([True, False]),), L(True)).tolist()
torch.ops.aten.index_put(A(2, 3), [None, L([True, False, True])], L(2)).tolist()
torch.ops.aten.index(A(2, 3), [L(True), L([0])]).tolist()
slopes(lambda x: A(2, 3).index_put((L([True, False]),), x) ** 2, A(1))
slopes(lambda x: x.index_put((L([True, False]), L(False)), L(2.0, dtype=D)) ** 2, A(2, 3))
"""

EXTREMES = """
slopes(lambda x: F.celu(x, 1e300), A(3) - 2)
slopes(lambda x: F.celu_(x * 1, 1e39), A(3) - 2)
F.celu(A(3) - 2, 1e300)
F.max_pool1d(A(1, 5), 2, dilation=2**31)
F.max_pool1d(A(1, 5), 1, dilation=2**62)
F.max_pool1d(A(1, 5).requires_grad_(), 1, dilation=2**62)
F.max_pool1d(A(1, 5), 2, padding=2**40)
F.max_pool1d(A(1, 5), 2, stride=2**40)
F.max_pool1d(A(1, 5).requires_grad_(), 2, stride=2**40)
F.max_pool1d(A(1, 5), 2**31)
F.celu(A(3) - 2, L(True))
F.celu(A(3) - 2, 0, A(3))
torch.mean(A(3), out=I(0))
torch.std(A(3, 2), 0, out=o(0).cfloat())
torch.var(A(3, 2), 0, out=o(0).cdouble())
torch.var(A(3, 2), 0, out=o(0))
torch.mean(A(3), dtype=torch.float32, out=o(0).bool())
torch.mean(A(3, 2), 0, out=I(0))
[''.join('ni.'[(a == a) + (abs(a) < inf)] for a in row) for row in spread_out(inf)]
[''.join('ni.'[(a == a) + (abs(a) < inf)] for a in row) for row in spread_out(nan)]
F.fractional_max_pool2d(A(1, 1, 6, 6), 2, (2**63 - 1, 2))
F.fractional_max_pool2d(A(1, 1, 6, 6), 2, (2, -(2**62)))
F.fractional_max_pool3d(A(1, 1, 6, 6, 6), (2, 2**62, 2), 2)
torch.empty_permuted((1, 2**62, 5), (0, 1, 2))
torch.empty_permuted((2**61, 1, 5), (1, 2, 0))
torch.range(0, 2**62)
torch.range(0, 0.9999999999999999)
torch.histogramdd(A(3, 2), [2, 2**63 - 1])
A(2, 3).narrow(1, 3, L([1]))
[torch.log1p(L(complex(a, b))) for a in (0.0, -0.0, inf, -inf) for b in (0.0, -0.0, nan, inf)]
[torch.log1p(L(complex(nan, b), dtype=torch.complex128)) for b in (0.0, inf, -inf)]
[torch.reciprocal(L(complex(a, b))) for a in (0.0, -0.0) for b in (0.0, -0.0, nan, inf)]
[Z._powsum(A(2, 3) - 3, p, dim) for p in (2, 1, 0, 3, 0.5, -1, inf, L(2.0)) for dim in (None, 0, (0, 1), ())]
[Z._powsum(A(2, 3).to(d), 3, keepdim=True) for d in (torch.half, torch.bfloat16, torch.complex64)]
Z._powsum(A(2, 3), 2, -1, dtype=torch.float32)
Z._powsum(I(3))
Z._powsum(A(3), 1j)
Z._powsum(A(3), 2, out=A(3))
Z._powsum(A(3).requires_grad_()).backward()
torch.ops.aten.linalg__powsum(A(3), 3)
torch.polygamma(1, L([-1e-30, -1e-10, -0.3], dtype=D))
torch.polygamma(2, L([-1e-30, -1e-10, -1e-5], dtype=D))
torch.special.zeta(L(3.0, dtype=D), L([-1e-30, -1e-10, -1e-5], dtype=D))
[torch.sgn(L(complex(a, b))) for a in (0.0, -0.0, -1.0, 1.0) for b in (0.0, -0.0, 1.0, -1.0)]
"""


def lines(text):
    return text.strip().split("\n")


CALLS = (
    OPTIMISERS
    + LAYERS
    + WINDOWED
    + PRODUCTS
    + LINALG
    + RECURRENT
    + SIZES
    + VALUES
    + WINDOWS
    + DEGENERATE
    + MASKS
    + EXTREMES
)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", [line for line in lines(CALLS) if line])
def test_same(text):
    theirs = outcome(torch, text, SETUP).partition("\n")[0]
    assert outcome(rushlight, text, SETUP).partition("\n")[0] == theirs
