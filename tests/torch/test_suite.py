"""What torch's operator suites ask beyond op_db's samples: refusals, metadata, names under torch.ops.

Every line is an expression that both libraries evaluate; the value, or the error's type and first sentence,
has to be the same. `o` is torch.ones, `m` a tensor on the meta device.
"""

import pytest
from expressions import outcome

import rushlight

torch = pytest.importorskip("torch")

SETUP = """
import numpy
n = numpy.array([1.0, 2.0])
o, A, F = torch.ones, torch.ops.aten, torch.nn.functional
c, m, L = o(3, dtype=torch.complex64), torch.empty(3, device='meta'), torch.tensor([1, 2])
inf, nan = float('inf'), float('nan')
x, w = torch.randn(2, 3, 7, 6), torch.empty(5, 4, device='meta')
def shown(t): return (str(t.dtype), tuple(t.shape), t.stride(), round(t.double().sum().item(), 3))
both, no = (False, True), [0, 0]
kinds = [(k, a) for k in ('bilinear', 'bicubic') for a in both]
q, p = L.view(1, 1, 1, 2)[..., :1], torch.empty(5, 2, 4, device='meta')
C, S, d = torch.nn.LinearCrossEntropyOptions, torch.eye(2) + 1, torch.empty(0).int()
v, y = torch.rand(8), torch.rand(3, 4).bfloat16()
def shape(t): return str(t.dtype), tuple(t.shape), str(t.device)
def slope(f, d):
    x = o(3, dtype=d, requires_grad=True)
    f(x).sum().backward()
    return x.grad
"""

REFUSED = """
c.clone().abs_()
c.clone().absolute_()
o(3).float_power_(2)
o(3).double().float_power_(2j)
c.clone().float_power_(2)
torch.float_power(o(3), 2, out=o(3))
torch.float_power(2, o(3), out=o(3))
torch.masked.logaddexp(c, c, input_mask=torch.tensor([True, False, True]))
A.max_pool2d_with_indices_backward(q, L.view(1, 1, 1, 2), [1, 2], [1, 2], no, [1, 1], False, q * 0)
F.rrelu(o(3).half(), training=True)
torch.round(L, decimals=0)
L.clone().round_(decimals=0)
slope(torch.special.i1, torch.bfloat16)
slope(torch.special.i1e, torch.float16)
torch.narrow_copy(o(2, 3), 2, 0, 1)
torch.narrow_copy(o(2, 3), -3, 0, 1)
torch.narrow_copy(o(2, 3), 0, 0, -1)
torch.narrow_copy(o(()), 0, 0, 1)
torch._chunk_cat([o(2, 3), o(2)], 1, 2)
torch._chunk_cat([o(2, 3), o(3, 3)], 1, 2)
torch._chunk_cat([o(2, 3), o(2, 3, 2)], -1, 2)
torch._chunk_cat([o(2, 3), o(2, 3)], 2, 2)
torch._chunk_cat([], 0, 2)
torch._chunk_cat([o(2, 3), o(2, 3)], 0, 1, out=o(1, 12).int())
torch.tensor_split(m, m.long())
torch.repeat_interleave(m, m.long())
A._upsample_bilinear2d_aa(x[0], [2, 2], False)
A._upsample_bilinear2d_aa(x, [2, 2, 2], False)
A.upsample_nearest2d(x, None, None)
A.upsample_bicubic2d(x, [0, 2], False)
torch.linalg.det(S, out=d)
torch.linalg.solve(S, o(2), out=d)
torch.linalg.pinv(S, out=d)
torch.linalg.norm(S, out=d)
torch.linalg.matrix_norm(S, out=d)
torch.linalg.matrix_norm(S, dtype=torch.int32)
torch.linalg.vector_norm(S, out=d)
torch.linalg.eigvals(S, out=d)
torch.linalg.eigh(S, out=(d, d))
torch.linalg.vecdot(S, S, out=d)
torch.tensordot(S, S, out=d)
torch.dot(o(2), o(2), out=d)
torch.cholesky_solve(o(2, 1), S, out=d)
torch.fft.rfft2(S, out=d)
torch.fft.irfft(S, out=d)
torch.fft.fftshift(S, 5)
torch.lerp(v, v.double(), 0.5)
v.clone().lerp_(v, v.double())
torch.cumsum(v[:3], 0, out=v[1:4])
o(3).adjoint()
o(2, 3, 4).t_()
torch.tensor_split(v, o(1))
torch.tensor_split(v, L.view(1, 2))
o(2).repeat_interleave(2, output_size=3)
torch.diff(v, prepend=v, append=v.view(2, 4))
torch.nanmean(v, dtype=torch.int32)
torch.empty_strided((2, 2), (1,))
torch.tensor(300, dtype=torch.uint8)
torch.tensor([nan], dtype=torch.int64)
torch.tensor(inf, dtype=torch.int32)
torch.bool.to_complex()
float(c[0] * 1j)
o(2).atan2_(1)
o(2).floor_divide_(1j)
(v > 0).bitwise_and_(1.5)
torch.logcumsumexp(v[:3], 0, out=v[1:4])
torch.sort(v[:3], out=(v[1:4], o(3).long()))
torch.topk(v[:3], 3, out=(v[1:4], o(3).long()))
torch.median(v[:3], 0, out=(v[1], o(()).long()))
torch.aminmax(v[:3], dim=0, out=(v[1], v[2]))
torch.msort(v[:3], out=v[1:4])
v[:3].bernoulli_(v[1:4])
F.linear_cross_entropy(v.view(2, 4), o(3, 4), L, options=C(acc_dtype=torch.float64))
"""

GIVEN = """
torch.float_power(o(3), 2, out=o(3).double())
(o(2) == n, n == o(2), (n == o(2)).dtype, o(2) == n[1])
torch.lerp(o(2), o(2) * 3, torch.tensor(0.5).double())
torch.masked.cumsum(S, (0, 1))
torch.masked.softmax(S, (1, 0), mask=S > 1)
torch.masked.median(S, (0, 1))
torch.reshape(input=v, shape=(2, 4)).shape, torch.permute(input=S, dims=(1, 0)).shape
torch.tile(input=L, dims=(2,)), torch.view_copy(input=L, size=(2, 1))
torch.sum(**{'ax' + 'is'[:2]: 0, 'x': S}), torch.prod(a=S, axis=0, keepdims=True)
torch.tensor_split(v, tensor_indices_or_sections=L)[1].shape
(torch.cholesky_solve(input=o(2, 1), input2=S), torch.linalg.vector_norm(input=S))
torch.linalg.solve_triangular(input=S, B=o(2, 1), upper=True), F.one_hot(input=L)
(float(c[0]), int(c[0]), hash(v) == id(v))
torch.i0(torch.tensor([inf, -inf, nan, 1e30]))
torch.sigmoid(torch.tensor([-1000+1j, 1000+1j, 0j, -1000+0j]))
torch._chunk_cat([o(2, 3), o(2, 4, 2)], 1, 2)
torch._chunk_cat([o(2, 3), o(2, 3)], -1, 2)
torch.tensordot(o(4, 1).int(), o(3, 4).int(), [[1], [0]])
torch.tensordot(o(4, 1, 3, dtype=torch.uint8), o(3, 4, 4, dtype=torch.uint8), [[1], [1]]).shape
[o(()).expand(1, 1).stride(), o(()).expand(1).stride(), o(3).expand(1, 3).stride()]
torch.round(L), torch.round(o(2), decimals=0)
shape(torch.repeat_interleave(m, m.long(), output_size=5))
shape(F.embedding(L.to('meta'), w, max_norm=1.0))
shape(F.embedding_bag(L.to('meta'), w, L[:1].to('meta')))
shape(F.embedding_bag(L.view(1, 2).to('meta'), w, mode='max'))
shape(A._batch_norm_with_update(w, w[0], w[0], w[0], w[0], 0.1, 1e-5)[3])
shape(torch.segment_reduce(m, 'sum', lengths=L.to('meta')))
shape(F.ctc_loss(p, p[:2, :, 0].T.long(), (5, 5), (2, 2), reduction='none'))
[shown(getattr(A, f'_upsample_{k}2d_aa')(x, None, a, [1.5, 0.8])) for k, a in kinds]
[shown(getattr(A, f'_upsample_{k}2d_aa')(x, [4, 9], a, 1.3, None)) for k, a in kinds]
[shown(getattr(A, f'upsample_{k}2d')(x, [4, 9], align_corners=a)) for k, a in kinds]
[shown(f(x, [4, 9])) for f in (A._upsample_nearest_exact2d, torch._C._nn.upsample_nearest2d)]
[shown(A.upsample_bilinear2d_backward(x, [7, 6], [2, 3, 4, 4], a)) for a in both]
torch.zeros(3, 1).expand(3, 2).masked_fill_(o(3, 2).cumsum(0) > 1, 1)
torch.zeros(3).expand(2, 3).masked_fill_(torch.tensor([True, False, True]), 2.0)
torch.zeros(1).expand(3).index_fill_(0, L, 1)
torch.zeros(3, 1).expand(3, 2).index_fill_(0, L, 1)
torch.zeros(1).expand(3).index_put_((L,), o(2))
slope(lambda x: torch.linalg.det(torch.stack([torch.diag(x), o(3, 3) * 0 * x])), torch.float64)
F.linear_cross_entropy(v.view(2, 4).bfloat16(), y, L, options=C(2, acc_dtype=torch.float32))
shown(A._upsample_bilinear2d_aa_backward(x, [7, 6], [2, 3, 9, 9], False, None, None))
"""

# Operations whose result has no shape without the elements.
UNKNOWN = """
torch.equal(m, m)
torch.unique(m)
torch.unique_consecutive(m)
torch.bincount(m.long())
torch.histogram(m, 3)
torch.histogramdd(m.view(3, 1), [2])
"""


def lines(text):
    return text.strip().split("\n")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", lines(GIVEN) + lines(REFUSED))
def test_same(text):
    theirs = outcome(torch, text, SETUP)
    assert outcome(rushlight, text, SETUP) == theirs


@pytest.mark.parametrize("text", lines(REFUSED))
def test_refused(text):
    assert "Error: " in outcome(rushlight, text, SETUP)


@pytest.mark.parametrize("text", lines(UNKNOWN))
def test_nothing_is_known_without_elements(text):
    ours, theirs = outcome(rushlight, text, SETUP), outcome(torch, text, SETUP)
    assert ours.startswith("NotImplementedError: aten::") and theirs.startswith(ours[:60])


@pytest.mark.filterwarnings("ignore")  # of NumPy, about how torch takes over its results
def test_an_array_over_a_tensor():
    import numpy

    array = numpy.array([1.0, 2.0])
    ours, theirs = array / (rushlight.ones(2) * 4), array / (torch.ones(2) * 4)
    assert (ours.tolist(), str(ours.dtype)) == (theirs.tolist(), str(theirs.dtype))
