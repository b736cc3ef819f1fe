"""Forward mode: levels, dual tensors, views and writes, custom Functions, inference."""

import threading
import weakref

import pytest
import torch as torch_itself
import torch.autograd.forward_ad
from outcomes import err, outcome

import rushlight
import rushlight.autograd.forward_ad


def cases(torch):
    found = {}
    lambda *s: torch.ones(*s, requires_grad=True)
    fwAD = torch.autograd.forward_ad

    def case(function):
        return found.setdefault(function.__name__, function)

    @case
    def level():
        with fwAD.dual_level() as l:
            r = [l, err(lambda: fwAD.enter_dual_level())]
        return r, err(lambda: fwAD.exit_dual_level()), err(lambda: fwAD.exit_dual_level(level=0))

    @case
    def sizes():
        with fwAD.dual_level():
            a = torch.ones(4)
            return (
                err(lambda: fwAD.make_dual(a, torch.ones(5))),
                err(lambda: fwAD.make_dual(a, torch.ones(4, dtype=torch.float64))),
                err(lambda: fwAD.make_dual(a, torch.ones(4, 1))),
                err(lambda: fwAD.make_dual(torch.ones(4, dtype=torch.int64), a)),
                err(lambda: fwAD.make_dual(a, torch.ones(4, dtype=torch.int64))),
                err(lambda: fwAD.make_dual(1, a)),
                err(lambda: fwAD.make_dual(a, 2.0)),
                err(lambda: fwAD.make_dual(a, torch.ones(4, device="meta"))),
            )

    @case
    def twice():
        with fwAD.dual_level():
            a = fwAD.make_dual(torch.ones(2), torch.ones(2))
            return (
                err(lambda: fwAD.make_dual(a, torch.ones(2))),
                err(lambda: fwAD.make_dual(torch.ones(2), a)),
                fwAD.unpack_dual(a).tangent,
            )

    @case
    def storage_numel():
        with fwAD.dual_level():

            def jac(v, t):
                return fwAD.make_dual(v, t)

            primal = torch.arange(5.0)[:4]
            tangent = torch.rand(4)
            d = fwAD.make_dual(primal, tangent)
            tt = fwAD.unpack_dual(d).tangent
            return tt.untyped_storage().size() // 4, tt.storage_offset(), tt is tangent

    @case
    def sameobj():
        t = torch.ones(2, 3)
        a = torch.zeros(2, 3)
        with fwAD.dual_level():
            d = fwAD.make_dual(a, t)
            u = fwAD.unpack_dual(d)
            r = [u.tangent is t, u.primal._base is a, d._base is a, u.primal is a]
            t2 = torch.ones(3, 2).t()
            d2 = fwAD.make_dual(a, t2)
            tt = fwAD.unpack_dual(d2).tangent
            r += [tt is t2, tt.stride()]
            a3 = torch.zeros(3, 2).t()
            d3 = fwAD.make_dual(a3, t)
            tt = fwAD.unpack_dual(d3).tangent
            r += [tt is t, tt.stride()]
        return r, fwAD.unpack_dual(d).tangent

    @case
    def printing():
        with fwAD.dual_level():
            d = fwAD.make_dual(torch.ones(2), torch.ones(2))
            r = str(d)
            s = repr(d)
            t = str(fwAD.unpack_dual(d))
        return r, s, t, str(d)

    @case
    def default_level():
        with fwAD.dual_level():
            d = fwAD.make_dual(torch.ones(2), torch.ones(2), level=0)
            return [
                fwAD.unpack_dual(d, level=0).tangent,
                err(lambda: fwAD.unpack_dual(d, level=1)),
                err(lambda: fwAD.make_dual(torch.ones(2), torch.ones(2), level=1)),
                err(lambda: fwAD.make_dual(torch.ones(2), torch.ones(2), level=-1)),
            ]

    @case
    def setfwd():
        r = [torch._C._is_fwd_grad_enabled()]
        with fwAD._set_fwd_grad_enabled(False):
            r.append(torch._C._is_fwd_grad_enabled())
            with fwAD.dual_level():
                d = fwAD.make_dual(torch.ones(2), torch.ones(2))
                r.append(fwAD.unpack_dual(d).tangent)
                r.append(fwAD.unpack_dual(d * 2).tangent)
        fwAD._set_fwd_grad_enabled(False)
        r.append(torch._C._is_fwd_grad_enabled())
        fwAD._set_fwd_grad_enabled(True)
        return r

    @case
    def advanced():
        a = torch.ones(2)
        t = torch.ones(2)
        with fwAD.dual_level():
            d = fwAD.make_dual(a, t)
            u = fwAD.unpack_dual(d)
            r = [u.primal._base is a, d._base is a]
            s = d._version
            u.primal.mul_(2)
            r += [d._version - s, a._version, fwAD.unpack_dual(d).tangent, d, a]
            v = t._version
            d.mul_(2)
            r += [t, t._version - v, fwAD.unpack_dual(d).tangent, a]
        return r

    @case
    def inplace_views():
        r = []
        with fwAD.dual_level():
            base = torch.zeros(4)
            d = fwAD.make_dual(torch.ones(2), torch.ones(2) * 3)
            base[:2].copy_(d)
            r.append(fwAD.unpack_dual(base).tangent)
            base = torch.zeros(4)
            v = base[1:3]
            v.mul_(d)
            r += [fwAD.unpack_dual(base).tangent, fwAD.unpack_dual(v).tangent]
            v2 = base.view(2, 2)
            r.append(fwAD.unpack_dual(v2).tangent)
            base.add_(1)
            r.append(fwAD.unpack_dual(v2).tangent)
            base2 = torch.zeros(2, 2)
            vv = base2[0]
            base2.copy_(torch.stack([d, d]))
            r += [fwAD.unpack_dual(vv).tangent, fwAD.unpack_dual(base2).tangent]
            x = torch.zeros(2)
            w = x.detach()
            w.copy_(d)
            r += [fwAD.unpack_dual(x).tangent, fwAD.unpack_dual(w).tangent]
            dd = d.detach()
            r += [fwAD.unpack_dual(dd).tangent, dd._is_view()]
            dn = torch.zeros(2)
            with torch.no_grad():
                vn = dn.view(1, 2)
                vn.copy_(d)
            r += [fwAD.unpack_dual(dn).tangent]
        return r

    @case
    def expanded_view_codual():
        with fwAD.dual_level():
            b = torch.ones(1).expand(10, 10)
            torch.ones(1)
            d = fwAD.make_dual(torch.ones(10, 10), torch.ones(10, 10))
            r = [err(lambda: b.copy_(d))]
            e = torch.ones(4)
            e.expand(3, 4)
            t = torch.ones(1).expand(4)
            d2 = fwAD.make_dual(torch.ones(4), t)
            r += [fwAD.unpack_dual(d2).tangent.stride(), fwAD.unpack_dual(d2).tangent is t]
            d2.mul_(2)
            r += [fwAD.unpack_dual(d2).tangent]
        return r

    @case
    def nondiff():
        with fwAD.dual_level():
            d = fwAD.make_dual(torch.ones(2), torch.ones(2))
            return [
                fwAD.unpack_dual(x).tangent
                for x in (
                    d > 1,
                    d == d,
                    d.isnan(),
                    d.argmax(),
                    d.max(0)[0],
                    d.sort()[1],
                    torch.zeros_like(d),
                    torch.ones_like(d),
                    torch.rand_like(d),
                    d.new_zeros(2),
                    d.sign(),
                    d.round(),
                    d.floor(),
                    d.clone(),
                    d.long(),
                    d.to(torch.float64),
                    d.data,
                    d.detach(),
                )
            ]

    @case
    def inference():
        with torch.inference_mode(), fwAD.dual_level():
            a = torch.ones(2)
            t = torch.ones(2)
            d = fwAD.make_dual(a, t)
            y = d * 2
            return (
                fwAD.unpack_dual(y),
                fwAD.unpack_dual(d).primal.is_inference(),
                d.is_inference(),
                d._is_view(),
            )

    @case
    def inference2():
        with torch.inference_mode():
            a = torch.ones(2)
            t = torch.ones(2)
        with fwAD.dual_level():
            return (
                err(lambda: fwAD.make_dual(a, t)),
                err(lambda: fwAD.make_dual(torch.ones(2), t)),
                err(lambda: fwAD.make_dual(a, torch.ones(2))),
            )

    @case
    def cleanup():

        t = torch.ones(2)

        class Marker:
            pass

        t.o = Marker()
        w = weakref.ref(t.o)
        with fwAD.dual_level():
            d = fwAD.make_dual(torch.ones(2), t)
            del t
            r = [w() is not None]
            del d
            r.append(w() is None)
        t = torch.ones(2)
        t.o = Marker()
        w = weakref.ref(t.o)
        with fwAD.dual_level():
            fwAD.make_dual(torch.ones(2), t)
            del t
        r.append(w() is None)
        return r

    @case
    def funcjvp():
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                ctx.save_for_backward(x, y)
                ctx.save_for_forward(x, y)
                return x * y

            @staticmethod
            def backward(ctx, g):
                x, y = ctx.saved_tensors
                return g * y, g * x

            @staticmethod
            def jvp(ctx, tx, ty):
                x, y = ctx.saved_tensors
                return (0 if tx is None else tx * y) + (0 if ty is None else ty * x)

        with fwAD.dual_level():
            d = fwAD.make_dual(torch.ones(2) * 3, torch.ones(2))
            return fwAD.unpack_dual(F.apply(d, torch.ones(2) * 2)).tangent

    @case
    def funcnojvp():
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, g):
                return g

        with fwAD.dual_level():
            d = fwAD.make_dual(torch.ones(2) * 3, torch.ones(2))
            return fwAD.unpack_dual(F.apply(d)).tangent

    def noted(forward, jvp):
        """A case: a Function with these methods applied to dual tensors."""

        def program():
            name = type("F", (torch.autograd.Function,), {})
            name.forward, name.jvp = staticmethod(forward), staticmethod(jvp)
            name.backward = staticmethod(lambda ctx, *grads: grads[0])
            with fwAD.dual_level():
                x = fwAD.make_dual(torch.arange(1.0, 4.0), torch.ones(3))
                results = name.apply(x)
                results = results if isinstance(results, tuple) else (results,)
                return [fwAD.unpack_dual(y).tangent for y in results]

        return program

    def write(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    def unmarked(ctx, x):
        y = x * 3
        ctx.mark_non_differentiable(y)
        return x * 2, y

    def keep(ctx, x):
        ctx.save_for_forward(x)
        return x * x

    for name, forward, jvp in (
        ("writes both", write, lambda ctx, t: t.mul_(2)),
        ("writes the value only", write, lambda ctx, t: t * 2),
        ("writes and answers None", write, lambda ctx, t: None),
        ("views both", lambda ctx, x: x[:2], lambda ctx, t: t[:2]),
        ("views the value only", lambda ctx, x: x[:2], lambda ctx, t: t[:2].clone()),
        ("as it is", lambda ctx, x: x, lambda ctx, t: t),
        ("as it is, a view", lambda ctx, x: x, lambda ctx, t: t.view_as(t)),
        ("too few", lambda ctx, x: (x * 1, x * 2), lambda ctx, t: t),
        ("too many", lambda ctx, x: x * 2, lambda ctx, t: (t, t)),
        ("another size", lambda ctx, x: x * 2, lambda ctx, t: t[:2]),
        ("no tensor", lambda ctx, x: x * 2, lambda ctx, t: 3),
        ("of integers", lambda ctx, x: (x * 2, x.long()), lambda ctx, t: (t * 2, t)),
        ("marked", unmarked, lambda ctx, t: (t * 2, t * 3)),
        ("marked, None", unmarked, lambda ctx, t: (t * 2, None)),
        ("kept", keep, lambda ctx, t: 2 * ctx.saved_tensors[0] * t),
        ("keeps a number", lambda ctx, x: ctx.save_for_forward(3), lambda ctx, t: t),
    ):
        found[f"jvp {name}"] = noted(forward, jvp)

    @case
    def forward_over_the_backward_of_a_function():
        class Square(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                out = x**2
                ctx.save_for_backward(x, out)
                ctx.save_for_forward(x)
                return out

            @staticmethod
            def backward(ctx, grad):
                x, out = ctx.saved_tensors
                return (2 * x + 0 * out) * grad + out * 0

            @staticmethod
            def jvp(ctx, t):
                return 2 * ctx.saved_tensors[0] * t

        with fwAD.dual_level():
            x = fwAD.make_dual(torch.arange(1.0, 4.0).requires_grad_(), torch.ones(3))
            (grad,) = torch.autograd.grad(Square.apply(x).sum(), x)
            return fwAD.unpack_dual(grad).tangent

    @case
    def a_tangent_is_conjugated_as_its_tensor():
        views = (lambda x: x, lambda x: x.conj(), lambda x: x._neg_view(), lambda x: x.conj()._neg_view())
        seen = []
        for of_tensor in views:
            for of_tangent in views:
                x = of_tensor(torch.tensor([[1 + 2j, 5 + 3j], [2 - 1j, 1 + 7j]]))
                t = of_tangent(torch.tensor([[1 + 3j, 3 - 1j], [2j + 5, 1 + 1j]]))
                with fwAD.dual_level():
                    dual = fwAD.make_dual(x, t)
                    tangent = fwAD.unpack_dual(dual).tangent
                    seen += [tangent is t, tangent.is_conj(), tangent.is_neg()]
                    parts = (dual.real, dual.imag, dual.conj(), dual[1:].mul_(2 + 1j), dual * dual)
                    seen += [fwAD.unpack_dual(part).tangent.resolve_neg() for part in parts]
        return seen

    @case
    def strides_that_are_never_stepped_along():
        memory = torch.ones(10)
        with fwAD.dual_level():
            return [
                fwAD.unpack_dual(fwAD.make_dual(memory.as_strided(n, a), t)).tangent is t
                for n, a, b in (
                    ((1,), (1,), (2,)),
                    ((0, 1, 1), (1, 1, 1), (1, 1, 0)),
                    ((1, 1, 1), (2, 2, 1), (1, 1, 0)),
                    ((2, 1), (1, 1), (1, 7)),
                    ((2, 2), (1, 2), (2, 1)),
                )
                for t in (torch.ones(10).as_strided(n, b),)
            ]

    @case
    def levels_by_number():
        x, t = torch.ones(2), torch.ones(2)
        seen = [err(lambda n=n: fwAD.make_dual(x, t, level=n)) for n in (-1, 0, 1)]
        seen += [err(lambda n=n: fwAD.unpack_dual(x, level=n)) for n in (-1, 0, 1)]
        with fwAD.dual_level():
            dual = fwAD.make_dual(x, t)
            for n in (-1, 0, 1, 2):
                seen += [err(lambda y=y, n=n: fwAD.unpack_dual(y, level=n)) for y in (x, dual)]
        return seen + [err(lambda n=n: fwAD.unpack_dual(dual, level=n)) for n in (-1, 0, 1)]

    @case
    def seen_and_made_in_inference_mode():
        with fwAD.dual_level():
            outside = fwAD.make_dual(torch.ones(2), torch.ones(2))
            with torch.inference_mode():
                view, made = outside[0], fwAD.make_dual(torch.ones(2), torch.ones(2))
                seen = [fwAD.unpack_dual(x) for x in (outside, view, made)]
            return seen + [fwAD.unpack_dual(x) for x in (outside, view, made)]

    @case
    def tangents_of_grad():
        with fwAD.dual_level():
            x = torch.arange(3.0).requires_grad_()
            dual = fwAD.make_dual(x, torch.ones(3))
            y = dual * dual
            y.retain_grad()
            (y * y).sum().backward()
            seen = [fwAD.unpack_dual(g) for g in (y.grad, x.grad)]
            (dual * dual).sum().backward()
            return seen, fwAD.unpack_dual(x.grad)

    @case
    def other_memory():
        with fwAD.dual_level():
            dual = fwAD.make_dual(torch.ones(2), torch.ones(2))
            calls = (lambda: dual.set_(), lambda: dual.set_(torch.ones(3)), lambda: torch.ones(2).set_(dual))
            return [err(call) for call in calls]

    @case
    def outputs_without_tangents():
        with fwAD.dual_level():
            dual, flags = fwAD.make_dual(torch.ones(2), torch.ones(2)), torch.zeros(2, dtype=torch.bool)
            calls = (
                lambda: torch.eq(dual, 1, out=flags),
                lambda: torch.gt(torch.ones(2), dual, out=flags),
                lambda: torch.logical_not(dual, out=flags),
                lambda: torch.argmax(dual, out=torch.zeros((), dtype=torch.int64)),
                lambda: torch.eq(torch.ones(2), 1, out=flags),
            )
            return [err(call) for call in calls]

    @case
    def laid_out_tangents():
        o, c = torch.ones, torch.complex64
        pairs = (
            (o(5)[1:], o(4)),
            (o(5)[1:], o(6)[2:]),
            (o(5)[1:], o(5)[1:]),
            (o(3, 2).t(), o(2, 3).double()),
            (o(3, 2).t(), o(3, 2).double().t()),
            (o(2).double(), o(2)),
            (o(2), o(2) * 1j),
            (o(2, dtype=c), o(2)),
            (o(5, dtype=c)[1:], o(4)),
            (o(2, dtype=c).conj(), o(2) * 1j),
        )
        with fwAD.dual_level():
            duals = [(fwAD.unpack_dual(fwAD.make_dual(*pair)).tangent, pair[1]) for pair in pairs]
            return [
                (t is given, t, t._is_view(), t.stride(), t.storage_offset(), t.is_conj())
                for t, given in duals
            ]

    @case
    def duals_are_aliases():
        calls = []

        class Seen(torch.Tensor):
            __torch_function__ = torch._C._disabled_torch_function_impl

            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                calls.append(str(func))
                with torch.utils._mode_utils.no_dispatch():
                    result = func(*args, **(kwargs or {}))
                return result.as_subclass(cls) if isinstance(result, torch.Tensor) else result

        with fwAD.dual_level():
            dual = fwAD.make_dual(torch.ones(2).as_subclass(Seen), torch.ones(2))
            fwAD.unpack_dual(dual)
        return [call for call in calls if "alias" in call or "view" in call]

    @case
    def turned_in_place_without_recording():
        seen = []
        for make in (lambda x: x * 2, lambda x: x.clone(), lambda x: x.view_as(x)):
            for write in (lambda r: r.mul_(2), lambda r: r.masked_fill_(r > 2.5, 0.5)):
                x = torch.arange(6.0).view(2, 3).requires_grad_()
                with fwAD.dual_level():
                    r = make(fwAD.make_dual(x, torch.arange(6.0).view(2, 3)))
                    with torch.no_grad():
                        r.t_()
                    seen.append(err(lambda: write(r)))  # noqa: B023
                    seen.append(fwAD.unpack_dual(r).tangent.tolist())
        return seen

    @case
    def written_where_elements_share_their_place():
        seen = []
        for write in (lambda t: t.zero_(), lambda t: t.fill_(3), lambda t: t.mul_(2)):
            with fwAD.dual_level():
                dual = fwAD.make_dual(torch.ones(2, 1), torch.full((2, 1), 5.0))
                refused = err(lambda: write(dual.expand(2, 3)))  # noqa: B023
                refused = refused if isinstance(refused, str) else None
                seen.append((refused, *map(torch.Tensor.tolist, fwAD.unpack_dual(dual))))
        return seen

    @case
    def running_statistics_have_no_tangents():
        seen = []
        with fwAD.dual_level():
            x, mean, var = (
                fwAD.make_dual(t, torch.ones_like(t)) for t in (torch.rand(4, 2), *torch.ones(2, 2))
            )
            plain = torch.ones(2)
            for given in ((x, mean, var), (x, mean, plain), (x.detach(), mean, var), (x, plain, plain)):
                made = err(lambda: torch.nn.functional.batch_norm(*given))  # noqa: B023
                seen.append(made if isinstance(made, str) else fwAD.unpack_dual(made).tangent is None)
            seen.append(fwAD.unpack_dual(torch.linalg.vector_norm(mean, 0)).tangent)
            index = torch.tensor([0, 1])
            seen.append(err(torch.scatter, mean, 0, index, plain, reduce="add"))
            seen.append(err(lambda: mean.clone().scatter_(0, index, plain, reduce="add")))
        return seen

    @case
    def after_a_checkpoint_that_ended_early_within_another():
        from functools import partial

        checkpoint = partial(torch.utils.checkpoint.checkpoint, use_reentrant=False)
        x = torch.ones(2, requires_grad=True)
        y = checkpoint(lambda z: checkpoint(lambda q: q**3, z * 2), x)
        torch.autograd.grad(y.sum(), x, create_graph=True)[0].sum().backward()
        with fwAD.dual_level():
            return fwAD.unpack_dual(fwAD.make_dual(torch.ones(2), torch.ones(2)) * 2).tangent

    @case
    def levels_are_seen_by_all_threads():
        seen = []

        def run(work, *args):
            thread = threading.Thread(target=lambda: seen.append(err(work, *args)))
            thread.start()
            thread.join()

        def work(dual):
            seen.append(fwAD.unpack_dual(dual * dual))
            seen.append(fwAD.unpack_dual(fwAD.make_dual(torch.ones(2), torch.ones(2)).exp()))
            with fwAD._set_fwd_grad_enabled(False):
                seen.append(fwAD.unpack_dual(dual * 2).tangent)
            seen.append((fwAD._is_fwd_grad_enabled(), fwAD.unpack_dual(dual.mul_(2)).tangent))
            fwAD.enter_dual_level()

        with fwAD.dual_level():
            dual = fwAD.make_dual(torch.tensor([1.0, 2.0]), torch.ones(2))
            run(work, dual)
            with fwAD._set_fwd_grad_enabled(False):  # is the thread's own
                run(work, dual)
        run(fwAD.enter_dual_level)
        seen.append(fwAD.unpack_dual(fwAD.make_dual(torch.ones(2), torch.ones(2)) * 2))
        run(fwAD.exit_dual_level)
        seen.append(fwAD.unpack_dual(dual))
        return seen

    return found


def test_the_tangent_of_a_tensor_that_overlaps_itself_is_kept():
    fwAD = rushlight.autograd.forward_ad
    windows = rushlight.arange(5.0).unfold(0, 3, 1)
    with fwAD.dual_level():
        dual = fwAD.make_dual(windows, rushlight.arange(9.0).view(3, 3))
        assert fwAD.unpack_dual(dual * 2).tangent.flatten().tolist() == list(range(0, 18, 2))


@pytest.mark.parametrize("name", cases(rushlight))
def test_same(name):
    ours, theirs = outcome(cases(rushlight)[name]), outcome(cases(torch_itself)[name])
    assert ours == theirs
