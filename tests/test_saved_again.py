"""Composed operations while hooks on saved tensors are active: one node, which packs what it was called with
and differentiates by what the hooks give back (rushlight/ops/_again.py)."""

import pytest

import rushlight as torch
import rushlight.nn.functional as F
from rushlight.autograd.gradcheck import gradcheck, gradgradcheck
from rushlight.autograd.graph import saved_tensors_hooks

CALLS = {
    "smooth_l1_loss": lambda x, y: F.smooth_l1_loss(x, y),
    "logit": lambda x, y: torch.logit(x, 0.1),
    "dist": lambda x, y: torch.dist(x, y),
    "clamp_min": lambda x, y: torch.clamp_min(x, y),
    "glu": lambda x, y: F.glu(x),
    "bce": lambda x, y: F.binary_cross_entropy(x, y),
    "prelu": lambda x, y: F.prelu(x - 0.5, y[0]),
    "logsigmoid": lambda x, y: F.logsigmoid(x) * y,
    "nll_loss": lambda x, y: F.nll_loss(x * y, torch.tensor([0, -100, 3])),
    "nll_loss of an image": lambda x, y: F.nll_loss(
        (x * y).mT.reshape(1, 4, 3), torch.tensor([[0, 1, 3]]), torch.arange(4.0).double()
    ),
    "cross_entropy": lambda x, y: F.cross_entropy(x * y, torch.tensor([0, 2, 3]), label_smoothing=0.1),
    "batch_norm": lambda x, y: F.batch_norm(x, torch.zeros(4).double(), torch.ones(4).double(), y[0], y[1]),
    "cosine_similarity": lambda x, y: F.cosine_similarity(x, y),
    "frexp": lambda x, y: torch.frexp(x * y)[0],
    "lu": lambda x, y: sum((part * part).sum() for part in torch.linalg.lu(x + y)),
    "lu of a tall matrix": lambda x, y: sum((part * part).sum() for part in torch.linalg.lu((x + y).mT)),
    "lu of a square matrix": lambda x, y: torch.linalg.lu((x @ y.mT) + x[:, :3])[2],
    "triangular_solve": lambda x, y: torch.cat(
        torch.triangular_solve(x, y[:, :3] + torch.eye(3).double()), 1
    ),
    "triangular_solve transposed": lambda x, y: torch.triangular_solve(
        x, y[:, :3], upper=False, transpose=True, unitriangular=True
    )[0],
    "triangular_solve of complex numbers": lambda x, y: torch.view_as_real(
        torch.triangular_solve(torch.complex(x, y), torch.complex(y, x)[:, :3], transpose=True)[0]
    ),
    "_unsafe_masked_index": lambda x, y: torch._unsafe_masked_index(
        x * y, torch.tensor([True, False, True]), [torch.tensor([0, 7, 0]), torch.tensor([1, 0, 1])], 2.0
    ),
    "_unsafe_masked_index_put_accumulate": lambda x, y: torch._unsafe_masked_index_put_accumulate(
        x, torch.tensor([True, False, True]), [torch.tensor([0, 7, 0]), torch.tensor([1, 0, 1])], y[:, 0]
    ),
    "max_pool2d_with_indices_backward": lambda x, y: torch.ops.aten.max_pool2d_with_indices_backward(
        x[None, :1, :2], y[None, :2], [1, 1], [1, 2], [0, 0], [1, 1], False, torch.tensor([[[1, 3]]])
    ),
    "max_pool1d": lambda x, y: F.max_pool1d(x * y, 2),
    "avg_pool1d": lambda x, y: F.avg_pool1d(x * y, 3, 1, 1),
    "adaptive_avg_pool1d": lambda x, y: F.adaptive_avg_pool1d(x * y, 3),
    "adaptive_max_pool1d": lambda x, y: F.adaptive_max_pool1d(x * y, 3),
    "a factor that is repeated": lambda x, y: x.expand(2, 3, 4).mT @ y.reshape(1, 3, 4),
    "complex": lambda x, y: torch.view_as_real(torch.complex(x, y)),
}


def inputs():
    torch.manual_seed(0)
    return [(0.2 + 0.6 * torch.rand(3, 4, dtype=torch.float64)).requires_grad_() for _ in range(2)]


@pytest.mark.filterwarnings("ignore:torch.triangular_solve is deprecated")
@pytest.mark.parametrize("name", CALLS)
def test_gradients_under_hooks(name):
    def function(x, y):
        with saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
            return CALLS[name](x, y)

    assert gradcheck(function, inputs())
    assert gradgradcheck(function, inputs(), atol=1e-4)
    x, y = inputs()
    plain = torch.autograd.grad(CALLS[name](x, y).sum(), (x, y), allow_unused=True)
    hooked = torch.autograd.grad(function(x, y).sum(), (x, y), allow_unused=True)
    assert all(a is b is None or torch.equal(a, b) for a, b in zip(plain, hooked))


def test_what_is_packed_and_unpacked():
    x, y = inputs()
    packed, unpacked = [], []

    def pack(t):
        packed.append(t)
        return len(packed) - 1

    def unpack(at):
        unpacked.append(at)
        return packed[at] * 2

    with saved_tensors_hooks(pack, unpack):
        loss = F.huber_loss(x, y)
    assert len(packed) == 2 and packed[0] is x and packed[1] is y
    assert loss.grad_fn.name() == "HuberLossBackward0"
    assert [node.variable is t for (node, _), t in zip(loss.grad_fn.next_functions, (x, y))] == [True, True]
    loss.backward()
    assert sorted(unpacked) == [0, 1]
    assert torch.allclose(x.grad, 2 * (x - y).detach() / x.numel())  # of what the hooks gave back


# Other steps than without hooks, and other roundings.
OTHERWISE = {
    "conv1d of complex numbers": lambda x, y: torch.view_as_real(
        F.conv1d(torch.complex(x, y), torch.complex(y, x)[:, None, :2], y[0, :3] * 1j, groups=3)
    ),
    "conv_transpose1d of complex numbers": lambda x, y: torch.view_as_real(
        F.conv_transpose1d(torch.complex(x, y)[None], torch.complex(y, x)[:, None, :2], stride=2)
    ),
    "_safe_softmax": lambda x, y: torch.ops.aten._safe_softmax(
        torch.cat((x * y, torch.full((1, 4), -torch.inf, dtype=x.dtype))), 1
    ),
}


@pytest.mark.parametrize("name", OTHERWISE)
def test_other_steps_under_hooks(name):
    def function(x, y):
        with saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
            return OTHERWISE[name](x, y)

    assert gradcheck(function, inputs()) and gradgradcheck(function, inputs(), atol=1e-4)
    plain, hooked = OTHERWISE[name](*inputs()), function(*inputs())
    assert plain.dtype == hooked.dtype and torch.allclose(plain, hooked, rtol=1e-13, atol=1e-15)


def test_what_torch_divides_by_is_kept():
    shown = []
    scores = torch.randn(3, 4, requires_grad=True)
    with saved_tensors_hooks(lambda t: shown.append(t) or t, lambda t: t):
        loss = F.nll_loss(scores, torch.tensor([1, -100, 2]))
    assert len(shown) == 3 and shown[0] is scores and shown[2].item() == 2
    assert loss.grad_fn._saved_total_weight.item() == 2 and loss.grad_fn._raw_saved_total_weight is not None
    assert loss.grad_fn._saved_ignore_index == 2**64 - 100 and loss.grad_fn._saved_reduction == 1


WRITES = {
    "cumprod_": lambda x, y: (x * y).cumprod_(0),
    "float_power_": lambda x, y: (x * 1).float_power_(y),
    "float_power_ of a constant": lambda x, y: (x * y).detach().fill_(3.0).float_power_(y),
    "ldexp_": lambda x, y: (x * 1).ldexp_(y),
    "clamp_max_": lambda x, y: (x * 1).clamp_max_(y),
    "clamp_ of a constant": lambda x, y: (x * y).detach().fill_(0.5).clamp_(max=y),
    "logit_": lambda x, y: (x * y).logit_(0.3),
    "cumprod_ of a view": lambda x, y: (x * y)[:, 1:].cumprod_(0),
}


@pytest.mark.parametrize("name", WRITES)
def test_what_is_written_in_place_is_shown_when_it_is_written(name):
    shown = []

    def function(x, y):
        with saved_tensors_hooks(lambda t: shown.append(t) or t, lambda t: t):
            return WRITES[name](x, y)

    assert gradcheck(function, inputs())
    x, y = inputs()
    plain = torch.autograd.grad(WRITES[name](x, y).sum(), (x, y), allow_unused=True)
    shown.clear()
    result = function(x, y)
    assert ("clamp" in name or "logit" in name) != any(t is result for t in shown)
    hooked = torch.autograd.grad(result.sum(), (x, y), allow_unused=True)
    assert all(a is b is None or torch.equal(a, b) for a, b in zip(plain, hooked))


def test_a_hook_that_throws_leaves_a_graph_that_can_be_used():
    def refuse(tensor):
        raise ZeroDivisionError

    x = torch.rand(3, requires_grad=True)
    y = x.clone()
    with pytest.raises(ZeroDivisionError), saved_tensors_hooks(refuse, lambda t: t):
        y.cumprod_(0)
    torch.autograd.grad(y.sum(), x)


def test_a_write_into_what_a_composed_operation_keeps_is_refused():
    x, y = inputs()
    loss = F.smooth_l1_loss(x, y.detach())
    with torch.no_grad():
        x.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_the_result_of_a_composed_operation_in_place_is_kept():
    x = torch.rand(3, requires_grad=True)
    y = x.clone().cumprod_(0)
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_a_node_that_keeps_its_result_does_not_hold_itself():
    import gc
    import weakref

    x, y = inputs()
    gc.disable()
    try:
        result = torch.dist(x, y)
        node = weakref.ref(result.grad_fn)
        del result
        assert node() is None
    finally:
        gc.enable()


def test_attention_packs_its_inputs_and_its_result():
    torch.manual_seed(0)
    given = [torch.rand(2, 2, 5, 4, requires_grad=True) for _ in range(3)]
    plain = torch.autograd.grad(F.scaled_dot_product_attention(*given).pow(2).sum(), given)
    packed = []
    with saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
        result = F.scaled_dot_product_attention(*given)
    query, key, value = given
    assert [t is x for t, x in zip(packed, (key, query, value))] == [True] * 3  # torch's order
    sums = (query @ key.mT / 2).logsumexp(-1)  # by which the kernel divides
    assert len(packed) == 5 and torch.allclose(packed[3], sums) and torch.equal(packed[4], result)
    hooked = torch.autograd.grad(result.pow(2).sum(), given)
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(plain, hooked))


def test_a_sparse_tensor_does_not_keep_the_dense_one():
    x, shown = torch.eye(3, requires_grad=True), []
    with saved_tensors_hooks(lambda t: shown.append(t) or t, lambda t: t):
        sparse, rows = x.to_sparse(), x.to_sparse_csr()
    assert not shown
    with torch.no_grad():
        x.zero_()  # taken, since no gradient reads it
    (sparse.to_dense() + rows.to_dense()).sum().backward()
    assert x.grad.layout is torch.strided


BAGS = {
    "sum": {"mode": "sum"},
    "mean": {"mode": "mean"},
    "max": {"mode": "max"},
    "padded": {"mode": "mean", "padding_idx": 2},
    "largest but the padding": {"mode": "max", "padding_idx": -1},
    "by frequency": {"mode": "sum", "scale_grad_by_freq": True},
    "sparse": {"mode": "sum", "sparse": True},
}


@pytest.mark.parametrize("name", [*BAGS, "weighted", "weighted and padded"])
def test_bags_under_hooks(name):
    indices, offsets, packed = torch.tensor([0, 2, 1, 0, 2]), torch.tensor([0, 3, 3]), []

    def plain(x, y):
        options = BAGS.get(name) or {"mode": "sum", "per_sample_weights": y.reshape(-1)[:5]}
        padding = {"padding_idx": 0} if name == "weighted and padded" else {}
        return F.embedding_bag(indices, x, offsets, **options, **padding)

    def hooked(x, y):
        with saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
            return plain(x, y)

    x, y = inputs()
    both = []
    for function in (plain, hooked):
        result = function(x, y)
        both.append((result, *torch.autograd.grad(result.cumsum(0).sum(), (x, y), allow_unused=True)))
    for a, b in zip(*both):
        assert (a is None) == (b is None)
        assert a is None or torch.allclose(*(each.to_dense() for each in (a, b)), rtol=1e-12)
    kept = [t for t in packed if t.requires_grad and t is not x]
    assert any(t is offsets for t in packed) and all(t.shape == (5,) for t in kept)
    if name not in ("by frequency", "sparse"):
        assert gradcheck(hooked, inputs())


def test_results_without_a_gradient_are_shown_without_one():
    shown = []
    x = inputs()[0]
    with saved_tensors_hooks(lambda t: shown.append((t, t.requires_grad)) or t, lambda t: t):
        y = F.layer_norm(x, (4,))
        permutation, *_ = torch.linalg.lu(x)
    assert [wants for t, wants in shown if t is not x] == [False, False, True, False, True]
    assert y.requires_grad and not permutation.requires_grad
    assert gradgradcheck(lambda x: F.layer_norm(x, (4,)), [x])
