"""What is freed, shared and replaced: gradients that become .grad, new memory, views that Functions write."""

import contextlib
import copy
import gc
import io
import pickle
import warnings
import weakref

import pytest
from corners import same_in_torch, short_names
from outcomes import collector


def cases(torch):
    found, case = collector()
    short = short_names(torch)
    L, R, E, nm = short.L, short.R, short.E, short.nm

    class Named(torch.Tensor):
        pass

    Function, forward_ad = torch.autograd.Function, torch.autograd.forward_ad

    @case("a hook after the leaf sees what others wrote into its gradient")
    def _():
        seen = []

        def write(x):
            x.grad.add_(1)

        for first in (None, torch.zeros(2)):
            for scale in (1.0, torch.ones(2)):
                x = R(2)
                x.grad = first
                node = x.view_as(x).grad_fn.next_functions[0][0]
                x.register_post_accumulate_grad_hook(write)
                node.register_hook(lambda inputs, grads: seen.append((inputs, grads[0].clone())))
                (x * scale).sum().backward()
                seen.append(x.grad)
        return seen

    @case("what a result is given after it was saved lives as long as the graph")
    def _():
        class Keep(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * 2

            @staticmethod
            def backward(ctx, g):
                return g * ctx.saved_tensors[0]

        seen = []
        for make in (lambda x: x * 2, lambda x: (x * 2)[:1]):
            for use in (torch.sin, Keep.apply):
                h, died = make(R(2)), []
                y = use(h)
                h.tag, weak, number = 5, weakref.ref(h, died.append), id(h)
                del h
                kept = y.grad_fn._saved_self if use is torch.sin else y.grad_fn.saved_tensors[0]
                seen += [kept.tag, id(kept) == number, weak() is kept, len(died)]
                del kept
                y.sum().backward()
                seen += [weak() is None, len(died)]
        return seen

    @case("pack hooks see what is written in place with its history")
    def _():
        seen = []

        def pack(t):
            seen.append((t.detach().clone(), nm(t), t._version, t.is_leaf, t.output_nr))
            return t

        for name in ("exp_", "tanh_", "relu_", "sqrt_", "erfinv_", "sgn_", "sin_"):
            for view in (lambda t: t, lambda t: t[1:]):
                x = L(3).mul(0.5)
                with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
                    getattr(view(x), name)()
                x.sum().backward()
        return seen, (L(2) * 0.5).erfinv_().grad_fn._saved_self

    @case("a view of what detach_() cut off is cut off by the next write")
    def _():
        seen = []
        for view in (
            lambda b: b[0],
            lambda b: b.view(2, 2),
            lambda b: b.view(2, 2).t(),
            lambda b: b.expand(2, 4),
        ):
            for write in (lambda b: b.add_(1), lambda b: b.mul_(L(4)), lambda b: b):
                x = R(4)
                b = x * 1
                v = view(b)
                b.detach_()
                write(b)
                edges = [node and node.name() for node, _ in v.grad_fn.next_functions]
                grad = torch.autograd.grad((v * 2).sum(), x, allow_unused=True)
                seen += [nm(v), v.requires_grad, v.is_leaf, edges, grad]
        return seen

    @case("copies count their own writes, and are of the mode they are made in")
    def _():
        def state(t):
            return t.is_inference(), E(lambda: t._version), t.requires_grad

        x = torch.ones(3)
        y = copy.copy(x)
        y.add_(1)
        with torch.inference_mode():
            inner = torch.ones(3)
            kept = [
                copy.copy(inner),
                copy.copy(x),
                copy.deepcopy(x),
                torch.empty(0).set_(x.untyped_storage()),
            ]
        kept += [x, y, copy.copy(inner), copy.copy(y), pickle.loads(pickle.dumps(x))]
        return [state(t) for t in kept], x

    @case("edges of leaves in inference mode")
    def _():
        x, graph = R(2), torch.autograd.graph
        y = x * 1
        with torch.inference_mode():
            return [
                E(lambda: graph.get_gradient_edge(x)),
                graph.get_gradient_edge(y).node.name(),
                E(lambda: graph.register_multi_grad_hook([x, y], print)),
                type(graph.register_multi_grad_hook([y], print)) is None,
            ]

    @case("what recurrent layers return batch first, and losses of two shapes")
    def _():
        seen, F = [], torch.nn.functional
        for layer in (torch.nn.RNN, torch.nn.GRU, torch.nn.LSTM):
            y = layer(2, 3, batch_first=True)(torch.ones(2, 2, 2))[0]
            seen += [nm(y), y._is_view(), y._version, y.stride()]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for loss in (F.smooth_l1_loss, F.mse_loss, F.l1_loss):
                for x, y in ((R(2, 2), R(2)), (R(1), R(2))):
                    node = loss(x, y).grad_fn
                    seen.append([node.name(), [next and next.name() for next, _ in node.next_functions]])
        return seen

    @case("edges of masked writes into views; writes that torch counts; what is wrong beside overlaps")
    def _():
        seen, F, i = [], torch.nn.functional, torch.tensor([0, 1])
        mask, rows = torch.eye(2).bool(), i[:, None].expand(2, 2)
        for view in (lambda c: c.t(), lambda c: c.view(2, 2), lambda c: c):
            c = torch.ones(2, 2)
            view(c).masked_fill_(mask, R(2).sum())
            seen.append([nm(c), [node and node.name() for node, _ in c.grad_fn.next_functions]])
        v, x = torch.ones(2), torch.ones(2, 2)
        seen += [
            t._version for t in (v @ x, x @ v, L(2) @ x, v @ v, x @ x, F.linear(v, x, v), F.linear(v, x))
        ]
        seen.append(E(lambda: x.index_add_(0, i, x.unfold(0, 2, 1))))
        seen.append(E(lambda: x.ravel().index_add_(0, i, x)))
        seen.append(E(lambda: x.index_add_(0, i.float(), x)))
        seen.append(E(lambda: x.index_add_(0, i, x)))
        seen.append(E(lambda: x.scatter_add_(0, rows + 5, x)))
        seen.append(E(lambda: x.index_copy_(0, i, x[0])))

        class Double(Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

        return seen, E(lambda: Double.apply(v, y=3)), E(lambda: Double.apply(x=v))

    @case("lists that are written in place from each other are written in order")
    def _():
        seen = []
        for other in (lambda t: t, lambda t: t.view(-1)[:1]):
            e, w, i = torch.tensor([2.0]), torch.tensor([3.0], requires_grad=True), torch.tensor([5])
            with torch.no_grad():
                torch._foreach_mul_([e, w], [other(w), other(e)])
                seen += [e.clone(), w.clone()]
                torch._foreach_add_([e, w, i], [i, e, i])
            seen += [e, w, i]
        return seen

    @case("modes and hooks that are none")
    def _():
        def hooked(*hooks):
            with torch.autograd.graph.saved_tensors_hooks(*hooks):
                return R(2) * R(2)

        none = [E(lambda: hooked(1, 2)), E(lambda: hooked(print, None))]
        for mode in ("a", 1, None):
            none += [
                E(lambda mode=mode: torch.inference_mode(mode).__enter__()),
                torch.is_inference_mode_enabled(),
            ]
        return none

    @case("tensors that something else holds are not swapped")
    def _():
        a, leaf, seen = R(2), R(2), []
        h, base = a * 1, torch.ones(3)
        kept = [h.sin(), leaf * leaf, base[1:], torch.stack([h, h])]
        a.grad = torch.ones(2)
        retained = a * 1
        retained.retain_grad()
        for t in (h, leaf, base, a.grad, kept[0], a, kept[2], retained):
            seen.append(t._use_count())
            for swap in (
                lambda t=t: torch.utils.swap_tensors(t, L([1.0])),
                lambda t=t: torch.utils.swap_tensors(L([1.0]), t),
            ):
                seen += [E(swap), tuple(t.shape)]
        kept[1].sum().backward()
        torch.utils.swap_tensors(leaf, other := L([3.0]))
        return seen, leaf, other, other.grad

    @case("what is saved of a result keeps its attributes, its identity and its weak references")
    def _():
        seen = []
        for make in (lambda x: x * 2, lambda x: (x * 2)[:1], lambda x: (x * 2).as_subclass(Named)):
            h = make(R(2))
            h.tag, weak, number = 5, weakref.ref(h), id(h)
            z = torch.Tensor.sin(h).as_subclass(torch.Tensor).sum()
            del h
            node = z.grad_fn
            while not hasattr(node, "_saved_self") or isinstance(node._saved_self, tuple):
                node = node.next_functions[0][0]
            kept = node._saved_self
            seen += [kept.tag, id(kept) == number, type(kept).__name__, kept._base is None, weak() is kept]
            del kept
            z.backward()
            del node
            seen.append(weak() is None)
        return seen

    @case("what is saved of a result that retains its gradient has that gradient")
    def _():
        h = R(2) * 2
        h.retain_grad()
        z = h.sin()
        del h
        z.sum().backward(retain_graph=True)
        return z.grad_fn._saved_self.grad, z.grad_fn._saved_self.retains_grad

    @case("a saved result with an attribute that is detached or written")
    def _():
        seen = []
        for change in ("detach_", "sin_"):
            x = R(2)
            h = x * 2
            h.tag = 1
            z = (h * h).sum()
            getattr(h, change)()
            seen.append(E(lambda z=z, x=x: torch.autograd.grad(z, x, create_graph=True)))
        return seen

    @case("the same under create_graph")
    def _():
        seen = []
        x = R(2)
        node = x.view_as(x).grad_fn.next_functions[0][0]
        node.register_hook(lambda inputs, grads: seen.append(grads[0].data_ptr() == x.grad.data_ptr()))
        (x * x).sum().backward(create_graph=True)
        return seen

    @case("new memory, new leaf to the graph")
    def _():
        def told(move):
            x = L(2)
            y, edge = x * 2, torch.autograd.graph.get_gradient_edge(x)
            with torch.no_grad():
                move(x)
            found = [E(lambda: torch.autograd.grad(y.sum(), x, retain_graph=True))]
            found.append(torch.autograd.grad(y.sum(), edge)[0])
            (x * 3).sum().backward()
            return [*found, x.grad]

        other = torch.tensor([5.0, 6.0])
        return (
            told(lambda x: x.set_(other)),
            told(lambda x: x.set_(other.untyped_storage(), 0, (2,), (1,))),
            told(lambda x: setattr(x, "data", other)),
        )

    @case("a Function that writes into a view and keeps it is freed")
    def _():
        class Kept:
            pass

        def run(takes_view, keeps, derives):
            kept = Kept()

            class Write(Function):
                @staticmethod
                def forward(ctx, x):
                    x.mul_(2)
                    ctx.mark_dirty(x)
                    if keeps:
                        ctx.save_for_backward(x)
                    ctx.kept = kept
                    return x

                @staticmethod
                def backward(ctx, g):
                    return g * 2

            x = L(3).clone()
            out = Write.apply(x.view_as(x) if takes_view else x)
            if derives:
                out.sum().backward(retain_graph=True)
            return weakref.ref(kept)

        choices = [(a, b, c) for a in (False, True) for b in (False, True) for c in (False, True)]
        made = [run(*choice) for choice in choices]
        gc.collect()
        return [one() is None for one in made]

    @case("tangents of what a Function wrote")
    def _():
        answers = {
            "itself": lambda t: t,
            "written": lambda t: t.mul_(3),
            "new": lambda t: t * 3,
            "written, a copy": lambda t: t.mul_(3).clone(),
            "written, a view": lambda t: t.mul_(3).view_as(t),
            "none": lambda t: None,
        }

        def run(answer, written_before):
            class Write(Function):
                @staticmethod
                def forward(ctx, x):
                    ctx.mark_dirty(x)
                    return x.mul_(3)

                @staticmethod
                def jvp(ctx, t):
                    return answer(t)

            tangent = torch.ones(())
            for _ in range(written_before):
                tangent.mul_(1)
            with forward_ad.dual_level():
                dual = forward_ad.make_dual(torch.ones(()), tangent)
                out = Write.apply(dual)
                return out is dual, forward_ad.unpack_dual(out).tangent

        return [(name, n, E(lambda f=f, n=n: run(f, n))) for name, f in answers.items() for n in (0, 2)]

    @case("a checkpointed value is unpacked once")
    def _():
        class Twice(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x.clone()

            @staticmethod
            def backward(ctx, g):
                (a,), (b,) = ctx.saved_tensors, ctx.saved_tensors
                return g * a * b

        def run(function):
            x = R(2)
            torch.utils.checkpoint.checkpoint(function, x, use_reentrant=False).sum().backward()
            return x.grad

        return E(lambda: run(lambda x: Twice.apply(x * 2))), run(lambda x: (x * x).sin())

    @case("a checkpoint gives back the tensors it was given")
    def _():
        seen = []

        class Keep(Function):
            @staticmethod
            def forward(ctx, x, y):
                ctx.save_for_backward(y)
                return x.clone()

            @staticmethod
            def backward(ctx, g):
                seen.append(ctx.saved_tensors[0] is constant)
                return g, None

        x, constant = R(2), torch.ones(2)
        for run in (
            Keep.apply,
            lambda *xs: torch.utils.checkpoint.checkpoint(Keep.apply, *xs, use_reentrant=False),
        ):
            run(x, constant).sum().backward()
        return seen

    @case("what a pack hook is shown")
    def _():
        leaf, constant = R(3), torch.ones(3)
        known = {"leaf": leaf, "constant": constant, "inner": leaf * 2, "view": (leaf * 3)[:3]}
        seen = []

        def pack(t):
            which = [name for name, one in known.items() if one is t]
            seen.append((which, t.requires_grad, torch.is_grad_enabled()))
            return t

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            for name in ("constant", "inner", "view"):
                out = known[name] * leaf
                seen.append(name)
                out.sum().backward(retain_graph=True)
            out = known["inner"].exp()
        seen.sort(key=str)
        return seen, leaf.grad

    @case("a Function frees what it has read")
    def _():
        def run(retain):
            seen = []

            class Read(Function):
                @staticmethod
                def forward(ctx, x):
                    ctx.save_for_backward(x.sin())
                    seen.append(ctx.maybe_clear_saved_tensors())
                    return x.clone()

                @staticmethod
                def backward(ctx, g):
                    (kept,) = ctx.saved_tensors
                    there = weakref.ref(kept)
                    del kept
                    seen.append((ctx.maybe_clear_saved_tensors(), there() is None))
                    seen.append(E(lambda: len(ctx.saved_tensors)))
                    return g

            out = Read.apply(R(2))
            out.grad_fn.maybe_clear_saved_tensors()
            out.sum().backward(retain_graph=retain)
            return seen, E(lambda: len(out.grad_fn.saved_tensors))

        return run(True)[0][0], run(True)[0][2:], run(True)[1], run(False)

    @case("the tensors that a mode sees in backward")
    def _():
        leaf, constant = R(3), torch.ones(3)
        known = {"leaf": leaf, "constant": constant, "inner": leaf * 2, "view": (leaf * 3).view(3)}
        seen = []

        class Look(torch.utils._python_dispatch.TorchDispatchMode):
            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                seen.append((str(function), [name for name, one in known.items() for a in args if one is a]))
                return function(*args, **(kwargs or {}))

        outer = (leaf.sin() * known["inner"]).sum()
        with Look():
            (leaf.sin() * constant * known["inner"] * known["view"]).sum().backward(retain_graph=True)
            outer.backward(retain_graph=True)
        return [one for one in seen if one[1]], leaf.grad

    @case("an anomaly is told also if warnings are errors")
    def _():
        def told(kind):
            written = io.StringIO()
            with warnings.catch_warnings(), contextlib.redirect_stderr(written):
                warnings.simplefilter("ignore")
                with torch.autograd.detect_anomaly():
                    x = L(2) * 1
                    y = x * x
                    x.add_(1)
                    warnings.simplefilter(kind)
                    error = E(lambda: y.sum().backward())
            return error[:60], written.getvalue().split(".")[0]

        return told("error"), told("ignore")

    @case("resize, which is a Function")
    def _():
        x = R(2, 3)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            found = [x.resize(3, 2), x.resize_as(torch.ones(6)), x.t().resize(6)]
            refused = E(lambda: x.resize(4))
        torch.autograd.backward([f * i for i, f in enumerate(found)], [torch.ones_like(f) for f in found])
        return [f.grad_fn.name() for f in found], found, refused, x.grad, [str(w.message) for w in told]

    @case("what a thread keeps for its backward passes")
    def _():
        core, seen = torch._C, []
        core._stash_obj_in_tls("a name", [1])
        x = L(2)
        x.register_hook(lambda g: core._get_obj_in_tls("a name").append(2))
        x.sum().backward()
        seen += [core._is_key_in_tls("a name"), core._get_obj_in_tls("a name")]
        seen += [core._remove_obj_from_tls("a name"), core._remove_obj_from_tls("a name")]
        return seen, core._is_key_in_tls("a name"), E(lambda: core._get_obj_in_tls("a name"))[:70]

    @case("unique below its function")
    def _():
        x = torch.tensor([3.0, 1.0, 3.0]).requires_grad_()
        found = [torch._unique(x), torch._unique(x, True, True), torch._VF.unique_dim(x, 0)]
        found.append(torch.ops.aten.unique_dim(x.view(1, 3), 1, return_counts=True))
        return found, found[0][0].grad_fn.name(), torch._VF.sin is torch._C._VariableFunctions.sin

    return found


test_as_in_torch = pytest.mark.filterwarnings("ignore:Using backward")(same_in_torch(cases))
