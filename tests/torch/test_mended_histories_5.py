"""What programs about histories found in the graphs of tangents and of gradients of gradients."""

import importlib

import pytest
from corners import same_in_torch, short_names
from outcomes import collector

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
            return [fw.unpack_dual(y).tangent.tolist() for y in (d * x, d - w, w + d, e * x, torch.lerp(e, w, 0.5))]

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
                                told.append(torch.autograd.grad(made.sum(), (x, t), allow_unused=True, retain_graph=True))
        return told

    @case("tangents of parts of complex numbers")
    def _():
        told = []
        z, t = torch.complex(R(2, 2), R(2, 2)), torch.complex(R(2, 2), torch.ones(2, 2))
        views = (torch.view_as_real, lambda v: v.real, lambda v: v.imag, lambda v: v.conj(), lambda v: v.conj().t())
        for view in views:
            for first in (False, True):
                with fw.dual_level():
                    whole = z.clone() if first else fw.make_dual(z, t).clone()
                    part = view(whole)
                    (part if first else whole).mul_(view(fw.make_dual(z * 1, t)) if first else 2)
                    for seen in (whole, part):
                        made = fw.unpack_dual(seen).tangent
                        told.append((graph(made), torch.view_as_real(made.resolve_conj()) if made.is_complex() else made))
        return told

    @case("numbers in derivatives of derivatives")
    def _():
        told = []
        made = (lambda q: q.pow(3), lambda q: q.sqrt(), lambda q: q.log2(), lambda q: torch._foreach_mul([q], 2.0)[0])
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
        made = (lambda q, w: q * w, lambda q, w: q / w, lambda q, w: q.exp(), lambda q, w: q.pow(3), lambda q, w: q * w[0])
        for function in made:
            x, w = R(2, 2), R(2, 2) * 2
            for rows in (torch.ones(3, 2, 2), R(3, 2, 2)):
                y = function(x, w)
                (g,) = torch.autograd.grad(y, x, rows, create_graph=True, is_grads_batched=True)
                told += [graph(g), g, torch.autograd.grad(g.sum(), w, allow_unused=True)]
        return told

    return found


test_as_in_torch = same_in_torch(cases)
