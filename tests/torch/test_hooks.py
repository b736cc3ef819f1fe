"""Hooks on tensors, nodes, saved values and modules: the same results and refusals in both libraries."""

import pytest
import torch as torch_itself
from outcomes import collector, outcome

import rushlight


def cases(torch):
    found, case = collector()
    G = torch.autograd.graph
    L = lambda *s: torch.ones(*s, requires_grad=True)

    @case("node hook")
    def _():
        x = L(2)
        y = x * 2
        s = []
        y.grad_fn.register_hook(lambda gi, go: s.append((gi, go)))
        y.sum().backward()
        return s

    @case("node hook modify")
    def _():
        x = L(2)
        y = x * 2
        y.grad_fn.register_hook(lambda gi, go: (gi[0] * 10, None))
        y.sum().backward()
        return x.grad

    @case("node hook modify tensor")
    def _():
        x = L(2)
        y = x.exp()
        y.grad_fn.register_hook(lambda gi, go: gi[0] * 10)
        y.sum().backward()
        return x.grad

    @case("node hook bad count")
    def _():
        x = L(2)
        y = x * 2
        y.grad_fn.register_hook(lambda gi, go: (gi[0], gi[0], gi[0]))
        y.sum().backward()

    @case("node hook bad type")
    def _():
        x = L(2)
        y = x * 2
        y.grad_fn.register_hook(lambda gi, go: (3, None))
        y.sum().backward()

    @case("node hook bad size")
    def _():
        x = L(2)
        y = x * 2
        y.grad_fn.register_hook(lambda gi, go: (torch.ones(3), None))
        y.sum().backward()

    @case("prehook")
    def _():
        x = L(2)
        y = x * 2
        s = []
        y.grad_fn.register_prehook(lambda go: s.append(go))
        y.sum().backward()
        return s

    @case("prehook modify")
    def _():
        x = L(2)
        y = x * 2
        y.grad_fn.register_prehook(lambda go: (go[0] * 3,))
        y.sum().backward()
        return x.grad

    @case("prehook modify to None")
    def _():
        x = L(2)
        y = x * 2
        y.grad_fn.register_prehook(lambda go: (None,))
        y.sum().backward()
        return x.grad

    @case("prehook bad count")
    def _():
        x = L(2)
        y = x * 2
        y.grad_fn.register_prehook(lambda go: (go[0], go[0]))
        y.sum().backward()
        return x.grad

    @case("prehook bad type")
    def _():
        x = L(2)
        y = x * 2
        y.grad_fn.register_prehook(lambda go: (3,))
        y.sum().backward()
        return x.grad

    @case("order")
    def _():
        x = L(2)
        y = x * 2
        s = []
        y.grad_fn.register_prehook(lambda go: s.append("pre1"))
        y.register_hook(lambda g: s.append("t1"))
        y.grad_fn.register_hook(lambda gi, go: s.append("post1"))
        y.retain_grad()
        y.register_hook(lambda g: s.append("t2"))
        y.grad_fn.register_prehook(lambda go: s.append("pre2"))
        y.grad_fn.register_hook(lambda gi, go: s.append("post2"))
        x.register_hook(lambda g: s.append("x1"))
        x.register_post_accumulate_grad_hook(lambda p: s.append("pa"))
        x.register_hook(lambda g: s.append("x2"))
        y.sum().backward()
        return s

    @case("retain grad sees")
    def _():
        x = L(2)
        y = x * 2
        y.register_hook(lambda g: g * 2)
        y.retain_grad()
        y.register_hook(lambda g: g * 3)
        y.sum().backward()
        return y.grad, x.grad

    @case("retain twice hooks order")
    def _():
        x = L(2)
        y = x * 2
        y.retain_grad()
        y.register_hook(lambda g: g * 2)
        y.sum().backward()
        return y.grad, x.grad

    @case("acc node hooks")
    def _():
        x = L(2)
        y = x * 2
        s = []
        a = y.grad_fn.next_functions[0][0]
        a.register_prehook(lambda g: s.append(("pre", g)))
        a.register_hook(lambda gi, go: s.append(("post", gi, go)))
        y.sum().backward()
        return s, x.grad

    @case("acc node prehook modify")
    def _():
        x = L(2)
        y = x * 2
        a = y.grad_fn.next_functions[0][0]
        a.register_prehook(lambda g: (g[0] * 7,))
        y.sum().backward()
        return x.grad

    @case("acc node prehook with grad")
    def _():
        x = L(2)
        y = x * 2
        s = []
        a = y.grad_fn.next_functions[0][0]
        a.register_prehook(lambda g: s.append(1))
        a.register_hook(lambda gi, go: s.append(2))
        x.register_hook(lambda g: s.append(3))
        torch.autograd.grad(y.sum(), x)
        return s

    @case("leaf hook in grad")
    def _():
        x = L(2)
        x.register_hook(lambda g: g * 2)
        return torch.autograd.grad((x * 2).sum(), x)

    @case("tensor hook with grad")
    def _():
        x = L(2)
        y = x * 2
        y.register_hook(lambda g: g * 2)
        y.grad_fn.register_prehook(lambda g: (g[0] * 5,))
        return torch.autograd.grad((y * 2).sum(), y, retain_graph=True), torch.autograd.grad((y * 2).sum(), x)

    @case("remove")
    def _():
        x = L(2)
        h = x.register_hook(lambda g: g * 2)
        h.remove()
        (x * 2).sum().backward()
        y = x * 2
        h = y.register_hook(lambda g: g * 100)
        h.remove()
        h.remove()
        y.sum().backward()
        return x.grad

    @case("hook id remove inside")
    def _():
        x = L(2)
        s = []
        h = x.register_hook(lambda g: (s.append(1), h.remove())[0])
        (x * 2).sum().backward()
        (x * 2).sum().backward()
        return s

    @case("hook raise")
    def _():
        x = L(2)
        y = x * 2

        def bad(g):
            raise ValueError("bad")

        h = y.register_hook(bad)
        z = y.sum()
        try:
            z.backward()
        except ValueError as e:
            r = str(e)
        h.remove()
        z.backward()
        return r, x.grad

    @case("hook nonreq")
    def _():
        torch.ones(2).register_hook(lambda g: g)

    @case("hook returns nontensor")
    def _():
        x = L(2)
        x.register_hook(lambda g: 3)
        (x * 2).sum().backward()

    @case("hook changes size")
    def _():
        x = L(2)
        x.register_hook(lambda g: torch.ones(3))
        (x * 2).sum().backward()

    @case("hook changes dtype")
    def _():
        x = L(2)
        x.register_hook(lambda g: g.double())
        (x * 2).sum().backward()
        return x.grad.dtype

    @case("post acc nonleaf")
    def _():
        (L(2) * 2).register_post_accumulate_grad_hook(lambda p: None)

    @case("post acc nonreq")
    def _():
        torch.ones(2).register_post_accumulate_grad_hook(lambda p: None)

    @case("post acc return")
    def _():
        x = L(2)
        x.register_post_accumulate_grad_hook(lambda p: 3)
        (x * 2).sum().backward()

    @case("post acc clear")
    def _():
        x = L(2)
        s = []

        def h(p):
            s.append(p.grad.clone())
            p.grad = None

        x.register_post_accumulate_grad_hook(h)
        (x * 2).sum().backward()
        return s, x.grad

    @case("post acc grad()")
    def _():
        x = L(2)
        s = []
        x.register_post_accumulate_grad_hook(lambda p: s.append(1))
        torch.autograd.grad((x * 2).sum(), x)
        return s

    @case("multi all")
    def _():
        x, y, z = L(2), L(2), L(2)
        s = []
        h = G.register_multi_grad_hook((x, y, z), lambda gs: s.append(gs))
        (x * 2 + y * 3).sum().backward()
        n = len(s)
        (x * z * y).sum().backward()
        h.remove()
        (x * y).sum().backward()
        return n, s

    @case("multi any")
    def _():
        x, y = L(2), L(2)
        s = []
        h = G.register_multi_grad_hook((x, y), lambda g: s.append(g), mode="any")
        (x * 2 + y * 3).sum().backward()
        (x * y).sum().backward()
        h.remove()
        (x * y).sum().backward()
        return s

    @case("multi bad")
    def _():
        G.register_multi_grad_hook((L(2),), lambda g: 1, mode="foo")

    @case("multi repr")
    def _():
        h = G.register_multi_grad_hook((L(2),), lambda g: 1)
        return type(h).__name__, len(h.handles)

    @case("saved hooks")
    def _():
        s = []

        def p(x):
            s.append(("p", x.shape, x.requires_grad))
            return x.clone()

        def u(x):
            s.append(("u", x.shape))
            return x * 2

        x = L(2)
        with G.saved_tensors_hooks(p, u):
            y = x * x
        y.sum().backward()
        return s, x.grad

    @case("saved hooks exp")
    def _():
        s = []
        x = L(2)
        with G.saved_tensors_hooks(
            lambda x: (s.append(x.requires_grad), x.numpy())[1], lambda a: torch.from_numpy(a)
        ):
            y = x.exp()
        y.sum().backward()
        return s, x.grad

    @case("saved hooks double")
    def _():
        x = L(2)
        with G.saved_tensors_hooks(lambda x: x.clone(), lambda a: a):
            y = x.exp() * x * x
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        g.sum().backward()
        return x.grad

    @case("saved hooks not tensor")
    def _():
        x = L(2)
        with G.saved_tensors_hooks(lambda x: x, lambda a: 3):
            y = x * x
        y.sum().backward()

    @case("saved hooks inplace")
    def _():
        x = L(2)
        with G.saved_tensors_hooks(lambda x: x.mul_(2), lambda a: a):
            (x * x)

    @case("saved hooks raise")
    def _():
        x = L(2)
        with G.saved_tensors_hooks(lambda x: 1 / 0, lambda a: a):
            (x * x)

    @case("saved hooks nested")
    def _():
        x = L(2)
        s = []
        with G.saved_tensors_hooks(lambda x: s.append("a") or x, lambda a: a):
            with G.saved_tensors_hooks(lambda x: s.append("b") or x, lambda a: a):
                y = x.exp()
            y = y.sin()
        return s

    @case("save_on_cpu")
    def _():
        x = L(2)
        with G.save_on_cpu():
            y = x * x * x
        with G.save_on_cpu(pin_memory=False, device_type="cuda"):
            y = y * x
        y.sum().backward()
        return x.grad

    @case("disable")
    def _():
        with G.disable_saved_tensors_hooks("nope"), G.saved_tensors_hooks(lambda x: x, lambda x: x):
            pass

    @case("disable 2")
    def _():
        with G.saved_tensors_hooks(lambda x: x, lambda x: x), G.disable_saved_tensors_hooks("nope2"):
            pass

    @case("disable nested")
    def _():
        with G.disable_saved_tensors_hooks("one"):
            with G.disable_saved_tensors_hooks("two"):
                pass
            with G.saved_tensors_hooks(lambda x: x, lambda x: x):
                pass

    @case("disable as decorator")
    def _():
        @G.disable_saved_tensors_hooks("dec")
        def f():
            with G.saved_tensors_hooks(lambda x: x, lambda x: x):
                pass

        f()

    @case("disabled by what is no message")
    def _():
        with G.disable_saved_tensors_hooks(None):
            pass

    @case("raw saved")
    def _():
        x = L(2)
        y = x.exp()
        r = y.grad_fn._raw_saved_result
        r.register_hooks(lambda x: x * 2, lambda x: x)
        y.sum().backward()
        return x.grad

    @case("raw saved twice")
    def _():
        x = L(2)
        y = x.sin()
        r = y.grad_fn._raw_saved_self
        r.register_hooks(lambda x: x * 2, lambda x: x)
        r.register_hooks(lambda x: x * 2, lambda x: x)

    @case("raw saved freed")
    def _():
        x = L(2)
        y = x.sin()
        r = y.grad_fn._raw_saved_self
        y.sum().backward()
        r.register_hooks(lambda x: x * 2, lambda x: x)

    @case("raw saved bad")
    def _():
        x = L(2)
        y = x.sin()
        r = y.grad_fn._raw_saved_self
        r.register_hooks(3, 4)

    @case("saved self")
    def _():
        x = L(2)
        y = x.sin()
        a = y.grad_fn._saved_self is x
        y.sum().backward()
        return a, y.grad_fn._saved_self

    @case("module full")
    def _():
        m = torch.nn.Linear(2, 2)
        torch.nn.init.ones_(m.weight)
        s = []
        m.register_full_backward_hook(lambda m, gi, go: s.append((gi, go)))
        m.register_full_backward_pre_hook(lambda m, go: (go[0] * 2,))
        x = L(1, 2)
        m(x).sum().backward()
        return s, x.grad, m.weight.grad

    @case("module full nograd input")
    def _():
        m = torch.nn.Linear(2, 2)
        torch.nn.init.ones_(m.weight)
        s = []
        m.register_full_backward_hook(lambda m, gi, go: s.append((gi, go)))
        m(torch.ones(1, 2)).sum().backward()
        return s

    @case("module full modify")
    def _():
        m = torch.nn.Linear(2, 2)
        torch.nn.init.ones_(m.weight)
        m.register_full_backward_hook(lambda m, gi, go: (gi[0] * 10,))
        x = L(1, 2)
        m(x).sum().backward()
        return x.grad

    @case("module full bad")
    def _():
        m = torch.nn.Linear(2, 2)
        m.register_full_backward_hook(lambda m, gi, go: (gi[0] * 10, 3))
        m(L(1, 2)).sum().backward()

    @case("module inplace")
    def _():
        m = torch.nn.ReLU(inplace=True)
        m.register_full_backward_hook(lambda m, gi, go: None)
        m(L(2) * 2)

    @case("module inplace after")
    def _():
        m = torch.nn.ReLU()
        m.register_full_backward_hook(lambda m, gi, go: None)
        y = m(L(2) * 2)
        y.add_(1)

    @case("global")
    def _():
        s = []
        h = torch.nn.modules.module.register_module_full_backward_hook(
            lambda m, gi, go: s.append(type(m).__name__)
        )
        torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())(L(1, 2)).sum().backward()
        h.remove()
        return s

    @case("call node")
    def _():
        x = L(2)
        y = x * 3
        return y.grad_fn(torch.ones(2))

    @case("call node pre")
    def _():
        x = L(2)
        y = x * 3
        y.grad_fn.register_prehook(lambda g: (g[0] * 2,))
        y.grad_fn.register_hook(lambda gi, go: (gi[0] * 10, None))
        return y.grad_fn(torch.ones(2))

    @case("inplace hooks")
    def _():
        x = L(2)
        y = x * 2
        s = []
        y.register_hook(lambda g: s.append("before"))
        y.mul_(3)
        y.register_hook(lambda g: s.append("after"))
        y.sum().backward()
        return s

    @case("retain inplace")
    def _():
        x = L(2)
        y = x * 2
        y.retain_grad()
        y.mul_(3)
        a = y.retains_grad
        y.sum().backward()
        return a, y.grad, y.retains_grad

    @case("retain view inplace")
    def _():
        x = L(2, 2)
        y = x * 2
        v = y[0]
        y.retain_grad()
        v.mul_(3)
        y.sum().backward()
        return y.grad

    @case("backward hook dict")
    def _():
        x = L(2)
        x.register_hook(lambda g: g)
        return len(x._backward_hooks), (x * 2)._backward_hooks, x._post_accumulate_grad_hooks

    @case("hooks on the nodes around a module")
    def _():
        seen = []

        class Two(torch.nn.Module):
            def forward(self, x):
                a, b = x * 2, x * 3
                b.register_hook(lambda grad: seen.append(("inside", grad)))
                return a, b

        for used in (0, 1):
            module = Two()
            module.register_full_backward_hook(lambda m, gi, go: seen.append(("module", gi, go)))
            module.register_full_backward_pre_hook(lambda m, go: seen.append(("module before", go)))
            outputs = module(L(2))
            node = outputs[0].grad_fn
            node.register_prehook(lambda go: seen.append(("before", go)))
            node.register_hook(lambda gi, go: seen.append(("after", gi, go)))
            outputs[used].sum().backward()
        return seen

    return found


@pytest.mark.parametrize("name", cases(rushlight))
def test_as_in_torch(name):
    expected = outcome(cases(torch_itself)[name])
    assert outcome(cases(rushlight)[name]) == expected
