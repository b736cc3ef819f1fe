"""What runs when, around saved values: where a recomputation stops, what hooks see, inference tensors."""

import contextlib
import functools
import weakref

import pytest
import torch as torch_itself
import torch.autograd.forward_ad
import torch.utils._python_dispatch
import torch.utils.checkpoint
from outcomes import collector, outcome

import rushlight
import rushlight._vmap_internals
import rushlight.autograd.forward_ad
import rushlight.utils._python_dispatch


def cases(torch):
    found, case = collector()
    C = torch.utils.checkpoint
    checkpoint = functools.partial(C.checkpoint, use_reentrant=False)
    forward = torch.autograd.forward_ad
    vmap = torch._vmap_internals._vmap
    hooks = torch.autograd.graph.saved_tensors_hooks

    class Log(torch.utils._python_dispatch.TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.seen = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.seen.append(str(func))
            return func(*args, **(kwargs or {}))

    functions = {
        "sines": lambda x: x.sin().cos().clone().add(1),
        "relu": lambda x: (x * 2).relu() + 1,
        "product": lambda x: (x @ x).exp() @ x,
        "softmax": lambda x: torch.softmax(x, 0).log(),
        "views": lambda x: x.reshape(-1)[1:].tanh().clone(),
        "cat": lambda x: torch.cat([x.exp(), x.sin()]),
        "written": lambda x: x.sin().mul_(x).cos(),
        "nothing saved": lambda x: x.clone() + 1,
    }
    for name, function in functions.items():

        @case(f"recomputed: {name}")
        def _(function=function):
            log = Log()
            x = torch.full((3, 3), 0.5, requires_grad=True)
            y = checkpoint(function, x, context_fn=lambda: (contextlib.nullcontext(), log))
            y.sum().backward()
            return log.seen, x.grad

    @case("unpacked once, whoever reads it")
    def _():
        seen = []
        for f in (torch.div, torch.atan2, torch.pow, torch.hypot, torch.maximum, lambda x, y: (x / y) @ y):
            x, y = torch.full((2,), 0.5, requires_grad=True), torch.ones(2, requires_grad=True)
            unpacked = []
            with hooks(lambda t: t, lambda t, seen=unpacked: (seen.append(0), t)[1]):
                z = f(x, y)
            z.sum().backward()
            checkpoint(f, x, y).sum().backward()
            seen.append((len(unpacked), x.grad, y.grad))
        return seen

    @case("stops before the operation that saves last")
    def _():
        log = Log()
        x = torch.ones(2, requires_grad=True)
        with log:
            checkpoint(torch.sin, x).sum().backward()
        return log.seen.count("aten.sin.default")

    @case("gradients inside, without early stop")
    def _():
        def f(x):
            y = x.sin().exp()
            return torch.autograd.grad(y.sum(), x, create_graph=True)[0] * x

        x = torch.ones(2, requires_grad=True)
        with C.set_checkpoint_early_stop(False):
            y = checkpoint(f, x)
        y.sum().backward()
        return x.grad

    @case("a saved argument is the argument")
    def _():
        class Keep(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                ctx.save_for_backward(y)
                return x * 1

            @staticmethod
            def backward(ctx, g):
                seen.append(ctx.saved_tensors[0] is b)
                return g, None

        seen, a, b = [], torch.ones((), requires_grad=True), torch.ones(())
        checkpoint(Keep.apply, a, b).backward()
        return seen

    @case("what pack hooks are given")
    def _():
        leaf, plain = torch.ones(2, requires_grad=True), torch.ones(2)
        inner = leaf * 2
        seen = []

        def pack(x):
            seen.append((x is leaf, x is plain, x.requires_grad, x.grad_fn is not None))
            return x

        with hooks(pack, lambda x: x):
            y = (leaf * plain).sum() + (inner * inner).sum()
        y.backward()
        return seen, leaf.grad

    @case("a pack hook that throws keeps the operation from running")
    def _():
        def pack(x):
            raise ValueError("no")

        log = Log()
        with log, contextlib.suppress(ValueError), hooks(pack, lambda x: x):
            torch.ones(2, requires_grad=True).sin()
        return "aten.sin.default" in log.seen

    @case("debug")
    def _():
        calls = []

        def f(x):
            calls.append(0)
            return x.sin().exp() if len(calls) == 1 else x.sin()

        y = checkpoint(f, torch.ones(1, requires_grad=True), debug=True)
        try:
            y.backward()
        except RuntimeError as error:
            lines = str(error).splitlines()
            at = lines.index("Operations executed during the original forward:")
            plain = str(error.__cause__).splitlines()[:3]
            return [line for line in lines[at : at + 10] if line], plain

    @case("what a selective checkpoint keeps, and until when")
    def _():
        kept = []

        def f(x):
            y = x.cos().exp()
            mode = torch.utils._python_dispatch._get_current_dispatch_mode()
            if isinstance(mode, C._CachingTorchDispatchMode):
                kept.append(weakref.ref(mode.storage[torch.ops.aten.exp.default][0].val))
            return y.sin().sin()

        contexts = functools.partial(
            C.create_selective_checkpoint_contexts, lambda *_: C.CheckpointPolicy.MUST_SAVE
        )
        y = checkpoint(f, torch.ones(2, requires_grad=True), context_fn=contexts)
        before = kept[0]() is not None
        y.sum().backward()
        return before, kept[0]() is None

    @case("a policy of a selective checkpoint sees the result")
    def _():
        seen = []

        def policy(ctx, op, *args, **kwargs):
            seen.append((str(op), ctx.is_recompute, tuple(ctx.op_output.shape)))
            return C.CheckpointPolicy.PREFER_SAVE

        contexts = functools.partial(C.create_selective_checkpoint_contexts, policy)
        x = torch.ones(2, 3, requires_grad=True)
        checkpoint(lambda x: (x @ x.T).sin(), x, context_fn=contexts).sum().backward()
        return seen, sorted(map(str, C.SAC_IGNORED_OPS))

    @case("inference tensors alone have no history")
    def _():
        with torch.inference_mode():
            c, d = torch.ones(2, 2, requires_grad=True), torch.ones(2, 2)
        n, s = torch.ones(2, 2), torch.ones(2, 2, requires_grad=True)
        made = [
            c * c,
            c * d,
            c.exp(),
            c @ c,
            torch.cat([c, c]),
            c.sum(),
            c + n,
            c * 2,
            c + s,
            torch.cat([c, n]),
        ]
        return [(x.requires_grad, x.is_leaf, x.is_inference()) for x in made]

    @case("tangents of lazy views")
    def _():
        kinds = (lambda x: x, lambda x: x.conj(), lambda x: x._neg_view())
        seen = []
        with forward.dual_level():
            for of_primal in kinds:
                for of_tangent in kinds:
                    x = of_primal(torch.ones(2, dtype=torch.cdouble))
                    t = of_tangent(torch.ones(2, dtype=torch.cdouble))
                    seen.append(forward.unpack_dual(forward.make_dual(x, t)).tangent is t)
        return seen

    @case("tangents in batches")
    def _():
        tangent, seen = torch.zeros(2, 2, 2), []
        for view in (lambda x: x.view_as(x), lambda x: x.t()):
            base = torch.zeros(2, 2)
            part = view(base)

            def jvp(t, part=part, base=base):
                with forward.dual_level():
                    x = forward.make_dual(torch.zeros(2, 2), t)
                    part.copy_(x)
                    return tuple(forward.unpack_dual(y).tangent for y in (x, part, base))

            x, v, b = vmap(jvp)(tangent)
            seen.append((x is tangent, v is b, v is x, v._is_view(), v._base is b))
        return seen

    @case("a batched tangent shorter than the memory of its primal")
    def _():
        primal = torch.zeros(5)[:4].detach()

        def jvp(t):
            with forward.dual_level():
                dual = forward.make_dual(primal, t)
                own = forward.unpack_dual(dual).tangent is t
                try:
                    dual.as_strided((5,), (1,), 0)
                except RuntimeError as error:
                    return t, torch.tensor([own, "can access memory outside of `tensor`" in str(error)])

        return vmap(jvp)(torch.ones(3, 4))

    @case("gradients of a convolution")
    def _():
        torch.manual_seed(0)
        seen = []
        for transposed in (False, True):
            x, w = torch.randn(2, 4, 7, 7, dtype=torch.double), torch.randn(4, 2, 3, 3, dtype=torch.double)
            rest = ([2, 2], [1, 1], [1, 1], transposed, [int(transposed)] * 2, 2)
            y = torch.ops.aten.convolution(x, w, None, *rest)
            f = torch.ops.aten.convolution_backward
            seen += f(torch.ones_like(y), x, w, [y.shape[1]], *rest, [True] * 3)
            seen += f(torch.ones_like(y), x, w, None, *rest, [False, True, False])
        return seen

    @case("zeros that lie alike")
    def _():
        f, seen = torch.ops.aten._new_zeros_with_same_feature_meta, []
        for other in (torch.ones(4, 5).t(), torch.ones(10)[2:6], torch.ones(10)[::2]):
            for n in range(3):
                z = f(torch.ones(3, 2, dtype=torch.double), other, self_num_batch_dims=n)
                room = z.untyped_storage().nbytes()
                seen.append((z.dtype, z.shape, z.stride(), z.storage_offset(), room, z.sum()))
        return seen

    @case("is_grad_enabled below autograd")
    def _():
        seen = []

        class Ask(torch.utils._python_dispatch.TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                states = [torch.is_grad_enabled()]
                with torch.no_grad():
                    states.append(torch.is_grad_enabled())
                states.append(torch.is_grad_enabled())
                result = func(*args, **(kwargs or {}))
                seen.append((str(func), states, torch.is_grad_enabled(), result.requires_grad))
                return result

        x = torch.ones(2, requires_grad=True)
        with Ask():
            y = x.sin()
            with torch.no_grad():
                x.cos()
            (y * 2).exp()
        return seen, y.requires_grad, torch.is_grad_enabled()

    @case("views played again, with visitors")
    def _():
        x, n = torch.zeros(2, 3), torch.arange(6.0).reshape(2, 3)
        views = (x.t(), x[:, 1:], x[1], x.diagonal(), x.unbind(0)[1], x.unfold(1, 2, 1), x.t()[1].view(1, 2))
        visited = []
        visit = lambda value: (visited.append(value), value)[1]
        return [v._view_func_unsafe(n, visit, visit) for v in views], visited

    @case("views played again, with visitors, where the steps are tracked")
    def _():
        x, n = torch.zeros(2, 3, 4), torch.arange(24.0).reshape(2, 3, 4)
        results = []
        with torch.autograd._force_original_view_tracking(True):
            views = """x.select(1, 1); x[:, 1]; x[1:, ::2]; x.view(6, 4); x.expand(5, 2, 3, 4); x.unbind(1)[2]
            x.split([1, 2], 1)[1]; x.chunk(2)[1]; x.as_strided((2, 2), (1, 3), 4); x.diagonal(1, 0, 2)
            x[0].t();             x.permute(1, 0, 2).unsqueeze(0)[0, 1:2]; x.unfold(2, 2, 1); x.squeeze(0)
            x.flatten(1); x.view_as(x)"""
            for view in views.replace("\n", ";").split(";"):
                visited = []
                made = eval(view.strip(), {"x": x})
                visit = lambda value, into=visited: (into.append(value), value)[1]
                results.append((view.strip(), made._view_func(n, visit, visit), visited))
            row = x.select(1, 1)
            results.append(row._view_func(n, symint_visitor_fn=lambda k: k + 1))
            results.append(row._view_func(n))
            with torch.autograd._force_original_view_tracking(False):
                untracked = x[1:]
            results.append(untracked[0]._view_func(n, symint_visitor_fn=lambda k: k))
            part = x[:, 1:2].detach()
            whole = torch.ops.aten.slice_inverse(part, x, 1, 1, 2)
            other = n[:, 1:2].detach()
            results.append((whole._base is part, torch.equal(whole, x), whole._view_func(other)))
            results.append(whole._view_func(other, tensor_visitor_fn=lambda t: torch.ones(1, 2, 3)))
        results.append(x.select(1, 1)._view_func(n, symint_visitor_fn=lambda k: k + 1))
        return results

    expressions = """x ** 3
x.sqrt()
x.log1p()
x.log2()
x.expm1()
x.exp2()
x.atan()
torch.lerp(x, y, 0.3)
torch.addcmul(x, x, y)
x.mean()
x.mean(0)
x.mean(1, keepdim=True)
x.max(1)[0]
x.sort(1)[0]
x.topk(2)[0]
x @ y.t()
x[torch.tensor([0, 1])]
x[x > 0.6]
torch.nn.functional.l1_loss(x, y.detach())"""
    for expression in expressions.splitlines():

        @case(f"trace: {expression}")
        def _(expression=expression):
            x = torch.linspace(0.5, 1, 6).reshape(2, 3).requires_grad_()
            y = torch.linspace(1, 2, 6).reshape(2, 3).requires_grad_()
            first, second = Log(), Log()
            with first:
                z = eval(expression, {"torch": torch, "x": x, "y": y})
            with second:
                grads = torch.autograd.grad(z, (x, y), torch.ones_like(z), allow_unused=True)
            return first.seen, second.seen, grads

    @case("a number beside a condition keeps the dtype")
    def _():
        with Log():
            m = torch.tensor([True, False])
            return [torch.where(m, x, v).dtype for x in (m.long(), m.half(), m.float()) for v in (0, 0.5)]

    @case("operations for tests")
    def _():
        seen = []
        for f in (
            torch._test_autograd_multiple_dispatch,
            lambda x: torch._test_autograd_multiple_dispatch(x, True),
            torch._test_autograd_multiple_dispatch_view,
            torch._test_autograd_multiple_dispatch_view_copy,
        ):
            x = torch.ones(2, 2, requires_grad=True)
            y = f(x)
            y.backward(torch.full_like(y, 3))
            seen.append((y.detach(), y._is_view(), x.grad, y.grad_fn.name()))
        return seen

    @case("every policy, and contexts that are not two")
    def _():
        seen = []
        for policy in C.CheckpointPolicy:
            x, log = torch.ones(2, requires_grad=True), Log()
            choose = functools.partial(C.create_selective_checkpoint_contexts, lambda *a, p=policy, **k: p)
            y = checkpoint(lambda x: x.sin().cos().exp(), x, context_fn=choose)
            with log:
                y.sum().backward()
            seen.append((log.seen.count("aten.cos.default"), x.grad))
        for contexts in (None, (contextlib.nullcontext(),)):
            try:
                checkpoint(torch.sin, x, context_fn=lambda c=contexts: c)
            except (TypeError, ValueError) as error:
                seen.append(type(error).__name__)
        return seen

    @case("a kept tensor that was written is not written again, if writes are allowed")
    def _():
        seen = []
        for function in (
            lambda x: x.sin().mul_(2).cos().sum(),
            lambda x: (y := x.sin(), y[0].mul_(3), y.cos().sum())[-1],
            lambda x: torch.nn.functional.dropout(x, 0.5).sin().sum(),
        ):
            torch.manual_seed(0)
            x = torch.arange(6.0).requires_grad_()
            keep = functools.partial(
                C.create_selective_checkpoint_contexts, lambda *a, **k: True, allow_cache_entry_mutation=True
            )
            checkpoint(function, x, context_fn=keep).backward()
            seen.append(x.grad)
        return seen

    @case("a selective checkpoint of what takes another course the second time")
    def _():
        seen = []
        for other in (torch.cos, torch.sin):
            runs = []
            keep = functools.partial(C.create_selective_checkpoint_contexts, [torch.ops.aten.sin.default])
            x = torch.ones(2, requires_grad=True)

            def function(x, runs=runs, other=other):
                runs.append(1)
                return (other(x.sin()) if len(runs) > 1 else x.sin()).exp()

            with C.set_checkpoint_early_stop(False):
                y = checkpoint(function, x, context_fn=keep)
            try:
                y.sum().backward()
            except RuntimeError as error:
                seen.append(str(error).splitlines()[0])
        return seen

    @case("a selective checkpoint of a tensor whose class is asked for its sizes")
    def _():
        class Asked(torch.Tensor):
            @staticmethod
            def __new__(cls, inner):
                return torch.Tensor._make_wrapper_subclass(
                    cls, inner.size(), dtype=inner.dtype, dispatch_sizes_strides_policy="sizes"
                )

            def __init__(self, inner):
                self.inner = inner

            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                args = [a.inner if isinstance(a, cls) else a for a in args]
                out = func(*args, **(kwargs or {}))
                return cls(out) if isinstance(out, torch.Tensor) else out

        x = Asked(torch.ones(3)).requires_grad_()
        keep = functools.partial(
            C.create_selective_checkpoint_contexts, lambda ctx, op, *a, **k: op is torch.ops.aten.sin.default
        )
        checkpoint(lambda x: x.sin() * x.sin().cos(), x, context_fn=keep).sum().backward()
        return x.grad.inner

    @case("what was kept is handed out once, views and lists too, and a write only where writes are allowed")
    def _():
        aten, seen = torch.ops.aten, []
        for op, function in (
            (aten.view.default, lambda x: x.view(-1).sin().exp()),
            (aten.t.default, lambda x: (x @ x.t()).exp()),
            (aten.split.Tensor, lambda x: x.split(2)[0].exp().sin()),
            (aten.select.int, lambda x: (y := x.clone(), y[0].mul_(2), y.sin().exp())[-1]),
            (aten.add_.Tensor, lambda x: x.cos().add_(1).exp()),
            (aten.bernoulli_.float, lambda x: torch.dropout(x, 0.5, True).exp()),
        ):
            for allowed in (False, True):
                keep = functools.partial(
                    C.create_selective_checkpoint_contexts, [op], allow_cache_entry_mutation=allowed
                )
                x = torch.ones(4, 4, requires_grad=True)
                loss = checkpoint(function, x, context_fn=keep).sum()
                for _ in range(2):
                    try:
                        loss.backward(retain_graph=True)
                        seen.append(tuple(x.grad.shape))
                    except RuntimeError as error:
                        seen.append(str(error))
        return seen

    @case("what is kept, and how classes derived from the modes are made")
    def _():
        kept = C._VersionWrapper(torch.ones(2))
        first = C._CachingTorchDispatchMode(None, {}, ac_graph_id=3)
        second = C._CachedTorchDispatchMode(None, {}, True)
        modes = first.ac_graph_id, second.allow_cache_entry_mutation, second.ignore_compile_internals()
        first, second = C.create_selective_checkpoint_contexts(lambda *a, **k: True)
        x = torch.ones(2, requires_grad=True)
        y = checkpoint(lambda x: x.view(2).sin().exp(), x, context_fn=lambda: (first, second))
        storage = lambda: [type(storage_of[0]).__name__ for storage_of in first.storage.values()]
        before = storage()
        y.sum().backward()
        consumed = [entry[0] is C._CONSUMED for entry in first.storage.values()]
        return kept.version, kept.get_val(False), modes, before, consumed

    @case("values read outside of backward run the function again each time")
    def _():
        runs = []
        x = torch.ones(2, requires_grad=True)
        y = checkpoint(lambda x: (runs.append(1), x.sin().exp().cos())[1], x)
        seen = []
        for read in (
            lambda: y.grad_fn._saved_self,
            lambda: y.grad_fn.next_functions[0][0]._saved_result,
            lambda: y.grad_fn._saved_self,
            lambda: y.sum().backward(retain_graph=True),
            lambda: y.grad_fn._saved_self,
        ):
            read()
            seen.append(len(runs))
        return seen

    @case("a group that is entered again is the same group")
    def _():
        runs = []
        x = torch.ones(2, requires_grad=True)
        a, b, c = checkpoint(lambda x: (runs.append(1), (x.sin(), x.cos(), x.exp()))[1], x)

        class Group(C.GraphExecGroup):
            def __init__(self, name):
                self.name = name

        group = Group("both")
        with group:
            a.sum().backward(retain_graph=True)
            inside = torch._C._get_graph_exec_group() is group
        with group:
            b.sum().backward(retain_graph=True)
        with C.GraphExecGroup():
            c.sum().backward(retain_graph=True)
        seen = len(runs), inside, torch._C._get_graph_exec_group(), x.grad
        with C.GraphExecGroup():
            a.sum().backward(retain_graph=True)
            try:
                a.sum().backward(retain_graph=True)
            except C.CheckpointError as error:
                return seen, str(error)

    @case("the mode in which saved values are unpacked is that of the one who asks")
    def _():
        seen = []
        x = torch.ones(2, requires_grad=True)
        with hooks(lambda t: t, lambda t: (seen.append(torch.is_grad_enabled()), t)[1]):
            y = (x * x).sum()
        y.backward(retain_graph=True)
        torch.autograd.grad(y, x, create_graph=True)
        y.grad_fn.next_functions[0][0]._saved_self
        with torch.no_grad():
            y.grad_fn.next_functions[0][0]._saved_self
        return seen

    @case("a copy of an inference leaf has its gradient")
    def _():
        with torch.inference_mode():
            leaf = torch.full((2,), 3.0, requires_grad=True)
        (leaf.clone() ** 2).sum().backward()
        (leaf.to(torch.float64) * 3).sum().backward()
        with torch.no_grad():
            return leaf.grad, leaf.clone().requires_grad

    return found


THEIRS, OURS = cases(torch_itself), cases(rushlight)


@pytest.mark.parametrize("name", THEIRS)
def test_same(name):
    assert outcome(OURS[name]) == outcome(THEIRS[name])
