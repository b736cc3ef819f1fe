"""What torch's test files for training, linear algebra, processes and subclasses ask, a few lines each."""

import operator

import pytest
import torch
from outcomes import collector, err, outcome

import rushlight

pytestmark = pytest.mark.torch

CASES, case = collector()


@case("hooks may keep entries of their own in an optimizer's state")
def _(torch):
    kept = []
    for cls in (torch.optim.SGD, torch.optim.Adam, torch.optim.RMSprop, torch.optim.LBFGS):
        optimizer = cls([torch.nn.Parameter(torch.ones(2))])
        optimizer.register_state_dict_pre_hook(lambda optimizer: operator.setitem(optimizer.state, "seen", 1))
        optimizer.load_state_dict(optimizer.state_dict())
        kept.append(optimizer.state["seen"])
    return kept


@case("Muon takes a learning rate of one element")
def _(torch):
    moved = []
    for rate in (torch.tensor(0.1), torch.tensor([0.1]), 0.1):
        param = torch.nn.Parameter(torch.ones(2, 2))
        param.grad = torch.eye(2)
        torch.optim.Muon([param], lr=rate).step()
        moved.append((param.detach() * 100).round())
    return moved


@case("einsum without operands, tensorsolve of sizes that do not fit")
def _(torch):
    solve, ones = torch.linalg.tensorsolve, torch.ones
    return [
        *(err(torch.einsum, *args) for args in (("", []), ("i", ()), ("",))),
        *(err(solve, ones(2, 2), ones(3)), err(solve, ones(2, 3, 6), ones(2, 3), (1, 1))),
        solve(torch.eye(6).reshape(2, 3, 6), ones(2, 3)),
    ]


@case("products of bytes")
def _(torch):
    ones, small = torch.ones, torch.int8
    left, right = ones(3, 8, dtype=small) * 100, ones(8, 2, dtype=small) * -3
    bad = [
        (left.float(), right),
        (left, right.half()),
        (left[0], right),
        (left[:, :7], right),
        (left, right[0]),
    ]
    product = torch._int_mm(left, right), torch._int_mm(left.to(torch.uint8), right)
    mixed = torch._compute_linear_combination(torch.arange(12.0).reshape(3, 2, 2), ones(2, 3))
    return product, [err(torch._int_mm, *pair) for pair in bad], mixed


class _Wrapped:
    """Makes a class of tensors without memory of their own, which answer with plain ones."""

    def __new__(cls, torch):
        class Wrapped(torch.Tensor):
            @staticmethod
            def __new__(cls, inner):
                made = torch.Tensor._make_wrapper_subclass(cls, inner.size(), dtype=inner.dtype)
                made.inner = inner
                return made

            @classmethod
            def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
                return function(*(getattr(each, "inner", each) for each in args), **(kwargs or {}))

        return Wrapped


@case("the gradient of a leaf without memory has memory")
def _(torch):
    leaf = _Wrapped(torch)(torch.ones(2, 2)).requires_grad_()
    (leaf + leaf).sum().backward()
    return type(leaf.grad) is torch.Tensor, leaf.grad.device, leaf.grad


@case("what a thread is called")
def _(torch):
    before = torch.multiprocessing._get_thread_name()
    torch.multiprocessing._set_thread_name("a name that is too long"[:15])
    name = torch.multiprocessing._get_thread_name()
    torch.multiprocessing._set_thread_name(before)
    return name, err(torch.multiprocessing.set_sharing_strategy, 3)[0]


@pytest.mark.parametrize("name", CASES)
def test_it_gives_what_torch_gives(name):
    assert outcome(lambda: CASES[name](rushlight)) == outcome(lambda: CASES[name](torch))
