"""Nested tensors: what they are, what is computed of them and their gradients."""

import pytest
import torch as torch_itself
from outcomes import collector, err, outcome

import rushlight


def cases(torch):
    found, case = collector()
    nested, functional = torch.nested, torch.nn.functional

    def sample(dim=2, grad=False):
        shapes = ((2, 3), (1, 4)) if dim == 2 else ((2,), (3,))
        parts = [torch.arange(1.0, 1 + torch.Size(s).numel()).reshape(s) for s in shapes]
        return nested.nested_tensor(parts, requires_grad=grad)

    functions = {
        "times": lambda x: x * 2,
        "by itself": lambda x: x * x,
        "plus": lambda x: 1 + x + x,
        "minus": lambda x: x - x * 3,
        "over": lambda x: x / (x + 1),
        "sin": lambda x: x.sin().cos() * x,
        "relu": lambda x: (x - x.clone() + 1).relu(),
        "gelu": lambda x: functional.gelu(x),
        "silu": lambda x: functional.silu(x),
        "sqrt": lambda x: x.sqrt().abs(),
        "softmax": lambda x: x.softmax(-1),
        "sum": lambda x: (x * x).sum(-1, keepdim=True),
        "written": lambda x: x.clone().mul_(2).add_(x),
        "double": lambda x: x.double() * 3,
        "parts": lambda x: nested.as_nested_tensor([part * part for part in x.unbind()]),
        "zeros": lambda x: torch.zeros_like(x) * x + torch.ones_like(x),
    }
    for name, function in functions.items():
        for dim in (1, 2):

            @case(f"{name} of {dim} dimensions")
            def _(function=function, dim=dim):
                x = sample(dim, True)
                y = function(x)
                weights = torch.arange(1.0, 1 + len(y.unbind()) * y.dim(), dtype=y.dtype)
                grad = torch.autograd.grad(y, x, y.detach() * weights[1])[0]
                padded = y.to_padded_tensor(-1.0)
                return grad, y.detach(), padded.detach(), torch.autograd.grad(padded.sum(), x)[0]

    @case("the gradients of what it was made of")
    def _():
        a, b = torch.ones(2, 3, requires_grad=True), torch.ones(1, 3, requires_grad=True)
        x = nested.as_nested_tensor([a, b * 2])
        (nested.to_padded_tensor(x * x, 0.0, (2, 3, 4)) ** 2).sum().backward()
        x = nested.as_nested_tensor([a, b])
        torch._test_autograd_multiple_dispatch(x).backward(x.detach() * 3)
        y = torch._test_autograd_multiple_dispatch(nested.as_nested_tensor([a, b]), True)
        y.backward(x.detach() * 2)
        return a.grad, b.grad, x.grad_fn.name(), x.requires_grad, x.is_leaf, y.grad_fn.name()

    @case("gradients of other sizes")
    def _():
        x, other, plain = sample(2, True), sample(1), torch.ones(3, requires_grad=True)
        about = torch.autograd._calculate_shape
        return (
            about(x, other, False),
            [err(lambda args=args: about(*args)) for args in ((x, x, True), (plain, x, False))],
            [err(lambda g=g: torch.autograd.backward(x * 1, g)) for g in (other, torch.ones(3), None)],
            err(lambda: torch.autograd.backward(plain * 1, other)),
            [err(lambda b=b: torch.is_same_size(x, b)) for b in (x, other, plain)],
            [err(lambda b=b: b.is_same_size(x)) for b in (x, other, plain)],
            torch.autograd.graph.get_gradient_edge(nested.as_nested_tensor([plain])).output_nr,
        )

    @case("a write to what a sum keeps")
    def _():
        x = sample(1, True).clone()
        y = x.sum(-1, keepdim=True)
        x.add_(x)
        return err(lambda: y.backward(torch.ones_like(y))).split(":")[:2]

    @case("what it is")
    def _():
        x, y = sample(), sample(1)
        made = [[1.0, 2.0], [3.0]], [1, 2], [], [torch.ones(2), torch.ones(1).double()]
        return (
            [x, sample(grad=True), x.is_nested, x.dim(), x.numel(), x.size(0), x.dtype, x.layout],
            [x.is_contiguous(), x.unbind(), x[0], x[-1, 0], [part.shape for part in x]],
            [x.is_same_size(x), x.is_same_size(y), x._nested_tensor_size(), x._nested_tensor_strides()],
            [x._nested_tensor_storage_offsets(), x.values(), nested.as_nested_tensor(torch.eye(2))],
            [nested.nested_tensor(parts) for parts in made],
        )

    refused = """
x.size()
x.shape
x.size(2)
x.size(-1)
x.size(3)
x.stride()
len(x)
x[2]
x[0:1]
x.exp()
x.sum()
x.sum(-1)
x.sum(1, keepdim=True)
x.softmax(0)
x + y
x + torch.ones(2, 2, 4)
x.item()
bool(x)
x.expand(2, 2, 4)
x.to_padded_tensor(0.0, (2, 1, 4))
(x.requires_grad_() * 2).backward()
setattr(x, "grad", torch.ones(2, 2, 4))
nested.nested_tensor(torch.ones(2))
nested.nested_tensor([torch.ones(2), torch.ones(2, 2)])
nested.nested_tensor([torch.ones(2)], layout=torch.sparse_coo)
nested.nested_tensor([torch.ones(2).long()], requires_grad=True)
nested.as_nested_tensor(3)
nested.as_nested_tensor([1])
nested.as_nested_tensor(x)
torch.ones(2).to_padded_tensor(0.0)
"""
    for line in refused.strip().splitlines():

        @case(line)
        def _(line=line):
            names = {"torch": torch, "nested": nested, "x": sample(), "y": sample(1)}
            return eval(line, names)

    return found


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("name", cases(rushlight))
def test_as_in_torch(name):
    expected = outcome(cases(torch_itself)[name])
    got = outcome(cases(rushlight)[name])
    assert got[0] == expected[0]  # torch warns that its nested tensors may change


def test_what_there_is_not_is_refused():
    x = rushlight.nested.nested_tensor([rushlight.ones(2, 3), rushlight.ones(1, 3)])
    for call in (
        lambda: x.transpose(1, 2),
        lambda: x.reshape(2, -1),
        lambda: rushlight.cat([x, x]),
        lambda: rushlight.bmm(x, x),
        lambda: rushlight.sum(x, -1, keepdim=True),
        lambda: rushlight.unbind(x),
        lambda: x.__reduce_ex__(2),
        lambda: rushlight.nested.nested_tensor([], layout=rushlight.jagged),
        lambda: rushlight.nested.narrow(x, 0, 0, 1),
    ):
        with pytest.raises(NotImplementedError):
            call()


def test_gradients_accumulate_in_a_leaf():
    x = rushlight.nested.nested_tensor([[1.0, 2.0], [3.0]], requires_grad=True)
    for _ in range(2):
        (x * 3).backward(rushlight.ones_like(x))
        x.tanh().backward(rushlight.zeros_like(x))
    assert [part.tolist() for part in x.grad] == [[6.0, 6.0], [6.0]]
    assert [part.tolist() for part in rushlight.autograd.grad(x.clone(), x, x.grad)[0]] == [[6.0, 6.0], [6.0]]
