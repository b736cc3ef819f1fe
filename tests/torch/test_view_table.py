"""Views of every kind, through custom Functions too, written in every way: histories, versions and refusals.

Each case makes a tensor, derives another from it, writes, and describes both; the table is the product.
"""

import itertools

import pytest
import torch as torch_itself
from outcomes import outcome

import rushlight


def functions(torch):
    """Functions that return their input, a view of it, or write into it."""
    Function = torch.autograd.Function

    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 10

    class Flat(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.shape = x.shape
            return x.view(-1)

        @staticmethod
        def backward(ctx, grad):
            return (grad * 10).view(ctx.shape)

    class Doubled(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x.mul_(2))
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    class DoubledAndFlat(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x.mul_(2))
            return x, x.view(-1)

        @staticmethod
        def backward(ctx, grad, flat):
            return grad * 2

    class Added(Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.mark_dirty(x.add_(y))
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad, grad

    class Forgotten(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x.mul_(2))
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return grad

    class Two(Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.shape = x.shape
            return x.view(-1), x + y

        @staticmethod
        def backward(ctx, flat, total):
            return flat.view(ctx.shape) + total, total

    ones = lambda x: torch.ones_like(x)
    return {
        "same": Same.apply,
        "flat": Flat.apply,
        "doubled": Doubled.apply,
        "doubled and flat": DoubledAndFlat.apply,
        "added": lambda x: Added.apply(x, ones(x).requires_grad_()),
        "added constant": lambda x: Added.apply(x, ones(x)),
        "forgotten": Forgotten.apply,
        "two": lambda x: Two.apply(x, ones(x).requires_grad_()),
    }


def sources(torch):
    leaf = lambda: torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)

    def without_grad():
        x = leaf().clone()
        with torch.no_grad():
            return x[:]

    def inference():
        with torch.inference_mode():
            return torch.ones(2, 2)

    return {
        "leaf": leaf,
        "computed": lambda: leaf().clone(),
        "constant": lambda: torch.ones(2, 2),
        "view": lambda: leaf().clone()[:],
        "view of a leaf": lambda: leaf()[:],
        "piece": lambda: leaf().clone().unbind()[0],
        "view without grad": without_grad,
        "detached": lambda: leaf().detach(),
        "inference": inference,
        "view of a constant": lambda: torch.ones(2, 2)[:],
        "piece of a constant": lambda: torch.ones(2, 2).unbind()[1],
    }


def writes(torch):
    def quietly(x, y):
        with torch.no_grad():
            y.mul_(3)

    return {
        "nothing": lambda x, y: None,
        "the result": lambda x, y: y.mul_(3),
        "without grad": quietly,
        "the source": lambda x, y: x.mul_(3),
        "a part": lambda x, y: y[0:1].mul_(3),
        "an element": lambda x, y: y.__setitem__(0, 5.0),
        "both": lambda x, y: (y.mul_(3), x.mul_(2)),
        "both, source first": lambda x, y: (x.mul_(2), y.mul_(3)),
        "by something differentiable": lambda x, y: y.mul_(torch.ones(1, requires_grad=True)),
        "detach_": lambda x, y: y.detach_(),
    }


VIEWS = {
    "select": lambda x: x[0],
    "slice": lambda x: x[:, 1:],
    "t": lambda x: x.t(),
    "view": lambda x: x.view(-1),
    "reshape": lambda x: x.reshape(-1),
    "expand": lambda x: x.expand(2, 2, 2),
    "diagonal": lambda x: x.diagonal(),
    "unfold": lambda x: x.unfold(1, 2, 1),
    "as_strided": lambda x: x.as_strided((2,), (1,), 1),
    "unbind": lambda x: x.unbind()[1],
    "split": lambda x: x.split(1)[0],
    "chunk": lambda x: x.chunk(2)[0],
    "tensor_split": lambda x: x.tensor_split(2)[0],
    "detach": lambda x: x.detach(),
    "squeeze": lambda x: x.squeeze(),
    "unsqueeze": lambda x: x.unsqueeze(0),
    "permute": lambda x: x.permute(1, 0),
    "all of it": lambda x: x[...],
    "mT": lambda x: x.mT,
    "real": lambda x: x.real,
    "contiguous": lambda x: x.contiguous(),
    "rows": lambda x: x[[0]],
}


def describe(x, y):
    name = lambda t: t.grad_fn and t.grad_fn.name()
    facts = [y is x, name(y), name(x), y.requires_grad, y._is_view(), y._base is x, y.is_leaf, y.output_nr]
    if not y.is_inference():
        facts += [y._version, x._version]
    if y.requires_grad:
        try:
            y.sum().backward()
            facts.append("backward")
        except RuntimeError as error:
            facts.append(str(error).split("\n")[0])
    return facts


def run(torch, source, derive, write):
    x = sources(torch)[source]()
    y = (functions(torch).get(derive) or VIEWS[derive])(x)
    y = y[0] if isinstance(y, tuple) else y
    writes(torch)[write](x, y)
    return describe(x, y)


TABLE = [
    *(
        pair
        for pair in itertools.product(sources(rushlight), functions(rushlight))
        if pair != ("inference", "two")
    ),
    *itertools.product(("leaf", "computed", "constant"), VIEWS),
]


@pytest.mark.parametrize(("source", "derive"), TABLE)
def test_same_in_both(source, derive):
    for write in writes(rushlight):
        mine, theirs = (
            outcome(lambda lib=lib, write=write: run(lib, source, derive, write)) for lib in LIBRARIES
        )
        if "INTERNAL ASSERT" not in theirs[0]:
            assert mine == theirs, write


LIBRARIES = (rushlight, torch_itself)
