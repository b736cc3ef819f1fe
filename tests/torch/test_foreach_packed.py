"""Functions on lists under hooks on saved tensors: what is packed and read again, in which order; and those
that torch cannot differentiate."""

import pytest
from corners import same_in_torch
from outcomes import collector

pytestmark = pytest.mark.torch

UNARY = "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac log log10 log1p log2 neg reciprocal"
UNARY += " round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc max norm powsum"
BINARY = "add sub mul div pow maximum minimum clamp_min clamp_max lerp"
NUMBERS = ("0.5", "[0.5, 2.0]", "torch.tensor(0.5)")


def calls():
    """Expressions of lists x, y and z of two tensors."""
    for name in UNARY.split():
        yield f"torch._foreach_{name}(x)"
        if name not in ("max", "norm", "powsum"):
            yield f"torch._foreach_{name}_(x)"
    for name in BINARY.split():
        for form in ("", "_"):
            if name == "lerp":
                yield from (f"torch._foreach_lerp{form}(x, y, {third})" for third in ("z", *NUMBERS[:2]))
            elif name + form != "pow_":  # torch packs the results of that after all operands
                yield from (f"torch._foreach_{name}{form}(x, {other})" for other in ("y", *NUMBERS))
            else:
                yield from (f"torch._foreach_pow_(x, {other})" for other in NUMBERS[:2])
    for name in ("addcmul", "addcdiv"):
        for form in ("", "_"):
            for rest in ("", ", value=0.5", ", [0.5, 2.0]", ", torch.tensor([0.5, 2.0])"):
                yield f"torch._foreach_{name}{form}(x, y, z{rest})"
    yield from (
        "torch._foreach_pow(2.0, x)",
        "torch._foreach_norm(x, 1)",
        "torch._foreach_add(x, y, alpha=2)",
    )
    yield from ("torch._foreach_add(x, torch.tensor(0.5), alpha=2)", "torch._foreach_mul(x, x)")
    yield from ("torch._foreach_copy_(x, y)", "torch._foreach_zero_(x)", "torch._foreach_clone(x)")


def cases(torch):
    found, case = collector()

    def ran(text, wanted, hooked):
        torch.manual_seed(0)
        lists = {name: [torch.rand(2) + 0.2, torch.rand(3) + 0.2] for name in "xyz"}
        asked = [tensor.requires_grad_() for name in wanted for tensor in lists[name]]
        lists["x"] = [tensor.clone() for tensor in lists["x"]]
        names = {tensor.data_ptr(): f"{name}{at}" for name in "xyz" for at, tensor in enumerate(lists[name])}
        shown, read = [], []

        def pack(tensor):
            shown.append((names.get(tensor.data_ptr(), "?"), tuple(tensor.shape), tensor.requires_grad))
            return len(shown) - 1, tensor

        def unpack(pair):
            read.append(pair[0])
            return pair[1]

        def run():
            results = eval(text, {"torch": torch, **lists})
            return lists["x"] if results is None else results

        if hooked:
            with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
                results = run()
        else:
            results = run()
        nodes = [tensor.grad_fn and tensor.grad_fn.name() for tensor in results]
        edges = [
            tensor.grad_fn and [node and node.name() for node, _ in tensor.grad_fn.next_functions]
            for tensor in results
        ]
        told = shown, nodes, edges, [tensor._version for tensor in results]
        try:
            total = sum((t * torch.arange(1, t.numel() + 1).reshape(t.shape)).sum() for t in results)
            first = torch.autograd.grad(total, asked, allow_unused=True, create_graph=True)
        except RuntimeError as error:
            return told, str(error).split("\n")[0]
        again = sum((g * g).sum() for g in first if g is not None and g.requires_grad)
        second = (
            torch.autograd.grad(again, asked, allow_unused=True) if isinstance(again, torch.Tensor) else None
        )
        return told, read[: len(shown)], first, second

    for text in calls():
        for wanted in ("x", "y", "xy", "xyz"):
            for hooked in (False, True):

                @case(f"{text} {wanted}{' hooked' * hooked}")
                def _(text=text, wanted=wanted, hooked=hooked):
                    return ran(text, wanted, hooked)

    return found


test_packed = same_in_torch(cases)
