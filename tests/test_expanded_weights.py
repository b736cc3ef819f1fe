"""Gradients of each example by expanded weights, against the gradients of each example by itself."""

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn.utils._expanded_weights import ExpandedWeight
from rushlight.nn.utils._expanded_weights.expanded_weights_impl import (
    HANDLED_FUNCTIONS,
    implements_per_sample_grads,
)
from rushlight.nn.utils._expanded_weights.expanded_weights_utils import (
    set_grad_sample_if_exists,
    sum_over_all_but_batch_and_last_n,
    unpack_expanded_weight_or_tensor,
)
from rushlight.nn.utils._per_sample_grad import call_for_per_sample_grads

F = nn.functional
LAYERS = {
    "linear": (lambda: nn.Linear(4, 3), (5, 4)),
    "linear, rows": (lambda: nn.Linear(4, 3), (5, 2, 3, 4)),
    "linear without bias": (lambda: nn.Linear(4, 3, bias=False), (5, 4)),
    "conv1d": (lambda: nn.Conv1d(4, 6, 3, stride=2, padding=1, groups=2), (5, 4, 7)),
    "conv2d": (lambda: nn.Conv2d(2, 3, (2, 3), padding="same", dilation=(1, 2)), (5, 2, 4, 6)),
    "conv2d, even": (lambda: nn.Conv2d(2, 3, 2, padding="same", padding_mode="reflect"), (5, 2, 4, 6)),
    "conv2d, cut": (lambda: nn.Conv2d(2, 3, 2, stride=(3, 2), padding="valid"), (5, 2, 6, 6)),
    "conv3d": (lambda: nn.Conv3d(2, 3, (1, 2, 1), padding=(0, 1, 0), bias=False), (5, 2, 2, 3, 3)),
    "layer_norm": (lambda: nn.LayerNorm((3, 4)), (5, 2, 3, 4)),
    "layer_norm, one": (lambda: nn.LayerNorm(4, bias=False), (5, 4)),
    "group_norm": (lambda: nn.GroupNorm(2, 4), (5, 4, 3, 2)),
    "instance_norm": (lambda: nn.InstanceNorm2d(3, affine=True), (5, 3, 4, 2)),
    "instance_norm, running": (
        lambda: nn.InstanceNorm1d(3, affine=True, track_running_stats=True).eval(), (5, 3, 4)),
    "several": (lambda: nn.Sequential(nn.Conv1d(2, 3, 2), nn.Tanh(), nn.GroupNorm(3, 3), nn.Flatten(),
                                      nn.Linear(9, 2)), (5, 2, 4)),
    "lstm": (lambda: _Recurrent(nn.LSTM(4, 3, 2, bidirectional=True)), (5, 6, 4)),
    "lstm, projected": (lambda: _Recurrent(nn.LSTM(4, 3, proj_size=2)), (5, 6, 4)),
    "gru": (lambda: _Recurrent(nn.GRU(4, 3, bias=False)), (5, 6, 4)),
    "rnn": (lambda: _Recurrent(nn.RNN(4, 3, nonlinearity="relu")), (5, 6, 4)),
}  # fmt: skip


class _Recurrent(nn.Module):
    """A recurrent layer that is given, and gives, the examples first."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x.transpose(0, 1))[0].transpose(0, 1)


def by_itself(module, x, loss):
    """The gradients of the loss of each example."""
    rows = [torch.autograd.grad(loss(module(x[i : i + 1])), list(module.parameters())) for i in range(len(x))]
    return [torch.stack(column) for column in zip(*rows, strict=True)]


@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("name", LAYERS)
def test_gradients_are_those_of_each_example(name, reduction):
    torch.manual_seed(0)
    make, shape = LAYERS[name]
    module, x = make().double(), torch.randn(shape, dtype=torch.float64).requires_grad_()
    for p in module.parameters():
        p.data.add_(torch.rand_like(p) * 0.1)

    def loss(out):
        return (out**2).flatten(1).sum(1).sum() if reduction == "sum" else (out**2).flatten(1).sum(1).mean()

    want, of_input = by_itself(module, x, loss), torch.autograd.grad(loss(module(x)), x)[0]
    loss(call_for_per_sample_grads(module, loss_reduction=reduction)(x)).backward()
    for parameter, rows in zip(module.parameters(), want, strict=True):
        assert parameter.grad is None
        torch.testing.assert_close(parameter.grad_sample, rows)
    torch.testing.assert_close(x.grad, of_input)


@pytest.mark.parametrize("options", [{}, {"padding_idx": 1}, {"padding_idx": -3}])
def test_rows_of_an_embedding(options):
    torch.manual_seed(0)
    table = torch.nn.Embedding(4, 3, **options)
    words = torch.tensor([[1, 2, 2], [0, 3, 1]])
    factors = torch.randn(2, 3, 3)
    (call_for_per_sample_grads(table)(words) * factors).sum().backward()
    for i in range(2):
        found = torch.autograd.grad((table(words[i : i + 1]) * factors[i]).sum(), table.weight)[0]
        torch.testing.assert_close(table.weight.grad_sample[i], found)


@pytest.mark.parametrize("make", [nn.LSTM, nn.GRU, nn.RNN])
def test_sequences_that_end_before_others(make):
    torch.manual_seed(0)
    layer = make(4, 3, bidirectional=True).double()
    x, lengths = torch.randn(6, 3, 4, dtype=torch.float64), [6, 4, 1]
    out, _ = call_for_per_sample_grads(layer, batch_size=3)(nn.utils.rnn.pack_padded_sequence(x, lengths))
    (out.data**2).sum().backward()
    for i, length in enumerate(lengths):
        alone = layer(x[:length, i : i + 1])[0]
        want = torch.autograd.grad((alone**2).sum(), list(layer.parameters()))
        for parameter, row in zip(layer.parameters(), want, strict=True):
            torch.testing.assert_close(parameter.grad_sample[i], row)


def test_the_gradient_of_the_input_can_be_differentiated():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.LayerNorm(6), nn.Linear(6, 2)).double()

    def penalty(call, x):
        found = torch.autograd.grad((call(x) ** 2).sum(), x, create_graph=True)[0]
        return (found**2).sum()

    x = torch.randn(3, 4, dtype=torch.float64).requires_grad_()
    call = call_for_per_sample_grads(module)
    want = torch.autograd.grad(penalty(module, x), x)[0]
    torch.testing.assert_close(torch.autograd.grad(penalty(call, x), x)[0], want)


def test_a_weight_that_was_written_is_noticed():
    layer = nn.Linear(2, 1)
    x = torch.ones(3, 2, requires_grad=True)
    out = call_for_per_sample_grads(layer)(x)
    with torch.no_grad():
        layer.weight.zero_()
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
        out.sum().backward()


def test_parameters_that_are_not_all_expanded_are_refused():
    weight = ExpandedWeight(nn.Parameter(torch.ones(4)), 2, "sum")
    out = F.layer_norm(torch.ones(2, 4), (4,), weight, nn.Parameter(torch.ones(4)))
    with pytest.raises(RuntimeError, match="does not support a mixture of ExpandedWeight parameters"):
        out.sum().backward()


def test_a_program_says_how_a_function_of_its_own_takes_them():
    @implements_per_sample_grads(torch.mul)
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, names, func, x, weight):
            ctx.x, ctx.weight = x, weight
            return func(x, unpack_expanded_weight_or_tensor(weight))

        @staticmethod
        def backward(ctx, grad):
            set_grad_sample_if_exists(
                ctx.weight, lambda w: sum_over_all_but_batch_and_last_n(grad * ctx.x, w.dim())
            )
            return None, None, grad * ctx.weight.orig_weight, None

    try:
        weight = nn.Parameter(torch.tensor([2.0, 3.0]))
        x = torch.arange(8.0).reshape(2, 2, 2).requires_grad_()
        torch.mul(x, ExpandedWeight(weight, 2, "sum")).sum().backward()
    finally:
        del HANDLED_FUNCTIONS[torch.mul]
    assert weight.grad_sample.tolist() == [[2.0, 4.0], [10.0, 12.0]]
    assert x.grad[0].tolist() == [[2.0, 3.0], [2.0, 3.0]]


def test_gradients_add_up_and_are_to_be_cleared():
    layer, x = nn.Linear(4, 3), torch.ones(2, 4)
    call = call_for_per_sample_grads(layer)
    for _ in range(2):
        call(x).sum().backward()
    assert layer.weight.grad_sample.eq(2).all()
    with pytest.raises(RuntimeError, match="Current Expanded Weights accumulates the gradients, which will"):
        call_for_per_sample_grads(layer)
