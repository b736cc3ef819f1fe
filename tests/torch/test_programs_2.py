"""More small programs around gradients: the same results and refusals in both libraries."""

import gc
import threading
import weakref

import pytest
import torch as torch_itself
import torch.utils.checkpoint
from outcomes import collector, function_of, outcome, passing_on

import rushlight


def cases(torch):
    found, case = collector()
    checkpoint = torch.utils.checkpoint.checkpoint
    Function = torch.autograd.Function
    G = torch.autograd.graph
    L = lambda *s: torch.ones(*s, requires_grad=True)
    passing = passing_on(torch)

    @case("custom cycle")
    def _():
        class F(Function):
            @staticmethod
            def forward(ctx, x, meta):
                meta["a"] = 3
                ctx.meta = meta
                return x**2

            @staticmethod
            def backward(ctx, g):
                return g * 2, None

        def get():
            x = L(1)
            m = {}
            out = F.apply(x, m)
            tmp = out.grad_fn
            return x, tmp

        x, fn = get()
        r = weakref.ref(fn)
        del fn, x
        gc.collect()
        return r() is None

    @case("no early free ")
    def _():
        class Double(Function):
            @staticmethod
            def forward(ctx, x):
                y = x**2
                ctx.save_for_backward(x, y)
                return y

            @staticmethod
            def backward(ctx, g):
                x, _ = ctx.saved_tensors
                return g * 2 * x

        class Double2(Double):
            @staticmethod
            def backward(ctx, g):
                x, y = ctx.saved_tensors
                return g * 2 * y / x

        x = torch.tensor(2.0, requires_grad=True)
        (g,) = torch.autograd.grad(Double2.apply(x), x, create_graph=True)
        (g2,) = torch.autograd.grad(g, x)
        return g, g2

    @case("function returns undefined")
    def _():
        MyFunction = function_of(torch, lambda ctx, x: x * 2, lambda ctx, g: None, name="MyFunction")

        x = L(1)
        MyFunction.apply(x).backward()
        a = x.grad
        MyFunction.apply(x**2).backward()
        b = x.grad
        MyFunction.apply(x).sum().backward()
        return a, b, x.grad

    @case("autograd.grad undefined")
    def _():
        MyFunction = function_of(torch, lambda ctx, x: x * 2, lambda ctx, g: None, name="MyFunction")

        x = L(1)
        return torch.autograd.grad(MyFunction.apply(x), x, allow_unused=True)

    @case("materialize undefined none")
    def _():
        @passing
        def Id(ctx, g):
            return g

        Undef = function_of(torch, lambda ctx, x: x.clone(), lambda ctx, g: None, name="Undef")

        x = L(1)
        y = Id.apply(x)
        Undef.apply(y).backward()
        return x.grad

    @case("mark non diff none")
    def _():
        class F(Function):
            @staticmethod
            def forward(ctx, x):
                r = x.clone()
                ctx.mark_non_differentiable(r)
                return x.clone(), r

            @staticmethod
            def backward(ctx, a, b):
                return a

        x = L(2)
        a, b = F.apply(x * 1)
        return b.requires_grad, b.grad_fn, a.requires_grad

    @case("mark nondiff mixed grads")
    def _():
        s = []

        class F(Function):
            @staticmethod
            def forward(ctx, x):
                a = x + 1
                b = x + 2
                ctx.mark_non_differentiable(a)
                return a, b

            @staticmethod
            def backward(ctx, ga, gb):
                s.append((ga, gb))
                return gb

        x = L(2)
        a, b = F.apply(x)
        b.sum().backward()
        return a.requires_grad, s

    @case("all nondiff")
    def _():
        class F(Function):
            @staticmethod
            def forward(ctx, x):
                a = x + 1
                ctx.mark_non_differentiable(a)
                return a

            @staticmethod
            def backward(ctx, ga):
                return ga

        y = F.apply(L(2))
        return y.requires_grad, y.grad_fn

    @case("return view nondiff")
    def _():
        class F(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.mark_non_differentiable(x.view(-1))
                return x.view(-1)

            @staticmethod
            def backward(ctx, ga):
                return ga

        y = F.apply(L(2))
        return y.requires_grad

    @case("inplace nonleaf view custom")
    def _():
        class F(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.mark_dirty(x)
                return x.add_(1)

            @staticmethod
            def backward(ctx, g):
                return g

        x = L(2, 2)
        y = x * 2
        z = y[0]
        F.apply(z)
        y.sum().backward()
        return x.grad, z.grad_fn.name()

    @case("custom inplace twice")
    def _():
        class F(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.mark_dirty(x)
                return x.mul_(2)

            @staticmethod
            def backward(ctx, g):
                return g * 2

        x = L(2)
        y = x.clone()
        F.apply(F.apply(y))
        y.sum().backward()
        return x.grad, y._version

    @case("save output inplace")
    def _():
        class F(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.mark_dirty(x)
                x.exp_()
                ctx.save_for_backward(x)
                return x

            @staticmethod
            def backward(ctx, g):
                return g * ctx.saved_tensors[0]

        x = L(2)
        y = x.clone()
        F.apply(y)
        y.sum().backward()
        return x.grad

    @case("saved tensor later modified")
    def _():
        class F(Function):
            @staticmethod
            def forward(ctx, x):
                y = x * 2
                ctx.save_for_backward(y)
                return y

            @staticmethod
            def backward(ctx, g):
                return g * ctx.saved_tensors[0]

        x = L(2)
        y = F.apply(x)
        y.mul_(2)
        y.sum().backward()

    @case("hook on custom node")
    def _():
        F = function_of(torch, lambda ctx, x, y: (x * 2, y * 3), lambda ctx, a, b: (a * 2, b * 3))

        x, y = L(2), L(2)
        a, _b = F.apply(x, y)
        s = []
        a.grad_fn.register_hook(lambda gi, go: s.append((gi, go)))
        a.grad_fn.register_prehook(lambda go: s.append(go))
        a.register_hook(lambda g: s.append("t"))
        a.sum().backward()
        return s

    @case("backward with inputs nonleaf")
    def _():
        x = L(2)
        y = x * 2
        z = (y * 3).sum()
        z.backward(inputs=[y])
        return x.grad, y.grad

    @case("backward inputs leaf and non")
    def _():
        x = L(2)
        w = L(2)
        y = x * w
        y.sum().backward(inputs=[x])
        return x.grad, w.grad

    @case("backward inputs accumulate")
    def _():
        x = L(2)
        y = x * 2
        y.sum().backward(inputs=[y], retain_graph=True)
        (y * 2).sum().backward(inputs=[y])
        return y.grad

    @case("grad allow unused in chain")
    def _():
        x = L(2)
        y = L(2)
        return torch.autograd.grad(x.sum() * 2, (x, y), allow_unused=True)

    @case("input buffer accum")
    def _():
        x = L(2, 2)
        g1 = torch.ones(2, 2)
        y = x + x
        y.backward(g1)
        return x.grad, g1

    @case("record function")
    def _():
        with torch.profiler.record_function("a"):
            return 1

    @case("select sum")
    def _():
        x = torch.ones(10, requires_grad=True)
        x.select(0, 1).sum().backward()
        return x.grad

    @case("diagonal expanded v")
    def _():
        v = torch.ones([])
        x = L(2, 2)
        (x.diagonal() * v).sum().backward()
        return x.grad

    @case("reentrant priority")
    def _():
        order = []

        class A(Function):
            @staticmethod
            def forward(ctx, x):
                return x

            @staticmethod
            def backward(ctx, x):
                order.append("A")
                return x

        class R(Function):
            @staticmethod
            def forward(ctx, x):
                with torch.enable_grad():
                    ctx.x = x.detach().requires_grad_()
                    ctx.x = ctx.x - 1
                return ctx.x.detach()

            @staticmethod
            def backward(ctx, x):
                order.append("R")
                if ctx.x < 0:
                    return x
                with torch.enable_grad():
                    R.apply(ctx.x).backward()
                return x

        a = A.apply(torch.tensor(6.0, requires_grad=True))
        b = R.apply(torch.tensor(9.0, requires_grad=True))
        (a * b).backward()
        return len(order), order[-1]

    @case("checkpoint in function")
    def _():
        x = L(2)

        def f(x):
            return checkpoint(lambda z: z.exp(), x * 2, use_reentrant=True).sin()

        checkpoint(f, x, use_reentrant=False).sum().backward()
        return x.grad

    @case("checkpoint many")
    def _():
        x = L(2)
        y = x
        for _ in range(10):
            y = checkpoint(lambda z: z.sin(), y, use_reentrant=False)
        y.sum().backward()
        return x.grad

    @case("checkpoint create graph nested")
    def _():
        x = L(2)
        y = checkpoint(
            lambda z: checkpoint(lambda q: q**3, z * 2, use_reentrant=False), x, use_reentrant=False
        )
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        g.sum().backward()
        return x.grad

    @case("checkpoint dropout")
    def _():
        torch.manual_seed(3)
        m = torch.nn.Dropout(0.5)
        x = L(8)
        y = checkpoint(m, x, use_reentrant=False)
        y.sum().backward()
        return bool(((y != 0) == (x.grad != 0)).all())

    @case("multi grad hook thread")
    def _():
        x, y = L(2), L(2)
        s = []
        G.register_multi_grad_hook(
            (x, y), lambda g: s.append(threading.current_thread() is threading.main_thread())
        )
        (x * y).sum().backward()
        return s

    @case("multi grad hook nonleaf")
    def _():
        x = L(2)
        a = x * 2
        b = x * 3
        s = []
        G.register_multi_grad_hook((a, b), lambda g: s.append(g))
        (a + b).sum().backward()
        return s

    @case("multi grad hook raise")
    def _():
        x = L(2)
        a = x * 2
        b = x * 3

        def h(g):
            raise RuntimeError("err")

        G.register_multi_grad_hook((a, b), h)
        (a + b).sum().backward()

    @case("node ordering")
    def _():
        s = []
        x = L(1)
        a = x * 1
        b = x * 2
        c = a + b
        for n, t in {"a": a, "b": b, "c": c}.items():
            t.register_hook(lambda g, n=n: s.append(n))
        c.backward()
        return s

    @case("tensor hooks on inplace leaf")
    def _():
        x = L(2)
        y = x.clone()
        s = []
        y.register_hook(lambda g: s.append(g.clone()))
        y *= 3
        y.sum().backward()
        return s

    @case("view base weak")
    def _():
        x = L(2, 2) * 1
        v = x[0]
        i = v._base is x
        del x
        gc.collect()
        return i, v._base is not None, v._base.shape

    @case("view of view base")
    def _():
        x = L(4)
        v = x.view(2, 2)[0]
        return v._base is x, v._is_view()

    @case("no_grad view base")
    def _():
        x = L(4)
        with torch.no_grad():
            v = x.view(2, 2)
        return v._base is x, v.requires_grad, v.is_leaf

    @case("copy slices graph task")
    def _():
        x = L(3, 3)
        y = x * 1
        y[0] = y[1] * 2
        y[2].add_(y[0])
        y.sum().backward()
        return x.grad

    @case("inplace on view python chain")
    def _():
        x = L(2, 3)
        y = x * 1
        v = y.t()
        w = v[1]
        w.mul_(2)
        v[0].add_(w)
        y.pow(2).sum().backward()
        return x.grad

    @case("inplace on view saved output")
    def _():
        x = L(3)
        y = x * 1
        v = y[1:]
        v.exp_()
        y.sum().backward()
        return x.grad

    @case("inplace view modify base")
    def _():
        x = L(4)
        r = torch.zeros(4)
        v = r[:2]
        v.copy_(x[:2])
        r.mul_(3)
        r.sum().backward()
        return x.grad, v.grad_fn.name()

    @case("inplace view then non contiguous")
    def _():
        L(2, 3, 2).clone() if False else None
        r = L(2, 3, 2)
        z = r.clone().transpose(0, 1)
        z[1].mul_(5)
        z.sum().backward()
        return r.grad.sum(), r.grad[:, 1].sum()

    @case("inplace multiple out")
    def _():
        x = L(4)
        y = x * 1
        a, b = y[:2], y[2:]
        a.mul_(2)
        b.mul_(3)
        y.sum().backward()
        return x.grad

    @case("fill diag")
    def _():
        x = L(2, 2)
        y = x * 1
        y.fill_diagonal_(5)
        y.sum().backward()
        return x.grad

    @case("setitem bool mask view")
    def _():
        x = L(3)
        y = x * 1
        y[y > 0] = 0
        y.sum().backward()
        return x.grad

    @case("detach share version")
    def _():
        x = L(2) * 1
        d = x.detach()
        d.add_(1)
        return x._version, d._version

    @case("detach write then backward")
    def _():
        x = L(2) * 1
        y = x**2
        x.detach().zero_()
        y.sum().backward()

    @case("grad of detach view")
    def _():
        x = L(4)
        d = x.view(2, 2).detach()
        return d.requires_grad, d._is_view(), d._base

    @case("nograd inplace leaf")
    def _():
        x = L(2)
        y = x**2
        with torch.no_grad():
            x.mul_(2)
        y.sum().backward()

    @case("requires_grad_ on view")
    def _():
        x = torch.ones(2, 2)
        v = x[0]
        v.requires_grad_()
        (v * 2).sum().backward()
        return v.grad, x.requires_grad

    @case("leaf view inplace no grad")
    def _():
        x = L(2, 2)
        with torch.no_grad():
            x[0].mul_(5)
        return x

    @case("power of backward graph")
    def _():
        x = torch.tensor(1.5, requires_grad=True, dtype=torch.float64)
        y = x.sin()
        out = []
        for _ in range(6):
            (y,) = torch.autograd.grad(y, x, create_graph=True)
            out.append(round(y.item(), 6))
        return out

    return found


@pytest.mark.parametrize("name", cases(rushlight))
def test_as_in_torch(name):
    expected = outcome(cases(torch_itself)[name])
    assert outcome(cases(rushlight)[name]) == expected
