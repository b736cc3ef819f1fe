"""The graph as users see it: what the comparison with torch does not say."""

import gc
import weakref

import pytest

import rushlight as torch
from rushlight.autograd import graph


def test_examples_of_the_module():
    import doctest

    for module in (graph, torch.autograd.function, torch.autograd):
        failed, _ = doctest.testmod(module, extraglobs={"rushlight": torch})
        assert not failed


def test_a_hook_that_refers_to_its_node_is_collected():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    node = y.grad_fn
    node.register_hook(lambda grads, _, kept=[node]: None)
    dead = weakref.ref(node)
    del x, y, node
    gc.collect()
    assert dead() is None


def test_identity_saved_hooks_make_no_cycle():
    gc.collect()
    gc.disable()
    try:
        with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            y = torch.ones(2, requires_grad=True).exp()
        dead = weakref.ref(y.grad_fn)
        del y
        assert dead() is None
    finally:
        gc.enable()


def test_mutation_clones_only_what_is_saved():
    with graph.allow_mutation_on_saved_tensors() as context:
        x = torch.ones(3, requires_grad=True)
        y = x * 1
        z = y.sin() + y.cos()
        assert (len(context.original), len(context.cloned)) == (1, 0)
        y.mul_(5)
        assert (len(context.original), len(context.cloned)) == (0, 1)
        torch.ones(3).mul_(2)
        z.sum().backward()
    expected = torch.ones(3).cos() - torch.ones(3).sin()
    assert torch.allclose(x.grad, expected)


def test_saved_values_under_torchs_names():
    x = torch.ones(2, 3, requires_grad=True)
    assert (x * x).grad_fn._saved_self is x
    assert x.exp().grad_fn._saved_result.shape == (2, 3)
    assert x.sum(1).grad_fn._saved_dim is not None
    with pytest.raises(AttributeError, match="SinBackward0"):
        _ = x.sin().grad_fn._saved_nonsense


def test_final_callbacks_run_after_accumulation():
    x = torch.ones(1, requires_grad=True)
    seen = []
    done = torch.autograd.Variable._execution_engine.queue_callback
    x.register_hook(lambda g: done(lambda: seen.append(x.grad)))
    (x * 3).backward()
    assert seen == [torch.tensor([3.0])]
    with pytest.raises(RuntimeError, match="Final callbacks"):
        done(print)


def test_edges_in_every_place():
    x = torch.ones(2, requires_grad=True)
    y = x * 3
    loss = (y**2).sum()
    edge = graph.get_gradient_edge(loss)
    del loss
    gy, gx = torch.autograd.grad(edge, [graph.get_gradient_edge(y), x])
    assert gy.tolist() == [6, 6]
    assert gx.tolist() == [18, 18]


def test_index_tensors_are_saved_values_too():
    x = torch.ones(3, 3, requires_grad=True)
    index = torch.zeros(2, dtype=torch.int64).add_(1)
    x[:, index].sum().backward()
    assert x.grad.tolist() == [[0, 2, 0]] * 3
    y = x[:, index]
    index.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    packed = []
    with graph.saved_tensors_hooks(lambda t: packed.append(t.clone()) or len(packed) - 1, packed.__getitem__):
        y = x[:, index]
    index.sub_(1)
    y.sum().backward()
    assert x.grad.tolist() == [[0, 2, 2]] * 3
    raw = x[:, index].grad_fn._raw_saved_indices
    with pytest.raises(RuntimeError, match="None is forbidden"):
        raw[0].register_hooks(lambda t: t, lambda t: t)
    raw[1].register_hooks(lambda t: t, lambda t: t)


def test_a_saved_tensor_detached_in_place_is_refused():
    a = torch.ones(2, requires_grad=True).clone()
    b, c = a.sin(), a.exp()
    out = c + 1
    a.detach_()
    c.detach_()  # as the output of exp that it is, it may be
    with pytest.raises(RuntimeError, match="detached in-place"):
        b.sum().backward()
    out.sum().backward()
