"""What the table of samples cannot say of norms, attention and recurrent networks."""

import math

import pytest

import rushlight as torch

F, nn = torch.nn.functional, torch.nn


def test_running_statistics_move_by_momentum_or_average_all_batches():
    layer = nn.BatchNorm1d(1)
    layer(torch.tensor([[0.0], [2.0]]))
    assert layer.running_mean.item() == pytest.approx(0.1)
    assert layer.running_var.item() == pytest.approx(0.9 + 0.1 * 2)  # unbiased: over one less than the batch
    average = nn.BatchNorm1d(1, momentum=None)
    for low in (0.0, 4.0, 8.0):
        average(torch.tensor([[low], [low + 2.0]]))
    assert average.running_mean.item() == pytest.approx(5.0) and average.num_batches_tracked.item() == 3
    assert layer.eval()(torch.tensor([[0.1], [1.0]]))[0].item() == pytest.approx(0.0, abs=1e-6)
    assert layer.num_batches_tracked.item() == 1


def test_a_second_batch_does_not_disturb_the_gradient_of_the_first():
    layer = nn.BatchNorm1d(2)
    x = torch.tensor([[1.0, 2.0], [3.0, 5.0], [4.0, 1.0]], requires_grad=True)
    weights = torch.tensor([[1.0, 0.0], [0.0, 2.0], [0.5, 1.0]])
    first = (layer(x) * weights).sum()
    layer(torch.ones(4, 2))  # changes the running statistics in place
    first.backward()
    alone = x.detach().clone().requires_grad_()
    (F.batch_norm(alone, None, None, training=True) * weights).sum().backward()
    assert torch.allclose(x.grad, alone.grad)


def test_norms_do_not_depend_on_threads_or_layout():
    torch.manual_seed(0)
    x, g = torch.randn(300, 130), torch.randn(300, 130)
    images = torch.randn(8, 70, 6, 6)
    threads = torch.get_num_threads()
    found = []
    for count in (1, 2):
        torch.set_num_threads(count)
        layer = nn.LayerNorm(130)
        layer(x).backward(g)
        batch = nn.BatchNorm2d(70)
        out = batch(images.clone().requires_grad_())
        out.backward(images)
        found.append([layer.weight.grad, layer.bias.grad, out.detach(), batch.weight.grad])
    torch.set_num_threads(threads)
    assert all(torch.equal(a, b) for a, b in zip(*found))
    last = images.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    assert torch.allclose(nn.BatchNorm2d(70)(last), nn.BatchNorm2d(70)(images), atol=1e-5)
    assert torch.allclose(F.group_norm(last, 7), F.group_norm(images, 7), atol=1e-5)


def test_norms_keep_their_digits_far_from_zero():
    x = torch.tensor([[1e4 + 1, 1e4 - 1, 1e4 + 1, 1e4 - 1]])
    assert F.layer_norm(x, (4,)).tolist()[0] == pytest.approx([1, -1, 1, -1], abs=1e-4)
    assert F.batch_norm(x.t(), None, None, training=True).flatten().tolist() == pytest.approx(
        [1, -1, 1, -1], abs=1e-4
    )


def test_a_query_that_may_look_nowhere_sees_zeros_and_has_no_gradient():
    for mask in (
        torch.tensor([[True, False], [False, False]]),
        torch.tensor([[0.0, -math.inf], [-math.inf] * 2]),
    ):
        q, k, v = (torch.ones(2, 3, requires_grad=True) for _ in range(3))
        out = F.scaled_dot_product_attention(q, k, v, mask)
        assert out.tolist() == [[1.0] * 3, [0.0] * 3]
        out.sum().backward()
        assert v.grad.tolist() == [[1.0] * 3, [0.0] * 3]
        assert q.grad.tolist() == k.grad.tolist() == [[0.0] * 3] * 2


def test_fused_attention_agrees_with_its_parts():
    torch.manual_seed(1)
    q, k, v = (torch.randn(2, 3, n, 8, dtype=torch.float64) for n in (70, 90, 90))
    mask = torch.rand(3, 70, 90) > 0.3
    for attn_mask, causal in ((None, False), (None, True), (mask, False), (mask.double(), True)):
        grads = []
        for fused in (True, False):
            inputs = [t.clone().requires_grad_() for t in (q, k, v)]
            if fused:
                out = torch._C.ops.attention(*inputs, attn_mask, 0.3, causal)
            else:
                out = F.attention._attend(*inputs, attn_mask, causal, 0.3, 0.0)
            out.backward(q)
            grads.append([out.detach(), *(t.grad for t in inputs)])
        assert all(torch.allclose(a, b) for a, b in zip(*grads))


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_packed_sequences_end_where_they_end(kind):
    torch.manual_seed(0)
    layer = getattr(nn, kind)(2, 3, bidirectional=True)
    x = torch.randn(5, 3, 2)
    packed = nn.utils.rnn.pack_padded_sequence(x, [5, 3, 2])
    out, lengths = nn.utils.rnn.pad_packed_sequence(layer(packed)[0])
    for n, length in enumerate(lengths.tolist()):
        alone = layer(x[:length, n])[0]
        assert torch.allclose(out[:length, n], alone, atol=1e-6)
        assert (out[length:, n] == 0).all()


def test_half_types_take_the_general_way():
    torch.manual_seed(0)
    layer = nn.LSTM(2, 3)
    x = torch.randn(4, 1, 2)
    exact = layer(x)[0]
    assert torch.allclose(layer.bfloat16()(x.bfloat16())[0].float(), exact, atol=0.02)


def test_native_loops_refuse_what_does_not_fit():
    ops = torch._C.ops
    a, b = torch.ones(2, 3), torch.ones(4, 5)
    refused = [
        lambda: ops.native_layer_norm_backward(a, a, a, a, None, 1, 1e-5, True),
        lambda: ops.native_layer_norm_backward(b, a, a[:, :1], a[:, :1], None, 1, 1e-5, True),
        lambda: ops.native_layer_norm_backward(a, a, a[:, :1].clone(), a[:, :1].clone(), b, 1, 1e-5, True),
        lambda: ops.native_layer_norm_backward(a, a, a[:, :1].clone(), a[:, :1].clone(), None, 3, 1e-5, True),
        lambda: ops.batch_norm_backward(a, a, b[0], a[0], None, 1e-5, True),
        lambda: ops.native_group_norm_backward(a, a, a, a, None, 1, 1e-5),
        lambda: ops.native_group_norm(a, None, None, 0, 1e-5),
        lambda: ops.attention(a, b, b, None, 1.0, False),
        lambda: ops.attention(a, a, a, b, 1.0, False),
        lambda: ops.attention_backward(b, a, a, a, None, 1.0, False),
        lambda: ops.rnn_sequence(a, a, None, b, None, "tanh", None, False, True),
        lambda: ops.rnn_sequence(a, a, None, torch.ones(3, 3), None, "tanh", (2, 3), False, True),
        lambda: ops.rnn_sequence(a, a, None, torch.ones(3, 3), None, "tanh", (-1, 3), False, True),
        lambda: ops.rnn_sequence(a, a, a, torch.ones(3, 3), None, "tanh", (2,), False, True),
        lambda: ops.rnn_sequence(a, a, None, torch.ones(3, 3), None, "other", (2,), False, True),
        lambda: ops.ctc_loss(torch.ones(2, 1, 3), torch.tensor([5]), (2,), (1,), (0,), 0, False),
        lambda: ops.ctc_loss(torch.ones(2, 1, 3), torch.tensor([1]), (2,), (2,), (0,), 0, False),
        lambda: ops.ctc_loss(torch.ones(2, 1, 3), torch.tensor([1]), (2,), (1,), (9,), 0, False),
        lambda: torch._C.update_running_statistics(a, a, b, b, 2.0, 0.1),
    ]
    for call in refused:
        with pytest.raises((RuntimeError, TypeError, NotImplementedError)):
            call()


def test_update_bn_averages_the_batches():
    model = nn.Sequential(nn.BatchNorm1d(1), nn.Linear(1, 1)).eval()
    batches = [torch.tensor([[0.0], [2.0]]), torch.tensor([[4.0], [6.0]])]
    torch.optim.swa_utils.update_bn([(batch, 0) for batch in batches], model)
    assert model[0].running_mean.item() == pytest.approx(3.0)
    assert model[0].momentum == 0.1 and not model.training


def test_one_dimension_of_the_variance_may_be_shared():
    x, y = torch.arange(12.0).reshape(4, 3), torch.zeros(4, 3)
    full = F.gaussian_nll_loss(x, y, torch.full((4, 3), 2.0))
    for shape in ((4,), (4, 1), (1, 3)):
        assert F.gaussian_nll_loss(x, y, torch.full(shape, 2.0)).item() == pytest.approx(full.item())
    for shape in ((1, 1), (3,), (2, 3)):
        with pytest.raises(ValueError, match="var is of incorrect size"):
            F.gaussian_nll_loss(x, y, torch.full(shape, 2.0))
