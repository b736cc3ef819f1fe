"""What the engine holds and frees: big graphs, saved values, reused memory, threads."""

import contextlib
import gc
import threading
import weakref

import pytest

import rushlight as torch


def leaf(*values):
    return torch.tensor(list(values), requires_grad=True)


# ---- big graphs, threads


def test_deep_chain():
    x = torch.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(1_000_000):
        y = y + 1e-9
    y.backward()
    assert x.grad.item() == 1.0
    del y
    gc.collect()


def test_wide_fan_out():
    x = torch.ones(10, requires_grad=True)
    total = x * 0
    for _ in range(10_000):
        total = total + x
    total.backward(torch.ones(10))
    assert x.grad.tolist() == [10_000.0] * 10


def test_graph_is_freed_without_the_collector():
    gc.disable()
    try:
        before = torch.memory_stats()["allocated_bytes"]
        for _ in range(100):
            x = torch.ones(1000, requires_grad=True)
            y = (x.exp() * x).tanh() + 1
            y.mul_(2)
            y.backward(torch.ones(1000))
            del x, y
        assert torch.memory_stats()["allocated_bytes"] - before < 100_000
    finally:
        gc.enable()


def test_cycle_through_create_graph_is_collected():
    x = torch.ones(1000, requires_grad=True)
    alive = weakref.ref(x)
    (x * x * x).backward(torch.ones(1000), create_graph=True)
    del x
    gc.collect()
    assert alive() is None


def test_cycle_through_a_hook_is_collected():
    x = torch.ones(3, requires_grad=True)
    alive = weakref.ref(x)
    x.register_hook(lambda g, x=x: None)
    y = x * 2
    y.register_hook(lambda g, y=y: None)
    del x, y
    gc.collect()
    assert alive() is None


def test_threads_run_backward_at_once():
    shared = torch.ones(100, requires_grad=True)
    errors = []

    def work():
        try:
            for _ in range(200):
                (g,) = torch.autograd.grad((shared * 2).exp(), shared, torch.ones(100))
                assert abs(g[0].item() - 2 * 7.389056) < 1e-3
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors


def test_backward_inside_a_hook():
    x = leaf(3.0)
    inner = leaf(2.0)

    def hook(g):
        with torch.enable_grad():
            (inner * inner).backward(torch.ones(1))
        return g

    y = x * 2
    y.register_hook(hook)
    y.backward(torch.ones(1))
    assert x.grad.item() == 2.0 and inner.grad.item() == 4.0


def test_error_in_a_hook_leaves_the_graph_usable():
    x = leaf(3.0)
    y = x * 2
    handle = y.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        y.backward(torch.ones(1), retain_graph=True)
    handle.remove()
    y.backward(torch.ones(1))
    assert x.grad.item() == 2.0


# ---- saved values, reused memory


def test_sum_saves_nothing_so_it_can_run_twice():
    x = leaf(1.0, 2.0)
    y = x + 1
    y.backward(torch.ones(2))
    y.backward(torch.ones(2))
    assert x.grad.tolist() == [2.0, 2.0]


def test_saves_only_what_is_needed():
    a = torch.ones(1000, requires_grad=True)
    b = torch.ones(1000)
    before = torch.memory_stats()["allocated_bytes"]
    c = a * b
    alive = weakref.ref(a.detach())  # noqa: F841
    d = c + 1
    del c
    # `c` was needed by nobody: only d's memory stays
    assert torch.memory_stats()["allocated_bytes"] - before < 2 * d.nbytes


def test_an_accumulator_sleeps_and_wakes():
    x = torch.ones(2, requires_grad=True)
    for _ in range(3):
        (x * x).sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]
    kept = (x * 2).grad_fn.next_functions[0][0]
    assert kept.variable is x and kept is (x * 3).grad_fn.next_functions[0][0]
    del kept
    x.requires_grad_(False)
    x.grad = None
    x.resize_(3).fill_(1.0)
    x.requires_grad_(True)
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]
    y = torch.ones(2, requires_grad=True)
    node = (y * 2).grad_fn
    del y
    assert node.next_functions[0][0].variable.tolist() == [1.0, 1.0]


def test_a_gradient_of_ones_hands_saved_values_on():
    """The product of sum()'s gradient with a saved value is that value: given away, or lent to a product."""
    n = 10_000
    x = torch.linspace(0.1, 1, n, dtype=torch.float64).requires_grad_()
    want = (x.exp() * (x.sin() + x.cos())).detach()

    def loss(keep=lambda e, s: None):
        e, s = x.exp(), x.sin()
        keep(e, s)
        return (e * s).sum()

    loss().backward()
    assert torch.allclose(x.grad, want)
    for graph in (False, True):  # once more over the same graph, with somebody who writes into the gradients
        x.grad, seen = None, []

        def watch(e, s, seen=seen):
            e.register_hook(lambda g: seen.append(g.mul_(2)))
            s.register_hook(lambda g: seen.append(g.clone()))

        y = loss(watch)
        y.backward(retain_graph=graph)
        assert torch.allclose(x.grad, want + (x.exp() * x.sin()).detach())
        assert {round(one[5].item(), 9) for one in seen} == {
            round(2 * x[5].sin().item(), 9), round(x[5].exp().item(), 9)
        }  # fmt: skip
        if graph:
            x.grad = None
            y.backward()
            assert torch.allclose(x.grad, want + (x.exp() * x.sin()).detach())
    e = x.exp()
    (grad,) = torch.autograd.grad((e * x.sin()).sum(), e)
    grad.zero_()
    assert torch.equal(e, x.exp())
    x.grad = None
    held = []
    loss(lambda e, s: held.extend((e, s))).backward()
    assert torch.allclose(x.grad, want)
    assert torch.equal(held[0], x.exp()) and torch.equal(held[1], x.sin())


def test_what_is_saved_of_a_leaf_is_never_stale():
    """See Note [what is saved itself]: a leaf is, as in torch."""
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    first = x * x
    assert first.grad_fn._raw_saved_self.unpack() is x
    second = x * x
    (slope,) = torch.autograd.grad(second.sum(), x, create_graph=True)
    assert torch.autograd.grad(slope.sum(), x)[0].tolist() == [2.0, 2.0]
    x.data = torch.tensor([3.0, 4.0, 5.0])
    with pytest.raises(RuntimeError, match="expected shape compatible with \\[2\\]"):
        (x * x).sum().backward()  # the graphs there are wait for a gradient of the old shape
    del first, second, slope
    (x * x).sum().backward()
    assert x.grad.tolist() == [6.0, 8.0, 10.0]
    with torch.no_grad():
        x.unsqueeze_(0)
    assert (x * x).grad_fn._saved_self.shape == (1, 3)
    with torch.no_grad():
        x.mul_(2)
    z = x * x
    with torch.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.prod(),
        lambda x: x.prod(0),
        lambda x: x.cumprod(0).sum(),
        lambda x: torch.linalg.vector_norm(x, 3),
    ],
)
def test_a_leaf_is_saved_itself_by_operations_that_take_a_dtype_too(function):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = function(x)
    x.data = torch.tensor([4.0, 5.0])
    y.backward()
    known = x.grad
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    function(x).backward()
    assert not torch.equal(known, x.grad)


def test_a_gradient_has_nothing_of_the_constant_whose_memory_it_takes():
    x = torch.ones(3, requires_grad=True)
    seen = []

    def product():
        c = torch.full((3,), 2.0, requires_grad=True)
        c.register_hook(seen.append)
        c.grad = torch.ones(3)
        return x * c.requires_grad_(False)

    product().backward(torch.tensor([1.0, 2.0, 3.0]))
    assert x.grad.tolist() == [2.0, 4.0, 6.0] and x.grad.grad is None
    (x.grad.requires_grad_() * 2).sum().backward()
    assert not seen


def test_a_leaf_does_not_hold_the_memory_it_had():
    x = torch.zeros(1 << 16, requires_grad=True)
    (x * x).sum().backward()
    x.grad = None
    before = torch.memory_stats()["allocated_bytes"]
    x.data = torch.zeros(1)
    assert before - torch.memory_stats()["allocated_bytes"] >= 4 << 16


def test_reused_buffers_are_never_ones_that_somebody_sees():
    """See Note [reusing buffers]: large gradients are written over memory nobody can read again."""
    n = 5000
    x = torch.linspace(0.1, 1, n, dtype=torch.float64).requires_grad_()
    kept = []
    s, e = x.sin(), x.exp()
    y = s * e
    y.register_hook(kept.append)
    s.retain_grad()
    seed = torch.full((n,), 2.0, dtype=torch.float64)
    before = s.detach().clone()
    y.backward(seed, retain_graph=True)
    want = 2 * (x.exp() * (x.sin() + x.cos())).detach()
    assert torch.allclose(x.grad, want) and torch.equal(seed, torch.full((n,), 2.0, dtype=torch.float64))
    assert torch.equal(kept[0], seed) and torch.equal(s.detach(), before)
    assert torch.allclose(s.grad, 2 * x.exp().detach())
    x.grad = None
    del s
    y.backward(seed)
    assert torch.allclose(x.grad, want)
    with pytest.raises(RuntimeError, match="second time"):
        y.backward(seed)

    # A failure half way leaves no overwritten value behind: the graph says that it was used.
    class Fails(Exception):
        pass

    def fail(grad):
        raise Fails

    a = x * 1.5
    (b := a.sin()).register_hook(fail)
    loss = (b * a.exp()).sum()
    del b
    with pytest.raises(Fails):
        loss.backward()
    x.grad = None
    with contextlib.suppress(Fails, RuntimeError):
        loss.backward()
    assert x.grad is None


def test_a_leaf_given_other_memory_is_followed():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = (x**3).sum()
    x.data = torch.tensor([2.0, 2.0])
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    assert g.tolist() == [12.0, 12.0]
    assert torch.autograd.grad(g.sum(), x)[0].tolist() == [12.0, 12.0]


@pytest.mark.parametrize("operation", ["exp", "tanh", "sigmoid", "relu", "sqrt"])
@pytest.mark.parametrize("when", ["never", "inside", "after", "of the tangent"])
def test_results_kept_by_their_tangents_are_freed_with_the_level(operation, when):
    """The derivative of a result's tangent keeps the result, which has the tangent."""
    fwAD = torch.autograd.forward_ad

    def run():
        x, w = torch.rand(3, requires_grad=True), torch.rand(3, requires_grad=True)
        with fwAD.dual_level():
            y = getattr(fwAD.make_dual(x, torch.ones(3)) * w, operation)()
            tangent = fwAD.unpack_dual(y).tangent
            if when == "inside":
                y.sum().backward()
        if when == "after":
            y.sum().backward()
        if when == "of the tangent":
            tangent.sum().backward()
        return weakref.ref(w), weakref.ref(y), weakref.ref(tangent)

    gc.collect()
    gc.disable()
    try:
        assert [each() for each in run()] == [None] * 3
    finally:
        gc.enable()
