"""repr and str against torch's, for random values, shapes, dtypes and print options."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import DTYPES, INTEGERS, nest

import rushlight
from rushlight._printing import printoptions

many = settings(max_examples=300)
edges = [
    0.0,
    -0.0,
    math.nan,
    math.inf,
    -math.inf,
    1e-4,
    9.9e-5,
    1e8,
    1e8 + 1,
    1e3,
    1001.0,
    5e-324,
    1e-310,
    0.99999,
]
floats = st.one_of(
    st.sampled_from(edges),
    st.integers(-5, 5).map(float),
    st.floats(-10, 10),
    st.floats(width=32),
    st.floats(),
)
shapes = st.lists(st.integers(0, 8), max_size=4).map(tuple) | st.tuples(st.sampled_from([20, 100, 1001]))
options = st.fixed_dictionaries(
    {},
    optional={
        "precision": st.sampled_from([0, 1, 2, 6, 10]),
        "threshold": st.sampled_from([0, 5, 30, math.inf]),
        "edgeitems": st.sampled_from([0, 1, 2, 5]),
        "linewidth": st.sampled_from([10, 20, 60, 79, 81, 120, 1000]),
        "sci_mode": st.booleans(),
        "profile": st.sampled_from(["short", "full", "default"]),
    },
)


def make(lib, dtype, shape, pool):
    """A tensor of the given shape whose numbers repeat those of the pool."""
    wide = getattr(lib, "complex128" if "complex" in dtype else "float64" if "float" in dtype else dtype)
    numbers = [pool[(5 * place + place // 3) % len(pool)] for place in range(math.prod(shape))]
    if "complex" in dtype:
        numbers = [complex(number, pool[place % len(pool)]) for place, number in enumerate(numbers)]
    if not numbers:
        return lib.zeros(shape, dtype=getattr(lib, dtype))
    return lib.tensor(nest(numbers, shape), dtype=wide).to(getattr(lib, dtype))


@pytest.mark.parametrize("dtype", [name for name in DTYPES if name not in INTEGERS and name != "bool"])
@many
@given(
    shapes,
    st.lists(floats, min_size=1, max_size=5),
    options,
    st.booleans(),
    st.sampled_from(["T", "grad", ""]),
)
def test_floats(dtype, shape, pool, chosen, wide_default, variant):
    texts = []
    for lib, using in ((torch, torch._tensor_str.printoptions), (rushlight, printoptions)):
        value = make(lib, dtype, shape, pool)
        if variant == "grad":
            value.requires_grad_()
        elif variant == "T" and len(shape) > 1:
            value = value.transpose(0, -1)
        lib.set_default_dtype(lib.float64 if wide_default else lib.float32)
        try:
            with using(**chosen):
                texts.append(repr(value))
        finally:
            lib.set_default_dtype(lib.float32)
    assert texts[1] == texts[0]


@pytest.mark.parametrize("dtype", [*INTEGERS, "bool"])
@settings(max_examples=100)
@given(shapes, st.data(), options)
def test_integers(dtype, shape, data, chosen):
    if dtype == "bool":
        values = st.booleans()
    else:
        info = torch.iinfo(getattr(torch, dtype))
        values = st.integers(info.min, info.max) | st.integers(0, 9)
    pool = data.draw(st.lists(values, min_size=1, max_size=5))
    with torch._tensor_str.printoptions(**chosen), printoptions(**chosen):
        assert repr(make(rushlight, dtype, shape, pool)) == repr(make(torch, dtype, shape, pool))


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtype_limits(dtype):
    if "float" in dtype or "complex" in dtype:
        names = ["bits", "eps", "max", "min", "tiny", "smallest_normal", "resolution", "dtype"]
        ours, theirs = rushlight.finfo(getattr(rushlight, dtype)), torch.finfo(getattr(torch, dtype))
    elif dtype == "bool":
        pytest.skip("bool has no limits")
    else:
        names = ["bits", "max", "min", "dtype"]
        ours, theirs = rushlight.iinfo(getattr(rushlight, dtype)), torch.iinfo(getattr(torch, dtype))
    assert repr(ours) == repr(theirs)
    assert [getattr(ours, name) for name in names] == [getattr(theirs, name) for name in names]


NUMBERS = [1.5, 3, True, 1 + 2j, 0.1, -7]


@pytest.mark.parametrize("spec", ["", ".3f", ">20", "e", "d", "s", "g"])
@pytest.mark.parametrize("number", NUMBERS, ids=repr)
def test_format(number, spec):
    results = []
    for lib in (torch, rushlight):
        try:
            results.append(format(lib.tensor(number), spec))
        except (TypeError, ValueError) as error:
            results.append((type(error), str(error)))
    assert results[1] == results[0]
