"""What torch's test files for modes, threads, checkpoints, hooks and sparse gradients ask."""

from importlib import import_module

import pytest
import torch
from outcomes import collector, err, outcome

import rushlight

pytestmark = pytest.mark.torch

CASES, case = collector()


@case("views of what inference mode made with a gradient")
def _(torch):
    seen = []
    for viewed in (torch.no_grad, torch.enable_grad, torch.inference_mode):
        for take in (lambda x: x.view(-1), lambda x: x.t(), lambda x: x[:, 1:], lambda x: x.chunk(2)[0]):
            for written in (0, 1):
                with torch.inference_mode():
                    x = torch.ones(2, 3, requires_grad=True)
                with viewed():
                    view = take(x)
                with torch.inference_mode():
                    (x, view)[written].mul_(2)
                seen.append([(t.requires_grad, t.is_leaf, t.grad_fn, t._is_view()) for t in (x, view)])
                seen.append((err(view.mul, 2), err(view.mul_, 2), err(torch.autograd.backward, view)))
    return seen


def tools_of(torch):
    """A dispatch mode that passes everything on, and the checkpoints that choose what they keep."""
    checkpoints = import_module(f"{torch.__name__}.utils.checkpoint")
    Mode = import_module(f"{torch.__name__}.utils._python_dispatch").TorchDispatchMode

    class Through(Mode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            return function(*args, **(kwargs or {}))

    def selective(policy, function, *args):
        contexts = lambda: checkpoints.create_selective_checkpoint_contexts(policy)
        return checkpoints.checkpoint(function, *args, use_reentrant=False, context_fn=contexts)

    return Through, selective


@case("what hooks are shown of casts while somebody looks on, and a selective checkpoint within autocast")
def _(torch):
    Through, selective = tools_of(torch)
    torch.manual_seed(0)
    x, w, seen = torch.rand(2, 2, requires_grad=True), torch.rand(2, 2, requires_grad=True), []
    keep = lambda t: (seen.append((t is x, t is w, t.dtype)), t)[1]
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda t: t), Through():
        for dtype in (torch.bfloat16, torch.float64, torch.complex64, torch.float32):
            seen.extend(torch.autograd.grad((x.to(dtype) * 1).sum().abs(), x))
        with torch.autocast("cpu"):
            seen.append((x @ w).grad_fn.name())
    mm, keep_all = torch.ops.aten.mm.default, lambda ctx, op, *args, **kwargs: True
    for function in (
        lambda x: (x @ w).sin(),
        lambda x: (x @ w) @ (x @ w),
        lambda x: torch.nn.functional.linear(x, w),
    ):
        for policy in ([mm], [], keep_all):
            for inside in (True, False):
                with torch.autocast("cpu"):
                    y = selective(policy, function, x).sum()
                    if inside:
                        seen.append(torch.autograd.grad(y, (x, w)))
                if not inside:
                    seen.append(torch.autograd.grad(y, (x, w)))
    return seen


@case("what _grad_fn may be set to")
def _(torch):
    seen = []
    for make in (
        lambda x: x,
        lambda x: x * 2,
        lambda x: x.detach(),
        lambda x: x.view(2),
        lambda x: (x * 2)[:1],
    ):
        for value in (None, 0, "a", make(torch.ones(2, requires_grad=True)).grad_fn):
            x = make(torch.ones(2, requires_grad=True))
            seen.append((err(setattr, x, "_grad_fn", value), x, (x * 2).requires_grad))
            seen.append((err(delattr, x, "_grad_fn"), x.is_leaf))
    return seen


@pytest.mark.parametrize("name", CASES)
def test_it_gives_what_torch_gives(name):
    assert outcome(lambda: CASES[name](rushlight)) == outcome(lambda: CASES[name](torch))
