"""autograd.Function in both libraries: the same results, the same refusals."""

import pytest
import torch as torch_itself
from outcomes import collector, function_of, outcome

import rushlight


def cases(torch):
    found, case = collector()
    Function = torch.autograd.Function
    L = lambda *s: torch.ones(*s, requires_grad=True)

    class Mul(Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            return g * b, g * a

    @case("basic")
    def _():
        a, b = L(2), L(2)
        y = Mul.apply(a, b)
        y.sum().backward()
        return a.grad, y.grad_fn.name(), type(y.grad_fn).__name__, repr(type(y.grad_fn)), str(y)

    @case("kwargs")
    def _():
        return Mul.apply(L(2), b=L(2))

    def mk(fwd, bwd=None, **k):
        return function_of(torch, fwd, bwd, name="MyFn", **k)

    @case("no forward")
    def _():
        return type("MyFn", (Function,), {}).apply(L(2))

    @case("no backward")
    def _():
        y = mk(lambda ctx, x: x * 2).apply(L(2))
        y.sum().backward()

    @case("both backward vjp")
    def _():
        y = mk(lambda ctx, x: x * 2, lambda c, g: g, vjp=lambda c, g: g).apply(L(2))
        y.sum().backward()

    @case("vjp")
    def _():
        x = L(2)
        y = mk(lambda ctx, x: x * 2, vjp=lambda c, g: g * 2).apply(x)
        y.sum().backward()
        return x.grad

    @case("too many grads")
    def _():
        y = mk(lambda ctx, x: x * 2, lambda c, g: (g, g)).apply(L(2))
        y.sum().backward()

    @case("too few grads")
    def _():
        y = mk(lambda ctx, x, y: x * 2, lambda c, g: (g,)).apply(L(2), L(2))
        y.sum().backward()

    @case("trailing None ok")
    def _():
        x = L(2)
        y = mk(lambda ctx, x: x * 2, lambda c, g: (g, None, None)).apply(x)
        y.sum().backward()
        return x.grad

    @case("non tensor grad")
    def _():
        y = mk(lambda ctx, x: x * 2, lambda c, g: 3).apply(L(2))
        y.sum().backward()

    @case("grad for int arg")
    def _():
        y = mk(lambda ctx, x, n: x * n, lambda c, g: (g, g)).apply(L(2), 2)
        y.sum().backward()

    @case("grad for non-requires")
    def _():
        x = L(2)
        y = mk(lambda ctx, x, n: x * n, lambda c, g: (g, g)).apply(x, torch.ones(2))
        y.sum().backward()
        return x.grad

    @case("wrong shape")
    def _():
        y = mk(lambda ctx, x: x * 2, lambda c, g: torch.ones(3)).apply(L(2))
        y.sum().backward()

    @case("expandable shape")
    def _():
        x = L(1)
        y = mk(lambda ctx, x: x * 2, lambda c, g: torch.ones(3)).apply(x)
        y.sum().backward()
        return x.grad

    @case("non tensor out")
    def _():
        return mk(lambda ctx, x: (x * 2, 3, None, "a"), lambda c, *g: g[0]).apply(L(2))

    @case("non tensor out bwd")
    def _():
        x = L(2)
        s = []
        y = mk(lambda ctx, x: (x * 2, 3, None, x * 3), lambda c, *g: (s.append(g), g[0])[1]).apply(x)
        y[0].sum().backward()
        return s

    @case("list out")
    def _():
        return mk(lambda ctx, x: [x * 2, 3], lambda c, *g: g[0]).apply(L(2))

    @case("no outs")
    def _():
        return mk(lambda ctx, x: (), lambda c, *g: g[0]).apply(L(2))

    @case("int out")
    def _():
        return mk(lambda ctx, x: 5, lambda c, *g: g[0]).apply(L(2))

    @case("None out")
    def _():
        return mk(lambda ctx, x: None, lambda c, *g: g[0]).apply(L(2))

    @case("int tensor out")
    def _():
        return (
            mk(lambda ctx, x: torch.ones(2, dtype=torch.int64), lambda c, *g: g[0]).apply(L(2)).requires_grad
        )

    @case("input as is")
    def _():
        x = L(2)
        y = mk(lambda ctx, x: x, lambda c, g: g * 5).apply(x)
        y.sum().backward()
        return y is x, y._is_view(), y._base is x, y.grad_fn.name(), x.grad

    @case("input as is no grad")
    def _():
        x = torch.ones(2)
        y = mk(lambda ctx, x: x, lambda c, g: g * 5).apply(x)
        return y is x, y._is_view(), y._base is x, y.grad_fn

    @case("input as is gradmode off")
    def _():
        x = L(2)
        with torch.no_grad():
            y = mk(lambda ctx, x: x, lambda c, g: g * 5).apply(x)
            return y is x, y._is_view(), y._base is x, y.requires_grad

    @case("input as is tuple twice")
    def _():
        x = L(2)
        a, b = mk(lambda ctx, x: (x, x), lambda c, g, h: g * 5 + h).apply(x)
        (a.sum() + b.sum()).backward()
        return a is b, a.requires_grad, b.requires_grad, x.grad

    @case("same out twice")
    def _():
        def f(ctx, x):
            y = x * 2
            return y, y

        x = L(2)
        a, b = mk(f, lambda c, g, h: g * 5 + h).apply(x)
        (a.sum() + b.sum()).backward()
        return a is b, x.grad

    @case("nondiff input as is")
    def _():
        def f(ctx, x, y):
            ctx.mark_non_differentiable(y)
            return x * 2, y

        x = L(2)
        z = L(2)
        _a, b = mk(f, lambda c, g, h: (g * 5, None)).apply(x, z)
        return b is z, b.requires_grad, b._is_view()

    @case("view of input")
    def _():
        x = L(2, 2)
        y = mk(lambda ctx, x: x.view(-1), lambda c, g: g.view(2, 2) * 5).apply(x)
        r = y._is_view(), y._base is x, y.grad_fn.name()
        y.sum().backward()
        return r, x.grad

    @case("view of input inplace after")
    def _():
        x = L(2, 2).clone()
        y = mk(lambda ctx, x: x.view(-1), lambda c, g: g.view(2, 2) * 5).apply(x)
        y.mul_(2)

    @case("view of input multi inplace after")
    def _():
        x = L(2, 2).clone()
        y, _z = mk(lambda ctx, x: (x.view(-1), x[0]), lambda c, g, h: g.view(2, 2) * 5).apply(x)
        y.mul_(2)

    @case("input as is inplace after")
    def _():
        x = L(2).clone()
        y = mk(lambda ctx, x: x, lambda c, g: g * 5).apply(x)
        y.mul_(2)
        return y.grad_fn.name(), x.grad_fn.name()

    @case("input as is multi inplace after")
    def _():
        x = L(2).clone()
        y, _z = mk(lambda ctx, x: (x, x + 1), lambda c, g, h: g * 5).apply(x)
        y.mul_(2)
        return y.grad_fn.name()

    @case("view in dirty")
    def _():
        def f(ctx, x):
            ctx.mark_dirty(x)
            x.mul_(2)
            return x

        x = L(2, 2).clone()
        v = x[0]
        r = mk(f, lambda c, g: g * 2).apply(v)
        return r is v, r.grad_fn.name(), x.grad_fn.name()

    @case("dirty")
    def _():
        def f(ctx, x):
            ctx.mark_dirty(x)
            x.mul_(2)
            return x

        x = L(2)
        y = x.clone()
        z = mk(f, lambda c, g: g * 2).apply(y)
        z.sum().backward()
        return z is y, y._version, x.grad, y.grad_fn.name()

    @case("dirty leaf")
    def _():
        def f(ctx, x):
            ctx.mark_dirty(x)
            x.mul_(2)
            return x

        mk(f, lambda c, g: g * 2).apply(L(2))

    @case("dirty leaf view")
    def _():
        def f(ctx, x):
            ctx.mark_dirty(x)
            x.mul_(2)
            return x

        mk(f, lambda c, g: g * 2).apply(L(2, 2)[0])

    @case("dirty not returned")
    def _():
        def f(ctx, x):
            ctx.mark_dirty(x)
            x.mul_(2)
            return x * 1

        return mk(f, lambda c, g: g * 2).apply(L(2).clone())

    @case("dirty returned view two outs")
    def _():
        def f(ctx, x):
            ctx.mark_dirty(x)
            x.mul_(2)
            return x, x + 1

        return mk(f, lambda c, g, h: g * 2).apply(L(2, 2).clone()[0])

    @case("dirty non input")
    def _():
        def f(ctx, x):
            y = x * 2
            ctx.mark_dirty(y)
            return y

        return mk(f, lambda c, g: g * 2).apply(L(2))

    @case("save non tensor")
    def _():
        def f(ctx, x):
            ctx.save_for_backward(3)
            return x * 1

        return mk(f, lambda c, g: g * 2).apply(L(2))

    @case("save None")
    def _():
        def f(ctx, x):
            ctx.save_for_backward(x, None)
            return x * 1

        x = L(2)
        mk(f, lambda c, g: g if c.saved_tensors[1] is None else 1).apply(x).sum().backward()
        return x.grad

    @case("backward twice")
    def _():
        y = Mul.apply(L(2), L(2)).sum()
        y.backward()
        y.backward()

    @case("backward twice nosaved")
    def _():
        x = L(2)
        y = mk(lambda ctx, x: x * 2, lambda c, g: g * 2).apply(x).sum()
        y.backward()
        y.backward()

    @case("saved tensors access after")
    def _():
        y = Mul.apply(L(2), L(2))
        y.sum().backward()
        return y.grad_fn.saved_tensors

    @case("saved modified")
    def _():
        a = L(2).clone()
        y = Mul.apply(a, L(2))
        a.mul_(2)
        y.sum().backward()

    @case("instance")
    def _():
        return Mul()(L(2))

    @case("materialize")
    def _():
        s = []

        def b(c, *g):
            s.append(g)
            return g[0]

        x = L(2)
        a, _ = mk(lambda ctx, x: (x * 2, x * 3), b).apply(x)
        a.sum().backward()

        def f(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        x = L(2)
        a, _ = mk(f, b).apply(x)
        a.sum().backward()
        return s

    @case("once diff")
    def _():
        F = mk(lambda c, x: x**2, torch.autograd.function.once_differentiable(lambda c, g: g * 2))
        x = L(2)
        (g,) = torch.autograd.grad(F.apply(x).sum(), x, create_graph=True)
        r = g.requires_grad, g.grad_fn and g.grad_fn.name()
        print(r)
        g.sum().backward()

    @case("setup_context")
    def _():
        def s(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.k = len(inputs)

        x = L(2)
        F = mk(lambda x, k=3: x * k, lambda c, g: (g * 3, None), setup_context=s)
        y = F.apply(x)
        y.sum().backward()
        return x.grad, y.grad_fn.k

    @case("setup_context returns")
    def _():
        F = mk(lambda x, k=3: x * k, lambda c, g: (g * 3, None), setup_context=lambda c, i, o: 3)
        return F.apply(L(2))

    @case("apply non tensor only")
    def _():
        return mk(lambda c, a: a + 1).apply(3)

    @case("bwd raise")
    def _():
        def b(c, g):
            raise ValueError("x")

        mk(lambda c, x: x * 2, b).apply(L(2)).sum().backward()

    @case("dtype grad")
    def _():
        x = L(2)
        mk(lambda c, x: x * 2, lambda c, g: g.double()).apply(x).sum().backward()
        return x.grad.dtype

    @case("nested call name")
    def _():
        class Outer:
            class In(Mul):
                pass

        y = Outer.In.apply(L(2), L(2))
        return y.grad_fn.name(), repr(y)

    @case("saved_variables")
    def _():
        y = Mul.apply(L(2), L(2))
        return y.grad_fn.saved_variables

    return found


@pytest.mark.parametrize("name", cases(rushlight))
def test_as_in_torch(name):
    expected = outcome(cases(torch_itself)[name])
    assert outcome(cases(rushlight)[name]) == expected
