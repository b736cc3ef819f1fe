"""Random numbers: what torch 2.13 draws after manual_seed(0), the generator and its state, gradients.

The numbers were recorded from torch. tests/torch/test_random.py compares far more of them with torch itself.
"""

import copy
import pickle
import threading
import zlib

import pytest

import rushlight as torch

DRAWN = {
    "rand(4)": [0.49625658988952637, 0.7682217955589294, 0.08847743272781372, 0.13203048706054688],
    "rand(3, dtype=float64)": [0.9700530018065531, 0.707819864399788, 0.45938294312745087],
    "rand(4, dtype=float16)": [0.496337890625, 0.76806640625, 0.0885009765625, 0.132080078125],
    "rand(2, dtype=complex64)": [
        0.49625658988952637 + 0.7682217955589294j,
        0.08847743272781372 + 0.13203048706054688j,
    ],
    "randn(17)": [
        -1.1258398294448853, -1.6959311962127686, 0.5666506290435791, 0.7935083508491516, 0.5988394618034363,
        -1.5550950765609741, -0.3413603901863098, 1.85300612449646, 0.46809640526771545, -0.5854975581169128,
        -0.1733967512845993, 0.18347793817520142, 1.3893661499023438, 1.586334228515625, 0.946298360824585,
        -0.843676745891571, 0.9318265914916992,
    ],
    "randint(10, (6,))": [4, 9, 3, 0, 3, 9],
    "randint(-2**40, 2**40, (3,))": [-358231004625, -593374360384, 291447657211],
    "randperm(8)": [4, 0, 7, 3, 2, 5, 1, 6],
    "bernoulli(tensor([0.1, 0.5, 0.9, 0.5]))": [0.0, 0.0, 1.0, 1.0],
    "poisson(tensor([0.5, 5.0, 50.0]))": [2.0, 6.0, 49.0],
    "binomial(tensor([10.0, 100.0]), tensor([0.2, 0.7]))": [5.0, 75.0],
    "multinomial(tensor([1.0, 2.0, 3.0, 4.0]), 3)": [2, 1, 3],
    "multinomial(tensor([1.0, 2.0, 3.0, 4.0]), 6, True)": [3, 3, 2, 3, 3, 3],
    "zeros(4).geometric_(0.2)": [1.0, 2.0, 4.0, 1.0],
    "zeros(4).random_()": [8325664.0, 12888472.0, 1484222.0, 2214888.0],
    "zeros(3, dtype=int64).random_()": [900450186894289455, 3969543146641149120, 1895649597198586619],
    "zeros(3).uniform_(-1, 3)": [0.9850263595581055, 2.0728871822357178, -0.6460902690887451],
}  # fmt: skip

# These go through the C library's logarithm and sine, which differ in the last bit between systems.
DRAWN_NEARLY = {
    "randn(4)": [1.5409960746765137, -0.293428897857666, -2.1787893772125244, 0.5684312582015991],
    "randn(3, dtype=float64)": [1.5409961082440433, -0.2934289057609464, -2.1787893820745574],
    "randn(4, dtype=bfloat16)": [1.5390625, -0.29296875, -2.171875, 0.5703125],
    "normal(1.0, 2.0, (3,))": [4.081992149353027, 0.4131421744823456, -3.357578754425049],
    "normal(tensor([1.0, 2.0]), tensor([0.5, 4.0]))": [1.7704980373382568, 0.8262844085693359],
    "zeros(4).exponential_()": [3.508326292037964, 1.2303847074508667, 0.615044116973877, 2.535118579864502],
    "zeros(4).cauchy_()": [10.597729682922363, 0.7647672891616821, -0.12829934060573578, 3.9330732822418213],
    "zeros(4).log_normal_()": [59.2634162902832, 1.5115599632263184, 0.03481946140527725, 8.47281265258789],
}

# Longer draws, as the checksum of their list.
CHECKSUMS = {
    "rand(100_003)": 4077754283,
    "rand(5_003, dtype=float64)": 1944619422,
    "rand(5_003, dtype=bfloat16)": 1962235928,
    "randn(100_003)": 4087110433,
    "randn(5_003, dtype=float16)": 619634082,
    "randint(1000, (5_003,))": 4193720294,
    "randint(2**28, (5_003,))": 3935667531,
    "randperm(5_003)": 4017587825,
    "zeros(5_003).bernoulli_(0.3)": 727923094,
    "multinomial(rand(30, 50), 40)": 1996839307,
    "multinomial(rand(30, 50), 40, True)": 2919657108,
}


def drawn(expression):
    torch.manual_seed(0)
    return eval(expression, vars(torch)).tolist()


@pytest.mark.parametrize("expression", DRAWN)
def test_draws_what_torch_draws(expression):
    assert drawn(expression) == DRAWN[expression]


@pytest.mark.parametrize("expression", DRAWN_NEARLY)
def test_draws_nearly_what_torch_draws(expression):
    assert drawn(expression) == pytest.approx(DRAWN_NEARLY[expression], rel=1e-6)


@pytest.mark.parametrize("expression", CHECKSUMS)
def test_draws_as_much_as_torch_draws(expression):
    assert zlib.crc32(repr(drawn(expression)).encode()) == CHECKSUMS[expression]


def test_state():
    torch.manual_seed(0)
    torch.randn(3)
    torch.rand(700)
    torch.randn(1)
    state = torch.get_rng_state()
    assert state.dtype == torch.uint8 and state.shape == (5056,)
    a = torch.randn(3), torch.rand(5)
    torch.set_rng_state(state)
    b = torch.randn(3), torch.rand(5)
    assert a[0].tolist() == b[0].tolist() and a[1].tolist() == b[1].tolist()


def test_a_bad_state_changes_nothing():
    g = torch.Generator().manual_seed(3)
    before = g.get_state().tolist()
    # 8: how many words are left, 16: which is next. A position past the words would be read past their end.
    for place, value in ((8, 0), (12, 0), (16, 5)):
        broken = list(before)
        broken[place] = value
        with pytest.raises(RuntimeError, match="Invalid mt19937 state"):
            g.set_state(torch.tensor(broken, dtype=torch.uint8))
        assert g.get_state().tolist() == before


def test_generator():
    g = torch.Generator()
    assert g.initial_seed() == 67280421310721
    assert str(g.device) == "cpu"
    assert g.manual_seed(-1) is g and g.initial_seed() == 2**64 - 1
    assert g.seed() == g.initial_seed()
    for twin in (g.clone_state(), copy.copy(g), copy.deepcopy(g), pickle.loads(pickle.dumps(g))):
        assert twin is not g
        assert torch.randn(3, generator=twin).tolist() == torch.randn(3, generator=g.clone_state()).tolist()
    before = torch.get_rng_state().tolist()
    torch.rand(5, generator=g)
    assert torch.get_rng_state().tolist() == before, "the default generator is left alone"
    with pytest.raises(TypeError, match=r"must be torch\.Generator, not int"):
        torch.zeros(3).normal_(generator=3)


def test_default_generator():
    assert torch.manual_seed(7) is torch.default_generator is torch.random.default_generator
    assert torch.initial_seed() == 7
    torch.manual_seed(7.9)  # torch takes int() of it
    assert torch.initial_seed() == 7
    assert torch.seed() == torch.initial_seed() != 7


def test_fork_rng():
    torch.manual_seed(1)
    with torch.random.fork_rng():
        a = torch.rand(3)
    assert torch.rand(3).tolist() == a.tolist()
    torch.manual_seed(1)
    with torch.random.fork_rng(enabled=False):
        torch.rand(3)
    assert torch.rand(3).tolist() != a.tolist()


def test_factories_are_created_not_written():
    for t in (
        torch.rand(3),
        torch.randn(20),
        torch.randint(3, (2,)),
        torch.normal(torch.ones(2), torch.ones(2)),
    ):
        assert t._version == 0 and t.is_leaf and not t.requires_grad
    assert torch.rand(3, requires_grad=True).requires_grad


def test_gradient_of_a_sample_is_zero():
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    y.normal_()
    assert y.grad_fn.name() == "NormalBackward0"
    y.backward(torch.ones(3))
    assert x.grad.tolist() == [0, 0, 0]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x.normal_()
    with torch.no_grad():
        x.uniform_(-1, 1)


def test_nothing_is_written_when_refused():
    torch.manual_seed(0)
    state, t = torch.get_rng_state().tolist(), torch.full((3,), 7.0)
    for refused in (
        lambda: t.normal_(0, -1),
        lambda: t.uniform_(2, 1),
        lambda: t.bernoulli_(torch.tensor([0.5, 0.5, 2.0])),
        lambda: t.random_(5, 5),
        lambda: torch.multinomial(torch.tensor([[1.0, 1.0], [1.0, -1.0]]), 2, True),
    ):
        with pytest.raises(RuntimeError):
            refused()
        assert t.tolist() == [7, 7, 7] and t._version == 0
        assert torch.get_rng_state().tolist() == state


def test_threads_share_a_generator():
    """Large fills run without the GIL; the generator's lock keeps each draw whole."""
    g = torch.Generator().manual_seed(0)
    n = 100_000
    expected = torch.rand(4 * n, generator=g.clone_state()).tolist()
    parts = [torch.empty(n) for _ in range(4)]
    threads = [threading.Thread(target=lambda t=t: t.uniform_(generator=g)) for t in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    starts = sorted(next(k for k in range(0, 4 * n, n) if expected[k : k + n] == t.tolist()) for t in parts)
    assert starts == [0, n, 2 * n, 3 * n]


@pytest.mark.parametrize(
    ("draw", "dtype"),
    [(lambda o: torch.randn(3, out=o), torch.bool), (lambda o: torch.rand(3, out=o), torch.int64),
     (lambda o: torch.normal(0.0, 1.0, (3,), out=o), torch.bool),
     (lambda o: torch.randint(300, (3,), out=o), torch.complex64),
     (lambda o: torch.randint(300, (3,), out=o), torch.uint8)],
)  # fmt: skip
def test_a_refused_draw_leaves_its_output(draw, dtype):
    out = torch.ones(2, 2, dtype=dtype).T
    before = out.shape, out.stride(), out.tolist(), out._version
    with pytest.raises((RuntimeError, NotImplementedError)):
        draw(out)
    assert (out.shape, out.stride(), out.tolist(), out._version) == before
