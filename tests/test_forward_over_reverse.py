"""Tangents of gradients: saved values carry their tangents, and nothing is left behind."""

import gc
import weakref

import pytest

import rushlight as torch
from rushlight.autograd import Function, forward_ad


def hessian_vector(function, x, v):
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, v)
        (g,) = torch.autograd.grad(function(dual).sum(), dual)
        return forward_ad.unpack_dual(g).tangent


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x**3,
        lambda x: x.exp() * x,
        lambda x: x.clone().mul_(x).exp_(),
        lambda x: torch.tanh(x @ x),
        lambda x: x.softmax(0) * x[0],
        lambda x: torch.cat([x, x * x]).sigmoid(),
    ],
)
def test_matches_reverse_over_reverse(function):
    torch.manual_seed(0)
    x = torch.rand(3, 3, dtype=torch.float64, requires_grad=True)
    v = torch.rand(3, 3, dtype=torch.float64)
    (g,) = torch.autograd.grad(function(x).sum(), x, create_graph=True)
    (expected,) = torch.autograd.grad(g, x, v)
    assert torch.allclose(hessian_vector(function, x, v), expected)


def test_nothing_is_left_behind():
    def run():
        x = torch.ones(3, requires_grad=True)
        with forward_ad.dual_level():
            y = forward_ad.make_dual(x, torch.ones(3, requires_grad=True)).exp()
            return weakref.ref(y.grad_fn)

    node = run()
    gc.collect()
    assert node() is None


def test_jvp_of_a_function():
    class Cube(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_forward(x)
            return x**3

        @staticmethod
        def jvp(ctx, tangent):
            (x,) = ctx.saved_tensors
            return 3 * x**2 * tangent

    with forward_ad.dual_level():
        result = forward_ad.unpack_dual(Cube.apply(forward_ad.make_dual(torch.ones(2) * 2, torch.ones(2))))
    assert result.tangent.tolist() == [12, 12]

    class Without(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    with forward_ad.dual_level(), pytest.raises(NotImplementedError, match="jvp"):
        Without.apply(forward_ad.make_dual(torch.ones(2), torch.ones(2)))


HOOKS = {
    "the same": (lambda v: v, lambda v: v),
    "a copy": (lambda v: v.clone(), lambda v: v),
    "detached": (lambda v: v.detach(), lambda v: v),
    "a list": (lambda v: (v.shape, v.flatten().tolist()), lambda p: torch.tensor(p[1]).double().view(p[0])),
}


@pytest.mark.parametrize("name", HOOKS)
@pytest.mark.parametrize("function", [lambda x: x**3, lambda x: x.exp() * x, lambda x: torch.tanh(x @ x)])
def test_values_that_hooks_keep_have_their_tangents(name, function):
    torch.manual_seed(0)
    x = torch.rand(3, 3, dtype=torch.float64, requires_grad=True)
    v = torch.rand(3, 3, dtype=torch.float64)
    with torch.autograd.graph.saved_tensors_hooks(*HOOKS[name]):
        found = hessian_vector(function, x, v)
    assert torch.allclose(found, hessian_vector(function, x, v))


def test_tangents_of_kept_values_end_with_the_level():
    x = torch.ones(2, requires_grad=True)
    with torch.autograd.graph.save_on_cpu():
        with forward_ad.dual_level():
            y = forward_ad.make_dual(x, torch.ones(2)).exp()
        with forward_ad.dual_level():
            (g,) = torch.autograd.grad(y.sum(), x)
            assert forward_ad.unpack_dual(g).tangent is None


def test_what_a_function_keeps_has_its_tangent_with_hooks():
    class Cube(Function):
        @staticmethod
        def forward(ctx, x):
            out = x**3
            ctx.save_for_backward(x)
            ctx.save_for_forward(x)
            return out

        @staticmethod
        def backward(ctx, g):
            return 3 * g * ctx.saved_tensors[0] ** 2

        @staticmethod
        def jvp(ctx, t):
            return 3 * t * ctx.saved_tensors[0] ** 2

    x = torch.tensor([2.0], requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda v: v.clone(), lambda v: v):
        assert hessian_vector(Cube.apply, x, torch.ones(1)).tolist() == [12.0]
