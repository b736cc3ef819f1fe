"""How far float32 and float64 functions are from the exact value, in units in the last place.

The limits are those of the table in native/kernels/vecmath.h, rounded up; 0.5 would be correct rounding.
"""

import math
import sys

import numpy
import pytest

import rushlight as torch

SEED = 20
COUNT = 300_000

# float32, float64
LIMITS = {
    "exp": (0.75, 1.0),
    "exp2": (1.4, 1.1),
    "expm1": (1.6, 1.8),
    "log": (1.1, 0.9),
    "log2": (1.6, 1.0),
    "log10": (0.6, 2.0),
    "log1p": (1.1, 0.9),
    "sin": (1.6, 1.9),
    "cos": (1.6, 1.95),
    "tan": (1.5, 1.0),
    "asin": (0.6, 1.0),
    "acos": (0.6, 1.0),
    "atan": (1.9, 1.9),
    "sinh": (1.6, 2.0),
    "cosh": (1.2, 2.0),
    "tanh": (1.4, 1.4),
    "asinh": (0.6, 2.0),
    "acosh": (0.6, 2.0),
    "atanh": (0.6, 2.0),
    "erf": (1.3, 1.4),
}
NAMES_IN_NUMPY = {"asin": "arcsin", "acos": "arccos", "atan": "arctan"} | {
    f"a{name}": f"arc{name}" for name in ("sinh", "cosh", "tanh")
}


def numbers(dtype: type[numpy.floating]) -> numpy.ndarray:
    """Every kind of float by its bits, and as many that lie where most programs have theirs."""
    generator = numpy.random.default_rng(SEED)
    bits = generator.integers(
        0, 2 ** (8 * dtype().itemsize), COUNT, dtype=f"u{dtype().itemsize}", endpoint=False
    )
    anywhere = bits.view(dtype)
    ordinary = (generator.normal(size=COUNT) * 2).astype(dtype)
    return numpy.concatenate([anywhere[numpy.isfinite(anywhere)], ordinary, numpy.abs(ordinary)])


def exact(name: str, x: numpy.ndarray) -> numpy.ndarray:
    wider = x.astype(numpy.float64 if x.dtype == numpy.float32 else numpy.longdouble)
    if name == "erf":
        return numpy.array([math.erf(value) for value in x.tolist()])
    return getattr(numpy, NAMES_IN_NUMPY.get(name, name))(wider)


def units_off(y: numpy.ndarray, reference: numpy.ndarray) -> numpy.ndarray:
    """0 where the result is no normal number."""
    rounded = numpy.abs(reference).astype(y.dtype)
    normal = numpy.isfinite(rounded) & (rounded >= numpy.finfo(y.dtype).tiny)
    off = numpy.abs(y.astype(reference.dtype) - reference) / numpy.spacing(rounded).astype(reference.dtype)
    return numpy.where(normal, off, 0)


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("dtype", [numpy.float32, numpy.float64])
def test_stays_within_its_units_in_the_last_place(name: str, dtype: type[numpy.floating]) -> None:
    if dtype is numpy.float64:
        if numpy.finfo(numpy.longdouble).nmant < 63:
            pytest.skip(f"{sys.platform} has no wider type to compare with")
        if name == "erf":
            pytest.skip("nothing here knows erf beyond double precision")
    x = numbers(dtype)
    if name == "erf":
        x = x[::10]
    with numpy.errstate(all="ignore"):
        off = units_off(getattr(torch, name)(torch.from_numpy(x)).numpy(), exact(name, x))
    assert off.max() <= LIMITS[name][dtype is numpy.float64], f"seed {SEED}, at {x[off.argmax()]!r}"


@pytest.mark.parametrize(
    ("name", "limit"), [("softplus", 0.32), ("logsigmoid", 0.32), ("silu", 0.45), ("sigmoid", 0.41)]
)
def test_activations_are_off_by_little_on_average(name: str, limit: float) -> None:
    # torch's are off by 0.31, 0.30, 0.38 and 0.42 in float32
    x = numpy.random.default_rng(SEED).normal(size=COUNT).astype(numpy.float32) * 3
    wide = x.astype(numpy.float64)
    sigmoid = 1 / (1 + numpy.exp(-wide))
    reference = {
        "softplus": numpy.logaddexp(wide, 0),
        "logsigmoid": -numpy.logaddexp(-wide, 0),
        "silu": wide * sigmoid,
        "sigmoid": sigmoid,
    }[name]
    y = getattr(torch.nn.functional, name)(torch.from_numpy(x)).numpy()
    assert units_off(y, reference).mean() <= limit


def test_gelu_is_off_by_little_of_its_argument() -> None:
    # torch's float32 is off by up to 3.8e-7 of x, and by 5.2 units where x is positive.
    x = numpy.concatenate([numbers(numpy.float32), numpy.linspace(-6, 6, COUNT, dtype=numpy.float32)])
    x = x[numpy.abs(x) < 1e30]
    wide = x.astype(numpy.float64)
    tail = torch.special.erfc(torch.from_numpy(-wide / math.sqrt(2))).numpy()
    reference = wide * tail / 2
    y = torch.nn.functional.gelu(torch.from_numpy(x)).numpy()
    assert numpy.all(numpy.abs(y - reference) <= 2.4e-7 * numpy.abs(wide) + 1e-44)
    assert units_off(y, reference)[x > 0].max() <= 3.0
    assert numpy.all(y[x > 5.6] == x[x > 5.6]) and numpy.all(y[x < -5.6] == 0)
    odd = torch.nn.functional.gelu(torch.tensor([0.0, -0.0, math.inf, math.nan])).numpy()
    numpy.testing.assert_array_equal(odd, [0.0, 0.0, math.inf, math.nan])
    assert numpy.signbit(odd[1])
