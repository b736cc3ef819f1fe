"""backward(), grad(), gradient edges and gradient dtypes in their corners."""

from collections import OrderedDict

from corners import same_in_torch, short_names
from outcomes import collector


def cases(torch):
    found, case = collector()
    short = short_names(torch)
    L, R, nm, E = short.L, short.R, short.nm, short.E
    Function = torch.autograd.Function
    Variable = torch.autograd.Variable
    G = torch.autograd.graph

    @case("of two mistakes the output's is named first")
    def _():
        x, c = L(2), torch.ones(2)
        return [
            E(lambda: torch.autograd.grad(c.sum(), [None])),
            E(lambda: torch.autograd.grad(x, [None])),
            E(lambda: torch.autograd.grad(x.sum(), [None])),
            E(lambda: torch.autograd.grad(x, [3], torch.ones(2, 2), is_grads_batched=True)),
        ]

    @case("names that are listed, and looked at without a warning")
    def _():
        x = L(2)
        return "volatile" in dir(x), [n for n in dir(x) if n not in ("imag",) and not hasattr(x, n)]

    @case("gt order")
    def _():
        r = []
        a = L(1)
        b = a.sin()
        c = a.cos()
        d = b * c

        def h(*_):
            r.append([n.name() for n in torch._C._current_graph_task_execution_order()])

        d.register_hook(h)
        d.backward()
        return r

    @case("gt order mt")
    def _():
        r = []
        a = L(1)
        d = a.sin() * a.cos()
        d.register_hook(lambda g: r.append(E(lambda: len(torch._C._current_graph_task_execution_order()))))
        with torch.autograd.set_multithreading_enabled(False):
            d.backward()
        return r

    @case("gt order outside")
    def _():
        return torch._C._current_graph_task_execution_order()

    @case("gt will")
    def _():
        r = []
        a = L(1)
        b = L(1)
        c = a.sin()
        d = b.cos()
        nd = d.grad_fn
        nc = c.grad_fn
        na = a.view_as(a).grad_fn.next_functions[0][0]
        nb = b.view_as(b).grad_fn.next_functions[0][0]
        e = c + d

        def h(*_):
            r.append([E(lambda n=n: torch._C._will_engine_execute_node(n)) for n in (nc, nd, na, nb)])

        e.register_hook(h)
        e.backward(inputs=(a,), retain_graph=True)
        e.backward(retain_graph=True)
        torch.autograd.grad(e, (b,))
        return r

    @case("gt will outside")
    def _():
        return torch._C._will_engine_execute_node(L(1).sin().grad_fn)

    @case("gt will bad")
    def _():
        return torch._C._will_engine_execute_node("x")

    @case("seqnr")
    def _():
        x = L(1)
        a = x * 2
        b = x * 3
        return (
            a.grad_fn._sequence_nr() < b.grad_fn._sequence_nr(),
            x.view_as(x).grad_fn.next_functions[0][0]._sequence_nr(),
            type(a.grad_fn._sequence_nr()).__name__,
        )

    @case("nextf")
    def _():
        a = L(1)
        return (
            [(n and n.name(), i) for n, i in (a * torch.ones(1)).grad_fn.next_functions],
            [(n and n.name(), i) for n, i in torch.cat([a, torch.ones(1), a]).grad_fn.next_functions],
            (a + 1).grad_fn.next_functions.__class__.__name__,
            [(n and n.name(), i) for n, i in torch.max(a, dim=0)[0].grad_fn.next_functions],
        )

    @case("acc identity")
    def _():
        a = L(1)
        n1 = (a * 2).grad_fn.next_functions[0][0]
        n2 = (a * 3).grad_fn.next_functions[0][0]
        return (n1 is n2, n1.variable is a, n1.name(), n1.next_functions)

    @case("acc variable other")
    def _():
        return (L(1) * 2).grad_fn.variable

    @case("input meta")
    def _():
        y = L(2, 3) * 2
        m = y.grad_fn._input_metadata
        return (
            type(m).__name__,
            [(i.shape, i.dtype, i.device, i.is_nested_tensor) for i in m],
            type(m[0]).__name__,
        )

    @case("reg hook dict")
    def _():
        y = L(2) * 2
        r = []
        d = OrderedDict()
        d[0] = lambda g: r.append(g)
        y.grad_fn._register_hook_dict(d)
        d[1] = lambda g: r.append("later")
        y.sum().backward()
        return r

    @case("reg hook dict bad")
    def _():
        return (L(2) * 2).grad_fn._register_hook_dict(3)

    @case("set seq")
    def _():
        y = L(2) * 2
        y.grad_fn._set_sequence_nr(5)
        return y.grad_fn._sequence_nr()

    @case("node requires grad")
    def _():
        return (L(2) * 2).grad_fn.requires_grad

    @case("edge types")
    def _():
        e = G.get_gradient_edge(L(1))
        return (type(e).__name__, e._fields, e.node.name(), e.output_nr, e.ownership_token is None)

    @case("edge non")
    def _():
        x = L(1)
        y = x * 2
        e = G.get_gradient_edge(y)
        return (e.node is y.grad_fn, e.ownership_token, e.output_nr)

    @case("edge noreq")
    def _():
        return G.get_gradient_edge(torch.ones(1))

    @case("edge bad")
    def _():
        return G.get_gradient_edge(3)

    @case("edge grad")
    def _():
        x = L(3)
        tmp = x.clone()
        out = (tmp * 2).sum()
        e = G.get_gradient_edge(tmp)
        ex = G.get_gradient_edge(x)
        return (
            torch.autograd.grad(out, e, retain_graph=True),
            torch.autograd.grad(out, [e, ex, x], retain_graph=True),
            torch.autograd.grad(out, G.GradientEdge(tmp.grad_fn, 0)),
        )

    @case("edge output scalar")
    def _():
        x = R(3)
        e = G.get_gradient_edge((x * 2).sum())
        torch.autograd.backward(e, inputs=[x], retain_graph=True)
        torch.autograd.backward([e], inputs=x)
        return x.grad

    @case("edge bw inputs")
    def _():
        x = R(3)
        y = x * 2
        e = G.get_gradient_edge(y)
        y.sum().backward(inputs=[e])

    @case("edge bw inputs leaf")
    def _():
        x = R(3)
        y = x * 2
        y.sum().backward(inputs=[G.get_gradient_edge(x)])
        return x.grad

    @case("edge out and tensor")
    def _():
        x = R(3)
        o = x.sum()
        return torch.autograd.grad((o, G.get_gradient_edge((x * 2).sum())), x)

    @case("edge wrong shape")
    def _():
        x = R(3)
        e = G.get_gradient_edge(x * 2)
        torch.autograd.grad(e, x, torch.ones(2))

    @case("edge materialize")
    def _():
        x = R(3)
        y = R(2)
        return torch.autograd.grad((x * 2).sum(), [x, G.get_gradient_edge(y)], materialize_grads=True)

    @case("edge bad nr")
    def _():
        x = R(4)
        n = (x * 2).grad_fn
        return torch.autograd.grad(G.GradientEdge(n, 3), x, torch.ones(4))

    @case("edge none input")
    def _():
        x = R(4)
        return torch.autograd.grad((x * 2).sum(), G.GradientEdge(None, 0))

    @case("edge batched")
    def _():
        x = R(2)
        e = G.get_gradient_edge(x * 2)
        return torch.autograd.grad(e, x, torch.eye(2), is_grads_batched=True)

    @case("bw inputs mix")
    def _():
        x = R(2)
        y = x * 2
        z = (y * 3).sum()
        z.backward(inputs=[y, x])
        return (x.grad, y.grad)

    @case("bw inputs nonleaf twice")
    def _():
        x = R(2)
        y = x * 2
        z = (y * 3).sum()
        z.backward(inputs=y, retain_graph=True)
        z.backward(inputs=y)
        return (y.grad, x.grad)

    @case("bw inputs unreach")
    def _():
        x = R(2)
        y = R(2)
        (x * 2).sum().backward(inputs=[y])
        return (x.grad, y.grad)

    @case("bw inputs dup")
    def _():
        x = R(2)
        (x * 2).sum().backward(inputs=[x, x])
        return x.grad

    @case("grad inputs dup")
    def _():
        x = R(2)
        a, b = torch.autograd.grad((x * 2).sum(), [x, x])
        return (a, b, a is b)

    @case("bw inputs noreq")
    def _():
        (L(2) * 2).sum().backward(inputs=[torch.ones(2)])

    @case("bw inputs str")
    def _():
        (L(2) * 2).sum().backward(inputs=["a"])

    @case("bw inputs none")
    def _():
        (L(2) * 2).sum().backward(inputs=[None])

    @case("grad inputs str")
    def _():
        torch.autograd.grad((L(2) * 2).sum(), "a")

    @case("grad inputs int")
    def _():
        torch.autograd.grad((L(2) * 2).sum(), 3)

    @case("grad out int")
    def _():
        torch.autograd.grad(3, L(2))

    @case("grad out str")
    def _():
        torch.autograd.grad("a", L(2))

    @case("grad out none")
    def _():
        torch.autograd.grad(None, L(2))

    @case("bw none")
    def _():
        torch.autograd.backward(None)

    @case("bw int")
    def _():
        torch.autograd.backward(3)

    @case("bw empty")
    def _():
        return torch.autograd.backward([])

    @case("grad empty out")
    def _():
        return torch.autograd.grad([], L(2), allow_unused=True)

    @case("bw leaf")
    def _():
        x = L(1)
        x.backward()
        return x.grad

    @case("bw gen")
    def _():
        x = L(2)
        torch.autograd.backward(t for t in [x.sum(), (x * 2).sum()])
        return x.grad

    @case("bw grads gen")
    def _():
        x = L(2)
        torch.autograd.backward([x * 1, x * 2], (t for t in [torch.ones(2)] * 2))
        return x.grad

    @case("bw noscalar")
    def _():
        (L(2) * 2).backward()

    @case("bw int tensor")
    def _():
        torch.ones((), dtype=torch.int64).backward()

    @case("bw gradstr")
    def _():
        (L(2) * 2).backward("x")

    @case("bw gradfloat")
    def _():
        (L(2) * 2).sum().backward(1.0)

    @case("bw gradlist")
    def _():
        (L(2) * 2).backward([torch.ones(2)])

    @case("bw gradshape")
    def _():
        (L(2) * 2).backward(torch.ones(3))

    @case("bw gradbcast")
    def _():
        (L(2) * 2).backward(torch.ones(1))

    @case("bw graddtype")
    def _():
        x = L(2)
        (x * 2).backward(torch.ones(2, dtype=torch.float64))
        return x.grad

    @case("bw gradint")
    def _():
        x = L(2)
        (x * 2).backward(torch.ones(2, dtype=torch.int64))
        return x.grad

    @case("bw gradcplx")
    def _():
        (L(2) * 2).backward(torch.ones(2, dtype=torch.complex64))

    @case("bw cplx scalar")
    def _():
        torch.ones((), dtype=torch.complex64, requires_grad=True).backward()

    @case("bw count")
    def _():
        torch.autograd.backward([L(2) * 2, L(2) * 3], [torch.ones(2)])

    @case("bw count2")
    def _():
        torch.autograd.backward([L(2) * 2], [torch.ones(2)] * 2)

    @case("bw count3")
    def _():
        torch.autograd.grad([L(2) * 2], [L(2)], [torch.ones(2)] * 2)

    @case("bw mix none")
    def _():
        x = L(2)
        torch.autograd.backward([x.sum(), x * 2], [None, torch.ones(2)])
        return x.grad

    @case("bw mix none bad")
    def _():
        x = L(2)
        torch.autograd.backward([x * 2, x * 2], [None, torch.ones(2)])

    @case("bw depr")
    def _():
        x = L(2)
        torch.autograd.backward(x * 2, grad_variables=torch.ones(2))
        return x.grad

    @case("bw depr2")
    def _():
        x = L(2)
        torch.autograd.backward(x * 2, torch.ones(2), grad_variables=torch.ones(2))

    @case("grad only inputs")
    def _():
        x = L(2)
        return torch.autograd.grad((x * 2).sum(), x, only_inputs=False)

    @case("create graph warn")
    def _():
        torch.set_warn_always(True)
        try:
            x = L(1)
            (x * x).backward(create_graph=True)
            (x * x).backward()
            torch.autograd.backward(x * x, create_graph=True)
            torch.autograd.grad(x * x, x, create_graph=True)
        finally:
            torch.set_warn_always(False)

    @case("batched none")
    def _():
        x = R(2)
        return torch.autograd.grad(
            (x * 2, (x * 3).sum()), x, (torch.eye(2), torch.ones(2)), is_grads_batched=True
        )

    @case("batched, with zeros for what is not used")
    def _():
        x, unused = torch.ones(3, requires_grad=True), torch.ones(2, requires_grad=True)
        options = {"is_grads_batched": True, "materialize_grads": True}
        plain = torch.autograd.grad(x**2, (x, unused), torch.eye(3), **options)
        recorded = torch.autograd.grad(x**2, (x, unused), torch.eye(3), create_graph=True, **options)
        return plain, [(g.detach(), g.requires_grad) for g in recorded]

    @case("versions of one tensor or a tuple are preserved")
    def _():
        return torch.autograd._unsafe_preserve_version_counter([torch.ones(2)])

    @case("batched bad")
    def _():
        x = R(2)
        return torch.autograd.grad(x * 2, x, torch.ones(2), is_grads_batched=True)

    @case("batched bad2")
    def _():
        x = R(2)
        return torch.autograd.grad(x * 2, x, torch.ones(2, 3), is_grads_batched=True)

    @case("batched scalar0")
    def _():
        x = R(2)
        return torch.autograd.grad(x.sum(), x, torch.tensor(1.0), is_grads_batched=True)

    @case("batched unused")
    def _():
        x = R(2)
        y = R(2)
        return torch.autograd.grad(x * 2, [x, y], torch.eye(2), is_grads_batched=True, allow_unused=True)

    @case("del grad")
    def _():
        x = L(2)
        (x * 2).sum().backward()
        del x.grad
        return x.grad

    @case("leaf data grad")
    def _():
        x = L(2)
        x.data = torch.ones(3)
        return x.shape

    @case("no grad assign")
    def _():
        x = R(5, 5)
        y = torch.zeros(5)
        with torch.no_grad():
            x[0] = y
        return (x.requires_grad, x.grad_fn, x)

    @case("no grad version")
    def _():
        x = R(3)
        v = x._version
        with torch.no_grad():
            x.add_(1)
        return x._version - v

    @case("gdtype")
    def _():
        x = L(2)
        r = [x.grad_dtype]
        x.grad_dtype = torch.float64
        (x * 2).sum().backward()
        r.append(x.grad)
        x.grad = None
        x.grad_dtype = None
        (x.double() * 2).sum().backward()
        r.append((x.grad, x.grad_dtype))
        return r

    @case("gdtype assign")
    def _():
        x = L(2)
        x.grad_dtype = torch.float64
        x.grad = torch.ones(2, dtype=torch.float64)
        return (
            E(lambda: setattr(x, "grad", torch.ones(2))),
            E(lambda: setattr(x, "grad_dtype", torch.float32)),
            x.grad,
        )

    @case("gdtype none assign")
    def _():
        x = L(2)
        x.grad_dtype = None
        x.grad = torch.ones(2, dtype=torch.float16)
        return x.grad

    @case("gdtype noreq")
    def _():
        y = torch.ones(2)
        return (y.grad_dtype, E(lambda: setattr(y, "grad_dtype", torch.float64)), y.grad_dtype)

    @case("gdtype bad")
    def _():
        y = L(2)
        y.grad_dtype = "x"

    @case("gdtype hook")
    def _():
        x = L(2)
        x.grad_dtype = torch.float64
        r = []
        x.register_hook(lambda g: r.append(g.dtype))
        (x * 2).sum().backward()
        return (r, x.grad)

    @case("gdtype edge")
    def _():
        x = L(2)
        x.grad_dtype = torch.float64
        return torch.autograd.grad((x * 2).sum(), x)

    @case("gdtype none accum")
    def _():
        x = L(2)
        x.grad_dtype = None
        x.mul(2).sum().backward()
        (x.double() * 2).sum().backward()
        return x.grad

    @case("gdtype none fn")
    def _():

        class F(Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, g):
                return g.double()

        x = L(2)
        x.grad_dtype = None
        F.apply(x).sum().backward()
        return x.grad.dtype

    @case("gdtype after acc")
    def _():
        x = L(2)
        y = x * 2
        x.grad_dtype = torch.float16
        y.sum().backward()
        return x.grad

    @case("floor div")
    def _():
        x = torch.tensor([5.0], requires_grad=True)
        y = x // 2
        r = [nm(y)]
        r.append(E(lambda: torch.autograd.grad(y.sum(), x, allow_unused=True)))
        return r

    @case("mixed dtype")
    def _():
        a = L(2)
        b = torch.ones(2, dtype=torch.float64, requires_grad=True)
        (a * b).sum().backward()
        return (a.grad.dtype, b.grad.dtype)

    @case("variable api")
    def _():
        v = Variable(torch.ones(2), requires_grad=True)
        return (
            v.requires_grad,
            isinstance(v, Variable),
            isinstance(torch.ones(1), Variable),
            type(v).__name__,
            torch.autograd.Variable is torch.autograd.variable.Variable,
            Variable.__name__,
            E(lambda: Variable(torch.ones(1), volatile=True)),
            E(lambda: Variable(3)),
            E(lambda: Variable(torch.ones(1), True)),
            E(lambda: Variable(None)),
            issubclass(torch.Tensor, Variable),
            E(lambda: Variable(torch.ones(2), requires_grad=1)),
            E(lambda: Variable(torch.ones(2), requires_grad=True, volatile=True)),
            E(lambda: Variable(torch.ones(2), _grad_fn=v.exp().grad_fn)),
            E(lambda: Variable(torch.ones(2), _grad_fn=Function())),
            torch.autograd.variable.Variable.__mro__[-1].__name__,
            hasattr(Variable, "_execution_engine"),
            E(lambda: Variable._execution_engine.queue_callback(lambda: 1)),
            v.volatile if hasattr(v, "volatile") else "no",
        )

    @case("ng vol")
    def _():
        return torch.ones(1).volatile

    @case("exec engine")
    def _():
        r = []
        x = L(1)
        x.register_hook(lambda g: Variable._execution_engine.queue_callback(lambda: r.append(1)))
        (x * 2).backward()
        return (
            r,
            type(Variable._execution_engine).__name__,
            hasattr(Variable._execution_engine, "run_backward"),
            hasattr(Variable._execution_engine, "is_checkpoint_valid"),
            Variable._execution_engine.is_checkpoint_valid(),
        )

    @case("delayed error")
    def _():
        x = L(2)
        y = torch._C._functions.DelayedError("boom", 1)(x)
        r = [nm(y), y.requires_grad, y]
        r.append(E(lambda: y.sum().backward()))
        return r

    @case("undefgrad")
    def _():
        x = L(2)
        y = torch._C._functions.UndefinedGrad()(x)
        return (nm(y), y, type(y.grad_fn).__name__)

    @case("a gradient without data, where a class with a __torch_dispatch__ has been used too")
    def _():
        class Wrapper(torch.Tensor):
            @classmethod
            def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
                raise NotImplementedError

        torch.ones(2).as_subclass(Wrapper)

        def given(*sizes):
            class Elsewhere(Function):
                @staticmethod
                def forward(ctx, x):
                    return x * 2

                @staticmethod
                def backward(ctx, g):
                    return torch.ones(*sizes, device="meta")

            return E(lambda: Elsewhere.apply(L(*sizes)).sum().backward())

        return given(3), given(), E(lambda: L(3).to("meta").sum().backward())

    @case("accum construct")
    def _():
        return torch._C._functions.AccumulateGrad

    return found


test_as_in_torch = same_in_torch(cases)
