"""`torch.func.linearize`: pushes what `jvp` pushes, and runs the function once."""

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.func import functional_call, grad, hessian, jvp, linearize, vmap
from rushlight.utils._pytree import tree_flatten


def a(*shape):
    n = torch.Size(shape).numel()
    return (torch.arange(n, dtype=torch.float64) * 0.7 + 0.3).sin().reshape(shape) + 0.1


class Tripled(torch.autograd.Function):
    """Linear, with itself as its derivative."""

    @staticmethod
    def forward(x):
        return x * 3

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, g):
        return g * 3

    @staticmethod
    def jvp(ctx, t):
        return Tripled.apply(t)


def written_between(x):
    y = x * 2
    z = y * y
    y.add_(1)
    return z, z * y


def written_parts(x):
    y, filled = x.exp(), torch.zeros(4, dtype=torch.float64)
    z = y.sin()
    y[0] = 5
    filled[1:] = x
    filled[0] = x[1]
    return z * y, filled.mul_(filled)


def written_constants(x):
    constant = torch.zeros(3, dtype=torch.float64)
    first = x * constant
    constant[1] = 2.0
    second = x * constant
    constant.copy_(x)
    return first, second, constant


def partly_unrecorded(x):
    with torch.no_grad():
        y = x.sin()
    return x * y


def through_its_tangent(x):
    return x * 2 + torch.autograd.forward_ad.unpack_dual(x).primal.detach()


torch.manual_seed(0)
NET = nn.Sequential(nn.Linear(3, 5), nn.ReLU(inplace=True), nn.LayerNorm(5), nn.Linear(5, 3)).double()
LSTM = nn.LSTM(3, 4).double()
FUNCTIONS = {
    "written between": (written_between, (3,)),
    "written parts": (written_parts, (3,)),
    "written constants": (written_constants, (3,)),
    "partly unrecorded": (partly_unrecorded, (3,)),
    "through its tangent": (through_its_tangent, (3,)),
    "itself": (lambda x: x, (3,)),
    "a Function": (Tripled.apply, (3,)),
    "a network": (NET, (2, 3)),
    "an LSTM": (lambda x: LSTM(x)[0], (4, 3)),
    "a structure": (lambda x: {"q": (x @ x,), "r": [x.sum(), torch.ones(2)]}, (3, 3)),
    "solve": (lambda x: torch.linalg.solve(x, x + 1), (3, 3)),
    "a spectrum": (lambda x: torch.fft.fft(x).abs(), (4,)),
    "sorted": (lambda x: torch.cat([x, x * 2]).sort()[0], (3,)),
    "a gradient": (grad(lambda x: (x**3).sum()), (3,)),
    "a Hessian": (hessian(lambda x: (x**3).prod()), (3,)),
    "a tangent": (lambda x: jvp(torch.sin, (x,), (x,))[1], (3,)),
    "a batch": (vmap(lambda x: x.sin() * x.sum()), (3, 2)),
    "linearized within": (lambda x: linearize(torch.sin, x)[1](x * x), (3,)),
}


def same(ours, wanted):
    (ours, form), (wanted, wanted_form) = tree_flatten(ours), tree_flatten(wanted)
    assert form == wanted_form
    for x, y in zip(ours, wanted, strict=True):
        assert x.dtype == y.dtype and x.shape == y.shape and torch.allclose(x, y, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_it_pushes_what_jvp_pushes(name):
    function, shape = FUNCTIONS[name]
    value, push = linearize(function, a(*shape))
    for factor in (1.0, -2.0):
        along = (a(*shape) * factor).cos()
        kept = along.clone()
        wanted = jvp(function, (a(*shape),), (along,))
        same(value, wanted[0])
        same(push(along), wanted[1])
        assert torch.equal(along, kept)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_batch_of_tangents_is_pushed(name):
    function, shape = FUNCTIONS[name]
    _, push = linearize(function, a(*shape))
    along = torch.stack([a(*shape), a(*shape).cos()])
    made = tree_flatten(vmap(push)(along))[0]
    for i in range(2):
        same([x[i] for x in made], tree_flatten(push(along[i]))[0])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_pushing_is_differentiated(name):
    function, shape = FUNCTIONS[name]
    _, push = linearize(function, a(*shape))

    def total(along):
        return sum(x.sum() for x in tree_flatten(push(along))[0])

    along = a(*shape).cos()
    assert torch.allclose((grad(total)(a(*shape)) * along).sum(), total(along))


def test_the_function_runs_once():
    calls = []

    def function(x):
        calls.append(1)
        return x.sin()

    _, push = linearize(function, a(3))
    push(a(3))
    push(a(3))
    assert len(calls) == 1


def test_each_argument_has_its_tangent():
    def function(x, y):
        return (x @ y).sin() + y, x * 2

    x, y = a(3, 3).t(), a(3, 3)  # the tangent of the first is laid out anew
    _, push = linearize(function, x, y)
    same(push(a(3, 3), a(3, 3).cos()), jvp(function, (x, y), (a(3, 3), a(3, 3).cos()))[1])


def test_random_numbers_are_drawn_once():
    torch.manual_seed(0)
    value, push = linearize(lambda x: nn.functional.dropout(x, 0.5) * torch.rand(8), torch.ones(8))
    drawn = value.clone()
    for _ in range(2):
        assert torch.equal(push(torch.ones(8)), drawn)  # linear already
    assert 0 < (drawn == 0).sum() < 8


def test_it_is_differentiated_by_its_point():
    second = grad(lambda x: linearize(lambda y: y**3, x)[1](torch.ones_like(x)))(torch.tensor(2.0))
    assert second == 12.0
    each = vmap(lambda x: linearize(torch.sin, x)[1](x))(a(3))
    assert torch.allclose(each, a(3).cos() * a(3))


def test_it_may_change_what_the_function_reads_later():
    weight = torch.tensor(2.0)
    _, push = linearize(lambda x: x * weight, torch.tensor(1.0))
    model = nn.Linear(2, 2, bias=False)
    parameters = dict(model.named_parameters())
    _, of_model = linearize(lambda p: functional_call(model, p, (torch.ones(2),)).sum(), parameters)
    assert push(torch.tensor(3.0)) == 6.0
    assert of_model({"weight": torch.ones(2, 2)}) == 4.0


def test_what_reads_a_tangent_is_refused():
    class Reads(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x * 1

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def jvp(ctx, t):
            return t * t.sum().item()

    with pytest.raises(NotImplementedError, match="reads a number of a tangent"):
        linearize(Reads.apply, a(3))
    assert torch._C.top_level() is None


def test_it_keeps_what_is_no_tensor():
    value, push = linearize(lambda x: (x * 2, 3.0), a(3))
    assert value[1] == push(a(3))[1] == 3.0


def test_tangents_are_as_the_arguments():
    _, push = linearize(lambda x: x * 2, a(3))
    with pytest.raises(RuntimeError, match="same argspec"):
        push(a(3), a(3))
    with pytest.raises(RuntimeError, match="tangent:0 with shape"):
        push(a(2))
    with pytest.raises(RuntimeError, match="tangent:0 with dtype"):
        push(a(3).float())
