"""What is run and freed, deep reentrance, counters of writes, inference mode: both libraries agree."""

import pytest
import torch as torch_itself
import torch.autograd.forward_ad
import torch.utils.checkpoint
from corners import short_names
from outcomes import outcome

import rushlight
import rushlight.autograd.forward_ad
import rushlight.utils.checkpoint


def cases(torch):
    found = {}
    names = short_names(torch)
    L, R, D, E, nm = names.L, names.R, names.D, names.E, names.nm
    Function, once = torch.autograd.Function, torch.autograd.function.once_differentiable

    def case(function):
        return found.setdefault(function.__name__, function)

    @case
    def asked_for_is_not_used():
        """The node of a tensor that grad() asks for is not run, so it keeps what it saved."""
        a = L(2)
        b = a * 2
        torch.autograd.grad((b * b).sum(), b)
        return torch.autograd.grad(b.sum(), a)

    @case
    def once_differentiable_edges():
        def tree(node):
            return node and (type(node).__name__, [tree(n) for n, _ in node.next_functions])

        class F(Function):
            @staticmethod
            def forward(ctx, x, scale, y):
                return x * scale + y

            @staticmethod
            @once
            def backward(ctx, g):
                return g * 2, None, g * 3

        x, y = L(2), L(2)
        F.apply(x, 2, y).sum().backward(L(1).sum(), create_graph=True)
        return tree(x.grad.grad_fn), tree(y.grad.grad_fn), E(x.grad.sum().backward)

    @case
    def delayed_error():
        y = torch._C._functions.DelayedError("boom", 1)(L(2) * 2)
        return nm(y), nm(y) and y.grad_fn.next_functions[0][0].name(), E(y.sum().backward)

    @case
    def lacking_derivative():
        x = L(2)
        y = torch.nextafter(x, x)
        return nm(y), [n.name() for n, _ in y.grad_fn.next_functions], E(y.sum().backward)

    @case
    def powers_of_zero():
        results = []
        for f in (lambda e: 0**e, lambda e: torch.pow(torch.zeros(3), e), lambda e: torch.pow(0.0, e)):
            e = torch.tensor([-1.0, 0.0, 1.0], requires_grad=True)
            f(e).sum().backward()
            results.append(e.grad)
        return results

    @case
    def negative_base_complex_exponent():
        e = torch.tensor([1 + 1j, 2 - 1j], dtype=torch.complex128, requires_grad=True)
        base = torch.tensor([-1.0, 2.0], dtype=torch.float64)
        return torch.autograd.gradcheck(lambda e: torch.pow(base, e), e), torch.autograd.gradcheck(
            lambda e: torch.pow(-1, e), e
        )

    @case
    def overlapping_input_of_as_strided():
        z = D(4)
        f = lambda z: z.expand(3, 4).as_strided((2, 4), (0, 1)) ** 2
        g = lambda z: z.unfold(0, 2, 1).as_strided((3,), (1,), 1) ** 2
        checks = torch.autograd
        return [c(h, z) for c in (checks.gradcheck, checks.gradgradcheck) for h in (f, g)]

    @case
    def views_of_tangents():
        class View(Function):
            @staticmethod
            def forward(ctx, x):
                return x.narrow(0, 0, 2)

            @staticmethod
            def jvp(ctx, t):
                other = t.narrow(0, 0, 2).clone()
                return other.view_as(other)

        with torch.autograd.forward_ad.dual_level():
            x = torch.autograd.forward_ad.make_dual(torch.ones(3), torch.ones(3))
            return E(lambda: View.apply(x)), E(lambda: View.apply(x.view_as(x)))

    @case
    def input_of_a_class_of_its_own():
        class Mine(torch.Tensor):
            pass

        class Same(Function):
            @staticmethod
            def forward(ctx, x):
                return x

            @staticmethod
            def backward(ctx, g):
                return g

        plain = torch.ones(2).as_subclass(Mine)
        y = Same.apply(plain)
        return type(y).__name__, y is plain, type(Same.apply(L(2).as_subclass(Mine))).__name__

    @case
    def classmethods_with_defaults():
        class Power(Function):
            @classmethod
            def forward(cls, x, n=3):
                return x**n

            @classmethod
            def setup_context(cls, ctx, inputs, output):
                ctx.x, ctx.n = inputs

            @classmethod
            def backward(cls, ctx, g):
                return g * ctx.n * ctx.x ** (ctx.n - 1), None

        x = R(2)
        Power.apply(x).sum().backward()
        return x.grad

    @case
    def deep_reentrance():
        class Deep(Function):
            @staticmethod
            def forward(ctx, x, n):
                ctx.n = n
                return x.clone()

            @staticmethod
            def backward(ctx, g):
                if ctx.n:
                    with torch.enable_grad():
                        Deep.apply(torch.ones(1, requires_grad=True), ctx.n - 1).sum().backward()
                depths.append(torch.is_grad_enabled())
                return g, None

        depths = []
        x = L(1)
        Deep.apply(x, 400).sum().backward()
        return x.grad, len(depths), sum(depths), torch.is_grad_enabled()

    @case
    def nodes_are_no_subclasses():
        Node = torch.autograd.graph.Node
        y = L(2).exp()
        leaf = y.grad_fn.next_functions[0][0]
        return [(isinstance(n, Node), Node in type(n).mro()) for n in (y.grad_fn, leaf)], E(Node)

    @case
    def counters_stay_with_the_tensor():
        x = torch.ones(2)
        view = x[:]
        view.add_(1)
        x.data = torch.zeros(2, 3)
        versions = [(x._version, view._version)]
        for write in (lambda: x.add_(1), lambda: view.add_(1)):
            write()
            versions.append((x._version, view._version))
        x.data = torch.zeros(3)
        x.mul_(2)
        versions.append((x._version, view._version))
        y = torch.ones(3)
        y.set_(y[1:])
        versions.append(y._version)
        y.set_(torch.ones(5))
        versions.append(y._version)
        return versions, E(lambda: setattr(x, "data", torch.empty(2, device="meta")))

    @case
    def parameters_of_new_sizes():
        p = torch.nn.Parameter(torch.ones(4))
        sizes = []
        for _ in range(2):
            with torch.no_grad():
                p.set_(p[1:])
            p.grad = None
            torch.cat((p, p)).sum().backward()
            sizes.append(p.grad.shape)
        return sizes

    @case
    def views_in_inference_mode():
        with torch.inference_mode():
            c = torch.ones(2, 3, requires_grad=True)
            view = c.view(-1)
            resized = torch.ones(2, 3, requires_grad=True).resize_(1, 2)
        outside = c.view(-1)
        facts = [(v.requires_grad, v.is_inference(), v._is_view(), v.is_leaf) for v in (view, outside)]
        return facts, resized.requires_grad, resized.shape

    @case
    def views_from_inference_mode():
        errors = []
        for write in (
            lambda v: v.add_(1),
            lambda v: v.transpose_(0, 1),
            lambda v: v.split(1)[0].add_(1),
            lambda v: v.unbind()[0].add_(1),
        ):
            a = L(2, 3).clone()
            with torch.inference_mode():
                view = a.view_as(a)
            errors.append(E(lambda write=write, view=view: write(view)))
        return errors

    @case
    def gradcheck_records():
        seen = set()

        def f(a, b):
            x = a.clone()
            x.narrow(0, 0, 1).mul_(b)
            seen.add(x.requires_grad)
            return x

        return torch.autograd.gradcheck(f, (torch.ones(2).double(), D(1))), seen

    @case
    def hooks_of_what_is_saved():
        y = L(2) ** 2
        saved = y.grad_fn._raw_saved_self
        return E(lambda: saved.register_hooks(1)).split(".")[0], E(lambda: saved.register_hooks(1, 2)).split(
            "."
        )[0]

    @case
    def weak_references():
        x = torch.ones(2)
        ref = torch._C._WeakTensorRef(x)
        before = ref.expired()
        del x
        return before, ref.expired()

    @case
    def views_again():
        results = []
        bases = [torch.arange(12.0).reshape(3, 4), torch.arange(12.0).reshape(3, 4).requires_grad_()]
        views = (
            lambda x: x[1:],
            lambda x: x.t(),
            lambda x: x.split(2)[1],
            lambda x: x.view(2, 6).select(1, 2),
            lambda x: torch.view_as_complex(x.view(3, 2, 2)),
            lambda x: x.expand(2, 3, 4),
        )
        with torch.autograd._force_original_view_tracking(True):
            for base in bases:
                for view in views:
                    seen = view(base)
                    again = seen._view_func(base.detach() + 1)
                    back = seen._rev_view_func_unsafe(seen.detach())
                    results.append((again, again.stride(), back, back.stride(), back._is_view()))
        x = torch.ones(3)
        return (
            results,
            x._view_func(x),
            x[:2]._view_func(torch.ones(5)),
            x[:2]._view_func_unsafe(torch.ones(5)),
        )

    @case
    def invalid_history_prints():
        x = L(1)
        with torch.no_grad():
            y = x[:]
            y.mul_(2)
        return repr(y), E(lambda: y.grad_fn)

    @case
    def derivative_of_lobpcg():
        def pairs(A, k=1):
            values, vectors = torch.lobpcg(A @ A.mT + D(6).diag() * 5, k=k, X=torch.eye(6, k).double())
            return values, vectors * vectors[..., :1, :].sign()

        A = ((torch.arange(36.0).reshape(6, 6).double() * 1.7).sin() / 4).requires_grad_()
        return torch.autograd.gradcheck(pairs, A), torch.autograd.gradgradcheck(pairs, A)

    @case
    def bounds_of_lists():
        kept = [torch._foreach_maximum([L(2), L(2)], s)[1].grad_fn for s in ([0.0, 1.0], 2.0)]
        return [n.name() for n in kept], kept[0]._saved_scalars, kept[1]._saved_scalar

    @case
    def counters_set_by_hand():
        set_counter = torch._C._autograd._unsafe_set_version_counter
        x = torch.ones(2)
        set_counter((x,), (5,))
        return x._version, E(lambda: set_counter((x,), (-1,))), E(lambda: set_counter((x,), (1, 2)))

    @case
    def names_of_attributes():
        return "__cuda_array_interface__" in dir(torch.ones(2)), E(lambda: torch.ones(2).mH)

    @case
    def writes_into_duals():
        forward = torch.autograd.forward_ad
        results = []
        with forward.dual_level():
            for write in (
                lambda x: x.bernoulli_(1.0),
                lambda x: x.bernoulli_(torch.tensor(1.0)),
                lambda x: x.uniform_(),
                lambda x: x.t_(),
                lambda x: x.unsqueeze_(0),
                lambda x: x.as_strided_((2,), (1,)),
                lambda x: x.detach_(),
                lambda x: x[0].unsqueeze_(1).mul_(2),
                lambda x: x.resize_(3, 3),
            ):
                x = forward.make_dual(torch.ones(2, 3), torch.full((2, 3), 3.0))
                error = E(lambda write=write, x=x: write(x) is None)
                results.append((error, forward.unpack_dual(x).tangent))
            with torch.inference_mode():
                view, product = x[0], x * 2
            results.append((forward.unpack_dual(view).tangent, forward.unpack_dual(product).tangent))
        return results

    @case
    def written_views_of_changed_sizes():
        results = []
        for made, written in ((True, True), (True, False), (False, False)):
            for view in (lambda x: x.permute(1, 0), lambda x: x.unbind(0)[1].unsqueeze(0)):
                x = R(2, 3).clone()
                with torch.set_grad_enabled(made):
                    v = view(x)
                with torch.set_grad_enabled(written):
                    first = E(lambda v=v: v.t_().shape)
                results.append(
                    (first, E(lambda v=v: nm(v)), E(lambda v=v: v.is_leaf), E(lambda v=v: v.detach().shape))
                )
        return results

    @case
    def operations_on_written_views():
        """The base is told of the operation itself: hooks of the view's old history are not called."""
        results = []
        for write in (lambda v: v.cumsum_(0), lambda v: v.masked_fill_(v > 2, 7.0), lambda v: v.tril_()):
            x, seen = R(2, 3), []
            base = x.clone()
            view = base.view(3, 2)
            view.register_hook(seen.append)
            write(view)
            (base * base).sum().backward()
            results.append((nm(base), nm(view), seen, x.grad))
        return results

    @case
    def retained_by_views_without_history():
        x = R(2).clone()
        with torch.no_grad():
            view = x[:1]
        return view.requires_grad, E(view.retain_grad), E(torch.ones(1).retain_grad)

    @case
    def fill_where_elements_share_memory():
        x = torch.ones(1).expand(3)
        return E(lambda: x.fill_(torch.tensor(2.0))), E(lambda: x.fill_(2.0)), x

    @case
    def warned_of_once():
        torch.set_warn_always(True)
        try:
            z = torch.ones(3, dtype=torch.complex64)
            for f in (
                lambda: z.float(),
                lambda: z.bool(),
                lambda: torch.zeros(3).copy_(z),
                lambda: torch.chain_matmul(torch.eye(2), torch.eye(2)),
                lambda: torch.searchsorted(torch.arange(8.0)[::2], torch.ones(2, 3).t()),
            ):
                f()
        finally:
            torch.set_warn_always(False)

    @case
    def a_second_backward_through_a_written_view():
        errors = []
        for write in (lambda v: v.add_(1), lambda v: v.zero_(), lambda v: v.mul_(2)):
            base = R(3).clone()
            write(base[:2])
            loss = base.sum()
            loss.backward()
            errors.append(E(loss.backward))
        return errors

    @case
    def functions_checked_before_they_are_freed():
        class F(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x.clone()

            @staticmethod
            def backward(ctx, g):
                return ctx.saved_tensors[0].sum()

        loss = F.apply(R(3)).sum()
        return E(loss.backward), E(loss.backward)

    @case
    def marks_of_functions():
        def make(fw, setup):
            class F(Function):
                @staticmethod
                def forward(x):
                    return fw(x)

                @staticmethod
                def setup_context(ctx, inputs, output):
                    setup(ctx, *inputs, output)

                @staticmethod
                def backward(ctx, *g):
                    return g[0]

            return F

        results = []
        for fw, setup in (
            (lambda x: x.clone(), lambda ctx, x, out: ctx.mark_dirty(x)),
            (lambda x: (x, x), lambda ctx, x, out: ctx.mark_dirty(x)),
            (lambda x: x, lambda ctx, x, out: ctx.save_for_backward(x)),
            (lambda x: x.view_as(x), lambda ctx, x, out: ctx.save_for_backward(x)),
        ):
            x = R(2).clone()
            F = make(fw, setup)
            result = E(lambda F=F, x=x: F.apply(x))
            results.append((result if isinstance(result, str) else type(result).__name__, x._version))
        return results

    @case
    def names_of_operations_in_messages():
        errors = [E(lambda: R(2, 1, 3).clone().unbind(0)[0].squeeze(0).mul_(2)).split(".")[0]]
        for f in (
            lambda x: x.prod(0),
            lambda x: x.sum(0),
            lambda x: x.sum(),
            lambda x: 2**x,
            lambda x: x.exp(),
        ):
            y = f(R(2, 3))
            z = (y * y).sum()
            with torch.no_grad():
                y.mul_(2)
            errors.append(E(z.backward).split(", is at")[0])
        return errors

    @case
    def basis_of_unit_vectors():
        tensors = (torch.ones(1), torch.ones(2).double())
        return torch.autograd.functional._construct_standard_basis_for(tensors, (1, 2))

    @case
    def sums_are_counted():
        """A gradient that others were added to counts those writes."""
        W = torch.ones(3)
        told = []
        for f in (
            lambda x: x + x,
            lambda x: x * x,
            lambda x: x.sin() + x.cos() + x * W,
            lambda x: x[0] + x[1] + x[2],
            lambda x: x / x,
            lambda x: x.sum() + x.sum(),
            lambda x: torch.where(x > 0, x, x * 2),
            lambda x: torch.addcmul(x, x, x),
        ):
            x = R(3)
            (g,) = torch.autograd.grad(f(x).sum(), x)
            f(x).sum().backward()
            told.append((g._version, x.grad._version))
            f(x).sum().backward()
            told.append(x.grad._version)
        return told

    @case
    def cleared_while_writes_are_allowed():
        x = R(4)
        with torch.autograd.graph.allow_mutation_on_saved_tensors() as kept:
            y = x * 1
            z = y * y
            y.mul_(3)
            kept.clear()
            return E(z.sum().backward)

    @case
    def checkpoints_within_hooks():
        """Hooks on what grad() was asked for run in no node, so that a checkpoint may be there."""
        valid = torch.autograd.Variable._execution_engine.is_checkpoint_valid
        passes = [
            lambda x, y, z: z.sum().backward(),
            lambda x, y, z: z.sum().backward(inputs=[x, y]),
            lambda x, y, z: torch.autograd.grad(z.sum(), x),
            lambda x, y, z: torch.autograd.grad(z.sum(), [x, y]),
            lambda x, y, z: torch.autograd.grad(z.sum(), z),
        ]
        told = []

        def inner():
            told.append(valid())
            with torch.enable_grad():
                x = R(2)
                y = torch.utils.checkpoint.checkpoint(lambda t: t * 2, x, use_reentrant=True)
                y.register_hook(lambda g: told.append(valid()))
                told.append(E(y.sum().backward))

        for run in passes:
            x = R(2)
            y = x * 2
            z = y * 3
            for t in (x, y, z):
                t.register_hook(lambda g: inner())
            z.grad_fn.register_hook(lambda after, before: inner())
            y.grad_fn.register_prehook(lambda grads: inner())
            run(x, y, z)
            told.append(valid())
        return told

    return found


@pytest.mark.parametrize("name", cases(rushlight))
def test_same(name):
    ours, theirs = outcome(cases(rushlight)[name]), outcome(cases(torch_itself)[name])
    assert ours == theirs
