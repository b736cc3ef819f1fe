"""The jvp of Functions: the same results and refusals in both libraries."""

import pytest
import torch as torch_itself
from outcomes import collector, err, function_of, outcome

import rushlight


def cases(torch):
    found, case = collector()
    from importlib import import_module

    fwAD = import_module(torch.__name__ + ".autograd.forward_ad")
    Function = torch.autograd.Function
    L = lambda *s: torch.ones(*s, requires_grad=True)

    class Sq(Function):
        @staticmethod
        def forward(ctx, x, k):
            ctx.save_for_forward(x)
            ctx.save_for_backward(x)
            ctx.k = k
            return x**2 * k

        @staticmethod
        def jvp(ctx, t, _):
            return 2 * ctx.k * ctx.saved_tensors[0] * t

        @staticmethod
        def backward(ctx, g):
            return 2 * ctx.k * ctx.saved_tensors[0] * g, None

    @case("jvp")
    def _():
        with fwAD.dual_level():
            y = Sq.apply(fwAD.make_dual(torch.ones(2) * 3, torch.ones(2)), 2)
            return fwAD.unpack_dual(y)

    @case("jvp and backward")
    def _():
        x = L(2)
        with fwAD.dual_level():
            d = fwAD.make_dual(x, torch.ones(2))
            y = Sq.apply(d, 2)
            y.sum().backward()
            return fwAD.unpack_dual(y).tangent, x.grad

    @case("what jvp finds saved")
    def _():
        seen = []

        class Both(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * 2

            @staticmethod
            def jvp(ctx, t):
                seen.append((len(ctx.saved_tensors), len(ctx._raw_saved_tensors), ctx.to_save is None))
                ctx.save_for_backward(t, t)  # too late
                return t * 2

            @staticmethod
            def backward(ctx, g):
                seen.append(len(ctx.saved_tensors))
                return g * 2

        class Fails(Both):
            @staticmethod
            def jvp(ctx, t):
                raise ValueError("in jvp")

        def pack(t):
            seen.append("packed")
            return t

        with fwAD.dual_level(), torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            Both.apply(fwAD.make_dual(L(2), torch.ones(2))).sum().backward()
            Both.apply(fwAD.make_dual(torch.ones(2), torch.ones(2)))
            with pytest.raises(ValueError, match="in jvp"):
                Fails.apply(fwAD.make_dual(L(2), torch.ones(2)))
        return seen

    @case("jvp missing")
    def _():
        class F(Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

        with fwAD.dual_level():
            F.apply(fwAD.make_dual(torch.ones(2), torch.ones(2)))

    @case("jvp no materialize")
    def _():
        s = []

        class F(Function):
            @staticmethod
            def forward(ctx, x, y):
                ctx.set_materialize_grads(False)
                return x * 2

            @staticmethod
            def jvp(ctx, a, b):
                s.append((a, b))
                return a * 2

        with fwAD.dual_level():
            F.apply(fwAD.make_dual(torch.ones(2), torch.ones(2)), torch.ones(2))
            return s

    @case("jvp inplace")
    def _():
        class F(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.mark_dirty(x)
                return x.mul_(2)

            @staticmethod
            def jvp(ctx, t):
                return t.mul_(2)

        with fwAD.dual_level():
            d = fwAD.make_dual(torch.ones(2), torch.ones(2))
            r = F.apply(d)
            return r is d, fwAD.unpack_dual(d)

    @case("jvp setup_context")
    def _():
        class F(Function):
            @staticmethod
            def forward(x):
                return x**3

            @staticmethod
            def setup_context(ctx, i, o):
                ctx.save_for_forward(*i)

            @staticmethod
            def jvp(ctx, t):
                return 3 * ctx.saved_tensors[0] ** 2 * t

        with fwAD.dual_level():
            return fwAD.unpack_dual(F.apply(fwAD.make_dual(torch.ones(2) * 2, torch.ones(2)))).tangent

    @case("gradcheck fwd")
    def _():
        return torch.autograd.gradcheck(
            lambda x: Sq.apply(x, 3),
            (torch.ones(2, dtype=torch.float64, requires_grad=True),),
            check_forward_ad=True,
        )

    @case("gradcheck fwd wrong")
    def _():
        class F(Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def jvp(ctx, t):
                return t * 3

            @staticmethod
            def backward(ctx, g):
                return g * 2

        return torch.autograd.gradcheck(
            F.apply, (torch.ones(2, dtype=torch.float64, requires_grad=True),), check_forward_ad=True
        )

    @case("gradcheck fwd ops")
    def _():
        return torch.autograd.gradcheck(
            lambda x, y: (x * y).sin().sum(0),
            (
                torch.full((2, 2), 0.7, dtype=torch.float64, requires_grad=True),
                torch.full((2, 2), 0.3, dtype=torch.float64, requires_grad=True),
            ),
            check_forward_ad=True,
        )

    @case("gg fwd")
    def _():
        return torch.autograd.gradgradcheck(
            lambda x: (x**3).sin(),
            (torch.full((2,), 0.7, dtype=torch.float64, requires_grad=True),),
            check_fwd_over_rev=True,
        )

    @case("input as is")
    def _():
        class F(Function):
            @staticmethod
            def forward(ctx, x):
                return x

            @staticmethod
            def jvp(ctx, t):
                return t.view_as(t)

        with fwAD.dual_level():
            d = fwAD.make_dual(torch.ones(2) * 2, torch.ones(2))
            y = F.apply(d)
            return fwAD.unpack_dual(y).tangent, fwAD.unpack_dual(d).tangent

    @case("checkpoint forward")
    def _():
        import importlib

        ck = importlib.import_module(torch.__name__ + ".utils.checkpoint")
        with fwAD.dual_level():
            d = fwAD.make_dual(torch.ones(2), torch.ones(2))
            return fwAD.unpack_dual(ck.checkpoint(lambda x: x.sin(), d, use_reentrant=False)).tangent

    @case("what the tangents of outputs have to be")
    def _():
        def write(ctx, x, y):
            ctx.mark_dirty(y)
            return y.mul_(2)

        def mark_new(ctx, x, y):
            ctx.mark_dirty(new := x * 2)
            return new

        def mark_input(ctx, x, y):
            ctx.mark_non_differentiable(x)
            return x

        forwards = {
            "the other input": lambda ctx, x, y: y,
            "a view of the other input": lambda ctx, x, y: y.view(-1),
            "a view": lambda ctx, x, y: x.view(-1),
            "itself": lambda ctx, x, y: x,
            "cut off": lambda ctx, x, y: x.detach(),
            "a copy": lambda ctx, x, y: x * 2,
            "the other input, written": write,
            "what is no input, marked": mark_new,
            "an input without derivative": mark_input,
        }
        answers = (lambda s, t: s * 2, lambda s, t: s.view_as(s), lambda s, t: s[:2], lambda s, t: t.view(-1))
        found = []
        for name, forward in forwards.items():
            for answer in answers:
                for moves in (False, True):
                    F = function_of(torch, forward, jvp=lambda ctx, s, t, f=answer: f(s, t))
                    with fwAD.dual_level():
                        # Its memory is that of the other one.
                        x = torch.arange(3.0)
                        y = x.detach()
                        dual = fwAD.make_dual(x, torch.ones(3))
                        other = fwAD.make_dual(y, torch.ones(3)) if moves else y
                        y = err(F.apply, dual, other)
                        tangent = y if isinstance(y, str) else fwAD.unpack_dual(y).tangent
                        found.append((name, moves, tangent))
        return found

    @case("a tangent that has a tangent")
    def _():
        with fwAD.dual_level():
            other = fwAD.make_dual(torch.ones(2), torch.ones(2))
            F = function_of(torch, lambda ctx, x: x * 2, jvp=lambda ctx, t: other)
            F.apply(fwAD.make_dual(torch.ones(2), torch.ones(2)))

    return found


def test_tangents_are_no_integers():
    fwAD = rushlight.autograd.forward_ad
    F = function_of(rushlight, lambda ctx, x: x * 2, jvp=lambda ctx, t: t.long())
    with fwAD.dual_level():
        dual = fwAD.make_dual(rushlight.ones(2), rushlight.ones(2))
        with pytest.raises(RuntimeError, match=r"complex: jvp returned a tensor of int64"):
            F.apply(dual)


@pytest.mark.parametrize("name", cases(rushlight))
def test_as_in_torch(name):
    expected = outcome(cases(torch_itself)[name])
    assert outcome(cases(rushlight)[name]) == expected
