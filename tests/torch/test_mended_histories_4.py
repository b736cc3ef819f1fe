"""What longer programs about histories, of more statements, found and torch does otherwise."""

import importlib
import warnings

import pytest
from corners import same_in_torch, short_names
from outcomes import collector, err

pytestmark = pytest.mark.torch


def cases(torch):
    found, case = collector()
    names = short_names(torch)
    R = names.R
    functional = torch.nn.functional
    fw = importlib.import_module(f"{torch.__name__}.autograd.forward_ad")
    derived = importlib.import_module(f"{torch.__name__}.autograd.functional")
    graph = torch.autograd.graph

    class Sub(torch.Tensor):
        pass

    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            return 3 * g * ctx.saved_tensors[0] ** 2

    @case("tangents of gradients while hooks keep what is saved")
    def _():
        told = []
        modes = (
            graph.allow_mutation_on_saved_tensors,
            graph.save_on_cpu,
            lambda: graph.saved_tensors_hooks(lambda v: v.detach(), lambda v: v * 1),
        )
        for mode in modes:
            x, v, c = R(2, 2), torch.tensor([[1.0, 2.0], [-1.0, 0.5]]), torch.ones(2, 2)
            with mode(), fw.dual_level():
                dual, moving = fw.make_dual(x, v), fw.make_dual(c, v)
                made = dual.pow(3), (dual * dual).sin(), dual.exp(), x * moving, (x + 0).mul_(moving)
                for y in made:
                    g = torch.autograd.grad(y.sum(), x, create_graph=True)[0]
                    told.append(fw.unpack_dual(g).tangent)
                hessian = derived.hessian(
                    lambda q: (q**3).sum(), x, vectorize=True, outer_jacobian_strategy="forward-mode"
                )
                told.append(hessian.sum())
        return told

    @case("gradients of a class are plain behind a derivative")
    def _():
        told = []
        x, v = R(2, 2), torch.ones(2, 2).as_subclass(Sub)
        made = (
            lambda q: q**3,
            lambda q: q * 2,
            lambda q: q.exp(),
            lambda q: q.t(),
            lambda q: q + 0,
            lambda q: q @ q,
            lambda q: q.view(-1).view(2, 2),
            lambda q: q * q,
        )
        for function in made:
            for create in (False, True):
                seen = []
                y = function(x)

                def note(i, o, seen=seen):
                    seen.append([type(g).__name__ for g in i + o])

                y.grad_fn.register_hook(note)
                (g,) = torch.autograd.grad(y, x, v, create_graph=create)
                told.append((type(g).__name__, seen, g.grad_fn and g.grad_fn.name(), g.sum().item()))
        kinds = []
        y = Cube.apply(x)
        y.register_hook(lambda g: kinds.append(type(g).__name__))
        (g,) = torch.autograd.grad(y, x, v)
        parts = (*derived.vhp(lambda p: (p**3).sum(), x, v), *derived.vjp(lambda p: p**3, x, v))
        return told, kinds, type(g).__name__, [type(p).__name__ for p in parts]

    @case("channel dropout in place of what has no batch")
    def _():
        x, y = R(2, 2) * 1, torch.ones(2, 2)
        made = functional.dropout1d(x, 0.5, True, True), functional.dropout1d(y, 0.5, True, True)
        leaf = R(2, 2)
        refused = err(lambda: functional.dropout1d(leaf, 0.5, True, True))
        seen = x.grad_fn.name(), x._version, y._version
        return [t.shape for t in made], made[0] is x, seen, refused, leaf.shape

    @case("linear by one row")
    def _():
        told = []
        for size in ((1, 2, 2), (2, 2, 2, 2), (2, 2), (2,)):
            for bias in (None, torch.tensor(3.0), torch.ones(1)):
                x, weight = torch.ones(size, requires_grad=True), torch.ones(2, requires_grad=True)

                def run(x=x, weight=weight, bias=bias):
                    y = functional.linear(x, weight, bias)
                    return y, y.grad_fn.name(), torch.autograd.grad(y.sum(), (x, weight))

                told.append(run() if bias is None or (bias.dim() == 0 and len(size) > 2) else err(run)[:40])
        return told

    @case("indices of tensors without dimensions")
    def _():
        t = torch.tensor(1.0)
        return [err(lambda i=i: t[i]) for i in (0, 1, -1, 5, (0, 0))], err(lambda: t.__setitem__(1, 2.0))

    @case("asarray without a gradient is the leaf itself")
    def _():
        leaf = torch.nn.Parameter(torch.ones(2))
        made, result = torch.asarray(leaf, requires_grad=False), torch.asarray(R(2) * 2, requires_grad=False)
        return made is leaf, leaf.requires_grad, result.requires_grad, result._base is None

    @case("what has a gradient is copied into parts of whole numbers")
    def _():
        told = []
        x = R(2) * 3
        parts = (
            lambda t: t.unbind()[0],
            lambda t: next(iter(t)),
            lambda t: t.split(1)[0],
            lambda t: t.view(-1)[:2],
        )
        for mode in (torch.enable_grad, torch.no_grad, torch.inference_mode):
            for part in parts:
                whole = torch.zeros(2, 2, dtype=torch.long)
                with mode():
                    p = part(whole)

                def write(p=p, whole=whole):
                    p.copy_(x)
                    p[...] = x * 2
                    return whole.tolist(), p.requires_grad, p.grad_fn, whole.requires_grad

                told += [write()]
                told += [err(lambda p=p: p.fill_(x.sum()))[:60]] if mode is torch.no_grad else []
        return told

    @case("complex numbers that fill real ones are told of")
    def _():
        torch.set_warn_always(True)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for t in (torch.ones(2), R(2) * 1, torch.tensor(1.0), torch.ones(2).long(), torch.ones(0)):
                t.fill_(torch.tensor(1 + 2j))
                t.copy_(torch.tensor(1 + 2j))
        torch.set_warn_always(False)
        return [str(w.message).split(" (Triggered")[0] for w in caught]

    @case("nothing is dual in inference mode")
    def _():
        with torch.inference_mode(), fw.dual_level():
            dual = fw.make_dual(R(2, 2), torch.ones(3))
            other = fw.make_dual(R(2), torch.ones(2), level=3)
            return dual, fw.unpack_dual(dual * 2).tangent, fw.unpack_dual(other).tangent

    @case("the identity is written once")
    def _():
        t = R(2, 3)
        version = t._version
        return torch.nn.init.eye_(t) is t, t, t._version - version, t.requires_grad

    return found


test_as_in_torch = same_in_torch(cases)
