"""Reductions, scans and sorting against torch: every dtype over random shapes, layouts and dimensions;
gradients at awkward points; and what both refuse, with the same words."""

import math
import random
import warnings

import pytest
import torch
from comparing import assert_same, close, numbers

import rushlight

pytestmark = pytest.mark.filterwarnings("ignore")

NAN, INF = math.nan, math.inf
FLOATS = ("float32", "float64", "float16", "bfloat16")
COMPLEX = ("complex64", "complex128")
INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
EVERY = (*FLOATS, *COMPLEX, *INTEGERS, "bool")


def data(rng, dtype, shape):
    """The same random tensor for both libraries, with the odd NaN and infinity."""
    torch.manual_seed(rng.randrange(10**6))
    kind = getattr(torch, dtype)
    if kind.is_floating_point:
        x = torch.randn(shape, dtype=torch.float64).mul(4).round().div(4)
        for value in (NAN, INF, -INF):
            if rng.random() < 0.1 and x.numel():
                x[torch.rand(shape) < 0.1] = value
        x = x.to(kind)
    elif kind.is_complex:
        x = torch.randn(shape, dtype=kind)
    elif dtype == "bool":
        x = torch.rand(shape) < 0.5
    else:
        x = torch.randint(0 if dtype == "uint8" else -5, 6, shape).to(kind)
    flat = rushlight.tensor(x.reshape(-1).tolist(), dtype=getattr(rushlight, dtype))
    return x, flat.reshape(tuple(x.shape))


def pair(rng, dtype):
    """A tensor of random shape and layout, twice."""
    ndim = rng.choice((0, 1, 2, 2, 3, 3, 4))
    shape = [rng.choice((1, 2, 3, 5, 8, 9, 33)) for _ in range(ndim)]
    if ndim and rng.random() < 0.1:
        shape[rng.randrange(ndim)] = 0
    x, y = data(rng, dtype, shape)
    order = list(range(ndim))
    if rng.random() < 0.5:
        rng.shuffle(order)
        x, y = x.permute(order), y.permute(order)
    if ndim and rng.random() < 0.3:
        d = rng.randrange(ndim)
        cut = (slice(None),) * d + (slice(None, None, 2),)
        x, y = x[cut], y[cut]
    return x, y


def some_dims(rng, ndim):
    return tuple(d if rng.random() < 0.5 else d - ndim for d in range(ndim) if rng.random() < 0.5)


def one_dim(rng, x):
    return ((rng.randrange(-x.dim(), x.dim()) if x.dim() else 0,), {})


def any_dims(rng, x):
    if rng.random() < 0.3:
        return (), {}
    return (some_dims(rng, x.dim()),), {"keepdim": rng.random() < 0.5}


def all_or_one(rng, x):
    if rng.random() < 0.3:
        return (), {}
    return one_dim(rng, x)[0], {"keepdim": rng.random() < 0.5}


def spread(rng, x):
    return (), {
        "dim": some_dims(rng, x.dim()),
        "correction": rng.choice((0, 1, 2, 0.5)),
        "keepdim": rng.random() < 0.5,
    }


def of_order(rng, x):
    return (rng.choice((0, 1, 2, 3, 0.5, -1, INF, -INF, "fro")), some_dims(rng, x.dim())), {}


def needed_dims(rng, x):
    dims = some_dims(rng, x.dim()) or ((0,) if x.dim() < 2 else (1,))
    return (dims,), {"keepdim": rng.random() < 0.5}


def stably(rng, x):
    return (), {"dim": one_dim(rng, x)[0][0], "descending": rng.random() < 0.5, "stable": True}


CASES = {
    "sum": (any_dims, EVERY),
    "mean": (any_dims, (*FLOATS, *COMPLEX)),
    "nansum": (any_dims, (*FLOATS, *INTEGERS)),
    "nanmean": (any_dims, FLOATS),
    "prod": (all_or_one, EVERY),
    "max": (all_or_one, (*FLOATS, *INTEGERS, "bool")),
    "min": (all_or_one, (*FLOATS, *INTEGERS, "bool")),
    "amax": (any_dims, (*FLOATS, *INTEGERS, "bool")),
    "amin": (any_dims, (*FLOATS, *INTEGERS, "bool")),
    "argmax": (all_or_one, (*FLOATS, *INTEGERS)),
    "argmin": (all_or_one, (*FLOATS, *INTEGERS)),
    "any": (any_dims, EVERY),
    "all": (any_dims, EVERY),
    "count_nonzero": (lambda rng, x: (any_dims(rng, x)[0], {}), EVERY),
    "var": (spread, (*FLOATS, *COMPLEX)),
    "std": (spread, (*FLOATS, *COMPLEX)),
    "norm": (of_order, (*FLOATS, *COMPLEX)),
    "logsumexp": (needed_dims, (*FLOATS, "int64", "bool")),
    "cumsum": (one_dim, EVERY),
    "cumprod": (one_dim, EVERY),
    "cummax": (one_dim, (*FLOATS, *INTEGERS, "bool")),
    "cummin": (one_dim, (*FLOATS, *INTEGERS, "bool")),
    "logcumsumexp": (one_dim, FLOATS),
    "softmax": (one_dim, FLOATS),
    "log_softmax": (one_dim, FLOATS),
    "sort": (stably, (*FLOATS, *INTEGERS)),
    "argsort": (stably, (*FLOATS, *INTEGERS, "bool")),
    "diff": (lambda rng, x: ((rng.choice((1, 1, 2)), *one_dim(rng, x)[0]), {}), EVERY),
}
# Where rounding in the element type leaves the two libraries further apart.
SCALE = {
    "var": 10,
    "std": 10,
    "norm": 20,
    "prod": 20,
    "cumprod": 20,
    "sum": 4,
    "logcumsumexp": 4,
    "cumsum": 4,
    "nansum": 4,
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", range(8))
def test_against_torch(name, seed):
    arguments, dtypes = CASES[name]
    rng = random.Random(f"{name} {seed}")
    for dtype in dtypes:
        x, y = pair(rng, dtype)
        args, kwargs = arguments(rng, x)
        try:
            theirs = getattr(x, name)(*args, **kwargs)
        except (RuntimeError, IndexError, NotImplementedError) as error:
            with pytest.raises(type(error)):
                getattr(y, name)(*args, **kwargs)
            continue
        what = f"{name}{args}{kwargs} of {dtype} {tuple(x.shape)} strides {x.stride()}"
        ours = getattr(y, name)(*args, **kwargs)
        try:
            assert_same(
                ours,
                theirs,
                scale=SCALE.get(name, 1) * (4 if dtype in ("float16", "bfloat16") else 1),
                strides=False,
            )
        except AssertionError as error:
            raise AssertionError(f"{what}: {error}") from None


@pytest.mark.parametrize("name", ["topk", "kthvalue", "median", "nanmedian", "mode"])
@pytest.mark.parametrize("seed", range(8))
def test_chosen_values(name, seed):
    """Which of equal elements torch chooses is its secret: values agree, and stand where the index says."""
    rng = random.Random(f"{name} {seed}")
    for dtype in (*FLOATS, *INTEGERS):
        x, y = pair(rng, dtype)
        dim = one_dim(rng, x)[0][0]
        length = x.size(dim) if x.dim() else 1
        if not length or (name == "mode" and bool((x != x).any())):  # among NaNs torch counts by accident
            continue
        k = rng.randint(1, length)
        args = {"topk": (k, dim, rng.random() < 0.5), "kthvalue": (k, dim)}.get(name, (dim,))
        theirs, ours = getattr(x, name)(*args), getattr(y, name)(*args)
        assert_same(ours.values, theirs.values, strides=False)
        if x.dim() and x.numel():
            at = ours.indices if name == "topk" else ours.indices.unsqueeze(dim)
            found = y.gather(dim, at)
            values = ours.values if name == "topk" else ours.values.unsqueeze(dim)
            assert all(close(a, b, 0) for a, b in zip(numbers_of(found), numbers_of(values)))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64", "uint8"])
def test_topk_of_equal_elements_and_without_order(dtype):
    """Models draw dropout masks for rows in the order of topk(sorted=False), and keep some of equals."""
    rng = random.Random(f"topk {dtype}")
    for n, k in [(1, 1), (3, 1), (5, 5), (8, 3), (16, 15), (40, 5), (65, 1), (100, 12), (100, 13), (640, 10)]:
        for values in (2, 20, 250):
            numbers = [[rng.randrange(values) for _ in range(n)] for _ in range(4)]
            if "float" in dtype and values == 20:
                numbers[0][n // 2] = numbers[0][-1] = numbers[2][n // 3] = NAN
            x = torch.tensor(numbers, dtype=getattr(torch, dtype))
            y = rushlight.tensor(numbers, dtype=getattr(rushlight, dtype))
            for largest in (True, False):
                for in_order in (True, False):
                    for line in ((x, y, -1), (x.t(), y.t(), 0)):
                        theirs, ours = (t.topk(k, line[2], largest, in_order) for t in line[:2])
                        given = (n, k, values, largest, in_order)
                        assert ours.indices.tolist() == theirs.indices.tolist(), given


def numbers_of(tensor):
    return tensor.reshape(-1).tolist()


AWKWARD = [
    (1.0, NAN, 3.0, NAN),
    (3.0, 1.0, 3.0, 0.0),
    (0.0, 0.0, 2.0, 0.0),
    (0.0, 2.0, 3.0, 1.0),
    (2.0, 2.0, 2.0, 2.0),
    (INF, 1.0, -2.0, 0.5),
    (0.0, 0.0, 0.0, 0.0),
    (-1.0, -1.0, 1.0, 0.5),
]
DIFFERENTIABLE = [
    "sum()",
    "mean(0)",
    "prod()",
    "prod(0)",
    "max()",
    "min()",
    "max(0)[0]",
    "min(0)[0]",
    "amax()",
    "amin(0)",
    "aminmax()[0]",
    "var()",
    "std()",
    "var(correction=4)",
    "norm()",
    "norm(1)",
    "norm(3)",
    "norm(1.5)",
    "norm(0.5)",
    "norm(float('inf'))",
    "norm(-float('inf'))",
    "norm(-1)",
    "nansum()",
    "nanmean()",
    "cumsum(0)",
    "cumprod(0)",
    "cummax(0)[0]",
    "cummin(0)[0]",
    "logsumexp(0)",
    "softmax(0)",
    "log_softmax(0)",
    "sort()[0]",
    "median()",
    "nanmedian()",
    "diff()",
    "sort(descending=True, stable=True)[0]",
]


@pytest.mark.parametrize("expression", DIFFERENTIABLE)
def test_gradients_at_awkward_points(expression):
    for values in AWKWARD:
        if "norm" in expression and INF in values:
            continue  # inf / inf, in another order of operations
        found = []
        for lib in (rushlight, torch):
            x = lib.tensor(values, dtype=lib.float64, requires_grad=True)
            y = eval(f"x.{expression}", {"x": x})
            weight = lib.arange(1, y.numel() + 1, dtype=lib.float64).reshape(tuple(y.shape))
            (y * weight).sum().backward()
            found.append(x.grad)
        a, b = numbers_of(found[0]), numbers(found[1])
        assert all(close(p, q, 1e-9) for p, q in zip(a, b, strict=True)), f"{values}: {a}, torch {b}"


REFUSED = [
    "x.sum(2)",
    "x.sum((0, 0))",
    "x.sum((0, -2))",
    "x.sum('a')",
    "x.sum(0, 1)",
    "s.sum(1)",
    "x.sum(0.5)",
    "x.sum(True)",
    "torch.sum(3)",
    "i.mean()",
    "b.mean(0)",
    "x.mean(dtype=torch.int64)",
    "x.mean(5)",
    "x.prod(5)",
    "x.prod((0, 1))",
    "e.max()",
    "e2.max()",
    "e2.max(0)",
    "x.max(5)",
    "c.max()",
    "c.max(0)",
    "x.min(dim=7)",
    "e.amax()",
    "e2.amax(0)",
    "x.amax((0, 0))",
    "c.amax()",
    "x.amin(3)",
    "e.argmax()",
    "e2.argmax(0)",
    "c.argmax()",
    "b.argmax()",
    "x.argmax(5)",
    "x.argmax((0, 1))",
    "e.aminmax()",
    "e2.aminmax(dim=0)",
    "c.aminmax()",
    "x.aminmax(dim=(0, 1))",
    "x.any(5)",
    "i.var()",
    "i.std(0)",
    "x.var(5)",
    "x.var(0, unbiased=True, correction=1)",
    "torch.var_mean(i)",
    "i.norm()",
    "x.norm('abc')",
    "torch.norm(x, p='fro', dim=(0, 0))",
    "torch.norm(x, dtype=torch.int64)",
    "torch.norm(c, dtype=torch.float32)",
    "e.norm(float('inf'))",
    "e.norm(-1)",
    "e2.norm(float('inf'), dim=0)",
    "torch.linalg.vector_norm(x, 'a')",
    "torch.linalg.vector_norm(x, 2 + 1j)",
    "torch.linalg.vector_norm(x, dtype=torch.float16)",
    "c.nansum()",
    "x.nansum(5)",
    "i.nanmean()",
    "x.count_nonzero((0, 0))",
    "x.cumsum(5)",
    "s.cumsum(1)",
    "b.cumsum_(0)",
    "x.cumsum(dim=(0, 1))",
    "x.clone().cumsum_(0, dtype=torch.float64)",
    "x.cummax(5)",
    "c.cummax(0)",
    "i.logcumsumexp(0)",
    "x.logsumexp(5)",
    "x.logsumexp([0, 0])",
    "x.softmax(5)",
    "i.softmax(0)",
    "c.softmax(0)",
    "b.log_softmax(0)",
    "x.median(5)",
    "e2.median(0)",
    "x.kthvalue(0)",
    "x.kthvalue(5)",
    "x.kthvalue(1, 5)",
    "x.topk(5)",
    "x.topk(-1)",
    "x.topk(1, 5)",
    "x.sort(5)",
    "c.sort()",
    "e.kthvalue(1)",
    "x.mode(5)",
    "e2.mode(0)",
    "x.topk(2.0)",
    "b.topk(1)",
    "b.median()",
    "c.mode()",
    "x.diff(n=-1)",
    "x.diff(dim=5)",
    "s.diff()",
    "torch.dist(i, i)",
]
# Calls for which torch lists its signatures: only the type is compared.
OVERLOADS = {
    "x.sum('a')",
    "x.sum(0.5)",
    "x.sum(True)",
    "x.prod((0, 1))",
    "x.var(0, unbiased=True, correction=1)",
}


@pytest.mark.parametrize("expression", REFUSED)
def test_refusals(expression):
    errors = []
    for lib in (rushlight, torch):
        x = lib.ones(3, 4)
        scope = {
            "torch": lib,
            "x": x,
            "e": lib.zeros(0),
            "e2": lib.zeros(0, 3),
            "i": lib.arange(6).view(2, 3),
            "s": lib.tensor(2.0),
            "c": lib.ones(3, 4, dtype=lib.complex64),
            "b": x > 0,
        }
        with pytest.raises(Exception) as caught:
            eval(expression, scope)
        errors.append(caught.value)
    ours, theirs = errors
    assert type(ours) is type(theirs), (
        f"{type(ours).__name__}: {ours}\ntorch {type(theirs).__name__}: {theirs}"
    )
    if expression not in OVERLOADS:

        def sentence(error):
            return str(error).split("\n")[0].replace(" (position 1)", "").replace(" (position 2)", "")

        assert sentence(ours) == sentence(theirs)


def test_degrees_of_freedom_warning():
    for lib in (rushlight, torch):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            lib.ones(1).std()
        assert str(caught[0].message).startswith(
            "std(): degrees of freedom is <= 0. Correction should be strictly less"
        )
        assert caught[0].category is UserWarning
