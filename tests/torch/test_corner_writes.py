"""Saved values and in-place writes through views: values, gradients and refusals."""

from corners import same_in_torch, short_names
from outcomes import collector


def cases(torch):
    found, case = collector()
    short = short_names(torch)
    L, R, nm, E = short.L, short.R, short.nm, short.E
    G = torch.autograd.graph

    @case("sth inplace unpack")
    def _():
        x = R(3)
        with G.saved_tensors_hooks(lambda t: t, lambda t: t):
            y = x * x
        y.add_(1)
        y.sum().backward()
        return x.grad

    for name, start in (("sth pack inplace error", R), ("sth nonleaf pack inplace", lambda n: R(n) * 1)):

        @case(name)
        def _(start=start):
            def inc(x):
                x += 1
                return x

            x = start(3)
            with G.saved_tensors_hooks(inc, lambda t: t):
                return torch.pow(x, 2)

    @case("raw hooks")
    def _():
        x = R(2)
        y = x.exp()
        r = []
        raw = y.grad_fn._raw_saved_result
        raw.register_hooks(lambda t: r.append("p") or t, lambda t: r.append("u") or t)
        y.sum().backward()
        return (r, x.grad)

    @case("raw hooks twice")
    def _():
        x = R(2)
        y = x * x
        y.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)
        y.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)

    @case("raw hooks bad")
    def _():
        y = R(2) ** 2
        y.grad_fn._raw_saved_self.register_hooks(3, 4)

    @case("raw hooks raise")
    def _():
        y = R(2) ** 2
        y.grad_fn._raw_saved_self.register_hooks(lambda t: 1 / 0, lambda t: t)

    @case("raw hooks inplace")
    def _():

        def inc(t):
            t *= 2
            return t

        y = R(2) ** 2
        y.grad_fn._raw_saved_self.register_hooks(inc, lambda t: t)

    @case("raw hooks after free")
    def _():
        x = R(2)
        y = x * x
        y.sum().backward()
        y.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)

    @case("raw saved free")
    def _():
        x = R(2)
        y = x * x
        y.sum().backward()
        return y.grad_fn._saved_self

    @case("raw unpack2")
    def _():
        x = R(2)
        y = x * x
        s = y.grad_fn._raw_saved_self
        return (s.unpack() if hasattr(s, "unpack") else "no", x._version)

    @case("raw with default")
    def _():
        x = R(2)
        with G.saved_tensors_hooks(lambda t: t, lambda t: t):
            y = x * x
        y.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)

    @case("raw list")
    def _():
        a = R(2)
        b = R(2)
        y = torch.index_put(a, (torch.tensor([0]),), b[:1])
        return [type(i).__name__ for i in y.grad_fn._raw_saved_indices]

    @case("default hooks errors")
    def _():
        r = []
        with G.disable_saved_tensors_hooks("nope"):
            r.append(E(lambda: G.saved_tensors_hooks(lambda t: t, lambda t: t).__enter__()))
            with G.disable_saved_tensors_hooks("inner"):
                r.append(E(lambda: G.saved_tensors_hooks(lambda t: t, lambda t: t).__enter__()))
            r.append(E(lambda: G.saved_tensors_hooks(lambda t: t, lambda t: t).__enter__()))
        with G.saved_tensors_hooks(lambda t: t, lambda t: t):
            r.append(E(lambda: G.disable_saved_tensors_hooks("x").__enter__()))
        r.append(torch._C._autograd._saved_tensors_hooks_is_enabled())
        return r

    @case("default hooks order")
    def _():
        r = []
        with G.saved_tensors_hooks(lambda t: r.append("p1") or t, lambda t: r.append("u1") or t):
            with G.saved_tensors_hooks(lambda t: r.append("p2") or t, lambda t: r.append("u2") or t):
                x = R(2)
                y = x * x
            z = y * y
        z.sum().backward()
        return r

    @case("default hooks priv")
    def _():
        A = torch._C._autograd
        A._push_saved_tensors_default_hooks(lambda t: t * 2, lambda t: t / 4)
        try:
            x = R(2)
            y = x * x
        finally:
            A._pop_saved_tensors_default_hooks()
        y.sum().backward()
        return x.grad

    @case("unpack count")
    def _():
        c = [0, 0]
        x = R(3)
        with G.saved_tensors_hooks(
            lambda t: (c.__setitem__(0, c[0] + 1), t)[1], lambda t: (c.__setitem__(1, c[1] + 1), t)[1]
        ):
            y = (x.exp() * x).sum()
        y.backward()
        return c

    @case("hook double backward")
    def _():
        x = R(3)
        with G.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
            y = x**3
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        return (g, torch.autograd.grad(g.sum(), x))

    @case("am many")
    def _():
        r = []
        with G.allow_mutation_on_saved_tensors() as ctx:
            a = R(2, 3)
            b = a.clone()
            out = (b**2).sum()
            b.sin_()
            out.sum().backward()
            r.append(a.grad)
            a.grad = None
            r.append((len(ctx.cloned), len(ctx.original)))
            b = a.clone()
            c = b.view(-1)
            out = (c**2).sum()
            b.add_(1)
            c.add_(1)
            out.backward()
            r.append(a.grad)
            b = a.clone()
            out = b * b
            b[0].zero_()
            out.sum().backward()
            r.append(a.grad)
        return r

    @case("am exit")
    def _():
        with G.allow_mutation_on_saved_tensors() as ctx:
            a = R(2)
            b = a.clone()
            o = (b**2).sum()
            b.sin_()
        return (
            E(lambda: o.backward()),
            len(ctx.cloned),
            len(ctx.original),
            len(ctx.tid_to_weakhandle),
            len(ctx.sid_to_tid),
        )

    @case("am saved once")
    def _():
        with G.allow_mutation_on_saved_tensors() as ctx:
            a = R(2)
            b = a.clone()
            o = b**2
            p = b**3
            q = b * b
            n0 = (len(ctx.original), len(ctx.cloned))
            b.add_(1)
            n1 = (len(ctx.original), len(ctx.cloned))
            b.add_(1)
            n2 = (len(ctx.original), len(ctx.cloned))
            (o + p + q).sum().backward()
            return (n0, n1, n2, a.grad, (len(ctx.original), len(ctx.cloned)))

    @case("am savedafter")
    def _():
        with G.allow_mutation_on_saved_tensors() as ctx:
            a = R(2)
            b = a.clone()
            o = b * b
            b.mul_(2)
            p = b * b
            b.mul_(3)
            (o.sum() + p.sum()).backward()
            return (a.grad, len(ctx.cloned))

    @case("am outside created")
    def _():
        a = R(2)
        b = a.clone()
        o = b * b
        with G.allow_mutation_on_saved_tensors():
            b.mul_(2)
            return E(lambda: o.sum().backward())

    @case("am foreach")
    def _():
        with G.allow_mutation_on_saved_tensors():
            a = R(2)
            b = R(2)
            x, y = (a.clone(), b.clone())
            o = x * y
            torch._foreach_mul_([x, y], 2.0)
            o.sum().backward()
            return (a.grad, b.grad)

    @case("am numpy like")
    def _():
        with G.allow_mutation_on_saved_tensors():
            a = R(2)
            x = a.clone()
            o = x * x
            x.data.mul_(3)
            o.sum().backward()
            return a.grad

    @case("incv")
    def _():
        x = torch.ones(2)
        v = x._version
        G.increment_version(x)
        G.increment_version([x, x])
        return (x._version - v, E(lambda: G.increment_version(3)), E(lambda: G.increment_version([3])))

    @case("set data pyobj")
    def _():
        a = torch.randn(1)
        b = torch.randn(1)
        ida = id(a)
        a.data = b
        return (ida == id(a), a is not b)

    @case("set ")
    def _():
        r = []
        x = torch.ones(3)
        r.append(x.set_(torch.zeros(2)).shape)
        y = L(2)
        r.append(E(lambda: y.set_(torch.ones(2))))
        z = L(2) * 2
        r.append(E(lambda: (z.set_(torch.zeros(2)), nm(z), z)))
        with torch.no_grad():
            r.append(E(lambda: y.set_(torch.zeros(4)).shape))
        r.append(E(lambda: torch.ones(2).set_(x.untyped_storage()).shape if False else 1))
        r.append(x.set_().shape)
        return r

    @case("detach things")
    def _():
        r = []
        x = R(2)
        y = x * 2
        d = y.detach()
        r += [d._is_view(), d._base, d._version, d.is_leaf]
        d.add_(1)
        r.append(y._version)
        r.append(E(lambda: (y**2).sum().backward()))
        z = x * 3
        z2 = z**2
        z.detach().zero_()
        r.append(E(lambda: z2.sum().backward()))
        z = x * 3
        w = z.detach_()
        r += [w is z, z.requires_grad, nm(z), z.is_leaf]
        r.append(E(lambda: x[0:1].detach_()))
        r.append(E(lambda: (x * 2)[0:1].detach_()))
        return r

    @case("detach base")
    def _():
        x = R(2, 2)
        y = x * 2
        v = y[0]
        y.detach_()
        r = [nm(v), v.requires_grad, y.requires_grad, v._base is y]
        r.append(E(lambda: v.mul_(2)))
        r.append(nm(v))
        r.append(nm(y))
        return r

    @case("leaf view requires")
    def _():
        x = torch.ones(2, 2)
        v = x[0]
        v.requires_grad_()
        r = [x.requires_grad, v.is_leaf]
        r.append(E(lambda: v.mul_(2)))
        r.append(E(lambda: x.mul_(2)))
        (v * 2).sum().backward()
        r.append(v.grad)
        return r

    @case("base requires after")
    def _():
        x = torch.ones(2, 2)
        v = x[0]
        x.requires_grad_()
        r = [v.requires_grad, v.is_leaf, nm(v)]
        r.append(E(lambda: v.mul_(2)))
        r.append(E(lambda: (v * 2).sum().backward()))
        r.append(x.grad)
        return r

    @case("inplace view saved")
    def _():
        x = R(2, 2)
        b = x.clone()
        v = b[0]
        o = v * v
        v.add_(1)
        return E(lambda: o.sum().backward())

    @case("inplace view then no grad")
    def _():
        x = R(2, 2)
        b = x.clone()
        v = b[0]
        with torch.no_grad():
            b.mul_(2)
        return (nm(v), nm(b), torch.autograd.grad(v.sum(), x))

    @case("inplace nograd view")
    def _():
        a = torch.tensor([1.0, 2.0], requires_grad=True)
        b = a.clone()
        with torch.no_grad():
            v = b.view(2)
            v2 = b[0:1]
        return (
            v.requires_grad,
            E(lambda: v.mul_(2)),
            E(lambda: b.mul_(2)),
            E(lambda: v.grad_fn),
            E(lambda: v2 + 1),
        )

    @case("inplace ops on view weird")
    def _():
        x = R(2, 2)
        b = x * 1
        v = b.t()[0]
        v.copy_(R(2))
        b.sum().backward()
        return x.grad

    @case("inplace view exp")
    def _():
        a = R(2)
        b = a.clone().expand(2, 2)
        return E(lambda: b.mul_(2))

    @case("comparisons written in place have zeros for gradients")
    def _():
        seen = []
        for name in ("eq_", "ne_", "lt_", "le_", "gt_", "ge_"):
            for make in (lambda x: x * 1, lambda x: torch.ones(2), lambda x: (x * 1)[:]):
                for by in (lambda y: y, lambda y: y[0], lambda y: 1.0):
                    x, y = R(2), R(2)
                    written = getattr(make(x), name)(by(y))
                    seen.append((nm(written), written.requires_grad))
                    if written.requires_grad:
                        grads = torch.autograd.grad(written.sum(), [x, y], allow_unused=True)
                        seen.append((len(written.grad_fn.next_functions), grads))
        return seen

    return found


test_as_in_torch = same_in_torch(cases)
