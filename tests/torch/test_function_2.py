"""More of autograd.Function: the same results and refusals in both libraries."""

import gc
import threading
import weakref

import pytest
import torch as torch_itself
from outcomes import collector, err, function_of, outcome

import rushlight


def cases(torch):
    found, case = collector()
    from importlib import import_module

    AF = import_module(torch.__name__ + ".autograd.function")
    L = lambda *s: torch.ones(*s, requires_grad=True)

    @case("variable mod")
    def _():
        from importlib import import_module

        return (
            import_module(torch.__name__ + ".autograd.variable")
            .Variable(torch.ones(1), requires_grad=True)
            .requires_grad
        )

    @case("the Functions that torch keeps")
    def _():
        kept = import_module(torch.__name__ + ".autograd._functions")
        utils = import_module(torch.__name__ + ".autograd._functions.utils")
        x = torch.arange(6.0, requires_grad=True)
        kept.Resize.apply(x, (2, 3)).pow(2).sum().backward()
        return x.grad, utils.maybe_unexpand(torch.ones(3, 4), (3, 1)), utils.maybe_view(x, (3, 2))

    @case("a shape that does not fit")
    def _():
        import_module(torch.__name__ + ".autograd._functions").Resize.apply(L(6), (4, 3))

    @case("shapes of a batch of gradients")
    def _():
        return torch.autograd._calculate_shape(L(2, 3), L(4, 2, 3), True)

    @case("isinstance Variable")
    def _():
        return isinstance(torch.ones(1), torch.autograd.Variable)

    @case("ctx plain")
    def _():
        c = AF.FunctionCtx()
        c.save_for_backward(torch.ones(1))
        c.mark_dirty(torch.ones(1))
        c.set_materialize_grads(False)
        return c.to_save, c.materialize_grads

    @case("mark shared")
    def _():
        c = AF.FunctionCtx()
        c.mark_shared_storage()

    @case("save for forward bad")
    def _():
        c = AF.FunctionCtx()
        c.save_for_forward(3)

    @case("apply through instance")
    def _():
        M = function_of(torch, lambda ctx, x: x * 2, lambda ctx, g: g * 2, name="M")

        f = M.apply
        x = L(2)
        f(x).sum().backward()
        return x.grad

    @case("subclass function inherits")
    def _():
        A = function_of(torch, lambda ctx, x: x * 2, lambda ctx, g: g * 2, name="A")

        class B(A):
            @staticmethod
            def backward(ctx, g):
                return g * 7

        x = L(2)
        y = B.apply(x)
        y.sum().backward()
        return x.grad, y.grad_fn.name(), y.grad_fn._forward_cls is B

    @case("classmethod forward")
    def _():
        class A(torch.autograd.Function):
            @classmethod
            def forward(cls, ctx, x):
                return x * 2

            @classmethod
            def backward(cls, ctx, g):
                return g * 2

        x = L(2)
        y = A.apply(x)
        y.sum().backward()
        return x.grad

    @case("nonstatic forward")
    def _():
        class A(torch.autograd.Function):
            def forward(ctx, x):
                return x * 2

            def backward(ctx, g):
                return g * 2

        x = L(2)
        y = A.apply(x)
        y.sum().backward()
        return x.grad

    @case("lambda in args")
    def _():
        class A(torch.autograd.Function):
            @staticmethod
            def forward(ctx, f, x):
                ctx.f = f
                return f(x)

            @staticmethod
            def backward(ctx, g):
                return None, g * 2

        x = L(2)
        A.apply(lambda t: t * 2, x).sum().backward()
        return x.grad

    @case("namedtuple out")
    def _():
        from collections import namedtuple

        P = namedtuple("P", "a b")

        A = function_of(torch, lambda ctx, x: P(x * 2, x * 3), lambda ctx, a, b: a * 2 + b * 3, name="A")

        r = A.apply(L(2))
        return type(r).__name__

    @case("dict out")
    def _():
        A = function_of(torch, lambda ctx, x: {"a": x * 2}, lambda ctx, a: a, name="A")

        r = A.apply(L(2))
        return r["a"].requires_grad

    @case("two threads apply")
    def _():
        class A(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x**2

            @staticmethod
            def backward(ctx, g):
                return g * 2 * ctx.saved_tensors[0]

        out = []

        def w(i):
            for _ in range(50):
                x = torch.full((2,), float(i), requires_grad=True)
                A.apply(x).sum().backward()
            out.append((i, x.grad.tolist()))

        ts = [threading.Thread(target=w, args=(i,)) for i in range(4)]
        [t.start() for t in ts]
        [t.join() for t in ts]
        return sorted(out)

    @case("param input")
    def _():
        class A(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x

            @staticmethod
            def backward(ctx, g):
                return g

        p = torch.nn.Parameter(torch.ones(2))
        y = A.apply(p)
        return type(y).__name__, type(y.grad_fn.saved_tensors[0]).__name__, y.grad_fn.saved_tensors[0] is p

    @case("grad_fn next hash/eq")
    def _():
        x = L(1)
        y = x * 2
        return (
            y.grad_fn is y.grad_fn,
            y.grad_fn == y.grad_fn,
            len({y.grad_fn, y.grad_fn}),
            y.grad_fn.next_functions[0][0] is (x * 3).grad_fn.next_functions[0][0],
        )

    @case("ctx set needs_input_grad")
    def _():
        def backward(ctx, g):
            return (g if ctx.needs_input_grad[0] else None), (g * 2 if ctx.needs_input_grad[1] else None)

        A = function_of(torch, lambda ctx, x, y: x * y, backward, name="A")

        x, y = L(2), torch.ones(2)
        A.apply(x, y).sum().backward()
        return x.grad, y.grad

    @case("grad w.r.t. one input only: needs_input_grad")
    def _():
        s = []

        class A(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                return x * y

            @staticmethod
            def backward(ctx, g):
                s.append(ctx.needs_input_grad)
                return g, g

        x, y = L(2), L(2)
        torch.autograd.grad(A.apply(x, y).sum(), x)
        return s

    @case("del saved cycles ")
    def _():
        class A(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.self = ctx
                return x * 2

            @staticmethod
            def backward(ctx, g):
                return g

        y = A.apply(L(2))
        r = weakref.ref(y.grad_fn)
        del y
        gc.collect()
        return r() is None

    @case("sum of custom tuple")
    def _():
        A = function_of(
            torch,
            lambda ctx, *xs: tuple(x * 2 for x in xs),
            lambda ctx, *gs: tuple(g * 2 for g in gs),
            name="A",
        )

        xs = [L(1) for _ in range(5)]
        ys = A.apply(*xs)
        sum(ys).backward()
        return [x.grad.item() for x in xs]

    @case("swap attributes")
    def _():
        y = L(2) * 2
        y.foo = 1
        return y.foo, hasattr(y.grad_fn, "foo")

    @case("graph node types")
    def _():
        return (
            isinstance((L(1) * 2).grad_fn, torch.autograd.graph.Node),
            issubclass(type((L(1) * 2).grad_fn), torch.autograd.graph.Node),
            isinstance(L(1), torch.autograd.graph.Node),
        )

    @case("tensors saved to be read once")
    def _():
        seen = []

        def backward(ctx, grad):
            seen.extend(
                [err(lambda: ctx.saved_tensors), err(lambda: ctx.saved_tensors), ctx._raw_saved_tensors]
            )
            return grad

        once = function_of(torch, lambda ctx, x: (ctx.save_for_backward(x), x * 2)[1], backward)
        once.clear_saved_tensors_on_access = True
        once.apply(L(2)).sum().backward()
        once.clear_saved_tensors_on_access = None
        seen.append(err(once.apply, L(2)))
        once.clear_saved_tensors_on_access, once.boxed_grads_call = False, 1
        return seen, err(lambda: once.apply(L(2)).sum().backward())

    @case("gradients in a list")
    def _():
        seen = []

        def backward(ctx, grads):
            kept = [weakref.ref(grad) for grad in grads]
            first = grads[0] * 2
            grads[0] = None
            second = grads.pop() * 3
            seen.append((len(grads), [grad() is None for grad in kept]))
            return first, second

        def make():
            a, b = boxed.apply(L(2), L(2))
            return a, (a * 2 + b * 3).sum()

        boxed = function_of(torch, lambda ctx, x, y: (x * 2, y * 3), backward)
        boxed.boxed_grads_call = True
        make()[1].backward()
        a, loss = make()
        a.grad_fn.register_hook(lambda given, taken: seen.append((given, taken)))  # needs them afterwards
        loss.backward()
        node, one = make()[0].grad_fn, torch.ones(2)
        return seen, node.apply(one, one), node.apply_boxed([one, one]), err(node.apply_boxed, one, one)

    @case("nothing saved, and read twice")
    def _():
        seen = []

        def backward(ctx, grad):
            seen.extend(err(lambda: ctx.saved_tensors) for _ in range(2))
            return grad

        once = function_of(torch, lambda ctx, x: x * 2, backward)
        once.clear_saved_tensors_on_access = True
        once.apply(L(2)).sum().backward()
        return seen

    @case("what an unpack hook returns is not what was saved")
    def _():
        seen, x, other = [], L(2), L(2) * 3

        def backward(ctx, grad):
            (saved,) = ctx.saved_tensors
            seen.append((saved is x, saved.data_ptr() == x.data_ptr(), saved.requires_grad, saved._is_view()))
            return grad

        keeping = function_of(torch, lambda ctx, x: (ctx.save_for_backward(x), x * 2)[1], backward)
        hooks = torch.autograd.graph.saved_tensors_hooks
        with hooks(lambda t: t, lambda t: t):
            keeping.apply(x).sum().backward()
            of_view, product = x[:].sin(), x * torch.ones(2)
        saved = of_view.grad_fn._saved_self
        with hooks(lambda t: t, lambda t: other):
            constant = (L(2) * torch.ones(2)).grad_fn._saved_other
        return seen, saved._is_view(), product.grad_fn._saved_other.requires_grad, constant

    @case("a Function's methods see no tangents")
    def _():
        fwAD, seen = import_module(torch.__name__ + ".autograd.forward_ad"), []

        def look(x):
            seen.extend([torch._C._is_fwd_grad_enabled(), fwAD.unpack_dual(x).tangent, str(x)])
            return x * 2

        square = function_of(
            torch,
            lambda ctx, x: (ctx.save_for_forward(x), look(x))[1],
            jvp=lambda ctx, t: look(ctx.saved_tensors[0]) * t,
        )
        with fwAD.dual_level():
            result = square.apply(fwAD.make_dual(torch.ones(2), torch.ones(2)))
            with fwAD._set_fwd_grad_enabled(False):
                seen.append(made := fwAD.make_dual(torch.ones(2), torch.ones(2)))
            part = fwAD.make_dual(torch.ones(4)[1:], torch.ones(3))
            return seen, result, made, fwAD.unpack_dual(part).tangent._is_view()

    @case("what a node says of outputs that take no gradient")
    def _():
        def forward(ctx, x):
            constant = x.clone()
            ctx.mark_non_differentiable(constant)
            return x * 2, None, x.int(), 3, x.double(), constant

        node = function_of(torch, forward).apply(L(2))[0].grad_fn
        return [(info.shape, info.dtype) for info in node._input_metadata]

    @case("saved tensors in memory to be pinned, where there is nothing to pin it for")
    def _():
        x = L(2)
        with torch.autograd.graph.save_on_cpu(pin_memory=True):
            (x * x).sum().backward()
        return x.grad

    def pure(view, backward=lambda ctx, grad: 10 * grad):
        def forward(ctx, x, *others):
            ctx._is_pure_view = True
            return view(x)

        return function_of(torch, forward, backward).apply

    for name, write in {"view": lambda v, b: v, "base": lambda v, b: b, "part": lambda v, b: v[:1]}.items():

        @case(f"a pure view is like any other: {name} written")
        def _(write=write):
            x = L(3)
            b = x.clone()
            v = pure(lambda t: t.view_as(t))(b)
            write(v, b).mul_(2)
            (v.sum() + 3 * b.sum()).backward()
            return x.grad, v.grad_fn.name(), b.grad_fn.name()

    @case("a pure view made without a history is not written with one")
    def _():
        y = L(3).clone()
        with torch.no_grad():
            part = pure(lambda t: t[:1])(y)
        return err(part.mul_, 2).partition(":")[0], y

    @case("pure views refused")
    def _():
        x, whole, two = L(3).clone(), pure(lambda t: t.view_as(t)), pure(lambda t: (t.view_as(t), None))

        def setting(ctx, x):
            ctx._is_pure_view = 1

        calls = (
            lambda: whole(x, x),
            lambda: whole(x, 3).shape,
            lambda: two(x),
            lambda: two(torch.ones(3)),
            lambda: pure(lambda t: (t.view_as(t),))(x)[0].mul_(2).shape,
            lambda: function_of(torch, setting).apply(x),
        )
        return [outcome(call) for call in calls]

    @case("a written view that is saved")
    def _():
        def forward(ctx, x):
            ctx.mark_dirty(x)
            x.mul_(2)
            ctx.save_for_backward(x, x)
            return x

        seen = []

        def backward(ctx, grad):
            seen.extend((x.grad_fn is ctx, x._is_view(), x.tolist()) for x in ctx.saved_tensors)
            return grad * 2

        write = function_of(torch, forward, backward)

        def written(view):
            leaf = L(4)
            x = view(leaf.clone())
            y = write.apply(x)
            y.sum().backward(retain_graph=True)
            twice = torch.autograd.grad((y**2).sum(), leaf)[0]
            seen.append((y is x, y.grad_fn.name(), leaf.grad.tolist(), twice.tolist()))
            return weakref.ref(x)

        enabled = gc.isenabled()
        gc.disable()
        try:
            gone = [
                written(view)() is None
                for view in (lambda t: t[:2], lambda t: t.view_as(t), lambda t: t[:3][1:])
            ]
        finally:
            if enabled:
                gc.enable()
        base = L(4).clone()
        write.apply(base[:2])
        base.mul_(3)
        return seen, gone, outcome(base.sum().backward)

    @case("Functions the profiler sees")
    def _():
        twice = function_of(torch, lambda ctx, x, n: x * n, lambda ctx, grad: (2 * grad, None))
        with torch.autograd.profiler.profile(record_shapes=True) as seen:
            twice.apply(L(2), 3).sum().backward()
        names = (twice.__name__, twice.__name__ + "Backward", "aten::mul")
        events = [e for e in seen.function_events if e.name in names]
        own = [e.sequence_nr for e in events if e.name != "aten::mul"]
        return (
            [(e.name, e.scope, e.cpu_parent.name) for e in events[1:]],
            events[0].input_shapes,
            own[0] == own[1],
        )

    @case("a Function that saved nothing, after its graph was freed")
    def _():
        seen = []

        def backward(ctx, grad):
            seen.append([err(lambda: ctx.saved_tensors), err(lambda: ctx._raw_saved_tensors)])
            return grad

        y = function_of(torch, lambda ctx, x: x * 2, backward).apply(L(1))
        y.backward(retain_graph=True)
        y.backward()
        y.backward()
        node = y.grad_fn
        return seen, err(lambda: node.saved_tensors), err(node._register_hook_dict, {}), seen

    @case("the warning of cycles comes after what the pass itself warns of")
    def _():
        import warnings

        def backward(ctx, grad, fail):
            warnings.warn("inside", stacklevel=1)
            return 1 / 0 if fail else grad

        told = []
        for fail in (False, True):
            y = function_of(torch, lambda ctx, x: x * 2, lambda ctx, g, f=fail: backward(ctx, g, f)).apply(
                L(1)
            )
            torch.set_warn_always(True)
            try:
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    end = err(y.backward, create_graph=True)
            finally:
                torch.set_warn_always(False)
            told.append((end, [str(one.message)[:16] for one in caught]))
        return told

    @case("an output saved in setup_context and written")
    def _():
        def setup(ctx, inputs, outputs):
            ctx.save_for_backward(*outputs)

        def backward(ctx, *grads):
            return sum(ctx.saved_tensors)

        F = function_of(torch, lambda x: (x * 2, x * 3), backward, setup_context=setup)
        told = []
        for which in (0, 1):
            outputs = F.apply(L(2))
            with torch.no_grad():
                outputs[which].add_(1)
            told.append(err((outputs[0] + outputs[1]).sum().backward))
        return told

    @case("hooks see gradients that a Function returns and nobody wants")
    def _():
        F = function_of(torch, lambda ctx, x, y: x.sum() * y, lambda ctx, g: (torch.ones(2) * 3, g * 2))
        seen, leaf = [], L(2)
        for x in (torch.ones(2), torch.ones(4)[:2], L(2)):
            y = F.apply(x, leaf)
            y.grad_fn.register_hook(lambda grads, outer: seen.append((grads, outer)))
            y.grad_fn.register_hook(lambda grads, outer: tuple(g * 2 for g in grads))
            y.sum().backward(retain_graph=True)
            seen.append(torch.autograd.grad(y.sum(), leaf))
            seen.append((x.grad, leaf.grad.clone()))
        return seen

    @case("hooks see gradients of a Function as they go on to its inputs")
    def _():
        seen = []
        for answer in (torch.ones(2).double(), torch.ones(3, 2), torch.ones(1, 2), torch.ones(5)):
            F = function_of(torch, lambda ctx, x: x * 1, lambda ctx, g, a=answer: a)
            y = F.apply(L(2))
            y.grad_fn.register_hook(lambda grads, outer: seen.append(grads))
            seen.append(err(y.sum().backward))
        return seen

    @case("arguments that do not fit a forward beside setup_context")
    def _():
        plain = function_of(torch, lambda x, y: x * y, setup_context=lambda ctx, i, o: None)
        rest = function_of(torch, lambda x, *ys: x, setup_context=lambda ctx, i, o: len(i))
        x = L(2)
        return (
            [err(plain.apply, *args) for args in ((), (x,), (x, x, x))],
            [err(rest.apply, *args) for args in ((), (x,), (x, 1, 2))],
        )

    @case("marks that are no tuples are told of when forward is over")
    def _():
        told = []
        for name in ("to_save", "non_differentiable", "dirty_tensors", "needs_input_grad"):
            for value in (1, "a", [L(2)]):

                def forward(ctx, x, name=name, value=value):
                    setattr(ctx, name, value)
                    told.append(getattr(ctx, name) is value)
                    return x * 2

                end = err(function_of(torch, forward, lambda ctx, g: g * 2).apply, L(2))
                told.append(end.partition(" but is")[0] if isinstance(end, str) else end)
        y = function_of(torch, lambda ctx, x: x * 2, lambda ctx, g: g * 2).apply(L(2))
        y.grad_fn.to_save = y.grad_fn.dirty_tensors = y.grad_fn.non_differentiable = 1
        return told, err(y.sum().backward)

    @case("marks that jvp makes no tuples")
    def _():
        def forward(ctx, x):
            return x * 2

        def jvp(ctx, t):
            ctx.dirty_tensors = ctx.non_differentiable = ctx.to_save = 1
            return t * 2

        F = function_of(torch, forward, lambda ctx, g: g * 2, jvp=jvp)
        with torch.autograd.forward_ad.dual_level():
            y = F.apply(torch.autograd.forward_ad.make_dual(L(2), torch.ones(2)))
            return y.detach(), err(y.sum().backward)

    @case("which output it was that was written")
    def _():
        def written(ctx, x):
            ctx.mark_dirty(x)
            x.mul_(2)
            return x * 1, x, x

        def twice(h, write):
            y = h * h
            write(h)
            return err(y.sum().backward)

        W = function_of(torch, written, lambda ctx, a, b, c: b + c)
        both = function_of(torch, lambda ctx, x: (x * 1, x * 2), lambda ctx, a, b: a + b)

        def unrecorded(t):
            with torch.no_grad():
                t.mul_(2)

        return [
            twice(L(2) * 1, W.apply),
            twice(W.apply(L(2) * 1)[2], lambda t: t.mul_(2)),
            twice(both.apply(L(2))[1], unrecorded),
            twice((L(4) * 1).unsafe_split(2)[1], unrecorded),
            twice((L(4) * 1).split(2)[1], unrecorded),
            twice(torch.linalg.qr(L(2, 2) + torch.eye(2))[1], unrecorded),
        ]

    return found


@pytest.mark.parametrize("name", cases(rushlight))
def test_as_in_torch(name):
    expected = outcome(cases(torch_itself)[name])
    assert outcome(cases(rushlight)[name]) == expected
