"""After the same seed, both libraries draw the same numbers, bit for bit, and are left in the same state."""

import random
import re
from functools import partial

import pytest
import torch

import rushlight

SIZES = (0, 1, 2, 5, 15, 16, 17, 31, 32, 33, 100, 623, 624, 625, 1000, 100_000)
FLOATS = ("float32", "float64", "float16", "bfloat16")
COMPLEX = ("complex64", "complex128")
INTEGERS = ("uint8", "int8", "int16", "int32", "int64")

# name: (a sampler of a tensor, the dtypes it fills)
SAMPLERS = {
    "uniform_": (lambda t: t.uniform_(), FLOATS + COMPLEX),
    "uniform_ of a range": (lambda t: t.uniform_(-0.3, 1.9), FLOATS + COMPLEX),
    "uniform_ that rounds up": (lambda t: t.uniform_(100, 100.5), FLOATS),
    "normal_": (lambda t: t.normal_(), FLOATS + COMPLEX),
    "normal_ moved": (lambda t: t.normal_(-0.4, 2.3), FLOATS + COMPLEX),
    "log_normal_": (lambda t: t.log_normal_(), FLOATS),
    "cauchy_": (lambda t: t.cauchy_(0.2, 1.3), FLOATS),
    "exponential_": (lambda t: t.exponential_(0.7), FLOATS),
    "geometric_": (lambda t: t.geometric_(0.2), FLOATS + INTEGERS),
    "bernoulli_": (lambda t: t.bernoulli_(0.37), FLOATS + INTEGERS + ("bool",)),
    "random_": (lambda t: t.random_(), FLOATS + INTEGERS + ("bool",)),
    "random_ small": (lambda t: t.random_(100), FLOATS + INTEGERS),
    "random_ negative": (lambda t: t.random_(-7, 120), FLOATS + INTEGERS[1:]),
    "random_ narrow": (lambda t: t.random_(5, 2**28 - 1), ("float32", "float64", "int32", "int64")),
    "random_ wide": (lambda t: t.random_(5, 2**28 + 5), ("float32", "float64", "bfloat16", "int32", "int64")),
    "random_ wider": (lambda t: t.random_(-(2**60), 2**60 + 7), ("float32", "float64", "bfloat16", "int64")),
    "random_ rounded": (lambda t: t.random_(0, 2**12), FLOATS),
    "random_ upwards": (lambda t: t.random_(-5, None), FLOATS + INTEGERS[1:]),
    "random_ of 64 bits": (lambda t: t.random_(-(2**63), None), ("float32", "float64", "bfloat16", "int64")),
}  # fmt: skip


def same(ours, theirs):
    assert str(ours.dtype) == str(theirs.dtype)
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert ours.stride() == theirs.stride() or theirs.numel() < 2
    a, b = ours.detach().reshape(-1).tolist(), theirs.detach().reshape(-1).tolist()
    assert a == b or all(x == y or (x != x and y != y) for x, y in zip(a, b)), f"{ours}\ntorch: {theirs}"


def same_state():
    assert rushlight.get_rng_state().tolist() == torch.get_rng_state().tolist()


def seeded(seed, call):
    """Calls call(lib) in both libraries after the same seed, and compares results and states."""
    theirs, ours = (lib.manual_seed(seed) and call(lib) for lib in (torch, rushlight))
    same(ours, theirs)
    same_state()


@pytest.mark.filterwarnings("ignore:.*out of bounds")
@pytest.mark.parametrize(
    "name, dtype", [(name, dtype) for name, (_, dtypes) in SAMPLERS.items() for dtype in dtypes]
)
def test_samplers(name, dtype):
    sampler = SAMPLERS[name][0]
    for seed, size in enumerate(SIZES):
        seeded(seed, lambda lib, size=size: sampler(lib.zeros(size, dtype=getattr(lib, dtype))))


FACTORIES = {
    "rand": lambda lib: lib.rand(3, 4),
    "rand of a size": lambda lib: lib.rand(size=(20,), dtype=lib.float64),
    "rand of nothing": lambda lib: lib.rand(()),
    "rand complex": lambda lib: lib.rand(9, dtype=lib.complex64),
    "randn": lambda lib: lib.randn(2, 3),
    "randn in blocks": lambda lib: lib.randn(7, 7),
    "randn double": lambda lib: lib.randn([33], dtype=lib.float64),
    "randn half": lambda lib: lib.randn((33,), dtype=lib.float16),
    "randn complex": lambda lib: lib.randn(20, dtype=lib.complex128),
    "randn into": lambda lib: lib.randn(20, out=lib.empty(3, dtype=lib.float64)),
    "randn into columns": lambda lib: lib.randn(4, 5, out=lib.empty(5, 4).t()),
    "randint": lambda lib: lib.randint(10, (5,)),
    "randint from": lambda lib: lib.randint(-3, 10, (5, 2)),
    "randint named": lambda lib: lib.randint(low=3, high=10, size=(5,), dtype=lib.int32),
    "randint half named": lambda lib: lib.randint(3, 10, size=(5,), dtype=lib.float16),
    "randint bool": lambda lib: lib.randint(2, (5,), dtype=lib.bool),
    "randint into": lambda lib: lib.randint(2**40, (5,), out=lib.empty(5, dtype=lib.float64)),
    "randperm": lambda lib: lib.randperm(100),
    "randperm float": lambda lib: lib.randperm(100, dtype=lib.float32),
    "randperm byte": lambda lib: lib.randperm(256, dtype=lib.uint8),
    "randperm into": lambda lib: lib.randperm(6, out=lib.zeros(12).as_strided((6,), (2,))),
    "rand_like": lambda lib: lib.rand_like(lib.zeros(4, 5).t()),
    "randn_like": lambda lib: lib.randn_like(lib.zeros(4, 5), dtype=lib.float64),
    "randint_like": lambda lib: lib.randint_like(lib.zeros(20), 5),
    "randint_like from": lambda lib: lib.randint_like(lib.zeros(20), 2, 5, dtype=lib.int64),
    "randint_like named": lambda lib: lib.randint_like(lib.zeros(20), low=2, high=5),
    "normal": lambda lib: lib.normal(1.0, 2.0, (20,)),
    "normal of means": lambda lib: lib.normal(lib.linspace(0, 3, 20), 2.0),
    "normal of deviations": lambda lib: lib.normal(1.5, lib.linspace(0, 3, 20).double()),
    "normal of both": lambda lib: lib.normal(lib.arange(5.0).view(5, 1), lib.arange(4.0).double()),
    "normal of half": lambda lib: lib.normal(lib.linspace(0, 3, 20).half(), lib.linspace(0, 3, 20).half()),
    "normal complex": lambda lib: lib.normal(lib.ones(20, dtype=lib.complex64), lib.linspace(0, 3, 20)),
    "normal into": lambda lib: lib.normal(lib.ones(20), lib.arange(20.0), out=lib.empty(20).double()),
    "bernoulli": lambda lib: lib.bernoulli(lib.linspace(0, 1, 50)),
    "bernoulli double": lambda lib: lib.bernoulli(lib.linspace(0, 1, 50, dtype=lib.float64)),
    "bernoulli half": lambda lib: lib.bernoulli(lib.linspace(0, 1, 50).half()),
    "bernoulli of columns": lambda lib: lib.bernoulli(lib.linspace(0, 1, 50).view(5, 10).t()),
    "bernoulli of a number": lambda lib: lib.bernoulli(lib.zeros(20, dtype=lib.int32), 0.3),
    "bernoulli into": lambda lib: lib.bernoulli(lib.linspace(0, 1, 50), out=lib.empty(50, dtype=lib.int64)),
    "bernoulli_ of a tensor": lambda lib: lib.zeros(4, 5).t().bernoulli_(lib.linspace(0, 1, 4)),
    "bernoulli_ of itself": lambda lib: lib.linspace(0, 1, 20).copy_(_bernoulli_of_itself(lib)),
    "poisson": lambda lib: lib.poisson(lib.tensor([0.0, 0.5, 3.0, 9.9, 10.0, 50.0, 1e4, 1e9, float("inf")])),
    "poisson of columns": lambda lib: lib.poisson(lib.linspace(0, 40, 20, dtype=lib.float64).view(4, 5).t()),
    "binomial": lambda lib: lib.binomial(lib.arange(50.0), lib.tensor([-0.1, 0.1, 0.7, 0.5, 1.1] * 10)),
    "multinomial": lambda lib: lib.multinomial(lib.linspace(0, 1, 30), 1),
    "multinomial distinct": lambda lib: lib.multinomial(lib.linspace(0, 1, 60).view(3, 20), 7),
    "multinomial of columns": lambda lib: lib.multinomial(lib.linspace(0, 1, 60).view(20, 3).t(), 7),
    "multinomial with ties": lambda lib: lib.multinomial(lib.tensor([0.0, 1.0, 0.0, 0.0, 3.0, 0.0]), 6),
    "multinomial replaced": lambda lib: lib.multinomial(lib.linspace(0, 1, 60).view(3, 20), 100, True),
    "multinomial of half": lambda lib: lib.multinomial(lib.linspace(0, 1, 30).half(), 100, replacement=True),
    "multinomial into": lambda lib: lib.multinomial(lib.ones(5), 3, out=lib.empty(0, dtype=lib.int64)),
    "a generator": lambda lib: lib.randn(40, generator=lib.Generator().manual_seed(2**40 + 3)),
    "an unseeded generator": lambda lib: lib.rand(5, generator=lib.Generator()),
}  # fmt: skip


def _bernoulli_of_itself(lib):
    x = lib.linspace(0, 1, 20)
    return x.bernoulli_(x)


@pytest.mark.parametrize("name", FACTORIES)
def test_factories(name):
    for seed in (0, 1, -5, 2**63 + 1):
        seeded(seed, FACTORIES[name])


def test_carries_over():
    """Long sequences of mixed calls, the second normal of a pair kept from one call to the next."""
    for seed in range(30):
        order = random.Random(seed)
        torch.manual_seed(seed)
        rushlight.manual_seed(seed)
        for _ in range(40):
            name = order.choice([n for n in SAMPLERS if "random_" not in n])
            sampler, dtypes = SAMPLERS[name]
            dtype, size = order.choice(dtypes), order.choice(SIZES[:-1])
            same(*(sampler(lib.zeros(size, dtype=getattr(lib, dtype))) for lib in (rushlight, torch)))
            same_state()


def filled(lib, sampler, sizes, steps, dims):
    """Memory of which every steps[d]-th element along each dimension was filled, through a permuted view."""
    whole = lib.zeros(*(n * k for n, k in zip(sizes, steps)))
    strides = [n * k for n, k in zip(whole.stride(), steps)]
    sampler(whole.as_strided(sizes, strides).permute(dims))
    return whole


def test_order_of_memory():
    """A tensor that is not contiguous is filled in the order of its memory."""
    for seed in range(300):
        order = random.Random(seed)
        sizes = [order.choice([1, 2, 3, 5]) for _ in range(order.randint(1, 4))]
        steps = [order.choice([1, 1, 2]) for _ in sizes]
        dims = list(range(len(sizes)))
        order.shuffle(dims)
        sampler = SAMPLERS[order.choice(["normal_", "uniform_", "exponential_", "bernoulli_"])][0]
        seeded(seed, partial(filled, sampler=sampler, sizes=sizes, steps=steps, dims=dims))


def test_states_are_exchanged():
    torch.manual_seed(5)
    torch.randn(3)
    state = rushlight.tensor(torch.get_rng_state().tolist(), dtype=rushlight.uint8)
    rushlight.set_rng_state(state)
    for call in (lambda lib: lib.randn(5), lambda lib: lib.rand(700), lambda lib: lib.randn(40)):
        same(call(rushlight), call(torch))
    same_state()


REFUSED = [
    lambda lib: lib.zeros(3).uniform_(1, 0),
    lambda lib: lib.zeros(3, dtype=lib.int32).uniform_(),
    lambda lib: lib.zeros(3).uniform_(-3e38, 3e38),
    lambda lib: lib.zeros(3).uniform_(-1e39, 1),
    lambda lib: lib.zeros(3).uniform_(float("nan"), 1),
    lambda lib: lib.zeros(3, dtype=lib.float16).uniform_(0, 1e5),
    lambda lib: lib.zeros(3).uniform_(from_=0, to=1),
    lambda lib: lib.zeros(3).uniform_(0, 1, 2),
    lambda lib: lib.zeros(3).uniform_(0, "a"),
    lambda lib: lib.zeros(3).normal_(0, -1),
    lambda lib: lib.zeros(3).normal_("a"),
    lambda lib: lib.zeros(3, dtype=lib.int64).normal_(),
    lambda lib: lib.zeros(3).exponential_(0),
    lambda lib: lib.zeros(3, dtype=lib.int64).exponential_(),
    lambda lib: lib.zeros(3).geometric_(0),
    lambda lib: lib.zeros(3).geometric_(1),
    lambda lib: lib.zeros(3, dtype=lib.bool).geometric_(0.5),
    lambda lib: lib.zeros(3).cauchy_(0, 0),
    lambda lib: lib.zeros(3, dtype=lib.int64).cauchy_(),
    lambda lib: lib.zeros(3).log_normal_(1, -1),
    lambda lib: lib.zeros(3, dtype=lib.complex64).log_normal_(),
    lambda lib: lib.zeros(3).bernoulli_(1.5),
    lambda lib: lib.zeros(3).bernoulli_(float("nan")),
    lambda lib: lib.zeros(3, dtype=lib.complex64).bernoulli_(0.5),
    lambda lib: lib.zeros(3).bernoulli_(lib.tensor([0.1, 0.2, 1.5])),
    lambda lib: lib.zeros(3).bernoulli_(lib.tensor([0.1, 0.2])),
    lambda lib: lib.zeros(3).bernoulli_(lib.ones(2, 3)),
    lambda lib: lib.zeros(3).bernoulli_(lib.tensor([0, 1, 1])),
    lambda lib: lib.bernoulli(lib.tensor([0, 1])),
    lambda lib: lib.bernoulli(lib.tensor([0.2, float("nan")])),
    lambda lib: lib.bernoulli(3),
    lambda lib: lib.zeros(3).random_(5, 5),
    lambda lib: lib.zeros(3).random_(0),
    lambda lib: lib.zeros(3).random_(2**63),
    lambda lib: lib.zeros(3, dtype=lib.uint8).random_(0, 257),
    lambda lib: lib.zeros(3, dtype=lib.uint8).random_(-1, 7),
    lambda lib: lib.zeros(3, dtype=lib.float16).random_(0, 70000),
    lambda lib: lib.zeros(3, dtype=lib.int8).random_(200, None),
    lambda lib: lib.zeros(3, dtype=lib.int8).random_(-(2**63), None),
    lambda lib: lib.zeros(3).random_(2**25, None),
    lambda lib: lib.zeros(3, dtype=lib.complex64).random_(),
    lambda lib: lib.zeros(3, dtype=lib.complex64).random_(5),
    lambda lib: lib.randint(5, 5, (3,)),
    lambda lib: lib.randint(3, 5, (3,), dtype=lib.bool),
    lambda lib: lib.randint(0, 300, (3,), dtype=lib.uint8),
    lambda lib: lib.randint(5, (2,), requires_grad=True),
    lambda lib: lib.randint(0, 5, (2,), out=lib.empty(2), dtype=lib.int64),
    lambda lib: lib.randperm(-1),
    lambda lib: lib.randperm(5.0),
    lambda lib: lib.randperm(True),
    lambda lib: lib.randperm(5, dtype=lib.bool),
    lambda lib: lib.randperm(257, dtype=lib.uint8),
    lambda lib: lib.randperm(3000, dtype=lib.float16),
    lambda lib: lib.rand(3, dtype=lib.int64),
    lambda lib: lib.randn(3, dtype=lib.bool),
    lambda lib: lib.rand(-1),
    lambda lib: lib.rand(2, 3, out=lib.empty(2, 3, dtype=lib.float64), dtype=lib.float32),
    lambda lib: lib.rand_like(lib.ones(2, dtype=lib.int64)),
    lambda lib: lib.rand_like(3),
    lambda lib: lib.normal(lib.zeros(3), lib.ones(2)),
    lambda lib: lib.normal(lib.zeros(3), -lib.ones(3)),
    lambda lib: lib.normal(lib.zeros(3), -2.0),
    lambda lib: lib.normal(lib.zeros(3), lib.ones(3, dtype=lib.complex64)),
    lambda lib: lib.normal(lib.zeros(3, dtype=lib.int64), 1.0),
    lambda lib: lib.normal(std=lib.ones(3)),
    lambda lib: lib.normal(lib.zeros(3, requires_grad=True), 1.0, out=lib.empty(3)),
    lambda lib: lib.poisson(lib.tensor([-1.0])),
    lambda lib: lib.poisson(lib.tensor([1])),
    lambda lib: lib.poisson(3.0),
    lambda lib: lib.binomial(lib.ones(3), lib.ones(2)),
    lambda lib: lib.binomial(lib.ones(3), lib.ones(3).double()),
    lambda lib: lib.binomial(lib.ones(3), lib.tensor(1)),
    lambda lib: lib.binomial(lib.ones(3).half(), lib.ones(3).half()),
    lambda lib: lib.binomial(lib.ones(3, requires_grad=True), lib.ones(3)).backward(lib.ones(3)),
    lambda lib: lib.bernoulli(lib.ones(3, requires_grad=True), 0.5).backward(lib.ones(3)),
    lambda lib: lib.multinomial(lib.ones(2), 0),
    lambda lib: lib.multinomial(lib.ones(2), 3),
    lambda lib: lib.multinomial(lib.ones(2), 1.0),
    lambda lib: lib.multinomial(lib.tensor([1, 2]), 1),
    lambda lib: lib.multinomial(lib.tensor(1.0), 1),
    lambda lib: lib.multinomial(lib.zeros(2), 1),
    lambda lib: lib.multinomial(lib.zeros(2), 2, True),
    lambda lib: lib.multinomial(lib.tensor([-1.0, 1.0]), 1),
    lambda lib: lib.multinomial(lib.tensor([-1.0, 1.0]), 2, True),
    lambda lib: lib.multinomial(lib.tensor([float("inf"), 1.0]), 2, True),
    lambda lib: lib.multinomial(lib.ones(3, 0), 2, True),
    lambda lib: lib.multinomial(lib.ones(2), 1, out=lib.empty(1)),
    lambda lib: lib.zeros(3, requires_grad=True).normal_(),
    lambda lib: lib.zeros(1).expand(3).uniform_(),
    lambda lib: lib.Generator().set_state(lib.zeros(5, dtype=lib.uint8)),
    lambda lib: lib.Generator().set_state(lib.zeros(5056, dtype=lib.uint8)),
    lambda lib: lib.Generator().set_state(lib.zeros(5056)),
    lambda lib: lib.Generator().set_state(lib.zeros(2 * 5056, dtype=lib.uint8).as_strided((5056,), (2,))),
    lambda lib: lib.Generator().set_state(5),
    lambda lib: lib.Generator().manual_seed(2**64),
    lambda lib: lib.Generator().manual_seed(-(2**63) - 1),
    lambda lib: lib.Generator().manual_seed(1.5),
    lambda lib: lib.Generator().manual_seed(True),
    lambda lib: lib.Generator().get_offset(),
    lambda lib: lib.Generator().graphsafe_get_state(),
    lambda lib: lib.Generator("meta"),
    lambda lib: lib.manual_seed("a"),
]  # fmt: skip


def first_sentence(error):
    return re.split(r"\.(?:\s|$)| \(Could|, but expected one of|\n", str(error))[0]


@pytest.mark.parametrize("call", REFUSED, ids=range(len(REFUSED)))
def test_refusals(call):
    with pytest.raises(Exception) as theirs:
        call(torch)
    with pytest.raises(Exception) as ours:
        call(rushlight)
    assert ours.type is theirs.type
    assert first_sentence(ours.value) == first_sentence(theirs.value)


IN_PLACE = [
    ("normal_", ()), ("uniform_", ()), ("random_", ()), ("random_", (5,)), ("random_", (1, 5)),
    ("bernoulli_", (0.5,)), ("exponential_", ()), ("geometric_", (0.5,)), ("cauchy_", ()),
    ("log_normal_", ()),
]  # fmt: skip


@pytest.mark.parametrize("name, args", IN_PLACE)
def test_gradient_is_zero(name, args):
    seen = []
    for lib in (torch, rushlight):
        x = lib.ones(3, requires_grad=True)
        y = x * 2
        assert getattr(y, name)(*args) is y
        seen.append((type(y.grad_fn).__name__, y._version))
        y.backward(lib.ones(y.shape))
        assert x.grad.tolist() == [0, 0, 0]
    assert seen[0] == seen[1]


OUT_OF_PLACE = {
    "bernoulli": lambda lib, x: lib.bernoulli(x * 0.5),
    "bernoulli_ of a tensor": lambda lib, x: lib.zeros(2, 3).bernoulli_(x * 0.5),
    "poisson": lambda lib, x: lib.poisson(x),
    "normal of means": lambda lib, x: lib.normal(x, 1.0),
    "normal of deviations": lambda lib, x: lib.normal(1.0, x),
    "normal of both": lambda lib, x: lib.normal(x, x),
}


@pytest.mark.parametrize("name", OUT_OF_PLACE)
def test_gradient_of_parameters_is_zero(name):
    seen = []
    for lib in (torch, rushlight):
        x = lib.ones(3, requires_grad=True)
        y = OUT_OF_PLACE[name](lib, x)
        seen.append((type(y.grad_fn).__name__, y.requires_grad))
        y.backward(lib.ones(y.shape))
        assert x.grad.tolist() == [0, 0, 0]
    assert seen[0] == seen[1]


def test_meta():
    for lib in (torch, rushlight):
        before = lib.get_rng_state().tolist()
        for t in (
            lib.rand(2, device="meta"),
            lib.zeros(2, device="meta").normal_(),
            lib.zeros(2, device="meta").random_(5),
            lib.bernoulli(lib.ones(2, device="meta")),
            lib.normal(lib.ones(2, device="meta"), 1.0),
            lib.poisson(lib.ones(2, device="meta")),
        ):
            assert str(t.device) == "meta" and tuple(t.shape) == (2,)
        assert tuple(lib.multinomial(lib.ones(3, 4, device="meta"), 2).shape) == (3, 2)
        assert lib.get_rng_state().tolist() == before


def test_warns_of_rounding():
    for lib in (torch, rushlight):
        with pytest.warns(
            UserWarning, match=r"to - 1 is out of bounds \[-\(2\^11\), 2\^11\]. Due to precision"
        ):
            lib.zeros(3, dtype=lib.float16).random_(0, 5000)
