"""What a function differentiated by torch.func makes inside: tensors like others, steps of optimisers
and sparse tensors."""

import pytest
from corners import same_in_torch
from outcomes import collector, err

import rushlight

pytestmark = pytest.mark.torch

MADE = (
    "zeros_like(p)", "ones_like(p)", "empty_like(p).zero_()", "full_like(p, 2.0)", "rand_like(p)",
    "randn_like(p)",
    "zeros_like(p, memory_format=torch.preserve_format)", "zeros_like(p[0])", "zeros(2)",
)  # fmt: skip
METHODS = (
    "new_zeros(2)",
    "new_ones(2)",
    "new_full((2,), 3.0)",
    "new_tensor([1.0, 2.0])",
    "new_empty(2).fill_(1)",
)
OPTIMISERS = "SGD Adam AdamW RMSprop Adagrad NAdam Adadelta Rprop ASGD RAdam Adamax Adafactor Muon"


def cases(torch):
    found, case = collector()
    func = torch.func

    for text in (*(f"torch.{made}" for made in MADE), *(f"p.{made}" for made in METHODS)):

        @case(f"{text} may be written")
        def _(text=text):
            p = torch.ones(2)

            def f(x):
                torch.manual_seed(0)
                made = eval(text, {"torch": torch, "p": p})
                return (made.mul_(x).lerp_(p, 0.1) * x).sum()

            def g(x):
                made = eval(text, {"torch": torch, "p": p})
                made.add_(1)
                return x.sum() * made.shape[-1] if made.dim() else x.sum()

            x = torch.tensor([0.5, 2.0])
            return err(func.grad(f), x), err(func.grad(g), x), err(func.jacfwd(f), x), err(func.vmap(g), x), p

    for name in OPTIMISERS.split():

        @case(f"a step of {name} writes captured parameters")
        def _(name=name):
            p = torch.ones(2, 2, requires_grad=True)
            options = {"foreach": False} if name != "Muon" else {}
            optimiser = getattr(torch.optim, name)([p], lr=0.1, **options)
            p.grad = torch.ones(2, 2)

            def f(x):
                optimiser.step()
                return (x * p).sum()

            def inside(x):
                q = (x * 1).detach().requires_grad_()
                own = getattr(torch.optim, name)([q], lr=0.1, **options)
                q.grad = torch.ones(2, 2)
                own.step()
                return (x * q.detach()).sum()

            return err(func.grad(f), p.detach() * 3), p, err(func.grad(inside), p.detach() * 3)

    def sparse_functions():
        at, v = torch.tensor([[0, 1], [1, 0]]), torch.tensor([1.0, 2.0])
        ends, plain = torch.tensor([0, 1, 2]), torch.tensor([1, 0])
        outside = torch.sparse_coo_tensor(at, v, (2, 2))
        return {
            "constant": lambda x: (torch.sparse_coo_tensor(at, torch.ones(2), (2, 2)).to_dense() * x).sin(),
            "captured": lambda x: (outside.to_dense() * x).sin(),
            "coordinates": lambda x: torch.sparse_coo_tensor(at, x, (2, 2)).to_dense().sin(),
            "values": lambda x: torch.sparse_coo_tensor(at, x, (2, 2)).coalesce().values().sin(),
            "converted": lambda x: torch.stack([x, x]).to_sparse().to_dense().sin(),
            "product": lambda x: torch.sparse.mm(
                torch.sparse_coo_tensor(at, x, (2, 2)), torch.ones(2, 2)
            ).sin(),
            "compressed": lambda x: torch.sparse_csr_tensor(ends, plain, x, (2, 2)).to_dense().sin(),
        }

    for name in ("constant", "captured", "coordinates", "values", "converted", "product"):

        @case(f"a sparse tensor inside: {name}")
        def _(name=name):
            f, x = sparse_functions()[name], torch.tensor([1.0, 2.0])

            def total(x):
                return f(x).sum()

            told = [func.grad(total)(x), func.vjp(f, x)[1](f(x) * 1)]
            if name == "constant" or name == "captured":
                told += [
                    func.jacfwd(f)(x),
                    func.jvp(f, (x,), (x,)),
                    func.hessian(total)(x),
                    func.jacrev(f)(x),
                ]
            return told

    return found


test_inside = same_in_torch(cases)


@pytest.mark.parametrize("name", ["coordinates", "values", "converted", "product", "compressed"])
def test_what_torch_refuses_of_sparse_tensors_is_right_or_refused(name):
    """Against the derivatives of the same function of dense tensors."""
    torch = rushlight
    at, ends, plain = torch.tensor([[0, 1], [1, 0]]), torch.tensor([0, 1, 2]), torch.tensor([1, 0])
    sparse, dense = {
        "coordinates": (
            lambda x: torch.sparse_coo_tensor(at, x, (2, 2)).to_dense().sin(),
            lambda x: x.diag().flip(1).sin(),
        ),
        "values": (
            lambda x: torch.sparse_coo_tensor(at, x, (2, 2)).coalesce().values().sin(), lambda x: x.sin(),
        ),
        "converted": (
            lambda x: torch.stack([x, x]).to_sparse().to_dense().sin(), lambda x: torch.stack([x, x]).sin(),
        ),
        "product": (
            lambda x: torch.sparse.mm(torch.sparse_coo_tensor(at, x, (2, 2)), torch.ones(2, 2)).sin(),
            lambda x: torch.stack([x, x], 1).sin(),
        ),
        "compressed": (
            lambda x: torch.sparse_csr_tensor(ends, plain, x, (2, 2)).to_dense().sin(),
            lambda x: x.diag().flip(1).sin(),
        ),
    }[name]  # fmt: skip
    func, x, given = torch.func, torch.tensor([1.0, 2.0]), 0
    ways = (
        func.jacrev, func.jacfwd, lambda f: func.jacrev(func.jacrev(f)), func.hessian,
        lambda f: func.grad(lambda x: func.grad(lambda x: f(x).sum())(x).pow(2).sum()),
        lambda f: lambda x: func.jvp(f, (x,), (x,)),
    )  # fmt: skip
    for way in ways:
        try:
            made = way(sparse)(x)
        except (NotImplementedError, RuntimeError):
            continue
        given += 1
        expected = way(dense)(x)
        for one, other in zip(made, expected, strict=True) if isinstance(made, tuple) else [(made, expected)]:
            assert torch.allclose(one, other, atol=1e-6)
    assert given >= 2
