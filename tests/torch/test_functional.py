"""autograd.functional: the same results and refusals in both libraries."""

import functools

import pytest
import torch as torch_itself
from outcomes import collector, outcome

import rushlight


def cases(torch):
    found, case = collector()
    F = torch.autograd.functional
    L = lambda *s: torch.arange(1.0, 1 + torch.Size(s).numel()).reshape(s)
    two = lambda x, y: (x * y, (x**2).sum())
    sq = lambda x: x**2
    cub = lambda x: (x**3).sum()
    cub2 = lambda x, y: (x**3 * y**2).sum()

    def each(cg, strict):
        kw = {"create_graph": cg, "strict": strict}
        t = f"cg={cg} strict={strict} "

        @case(t + "vjp")
        def _():
            return F.vjp(sq, L(2), torch.ones(2), **kw)

        @case(t + "vjp tuple")
        def _():
            return F.vjp(two, (L(2), L(2)), (torch.ones(2), torch.ones(())), **kw)

        @case(t + "vjp None")
        def _():
            return F.vjp(cub, L(2), **kw)

        @case(t + "vjp None bad")
        def _():
            return F.vjp(sq, L(2), **kw)

        @case(t + "vjp v size")
        def _():
            return F.vjp(sq, L(2), torch.ones(3), **kw)

        @case(t + "vjp v len")
        def _():
            return F.vjp(two, (L(2), L(2)), (torch.ones(2),), **kw)

        @case(t + "vjp v size tuple")
        def _():
            return F.vjp(two, (L(2), L(2)), (torch.ones(2), torch.ones(2)), **kw)

        @case(t + "vjp indep")
        def _():
            return F.vjp(lambda x, y: x * 2, (L(2), L(2)), torch.ones(2), **kw)

        @case(t + "vjp detached")
        def _():
            return F.vjp(lambda x: x.detach(), L(2), torch.ones(2), **kw)

        @case(t + "vjp linear")
        def _():
            return F.vjp(lambda x: x * 2, L(2), torch.ones(2), **kw)

        @case(t + "jvp")
        def _():
            return F.jvp(sq, L(2), torch.ones(2), **kw)

        @case(t + "jvp None")
        def _():
            return F.jvp(sq, L(1), **kw)

        @case(t + "jvp None bad")
        def _():
            return F.jvp(sq, L(2), **kw)

        @case(t + "jvp indep")
        def _():
            return F.jvp(lambda x, y: x * 2, (L(2), L(2)), (torch.ones(2), torch.ones(2)), **kw)

        @case(t + "jvp linear")
        def _():
            return F.jvp(lambda x: x * 2, L(2), torch.ones(2), **kw)

        @case(t + "jvp detached")
        def _():
            return F.jvp(lambda x: x.detach(), L(2), torch.ones(2), **kw)

        def second(n, f):
            @case(t + n)
            def _():
                return f(cub, L(2), torch.ones(2), **kw)

            @case(t + n + " tuple")
            def _():
                return f(cub2, (L(2), L(2)), (torch.ones(2), torch.ones(2)), **kw)

            @case(t + n + " None")
            def _():
                return f(cub, L(1), **kw)

            @case(t + n + " None bad")
            def _():
                return f(cub, L(2), **kw)

            @case(t + n + " nonscalar")
            def _():
                return f(sq, L(2), torch.ones(2), **kw)

            @case(t + n + " multi")
            def _():
                return f(lambda x: (x.sum(), x.sum()), L(2), torch.ones(2), **kw)

            @case(t + n + " linear")
            def _():
                return f(lambda x: x.sum(), L(2), torch.ones(2), **kw)

            @case(t + n + " quad")
            def _():
                return f(lambda x: (x * x).sum(), L(2), torch.ones(2), **kw)

            @case(t + n + " detached")
            def _():
                return f(lambda x: x.detach().sum(), L(2), torch.ones(2), **kw)

            @case(t + n + " indep")
            def _():
                return f(lambda x, y: (x**3).sum(), (L(2), L(2)), (torch.ones(2), torch.ones(2)), **kw)

        second("vhp", F.vhp)
        second("hvp", F.hvp)

        @case(t + "jac")
        def _():
            return F.jacobian(sq, L(2), **kw)

        @case(t + "jac tuple")
        def _():
            return F.jacobian(two, (L(2), L(2)), **kw)

        @case(t + "jac shape")
        def _():
            return F.jacobian(lambda x: x.sum(0), L(2, 3), **kw).shape

        @case(t + "jac scalar")
        def _():
            return F.jacobian(cub, L(2), **kw)

        @case(t + "jac indep")
        def _():
            return F.jacobian(lambda x, y: x * 2, (L(2), L(2)), **kw)

        @case(t + "jac linear")
        def _():
            return F.jacobian(lambda x: x * 2, L(2), **kw)

        @case(t + "jac detached")
        def _():
            return F.jacobian(lambda x: x.detach(), L(2), **kw)

        @case(t + "hes")
        def _():
            return F.hessian(cub, L(2), **kw)

        @case(t + "hes tuple")
        def _():
            return F.hessian(cub2, (L(2), L(2)), **kw)

        @case(t + "hes nonscalar")
        def _():
            return F.hessian(sq, L(2), **kw)

        @case(t + "hes multi")
        def _():
            return F.hessian(lambda x: (x.sum(), x.sum()), L(2), **kw)

        @case(t + "hes linear")
        def _():
            return F.hessian(lambda x: x.sum(), L(2), **kw)

        @case(t + "hes quad")
        def _():
            return F.hessian(lambda x: (x * x).sum(), L(2), **kw)

        @case(t + "hes detached")
        def _():
            return F.hessian(lambda x: x.detach().sum(), L(2), **kw)

        @case(t + "hes indep")
        def _():
            return F.hessian(lambda x, y: (x**3).sum(), (L(2), L(2)), **kw)

    for cg in (False, True):
        for strict in (False, True):
            each(cg, strict)

    @case("bad in")
    def _():
        return F.vjp(sq, 3)

    @case("bad in tuple")
    def _():
        return F.vjp(sq, (L(2), 3))

    @case("bad out")
    def _():
        return F.vjp(lambda x: 3, L(2))

    @case("bad v")
    def _():
        return F.vjp(sq, L(2), 3)

    @case("strategy")
    def _():
        return F.jacobian(sq, L(2), strategy="foo")

    @case("strategy fwd")
    def _():
        return F.jacobian(sq, L(2), strategy="forward-mode")

    @case("hes bad")
    def _():
        return F.hessian(cub, L(2), outer_jacobian_strategy="foo")

    @case("graph kept")
    def _():
        x = L(2).requires_grad_()
        _o, g = F.vjp(sq, x, torch.ones(2), create_graph=True)
        g.sum().backward()
        return x.grad

    @case("graph kept jac")
    def _():
        x = L(2).requires_grad_()
        g = F.jacobian(lambda x: x**3, x, create_graph=True)
        g.sum().backward()
        return x.grad

    @case("graph kept jvp")
    def _():
        x = L(2).requires_grad_()
        v = torch.ones(2, requires_grad=True)
        _o, g = F.jvp(lambda x: x**3, x, v, create_graph=True)
        g.sum().backward()
        return x.grad, v.grad

    @case("no_grad outer")
    def _():
        with torch.no_grad():
            return F.jacobian(sq, L(2)), F.hvp(cub, L(2), torch.ones(2)), F.vjp(sq, L(2), torch.ones(2))

    @case("forward mode by inputs without elements")
    def _():
        jacobian = functools.partial(F.jacobian, strategy="forward-mode", vectorize=True)
        none = torch.ones(0)
        return [jacobian(f, none) for f in (sq, lambda x: torch.ones(3), lambda x: (x, x * 1j))]

    @case("results of a batch of rows are pieces of one tensor")
    def _():
        x = torch.arange(1.0, 4.0)
        options = {"create_graph": True, "vectorize": True}
        found = F.jacobian(lambda x, y: (x * y, y.sum(), x.detach()), (x, x + 1), **options)
        names = [[j.grad_fn and j.grad_fn.next_functions[0][0].name() for j in row] for row in found]
        return found, [[j.requires_grad for j in row] for row in found], names

    @case("no results at all, in a batch")
    def _():
        return F.jacobian(lambda x: (), L(2), vectorize=True)

    @case("forward mode of what is no tensor, without batches")
    def _():
        return F.jacobian(sq, [L(2)], strategy="forward-mode")

    return found


@pytest.mark.parametrize("name", cases(rushlight))
def test_as_in_torch(name):
    expected = outcome(cases(torch_itself)[name])
    assert outcome(cases(rushlight)[name]) == expected


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch's own forward mode
@pytest.mark.parametrize("vectorize", [False, True])
@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
@pytest.mark.parametrize("given", [False, True])
def test_the_same_results_keep_a_history(vectorize, strategy, given):
    def kept(library):
        functional = library.autograd.functional
        x = library.ones(2, requires_grad=given)
        try:
            jacobian = functional.jacobian(lambda x: x**3, x, vectorize=vectorize, strategy=strategy)
            hessian = functional.hessian(
                lambda x: (x**3).sum(), x, vectorize=vectorize, outer_jacobian_strategy=strategy
            )
        except NotImplementedError as refused:
            return str(refused).split("\n")[0]
        return jacobian.requires_grad, hessian.requires_grad, jacobian.tolist(), hessian.tolist()

    assert kept(rushlight) == kept(torch_itself)
