"""Gradients in corners: ties, layouts, dtypes, what has none; both libraries agree."""

import pytest
import torch as torch_itself
import torch.nn.functional
from outcomes import err, outcome

import rushlight
import rushlight.nn.functional


def cases(torch):
    found = {}
    F, D = torch.nn.functional, torch.float64

    def case(function):
        return found.setdefault(function.__name__, function)

    @case
    def minmax():
        r = []
        for n in ("min", "max", "median", "nanmedian"):
            x = torch.tensor([1.0, 1.0, 1.0], requires_grad=True)
            y = getattr(torch, n)(x)
            y.backward()
            r.append((n, x.grad))
            x = torch.tensor([float("nan")] * 3, requires_grad=True)
            y = getattr(torch, n)(x)
            y.backward()
            r.append((n, x.grad))
        return r

    @case
    def resize():
        x = torch.ones(2)
        v = x._version
        x.resize_(3)
        a = x._version - v
        x.resize_(3)
        return (
            a,
            x._version - v,
            err(lambda: torch.ones(2, requires_grad=True).resize_(3)),
            err(lambda: torch.ones(2).resize_as_(torch.ones(3)).shape),
        )

    @case
    def lrelu0():
        x = torch.tensor([-2.0, 0.0, 2.0], requires_grad=True)
        y = F.leaky_relu_(x.clone(), 0.0)
        y.backward(torch.ones(3))
        return x.grad

    @case
    def elun():
        x = torch.tensor([-1.0, 1.0], requires_grad=True)
        y = F.elu_(x.clone(), alpha=-2)
        r = err(lambda: y.backward(torch.ones(2)))
        y = F.celu_(x.clone(), alpha=-2)
        return r, err(lambda: y.backward(torch.ones(2)))

    @case
    def onlyfloat():
        return (
            [
                err(torch.ones(2, dtype=d).requires_grad_)
                for d in (torch.int64, torch.bool, torch.complex64, torch.half)
            ],
            err(lambda: torch.ones(2, dtype=torch.int64, requires_grad=True)),
            err(lambda: setattr(torch.ones(2, dtype=torch.int64), "requires_grad", True)),
            err(lambda: torch.ones(2, dtype=torch.int64).requires_grad_(False)),
        )

    @case
    def layout():
        r = []
        for sh, st in (
            ((2, 2), (1, 2)),
            ((2, 2), (2, 1)),
            ((2, 2), (1, 1)),
            ((1, 2), (7, 1)),
            ((2, 3), (6, 2)),
        ):
            overlapping = st == (1, 1)
            w = torch.ones(1).expand(2, 2) if overlapping else torch.empty_strided(sh, st).fill_(1.0)
            w = w.detach().requires_grad_()
            (w * torch.ones(sh)).sum().backward()
            r.append((w.stride(), w.grad.stride()))
            v = torch.ones(sh, requires_grad=True)
            (v * w.detach()).sum().backward()
            r.append(v.grad.stride())
        return r

    @case
    def to_rc():
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        y = x.to(torch.complex64)
        y.backward(torch.tensor([1 + 2j, 3j]))
        return x.grad

    @case
    def gradassign():
        x = torch.ones(5, 5, requires_grad=True)
        values = (0, torch.ones(2, 2), torch.ones(5, 5, dtype=D), torch.ones(5, 5), None, x)
        return [err(setattr, x, "grad", value) for value in values]

    @case
    def nondiffops():
        x = torch.tensor([1.5, 2.0], requires_grad=True)
        return [
            (n, getattr(x, n)().requires_grad)
            for n in (
                "isnan",
                "isinf",
                "argmax",
                "sign",
                "round",
                "floor",
                "ceil",
                "trunc",
                "signbit",
                "isfinite",
                "nonzero",
                "argsort",
            )
        ], [
            (x == x).requires_grad,
            (x > 1).requires_grad,
            torch.zeros_like(x).requires_grad,
            torch.bincount(x.detach().long()).requires_grad,
            torch.histc(x.detach()).requires_grad,
            err(lambda: torch.histc(x).requires_grad),
            err(lambda: x.unique().requires_grad),
            err(lambda: x.multinomial(1).requires_grad),
            err(lambda: torch.bernoulli(x.sigmoid()).requires_grad),
            err(lambda: x.to(torch.int).requires_grad),
        ]

    @case
    def unused():
        x = torch.ones(4, requires_grad=True)
        _a, b = x.chunk(2)
        (b.sum() + 0).backward()
        return x.grad

    @case
    def param_resize():
        a = torch.nn.Parameter(torch.ones(2, 3))
        r = []
        for i in range(3):
            with torch.no_grad():
                a.set_((a + 1).view(2, 3) if i % 2 else torch.ones(3, 3))
            y = (a * 2).sum()
            y.backward()
            r.append(a.grad.shape)
            a.grad = None
        return r

    @case
    def cplxscalar():
        a = torch.zeros(1, requires_grad=True)
        b = a * (1 + 1j)
        return (
            err(lambda: b.backward()),
            err(lambda: b.backward(torch.ones(1, dtype=torch.complex64))),
            a.grad,
        )

    @case
    def free():
        x = torch.ones(2, requires_grad=True)
        y = x.exp()
        z = y * y
        z.sum().backward()
        return err(lambda: z.grad_fn._saved_self)

    @case
    def heaviside():
        x = torch.ones(2, requires_grad=True)
        y = torch.heaviside(x, x)
        return y.requires_grad, err(y.sum().backward)

    return found


@pytest.mark.parametrize("name", cases(rushlight))
def test_same(name):
    ours, theirs = outcome(cases(rushlight)[name]), outcome(cases(torch_itself)[name])
    assert ours == theirs
