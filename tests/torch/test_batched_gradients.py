"""What torch refuses where it computes a batch of gradients at once: reading numbers, deciding, drawing."""

import functools
import warnings

import pytest
import torch as torch_itself
from outcomes import outcome

import rushlight

GRADIENTS = """
g.sum().item()
g if g.sum() > 0 else None
g * float(g[0])
g * int(g[0])
g * complex(g[0])
g * g.tolist()[0]
g * [1, 2][g[0].long()]
g if g.mul(2)[1:].sum() else g
g if (saved * g).sum() > 0 else g
g if x.detach().mul(g).eq(1).all() else g
torch.zeros(3).add(g).max().item()
torch.stack([g, g]).sum().item() * g
g + torch.randn_like(g)
g + torch.randn(3)
g + torch.rand(3, generator=torch.Generator())
torch.nn.functional.dropout(g)
torch.bernoulli(g)
torch.empty(3).uniform_()
g.clone().normal_()
g + torch.normal(0.0, 1.0, (3,))
g + torch.multinomial(torch.ones(3), 3)
g + torch.randperm(3)
g + torch.randint(3, (3,))
torch._standard_gamma(torch.ones(3)) * 0 + g
torch.binomial(torch.ones(3), torch.ones(3)) * 0 + g
g * saved.sum().item()
g * 2 if saved.sum() > 0 else g
g * torch.ones(3).sum().item()
g * x.detach().max().item()
(g.shape, g.dim(), len(g), g.stride(), g.storage_offset(), g.requires_grad) and g * 2
g * sum(list(g))
"""


def ended(library, text, how):
    x = library.ones(3, requires_grad=True)
    saved = library.ones(3)
    seen = {"torch": library, "x": x, "saved": saved}

    class Hooked(library.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return eval(text, {**seen, "g": g})

        @staticmethod
        def jvp(ctx, g):
            return eval(text, {**seen, "g": g})

    try:
        return how(library, Hooked, x).tolist()
    except RuntimeError as error:
        return type(error).__name__, str(error).split("\n")[0]


def rows(library, function, x):
    return library.autograd.grad(function.apply(x), x, library.ones(2, 3), is_grads_batched=True)[0]


def jacobian(library, function, x):
    return library.autograd.functional.jacobian(function.apply, x.detach(), vectorize=True)


def forward_jacobian(library, function, x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return library.autograd.functional.jacobian(
            function.apply, x.detach(), vectorize=True, strategy="forward-mode"
        )


@pytest.mark.parametrize("how", [rows, jacobian, forward_jacobian])
@pytest.mark.parametrize("text", GRADIENTS.strip().splitlines())
def test_a_batch_of_gradients_ends_as_in_torch(text, how):
    assert ended(rushlight, text, how) == ended(torch_itself, text, how)


@pytest.mark.parametrize("text", ["g * 2 if g.sum().item() > -9 else g", "g * 2 + torch.rand(3) * 0"])
def test_gradcheck_finds_what_a_batch_cannot_do(text):
    def checked(library, function, x):
        x = x.detach().double().requires_grad_()
        return library.tensor(library.autograd.gradcheck(function.apply, (x,), check_batched_grad=True))

    assert ended(rushlight, text, checked) == ended(torch_itself, text, checked)


def test_numbers_are_read_again_after_a_refusal():
    x = rushlight.ones(3, requires_grad=True)
    y = x * 1
    y.register_hook(lambda g: g * g.sum().item())
    with pytest.raises(RuntimeError, match="Batching rule not implemented for aten::item"):
        rushlight.autograd.grad(y, x, rushlight.ones(2, 3), is_grads_batched=True, retain_graph=True)
    assert rushlight.autograd.grad(y, x, rushlight.ones(3))[0].tolist() == [3, 3, 3]
    assert rushlight.randn(3).sum().item() != 0


BATCHES = """
grad(n, x); grad(s, x); grad(s.reshape(1), x); grad([y, s], x, [torch.ones(3, 2), None])
grad([y, n], x, [torch.ones(3, 2), None]); grad([y, s], x, [torch.ones(3, 2), torch.ones(2)])
grad([y, s], x, [torch.ones(3, 2), torch.ones(3)]); grad(edge(y), x, torch.ones(3, 2)); grad(edge(s), x)
grad(y, edge(y), torch.ones(3, 2)); grad(s, x, torch.tensor(1.0)); grad(s, x, 1.0); grad(y, x, torch.ones(2))
grad(y, x, torch.ones(3, 3)); grad(edge(y), x, torch.ones(3, 3))
"""


@pytest.mark.parametrize("text", [t.strip() for t in BATCHES.replace("\n", ";").split(";") if t.strip()])
def test_what_a_batch_is_given(text):
    def run(torch):
        x = torch.ones(2, requires_grad=True)
        y = x * 2
        named = {
            "x": x,
            "y": y,
            "s": y.sum(),
            "n": torch.ones(2),
            "edge": torch.autograd.graph.get_gradient_edge,
        }
        grad = functools.partial(torch.autograd.grad, is_grads_batched=True)
        return eval(text, {"torch": torch, "grad": grad, **named})

    assert outcome(lambda: run(rushlight)) == outcome(lambda: run(torch_itself))
