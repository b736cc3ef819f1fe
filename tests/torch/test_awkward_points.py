"""Derivatives at kinks, poles and NaN, and numbers beside halves: as in torch, where it is right."""

import math

import numpy as np
import pytest
import torch

import rushlight

pytestmark = pytest.mark.filterwarnings("ignore")
INF, NAN = math.inf, math.nan
F = lambda name: lambda lib: getattr(lib.nn.functional, name)
TOP = lambda name: lambda lib: getattr(lib, name)


def derivatives(lib, function, points, second):
    leaves = [lib.tensor([p], dtype=lib.float64, requires_grad=True) for p in points]
    result = function(lib)(*leaves)
    found = lib.autograd.grad(result.sum(), leaves, create_graph=second, allow_unused=True)
    if second:
        total = sum(part.sum() for part in found if part is not None and part.requires_grad)
        if not isinstance(total, lib.Tensor):
            return []
        found = lib.autograd.grad(total, leaves, allow_unused=True)
    return [0.0 if part is None else part.item() for part in found]


def tangent(lib, function, points):
    forward = lib.autograd.forward_ad
    with forward.dual_level():
        one = lib.ones(1, dtype=lib.float64)
        duals = [forward.make_dual(lib.tensor([p], dtype=lib.float64), one) for p in points]
        part = forward.unpack_dual(function(lib)(*duals)).tangent
        return 0.0 if part is None else part.item()


PAIRS = [(NAN, 1.0), (1.0, NAN), (NAN, NAN), (1.0, 1.0), (0.0, -0.0), (INF, 1.0)]
BOUNDS = [
    (NAN, 0.0, 1.0),
    (0.5, NAN, 1.0),
    (0.5, 0.0, NAN),
    (0.0, 0.0, 1.0),
    (1.0, 0.0, 1.0),
    (0.5, 1.0, 0.0),
]
FIRST = {
    "hardswish": (F("hardswish"), [(3.0,), (-3.0,), (INF,), (0.0,)]),
    "hardsigmoid": (F("hardsigmoid"), [(3.0,), (-3.0,), (NAN,)]),
    "relu6": (F("relu6"), [(0.0,), (6.0,)]),
    "elu": (F("elu"), [(0.0,), (-INF,), (INF,)]),
    "celu": (F("celu"), [(0.0,), (-INF,)]),
    "selu": (F("selu"), [(0.0,)]),
    "leaky_relu": (F("leaky_relu"), [(0.0,), (NAN,)]),
    "softshrink": (F("softshrink"), [(0.5,), (-0.5,)]),
    "hardshrink": (F("hardshrink"), [(0.5,), (-0.5,)]),
    "prelu": (F("prelu"), [(0.0, 0.3), (-0.0, 0.3), (NAN, 0.3)]),
    "relu": (TOP("relu"), [(0.0,), (NAN,), (INF,)]),
    "abs": (TOP("abs"), [(0.0,), (-0.0,), (INF,)]),
    "sqrt": (TOP("sqrt"), [(0.0,), (-1.0,), (INF,)]),
    "logit": (TOP("logit"), [(0.0,), (1.0,), (-0.5,), (1.5,), (NAN,), (0.25,)]),
    "logit_eps": (lambda lib: lambda x: lib.logit(x, 0.1), [(0.05,), (0.1,), (0.9,), (0.95,), (NAN,)]),
    "logit_crossed": (lambda lib: lambda x: lib.logit(x, 0.7), [(0.05,), (0.5,), (0.8,), (NAN,)]),
    "sinc": (TOP("sinc"), [(0.0,), (1e-320,), (-1e-300,), (0.05,), (0.2,), (NAN,)]),
    "i1": (lambda lib: lib.special.i1, [(0.0,), (1e-320,), (-1e-310,), (1e-5,)]),
    "i1e": (lambda lib: lib.special.i1e, [(0.0,), (1e-320,), (-1e-310,), (1e-5,)]),
    "maximum": (TOP("maximum"), PAIRS),
    "minimum": (TOP("minimum"), PAIRS),
    "fmax": (TOP("fmax"), PAIRS),
    "fmin": (TOP("fmin"), PAIRS),
    "clamp": (TOP("clamp"), BOUNDS),
    "clamp_min": (TOP("clamp_min"), [(a, b) for a, b, _ in BOUNDS]),
    "clamp_max": (TOP("clamp_max"), [(a, c) for a, _, c in BOUNDS]),
    "copysign": (TOP("copysign"), [(NAN, -1.0), (0.0, -1.0), (-0.0, 1.0), (2.0, -0.0)]),
    "logaddexp": (TOP("logaddexp"), [(INF, 1.0), (1.0, INF), (-INF, 1.0), (INF, INF), (1e3, 0.0)]),
    "logaddexp2": (TOP("logaddexp2"), [(INF, 1.0), (1.0, INF), (-INF, 1.0), (INF, INF), (2e3, 0.0)]),
    "xlogy": (TOP("xlogy"), [(0.0, 0.0), (0.0, 2.0), (0.0, -1.0), (0.0, NAN), (1.0, 0.0)]),
    "xlog1py": (
        lambda lib: lib.special.xlog1py,
        [(0.0, 0.0), (0.0, -1e-5), (0.0, -1.0), (0.0, -2.0), (0.0, NAN), (-0.0, 0.5), (1.0, -1.0)],
    ),
    "kl_div": (
        lambda lib: lambda x, target: lib.nn.functional.kl_div(x, target, reduction="none"),
        [(3.0, 0.0), (3.0, 0.5), (-INF, 0.0), (1.0, 1e-300)],
    ),
    "pow": (TOP("pow"), [(0.0, 0.0), (0.0, 1.0), (0.0, 2.0), (0.0, 0.5), (0.0, -1.0), (-1.0, 2.0)]),
    "atan2": (TOP("atan2"), [(0.0, 0.0), (0.0, -1.0), (-0.0, -1.0), (INF, 1.0)]),
    "hypot": (TOP("hypot"), [(0.0, 0.0), (3.0, 4.0)]),
    "prod": (
        lambda lib: lambda x, y, z: lib.cat([x, y, z]).prod(),
        [(0.0, 2.0, 3.0), (0.0, 0.0, 3.0), (0.0, 0.0, 0.0)],
    ),
    "cumprod": (
        lambda lib: lambda x, y, z: lib.cat([x, y, z]).cumprod(0)[2],
        [(0.0, 2.0, 3.0), (2.0, 0.0, 0.0)],
    ),
    "logsumexp": (
        lambda lib: lambda x, y: lib.cat([x, y]).logsumexp(0),
        [(-INF, -INF), (INF, 1.0), (-INF, 1.0)],
    ),
    "norm": (lambda lib: lambda x, y: lib.cat([x, y]).norm(), [(0.0, 0.0), (0.0, 1.0)]),
    **{
        f"norm of order {p}": (
            lambda lib, p=p: lambda x, y: lib.linalg.vector_norm(lib.cat([x, y]), p),
            [(0.0, 0.0), (0.0, 1.0), (1.0, 1.0)],
        )
        for p in (0.5, 1, 1.5, 2.5, 3, 3.5, INF, -1, -INF)
    },
    "std": (lambda lib: lambda x, y: lib.cat([x, y]).std(), [(1.5, 1.5)]),
    "max": (lambda lib: lambda x, y: lib.cat([x, y]).max(), [(1.0, 1.0), (NAN, 1.0)]),
    "amax": (lambda lib: lambda x, y: lib.cat([x, y]).amax(), [(1.0, 1.0), (2.0, 1.0)]),
    "nanmean": (lambda lib: lambda x, y: lib.cat([x, y]).nanmean(), [(NAN, NAN), (NAN, 1.0)]),
    "nansum": (lambda lib: lambda x, y: lib.cat([x, y]).nansum().sqrt(), [(NAN, NAN), (NAN, 0.0)]),
}  # fmt: skip


def alike(mine, theirs):
    return (
        mine == theirs
        or (mine != mine and theirs != theirs)
        or mine == pytest.approx(theirs, rel=1e-9, abs=1e-12)
    )


@pytest.mark.parametrize("name", FIRST)
def test_first_derivatives(name):
    function, points = FIRST[name]
    for point in points:
        mine, theirs = (derivatives(lib, function, point, False) for lib in (rushlight, torch))
        assert all(map(alike, mine, theirs)), (point, mine, theirs)
        mine, theirs = (tangent(lib, function, point) for lib in (rushlight, torch))
        if name not in ONLY_REVERSE and not any(map(math.isnan, point)):
            assert alike(mine, theirs), (point, "forward", mine, theirs)


# Where torch's forward mode is not its reverse mode: 1 instead of the weight, NaN instead of 0. Its tangents
# of NaN are not either, but there the value says enough.
ONLY_REVERSE = {"prelu", "atan2"}
# Where torch has no second derivative, or NaN for one that is 0 or finite here, or rounds by more than this.
NO_SECOND = {
    "hardsigmoid", "sinc", "logaddexp", "logaddexp2", "copysign", "i1", "i1e", "logit_eps", "pow", "norm",
    "prelu", "norm of order 2.5",
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in FIRST if name not in NO_SECOND])
def test_second_derivatives(name):
    function, points = FIRST[name]
    for point in points:
        mine, theirs = (derivatives(lib, function, point, True) for lib in (rushlight, torch))
        if mine and theirs:
            assert all(map(alike, mine, theirs)), (point, mine, theirs)


@pytest.mark.parametrize("x", [0.0, 1e-300, 1e-4, 0.09999, 0.10001, 0.7])
def test_second_derivative_of_sinc(x):
    """-pi^2/3 at 0, where torch's is NaN; beside it by differences of the first."""
    (second,) = derivatives(rushlight, TOP("sinc"), (x,), True)
    step = 1e-5
    first = [derivatives(rushlight, TOP("sinc"), (x + part,), False)[0] for part in (step, -step)]
    assert second == pytest.approx((first[0] - first[1]) / (2 * step), rel=1e-7)
    (third,) = derivatives(rushlight, lambda lib: lambda t: slope(lib, t), (x,), True)
    twice = [derivatives(rushlight, TOP("sinc"), (x + part,), True)[0] for part in (step, -step)]
    assert third == pytest.approx((twice[0] - twice[1]) / (2 * step), rel=1e-5, abs=1e-6)


def slope(lib, t):
    return lib.autograd.grad(lib.sinc(t).sum(), t, create_graph=True)[0]


# ---- numbers beside tensors of halves

NUMBERS = {
    "mul": lambda lib, x, s: x * s,
    "rmul": lambda lib, x, s: s * x,
    "mul_": lambda lib, x, s: x.clone().mul_(s),
    "mul out": lambda lib, x, s: lib.mul(x, s, out=lib.empty_like(x)),
    "mul 0-dim": lambda lib, x, s: x * lib.tensor(s),
    "0-dim mul": lambda lib, x, s: lib.tensor(s, dtype=lib.float64) * x,
    "mul broadcast": lambda lib, x, s: x.t() * s,
    "add": lambda lib, x, s: x + s,
    "rsub": lambda lib, x, s: s - x,
    "add alpha": lambda lib, x, s: lib.add(x, x.flip(0), alpha=s),
    "sub alpha": lambda lib, x, s: lib.sub(x, x.flip(0), alpha=s),
    "div": lambda lib, x, s: x / s,
    "div_": lambda lib, x, s: x.clone().div_(s),
    "rdiv": lambda lib, x, s: s / x,
    "floor_divide": lambda lib, x, s: x // s,
    "div trunc": lambda lib, x, s: lib.div(x, s, rounding_mode="trunc"),
    "rpow": lambda lib, x, s: s**x,
    "fmod": lambda lib, x, s: lib.fmod(x, s),
    "lerp": lambda lib, x, s: lib.lerp(x, x.flip(0), s),
    "addcmul": lambda lib, x, s: lib.addcmul(x, x, x.flip(0), value=s),
}


VECTORS = {"add alpha", "sub alpha"}
FUSED = {"add alpha", "sub alpha", "addcmul", "lerp"}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_beside_halves(name, dtype):
    """To the last bit: whether a number is rounded before the tensor meets it, or keeps its digits. What is
    left over of torch's vectors is rounded more often in some."""
    if name in FUSED and rushlight._C.cpu_capability == "DEFAULT":
        pytest.skip("rounds the product apart, without the instruction that does not")
    torch.manual_seed(0)
    for rows, columns in ((4, 32), (300, 256)) if name in VECTORS else ((1, 3), (5, 4), (300, 257)):
        source = torch.randn(rows, columns) * 3
        for number in (0.1, 0.9, 3):
            theirs = NUMBERS[name](torch, source.to(getattr(torch, dtype)), number)
            x = rushlight.from_numpy(source.numpy()).to(getattr(rushlight, dtype))
            mine = NUMBERS[name](rushlight, x, number)
            assert str(mine.dtype) == str(theirs.dtype)
            assert torch.equal(torch.from_numpy(mine.float().numpy()), theirs.float()), number


def test_gradient_of_a_half_by_a_number():
    for lib in (torch, rushlight):
        x = lib.tensor([1.0, 3.0], dtype=lib.bfloat16, requires_grad=True)
        (x * 0.1).sum().backward()
        assert x.grad.tolist() == [0.10009765625] * 2


ROWS = [
    [1.0, 0.0, 2.0, INF],
    [INF, 2.0, 3.0, 4.0],
    [2.0, 0.0, NAN, 3.0],
    [0.0, 0.0, INF, 1.0],
    [3.0, 4.0, 0.0, -2.0],
]
WHOLE = {
    "acosh": lambda lib, x: lib.acosh(x - 2),
    "cumprod": lambda lib, x: lib.cumprod(x, 1),
    "prod": lambda lib, x: lib.prod(x),
    "prod of a row": lambda lib, x: lib.prod(x[1:2], 1),
    "renorm": lambda lib, x: lib.renorm(x, 2, 0, 1.0),
    "renorm by columns": lambda lib, x: lib.renorm(x, 1, 1, 1.0),
    "ldexp": lambda lib, x: lib.ldexp(x, -x),
    "scatter amax": lambda lib, x: x[0].scatter_reduce(0, lib.tensor([0, 1, 0, 3]), x[2], "amax"),
    "scatter amin": lambda lib, x: x[4].scatter_reduce(
        0, lib.tensor([0, 1, 0, 3]), x[2], "amin", include_self=False
    ),
    "batch norm": lambda lib, x: lib.nn.functional.batch_norm(
        x, lib.zeros(4, dtype=x.dtype), lib.ones(4, dtype=x.dtype)
    ),
    "batch norm of planes": lambda lib, x: lib.nn.functional.batch_norm(
        x.t().reshape(2, 2, 5), lib.zeros(2, dtype=x.dtype), lib.ones(2, dtype=x.dtype)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WHOLE)
def test_infinities_and_nan_stay_where_torch_keeps_them(name):
    found = []
    for lib in (rushlight, torch):
        x = lib.tensor(ROWS, dtype=lib.float64, requires_grad=True)
        result = WHOLE[name](lib, x)
        weights = lib.arange(1.0, 1 + result.numel(), dtype=lib.float64).reshape(result.shape)
        (gradient,) = lib.autograd.grad(result, x, weights)
        found.append([result.detach().numpy(), gradient.numpy()])
    for mine, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)


def test_a_query_that_is_no_number_does_not_reach_later_keys():
    for lib in (rushlight, torch):
        query = lib.ones(1, 2, 3, 4)
        query[0, 0, 0, 0] = NAN
        key, value = (lib.ones(1, 2, 3, 4, requires_grad=True) for _ in range(2))
        result = lib.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        found = lib.autograd.grad(result[0, :, 1:].sum() + 0 * result.sum(), (key, value))
        assert all(bool(g[0, 0, 1:, 1:].isfinite().all()) and bool(g[0, 1].isfinite().all()) for g in found)


LOST = [[-INF, 1.0], [-INF, 2.0]]
ATTENTION = "scaled_dot_product_attention"
FIGURES = {
    "places that differ": lambda lib: lib.pdist(lib.tensor([[NAN, 1.0], [0.0, 2.0], [1.0, 2.0]]), 0),
    "all scores are -inf": lambda lib: F(ATTENTION)(lib)(lib.ones(2, 2), lib.tensor(LOST), lib.ones(2, 3)),
    "attention to nothing": lambda lib: F(ATTENTION)(lib)(lib.ones(2, 2), lib.ones(5, 2), lib.ones(0, 3)),
    "an alignment that is no number": lambda lib: F("ctc_loss")(lib)(
        lib.tensor([[-INF, NAN]]).expand(3, 2).unsqueeze(1), lib.ones(1, 1, dtype=lib.int64), (3,), (1,)
    ),
}


@pytest.mark.parametrize("name", FIGURES)
def test_figures(name):
    mine, theirs = (FIGURES[name](lib).double().numpy() for lib in (rushlight, torch))
    np.testing.assert_array_equal(mine, theirs)
