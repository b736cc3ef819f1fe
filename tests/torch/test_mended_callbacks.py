"""Programs about the code that autograd calls, found by test_callbacks.py, that once differed from torch."""

import itertools
import warnings

import pytest
from corners import same_in_torch, short_names
from outcomes import collector, err

pytestmark = pytest.mark.torch


def seen(torch, value):
    """What can be seen of a Function's results."""
    if isinstance(value, tuple):
        return [seen(torch, one) for one in value]
    if not isinstance(value, torch.Tensor):
        return value
    return (
        err(lambda: value.grad_fn and value.grad_fn.name()),
        err(lambda: value._version),
        value.requires_grad,
    )


def function(torch, result, *marks, setup=False):
    """A Function of source text: what forward returns, what is done with ctx there or in setup_context."""
    lines = ["class P(torch.autograd.Function):"]
    lines += [f"    def forward({'' if setup else 'ctx, '}p, q):", f"        out = {result}"]
    if setup:
        lines += ["        return out", "    def setup_context(ctx, inputs, out):", "        p, q = inputs"]
    lines += [*(f"        {mark}" for mark in marks), *([] if setup else ["        return out"])]
    names = {"torch": torch}
    exec("\n".join(lines), names)
    return names["P"]


def cases(torch):
    found, case = collector()
    functional, graph = torch.autograd.functional, torch.autograd.graph
    dual = torch.autograd.forward_ad
    R = short_names(torch).R

    def tensors():
        x = R(2, 2)
        return {"leaf": x, "constant": torch.ones(2, 2), "inner": x * 1, "view": (x * 1)[0]}

    def applied(first, second, *parts, **options):
        """What came of a Function, and what became of its arguments."""
        given = tensors()
        told = err(lambda: seen(torch, function(torch, *parts, **options).apply(given[first], given[second])))
        return told, seen(torch, given[first]), seen(torch, given[second])

    kinds = ("leaf", "constant", "inner", "view")
    marks = ("ctx.save_for_backward(p, 3)", "ctx.mark_dirty(3)", "ctx.mark_non_differentiable(3)")

    @case("what cannot be saved or marked is told of when forward is over, in one order")
    def _():
        told = [applied("leaf", "inner", "p * 2", *two) for two in itertools.permutations(marks[:2])]
        told += [
            applied("leaf", "inner", "p, q", f"ctx.mark_dirty({some})") for some in ("p, 3, q", "q, p, p, 3")
        ]
        told += [applied("leaf", "inner", "1 / 0", mark) for mark in marks]
        return [str(one).split(" but ")[0] for one in told]  # torch cuts these sentences short

    @case("marked as dirty: twice, not returned, not an argument")
    def _():
        dirty = ("ctx.mark_dirty(p, p)", "ctx.mark_dirty(p, q)", "ctx.mark_dirty(out)")
        results = ("p", "q", "p * 2", "p.view_as(p)")
        return [applied(*some) for some in itertools.product(kinds, kinds, results, dirty)]

    @case("an argument that is returned and saved in setup_context")
    def _():
        saved = ("backward(p)", "forward(p)", "backward(p); ctx.mark_dirty(p)")
        saved = tuple(f"ctx.save_for_{one}" for one in saved)
        results = ("p", "p.mul_(2)", "(p * 2, p)", "p.view_as(p)")
        return [applied(*some, setup=True) for some in itertools.product(kinds, kinds, results, saved)]

    @case("results that are not differentiable, written in forward")
    def _():
        marked = ("ctx.mark_non_differentiable(out)", "ctx.mark_non_differentiable(p)")
        results = ("p", "p.view(-1).mul_(2)", "p.view_as(p)", "p.detach().mul_(2)")
        return [applied(a, "inner", *some) for a in kinds for some in itertools.product(results, marked)]

    @case("results in modes without gradients, of views made there")
    def _():
        told = []
        for mode, result in itertools.product(
            (torch.no_grad, torch.inference_mode), ("p", "(p, p)", "torch.ones(2, requires_grad=True)")
        ):
            with mode():
                given = tensors()
                made = function(torch, result)
                told += [seen(torch, made.apply(given[k][0], given["inner"])) for k in kinds[:3]]
        return told

    @case("what a hook after the accumulation may return")
    def _():
        told = []
        for answer in (None, 3, torch.ones(3), torch.ones(2).double(), torch.ones(2)):
            x = R(2)
            x.register_post_accumulate_grad_hook(lambda p, answer=answer: answer)
            told.append((err(x.sum().backward), x.grad))
        return told

    class Nothing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return None

    @case("operations that no gradient reaches read what they saved")
    def _():
        told = []
        for f in (torch.sin, torch.exp, torch.neg, lambda x: x * x, lambda x: x[0]):
            x = R(2)
            y = f(x)
            y.sum().backward()
            told.append(err(Nothing.apply(y).sum().backward))
            with graph.saved_tensors_hooks(lambda v: v, lambda v: told.append("read") or v):
                y = f(x)
            y.grad_fn.register_hook(lambda *grads: told.append(grads))
            told.append(err(Nothing.apply(y).sum().backward))
            y = f(x)
            x.data = x.data * 1
            y.detach().mul_(2)
            with torch.no_grad():
                x.mul_(2)
            told.append(err(Nothing.apply(y).sum().backward))
        return told

    @case("sums over repeated dimensions that are recorded")
    def _():
        told = []
        for sizes in ((), (1,), (2,), (1, 2), (1, 1, 2)):
            a, b = torch.ones(sizes, requires_grad=True), R(2, 2)
            (g,) = torch.autograd.grad((a * b).sum(), a, create_graph=True)
            told.append((g.grad_fn.name(), g.grad_fn.next_functions[0][0].name(), g._base is None))
            told.append(torch.autograd.grad(g.sum(), b))
        return told

    @case("strict products with Hessians")
    def _():
        x, c = R(2), torch.ones(2)
        functions = (
            lambda *z: (z[0] * x).sum(),
            lambda *z: (z[0] ** 2).sum(),
            lambda *z: (z[0] * z[-1]).sum(),
        )
        told = []
        for f, point in itertools.product(functions, ((x,), (x, c))):
            v = (c, c)[: len(point)]
            products = (getattr(functional, name) for name in ("vhp", "hvp", "vjp", "jvp"))
            told += [err(product, f, point, v, strict=True) for product in products]
            told.append(err(functional.jacobian, f, point, True, True))
        return told

    @case("of two mistakes in calls of forward mode")
    def _():
        make, x = dual.make_dual, torch.ones(2)
        told = [err(make, x, other, level=0) for other in (torch.ones(3), x.long(), x)]
        told += [err(make, x, other, level=1) for other in (x.long(), x)]
        with dual.dual_level():
            told.append(err(make, torch.ones(3), make(x, x)))
        return [*told, err(functional.jacobian, torch.sin, 3, strategy="forward-mode")]

    class Wide(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return torch.ones(3)

    @case("anomaly mode tells of failing hooks, of gradients that do not fit and of accumulators")
    def _():
        hooks = (
            lambda y, x: y.register_hook(lambda g: 1 / 0),
            lambda y, x: y.grad_fn.register_hook(lambda *grads: 1 / 0),
            lambda y, x: y.grad_fn.register_prehook(lambda grads: 3),
            lambda y, x: x.register_hook(lambda g: 1 / 0),
            lambda y, x: x.register_post_accumulate_grad_hook(lambda p: 1 / 0),
            lambda y, x: None,
        )
        told = []
        for hook, before in itertools.product(hooks, (True, False)):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                x = R(2)
                with torch.autograd.set_detect_anomaly(not before):
                    y = x * 2
                    hook(y, x)
                with torch.autograd.set_detect_anomaly(True):
                    told.append(err(Wide.apply(y).sum().backward))
                    told.append(err(y.sum().backward))
            told += [str(warning.message)[:70] for warning in caught]
        return told

    @case("what jvp may return for results that are no tensors, and too much of it")
    def _():
        told = []
        answers = ("t", "(t, t)", "3", "(t, 3)", "[t]", "(t, None, t)")
        for result, answer in itertools.product(
            ("p * 2", "None", "(p * 2, 3)", "(p * 2, [p])", "()"), answers
        ):
            made = function(torch, result)
            made.jvp = eval(f"staticmethod(lambda ctx, t, u: {answer})", {})
            with dual.dual_level():
                point = dual.make_dual(torch.ones(2), torch.ones(2))
                told.append(repr(err(made.apply, point, None)))
        return told

    @case("marked as dirty: an inference tensor, a view made in forward")
    def _():
        with torch.inference_mode():
            frozen = torch.ones(2)
        told = [
            err(function(torch, "p", "ctx.mark_dirty(p)").apply, frozen, other) for other in (frozen, R(2))
        ]
        marks = ("ctx.mark_non_differentiable(out)", "ctx.mark_dirty(out)")
        view = function(torch, "p.view_as(p)", *marks).apply((R(2) * 1)[:1], None)
        return told, err(lambda: view.grad_fn)

    @case("derivatives of tangents of what was written in place")
    def _():
        told = []
        writes = (
            "mul_(w)",
            "mul_(2)",
            "div_(w)",
            "add_(w)",
            "exp_()",
            "pow_(2)",
            "addcmul_(w, z)",
            "copy_(w)",
        )
        for write, leaf in itertools.product((*writes, "mul_(w).mul_(z)", "sub_(w).mul_(z)"), (True, False)):
            x, w = R(2, 2), R(2, 2)
            with dual.dual_level():
                z = dual.make_dual(x if leaf else x * w, torch.full((2, 2), 0.5))
                parts = dual.unpack_dual(eval(f"z.clone().{write}", {"z": z, "w": w}))
                total = parts.primal.sum() + parts.tangent.sum()
                told += torch.autograd.grad(total, [x, w], allow_unused=True)
        return [grad if grad is None else [round(n, 4) for n in grad.flatten().tolist()] for grad in told]

    @case("derivatives of tangents by what they do not depend on")
    def _():
        told = []
        functions = ("z * c", "2 * z", "z / c", "z @ c", "c @ z[0]", "F.linear(z, c, c[0])", "z + c", "z - c")
        for text in (
            *functions,
            "torch.addmm(z, w, c)",
            "torch.addcmul(c, z, c)",
            "F.conv1d(z[None], c[None])",
        ):
            x, w, c = R(2, 2), R(2, 2), torch.ones(2, 2)
            with dual.dual_level():
                z = dual.make_dual(x, torch.ones(2, 2))
                names = {"z": z, "w": w, "c": c, "F": torch.nn.functional, "torch": torch}
                tangent = dual.unpack_dual(eval(text, names)).tangent
                told.append((tangent.requires_grad, tangent.is_leaf, tangent))
                if tangent.requires_grad:
                    grads = torch.autograd.grad(tangent.sum(), [x, w], allow_unused=True)
                    told.append([grad if grad is None else grad.add(1) for grad in grads])
        return [str(one).split(", grad_fn")[0] for one in told]

    @case("what jvp finds saved, and gradients that nobody asked for")
    def _():
        told = []
        saves = ("ctx.save_for_backward(p)", "ctx.save_for_forward(p)", "ctx.save_for_backward(p, out)")
        for save, setup in itertools.product(saves, (True, False)):
            made = function(torch, "p * 2", save, setup=setup)
            made.jvp = staticmethod(lambda ctx, t, u: told.append((len(ctx.saved_tensors), ctx.to_save)) or t)
            with dual.dual_level():
                made.apply(dual.make_dual(R(2), torch.ones(2)), None)
        wide = function(torch, "p * q")
        wide.backward = staticmethod(lambda ctx, g: (torch.ones(3), g))
        x, y = R(2), R(2)
        return told, err(torch.autograd.grad, wide.apply(x, y).sum(), y)

    return found


test_as_in_torch = same_in_torch(cases)
