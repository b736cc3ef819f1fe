"""The engine: order, accumulation, modes, leaves, hooks, messages."""

import math
import threading

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


def test_a_dictionary_of_inputs():
    x, y, z = leaf(3.0), leaf(4.0), leaf(5.0)
    root = x * y
    named = torch.autograd.grad(root, {"x": x, y: y}, torch.ones(1), retain_graph=True)
    assert list(named) == ["x", y] and [g.item() for g in named.values()] == [4.0, 3.0]
    named = torch.autograd.grad(root, {"z": z}, torch.ones(1), True, allow_unused=True)
    assert named == {"z": None}
    root.backward(torch.ones(1), inputs={x: y})
    assert x.grad is None and y.grad.item() == 3.0


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
            want = {1: g, 2: -g, 3: g * other, 4: g * (2 * other), 5: g * (2 * other)}[form]
            with torch.no_grad():  # the last form is known for squares that are not recorded
                assert torch.equal(rule(*[g, other, 2][: len(params)]), want), name
    assert seen == {1, 2, 3, 4, 5}
    z = torch.tensor([1 + 2j], requires_grad=True)
    w = torch.tensor([3 - 1j])
    (z * w).backward(torch.ones(1, dtype=torch.complex64))
    assert z.grad.item() == 3 + 1j


@pytest.mark.parametrize("power", [lambda x: x**2, lambda x: x**2.0, lambda x: x.square(), lambda x: x**3])
@pytest.mark.parametrize("weights", [[0.5, 2.0, -1.0], [1.0, 1.0, 1.0]])
def test_squares_have_the_gradient_of_powers(power, weights):
    """The engine computes that of `x ** 2` itself, where nothing is recorded."""
    weight = torch.tensor(weights)
    x = torch.tensor([2.0, -3.0, 0.25], requires_grad=True)
    exponent = round(math.log(power(torch.tensor(2.0)).item(), 2))
    expected = [w * exponent * v ** (exponent - 1) for w, v in zip(weights, x.tolist())]
    (power(x) * weight).sum().backward()
    assert x.grad.tolist() == expected
    (again,) = torch.autograd.grad((power(x) * weight).sum(), x, create_graph=True)
    assert again.tolist() == expected and again.requires_grad
    (spread,) = torch.autograd.grad(power(x).sum(), x)  # the gradient of sum() is one number
    assert spread.tolist() == [exponent * v ** (exponent - 1) for v in x.tolist()]
    z = torch.tensor([1 + 2j], requires_grad=True)
    power(z).backward(torch.ones(1, dtype=torch.complex64))
    assert z.grad.item() == (exponent * (1 + 2j) ** (exponent - 1)).conjugate()


def test_an_error_of_a_hook_is_that_of_backward():
    x = leaf(1.0)
    y = x * 2
    y.register_hook(lambda g: len(3))
    with pytest.raises(TypeError, match="object of type 'int' has no len"):
        y.backward()


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


def test_a_hook_on_a_view_whose_base_was_written_since():
    """Torch's process ends at register_hook()."""
    seen = []
    base = leaf(1.0, 1.0, 1.0) * 1
    view = base[:2]
    base.mul_(2)
    view.register_hook(seen.append)
    (view * 3).sum().backward()
    late, factor = torch.ones(3), leaf(2.0, 2.0, 2.0)
    part = late[:2]
    late.mul_(factor)
    part.register_hook(seen.append)
    (part * 5).sum().backward()
    assert [each.tolist() for each in seen] == [[3, 3], [5, 5]]


def test_node_hooks():
    x = leaf(3.0)
    y = x * 2
    y.grad_fn.register_prehook(lambda grads: tuple(g * 3 for g in grads))
    y.grad_fn.register_hook(lambda inputs, outputs: tuple(None if g is None else g * 5 for g in inputs))
    y.backward(torch.ones(1))
    assert x.grad.item() == 30.0


def test_hooks_after_a_frozen_leaf_see_what_arrived():
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    seen = []
    y.grad_fn.next_functions[0][0].register_hook(lambda inputs, outputs: seen.append(outputs[0].tolist()))
    x.requires_grad_(False)
    y.sum().backward()
    assert seen == [[2.0, 2.0, 2.0]] and x.grad is None


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
