"""autograd.Function: what the comparison with torch does not say about life, memory and higher order."""

import gc
import weakref

import pytest

import rushlight as torch
from rushlight.autograd import Function


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * x**2


class Exp(Function):
    @staticmethod
    def forward(ctx, x):
        result = x.exp()
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx, grad):
        (result,) = ctx.saved_tensors
        return grad * result


def test_any_order():
    x = torch.tensor(2.0, requires_grad=True, dtype=torch.float64)
    for function, expected in ((Cube, [12, 12, 6]), (Exp, [torch.e**2] * 3)):
        y = function.apply(x)
        for value in expected:
            (y,) = torch.autograd.grad(y, x, create_graph=True)
            assert y.item() == pytest.approx(value)


def test_saved_leaf_is_the_leaf_itself():
    x = torch.ones(2, requires_grad=True)
    assert Cube.apply(x).grad_fn.saved_tensors[0] is x


def test_two_leaves_on_one_memory_keep_their_gradients_apart():
    x = torch.tensor([3.0], requires_grad=True)
    y = x.detach().requires_grad_()
    (gx,) = torch.autograd.grad((x * x * y).sum(), x, create_graph=True)
    gx.sum().backward()
    assert (x.grad.item(), y.grad.item()) == (6.0, 6.0)


def test_more_arguments_than_a_word_has_bits():
    class Total(Function):
        @staticmethod
        def forward(ctx, *xs):
            ctx.n = len(xs)
            return sum(x for x in xs if isinstance(x, torch.Tensor))

        @staticmethod
        def backward(ctx, grad):
            return tuple(grad * i if i % 2 == 0 else None for i in range(ctx.n))

    xs = [torch.ones(1, requires_grad=True) if i % 2 == 0 else i for i in range(150)]
    Total.apply(*xs).backward()
    assert [x.grad.item() for x in xs[::2]] == list(range(0, 150, 2))


def dies(make):
    """Whether what make() returns a weak reference to is gone once the collector has run."""
    reference = make()
    gc.collect()
    return reference() is None


def test_a_node_that_refers_to_its_output_is_collected():
    class Keeps(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.out = x * 2
            ctx.more = [ctx.out, {"ctx": ctx}]
            return ctx.out

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    def make():
        x = torch.ones(2, requires_grad=True)
        y = Keeps.apply(x * 1)
        y.sum().backward(retain_graph=True)
        y.grad_fn.later = y
        return weakref.ref(y)

    assert dies(make)


def test_saved_output_makes_no_cycle():
    gc.disable()
    try:
        y = Exp.apply(torch.ones(2, requires_grad=True))
        node = weakref.ref(y.grad_fn)
        del y
        assert node() is None
    finally:
        gc.enable()


def test_errors_in_forward_leave_recording_on():
    class Fails(Function):
        @staticmethod
        def forward(ctx, x):
            raise KeyError("no")

    with pytest.raises(KeyError):
        Fails.apply(torch.ones(1, requires_grad=True))
    assert torch.is_grad_enabled()


def test_writing_into_a_view_that_is_the_second_argument():
    class AddTo(Function):
        @staticmethod
        def forward(ctx, x, target):
            ctx.mark_dirty(target)
            return target.add_(x)

        @staticmethod
        def backward(ctx, grad):
            return grad * 10, grad * 2

    x = torch.ones(2, requires_grad=True)
    start = torch.ones(2, 2, requires_grad=True)
    base = start * 1
    AddTo.apply(x, base[0])
    (base * torch.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    assert x.grad.tolist() == [10, 20]
    assert start.grad.tolist() == [[2, 4], [3, 4]]


@pytest.mark.parametrize("number", [2.0, 3j])
def test_in_place_into_views_of_parts(number):
    z = torch.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    base = z * 1
    torch.view_as_real(base)[:, 0].mul_(2.0)
    (base * number).sum().abs().backward()
    expected = torch.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    (torch.complex(expected.real * 2, expected.imag) * number).sum().abs().backward()
    assert torch.allclose(z.grad, expected.grad)


def test_in_place_into_real_numbers_seen_as_complex():
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    base = x * 1
    torch.view_as_complex(base).mul_(1j)
    (base * torch.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    assert x.grad.tolist() == [[2, -1], [4, -3]]
