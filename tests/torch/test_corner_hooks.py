"""Hooks: their order, what they see and may return, how they follow in-place writes, when they go."""

from corners import same_in_torch, short_names
from outcomes import collector


def cases(torch):
    found, case = collector()
    short = short_names(torch)
    L, R, nm, E = short.L, short.R, short.nm, short.E
    Function = torch.autograd.Function
    Variable = torch.autograd.Variable
    G = torch.autograd.graph
    register_multi_grad_hook = G.register_multi_grad_hook

    @case("acc prehook")
    def _():
        a = R(1)
        acc = a.view_as(a).grad_fn.next_functions[0][0]
        acc.register_prehook(lambda g: (g[0] * 3,))
        a.register_hook(lambda g: g + 1)
        (a * 1).backward()
        return (a.grad, torch.autograd.grad(a * 1, a))

    @case("acc posthooks not with grad")
    def _():
        r = []
        a = R(1)
        acc = a.view_as(a).grad_fn.next_functions[0][0]
        acc.register_hook(lambda i, o: r.append("x"))
        torch.autograd.grad(a * 1, a)
        n = len(r)
        (a * 1).backward(inputs=a)
        (a * 1).backward()
        return (n, len(r))

    @case("hook remove during")
    def _():
        r = []
        x = R(1)
        hs = []
        hs.append(x.register_hook(lambda g: (r.append(1), hs[1].remove())[0]))
        hs.append(x.register_hook(lambda g: r.append(2)))
        (x * 1).backward()
        (x * 1).backward()
        return r

    @case("hook remove during nonleaf")
    def _():
        r = []
        x = R(1)
        y = x * 1
        hs = []
        hs.append(y.register_hook(lambda g: (r.append(1), hs[1].remove())[0]))
        hs.append(y.register_hook(lambda g: r.append(2)))
        y.backward(retain_graph=True)
        y.backward()
        return r

    @case("hook add during")
    def _():
        r = []
        x = R(1)
        y = x * 1
        y.register_hook(lambda g: (r.append(1), y.register_hook(lambda g: r.append(2)))[0])
        y.backward(retain_graph=True)
        n = list(r)
        y.backward()
        return (n, r)

    @case("handle ctx")
    def _():
        x = R(1)
        r = []
        with x.register_hook(lambda g: r.append(1)) as h:
            (x * 1).backward()
        (x * 1).backward()
        return (r, type(h).__name__, [n for n in dir(h) if not n.startswith("__")])

    @case("hook raises")
    def _():
        x = R(1)
        y = x * 2
        h = y.register_hook(lambda g: 1 / 0)
        e = E(lambda: y.backward(retain_graph=True))
        h.remove()
        y.backward()
        return (e, x.grad)

    @case("post acc")
    def _():
        r = []
        x = R(2)
        x.register_post_accumulate_grad_hook(lambda p: r.append((p is x, p.grad.clone())))
        h = x.register_post_accumulate_grad_hook(lambda p: setattr(p, "grad", None))
        (x * 2).sum().backward()
        a = x.grad
        h.remove()
        (x * 2).sum().backward()
        return (r, a, x.grad)

    @case("post acc ordering")
    def _():
        r = []
        x = R(2)
        x.register_post_accumulate_grad_hook(lambda p: r.append("post1"))
        x.register_hook(lambda g: r.append("t"))
        x.register_post_accumulate_grad_hook(lambda p: r.append("post2"))
        acc = x.view_as(x).grad_fn.next_functions[0][0]
        acc.register_hook(lambda i, o: r.append("node"))
        (x * 2).sum().backward()
        return r

    @case("post acc multi")
    def _():
        r = []
        x = R(2)
        x.register_post_accumulate_grad_hook(lambda p: r.append(p.grad.clone()))
        (x * 2).sum().backward(retain_graph=True)
        torch.autograd.grad((x * 2).sum(), x)
        (x * 3).sum().backward(inputs=[x])
        return r

    @case("post acc mutation")
    def _():
        x = R(2)

        def h(p):
            p.grad *= 10

        x.register_post_accumulate_grad_hook(h)
        (x * 2).sum().backward()
        return x.grad

    @case("multi all")
    def _():
        r = []
        a = R(2)
        b = R(2)
        c = R(2)
        h = register_multi_grad_hook((a, b, c), lambda gs: r.append([None if g is None else g for g in gs]))
        (a * b).sum().backward()
        (a * b * c).sum().backward()
        (c * 1).sum().backward()
        h.remove()
        (a * b * c).sum().backward()
        return (r, type(h).__name__, type(h).__mro__[1].__name__)

    @case("multi nonleaf")
    def _():
        r = []
        a = R(2)
        b = a * 2
        c = a * 3
        register_multi_grad_hook((b, c), lambda gs: r.append(gs))
        (b * c).sum().backward(retain_graph=True)
        b.sum().backward()
        return r

    @case("multi any")
    def _():
        r = []
        a = R(2)
        b = R(2)
        h = register_multi_grad_hook((a, b), lambda g: r.append(g), mode="any")
        (a * b).sum().backward()
        (a * 2).sum().backward()
        (b * 2).sum().backward()
        h.remove()
        (a * b).sum().backward()
        return r

    @case("multi reentrant")
    def _():
        r = []
        a = R(2)
        b = R(2)

        def fn(gs):
            r.append(len(gs))

        register_multi_grad_hook((a, b), fn)
        x = a * b
        x.register_hook(lambda g: (a.detach().requires_grad_() * 2).sum().backward())
        x.sum().backward()
        return r

    @case("multi pickle")
    def _():
        h = register_multi_grad_hook((R(1),), lambda g: g)
        return len(h.__getstate__()) if hasattr(h, "__getstate__") else None

    @case("node hooks with inputs")
    def _():
        r = []
        a = R(2)
        b = R(2)
        c = a * b
        c.grad_fn.register_hook(lambda gi, go: r.append((gi, go)))
        c.sum().backward(inputs=[a])
        return r

    @case("node hook view inplace")
    def _():
        r = []
        x = R(4)
        b = x.clone()
        v = b[:2]
        v.mul_(2)
        b.grad_fn.register_hook(lambda gi, go: r.append(([i is not None for i in gi], len(go))))
        v.grad_fn.register_hook(lambda gi, go: r.append("v"))
        b.sum().backward()
        return (
            r,
            b.grad_fn.name(),
            v.grad_fn.name(),
            [n[0].name() if n[0] else None for n in b.grad_fn.next_functions],
        )

    @case("callbacks")
    def _():
        r = []
        q = Variable._execution_engine.queue_callback

        class F(Function):
            @staticmethod
            def forward(ctx, x):
                return x

            @staticmethod
            def backward(ctx, g):
                q(lambda: (r.append("final"), q(lambda: r.append("nested")))[0])
                return g

        x = R(3)
        F.apply(x).sum().backward()
        return r

    @case("callback raises")
    def _():
        q = Variable._execution_engine.queue_callback

        def cb():
            raise RuntimeError("blabla")

        x = R(3)
        y = x * 1
        y.register_hook(lambda g: q(cb))
        return E(lambda: y.sum().backward())

    @case("reentrant callbacks")
    def _():
        c = {"inner": 0, "outer": 0}
        q = Variable._execution_engine.queue_callback

        class F(Function):
            @staticmethod
            def forward(ctx, x):
                return x

            @staticmethod
            def backward(ctx, g):
                if c.get("d", 0) == 0:
                    c["d"] = 1
                    q(lambda: c.__setitem__("outer", c["outer"] + 1))
                    t = R(3)
                    F.apply(t).sum().backward()
                else:
                    q(lambda: c.__setitem__("inner", c["inner"] + 1))
                return g

        t = R(3)
        F.apply(t).sum().backward()
        return c

    @case("queue bw in hook")
    def _():
        x = R(2)
        y = x * 2
        r = []

        def h(g):
            z = (torch.ones(2, requires_grad=True) * 3).sum()
            z.backward()
            r.append(1)

        y.register_hook(h)
        y.sum().backward()
        return (r, x.grad)

    @case("hook grad inplace")
    def _():
        x = R(2)
        x.register_hook(lambda g: g.mul_(2) and None if False else None)
        y = x * 2
        y.register_hook(lambda g: g.mul_(0) is None or None)
        y.sum().backward()
        return x.grad

    @case("hook detached retgrad")
    def _():
        x = R(2)
        x.register_hook(lambda g: (g * 2).requires_grad_())
        (x * 2).sum().backward()
        return (x.grad, x.grad.requires_grad)

    @case("backward hooks attr")
    def _():
        x = R(2)
        r = [x._backward_hooks]
        x.register_hook(lambda g: g)
        r.append(type(x._backward_hooks).__name__)
        y = x * 2
        y.register_hook(lambda g: g)
        r.append(type(y._backward_hooks).__name__)
        r.append(len(y._backward_hooks) if y._backward_hooks else None)
        return r

    @case("tensor hook on view of leaf")
    def _():
        r = []
        x = R(2, 2)
        v = x[0]
        v.register_hook(lambda g: r.append(g))
        (v * 2).sum().backward()
        return (r, x.grad)

    @case("unused hook")
    def _():
        r = []
        x = R(2)
        y = x * 2
        z = x * 3
        z.register_hook(lambda g: r.append(1))
        y.sum().backward()
        return r

    @case("leaf to nonleaf inplace")
    def _():
        r = []
        x = torch.ones(2)
        w = R(2)
        x.mul_(w)
        x.register_hook(lambda g: r.append(g))
        x.sum().backward()
        return (r, w.grad, nm(x))

    @case("unpack hook registers node hook")
    def _():
        r = []

        def unpack(t):
            return t

        x = R(2)
        with G.saved_tensors_hooks(
            lambda t: t, lambda t: (y.grad_fn.register_hook(lambda i, o: r.append("h")), t)[1]
        ):
            y = x * x
        y.sum().backward()
        return r

    @case("current node")
    def _():
        r = []
        x = R(2)
        y = x.sin()

        class F(Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, g):
                n = torch._C._current_autograd_node()
                r.append((n.name(), n is ctx))
                return g

        F.apply(y).sum().backward()
        return (r, torch._C._current_autograd_node())

    @case("copyslices node")
    def _():
        x = L(3).clone()
        x[0:2].mul_(2)
        return (
            x.grad_fn.name(),
            type(x.grad_fn).__name__,
            [n and n[0] and n[0].name() for n in x.grad_fn.next_functions],
        )

    class Undefined(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, x):
            return None

    @case("function returns undefined")
    def _():
        x = L(1)
        Undefined.apply(x).backward()
        r = [x.grad]
        Undefined.apply(x**2).backward()
        r.append(x.grad)
        Undefined.apply(x).sum().backward()
        r.append(x.grad)
        r.append(torch.autograd.grad(Undefined.apply(x), x, allow_unused=True))
        return r

    @case("function none unused error")
    def _():
        x = L(1)
        return torch.autograd.grad(Undefined.apply(x), x)

    @case("materialize")
    def _():
        r = []

        class F(Function):
            @staticmethod
            def forward(ctx, x):
                return x

            @staticmethod
            def backward(ctx, g):
                r.append(g)
                return g

        x = L(1)
        torch._C._functions.UndefinedGrad()(F.apply(x)).backward()
        return (r, x.grad)

    return found


test_as_in_torch = same_in_torch(cases)
