"""Whole graphs: names, order and number of next functions, in both libraries the same."""

import warnings

import pytest
import torch as torch_itself

import rushlight

# Expressions whose graphs agree three nodes deep, and those of which the last node's name does.
SAME = """
x.sum_to_size(1,4)
x.sum_to_size(4)
x.sum_to_size(1)
torch.corrcoef(c)
torch.corrcoef(x)
torch.cov(x)
torch.diff(x,0)
torch.diff(x)
torch.diff(x,2)
torch.select_scatter(x,s,0,1)
torch.slice_scatter(x,x[1:3],0,1,3)
torch.diagonal_scatter(x,s)
torch.as_strided_scatter(x,s,(4,),(1,))
torch.stft(sig,8,window=win,return_complex=True)
torch.stft(sig[None],8,window=win,return_complex=True)
torch.stft(sig,8,window=win,return_complex=False)
torch.stft(sig,8,window=win,return_complex=True,center=False)
torch.stft(sig,8,window=win,return_complex=True,onesided=False,normalized=True)
torch.istft(torch.stft(sig,8,window=win,return_complex=True),8,window=win)
torch.istft(torch.stft(sig[None],8,window=win,return_complex=True),8,window=win)
x@x
x@s
s@s
torch.quantile(x,.3)
torch.quantile(x,.3,0)
torch.quantile(x,torch.tensor([.3,.4]),0)
torch.quantile(x,torch.tensor([.3,.4]),0,True)
torch._softmax_backward_data(x,torch.softmax(t,0),0,x.dtype)
torch._log_softmax_backward_data(x,torch.softmax(t,0),0,x.dtype)
F.cross_entropy(x,torch.softmax(t,1))
F.cross_entropy(x,torch.softmax(t,1),reduction='none')
F.cross_entropy(x,torch.softmax(t,1),reduction='sum')
F.cross_entropy(x,torch.softmax(t,1),label_smoothing=.1)
F.cross_entropy(x,i4,label_smoothing=.1)
F.cross_entropy(x,i4)
F.cross_entropy(x,i4,weight=s.detach(),label_smoothing=.1)
F.max_pool1d(p,2,return_indices=True)
F.lp_pool1d(p,2,2)
F.lp_pool2d(q,2,2)
F.adaptive_avg_pool2d(q,1)
F.interpolate(q,4,mode='area')
F.conv1d(p,w,b)
F.conv1d(p,w)
F.conv1d(p[0],w,b)
F.layer_norm(x,(4,),s)
F.pad(p,(1,1),mode='reflect')
F.pad(p,(1,1))
1/x
2/x
1-x
1.5-x
x.__rsub__(2)
torch.rsub(x,t)
torch.rsub(x,2)
x.__rdiv__(2)
x.__rpow__(2)
2**x
x.__rmul__(2)
1//x
x//2
x%2
-x
torch.trapezoid(x)
torch.trapezoid(x,dx=2)
torch.trapezoid(x,t)
torch.cumulative_trapezoid(x)
torch.cumulative_trapezoid(x,t)
F.smooth_l1_loss(x,t,beta=0)
F.smooth_l1_loss(x,t)
F.embedding_bag(i4,x,torch.tensor([0,2]),mode='sum',per_sample_weights=s)
F.embedding(i4,x)
torch.fft.fft(s)
torch.fft.ifft(s)
torch.fft.ihfft(s)
torch.fft.rfft(s)
torch.fft.irfft(c)
torch.fft.rfft2(x)
torch.fft.ifft(c)
torch.fft.fft(c)
torch.fft.fft2(c)
torch.fft.irfft2(c)
torch.fft.fftshift(x)
torch.linalg.matrix_power(x,-1)
torch.linalg.matrix_power(x,2)
torch.linalg.matrix_power(x,3)
torch.linalg.matrix_power(x,5)
torch.linalg.matrix_norm(x)
torch.linalg.matrix_norm(x,1)
torch.linalg.matrix_norm(x,2)
torch.linalg.matrix_norm(x,'nuc')
torch.linalg.matrix_norm(x,1,keepdim=True)
torch.linalg.norm(x)
torch.linalg.norm(s,1)
torch.norm(x)
torch.norm(x,1)
torch.norm(x,dim=0)
x.norm()
x.norm(1,0)
torch.linalg.lu(x)
torch.linalg.lu_factor(x)
torch.linalg.tensorsolve(x.view(2,2,2,2),t[:2,:2])
torch.einsum('ii',x)
torch.einsum('ij->ji',x)
torch.einsum('ij->',x)
torch.atleast_1d(z)
torch.atleast_2d(s)
torch.atleast_3d(s)
torch.atleast_3d(x)
torch.atleast_2d(z)
torch.atleast_3d(z)
F.selu(x*1,inplace=True)
F.celu(x*1,inplace=True)
F.elu(x*1,inplace=True)
F.threshold(x*1,0.,0.,inplace=True)
F.rrelu(x*1,inplace=True)
F.rrelu(x*1,inplace=True,training=True)
F.rrelu(x,training=True)
F.relu(x*1,inplace=True)
F.relu6(x*1,inplace=True)
F.leaky_relu(x*1,inplace=True)
F.hardtanh(x*1,inplace=True)
F.hardsigmoid(x*1,inplace=True)
F.hardswish(x*1,inplace=True)
F.silu(x*1,inplace=True)
F.mish(x*1,inplace=True)
F.dropout(x*1,inplace=True)
F.alpha_dropout(x*1,inplace=True,training=True)
F.feature_alpha_dropout(x*1,inplace=True,training=True)
F.dropout(x)
F.dropout2d(q)
F.alpha_dropout(x,training=True)
F.selu(x)
F.celu(x)
F.elu(x)
(x*1).polygamma_(1)
(x*1).conj_physical_()
torch.segment_reduce(s,'sum',lengths=torch.tensor([2,2]))
F.batch_norm(p,None,None,training=True)
F.instance_norm(p)
F.group_norm(p,1)
F.local_response_norm(p,2)
F.normalize(x)
F.cosine_similarity(x,t)
F.cosine_embedding_loss(x,t,torch.ones(4))
F.mse_loss(x,t)
F.l1_loss(x,t)
F.poisson_nll_loss(x,t)
F.gaussian_nll_loss(x,t,t)
F.hinge_embedding_loss(x,torch.ones(4,4))
F.triplet_margin_loss(x,t,x)
F.multilabel_soft_margin_loss(x,torch.ones(4,4))
F.nll_loss(x,i4)
F.glu(x)
F.softmin(x,0)
F.gumbel_softmax(x)
F.softsign(x)
F.tanhshrink(x)
F.logsigmoid(x)
F.unfold(q,2)
F.fold(torch.ones(1,4,9,requires_grad=True),(4,4),2)
F.pixel_shuffle(torch.ones(1,4,2,2,requires_grad=True),2)
F.upsample(p,scale_factor=2)
F.ctc_loss(torch.randn(8,1,4,requires_grad=True).log_softmax(2),torch.tensor([[1,2]]),torch.tensor([8]),torch.tensor([2]))
s@x
F.linear(x,t)
F.linear(x,t,s)
F.linear(s,x,s)
F.linear(p,torch.ones(3,8,requires_grad=True),torch.ones(3,requires_grad=True))
F.linear(p,torch.ones(3,8,requires_grad=True))
F.embedding_bag(i4,x,torch.tensor([0,2]))
F.embedding_bag(i4,x,torch.tensor([0,2]),mode='sum')
F.embedding_bag(i4,x,torch.tensor([0,2]),mode='max')
F.embedding_bag(i4.view(2,2),x)
F.scaled_dot_product_attention(p,p,p)
F.batch_norm(p,torch.zeros(3),torch.ones(3))
F.pairwise_distance(x,t)
F.kl_div(x,t)
F.margin_ranking_loss(s,s,torch.ones(4))
F.adaptive_avg_pool1d(p,2)
F.adaptive_max_pool1d(p,2)
F.adaptive_max_pool1d(p,2,return_indices=True)
F.avg_pool1d(p,2)
F.max_pool1d(p,2)
F.interpolate(p,4,mode='area')
"""
NAMED = """
torch.combinations(s)
torch.combinations(s,3)
torch.combinations(s,2,True)
x.expand(3,4,4)@x
x.expand(3,4,4)@x.expand(3,4,4)
x.expand(3,4,4)@s
s@x.expand(3,4,4)
x.expand(2,3,4,4)@x
x.expand(2,3,4,4)@x.expand(3,4,4)
torch.quantile(x,.3,0,True)
torch.nanquantile(x,.3,0,interpolation='lower')
F.cross_entropy(x,i4,reduction='none',label_smoothing=.1)
F.rms_norm(x,(4,))
F.rms_norm(x,(4,),s)
F.pad(p,(1,1),mode='circular')
F.linear(x,s)
torch.fft.hfft(c)
torch.fft.fft2(x)
torch.fft.ifft2(x)
torch.fft.fftn(x)
torch.fft.ifftn(x)
torch.fft.ihfft2(x)
torch.fft.ihfftn(x)
torch.fft.hfft2(c)
torch.linalg.matrix_norm(x,'nuc',keepdim=True)
torch.special.ndtr(x)
torch.einsum('ij,jk->ik',x,t)
torch.einsum('i,j->ij',s,s)
torch.einsum('ij,ij->i',x,t)
torch.einsum('ij,j->i',x,s)
torch.einsum('bij,bjk->bik',p,p.transpose(1,2))
F.bilinear(x,t,torch.ones(2,4,4,requires_grad=True))
"""


def inputs(torch):
    torch.manual_seed(0)
    x, s, t = torch.randn(4, 4), torch.randn(4), torch.rand(4, 4)
    found = {
        "x": x, "s": s, "t": t, "c": torch.complex(x.double(), t.double()), "p": torch.rand(2, 3, 8),
        "q": torch.rand(2, 3, 8, 8), "w": torch.randn(5, 3, 3), "b": torch.randn(5), "z": torch.randn(()),
        "cp": torch.complex(torch.rand(2, 3, 8), torch.rand(2, 3, 8)), "sig": torch.randn(40),
        "cw": torch.complex(torch.rand(5, 3, 3), torch.rand(5, 3, 3)), "cb": torch.complex(s, s),
    }  # fmt: skip
    for value in found.values():
        value.requires_grad_()
    return {
        **found,
        "i4": torch.tensor([0, 1, 2, 3]),
        "win": torch.hann_window(8),
        "torch": torch,
        "F": torch.nn.functional,
    }


def drawn(node, depth):
    if node is None or depth < 0:
        return None
    return node.name(), tuple((drawn(next, depth - 1), nr) for next, nr in node.next_functions)


def graph(torch, expression, depth):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = eval(expression, inputs(torch))
    results = result if isinstance(result, (tuple, list)) else (result,)
    return [drawn(r.grad_fn, depth) for r in results if isinstance(r, torch.Tensor)]


@pytest.mark.parametrize("expression", SAME.split("\n")[1:-1])
def test_graph(expression):
    assert graph(rushlight, expression, 2) == graph(torch_itself, expression, 2)


@pytest.mark.parametrize("expression", NAMED.split("\n")[1:-1])
def test_last_name(expression):
    ours, theirs = (graph(lib, expression, 0) for lib in (rushlight, torch_itself))
    assert [node and node[0] for node in ours] == [node and node[0] for node in theirs]
