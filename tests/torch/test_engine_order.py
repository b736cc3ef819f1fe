"""What grad() is given where hooks are at work, what backward(inputs=...) runs, and the order in which leaves
are served."""

import pytest
import torch as torch_itself
from outcomes import collector, function_of, outcome, passing_on

import rushlight


def cases(torch):
    found, case = collector()
    F = torch.nn.functional

    def tripled(m):
        return (m * 3).sum()

    @case("hook on a tensor that goes on")
    def _():
        x = torch.ones(2, requires_grad=True)
        m = x * 2
        m.register_hook(lambda g: g * 10)
        loss = tripled(m)
        return [
            torch.autograd.grad(loss, asked, retain_graph=True)
            for asked in ([m, x], [m], [m, m, x, x], [x], [x, m])
        ]

    @case("retained")
    def _():
        x = torch.ones(2, requires_grad=True)
        m = x * 2
        m.retain_grad()
        m.register_hook(lambda g: g * 10)
        loss = tripled(m)
        seen = [torch.autograd.grad(loss, [m, x], retain_graph=True), m.grad.clone()]
        loss.backward(inputs=[m], retain_graph=True)
        seen.append(m.grad.clone())
        loss.backward()
        return seen, m.grad, x.grad

    @case("hooks of the node")
    def _():
        x = torch.ones(2, requires_grad=True)
        m = x * 2
        m.grad_fn.register_prehook(lambda g: (g[0] * 10,))
        m.grad_fn.register_hook(lambda grads, _: (grads[0] * 7, *grads[1:]))
        loss = tripled(m)
        return [torch.autograd.grad(loss, asked, retain_graph=True) for asked in ([m, x], [m], [x])]

    @case("hook of a leaf asked for twice")
    def _():
        x, calls = torch.ones(2, requires_grad=True), []
        x.register_hook(lambda g: calls.append(g.tolist()) or g * 10)
        return torch.autograd.grad(tripled(x), [x, x]), calls

    @case("recorded")
    def _():
        x = torch.ones(2, requires_grad=True)
        m = x * x
        m.register_hook(lambda g: g * m)
        return [g.requires_grad for g in torch.autograd.grad((m * m).sum(), [m, x], create_graph=True)]

    def order(*sizes):
        """Leaves of these sizes, and the list of those that have been served."""
        served, leaves = [], []
        for i, size in enumerate(sizes):
            t = torch.ones(size, requires_grad=True)
            t.register_hook(lambda g, i=i: served.append(i))
            leaves.append(t)
        return leaves, served

    three = [2, 2, 2]
    programs = {
        "a * b + c": (lambda a, b, c: a * b + c, three),
        "a * b * c": (lambda a, b, c: a * b * c, three),
        "c + a * b": (lambda a, b, c: c + a * b, three),
        "chains": (lambda a, b, c: a.exp() * b.sin() * c, three),
        "stack": (lambda a, b, c: torch.stack([c, a, b]), three),
        "cat": (lambda *t: torch.cat(t[::-1]), [2] * 9),
        "where": (lambda a, b, c: torch.where(a > 0, b, c), three),
        "addcmul": (torch.addcmul, three),
        "lerp": (torch.lerp, three),
        "div": (torch.div, [2, 2]),
        "pow": (torch.pow, [2, 2]),
        "mse_loss": (F.mse_loss, [2, 2]),
        "linear": (F.linear, [(2, 3), (2, 3), 2]),
        "linear without bias": (F.linear, [(4, 2, 3), (2, 3)]),
        "linear of a result": (lambda x, w, b: F.linear(x * 2, w, b), [(2, 3), (2, 3), 2]),
        "linear of a batch of results": (lambda x, w, b: F.linear(x * 2, w, b), [(4, 2, 3), (2, 3), 2]),
        "mm": (torch.mm, [(3, 3), (3, 3)]),
        "addmm": (torch.addmm, [3, (3, 3), (3, 3)]),
        "conv2d": (F.conv2d, [(1, 2, 5, 5), (3, 2, 3, 3), 3]),
        "layer_norm": (lambda x, w, b: F.layer_norm(x, (5,), w, b), [(2, 5), 5, 5]),
        "group_norm": (lambda x, w, b: F.group_norm(x, 2, w, b), [(1, 2, 5), 2, 2]),
    }
    for name, (program, sizes) in programs.items():

        @case(f"order of {name}")
        def _(program=program, sizes=sizes):
            leaves, served = order(*sizes)
            program(*leaves).sum().backward()
            return served

    def said(call):
        try:
            return call()
        except (RuntimeError, ValueError) as error:
            return str(error).partition(" (")[0].partition(":")[0]

    operations = {
        "exp": torch.exp,
        "product": lambda a: a * a,
        "scaled": lambda a: a * 2,
        "sum": torch.sum,
        "matrix product": lambda a: a.view(1, 3) @ a.view(3, 1),
        "written": lambda a: (a * 1).mul_(3),
        "view": lambda a: (a * a)[:2],
        "cat": lambda a: torch.cat([a, a * a]),
        "linear": lambda a: F.linear(a.view(1, 3), a.view(1, 3)),
    }
    for name, operation in operations.items():

        @case(f"inputs= runs and frees the node of what it names: {name}")
        def _(operation=operation):
            seen = []
            for first, asked in ((True, "m"), (False, "m"), (False, "mx")):
                x = torch.ones(3, requires_grad=True)
                m = operation(x)
                loss = (m * 2).sum()
                inputs = [{"m": m, "x": x}[letter] for letter in asked]
                calls = [lambda m=m: m.sum().backward(), lambda f=loss.backward, i=inputs: f(inputs=i)]
                seen.append([said(call) for call in (calls if first else calls[::-1])])
            return seen

    @case("inputs= reads what its node saved")
    def _():
        unpacked, seen = [], []
        x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: unpacked.append(1) or t):
            m = x.exp() * y
        seen.append(said(lambda: (m * 2).sum().backward(inputs=[m], retain_graph=True)))
        seen.append(said(lambda: m.sum().backward(inputs=[y], retain_graph=True)))
        n = x * y
        with torch.no_grad():
            y.add_(1)
        seen.append(said(lambda: n.sum().backward(inputs=[y])))
        return seen, len(unpacked), m.grad, y.grad

    @case("retained through a Function that writes")
    def _():
        def forward(ctx, x):
            ctx.mark_dirty(x.mul_(3))
            return x

        Triples = function_of(torch, forward, lambda ctx, g: g * 3, name="Triples")

        seen = []
        for whole in (True, False):
            x = torch.ones(2, requires_grad=True)
            m = x * 2
            m.retain_grad()
            Triples.apply(m if whole else m[:1])
            m.sum().backward()
            seen.append((m.retains_grad, m.grad, x.grad))
        return seen

    @case("inputs= asks the Function that made the tensor")
    def _():
        called = []

        @passing_on(torch)
        def Fails(ctx, g):
            called.append(g.tolist())
            raise ValueError("no gradient")

        m = Fails.apply(torch.ones(2, requires_grad=True))
        return said(lambda: (m * 2).sum().backward(inputs=[m])), called, m.grad

    return found


@pytest.mark.parametrize("name", cases(rushlight))
def test_same(name):
    assert outcome(cases(rushlight)[name]) == outcome(cases(torch_itself)[name])
