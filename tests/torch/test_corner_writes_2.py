"""Saved values and in-place writes through views: values, gradients and refusals."""

import math

from corners import same_in_torch, short_names
from outcomes import collector


def cases(torch):
    found, case = collector()
    short = short_names(torch)
    L, R, D, nm, E, gc_ = short.L, short.R, short.D, short.nm, short.E, short.gc_

    @case("inplace mul outputs")
    def _():
        root = R(2, 2)
        y = root.exp()
        v1 = y.narrow(0, 0, 1)
        v2 = y.narrow(1, 0, 1)
        v1.mul_(2)
        v2.mul_(3)
        y.sum().backward()
        return (root.grad, nm(v1), nm(v2))

    @case("inplace multi hooks")
    def _():
        r = []
        a = R(2)
        b = a.clone()
        v = b[0]
        b.register_hook(lambda g: r.append(("b", g)))
        v.register_hook(lambda g: r.append(("v", g)))
        v.mul_(2)
        b.register_hook(lambda g: r.append(("b2", g)))
        v.register_hook(lambda g: r.append(("v2", g)))
        (b.sum() + v).backward()
        return (r, a.grad)

    @case("out nograd")
    def _():
        with torch.no_grad():
            return torch.add(L(2), 1, out=torch.empty(2))

    @case("numpy req")
    def _():
        return (
            E(lambda: L(2).numpy()),
            E(lambda: (L(2) * 2).numpy()),
            E(lambda: L(2).numpy(force=True)),
            E(lambda: L(2).tolist()),
            E(lambda: float(L(1))),
            E(lambda: L(1).item()),
            E(lambda: L(2).__array__()),
        )

    @case("item warn")
    def _():
        return (float(L(1)), int(L(1)), E(lambda: torch.tensor([L(1)])), E(lambda: bool(L(1))))

    @case("shapes")
    def _():
        x = L(3, 4)
        return (x.shape, len(x), [r.shape for r in x], x[0].requires_grad)

    @case("setitem zoo")
    def _():
        r = []

        def t(f, shape=(3, 3)):
            x = R(*shape)
            y = x.clone()
            v = R(1)
            f(y, v)
            g = torch.autograd.grad(y.sum(), (x, v), allow_unused=True)
            r.append((g, nm(y), y._version))

        t(lambda y, v: y.__setitem__(0, v))
        t(lambda y, v: y.__setitem__((slice(None), 1), v))
        t(lambda y, v: y.__setitem__([0, 1], v))
        t(lambda y, v: y.__setitem__(y > 2, v))
        t(lambda y, v: y.__setitem__((0, 0), 3.0))
        t(lambda y, v: y.__setitem__(Ellipsis, v))
        t(lambda y, v: y.__setitem__((torch.tensor([0]), slice(0, 2)), v))
        t(lambda y, v: y.__setitem__(slice(0, 0), v))
        t(lambda y, v: y[0].__setitem__(1, v))
        t(lambda y, v: y.__setitem__(y > 100, v))
        t(lambda y, v: y.__setitem__(None, v))
        return r

    @case("inplace saved messages")
    def _():
        r = []

        def t(f):
            r.append(E(lambda: f().sum().backward()))

        def a():
            x = R(2)
            y = x.exp()
            y.add_(1)
            return y

        def b():
            x = R(2)
            y = x * 1
            z = y * y
            y.mul_(2)
            return z

        def c():
            x = R(2)
            y = x * 1
            z = y.sigmoid()
            z.mul_(2)
            return z

        def d():
            x = R(2, 2)
            y = x * 1
            z = y @ y
            y[0].zero_()
            return z

        def e():
            x = R(2)
            y = x * 1
            z = torch.cat([y, y]) ** 2
            y.mul_(2)
            return z

        def f():
            x = R(2)
            y = x * 1
            z = torch.max(y, 0)[0]
            y.mul_(2)
            return z

        def g():
            x = R(2)
            i = torch.tensor([0, 1])
            z = x[i]
            i.add_(1)
            return z

        def h():
            x = R(2)
            w = torch.ones(2)
            z = x * w
            w.add_(1)
            return z

        for q in (a, b, c, d, e, f, g, h):
            t(q)
        return r

    @case("iv makes base require grad")
    def _():
        a = D(4)
        b = torch.ones(2, 4, dtype=torch.double)

        def f(x, y):
            b = y.detach().clone()
            v = b.narrow(0, 0, 1)[0]
            v.mul_(x)
            return b

        r = [b.requires_grad]
        v = b[0]
        v.mul_(a)
        return (r, b.requires_grad, gc_(lambda x: f(x, b.detach()), a))

    @case("iv backprop base")
    def _():
        a = R(4, 1)
        b = a.expand(4, 4) if False else a * 1
        v = b.narrow(0, 0, 2)
        v.add_(1)
        b.sum().backward()
        return a.grad

    @case("iv backprop view of view")
    def _():
        a = R(2, 2)
        b = torch.ones(2, 2)
        v = b.narrow(0, 0, 1).narrow(1, 0, 1)
        v.copy_(a[0:1, 0:1] * 2)
        b.sum().backward()
        return a.grad

    @case("iv view then grad")
    def _():
        return gc_(
            lambda a: (lambda c: (c[0].mul_(2), c.view(-1)[1:3].add_(c.sum()), c)[2])(a.clone()), D(2, 2)
        )

    @case("iv gradcheck2")
    def _():

        def f(a, b):
            x = a.clone()
            v = x.narrow(1, 2, 2).select(1, 0)
            u = x.narrow(1, 0, 2).select(0, 1)
            v.mul_(b.sum())
            u.div_(2)
            v.add_(u[:1])
            return x

        return gc_(f, D(4, 4), D(2, 2))

    @case("iv multi")
    def _():

        def f(a):
            b = a.clone()
            c = b.t()
            d = c[0]
            e = d.unsqueeze(0)
            e.mul_(b.sum())
            return b + c

        return gc_(f, D(2, 2))

    @case("iv non contig")
    def _():
        root = D(2, 3, 2).select(2, 0).t() if False else R(2, 3, 2)
        r2 = root * 1
        x = r2.select(2, 1).t()
        x.mul_(3)
        r2.sum().backward()
        return (root.grad, nm(x))

    @case("iv multi output safe")
    def _():
        r = []
        for n in ("unsafe_chunk", "unsafe_split"):
            a = R(4, 2) * 1
            c = getattr(a, n)(2)
            c[0].mul_(2)
            (c[0].sum() + c[1].sum()).backward()
            r.append(nm(c[0]))
        return r

    @case("iv each piece counts its own writes")
    def _():
        r = []
        for split in (lambda t: t.unsafe_split(1), lambda t: t.unsafe_split_with_sizes((1, 1, 1))):
            a = R(3, 2)
            whole = a * 1
            one, two, three = split(whole)
            one.mul_(two)
            whole.add_(1)
            three.view(2).mul_(2)
            r.append([t._version for t in (whole, one, two, three)])
            one.sum().backward()
            r.append(a.grad)
        return r

    @case("iv modify base")
    def _():

        def f(inp):
            b = inp.clone()
            v = b.view(-1)
            b.mul_(3)
            v2 = v[0:2]
            b.add_(1)
            return v.sum() + v2.sum()

        return gc_(f, D(2, 2))

    @case("iv then no grad")
    def _():
        a = R(2)
        b = a * 2
        v = b[0:1]
        with torch.no_grad():
            v.add_(1)
        return (nm(v), nm(b), torch.autograd.grad(b.sum() + v.sum(), a))

    @case("iv same view twice")
    def _():
        a = R(2, 2)
        b = a.clone()
        v = b[0]
        v.mul_(2)
        v.mul_(3)
        b[0].add_(1)
        b.sum().backward()
        return (a.grad, b._version, v._version, nm(v))

    @case("iv expand index")
    def _():
        return gc_(
            lambda a, v: (lambda b: (b.__setitem__((slice(None), 0), v), b.__setitem__(0, v * 2), b)[2])(
                a.clone()
            ),
            D(3, 2),
            D(1),
        )

    @case("iv cplx")
    def _():

        def f(a):
            b = a.clone()
            torch.view_as_real(b)[..., 0].mul_(2)
            b.imag.add_(1)
            b.real[0] = 3
            return b

        z = torch.tensor([1 + 1j, 2 - 1j], dtype=torch.cdouble, requires_grad=True)
        return gc_(f, z)

    @case("iv realtocplx")
    def _():

        def f(a):
            b = a.clone()
            torch.view_as_complex(b).mul_(1j)
            return b

        return gc_(f, D(2, 2))

    @case("iv as strided")
    def _():

        def f(a):
            b = a.clone()
            c = b.as_strided((2, 2), (1, 2))
            c.mul_(c.sum())
            b.as_strided((2,), (2,), 1).add_(1)
            return b

        return gc_(f, D(4))

    @case("iv diag")
    def _():
        return gc_(
            lambda a: (lambda b: (b.diagonal().mul_(b.sum()), torch.diagonal(b, 1).zero_(), b)[2])(a.clone()),
            D(3, 3),
        )

    @case("iv unfold")
    def _():
        return gc_(lambda a: (lambda b: (b.unfold(0, 2, 2)[0].mul_(3), b)[1])(a.clone()), D(4))

    @case("iv movedim")
    def _():
        return gc_(
            lambda a: (lambda b: (b.movedim(0, 1)[1].mul_(b.mean()), b.squeeze().unsqueeze(0).neg_(), b)[2])(
                a.clone()
            ),
            D(2, 3),
        )

    @case("where functional")
    def _():
        x, y = (D(3, 1), D(1, 4))
        c = torch.tensor([[True, False, True, False]])
        return gc_(lambda x, y: torch.where(c, x, y), x, y)

    @case("cdist zero")
    def _():
        r = []
        for p in (0, 0.5, 1, 1.5, 2, 3, math.inf):
            x = torch.zeros(2, 3, requires_grad=True, dtype=torch.double)
            y = torch.zeros(2, 3, requires_grad=True, dtype=torch.double)
            r.append(torch.autograd.grad(torch.cdist(x, y, p=p).sum(), (x, y)))
        return r

    @case("mv stride0")
    def _():
        m = D(2, 2)
        v = torch.tensor(1.0, dtype=torch.double, requires_grad=True)
        return gc_(lambda v: torch.mv(m.detach(), v.expand(2)), v)

    @case("logcumsumexp big")
    def _():
        a = torch.tensor([1000.0, 1001.0, -5.0], dtype=torch.double, requires_grad=True)
        return torch.autograd.grad(torch.logcumsumexp(a, 0).sum(), a)

    @case("nondiff ops")
    def _():
        x = R(2)
        return [
            f(x).requires_grad
            for f in (
                lambda x: x > 0,
                lambda x: x.argmax(),
                lambda x: x.isnan(),
                lambda x: torch.isclose(x, x),
                lambda x: x.signbit(),
                lambda x: x.sort()[1],
                lambda x: torch.bucketize(x, x),
                lambda x: torch.count_nonzero(x),
                lambda x: x.nonzero(),
                lambda x: x.argsort(),
                lambda x: torch.searchsorted(x, x),
                lambda x: torch.unique(x),
                lambda x: x.unique_consecutive(),
                lambda x: torch.histc(x),
                lambda x: x.bool(),
                lambda x: torch.eq(x, x),
                lambda x: x.any(),
                lambda x: torch.equal(x, x) and x.all(),
                lambda x: torch.allclose(x, x) and x.int(),
                lambda x: torch.multinomial(x, 1),
                lambda x: x.logical_and(x),
                lambda x: x.topk(1)[1],
                lambda x: x.new_zeros(2),
                lambda x: torch.zeros_like(x),
                lambda x: torch.rand_like(x),
                lambda x: torch.empty_like(x),
                lambda x: x.detach(),
                lambda x: x.data,
                lambda x: torch.randn_like(x),
                lambda x: torch.full_like(x, 1),
                lambda x: torch.ones_like(x),
                lambda x: x.new_tensor([1.0]),
                lambda x: x.new_full((1,), 1.0),
                lambda x: torch.tril_indices(2, 2),
            )
        ]

    @case("inplace on nograd leafcopy")
    def _():
        x = L(2)
        with torch.no_grad():
            y = x
            y.add_(1)
        return (x, x._version, nm(x))

    @case("set grad enabled fn")
    def _():
        x = L(1)
        with torch.set_grad_enabled(False):
            y = x * 2
        with torch.set_grad_enabled(True):
            z = x * 2
        torch.set_grad_enabled(False)
        w = x * 2
        torch.set_grad_enabled(True)
        return (y.requires_grad, z.requires_grad, w.requires_grad)

    @case("nograd noparens")
    def _():

        @torch.no_grad
        def f():
            return torch.is_grad_enabled()

        @torch.inference_mode
        def g():
            return torch.is_inference_mode_enabled()

        return (f(), g(), f.__name__, E(lambda: torch.no_grad(3)) and 1)

    @case("accumulate nonleaf grad")
    def _():
        y = R(2) * 2
        y.retain_grad()
        y.sum().backward(retain_graph=True)
        g = y.grad
        y.sum().backward()
        return (y.grad, g is y.grad)

    @case("double backward linear")
    def _():
        x = R(2)
        (g,) = torch.autograd.grad((x * 3).sum(), x, create_graph=True)
        return (g, g.requires_grad, nm(g))

    @case("nodes of what is set by index")
    def _():
        values = (2.0, 3, torch.tensor(2.0), torch.tensor(2).double(), torch.tensor(2), R(), R(1) * 2)
        places = (..., 0, slice(None), None, (0, 1), True, torch.tensor(0), ())
        found = []
        for value in values:
            for place in places:
                x = R(2, 2)
                e = x * 1
                e[place] = value
                nodes = [n and n.name() for n, _ in e.grad_fn.next_functions]
                e.sum().backward(retain_graph=True)
                found.append((e.detach(), nm(e), nodes, x.grad))
        return found

    @case("a stale view is asked for a number first")
    def _():
        e = R(2, 2) * 1
        part = e.chunk(2)[1]
        e.mul_(e)
        return E(lambda: torch.autograd.backward([part], [None]))

    @case("what is chosen from is kept")
    def _():
        i, found = torch.tensor([[0, 1, 0], [1, 0, 1]]), []
        chosen = (
            lambda x: x.gather(0, i),
            lambda x: x.take(i),
            lambda x: x.take_along_dim(i, 0),
            lambda x: x.masked_select(i == 1),
            lambda x: x.index_select(1, i[0]),
            lambda x: x[i[:, 0]],
        )
        for choose in chosen:
            x = R(2, 3)
            part = x * 1
            y = choose(part)
            kept = getattr(y.grad_fn, "_saved_self", None)
            part.add_(1)
            found.append((kept is part, E(lambda y=y: y.sum().backward()), x.grad))
        return found

    @case("the way back from a view")
    def _():
        base = torch.arange(6.0)
        pairs = torch.view_as_complex(base.view(3, 2))
        with torch.autograd._force_original_view_tracking(True):
            tracked = base.view(2, 3)[1]
        views = (base.view(2, 3), base[1:], pairs, pairs.conj(), torch._neg_view(base), tracked, base)
        return [
            [E(lambda v=v: v._rev_view_func_unsafe(v.detach())) for v in views],
            E(lambda: views[0]._rev_view_func_unsafe(1)),
            [E(f) for f in (views[0]._view_func, views[0]._view_func_unsafe)],
        ]

    @case("the way back from a view of one that knows it")
    def _():
        base = torch.arange(24.0).view(2, 3, 4)
        track = torch.autograd._force_original_view_tracking
        with track(True):
            known = base.split_with_sizes([1, 3], -1)[1]
            with track(False):
                views = (*known.chunk(2, 0), known.transpose(0, 1)[1], base[0], known.detach()[0])
                turned = torch.autograd.is_view_replay_enabled()
            views += (base[0],)
        return [
            turned,
            torch.autograd.is_view_replay_enabled(),
            [E(lambda v=v: v._rev_view_func_unsafe(v.detach())) for v in views],
            [E(lambda v=v: v._view_func(base + 100)) for v in views],
        ]

    @case("views of other elements than their base's, turned in place and written")
    def _():
        def weights(b):
            return torch.arange(1.0, b.numel() + 1).view(b.shape)

        made = (
            (torch.complex64, torch.view_as_real),
            (torch.complex64, torch.conj),
            (torch.complex64, lambda a: a.real),
            (torch.complex64, lambda a: a.conj().imag),
            (torch.float32, torch._neg_view),
        )
        seen = []
        for dtype, view in made:
            for write in (lambda b: b.add_(1), lambda b: b.mul_(weights(b)), lambda b: b.copy_(weights(b))):
                for whole in (False, True):
                    root = torch.arange(9.0).view(3, 3).to(dtype).requires_grad_()
                    base = root.clone()
                    b = view(base)
                    b.transpose_(0, 1)
                    write(b)
                    out = base if whole else b
                    out.backward(weights(out).to(out.dtype))
                    part = b[0]
                    seen.append((nm(out), nm(part), b.stride(), root.grad, b))
        return seen

    @case("to same")
    def _():
        x = R(2)
        return (
            x.to(torch.float32) is x,
            x.to("cpu") is x,
            x.to(x) is x,
            x.float() is x,
            x.to(torch.float32, copy=True) is x,
            nm(x.to(torch.float32, copy=True)),
            x.cpu() is x,
            x.contiguous() is x,
            x.type(torch.float32) is x,
            nm(x.clone(memory_format=torch.contiguous_format)),
        )

    return found


test_as_in_torch = same_in_torch(cases)
