"""Tensors that are given other memory (`x.data = ...`, `set_`) while a graph remembers them."""

import warnings

import pytest
import torch as torch_itself
from outcomes import collector, err, outcome

import rushlight


def cases(torch):
    found, case = collector()

    def leaf(*size, value=1.0):
        return torch.full(size, value, requires_grad=True)

    def moved(before, after, dtype=torch.float32, grad=None, **kwargs):
        x = leaf(*before)
        x.grad = None if grad is None else torch.ones(grad)
        y = (x * 2).sum()
        x.data = torch.ones(after, dtype=dtype)
        with warnings.catch_warnings():  # create_graph is warned of once per process
            warnings.simplefilter("ignore")
            return err(y.backward, **kwargs), x.grad

    for before, after in (((4,), 600), ((600,), 4), ((5,), 1), ((5,), (5, 5)), ((5, 5), 5)):
        case(f"{before} becomes {after}")(lambda b=before, a=after: moved(b, a))
        case(f"{before} becomes {after}, recorded")(lambda b=before, a=after: moved(b, a, create_graph=True))
        case(f"{before} becomes {after} with a gradient")(lambda b=before, a=after: moved(b, a, grad=b))
    case("double")(lambda: moved((4,), 4, torch.float64))
    case("double of other shape")(lambda: moved((4,), 7, torch.float64))

    @case("edge of a leaf")
    def _():
        x = leaf(4)
        edge = torch.autograd.graph.get_gradient_edge(x)
        x.data = torch.ones(600)
        grads = [torch.ones(n) for n in (4, 600)]
        return [err(torch.autograd.backward, edge, g) for g in grads], x.grad

    @case("graph before and after")
    def _():
        x = leaf(4)
        y = (x * 2).sum()
        x.data = torch.ones(7)
        z = (x * 3).sum()
        return err(z.backward), err(y.backward), x.grad, err(torch.autograd.grad, y * 1, x)

    for kind in ("tensor", "prehook", "middle"):

        @case(f"moved in a hook: {kind}")
        def _(kind=kind):
            x = leaf(4)
            m = x * 2

            def hook(*_):
                x.data = torch.ones(600)

            if kind == "tensor":
                x.register_hook(hook)
            elif kind == "middle":
                m.register_hook(hook)
            else:
                m.grad_fn.next_functions[0][0].register_prehook(hook)
            return err((m * 2).sum().backward), x.grad

    @case("accumulator called with anything")
    def _():
        x = leaf(4)
        y = x * 2
        node = y.grad_fn.next_functions[0][0]
        seen = []
        for start in (None, torch.ones(4)):
            for shape in (9, 1, (2, 4)):
                x.grad = start
                seen.append((err(node, torch.ones(shape)), x.grad))
        return seen

    @case("set_ in between")
    def _():
        x = leaf(4)
        y, z = (x * 2).sum(), (x * x).sum()
        with torch.no_grad():
            x.set_(torch.ones(600))
        return err(y.backward), x.grad, err(z.backward)

    @case("retained and asked for")
    def _():
        x = leaf(4)
        m = x * 2
        m.retain_grad()
        y = (m * 2).sum()
        y.backward(retain_graph=True)
        m.data = torch.ones(600)
        return err(y.backward), m.grad, err(y.backward, inputs=[m]), m.grad

    @case("what was saved follows")
    def _():
        x, c, w = leaf(3), torch.ones(3), leaf(3, value=2.0)
        m, i = x * 2, torch.tensor([0, 1, 2])
        y = (m * m + x * c + x * w + w[i] * x).sum()
        m.data, c.data, w.data = torch.full((3,), 5.0), torch.full((3,), 7.0), torch.full((3,), 11.0)
        i.data = torch.tensor([0, 0, 0])
        y.backward()
        return x.grad, w.grad

    @case("an output that was saved stays")
    def _():
        x = leaf(3)
        m = x.exp()
        m.data = torch.full((3,), 5.0)
        (m * m).sum().backward()
        return x.grad

    @case("gone but saved")
    def _():
        x = leaf(3)
        m = x * 2
        z = m * m
        m.data = torch.full((3,), 5.0)
        shown = z.grad_fn._saved_self, z.grad_fn._saved_self is m
        del m
        z.sum().backward()
        return shown, x.grad

    @case("linear keeps its weight")
    def _():
        x, lin = leaf(2, 3), torch.nn.Linear(3, 2)
        with torch.no_grad():
            lin.weight.fill_(1.0)
        m = x * 1
        y = lin(m).sum()
        lin.weight.data, m.data = torch.full((2, 3), 5.0), torch.full((2, 3), 7.0)
        y.backward()
        return x.grad, lin.weight.grad

    @case("saved by a Function")
    def _():
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a, b):
                ctx.save_for_backward(a, b)
                return a * b

            @staticmethod
            def backward(ctx, g):
                a, b = ctx.saved_tensors
                return g * b, g * a

        x, c = leaf(3), torch.ones(3)
        m = x * 2
        z = F.apply(x, m) + F.apply(c, m)
        m.data, c.data, x.data = (torch.full((3,), v) for v in (5.0, 6.0, 7.0))
        z.sum().backward()
        return x.grad

    @case("versions are its own")
    def _():
        x, v = torch.ones(3), None
        x.add_(1)
        v = x[:2]
        a = torch.ones(3)
        a.add_(1).add_(1).add_(1)
        seen = []

        def look(*more):
            seen.append([t._version for t in (x, v, a, *more)])

        x.data = a
        look()
        x.add_(1)
        look()
        a.add_(1)
        look()
        v.add_(1)
        look()
        w, d = x[:1], x.detach()
        w.add_(1)
        look(w, d)
        d.add_(1)
        look(w, d)
        x.data.add_(1)
        look(w, d)
        b = torch.ones(3).add_(1)
        x.set_(b)
        x.add_(1)
        look(b)
        b.add_(1)
        look(b)
        return seen

    @case("written after it moved")
    def _():
        x, a = leaf(3), torch.ones(3)
        y = (x * x).sum()
        x.data = a
        with torch.no_grad():
            x.add_(1)
        m = leaf(3) * 2
        z = m * m
        m.data = a
        with torch.no_grad():
            m.add_(1)
        return err(y.backward), err(z.sum().backward)

    @case("written by the other")
    def _():
        x, a = leaf(3), torch.ones(3)
        x.data = a
        y = (x * x).sum()
        a.add_(1)
        return err(y.backward), x.grad

    @case("needs a gradient since, or no more")
    def _():
        x, c, d = leaf(2), torch.arange(2.0), leaf(2)
        y = (x * c + x * d).sum()
        c.requires_grad_()
        d.requires_grad_(False)
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        seen = g.requires_grad, torch.autograd.grad(g.sum(), c)
        y.backward()
        return seen, d.grad, x.grad

    @case("a leaf that became a result")
    def _():
        x = leaf(2)
        y = (x * 2).sum()
        x.requires_grad_(False)
        x.mul_(leaf(2))
        return err(y.backward)

    @case("saved itself")
    def _():
        x, c = leaf(2), torch.ones(2)
        y = x * c
        return y.grad_fn._saved_other is c, (x * x).grad_fn._saved_self is x

    return found


@pytest.mark.parametrize("name", cases(rushlight))
def test_same(name):
    assert outcome(cases(rushlight)[name]) == outcome(cases(torch_itself)[name])
