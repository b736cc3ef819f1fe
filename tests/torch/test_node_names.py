"""The names of graph nodes and what they show of what they saved: the same in both libraries."""

import pytest
import torch as torch_itself
from outcomes import outcome

import rushlight

# Expressions of x and y (two elements), s (a number in a tensor), sc (the same, differentiable).
NAMED = """
2**x
x**2
x**y
x**s
s**x
torch.pow(2,x)
x.clone().pow_(2)
x.clone().pow_(y)
1-x
1+x
x+1
x-1
x+y
x-y
torch.rsub(x,y)
torch.rsub(x,2)
x*2
2*x
x/2
2/x
x/y
x%2
x%y
torch.fmod(x,2)
torch.fmod(x,y)
torch.clamp(x,1,2)
torch.clamp(x,1)
torch.clamp(x,max=1)
torch.clamp(x,y,y)
torch.binomial(x,y*0)
torch.linalg.ldl_factor(torch.outer(x,x)+torch.eye(2))[0]
torch.clamp(x,y)
torch.clamp(x,max=y)
torch.clamp_min(x,1)
torch.clamp_min(x,y)
torch.clamp_max(x,1)
torch.clamp_max(x,y)
torch.masked_fill(x,x>0,2)
torch.masked_fill(x,x>0,s)
x.clone().masked_fill_(x>0,2)
x.clone().masked_fill_(x>0,sc)
torch.index_fill(x,0,torch.tensor([0]),2.)
torch.index_fill(x,0,torch.tensor([0]),sc)
torch.copysign(x,2)
torch.copysign(x,y)
torch.where(x>0,x,y)
torch.where(x>0,x,2.)
torch.xlogy(x,y)
torch.xlogy(x,2)
torch.xlogy(2,x)
torch.special.xlog1py(x,y)
torch.lerp(x,y,0.5)
torch.lerp(x,y,x)
torch.add(x,y,alpha=2)
torch.add(x,1,alpha=2)
torch.float_power(x,2)
torch.logaddexp(x,y)
torch.atan2(x,y)
torch.maximum(x,y)
torch.round(x)
torch.round(x,decimals=1)
torch.sort(x)[0]
torch.sort(x,stable=True)[0]
torch.argsort(x)
torch.topk(x,1)[0]
torch.norm(x)
torch.norm(x,p=3)
torch.norm(x,p=3,dim=0)
x.norm(dim=0)
torch.linalg.norm(x)
torch.linalg.vector_norm(x)
torch.sum(x)
torch.sum(x,0)
torch.mean(x)
torch.mean(x,0)
torch.prod(x)
torch.prod(x,0)
torch.std(x)
torch.std(x,0)
torch.var(x)
torch.var(x,0)
torch.std_mean(x)[0]
torch.var_mean(x)[0]
torch.var_mean(x)[1]
torch.max(x)
torch.max(x,0)[0]
torch.max(x,y)
torch.min(x,0)[0]
torch.median(x)
torch.median(x,0)[0]
torch.nanmedian(x)
torch.kthvalue(x,1)[0]
torch.mode(x)[0]
torch.cummax(x,0)[0]
torch.logsumexp(x,0)
torch.squeeze(x)
x.view(2,1).squeeze(1)
x.view(2,1).squeeze((1,))
x[None]
x[0]
x[0:1]
x[torch.tensor([0])]
x[x>0]
x.t()
x.view(1,2).T
x.view(1,2).mT
x.view(1,2).transpose(0,1)
x.view(1,2).permute(1,0)
x.unsqueeze(0)
x.expand(2,2)
x.repeat(2)
x.tile(2)
torch.cat([x,y])
torch.stack([x,y])
torch.hstack([x,y])
torch.roll(x,1)
torch.roll(x.view(1,2),1,0)
torch.flip(x,[0])
torch.trace(torch.outer(x,y))
torch.diag(x)
torch.diag(torch.outer(x,y))
torch.kron(x,y)
torch.outer(x,y)
torch.dot(x,y)
torch.vdot(x,y)
torch.inner(x,y)
torch.mv(torch.outer(x,y),y)
torch.mm(torch.outer(x,y),torch.outer(x,y))
torch.outer(x,y)@x
x@torch.outer(x,y)
torch.tril(torch.outer(x,y))
torch.take(x,torch.tensor([0]))
torch.gather(x,0,torch.tensor([0]))
torch.index_select(x,0,torch.tensor([0]))
torch.masked_select(x,x>0)
torch.scatter(x,0,torch.tensor([0]),y)
torch.scatter(x,0,torch.tensor([0]),2.)
torch.scatter_add(x,0,torch.tensor([0]),y)
torch.index_put(x,(torch.tensor([0]),),y[:1])
torch.index_add(x,0,torch.tensor([0]),y[:1])
torch.index_copy(x,0,torch.tensor([0]),y[:1])
torch.split(x,1)[0]
torch.split(x,[1,1])[0]
torch.chunk(x,2)[0]
torch.unbind(x)[0]
torch.tensor_split(x,2)[0]
torch.meshgrid(x,y,indexing='ij')[0]
torch.relu(x)
torch.nn.functional.relu6(x)
torch.nn.functional.hardtanh(x)
torch.nn.functional.leaky_relu(x)
torch.nn.functional.elu(x)
torch.nn.functional.celu(x)
torch.nn.functional.selu(x)
torch.nn.functional.gelu(x)
torch.nn.functional.silu(x)
torch.nn.functional.mish(x)
torch.nn.functional.softplus(x)
torch.nn.functional.softmax(x,0)
torch.nn.functional.log_softmax(x,0)
torch.nn.functional.hardswish(x)
torch.nn.functional.hardsigmoid(x)
torch.nn.functional.logsigmoid(x)
torch.nn.functional.threshold(x,1,2)
torch.nn.functional.softshrink(x)
torch.nn.functional.hardshrink(x)
torch.nn.functional.softsign(x)
torch.nn.functional.tanhshrink(x)
torch.nn.functional.glu(x,0)
torch.nn.functional.prelu(x,torch.ones(1))
torch.nn.functional.rrelu(x)
torch.nn.functional.dropout(x)
torch.nn.functional.normalize(x,dim=0)
torch.nn.functional.layer_norm(x,(2,))
torch.nn.functional.group_norm(x.view(1,2,1),1)
torch.nn.functional.batch_norm(x.view(1,2,1).expand(2,2,1),None,None,training=True)
torch.nn.functional.instance_norm(x.view(1,1,2))
torch.nn.functional.linear(x,torch.outer(x,y),y)
torch.nn.functional.bilinear(x,y,torch.ones(1,2,2))
torch.nn.functional.embedding(torch.tensor([0]),torch.outer(x,y))
torch.nn.functional.mse_loss(x,y)
torch.nn.functional.l1_loss(x,y)
torch.nn.functional.smooth_l1_loss(x,y)
torch.nn.functional.huber_loss(x,y)
torch.nn.functional.kl_div(x,y)
torch.nn.functional.nll_loss(x.view(1,2),torch.tensor([0]))
torch.nn.functional.cross_entropy(x.view(1,2),torch.tensor([0]))
torch.nn.functional.binary_cross_entropy(torch.sigmoid(x),torch.ones(2))
torch.nn.functional.binary_cross_entropy_with_logits(x,torch.ones(2))
torch.nn.functional.hinge_embedding_loss(x,y)
torch.nn.functional.margin_ranking_loss(x,y,y)
torch.nn.functional.cosine_similarity(x,y,dim=0)
torch.nn.functional.pairwise_distance(x,y)
torch.nn.functional.poisson_nll_loss(x,y)
torch.nn.functional.gaussian_nll_loss(x,y,x)
torch.nn.functional.triplet_margin_loss(x,y,x)
torch.nn.functional.conv1d(x.view(1,1,2),torch.ones(1,1,1))
torch.nn.functional.conv2d(x.view(1,1,2,1),torch.ones(1,1,1,1))
torch.nn.functional.conv_transpose1d(x.view(1,1,2),torch.ones(1,1,1))
torch.nn.functional.max_pool1d(x.view(1,1,2),2)
torch.nn.functional.max_pool2d(x.view(1,1,2,1),(2,1))
torch.nn.functional.avg_pool1d(x.view(1,1,2),2)
torch.nn.functional.avg_pool2d(x.view(1,1,2,1),(2,1))
torch.nn.functional.adaptive_avg_pool2d(x.view(1,1,2,1),1)
torch.nn.functional.adaptive_max_pool2d(x.view(1,1,2,1),1)
torch.nn.functional.interpolate(x.view(1,1,2),4)
torch.nn.functional.interpolate(x.view(1,1,2),4,mode='linear')
torch.nn.functional.pad(x,(1,1))
torch.nn.functional.pad(x.view(1,1,2),(1,1),mode='reflect')
torch.nn.functional.pad(x.view(1,1,2),(1,1),mode='replicate')
torch.nn.functional.pixel_shuffle(x.repeat(2).view(1,4,1,1),2)
torch.nn.functional.unfold(x.view(1,1,2,1),(1,1))
torch.nn.functional.fold(x.view(1,1,2),(2,1),(1,1))
torch.nn.functional.grid_sample(x.view(1,1,2,1),torch.zeros(1,1,1,2))
torch.nn.functional.affine_grid(torch.outer(x,torch.ones(3)).view(1,2,3),(1,1,2,2))
torch.nn.functional.one_hot(torch.tensor([0]))
torch.nn.functional.scaled_dot_product_attention(x.view(1,1,2),y.view(1,1,2),y.view(1,1,2))
torch.complex(x,y)
torch.polar(x,y)
torch.view_as_complex(torch.stack([x,y],-1))
torch.complex(x,y).real
torch.complex(x,y).abs()
torch.complex(x,y).angle()
torch.complex(x,y).conj()
torch.complex(x,y).imag
torch.fft.fft(x)
torch.fft.rfft(x)
torch.fft.irfft(torch.complex(x,y))
torch.linalg.inv(torch.eye(2)*x)
torch.linalg.det(torch.eye(2)*x)
torch.linalg.slogdet(torch.eye(2)*x)[1]
torch.linalg.solve(torch.eye(2)*x,y)
torch.linalg.cholesky(torch.eye(2)*x)
torch.linalg.qr(torch.eye(2)*x)[0]
torch.linalg.svd(torch.eye(2)*x)[1]
torch.linalg.eigh(torch.eye(2)*x)[0]
torch.linalg.eig(torch.eye(2)*x)[0]
torch.linalg.eigvalsh(torch.eye(2)*x)
torch.linalg.svdvals(torch.eye(2)*x)
torch.linalg.lstsq(torch.eye(2)*x,y.view(2,1))[0]
torch.linalg.pinv(torch.eye(2)*x)
torch.linalg.matrix_exp(torch.eye(2)*x)
torch.linalg.matrix_power(torch.eye(2)*x,3)
torch.linalg.multi_dot([torch.eye(2)*x,torch.eye(2)*x])
torch.linalg.cross(torch.cat([x,x[:1]]),torch.ones(3))
torch.logdet(torch.eye(2)*x)
torch.cdist(x.view(1,2),y.view(1,2))
torch.pdist(torch.outer(x,y))
torch.dist(x,y)
torch.renorm(torch.outer(x,y),2,0,1)
torch.einsum('i,j->ij',x,y)
torch.einsum('ij,jk->ik',torch.outer(x,y),torch.outer(x,y))
torch.tensordot(x,y,1)
torch.bmm(x.view(1,1,2),y.view(1,2,1))
torch.baddbmm(x.view(1,2),x.view(1,2,1),y.view(1,1,2))
torch.addmm(x,torch.outer(x,y),torch.outer(x,y))
torch.addmv(x,torch.outer(x,y),y)
torch.addr(torch.outer(x,y),x,y)
torch.addcmul(x,x,y)
torch.addcdiv(x,x,y)
torch.cumsum(x,0)
torch.cumprod(x,0)
torch.logcumsumexp(x,0)
torch.diff(x)
torch.gradient(x)[0]
torch.nanmean(x)
torch.nansum(x)
torch.amax(x)
torch.aminmax(x)[0]
x.clone().zero_()
x.clone().fill_(1)
x.clone().copy_(y)
x.clone().add_(y)
x.clone().mul_(2)
x.clone().clamp_(0)
x.clone().t_()
x.clone().unsqueeze_(0)
x.clone().squeeze_()
x.clone().transpose_(0,0)
x.clone().relu_()
x.clone().sigmoid_()
x.clone().exp_()
x.clone().index_put_((torch.tensor([0]),),y[:1])
x.double()
x.to(torch.float64)
x.half()
x.contiguous()
x.clone()
x.detach()
x.float()
x.reshape(1,2)
x.flatten()
x.view(1,2).reshape(2)
m.t().reshape(3,2)
m.t().reshape(2,3)
m.t().reshape_as(m.t())
m.t().flatten()
x.type_as(torch.ones(1,dtype=torch.float64))
x.as_strided((1,),(1,))
x.unfold(0,1,1)
x.diagonal if 0 else x.view(1,2).diagonal()
torch.diag_embed(x)
torch.triu(torch.outer(x,y))
torch.rot90(torch.outer(x,y))
torch.block_diag(x,y)
torch.cartesian_prod(x,y)
torch.repeat_interleave(x,2)
torch.broadcast_to(x,(2,2))
torch.swapaxes(x.view(1,2),0,1)
torch.movedim(x.view(1,2),0,1)
torch.atleast_2d(x)
torch.bernoulli(x/4)
torch.dropout(x,0.5,True)
torch.native_dropout(x,0.5,True)[0]
torch.special.erf(x)
torch.special.erfinv(x/4)
torch.lgamma(x)
torch.digamma(x)
torch.polygamma(1,x)
torch.mvlgamma(x+3,2)
torch.special.i0(x)
torch.sinc(x)
torch.logit(x/4)
torch.expm1(x)
torch.log1p(x)
torch.nan_to_num(x)
torch.hypot(x,y)
torch.ldexp(x,y)
torch.heaviside(x,y)
torch.cov(torch.outer(x,y))
torch.corrcoef(torch.outer(x,y))
torch.cross(torch.cat([x,x[:1]]),torch.ones(3))
torch.nn.functional.ctc_loss(torch.log_softmax(torch.outer(x,y).view(2,1,2),-1),torch.tensor([[1]]),torch.tensor([2]),torch.tensor([1]))
"""

SAVED = """
((x * 2) * y).grad_fn._saved_self
torch.stack([x, y]).grad_fn._saved_dim
torch.stack([x, y], -1).grad_fn._saved_dim
(x * 2).grad_fn._saved_other
(x * torch.ones(2)).grad_fn._saved_self
hasattr(x.clone().grad_fn, "_saved_self")
torch.outer(x, y)[:, torch.tensor([0, 1])].grad_fn._saved_indices
torch.outer(x, y)[:, torch.tensor([0, 1])].grad_fn._saved_self_sym_sizes
x.mean().grad_fn._saved_self_sym_sizes
x.mean().grad_fn._saved_self_sym_numel
F.interpolate(x.view(1, 1, 2), 4, mode="linear").grad_fn._saved_output_size
F.interpolate(x.view(1, 1, 2), 4, mode="linear").grad_fn._saved_align_corners
F.interpolate(x.view(1, 1, 2), 4, mode="linear").grad_fn._saved_scales
F.interpolate(x.view(1, 1, 2), scale_factor=0.5, mode="linear").grad_fn._saved_scales
F.interpolate(x.view(1, 1, 2), scale_factor=2).grad_fn._saved_output_size
torch.nn.Conv1d(1, 1, 1)(x.view(1, 1, 2)).grad_fn._saved_bias_sym_sizes_opt
torch.nn.Conv1d(1, 1, 1, bias=False)(x.view(1, 1, 2)).grad_fn._saved_bias_sym_sizes_opt
torch.nn.Conv1d(1, 1, 1)(x.view(1, 1, 2)).grad_fn._saved_transposed
torch.addbmm(x.view(1, 2), x.view(2, 1, 1), y.view(2, 1, 1)).grad_fn._saved_batch1_sym_argsize_0
F.unfold(x.view(1, 1, 2, 1), 1).grad_fn._saved_self_sym_argsize_minus_2
torch.pdist(torch.outer(x, y), p=1).grad_fn._saved_p
torch.logit(x / 4, 0.1).grad_fn._saved_eps
torch.logit(x / 4).grad_fn._saved_eps
torch.linalg.qr(torch.outer(x, y))[0].grad_fn._saved_mode
torch.div(x, 2, rounding_mode="trunc").grad_fn._saved_rounding_mode
torch.div(x, 2, rounding_mode=None).grad_fn._saved_rounding_mode
torch.threshold(x, 1 + 0j, 1).grad_fn._saved_threshold
torch.threshold(x, torch.tensor(1 + 0j), 1).grad_fn._saved_threshold
torch.threshold(x, 1, 1).grad_fn._saved_threshold
torch.threshold(x, False, 1).grad_fn._saved_threshold
x.as_strided((1,), (1,), 1).grad_fn._saved_storage_offset
x.as_strided((1,), (1,)).grad_fn._saved_storage_offset
torch.tanh(x).grad_fn._saved_result
F.nll_loss(x.view(1, 2), torch.tensor([0])).grad_fn._saved_weight
F.nll_loss(x.view(1, 2), torch.tensor([0]), torch.ones(2)).grad_fn._saved_weight
F.nll_loss(x.view(1, 2), torch.tensor([0])).grad_fn._saved_reduction
torch.sum(x, -1).grad_fn._saved_dim
(x**2).grad_fn._saved_exponent
(x**0.5).grad_fn._saved_exponent
torch.add(x, y, alpha=3).grad_fn._saved_alpha
torch.lerp(x, y, 0.5).grad_fn._saved_weight
torch.clamp(x, 1, 2).grad_fn._saved_min
torch.clamp(x, y, y).grad_fn._saved_max
x[-1].grad_fn._saved_index
F.gelu(x, approximate="tanh").grad_fn._saved_approximate
F.layer_norm(x, (2,)).grad_fn._saved_result1.shape
F.mse_loss(x, y).grad_fn._saved_reduction
torch.mm(torch.outer(x, y), torch.outer(x, y)).grad_fn._saved_mat2_sym_strides
torch.outer(x, y).grad_fn._saved_nothing
type((x * y).grad_fn._raw_saved_self).__name__
(x * y).grad_fn._raw_saved_self.unpack()
"""


def value(torch, expression):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = torch.tensor([1.0, 3.0], requires_grad=True)
    names = {"torch": torch, "F": torch.nn.functional, "x": x, "y": y, "s": torch.tensor(2.0)}
    names["sc"] = torch.tensor(2.0, requires_grad=True)
    return eval(expression, names)


def lines(text):
    return [line for line in text.splitlines() if line]


@pytest.mark.parametrize("expression", lines(NAMED))
def test_names(expression):
    def name(torch):
        torch.manual_seed(0)
        grad_fn = value(torch, expression).grad_fn
        return grad_fn and grad_fn.name()

    theirs, ours = (outcome(lambda lib=lib: name(lib)) for lib in (torch_itself, rushlight))
    assert ours[0] == theirs[0]


@pytest.mark.parametrize("expression", lines(SAVED))
def test_saved(expression):
    theirs, ours = (outcome(lambda lib=lib: value(lib, expression)) for lib in (torch_itself, rushlight))
    assert ours[0].replace("rushlight.", "torch.") == theirs[0]


# Writes to `w`, whose old value a square has saved, of which the refusal names the one that wrote.
WRITES = """
w.zero_(); w.fill_(2); w.fill_(sc); w.copy_(y); w.add_(y); w.mul_(2); w.pow_(y); w.clamp_(0, 1)
w.clamp_(min=0); w.remainder_(y); w.lerp_(y, 0.5); w.lerp_(y, y); w.cumsum_(0); w.nan_to_num_(); w.logit_(0.2)
w.round_(decimals=1); w.exp_(); w.bernoulli_(); w.random_(); w.normal_(); w.eq_(y)
w.squeeze_(); w.masked_fill_(y > 1, 2); w.index_fill_(0, torch.tensor([0]), 2.0); w[0].zero_(); w.relu_()
F.hardtanh(w, inplace=True); F.relu6(w, True); F.leaky_relu_(w); F.elu(w, inplace=True); F.celu_(w)
F.selu_(w); F.threshold_(w, 1, 2); F.rrelu_(w); F.silu(w, inplace=True); Doubled.apply(w); Backward3.apply(w)
"""
NODES = """
F.elu(w, 1.5, inplace=True); F.leaky_relu_(w, 0.3); F.celu(w, 1.5, True); F.selu_(w); F.hardtanh_(w, 0, 1)
w.clamp_(min=0.1)
"""


def written(lib, expression):
    class Doubled(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, grad):
            return 2 * grad

    class Backward3(Doubled):
        pass

    x = lib.tensor([0.25, 0.5], requires_grad=True)
    names = {
        "torch": lib,
        "F": lib.nn.functional,
        "y": lib.tensor([1.0, 3.0], requires_grad=True),
        "w": x * 1,
    }
    names |= {"sc": lib.tensor(2.0, requires_grad=True), "Doubled": Doubled, "Backward3": Backward3}
    square = names["w"] ** 2
    return eval(expression, names), square


def each(text):
    return [part.strip() for part in text.replace("\n", ";").split(";") if part.strip()]


@pytest.mark.parametrize("expression", each(WRITES))
def test_a_refusal_names_the_operation_that_wrote(expression):
    said = []
    for lib in (torch_itself, rushlight):
        _, square = written(lib, expression)
        with pytest.raises(RuntimeError) as refused:
            square.sum().backward()
        said.append(str(refused.value).partition(" instead.")[0])
    assert said[0] == said[1]


@pytest.mark.parametrize("expression", each(NODES))
def test_activations_in_place_show_what_they_saved(expression):
    results = [
        written(lib, expression)[0] for lib in (torch_itself, rushlight)
    ]  # alive, while they are asked
    nodes = [result.grad_fn for result in results]
    names = [name for name in dir(nodes[0]) if name.startswith("_saved_")]
    for name in names:
        if expression.startswith("F.hardtanh") and name == "_saved_self":
            continue  # the value before, which no derivative here needs
        theirs, ours = (getattr(node, name) for node in nodes)
        if isinstance(theirs, torch_itself.Tensor):
            theirs, ours = theirs.tolist(), ours.tolist()
        assert ours == pytest.approx(theirs)


TWICE = """
torch.gradient(x)[0]
torch.gradient(x, spacing=2.0)[0]
torch.gradient(x, spacing=(torch.arange(5.0) ** 2,))[0]
torch.gradient(x, edge_order=2)[0]
torch.gradient(x, spacing=(torch.arange(5.0) ** 2,), edge_order=2)[0]
sum(torch.gradient(x.view(5, 1).expand(5, 3)))
torch._neg_view_copy(x)
F.ctc_loss(x.view(5, 1, 1).expand(5, 1, 3), torch.tensor([[1, 2]]), [5], [2])
F.ctc_loss(x.view(5, 1, 1).expand(5, 1, 3), torch.tensor([[1, 2]]), [5], [2], reduction="none")
"""


def graph(node, steps=6):
    """The names of a node and of those before it, where a gradient goes."""
    if node is None or not steps:
        return node and node.name()
    return node.name(), [graph(after, steps - 1) for after, _ in node.next_functions]


@pytest.mark.parametrize("expression", lines(TWICE))
def test_graphs_of_gradients(expression):
    told = []
    for lib in (rushlight, torch_itself):
        x = lib.tensor([0.5, 1.0, -1.0, 2.0, 0.25], requires_grad=True)
        result = eval(expression, {"torch": lib, "x": x, "F": lib.nn.functional})
        given = lib.ones_like(result).requires_grad_()
        (gradient,) = lib.autograd.grad(result, x, given, create_graph=True)
        try:
            second = lib.autograd.grad(gradient.sum(), given)[0].flatten().tolist()
        except RuntimeError as error:
            second = str(error).splitlines()[0]
        told.append((graph(result.grad_fn), graph(gradient.grad_fn), gradient.tolist(), second))
    (mine, theirs), numbers = told, not isinstance(told[1][3], str)
    assert mine[:2] == theirs[:2]
    assert mine[2] == pytest.approx(theirs[2], abs=1e-6)
    assert mine[3] == (pytest.approx(theirs[3], abs=1e-6) if numbers else theirs[3])
