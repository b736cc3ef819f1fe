"""The engine under stress, and the modes: the same results and refusals in both libraries."""

import contextlib
import threading

import pytest
import torch as torch_itself
from outcomes import collector, outcome

import rushlight


def cases(torch):
    found, case = collector()
    L = lambda *s: torch.ones(*s, requires_grad=True)

    @case("reentrant in hook")
    def _():
        x = L(2)
        y = x * 2
        s = []

        def h(g):
            z = L(2)
            (z * 3).sum().backward()
            s.append(z.grad)
            return g * 2

        y.register_hook(h)
        y.sum().backward()
        return x.grad, s

    @case("reentrant same graph")
    def _():
        x = L(2)
        a = x**2
        b = a.sum()
        y = x * 2

        def h(g):
            b.backward(retain_graph=True)
            return g

        y.register_hook(h)
        y.sum().backward()
        return x.grad

    @case("reentrant deep")
    def _():
        class R(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                with torch.enable_grad():
                    ctx.x = x.detach().requires_grad_()
                    ctx.d = int(ctx.x.sum() * 0)
                return x * 1

            @staticmethod
            def backward(ctx, g):
                with torch.enable_grad():
                    (ctx.x**2).sum().backward()
                return g

        x = L(2)
        y = x
        for _ in range(20):
            y = R.apply(y)
        y.sum().backward()
        return x.grad

    @case("threads separate")
    def _():
        out = [None] * 8

        def w(i):
            for _ in range(50):
                x = torch.full((3,), float(i), requires_grad=True)
                (x**2).sin().sum().backward()
            out[i] = x.grad

        ts = [threading.Thread(target=w, args=(i,)) for i in range(8)]
        [t.start() for t in ts]
        [t.join() for t in ts]
        return [round(float(o[0]), 4) for o in out]

    @case("threads shared leaf")
    def _():
        x = L(4)

        def w():
            for _ in range(100):
                (x * 2).sum().backward()

        ts = [threading.Thread(target=w) for i in range(4)]
        [t.start() for t in ts]
        [t.join() for t in ts]
        return x.grad

    @case("threads shared graph")
    def _():
        x = L(4)
        y = (x * 2).exp()
        z = y.sum()

        def w():
            for _ in range(20):
                z.backward(retain_graph=True)

        ts = [threading.Thread(target=w) for i in range(4)]
        [t.start() for t in ts]
        [t.join() for t in ts]
        return (x.grad / (2 * y)).detach().round()

    @case("thread local modes")
    def _():
        r = []
        with torch.no_grad():
            t = threading.Thread(target=lambda: r.append(torch.is_grad_enabled()))
            t.start()
            t.join()
        return r

    @case("deep")
    def _():
        x = L(1)
        y = x
        for _ in range(20_000):
            y = y + 1
        y.backward()
        del y
        return x.grad

    @case("deep del")
    def _():
        x = L(1)
        y = x
        for _ in range(40_000):
            y = y * 1
        del y
        return 1

    @case("wide")
    def _():
        x = L(1)
        torch.stack([x * i for i in range(3000)]).sum().backward()
        return x.grad

    @case("diamond")
    def _():
        x = L(1)
        y = x
        for _ in range(60):
            y = y + y
        y.backward()
        return float(x.grad[0]) == 2.0**60

    @case("exception state")
    def _():
        x = L(2)
        y = x * 2

        def h(g):
            raise RuntimeError("boom")

        hd = y.register_hook(h)
        for _ in range(3):
            with contextlib.suppress(RuntimeError):
                y.sum().backward(retain_graph=True)
        a = torch.is_grad_enabled()
        hd.remove()
        y.sum().backward()
        return a, x.grad

    @case("keyboard interrupt")
    def _():
        x = L(2)
        y = x * 2

        def h(g):
            raise KeyboardInterrupt

        hd = y.register_hook(h)
        try:
            y.sum().backward(retain_graph=True)
        except KeyboardInterrupt:
            r = "ki"
        hd.remove()
        y.sum().backward()
        return r, x.grad

    @case("system exit")
    def _():
        x = L(2)
        y = x * 2

        def h(g):
            raise SystemExit(3)

        y.register_hook(h)
        try:
            y.sum().backward()
        except SystemExit as e:
            return e.code

    @case("backward in no_grad")
    def _():
        x = L(2)
        y = (x * 2).sum()
        with torch.no_grad():
            y.backward()
        return x.grad

    @case("del in hook")
    def _():
        x = L(2)
        y = x * 2
        z = y.exp()
        box = [y, z]
        z.register_hook(lambda g: box.clear())
        z.sum().backward()
        return x.grad

    @case("modify grad in post acc")
    def _():
        x = L(2)
        x.register_post_accumulate_grad_hook(lambda p: p.grad.mul_(10))
        (x * 2).sum().backward()
        (x * 2).sum().backward()
        return x.grad

    @case("same root twice")
    def _():
        x = L(2)
        y = (x * 2).sum()
        torch.autograd.backward([y, y])
        return x.grad

    @case("root is inner")
    def _():
        x = L(2)
        y = x * 2
        z = (y * 3).sum()
        torch.autograd.backward([z, y.sum()])
        return x.grad

    @case("root is leaf and nonleaf")
    def _():
        x = L(2)
        y = (x * 2).sum()
        torch.autograd.backward([y, x], [None, torch.ones(2)])
        return x.grad

    @case("grad of same inputs")
    def _():
        x = L(2)
        return torch.autograd.grad((x * 2).sum(), [x, x])

    @case("grad inner and leaf")
    def _():
        x = L(2)
        y = x * 2
        return torch.autograd.grad((y * 3).sum(), [y, x])

    @case("set multithreading")
    def _():
        with torch.autograd.set_multithreading_enabled(False):
            a = torch.autograd.is_multithreading_enabled()
        return a, torch.autograd.is_multithreading_enabled()

    @case("modes repr")
    def _():
        return (
            torch.no_grad()(lambda: torch.is_grad_enabled())(),
            torch.inference_mode()(lambda: torch.is_inference_mode_enabled())(),
            torch.set_grad_enabled(False)(lambda: torch.is_grad_enabled())(),
            torch.is_grad_enabled(),
        )

    @case("inference nested")
    def _():
        with torch.inference_mode():
            a = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
            with torch.inference_mode(False):
                b = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
            with torch.enable_grad():
                c = torch.is_grad_enabled()
                d = (L(1) * 2).requires_grad
        return a, b, c, d, torch.is_grad_enabled()

    @case("no_grad inference False")
    def _():
        with torch.no_grad(), torch.inference_mode(False):
            return torch.is_grad_enabled()

    def inference(nm, f):
        @case("inference " + nm)
        def _():
            with torch.inference_mode():
                x = torch.ones(2)
            return f(x)

        @case("inference inside " + nm)
        def _():
            with torch.inference_mode():
                x = torch.ones(2)
                return f(x)

    for nm, f in {
        "req": lambda x: x.requires_grad_(),
        "view": lambda x: (x.view(-1).is_inference(), x.view(-1)._is_view()),
        "mul": lambda x: (x * 2).is_inference(),
        "clone": lambda x: x.clone().is_inference(),
        "inplace": lambda x: x.add_(1),
        "version": lambda x: x._version,
        "with grad": lambda x: L(2) * x,
        "add grad": lambda x: (L(2) + x).requires_grad,
        "set item": lambda x: x.__setitem__(0, 1),
        "detach": lambda x: x.detach().is_inference(),
        "detach_": lambda x: x.detach_(),
        "out": lambda x: torch.add(torch.ones(2), 1, out=x),
        "into": lambda x: torch.ones(2).add_(x).is_inference(),
        "copy into grad": lambda x: L(2).clone().copy_(x).requires_grad,
        "deepcopy": lambda x: __import__("copy").deepcopy(x).is_inference(),
        "save": lambda x: (L(2) * x).sum().backward(),
        "data": lambda x: x.data.is_inference(),
        "index": lambda x: x[0].is_inference(),
        "numpy": lambda x: x.numpy().shape,
        "nograd inplace": lambda x: torch.no_grad()(lambda: x.add_(1))(),
        "retain": lambda x: x.retain_grad(),
        "grad": lambda x: x.grad,
        "leaf": lambda x: (x.is_leaf, x.requires_grad),
    }.items():
        inference(nm, f)

    @case("inf normal inplace inside")
    def _():
        x = torch.ones(2)
        with torch.inference_mode():
            x.add_(1)
            return x._version, x.is_inference()

    @case("inf grad tensor inside")
    def _():
        x = L(2)
        with torch.inference_mode():
            y = x * 2
            return y.requires_grad, y.is_inference(), x.view(-1).requires_grad

    @case("inf leaf inplace inside")
    def _():
        x = L(2)
        with torch.inference_mode():
            x.add_(1)
            return x

    return found


@pytest.mark.parametrize("name", cases(rushlight))
def test_as_in_torch(name):
    expected = outcome(cases(torch_itself)[name])
    assert outcome(cases(rushlight)[name]) == expected
