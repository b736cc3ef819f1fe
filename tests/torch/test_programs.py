"""Small programs around gradients: the same results and refusals in both libraries."""

import copy
import pickle

import pytest
import torch as torch_itself
import torch.utils.checkpoint
from outcomes import collector, outcome

import rushlight


def cases(torch):
    found, case = collector()
    Function = torch.autograd.Function
    L = lambda *s: torch.ones(*s, requires_grad=True)

    @case("grad mode class decoration")
    def _():
        @torch.no_grad()
        class Foo:
            def __init__(self):
                assert not torch.is_grad_enabled()

            def foo(self):
                return torch.is_grad_enabled()

        return Foo().foo()

    @case("grad mode no parens")
    def _():
        @torch.no_grad
        def f():
            return torch.is_grad_enabled()

        return f(), f.__name__

    @case("set_grad_enabled wraps")
    def _():
        @torch.set_grad_enabled(False)
        def f():
            return torch.is_grad_enabled()

        return torch.is_grad_enabled(), f(), torch.is_grad_enabled()

    @case("accumulate grad layout")
    def _():
        x = torch.ones(2, 3).t().requires_grad_()
        (x * torch.ones(3, 2)).sum().backward()
        return x.grad.stride(), x.stride()

    @case("accumulate grad same storage")
    def _():
        x = L(2)
        g = torch.ones(2)
        x.backward(g)
        return x.grad is g, x.grad.data_ptr() == g.data_ptr()

    @case("accumulate twice identity")
    def _():
        x = L(2)
        x.backward(torch.ones(2))
        a = x.grad
        x.backward(torch.ones(2))
        return a is x.grad, a

    @case("grad expand backward")
    def _():
        x = L(2)
        y = x.expand(3, 2)
        y.backward(torch.ones(3, 2))
        return x.grad

    @case("grad nonleaf many")
    def _():
        x = L(2)
        h = []
        y = x
        for _i in range(5):
            y = y * 2
            h.append(y)
        return torch.autograd.grad(y.sum(), h)

    @case("grad nonleaf register hook")
    def _():
        x = L(2)
        y = x * 2
        s = []
        y.register_hook(lambda g: s.append(1))
        torch.autograd.grad((y * 3).sum(), x)
        return s

    @case("leaf assignment")
    def _():
        x = torch.zeros(5)
        y = torch.ones(5, requires_grad=True)
        x[0] = y[0]
        x[1:3] = 2 * y[:2]
        x[4] = y.sum()
        x.sum().backward()
        return y.grad, x.is_leaf

    @case("setitem mask")
    def _():
        x = L(3, 3).clone()
        v = L(2)
        m = torch.eye(3) > 0
        x[m] = 3.0
        x[0, 1:] = v
        x.sum().backward()
        return v.grad

    @case("setitem errors")
    def _():
        x = L(3)
        x[0] = 1.0

    @case("backward no grad")
    def _():
        x = L(2)
        with torch.no_grad():
            y = x * 2
        y.sum().backward()

    @case("detach")
    def _():
        x = L(2)
        y = x.detach()
        return y.requires_grad, y.is_leaf, y.data_ptr() == x.data_ptr(), y._version

    @case("detach_ then backward")
    def _():
        x = L(2)
        y = x * 2
        y.detach_()
        return y.requires_grad, y.is_leaf, y.grad_fn

    @case("detach base")
    def _():
        x = L(2, 2)
        v = x.view(-1)
        return v.detach()._base is None, v._base is x

    @case("saved detach_ in place")
    def _():
        a = L(2).clone()
        b = a.sin()
        a.detach_()
        b.sum().backward()

    @case("type conversions")
    def _():
        x = L(2)
        y = x.double()
        y.sum().backward()
        return x.grad.dtype, y.grad_fn.name()

    @case("isolated node")
    def _():
        x = L(2)
        y = x * 2
        b = torch.max(y, 1, True)[1] if y.dim() > 1 else y.max(0)[1]
        return b.requires_grad

    @case("shape")
    def _():
        x = L(2, 3)
        return x.shape, len(x), x.size(0), x.T.shape

    @case("reduce max")
    def _():
        x = L(3)
        x.max().backward()
        a = x.grad
        x = torch.tensor([1.0, 3.0, 3.0], requires_grad=True)
        x.max().backward()
        y = torch.tensor([1.0, 3.0, 3.0], requires_grad=True)
        y.max(0)[0].backward()
        return a, x.grad, y.grad

    @case("norm zero")
    def _():
        x = torch.zeros(3, requires_grad=True)
        x.norm().backward()
        a = x.grad.clone()
        x.grad = None
        x.norm(p=1).backward()
        return a, x.grad

    @case("pow zero")
    def _():
        x = torch.zeros(2, requires_grad=True)
        (x**0).sum().backward()
        a = x.grad
        y = torch.zeros(1, requires_grad=True)
        (x.detach() ** y).sum().backward()
        return a, y.grad

    @case("pow scalar base")
    def _():
        a = torch.arange(1.0, 5.0, requires_grad=True)
        torch.pow(2, a).sum().backward()
        return a.grad

    @case("sigmoid nan etc")
    def _():
        x = torch.tensor([float("inf"), -float("inf")], requires_grad=True)
        x.sigmoid().sum().backward()
        return x.grad

    @case("unbind inplace")
    def _():
        x = L(2, 2)
        y = x * 1
        a, _b = y.unbind()
        y.mul_(2)
        return a.grad_fn

    @case("chunk inplace ok no grad")
    def _():
        x = torch.ones(4)
        a, _b = x.chunk(2)
        a.mul_(2)
        return x

    @case("retain_grad errors")
    def _():
        torch.ones(2).retain_grad()

    @case("retain_grad leaf noop")
    def _():
        x = L(2)
        x.retain_grad()
        return x.retains_grad

    @case("retain_grad props")
    def _():
        x = L(2)
        y = x * 2
        a = y.retains_grad
        y.retain_grad()
        y.retain_grad()
        (y * 2).sum().backward()
        return a, y.retains_grad, y.grad

    @case("nonleaf grad warn")
    def _():
        x = L(2)
        y = x * 2
        return y.grad

    @case("nonleaf is_leaf")
    def _():
        x = L(2)
        return x.is_leaf, (x * 2).is_leaf, torch.ones(2).is_leaf

    @case("requires_grad_ inplace")
    def _():
        a = torch.randn(2)
        a.requires_grad_()
        b = a * 2
        try:
            b.requires_grad_(False)
        except RuntimeError as e:
            return str(e).splitlines()[0]

    @case("requires_grad set nonleaf True")
    def _():
        y = L(2) * 2
        y.requires_grad = True
        return y.requires_grad

    @case("requires grad factory")
    def _():
        return [
            f(2, requires_grad=True).requires_grad
            for f in (torch.ones, torch.zeros, torch.rand, torch.randn, torch.empty)
        ]

    @case("requires grad int")
    def _():
        torch.ones(2, dtype=torch.int64, requires_grad=True)

    @case("requires grad attr str")
    def _():
        x = torch.ones(2)
        x.requires_grad = "a"

    @case("custom mutation grad output")
    def _():
        class F(Function):
            @staticmethod
            def forward(c, x):
                return x * 2

            @staticmethod
            def backward(c, g):
                return g.mul_(2)

        x = L(2)
        F.apply(x).sum().backward()
        return x.grad

    @case("return leaf in place")
    def _():
        class F(Function):
            @staticmethod
            def forward(c, a, b):
                c.mark_dirty(a)
                return a.add_(b), b + 2

            @staticmethod
            def backward(c, ga, gb):
                return ga, ga + gb

        x = torch.ones(2)
        y = L(2)
        q, p = F.apply(x, y)
        return q is x, q.requires_grad, q.grad_fn is p.grad_fn, x.grad_fn.name()

    @case("naughty forward")
    def _():
        class F(Function):
            @staticmethod
            def forward(c, x):
                c.a = x.requires_grad
                return x.clone()

            @staticmethod
            def backward(c, g):
                return g

        y = F.apply(L(2))
        return y.grad_fn.a

    @case("lobpcg-like nested functions")
    def _():
        class Inner(Function):
            @staticmethod
            def forward(c, x):
                c.save_for_backward(x)
                return x.exp()

            @staticmethod
            def backward(c, g):
                return g * c.saved_tensors[0].exp()

        class Outer(Function):
            @staticmethod
            def forward(c, x):
                with torch.enable_grad():
                    y = x.detach().requires_grad_()
                    z = Inner.apply(y)
                c.save_for_backward(y, z)
                return z.detach()

            @staticmethod
            def backward(c, g):
                y, z = c.saved_tensors
                (r,) = torch.autograd.grad(z, y, g)
                return r

        x = L(2)
        Outer.apply(x).sum().backward()
        return x.grad

    @case("deepcopy leaf grad")
    def _():
        x = L(2)
        (x * 2).sum().backward()
        y = copy.deepcopy(x)
        return y.grad, y.requires_grad, y.is_leaf

    @case("deepcopy nonleaf")
    def _():
        copy.deepcopy(L(2) * 2)

    @case("pickle leaf")
    def _():
        x = L(2)
        y = pickle.loads(pickle.dumps(x))
        return y.requires_grad, y

    @case("pickle nonleaf")
    def _():
        try:
            pickle.dumps(L(2) * 2)
            return "ok"
        except Exception as e:
            return type(e).__name__

    @case("ctx needs_input_grad in setup")
    def _():
        s = []

        class F(Function):
            @staticmethod
            def forward(x, y):
                return x * y

            @staticmethod
            def setup_context(c, i, o):
                s.append(c.needs_input_grad)

            @staticmethod
            def backward(c, g):
                return g, g

        F.apply(L(2), torch.ones(2))
        return s

    @case("as_strided grad")
    def _():
        x = torch.arange(6.0, requires_grad=True)
        x.as_strided((3, 2), (1, 1)).sum().backward()
        return x.grad

    @case("as_strided overlapping inplace")
    def _():
        x = torch.ones(3, requires_grad=True) * 1
        y = x.as_strided((2, 2), (1, 1))
        y.mul_(2)

    @case("flip sign inplace version")
    def _():
        x = torch.ones(2)
        v = x.view(-1)
        v.add_(1)
        return x._version, v._version

    @case("version of copies")
    def _():
        x = torch.ones(2)
        y = x.clone()
        y.add_(1)
        z = x.data
        z.add_(1)
        return x._version, y._version, z._version

    @case("inplace not saved fine")
    def _():
        x = L(2)
        y = x * 2
        z = y + 1
        y.mul_(3)
        z.sum().backward()
        return x.grad

    @case("backward through inplace chain")
    def _():
        x = L(2)
        y = x.clone()
        y.mul_(2).add_(1).exp_().sum().backward()
        return x.grad

    @case("inplace on view of expanded")
    def _():
        x = L(1)
        y = x.expand(3).clone()
        y[1] = 5
        y.sum().backward()
        return x.grad

    @case("unused output")
    def _():
        x = L(4)
        o = (x * 2).chunk(2)
        o[0].sum().backward()
        return x.grad

    @case("gather put etc")
    def _():
        x = L(2, 3)
        x.gather(1, torch.tensor([[0, 0], [1, 2]])).sum().backward()
        return x.grad

    @case("var mean helper")
    def _():
        x = torch.arange(4.0, requires_grad=True)
        torch.var(x).backward()
        return x.grad

    @case("complex abs zero")
    def _():
        x = torch.zeros(2, dtype=torch.complex64, requires_grad=True)
        x.abs().sum().backward()
        return x.grad

    @case("complex imag")
    def _():
        x = torch.ones(2, dtype=torch.complex64, requires_grad=True)
        x.imag.sum().backward()
        return x.grad

    @case("R to C mix")
    def _():
        x = L(2)
        z = torch.ones(2, dtype=torch.complex64, requires_grad=True)
        (x * z).abs().sum().backward()
        return x.grad, z.grad

    @case("where grad")
    def _():
        x = torch.tensor([1.0, -1.0], requires_grad=True)
        torch.where(x > 0, x.sqrt(), torch.zeros(2)).sum().backward()
        return x.grad

    @case("index twice")
    def _():
        x = L(3)
        x[torch.tensor([0, 0, 2])].sum().backward()
        return x.grad

    @case("cumprod zeros")
    def _():
        x = torch.tensor([1.0, 0.0, 2.0, 0.0], requires_grad=True)
        x.cumprod(0).sum().backward()
        return x.grad

    @case("prod zeros")
    def _():
        x = torch.tensor([1.0, 0.0, 2.0], requires_grad=True)
        x.prod().backward()
        return x.grad

    @case("fill_")
    def _():
        x = L(2)
        y = x * 2
        y.fill_(3.0)
        y.sum().backward()
        return x.grad

    @case("fill_ tensor")
    def _():
        x = L(2)
        v = L(()) if False else torch.tensor(2.0, requires_grad=True)
        y = x * 2
        y.fill_(v)
        y.sum().backward()
        return x.grad, v.grad

    @case("zero_")
    def _():
        x = L(2)
        y = x * 2
        y.zero_()
        y.sum().backward()
        return x.grad

    @case("copy_ ")
    def _():
        x = L(2)
        y = torch.zeros(2, 2)
        y.copy_(x)
        y.sum().backward()
        return x.grad, y.grad_fn.name()

    @case("copy_ dtype")
    def _():
        x = torch.ones(2, dtype=torch.float64, requires_grad=True)
        y = torch.zeros(2)
        y.copy_(x)
        y.sum().backward()
        return x.grad

    @case("masked_fill value")
    def _():
        x = L(2)
        v = torch.tensor(3.0, requires_grad=True)
        x.masked_fill(torch.tensor([True, False]), v).sum().backward()
        return x.grad, v.grad

    @case("resize requires grad")
    def _():
        L(2).resize_(3)

    @case("resize nonleaf")
    def _():
        (L(2) * 2).resize_(3)

    @case("set_ ")
    def _():
        x = torch.ones(2)
        x.set_(torch.zeros(3))
        return x.shape

    @case("out= grad")
    def _():
        torch.add(L(2), 1, out=torch.empty(2))

    @case("data assignment")
    def _():
        x = L(2)
        x * 2
        x.data = torch.zeros(3)
        return x.shape, x.requires_grad

    @case("data assignment dtype")
    def _():
        x = L(2)
        x.data = torch.zeros(2, dtype=torch.int64)

    @case("item tolist grad")
    def _():
        return L(1).item(), L(2).tolist()

    @case("numpy grad")
    def _():
        L(2).numpy()

    @case("bool of grad")
    def _():
        return bool(L(1))

    @case("iter grad")
    def _():
        x = L(3)
        a, b, _c = x
        return a.grad_fn.name(), a.output_nr, b.output_nr

    @case("named grads repr")
    def _():
        x = L(2)
        return repr(x * 2), repr(x.sum()), repr(x.view(2, 1).t()), repr((x * 2).detach())

    return found


@pytest.mark.parametrize("name", cases(rushlight))
def test_as_in_torch(name):
    expected = outcome(cases(torch_itself)[name])
    assert outcome(cases(rushlight)[name]) == expected
