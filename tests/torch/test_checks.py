"""gradcheck in forward mode and its order of checks, strict derivatives of functions, what hooks of nodes and
modules are shown: the same in both libraries."""

import collections

import pytest
import torch as torch_itself
from outcomes import collector, err, outcome

import rushlight


def cases(torch):
    found, case = collector()
    checks = torch.autograd
    Function, fw = torch.autograd.Function, torch.autograd.forward_ad
    nn = torch.nn

    def L(*sizes, dtype=torch.float64):
        return torch.full(sizes, 1.3, dtype=dtype, requires_grad=True)

    for req in (True, False):
        for undefined, batched in ((False, False), (True, False), (True, True)):

            @case(f"calls of jvp {req} {undefined} {batched}")
            def _(req=req, undefined=undefined, batched=batched):
                seen = []

                class Both(Function):
                    @staticmethod
                    def forward(ctx, x, y):
                        if fw._current_level >= 0:
                            seen.append((x.requires_grad, y.requires_grad))
                        return x.clone(), y.clone()

                    @staticmethod
                    def jvp(ctx, a, b):
                        seen.append("jvp")
                        return a, b

                options = {"check_undefined_grad": undefined, "check_batched_forward_grad": batched}
                x = L(1).detach().requires_grad_(req)
                checks.gradcheck(
                    Both.apply, (x, L(1)), check_forward_ad=True, check_backward_ad=False, **options
                )
                return seen

    class Failing(Function):
        @staticmethod
        def forward(ctx, x, forward_fails, backward_fails):
            ctx.fails = forward_fails, backward_fails
            return x * 2

        @staticmethod
        def vjp(ctx, g):
            if ctx.fails[1]:
                raise RuntimeError("backward")
            return 2 * g, None, None

        @staticmethod
        def jvp(ctx, g, _1, _2):
            if ctx.fails[0]:
                raise RuntimeError("forward")
            return 2 * g

    @case("backward is checked before forward")
    def _():
        return [
            err(
                checks.gradcheck,
                Failing.apply,
                (L(2), f, b),
                check_forward_ad=cf,
                check_backward_ad=cb,
                check_undefined_grad=cb,
                fast_mode=fast,
            )
            for fast in (True, False)
            for cf in (True, False)
            for cb in (True, False)
            for f in (True, False)
            for b in (True, False)
        ]

    @case("all inputs are dual")
    def _():
        def bad(x, y):
            if fw._current_level >= 0:
                primal, tangent = fw.unpack_dual(y)
                y = fw.make_dual(primal, tangent * 1.1)
            return x + y, y

        pairs = [(torch.float64, torch.float64), (torch.complex128, torch.float64)]
        return [
            err(
                checks.gradcheck,
                bad,
                (L(2, dtype=a), L(2, dtype=b)),
                check_forward_ad=True,
                fast_mode=fast,
            )
            for a, b in pairs
            for fast in (True, False)
        ]

    @case("forward over reverse of several inputs")
    def _():
        return [
            checks.gradgradcheck(
                lambda x, y: x * y * x, (L(2), L(2)), check_fwd_over_rev=True, fast_mode=fast
            )
            for fast in (True, False)
        ]

    @case("random numbers in a batch")
    def _():
        class Draws(Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def vjp(ctx, g):
                return g * 2

            @staticmethod
            def jvp(ctx, g):
                torch.randn_like(g)
                return g * 2

        return err(
            checks.gradcheck, Draws.apply, (L(2),), check_forward_ad=True, check_batched_forward_grad=True
        )

    @case("the old jacobians")
    def _():
        from importlib import import_module

        old = import_module(torch.__name__ + ".autograd.gradcheck")
        f = lambda inputs: (2 * inputs[0] + inputs[1], inputs[0])
        a, b = L(2), L(2)
        numerical, analytical = old.get_numerical_jacobian, old.get_analytical_jacobian
        rounded = [j.round(decimals=6) for j in numerical(f, (a, b), eps=1e-6)]
        one = [j.round(decimals=6) for j in numerical(f, (a, b), target=b, eps=1e-6)]
        return (
            rounded,
            one,
            err(numerical, f, (a, b), grad_out=2.0),
            analytical((a, b), f((a, b))[0]),
            err(analytical, (a, b), a * 2, grad_out=2.0),
        )

    @case("not the same twice, told first")
    def _():
        calls = []

        class Grows(Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, g):
                calls.append(1)
                return g * 2 + 1e-3 * len(calls)

        return [err(checks.gradcheck, Grows.apply, (L(2),), fast_mode=fast) for fast in (True, False)]

    F = torch.autograd.functional

    @case("strict and vectorized")
    def _():
        x = torch.arange(4.0)
        functions = (lambda x: x.detach(), lambda x: "text", lambda x: (x * 2).sum(), lambda x: x * 2)
        return [
            (
                err(F.jacobian, f, x, strict=True, vectorize=True),
                err(F.hessian, f, x, strict=True, vectorize=True),
            )
            for f in functions
        ]

    @case("forward mode leaves the inputs alone")
    def _():
        y, z = torch.ones(2), torch.ones(2)
        options = {"vectorize": True, "outer_jacobian_strategy": "forward-mode"}
        F.hessian(lambda a, b: (a * b).sum(), (y, z), **options)
        return y.requires_grad, z.requires_grad

    @case("a vectorized jacobian of complex outputs")
    def _():
        x = torch.ones(2)
        f = lambda x: torch.complex(x, x).sum()
        return F.jacobian(f, x, vectorize=True), err(F.jacobian, f, x)

    def shown(value, *args):
        out = []
        first = value[0] if isinstance(value, tuple) else value
        first.grad_fn.register_hook(lambda gi, go: out.append((len(gi), len(go))))
        first.grad_fn.register_prehook(lambda go: out.append(len(go)))
        first.sum().backward(retain_graph=True)
        called = first.grad_fn(torch.ones_like(first))
        return out, len(called) if isinstance(called, tuple) else 1, err(first.grad_fn, first, first)

    x = lambda: torch.arange(1.0, 5.0).reshape(2, 2).requires_grad_()
    index = torch.tensor([0, 1])
    for name, make in {
        "max": lambda: x().max(0),
        "sort": lambda: x().sort(),
        "gather": lambda: x().gather(0, index[None]),
        "index_select": lambda: x().index_select(0, index),
        "where": lambda: torch.where(x() > 2, x(), x()),
        "masked_select": lambda: x().masked_select(torch.tensor([True, False])),
        "layer_norm": lambda: nn.LayerNorm(2)(x()),
        "batch_norm": lambda: nn.BatchNorm1d(2)(x()),
        "embedding": lambda: nn.Embedding(3, 2)(index),
        "max_pool": lambda: nn.functional.max_pool2d(x()[None, None], 2),
        "inverse": lambda: torch.linalg.inv(x()),
        "nll": lambda: nn.functional.nll_loss(x(), index),
    }.items():
        case(f"gradients that hooks see of {name}")(lambda make=make: shown(make()))

    for bias in (True, False):
        for sizes in ((1, 2), (3, 1, 2), (2,), (2, 2, 2, 2)):

            @case(f"plain hook replaces gradients {bias} {sizes}")
            def _(bias=bias, sizes=sizes):
                layer = nn.Linear(2, 2, bias=bias)
                nn.init.ones_(layer.weight)
                layer.register_backward_hook(lambda m, gi, go: tuple(g if g is None else g * 2 for g in gi))
                x = torch.ones(sizes, requires_grad=True)
                layer(x).sum().backward()
                return x.grad, layer.weight.grad

    @case("answers of full hooks")
    def _():
        answers = (
            lambda g: g[0] * 3,
            lambda g: (g[0] * 3,),
            lambda g: 3,
            lambda g: (g[0], g[0]),
            lambda g: (None,),
        )
        results = []
        for answer in answers:
            for register in ("register_full_backward_hook", "register_full_backward_pre_hook"):
                layer, x = nn.Linear(2, 2, bias=False), torch.ones(1, 2, requires_grad=True)
                nn.init.ones_(layer.weight)
                getattr(layer, register)(lambda m, g, *_, answer=answer: answer(g))
                results.append((err(lambda layer=layer, x=x: layer(x).sum().backward()), x.grad))
        return results

    @case("named tuples pass full hooks")
    def _():
        Pair = collections.namedtuple("Pair", "first second")

        class Twins(nn.Module):
            def forward(self, x):
                return Pair(x * 2, x * 3)

        twins = Twins()
        twins.register_full_backward_hook(lambda *_: None)
        return type(twins(torch.ones(2, requires_grad=True))).__name__

    @case("tables of events")
    def _():
        from importlib import import_module

        util = import_module(torch.__name__ + ".autograd.profiler_util")
        names = ["aten::mm", "aten::an_operation_of_a_very_long_name", "aten::mm"]
        events = util.EventList(
            [
                util.FunctionEvent(
                    i, name, 1, 10.0 * i, 10.0 * i + 7, input_shapes=[[2, 3 * i]], stack=[], flops=2000 * i,
                    overload_name="",
                )
                for i, name in enumerate(names)
            ],
            profile_memory=True,
            with_flops=True,
        )  # fmt: skip
        events._build_tree()
        averages = events.key_averages(group_by_input_shape=True)
        narrow = {"max_name_column_width": 12, "max_shapes_column_width": 5, "row_limit": 2}
        return (
            events.table(sort_by="id"),
            averages.table(header="Head", **narrow),
            events.table(top_level_events_only=True, header="Top", **narrow),
            events.table(top_level_events_only=True),
        )

    @case("steps of a profile")
    def _():
        profiler = torch.profiler
        plan = profiler.schedule(wait=1, warmup=1, active=2)
        with profiler.profile(activities=[profiler.ProfilerActivity.CPU], schedule=plan) as measured:
            for _ in range(4):
                torch.zeros(2)
                measured.step()
        averages = {e.key: e.count for e in measured.key_averages()}
        return averages["ProfilerStep*"], averages["aten::zeros"]

    for name, action in {
        "input": lambda y, v: torch.autograd.grad(y.sum(), [v], allow_unused=True),
        "input of backward": lambda y, v: y.sum().backward(inputs=[v]),
        "root": lambda y, v: v.backward(torch.ones(4)),
        "scalar root": lambda y, v: v[0].backward(),
        "both": lambda y, v: torch.autograd.grad(v, [v], [torch.ones(4)], allow_unused=True),
        "edge": lambda y, v: torch.autograd.graph.get_gradient_edge(v),
        "multi": lambda y, v: torch.autograd.graph.register_multi_grad_hook([v], print),
    }.items():

        @case(f"a view made without recording as {name}")
        def _(action=action):
            y = torch.ones(2, 2, requires_grad=True) * 2
            with torch.no_grad():
                v = y.view(-1)
            return v.requires_grad, err(action, y, v)

    for name, function in {
        "square": lambda x: x**2,
        "product": lambda x: x * x,
        "sine": lambda x: x.sin(),
        "exp": lambda x: x.exp(),
        "inner": lambda x: (x * 1) ** 2,
        "dot": lambda x: x @ x,
    }.items():

        @case(f"memory set between forward and backward of {name}")
        def _(function=function):
            x = torch.tensor([1.0, 2.0], requires_grad=True)
            y = function(x).sum()
            x.data = torch.tensor([7.0, 8.0])
            (g,) = torch.autograd.grad(y, x, create_graph=True)
            return g, g.requires_grad and torch.autograd.grad(g.sum(), x, allow_unused=True)

    @case("what reshape had to copy is no view")
    def _():
        x = torch.arange(6.0).reshape(2, 3).clone()
        copies = (x.t().reshape(-1), x.t().flatten(), x.expand(2, 2, 3).reshape(4, 3), x.t().reshape(6, 1))
        views = (x.reshape(-1), x.flatten())
        return [(y._is_view(), y._base is None) for y in (*copies, *views)]

    @case("a row written over all rows")
    def _():
        x = torch.arange(4.0).reshape(2, 2)
        x[...] = x[1]
        y = torch.arange(4.0, requires_grad=True)
        z = (y * 2).reshape(2, 2)
        z[:] = z[0]
        z.sum().backward()
        return x, z, y.grad, err(x.copy_, x[0])

    @case("results of a class are views")
    def _():
        class Own(torch.Tensor):
            pass

        leaves = torch.ones(2, requires_grad=True).as_subclass(Own), torch.ones(2).as_subclass(Own)
        results = [y for x in leaves for y in (x / 2, x.softmax(0), x.sum(), nn.functional.gelu(x))]
        return [(type(y).__name__, y._is_view(), y.grad_fn and y.grad_fn.name()) for y in results]

    @case("writing into a number by index")
    def _():
        z = torch.tensor(1.0)
        return [err(z.__setitem__, i, 1.0) for i in (0, (0, 0), slice(0, 1), torch.tensor(0))]

    return found


ours, theirs = cases(rushlight), cases(torch_itself)


@pytest.mark.torch
@pytest.mark.parametrize("name", ours)
def test_as_in_torch(name):
    assert outcome(ours[name]) == outcome(theirs[name])
