"""The engine: order, accumulation, modes, views and in-place, deep and wide graphs, memory, threads."""

import contextlib
import gc
import threading
import weakref

import pytest

import rushlight as torch


def leaf(*values):
    return torch.tensor(list(values), requires_grad=True)


# ---- backward and grad


def test_scalar_chain():
    x = torch.tensor(2.0, requires_grad=True)
    y = 2 * x**2 + 3
    y.backward()
    assert x.grad.item() == 8.0
    assert y.grad_fn.name() == "AddBackward0"


def test_gradients_accumulate_and_zero():
    x = torch.tensor(2.0, requires_grad=True)
    (x**2).backward()
    (3 * x).backward()
    assert x.grad.item() == 7.0
    x.grad.zero_()
    assert x.grad.item() == 0.0


def test_accumulation_keeps_the_same_grad_tensor():
    x = leaf(1.0, 2.0)
    (x * x).backward(torch.ones(2))
    first = x.grad
    (x * x).backward(torch.ones(2))
    assert x.grad is first and first.tolist() == [4.0, 8.0]


def test_grad_never_shares_memory_with_the_given_gradient():
    x = leaf(1.0, 2.0)
    g = torch.ones(2)
    (x + 0).backward(g)
    x.grad.add_(1)
    assert g.tolist() == [1.0, 1.0]


def test_two_leaves_do_not_share_their_gradient():
    a, b = leaf(1.0), leaf(2.0)
    (a + b).backward(torch.ones(1))
    a.grad.add_(5)
    assert b.grad.tolist() == [1.0]


def test_broadcast_gradients_are_summed():
    a = torch.ones(3, 4, requires_grad=True)
    b = torch.ones(4, requires_grad=True)
    c = torch.ones(3, 1, requires_grad=True)
    (a * b * c).backward(torch.ones(3, 4))
    assert b.grad.tolist() == [3.0] * 4
    assert c.grad.tolist() == [[4.0]] * 3


def test_dtype_of_gradient_is_the_leafs():
    x = torch.ones(3, requires_grad=True)
    y = x * torch.ones(3, dtype=torch.float64)
    assert y.dtype == torch.float64
    y.backward(torch.ones(3, dtype=torch.float64))
    assert x.grad.dtype == torch.float32


def test_grad_layout_follows_the_leaf():
    x = torch.ones(3, 4).t().requires_grad_()
    (x * 2).backward(torch.ones(4, 3))
    assert x.grad.stride() == (1, 4)


def test_grad_returns_without_accumulating():
    x, y = leaf(3.0), leaf(4.0)
    gx, gy = torch.autograd.grad(x * y, (x, y), torch.ones(1))
    assert (gx.item(), gy.item()) == (4.0, 3.0)
    assert x.grad is None


def test_grad_of_intermediate():
    x = leaf(3.0)
    y = x * 2
    (g,) = torch.autograd.grad(y * y, y, torch.ones(1))
    assert g.item() == 12.0


def test_backward_with_inputs_touches_only_them():
    x, y = leaf(3.0), leaf(4.0)
    (x * y).backward(torch.ones(1), inputs=[x])
    assert x.grad.item() == 4.0 and y.grad is None


def test_unused_input():
    x, y = leaf(3.0), leaf(4.0)
    with pytest.raises(RuntimeError, match="appears to not have been used"):
        torch.autograd.grad(x * 2, y, torch.ones(1))
    assert torch.autograd.grad(x * 2, (x, y), torch.ones(1), allow_unused=True)[1] is None
    assert torch.autograd.grad(x * 2, y, torch.ones(1), materialize_grads=True)[0].tolist() == [0.0]


def test_higher_order():
    x = torch.tensor(2.0, requires_grad=True)
    y = x**4
    for expected in (32.0, 48.0, 48.0, 24.0, 0.0):
        (y,) = torch.autograd.grad(y, x, create_graph=True)
        assert y.item() == expected


def test_retain_graph():
    x = torch.tensor(2.0, requires_grad=True)
    y = x * x
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.item() == 8.0
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()


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


# ---- modes


def test_no_grad_forms():
    x = leaf(1.0)
    with torch.no_grad():
        assert not (x * 2).requires_grad
        with torch.enable_grad():
            assert (x * 2).requires_grad

    @torch.no_grad()
    def f():
        return x * 2

    @torch.no_grad
    def g():
        return x * 2

    assert not f().requires_grad and not g().requires_grad
    with torch.set_grad_enabled(False):
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()


def test_no_grad_on_a_generator():
    x = leaf(1.0)

    @torch.no_grad()
    def steps():
        for _ in range(3):
            yield (x * 2).requires_grad

    for inside in steps():
        assert inside is False
        assert torch.is_grad_enabled()


def test_modes_are_per_thread():
    seen = []
    with torch.no_grad():
        thread = threading.Thread(target=lambda: seen.append(torch.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_inference_mode():
    x = leaf(1.0)
    with torch.inference_mode():
        y = x * 2
    assert y.is_inference() and not y.requires_grad
    with pytest.raises(RuntimeError, match="Inference tensors do not track version counter"):
        _ = y._version
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
        y.add_(1)


# ---- leaves, detach, retain_grad


def test_leaf_and_detach():
    x = leaf(1.0)
    y = x * 2
    assert x.is_leaf and not y.is_leaf
    z = y.detach()
    assert z.is_leaf and not z.requires_grad and z.data_ptr() == y.data_ptr()
    y.detach_()
    assert y.is_leaf and not y.requires_grad


def test_retain_grad():
    x = leaf(3.0)
    y = x * 2
    y.retain_grad()
    (y * y).backward(torch.ones(1))
    assert y.grad.item() == 12.0
    assert y.retains_grad


def test_non_leaf_grad_warns():
    y = leaf(1.0) * 2
    with pytest.warns(UserWarning, match="not a leaf Tensor is being accessed"):
        assert y.grad is None


def test_integer_cannot_require_grad():
    with pytest.raises(RuntimeError, match="nly Tensors of floating point"):
        torch.tensor([1, 2], requires_grad=True)


# ---- views and in-place


def test_in_place_changes_history():
    x = leaf(1.0, 2.0)
    y = x * 1
    y.mul_(3)
    assert y.grad_fn.name() == "MulBackward0"
    y.backward(torch.ones(2))
    assert x.grad.tolist() == [3.0, 3.0]


def test_write_into_view_reaches_base():
    x = leaf(1.0, 2.0, 3.0)
    y = x * 1
    y[0].mul_(5)
    assert y.grad_fn.name() == "torch::autograd::CopySlices"
    (y * y).backward(torch.ones(3))
    assert x.grad.tolist() == [50.0, 4.0, 6.0]


def test_write_into_base_reaches_view():
    x = leaf(1.0, 2.0, 3.0)
    y = x * 1
    v = y.view(3, 1)
    y.mul_(2)
    (v * v).backward(torch.ones(3, 1))
    assert x.grad.tolist() == [8.0, 16.0, 24.0]


def test_sibling_views():
    x = torch.arange(6.0).requires_grad_()
    y = x.clone()
    a, b = y[:3], y[2:]
    a.mul_(b[:3].clone())
    (b.exp() * y.sin()[2:]).backward(torch.ones(4))
    torch.manual_seed(0)
    expected = x.grad.clone()
    x.grad = None
    first = x[:3] * x[2:5]
    whole = [first[0], first[1], first[2], x[3], x[4], x[5]]
    total = sum(whole[i].exp() * whole[i].sin() for i in range(2, 6))
    total.backward()
    assert all(abs(p - q) < 1e-4 for p, q in zip(expected.tolist(), x.grad.tolist(), strict=True))


def test_view_of_plain_tensor_follows_its_base():
    w = leaf(2.0)
    base = torch.ones(4)
    view = base[1:3]
    base.mul_(w)
    assert view.requires_grad
    view.backward(torch.ones(2))
    assert w.grad.item() == 2.0


def test_leaf_in_place_is_refused():
    x = leaf(1.0)
    with pytest.raises(
        RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"
    ):
        x.add_(1)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        x[0].add_(1)
    with torch.no_grad():
        x.add_(1)
    assert x.tolist() == [2.0] and x._version == 1


def test_version_is_shared_by_views_and_detach():
    x = torch.zeros(3)
    x[0].add_(1)
    x.detach().add_(1)
    assert x._version == 2
    assert x._base is None and x[0]._base is x


def test_modified_saved_value():
    x = leaf(1.0, 2.0)
    y = x * 2
    z = y * y
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation") as caught:
        z.backward(torch.ones(2))
    text = str(caught.value)
    assert "z = y * y" in text and "y.add_(1)" in text


def test_data_write_warns_with_both_lines(tmp_path):
    import subprocess
    import sys
    import textwrap

    program = textwrap.dedent("""
        import warnings
        import rushlight as torch
        x = torch.ones(2, requires_grad=True)
        y = x * x
        x.data.mul_(2)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            y.backward(torch.ones(2))
        print(caught[0].message)
    """)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "changed through .data" in done.stdout
    assert "line 5" in done.stdout and "line 6" in done.stdout


# ---- hooks


def test_tensor_hooks():
    x = leaf(3.0)
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(g.item()))
    handle = y.register_hook(lambda g: g * 10)
    x.register_hook(lambda g: g + 1)
    (y * y).backward(torch.ones(1), retain_graph=True)
    assert seen == [12.0] and x.grad.item() == 241.0
    handle.remove()
    x.grad = None
    (y * y).backward(torch.ones(1))
    assert x.grad.item() == 25.0


def test_post_accumulate_hook():
    x = leaf(3.0)
    seen = []
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.item()))
    (x * 2).backward(torch.ones(1))
    assert seen == [2.0]


def test_node_hooks():
    x = leaf(3.0)
    y = x * 2
    y.grad_fn.register_prehook(lambda grads: tuple(g * 3 for g in grads))
    y.grad_fn.register_hook(lambda inputs, outputs: tuple(None if g is None else g * 5 for g in inputs))
    y.backward(torch.ones(1))
    assert x.grad.item() == 30.0


# ---- big graphs, memory, threads


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


# ---- messages that name lines


def test_no_graph_names_the_cut():
    x = torch.ones(2, requires_grad=True)
    cut = x.detach()
    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad") as caught:
        cut.backward(torch.ones(2))
    assert "cut = x.detach()" in str(caught.value)
    with torch.no_grad():
        y = x * 2
    with pytest.raises(RuntimeError) as caught:
        y.backward(torch.ones(2))
    assert "y = x * 2" in str(caught.value)
    made = torch.ones(2)
    z = made * 2
    with pytest.raises(RuntimeError) as caught:
        z.backward(torch.ones(2))
    assert "made = torch.ones(2)" in str(caught.value)


def test_non_scalar_backward_names_the_line():
    x = leaf(1.0, 2.0)
    vector = x * 2
    with pytest.raises(
        RuntimeError, match="grad can be implicitly created only for scalar outputs"
    ) as caught:
        vector.backward()
    assert "vector = x * 2" in str(caught.value)


def test_subclass_goes_through_torch_function():
    calls = []

    class Logged(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            calls.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs)

    x = torch.ones(2).as_subclass(Logged)
    y = torch.add(x, 1)
    z = x * 2
    assert isinstance(y, Logged) and isinstance(z, Logged)
    assert calls[:2] == ["add", "mul"]


def test_the_engine_computes_known_forms_of_rules_as_python_would():
    from rushlight.ops._rules import RULES, form_of

    seen = set()
    for name, rules in RULES.items():
        for rule, params in rules.values():
            form = form_of(rule, params)
            if not form:
                continue
            seen.add(form)
            g = torch.randn(3, dtype=torch.float64)
            other = torch.randn(3, dtype=torch.float64)
            want = {1: g, 2: -g, 3: g * other}[form]
            assert torch.equal(rule(*([g, other] if form == 3 else [g])), want), name
    assert seen == {1, 2, 3}
    z = torch.tensor([1 + 2j], requires_grad=True)
    w = torch.tensor([3 - 1j])
    (z * w).backward(torch.ones(1, dtype=torch.complex64))
    assert z.grad.item() == 3 + 1j


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


def test_parameters_and_tangents_of_moved_tensors_count_with_them():
    moved, shared = torch.ones(3), torch.zeros(3)
    moved.data = shared
    parameter = torch.nn.Parameter(moved)
    w = torch.ones(3, requires_grad=True)
    y = w * moved
    with torch.no_grad():
        parameter.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def jvp(ctx, tangent):
            return tangent.mul_(2)

    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(torch.ones(3), moved)
        tangent = torch.autograd.forward_ad.unpack_dual(Twice.apply(dual)).tangent
    assert tangent.tolist() == [2.0, 2.0, 2.0]


def test_hooks_after_a_frozen_leaf_see_what_arrived():
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    seen = []
    y.grad_fn.next_functions[0][0].register_hook(lambda inputs, outputs: seen.append(outputs[0].tolist()))
    x.requires_grad_(False)
    y.sum().backward()
    assert seen == [[2.0, 2.0, 2.0]] and x.grad is None


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


def test_a_view_made_without_recording_leads_nowhere():
    y = torch.ones(2, 2, requires_grad=True) * 2
    with torch.no_grad():
        v = y.view(-1)
    assert torch.autograd.grad(y.sum(), [v], allow_unused=True) == (None,)
    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad"):
        v.backward(torch.ones(4))


def test_a_leaf_given_other_memory_is_followed():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = (x**3).sum()
    x.data = torch.tensor([2.0, 2.0])
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    assert g.tolist() == [12.0, 12.0]
    assert torch.autograd.grad(g.sum(), x)[0].tolist() == [12.0, 12.0]


@pytest.mark.parametrize("stop", [lambda x: x.requires_grad_(False), lambda x: x.detach_()])
def test_a_leaf_that_was_frozen_since_gets_no_gradient(stop):
    x = torch.ones(2, requires_grad=True)
    seen = []
    x.register_hook(lambda g: seen.append(g.tolist()))
    y = x * 2
    stop(x)
    y.sum().backward(retain_graph=True)
    assert x.grad is None and seen == [[2.0, 2.0]]
    x.requires_grad_()
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_views_in_place_of_a_leaf_are_refused_whatever_their_arguments():
    x = torch.ones(2, 2, 3, requires_grad=True)
    for write in (lambda: x.t_(), lambda: x.transpose_(5, 6), lambda: x.unsqueeze_(0)):
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
            write()


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64, torch.float32, torch.complex128])
def test_bytes_seen_as_a_dtype_have_no_gradient(dtype):
    x = torch.ones(4, dtype=torch.float64, requires_grad=True)
    seen = x.view(dtype)
    assert not seen.requires_grad and not seen._is_view() and seen.data_ptr() == x.data_ptr()
    seen.zero_()
    assert x._version == 1 and not x.any()
