"""gradcheck: the same results and refusals in both libraries."""

import warnings

import pytest
import torch as torch_itself
from outcomes import collector, err, function_of, outcome

import rushlight


def cases(torch):
    found, case = collector()
    gradcheck, gradgradcheck = torch.autograd.gradcheck, torch.autograd.gradgradcheck
    L = lambda *s: torch.full(s, 1.3, dtype=torch.float64, requires_grad=True)
    Lc = lambda *s: torch.full(s, 1.3 + 0.4j, dtype=torch.complex128, requires_grad=True)

    def mk(f, b):
        return function_of(torch, f, b, name="MyFn")

    def each(fast):
        def hooked(y, change):
            y.register_hook(change)
            return y

        for name, function, values in (
            ("hook", lambda x: hooked(x * x, lambda g: g + 0.01), (L(2),)),
            ("hook of complex", lambda x: hooked(x * x, lambda g: g.conj()), (Lc(1),)),
            ("hook real", lambda x: hooked(x.real * 2, lambda g: g + 0.01), (Lc(1),)),
            ("hook of the second", lambda x, y: (x * y, hooked(x + y, lambda g: g * 2)), (L(1), L(1))),
            ("hook that refuses None", lambda x: hooked(x * 1, lambda g: g.abs() and None), (L(1),)),
        ):

            @case(f"{fast} {name}")
            def _(function=function, values=values):
                return gradcheck(function, values, fast_mode=fast)

        @case(f"{fast} undefined and not handled")
        def _():
            def refuse(g):
                if g is None:
                    raise RuntimeError("undefined")

            return gradcheck(lambda x: hooked(x.clone(), refuse), (L(1),), fast_mode=fast)

        @case(f"{fast} shapes that change")
        def _():
            calls = []
            return gradcheck(
                lambda x: x.repeat(len(calls.append(1) or calls) % 3 + 1), (L(2),), fast_mode=fast
            )

        @case(f"{fast} dtypes that change")
        def _():
            calls = []
            f = lambda x: x if len(calls.append(1) or calls) % 2 else x.float()
            return gradcheck(f, (L(2),), fast_mode=fast)

        @case(f"{fast} no tensor")
        def _():
            return gradcheck(lambda x: None, (L(2),), fast_mode=fast)

        @case(f"{fast} undefined without reverse over reverse")
        def _():
            options = {"check_fwd_over_rev": True, "check_rev_over_rev": False}
            return gradgradcheck(torch.sin, (L(2),), fast_mode=fast, **options)

        @case(f"{fast} ok")
        def _():
            return gradcheck(lambda x, y: (x * y).sin(), (L(2, 2), L(2, 2)), fast_mode=fast)

        @case(f"{fast} single")
        def _():
            return gradcheck(torch.sin, L(2), fast_mode=fast)

        @case(f"{fast} complex")
        def _():
            return gradcheck(lambda x: x * x.conj() * 2j + x.exp(), (Lc(2),), fast_mode=fast)

        @case(f"{fast} complex->real")
        def _():
            return gradcheck(lambda x: x.abs(), (Lc(2),), fast_mode=fast)

        @case(f"{fast} real->complex")
        def _():
            return gradcheck(lambda x: x * (1 + 2j), (L(2),), fast_mode=fast)

        @case(f"{fast} wrong")
        def _():
            return gradcheck(mk(lambda c, x: x * 2, lambda c, g: g * 3).apply, (L(2),), fast_mode=fast)

        @case(f"{fast} wrong no raise")
        def _():
            return gradcheck(
                mk(lambda c, x: x * 2, lambda c, g: g * 3).apply,
                (L(2),),
                fast_mode=fast,
                raise_exception=False,
            )

        @case(f"{fast} wrong imag")
        def _():
            return gradcheck(
                mk(lambda c, x: x * 2, lambda c, g: g.real * 2 + 0j).apply, (Lc(2),), fast_mode=fast
            )

        @case(f"{fast} nondet")
        def _():
            n = [0]

            def b(c, g):
                n[0] += 1
                return g * 2 + 1e-7 * n[0]

            return gradcheck(mk(lambda c, x: x * 2, b).apply, (L(2),), fast_mode=fast)

        @case(f"{fast} nondet tol")
        def _():
            n = [0]

            def b(c, g):
                n[0] += 1
                return g * 2 * (1 + 1e-7 * n[0])

            return gradcheck(mk(lambda c, x: x * 2, b).apply, (L(2),), fast_mode=fast, nondet_tol=1e-3)

        @case(f"{fast} undefined")
        def _():
            def f(c, x):
                c.set_materialize_grads(False)
                return x * 2, x * 3

            return gradcheck(mk(f, lambda c, g, h: g * 2 + h * 3).apply, (L(2),), fast_mode=fast)

        @case(f"{fast} undefined off")
        def _():
            def f(c, x):
                c.set_materialize_grads(False)
                return x * 2, x * 3

            return gradcheck(
                mk(f, lambda c, g, h: (0 if g is None else g * 2) + (0 if h is None else h * 3)).apply,
                (L(2),),
                fast_mode=fast,
                check_undefined_grad=False,
            )

        @case(f"{fast} undefined scaled")
        def _():
            def f(c, x):
                return x * 2

            return gradcheck(mk(f, lambda c, g: g * 2 + 1).apply, (L(2),), fast_mode=fast)

        @case(f"{fast} no requires")
        def _():
            return gradcheck(torch.sin, (torch.ones(2, dtype=torch.float64),), fast_mode=fast)

        @case(f"{fast} float32")
        def _():
            return gradcheck(torch.sin, (torch.ones(2, requires_grad=True),), fast_mode=fast, atol=1e-2)

        @case(f"{fast} expanded")
        def _():
            return gradcheck(
                torch.sin, (torch.ones(1, dtype=torch.float64).expand(2).requires_grad_(),), fast_mode=fast
            )

        @case(f"{fast} no diff out")
        def _():
            return gradcheck(lambda x: x.detach() * 0, (L(2),), fast_mode=fast)

        @case(f"{fast} no diff out wrong")
        def _():
            return gradcheck(lambda x: x.detach() * 2, (L(2),), fast_mode=fast)

        @case(f"{fast} int out")
        def _():
            return gradcheck(lambda x: (x * 2).long(), (L(2),), fast_mode=fast)

        @case(f"{fast} mixed")
        def _():
            return gradcheck(lambda x, n, y: (x * n, y.detach()), (L(2), 3, torch.ones(2)), fast_mode=fast)

        @case(f"{fast} empty")
        def _():
            return gradcheck(lambda x: x * 2, (L(0),), fast_mode=fast)

        @case(f"{fast} bad dtype grads")
        def _():
            return gradcheck(
                mk(lambda c, x: x * 2, lambda c, g: g.float() * 2).apply,
                (L(2),),
                fast_mode=fast,
                check_grad_dtypes=True,
            )

        @case(f"{fast} batched")
        def _():
            return gradcheck(lambda x: x.sin(), (L(2),), fast_mode=fast, check_batched_grad=True)

        @case(f"{fast} gg")
        def _():
            return gradgradcheck(lambda x, y: (x * y).sin(), (L(2), L(2)), fast_mode=fast)

        @case(f"{fast} gg grad_outputs")
        def _():
            return gradgradcheck(lambda x: x.exp(), (L(2),), (L(2),), fast_mode=fast)

        @case(f"{fast} gg gen")
        def _():
            return gradgradcheck(lambda x: x.exp(), (L(2),), gen_non_contig_grad_outputs=True, fast_mode=fast)

        @case(f"{fast} gg wrong")
        def _():
            return gradgradcheck(
                mk(
                    lambda c, x: (c.save_for_backward(x), x * x)[1],
                    lambda c, g: g * 2 * c.saved_tensors[0].detach(),
                ).apply,
                (L(2),),
                fast_mode=fast,
            )

        @case(f"{fast} gg complex")
        def _():
            return gradgradcheck(lambda x: x * x.abs(), (Lc(2),), fast_mode=fast)

        @case(f"{fast} slopes that are infinite")
        def _():
            zero = torch.zeros(1, dtype=torch.float64, requires_grad=True)
            steep = mk(lambda ctx, x: x / 0, lambda ctx, g: g * 3)
            options = {"fast_mode": fast, "check_batched_grad": False}
            return [
                outcome(lambda f=f: gradcheck(f, (zero,), **options)) for f in (lambda x: x / 0, steep.apply)
            ]

    for fast in (False, True):
        each(fast)

    @case("none")
    def _():
        return gradcheck(torch.sin, (L(2),), check_backward_ad=False)

    @case("all tuple")
    def _():
        return gradcheck(lambda *a: (a[0] * a[1],), [L(2), L(2)])

    def numbers(check, *args, **options):
        """The first lines of what is said, with the numbers that differ."""
        try:
            return check(*args, **options)
        except RuntimeError as error:
            return [
                line[: line.find(".") + 8] if "." in line else line for line in str(error).splitlines()[:3]
            ]

    @case("the directions in which the fast mode looks")
    def _():
        wrong = mk(lambda ctx, x: x * 2, lambda ctx, g: g * 3)
        pushed = function_of(
            torch, lambda ctx, x: x * 2, lambda ctx, g: g * 2, jvp=lambda ctx, t: t * 3, name="Pushed"
        )
        half = torch.ones(2, dtype=torch.float16, requires_grad=True)
        told = [
            numbers(gradcheck, wrong.apply, (x,), fast_mode=True, rtol=rtol, atol=atol)
            for x in (L(2), L(2, 3), Lc(2), half)
            for rtol, atol in ((1e-3, 1e-5), (1.0, 1.0), (0.5, 0.1))
        ]
        told += [numbers(gradcheck, lambda x, y: (x * y, wrong.apply(y)), (L(2), L(2)), fast_mode=True)]
        options = {"fast_mode": True, "check_forward_ad": True}
        told += [numbers(gradcheck, pushed.apply, (x,), **options) for x in (L(2), Lc(2))]
        return [*told, numbers(gradcheck, lambda x, y: (x * 1, pushed.apply(y)), (Lc(2), L(2)), **options)]

    @case("the weights of gradgradcheck")
    def _():
        wrong = mk(lambda ctx, x: x**2, lambda ctx, g: g * 2)
        torch.manual_seed(3)
        told = [
            numbers(gradgradcheck, lambda x: wrong.apply(x) ** 3, (L(2),), gen_non_contig_grad_outputs=apart)
            for apart in (False, True)
        ]
        return told, torch.rand(1)

    @case("where another device is the default")
    def _():
        x, z, wrong = L(2), Lc(2), mk(lambda ctx, x: x * 2, lambda ctx, g: g * 3)
        all_at_once = {
            "check_forward_ad": True,
            "check_batched_grad": True,
            "check_batched_forward_grad": True,
        }
        with torch.device("meta"):
            told = [
                err(gradcheck, function, (value,), fast_mode=fast, **options)
                for fast in (False, True)
                for value in (x, z)
                for function in (torch.sin, lambda v: (v * 2, v.sum()), lambda v: v.detach(), wrong.apply)
                for options in ({}, all_at_once)
            ]
            return told, [err(gradgradcheck, torch.sin, (x,), fast_mode=fast) for fast in (False, True)]

    @case("drawing inside of a batch of tangents")
    def _():
        def seeded(function):
            def draw(x):
                torch.manual_seed(0)
                return function(x, training=True)

            return draw

        x = torch.tensor([-1.0, 2.0, -3.0], dtype=torch.float64, requires_grad=True)
        options = {"check_forward_ad": True, "check_batched_forward_grad": True}
        functions = torch.nn.functional.rrelu, torch.nn.functional.dropout
        return [err(gradcheck, seeded(function), (x,), **options) for function in functions]

    @case("tangents of sparse tensors")
    def _():
        sparse = torch.eye(2, dtype=torch.float64).to_sparse().requires_grad_()
        options = [{"fast_mode": fast, "masked": m} for fast in (False, True) for m in (False, True)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's, of invariants, once in a process
            return [
                err(gradcheck, torch.Tensor.to_dense, (sparse,), check_forward_ad=True, **each)
                for each in options
            ]

    return found


@pytest.mark.parametrize("name", cases(rushlight))
def test_as_in_torch(name):
    expected = outcome(cases(torch_itself)[name])
    assert outcome(cases(rushlight)[name]) == expected
