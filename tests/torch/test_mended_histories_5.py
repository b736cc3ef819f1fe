"""What programs about histories found in the graphs of tangents and of gradients of gradients."""

import importlib

import pytest
from corners import same_in_torch, short_names
from outcomes import collector, err

pytestmark = pytest.mark.torch


def cases(torch):
    found, case = collector()
    R = short_names(torch).R
    functional = torch.nn.functional
    fw = importlib.import_module(f"{torch.__name__}.autograd.forward_ad")

    def name(node):
        """Torch's node of an unpacked primal is looked through."""
        while node is not None and node.name().endswith("Identity"):
            node = node.next_functions[0][0]
        return node and node.name()

    def graph(t):
        node = t.grad_fn
        return node and (node.name(), [name(f) for f, _ in node.next_functions])

    products = {
        "mul": lambda d, w: d * w,
        "mul by the other": lambda d, w: w * d,
        "mul by a number": lambda d, w: d * 2,
        "mm": lambda d, w: d @ w,
        "mm by the other": lambda d, w: w @ d,
        "mv": lambda d, w: d.mv(w[0]),
        "dot": lambda d, w: torch.dot(d[0], w[0]),
        "addmm": lambda d, w: torch.addmm(d, d, w),
        "baddbmm": lambda d, w: torch.baddbmm(d[None], d[None], w[None]),
        "linear": lambda d, w: functional.linear(d, w, w[0]),
        "convolution": lambda d, w: functional.conv1d(d[None], w[None]),
        "cross": lambda d, w: torch.linalg.cross(d.expand(3, 2, 2), w.expand(3, 2, 2), dim=0),
        "div": lambda d, w: d / w,
        "div by it": lambda d, w: w / d,
        "add": lambda d, w: d + w,
        "sub": lambda d, w: d - w,
        "addcmul": lambda d, w: torch.addcmul(d, w, w),
        "addcdiv": lambda d, w: torch.addcdiv(w, d, w),
        "lerp": lambda d, w: torch.lerp(d, w, 0.3),
        "lerp by a tensor": lambda d, w: torch.lerp(d, w, d),
        "fmod": lambda d, w: d.fmod(w),
        "pow": lambda d, w: d.pow(3),
        "sqrt": lambda d, w: d.sqrt(),
    }

    @case("a tangent is a sum of one term per input")
    def _():
        told = []
        for label, f in products.items():
            for leaf in (False, True):
                x, w, t = R(2, 2) * 2, R(2, 2) * 3, torch.ones(2, 2).requires_grad_(leaf)
                with fw.dual_level():
                    made = fw.unpack_dual(f(fw.make_dual(x, t), w)).tangent
                    told.append((label, graph(made), made))
                    if made.requires_grad:
                        told.append(torch.autograd.grad(made.sum(), (x, w, t)[: 2 + leaf], allow_unused=True))
        return told

    @case("what does not move may be infinite")
    def _():
        x, w, t = R(2, 2) * 1, torch.full((2, 2), float("inf"), requires_grad=True), torch.ones(2, 2)
        with fw.dual_level():
            d, e = fw.make_dual(x, t), fw.make_dual(w, t)
            return [
                fw.unpack_dual(y).tangent.tolist()
                for y in (d * x, d - w, w + d, e * x, torch.lerp(e, w, 0.5))
            ]

    writes = {
        "add": lambda t, d: t.add_(d),
        "mul": lambda t, d: t.mul_(d),
        "copy": lambda t, d: t.copy_(d),
        "div": lambda t, d: t.div_(d),
        "zero": lambda t, d: t.zero_(),
        "fill": lambda t, d: t.fill_(2.0),
        "copy of what does not move": lambda t, d: t.copy_(d.detach()),
    }
    parts = {
        "itself": lambda t: t,
        "turned": lambda t: t.t(),
        "flat": lambda t: t.view(-1),
        "row": lambda t: t[0],
    }

    @case("tangents of views are views of tangents")
    def _():
        told = []
        for wrote, write in writes.items():
            for part, take in parts.items():
                for moving in (False, True):
                    x, t = R(2, 2) * 2, R(2, 2) * 3
                    with fw.dual_level():
                        d = fw.make_dual(x, t)
                        whole = d.clone() if moving else x.clone()
                        other = whole.t()
                        write(take(whole), take(d))
                        for seen in (whole, other):
                            made = fw.unpack_dual(seen).tangent
                            if made is None:
                                told.append((wrote, part, moving, None))
                                continue
                            label = graph(made)
                            if wrote == "zero" and label:  # is filled with 0 here
                                label = str(label).replace("ZeroBackward0", "FillBackward2")
                            told.append((wrote, part, moving, label, made.detach()))
                            if made.requires_grad:
                                told.append(
                                    torch.autograd.grad(
                                        made.sum(), (x, t), allow_unused=True, retain_graph=True
                                    )
                                )
        return told

    @case("tangents of parts of complex numbers")
    def _():
        told = []
        z, t = torch.complex(R(2, 2), R(2, 2)), torch.complex(R(2, 2), torch.ones(2, 2))
        views = (
            torch.view_as_real,
            lambda v: v.real,
            lambda v: v.imag,
            lambda v: v.conj(),
            lambda v: v.conj().t(),
        )
        for view in views:
            for first in (False, True):
                with fw.dual_level():
                    whole = z.clone() if first else fw.make_dual(z, t).clone()
                    part = view(whole)
                    (part if first else whole).mul_(view(fw.make_dual(z * 1, t)) if first else 2)
                    for seen in (whole, part):
                        made = fw.unpack_dual(seen).tangent
                        told.append(
                            (
                                graph(made),
                                torch.view_as_real(made.resolve_conj()) if made.is_complex() else made,
                            )
                        )
        return told

    @case("numbers in derivatives of derivatives")
    def _():
        told = []
        made = (
            lambda q: q.pow(3),
            lambda q: q.sqrt(),
            lambda q: q.log2(),
            lambda q: torch._foreach_mul([q], 2.0)[0],
        )
        for function in made:
            x = R(2, 2)
            first = torch.autograd.grad(function(x).sin().sum(), x, create_graph=True)[0]
            second = torch.autograd.grad(first.exp().sum(), x, create_graph=True)[0]
            told += [graph(first), graph(second), second]
            walk = second.grad_fn
            for _ in range(3):
                walk = walk and walk.next_functions[0][0]
                told.append(name(walk))
        return told

    @case("operands in batches of gradients are views")
    def _():
        told = []
        made = (
            lambda q, w: q * w,
            lambda q, w: q / w,
            lambda q, w: q.exp(),
            lambda q, w: q.pow(3),
            lambda q, w: q * w[0],
        )
        for function in made:
            x, w = R(2, 2), R(2, 2) * 2
            for rows in (torch.ones(3, 2, 2), R(3, 2, 2)):
                y = function(x, w)
                (g,) = torch.autograd.grad(y, x, rows, create_graph=True, is_grads_batched=True)
                told += [graph(g), g, torch.autograd.grad(g.sum(), w, allow_unused=True)]
        return told

    @case("limits that are tensors are one step")
    def _():
        told = []
        limits = (
            lambda t, b: t.clamp_min_(b),
            lambda t, b: t.clamp_max_(b),
            lambda t, b: t.clamp_(b, None),
            lambda t, b: t.clamp_(None, b),
        )
        for limit in limits:
            whole, bound = R(2, 2) * 2, R(2, 2)
            e = whole * 1
            limit(e, bound)
            told += [graph(e), torch.autograd.grad(e.sum(), (whole, bound), retain_graph=True)]
            bound.detach().mul_(1)
            told.append(err(lambda e=e, whole=whole: torch.autograd.grad(e.sum(), whole)))
            same, apart = R(2, 2) * 2, torch.ones(2, 1).expand(2, 2)
            limit(same, same)
            told.append(err(lambda same=same: same.sum().backward()))
            told.append(err(lambda limit=limit, apart=apart, bound=bound: limit(apart, bound)))
            with fw.dual_level():
                told += [*fw.unpack_dual(limit(fw.make_dual(R(2, 2) * 1, torch.ones(2, 2)), R(2, 2) * 0.5))]
        for limit in limits[:2]:
            e, part = R(2, 2) * 2, R(2)
            limit(e[0], part)
            told += [graph(e), torch.autograd.grad(e.sum(), part)]
        nans = torch.tensor([1.0, float("nan"), 2.0], requires_grad=True)
        others = torch.tensor([1.0, 1.0, float("nan")], requires_grad=True)
        for made in (nans.clamp_min(others), nans.clamp_max(others)):
            told += [made, torch.autograd.grad(made.nan_to_num().sum(), (nans, others))]
        return told

    @case("comparisons in place keep nothing")
    def _():
        told, seen = [], []
        for compare in (lambda t, o: t.eq_(o), lambda t, o: t.gt_(0), lambda t, o: t.le_(o)):
            x, w = R(2, 2), R(2, 2)
            e = x * w
            with torch.autograd.graph.saved_tensors_hooks(lambda v: seen.append(v.shape) or v, lambda v: v):
                compare(e, w)
            w.detach().mul_(2)
            told += [graph(e), torch.autograd.grad(e.sum(), (e, w), allow_unused=True)]
            e = x * 1
            compare(e, e)
            told.append(torch.autograd.grad(e.sum(), x))
        return told, seen

    @case("one value of another dtype under a mask")
    def _():
        told = []
        for value in (R(2).double().sum(), R(2).double()[0], R(2).sum()):
            e = R(2, 2) * 1
            e[e > 0] = value
            told += [graph(e), e]
            e.sum().backward()
        x = R(2).double()
        e = torch.zeros(2, 2)
        e[e == 0] = x.sum()
        return told, torch.autograd.grad(e.sum(), x)

    @case("a list is refused as a whole")
    def _():
        told = []
        for write in (torch._foreach_zero_, torch._foreach_exp_, lambda both: torch._foreach_mul_(both, 2.0)):
            e, leaf = R(2, 2) * 2, R(2, 2)
            told += [
                (err(lambda write=write, e=e, other=other: write([e, other])), e, e._version)
                for other in (leaf, leaf.view(4), (leaf * 1).unbind()[0])
            ]
        return told

    @case("other bytes in inference mode count no writes")
    def _():
        x, told = torch.ones(2, 2), []
        with torch.inference_mode():
            for view in (torch.int32, torch.int16, torch.float32, torch.float64):
                part = x.view(view)
                part.zero_()
                told.append((part.is_inference(), x._version, err(lambda part=part: part._version)))
            x.view(-1).add_(1)
            told.append(x._version)
        return told

    @case("a leaf is refused before its dtype")
    def _():
        z, w, whole = torch.complex(R(2), R(2)).detach().requires_grad_(), R(2), torch.ones(2).int()
        calls = lambda: functional.elu_(z), lambda: z.abs_(), lambda: w.addcdiv_(whole, whole)
        return [err(call) for call in calls]

    @case("complex numbers are replaced in one step")
    def _():
        z = torch.complex(R(2), R(2)) * 1
        return graph(z.nan_to_num()), graph(z.nan_to_num_()), torch.zeros(2)

    @case("what a dense tensor was made of")
    def _():
        x = R(2, 2)
        sparse = (x * 2).to_sparse()
        made = sparse.to_dense()
        return made.grad_fn._saved_self.to_dense(), torch.autograd.grad(made.sum(), x)

    @case("a checkpoint of complex duals")
    def _():
        checkpoint = importlib.import_module(f"{torch.__name__}.utils.checkpoint").checkpoint
        told, part = [], torch.tensor([[0.1, 0.2], [0.3, 0.4]])
        for leaf in (False, True):
            z = torch.complex(part, part).requires_grad_(leaf)
            for function in (lambda q: (q * q).sin(), lambda q: q.exp().tanh(), lambda q: q.abs()):
                with fw.dual_level():
                    dual = fw.make_dual(z, torch.complex(part, part * 2))
                    made = fw.unpack_dual(checkpoint(function, dual, use_reentrant=False)).tangent
                    told.append(torch.view_as_real(made).detach() if made.is_complex() else made.detach())
        return told

    @case("classes within a batch")
    def _():
        func = importlib.import_module(f"{torch.__name__}.func")

        class Sub(torch.Tensor):
            pass

        rows, t = torch.ones(3, 2), torch.arange(2.0).as_subclass(Sub)
        made = (lambda q: q.as_subclass(Sub), lambda q: q * t, lambda q: (q * t).sum())
        return [(type(v).__name__, v) for v in (func.vmap(each)(rows) for each in made)]

    return found


test_as_in_torch = same_in_torch(cases)
