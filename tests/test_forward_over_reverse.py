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
