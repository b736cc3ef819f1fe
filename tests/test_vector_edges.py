"""Loops over vectors where a lane needs another way than its neighbours, and rows that end within a vector.

Expected numbers come from NumPy or from Python's integers, met to the last bit where rounding leaves no
choice.
"""

import itertools
import math

import numpy as np
import pytest

import rushlight as torch

SEED = 7
EDGES = [0, 1, -1, 7, -7, 2**51 - 1, 2**51, -(2**51), -(2**51) - 1, 2**53 + 1, 2**62 + 3, -(2**63), 2**63 - 1]


def whole_numbers(count):
    """Small ones, some of any size, and the edges, in any order."""
    generator = np.random.default_rng(SEED)
    sizes = generator.integers(0, 63, count)
    numbers = generator.integers(-100, 100, count) * (generator.integers(0, 8, count) > 0)
    numbers = np.where(sizes > 40, generator.integers(-(2**62), 2**62, count) >> (62 - sizes), numbers)
    return generator.permutation(np.concatenate([numbers, np.array(EDGES * 3)]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_int64_becomes_floating(dtype):
    x = whole_numbers(1000)
    for part in (x, x[:1], x[3:20], x[::3], np.clip(x, -1000, 1000)):
        assert (
            torch.from_numpy(part).to(torch.from_numpy(np.zeros(1, dtype)).dtype).tolist()
            == part.astype(dtype).tolist()
        )


@pytest.mark.parametrize("dtype", [torch.int32, torch.int16, torch.uint8, torch.int8], ids=str)
def test_float64_becomes_short(dtype):
    ordinary = np.random.default_rng(SEED).normal(size=400) * 100
    x = np.concatenate(
        [ordinary, [math.nan, math.inf, -math.inf, 2.0**31, -(2.0**31), 2.0**31 - 0.5, 1e300, -0.0]]
    )
    x = torch.from_numpy(np.random.default_rng(SEED).permutation(x))
    assert x.to(dtype).tolist() == [x[i].to(dtype).item() for i in range(len(x))]


@pytest.mark.parametrize("rounding", ["floor", "trunc"])
def test_int64_division(rounding):
    x, y = whole_numbers(2000), np.random.default_rng(3).permutation(whole_numbers(2000))
    y[y == 0] = 3
    x[(x == -(2**63)) & (y == -1)] = 5  # wraps around; not a number of int64
    quotients = [a // b for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    if rounding == "trunc":
        quotients = [
            abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
            for a, b in zip(x.tolist(), y.tolist(), strict=True)
        ]
    a, b = torch.from_numpy(x), torch.from_numpy(y)
    assert torch.div(a, b, rounding_mode=rounding).tolist() == quotients
    assert torch.div(a[::2], b[::2], rounding_mode=rounding).tolist() == quotients[::2]
    if rounding == "floor":
        assert (a // b).tolist() == quotients
        assert (a // 7).tolist() == [n // 7 for n in x.tolist()]
        assert (a // -7).tolist() == [n // -7 for n in x.tolist()]
    b[1000] = 0
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        torch.div(a, b, rounding_mode=rounding)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nextafter(dtype):
    info = np.finfo(dtype)
    ends = [0.0, -0.0, info.smallest_subnormal, -info.smallest_subnormal, info.tiny, info.max, -info.max]
    ends += [math.inf, -math.inf, math.nan, 1.0, -1.0, 0.5, 2.0]
    x, y = np.array(list(itertools.product(ends, ends)), dtype=dtype).T.copy()
    got = torch.nextafter(torch.from_numpy(x), torch.from_numpy(y)).numpy()
    with np.errstate(all="ignore"):
        expected = np.nextafter(x, y)
    bits = np.uint32 if dtype is np.float32 else np.uint64
    same = (got.view(bits) == expected.view(bits)) | (np.isnan(got) & np.isnan(expected))
    assert same.all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 3, 4, 5, 8, 13, 16, 100])
def test_bools_of_comparisons(n, dtype):
    x = np.resize(np.array([1.0, -2.0, 0.0, math.inf, math.nan, -0.0, 3.0], dtype=dtype), n)
    room = torch.full((n + 2,), True)
    torch.gt(torch.from_numpy(x), 0, out=room[1:-1])
    assert room.tolist() == [True, *(x > 0).tolist(), True]
    assert torch.logical_not(torch.from_numpy(x)).tolist() == np.logical_not(x).tolist()
    assert torch.isposinf(torch.from_numpy(x)).tolist() == np.isposinf(x).tolist()


def test_hypot_to_half_a_unit():
    generator = np.random.default_rng(SEED)
    x, y = (generator.normal(size=20000) * 10.0 ** generator.integers(-5, 6, 20000) for _ in "xy")
    ends = np.array(
        list(
            itertools.product(
                [0.0, 1e-320, 1e-160, 1e200, 1e308, math.inf, -math.inf, math.nan, 3.0], repeat=2
            )
        )
    )
    got = torch.hypot(torch.from_numpy(x), torch.from_numpy(y)).numpy()
    if np.finfo(np.longdouble).nmant >= 63:
        exact = np.hypot(x.astype(np.longdouble), y.astype(np.longdouble))
        assert (np.abs(got - exact) / np.spacing(np.abs(got))).max() <= 0.6
    with np.errstate(over="ignore"):
        expected = np.hypot(*ends.T)
    got = torch.hypot(*(torch.from_numpy(part.copy()) for part in ends.T)).numpy()
    assert np.allclose(got, expected, rtol=4e-16, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("columns", range(1, 18))
def test_small_products_write_only_their_columns(columns, dtype):
    torch.manual_seed(SEED)
    a, b = torch.randint(-9, 9, (5, 7, 3)).to(dtype), torch.randint(-9, 9, (5, 3, columns)).to(dtype)
    room = torch.full((5, 7, columns + 2), 99.0, dtype=dtype)
    room[..., 1:-1] = 0
    room[..., 1:-1].baddbmm_(a, b)
    expected = (a[..., :, :, None] * b[..., None, :, :]).sum(-2)
    assert torch.equal(room[..., 1:-1], expected) and torch.equal(a @ b, expected)
    assert (room[..., 0] == 99).all() and (room[..., -1] == 99).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_small_systems_column_by_column(dtype):
    torch.manual_seed(SEED)
    for n, count in itertools.product(range(1, 9), (1, 3, 4, 5, 8, 11)):
        a, b = torch.randn(6, n, n, dtype=dtype), torch.randn(6, n, count, dtype=dtype)
        together = torch.linalg.solve(a, b)
        alone = [torch.linalg.solve(a, b[..., c : c + 1].contiguous()) for c in range(count)]
        assert torch.equal(together, torch.cat(alone, -1)), (n, count)
        unit = torch.eye(n, dtype=dtype).expand(6, n, n)
        assert torch.equal(torch.linalg.inv(a), torch.linalg.solve(a, unit.contiguous())), n


@pytest.mark.parametrize("dtype", [np.int64, np.int16, np.bool_, np.float32, np.float64])
def test_running_sums_and_extremes(dtype):
    x = np.random.default_rng(SEED).integers(-50, 50, (9, 131)).astype(dtype)
    whole = torch.from_numpy(x)
    wide = dtype if np.issubdtype(dtype, np.floating) else np.int64
    for part, ours in ((x, whole), (x[:, ::2], whole[:, ::2]), (x.T, whole.t())):
        assert ours.cumsum(1).tolist() == np.cumsum(part, 1, dtype=wide).tolist()
        for name, extreme in (("cummax", np.maximum), ("cummin", np.minimum)):
            values, indices = getattr(ours, name)(1)
            assert values.tolist() == extreme.accumulate(part, 1).tolist()
            assert torch.equal(ours.gather(1, indices), values)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_of_what_lies_across(name):
    """A transposed matrix, and a gradient that is one number, give the bits that contiguous ones do."""
    torch.manual_seed(SEED)
    x = torch.randn(37, 70)
    softmax = getattr(torch, name)
    for view, dim in (
        (x.t(), 0),
        (x.t(), 1),
        (x[:, ::2], 1),
        (x[:, ::2], 0),
        (x.reshape(37, 7, 10).transpose(0, 2), 1),
    ):
        a, b = view.detach().requires_grad_(), view.contiguous().requires_grad_()
        assert torch.equal(softmax(a, dim), softmax(b, dim))
        for gradient in (
            torch.tensor(2.0).expand(view.shape),
            torch.randn(view.shape[::-1]).permute(*range(view.dim())[::-1]),
        ):
            ours = torch.autograd.grad(softmax(a, dim), a, gradient)[0]
            assert torch.equal(ours, torch.autograd.grad(softmax(b, dim), b, gradient.contiguous())[0])


def test_powers_of_float64():
    generator = np.random.default_rng(SEED)
    x = np.abs(generator.normal(size=40000)) * 10.0 ** generator.integers(-8, 9, 40000)
    for y in (2.5, 1 / 3, -1.5, generator.uniform(-3, 3, 40000)):
        got = (torch.from_numpy(x) ** (torch.from_numpy(y) if isinstance(y, np.ndarray) else y)).numpy()
        if np.finfo(np.longdouble).nmant >= 63:
            exact = x.astype(np.longdouble) ** y
            assert (np.abs(got - exact) / np.spacing(got)).max() <= 0.85
    k = torch.arange(1, 3000, dtype=torch.float64)
    assert torch.equal((k * k) ** 1.5, k * k * k) and torch.equal((k**4) ** 0.25, k)
    assert torch.equal(torch.pow(k, torch.full_like(k, 3.0)), k * k * k)
    ends = [0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, 5e-324, 1e-310, 1e200, math.inf, -math.inf, math.nan]
    a, b = np.array(list(itertools.product(ends, [*ends, 2.5, -2.5, 2.0, 300.0]))).T.copy()
    with np.errstate(all="ignore"):
        expected = np.power(a, b)
    got = torch.pow(torch.from_numpy(a), torch.from_numpy(b)).numpy()
    assert np.allclose(got, expected, rtol=4e-16, atol=0, equal_nan=True)
    assert (np.signbit(got) == np.signbit(expected))[~np.isnan(expected)].all()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.complex128])
def test_joined_rows(dtype, threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for lengths in ((1100, 1100), (5000, 0, 1024), (300, 2000), (1024,)):
            for rows, inner in ((7, 1), (40, 2)):
                parts = [np.arange(rows * n * inner).reshape(rows, n, inner).astype(dtype) for n in lengths]
                ours = [torch.from_numpy(part) for part in parts]
                assert (torch.cat(ours, 1).numpy() == np.concatenate(parts, 1)).all()
                turned = [t.transpose(0, 2).contiguous().transpose(0, 2) for t in ours]
                assert torch.equal(torch.cat(turned, 1), torch.cat(ours, 1))
                assert torch.equal(
                    torch.cat([*ours, torch.empty(0, dtype=ours[0].dtype)], 1), torch.cat(ours, 1)
                )
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32, np.float64, np.complex128])
def test_elements_gathered_along_a_row(dtype):
    generator = np.random.default_rng(SEED)
    for n in (1, 3, 4, 7, 8, 50):
        x, index = generator.integers(0, 99, (5, 9)).astype(dtype), generator.integers(-9, 9, n)
        ours, places = torch.from_numpy(x), torch.from_numpy(index)
        assert (ours[:, places].numpy() == x[:, index]).all() and (
            ours[2][places].numpy() == x[2][index]
        ).all()
        wrapped = torch.from_numpy(index % 9)
        assert (ours.index_select(1, wrapped).numpy() == x[:, index]).all()
        assert (ours.gather(1, wrapped.expand(5, n).contiguous()).numpy() == x[:, index]).all()


@pytest.mark.parametrize("order", [1, 2, 3, math.inf])
def test_the_gradient_of_a_norm_lies_as_its_input(order):
    """Not across it, which took three times as long."""
    x = torch.randn(20, 30).t().detach().requires_grad_()
    assert torch.autograd.grad(x.norm(order), x)[0].stride() == x.stride()


@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "float64", "complex128"])
def test_small_matrices_are_turned_round(dtype):
    """Squares of eight, then of four, then single elements: every remainder of both sides."""
    for rows in (1, 2, 3, 4, 5, 7, 8, 11, 12, 16, 21):
        for cols in (1, 3, 4, 6, 7, 8, 9, 12, 15, 20):
            count = 4096 // (rows * cols) + 1
            x = (torch.arange(count * rows * cols) % 127).to(getattr(torch, dtype)).reshape(count, rows, cols)
            turned = x.transpose(1, 2).contiguous().reshape(count, -1)
            places = torch.arange(rows * cols).reshape(rows, cols).T.flatten()
            assert torch.equal(turned, x.reshape(count, -1)[:, places])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
def test_shrinking_at_its_edges(dtype):
    """Each number alone, where a vector is filled up with zeros, and among others give the same bits."""
    numbers = [math.nan, math.inf, -math.inf, 0.0, -0.0, 0.3, -0.3, 0.5, -0.5, 0.75, -0.75, 1e-7] * 3
    x = torch.tensor(numbers, dtype=dtype)
    for name, expected in (
        ("softshrink", [math.nan, math.inf, -math.inf, 0.0, -0.0, 0.0, -0.0, 0.0, -0.0, 0.25, -0.25, 0.0]),
        ("hardshrink", [math.nan, math.inf, -math.inf, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.75, -0.75, 0.0]),
    ):
        shrink = getattr(torch.nn.functional, name)
        y = shrink(x.requires_grad_())
        assert str(y.tolist()) == str(expected * 3)  # the signs of zeros count
        assert str(torch.stack([shrink(number) for number in x]).tolist()) == str(expected * 3)
        g = torch.autograd.grad(y, x, torch.full_like(x, math.nan))[0]
        assert g.isnan().tolist() == [not abs(number) <= 0.5 for number in numbers]
        for part in (slice(None, None, 3), slice(5, 14)):
            assert str(shrink(x.detach()[part]).tolist()) == str((expected * 3)[part])


# Rounded from 40 digits: numbers on both sides of where one formula gives way to the next.
ERROR_FUNCTIONS = {
    "erfc": {
        0.25: 0.7236736098317631, -0.25: 1.276326390168237, 0.75: 0.28884436634648486,
        1.5: 0.033894853524689274, 3.0: 2.209049699858544e-05, 10.0: 2.088487583762545e-45,
        26.0: 5.663192408856143e-296, -2.0: 1.9953222650189528, 0.0: 1.0, math.inf: 0.0, -math.inf: 2.0,
    },
    "erfinv": {
        1e-300: 8.86226925452758e-301, 0.25: 0.2253120550121781, -0.5: -0.4769362762044699,
        0.75: 0.8134198475976185, 0.996: 2.0351676830660828, 0.9975: 2.1378252338818555,
        0.999999: 3.458910737275499, 1 - 2.0**-40: 5.05125408524939, 1 - 2.0**-53: 5.8635847487551676,
        0.0: 0.0, 1.0: math.inf, -1.0: -math.inf, 1.5: math.nan,
    },
    "ndtri": {
        0.25: -0.6744897501960817, 0.5: 0.0, 0.625: 0.31863936396437514, 0.001: -3.0902323061678136,
        1e-10: -6.361340902404057, 1e-16: -8.222082216130435, 1e-17: -8.493793224109599,
        1e-300: -37.0470962993612, 0.999: 3.090232306167813, 1 - 2.0**-53: 8.209536151601387,
        0.0: -math.inf, 1.0: math.inf, -0.5: math.nan, 1.5: math.nan,
    },
}  # fmt: skip


@pytest.mark.parametrize("name", ERROR_FUNCTIONS)
def test_error_functions_of_float64(name):
    function, values = getattr(torch.special, name), ERROR_FUNCTIONS[name]
    x = np.array([*values, math.nan] * 3)
    got = function(torch.from_numpy(x))
    expected = np.array([*values.values(), math.nan] * 3)
    assert np.allclose(got.numpy(), expected, rtol=8e-16, atol=0, equal_nan=True)
    alone = torch.stack([function(number) for number in torch.from_numpy(x)])
    assert str(alone.tolist()) == str(got.tolist())  # whatever the neighbours are
    assert str(function(torch.from_numpy(x)[::2]).tolist()) == str(got[::2].tolist())
    assert math.copysign(1, torch.erfinv(torch.tensor(-0.0, dtype=torch.float64)).item()) == -1


def test_atan2_to_a_unit():
    generator = np.random.default_rng(SEED)
    y, x = (generator.normal(size=40000) * 10.0 ** generator.integers(-5, 6, 40000) for _ in "yx")
    got = torch.atan2(torch.from_numpy(y), torch.from_numpy(x)).numpy()
    if np.finfo(np.longdouble).nmant >= 63:
        exact = np.arctan2(y.astype(np.longdouble), x.astype(np.longdouble))
        assert (np.abs(got - exact) / np.spacing(np.abs(got))).max() <= 0.9
    ends = [0.0, -0.0, 1.0, -1.0, 5e-324, 1e-310, -1e-200, 1e160, 1.7e308, math.inf, -math.inf, math.nan]
    a, b = np.array(list(itertools.product(ends, ends))).T.copy()
    got, expected = torch.atan2(torch.from_numpy(a), torch.from_numpy(b)).numpy(), np.arctan2(a, b)
    assert np.allclose(got, expected, rtol=4e-16, atol=0, equal_nan=True)
    assert (np.signbit(got) == np.signbit(expected))[~np.isnan(expected)].all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 2.0, 3.0, math.inf])
def test_distances_of_rows_that_fill_no_vector(p, dtype):
    """Pairs one by one, in groups and at the end of a row; the gradient against the one of all pairs."""
    for rows, length in ((2, 1), (5, 3), (9, 8), (14, 17)):
        x = np.random.default_rng(SEED).normal(size=(rows, length)).astype(dtype)
        x[1] = x[0]
        first, second = np.triu_indices(rows, 1)
        apart = np.abs(x[first].astype(np.float64) - x[second])
        expected = (
            (apart != 0).sum(1) if p == 0 else apart.max(1) if p == math.inf else (apart**p).sum(1) ** (1 / p)
        )
        ours = torch.from_numpy(x).requires_grad_()
        near = torch.pdist(ours, p)
        tolerance = 1e-5 if dtype is np.float32 else 1e-13
        assert np.allclose(near.detach().numpy(), expected, rtol=tolerance, atol=0)
        across = torch.cdist(ours, ours, p, compute_mode="donot_use_mm_for_euclid_dist")
        assert np.allclose(across.detach().numpy()[first, second], expected, rtol=tolerance, atol=0)
        gradient = torch.autograd.grad(near, ours, torch.arange(len(first)).to(ours.dtype))[0]
        weights = torch.zeros(rows, rows, dtype=ours.dtype)
        weights[torch.from_numpy(first), torch.from_numpy(second)] = torch.arange(len(first)).to(ours.dtype)
        other = torch.autograd.grad(across, ours, weights)[0]
        assert torch.allclose(gradient, other, rtol=tolerance * 10, atol=tolerance * len(first) ** 2)


def test_infinite_and_missing_distances():
    x = torch.tensor([[0.0, -math.inf], [1.0, math.inf], [2.0, math.nan]], requires_grad=True)
    assert str(torch.pdist(x, math.inf).tolist()) == "[inf, nan, nan]"
    assert str(torch.pdist(x, 1).tolist()) == "[inf, nan, nan]"
    slopes = torch.autograd.grad(torch.pdist(x, 1)[0], x)[0]
    assert str(slopes.tolist()) == "[[-1.0, nan], [1.0, nan], [0.0, nan]]"
    assert torch.autograd.grad(torch.pdist(x[:2], 1), x)[0][:2].tolist() == [[-1.0, -1.0], [1.0, 1.0]]


@pytest.mark.parametrize("rows", [1, 3, 4, 7, 8, 13, 64, 65, 200])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int16, np.bool_])
def test_columns_of_any_height(rows, dtype):
    generator = np.random.default_rng(SEED)
    for width in (17, 40, 515, 1030):
        x = generator.integers(-3, 4, (rows, width + 3)).astype(dtype)
        for part in (x, x[:, 1:-2], x[::2]):
            ours = torch.from_numpy(x)
            ours = ours[:, 1:-2] if part.shape[1] == width else ours[::2] if len(part) != rows else ours
            assert ours.sum(0).tolist() == part.sum(0).tolist()
            assert ours.amax(0).tolist() == part.max(0).tolist()
            assert torch.count_nonzero(ours, 0).tolist() == np.count_nonzero(part, 0).tolist()
            if dtype in (np.float32, np.float64):
                ends = np.where(part == 0, 1, part)[:12]
                assert torch.from_numpy(ends.copy()).prod(0).tolist() == ends.prod(0).tolist()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_products_are_formed_in_double(dtype):
    """Each lane by itself goes beyond the largest float, or falls below the smallest."""
    x = torch.tensor([2.0**12, 2.0**-12] * 40, dtype=dtype)
    assert x.prod().item() == 1 and x.reshape(20, 4).prod().item() == 1
    assert x.reshape(40, 2).prod(0).tolist() == [math.inf, 0.0]
    turns = x.reshape(80, 1) ** torch.where(torch.arange(80) < 40, 1, -1)[:, None].to(dtype)
    assert turns.expand(80, 37).contiguous().prod(0).tolist() == [1.0] * 37


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "complex64", "int64", "bool"])
def test_a_single_number_beside_a_tensor(dtype):
    """Whatever its shape, and wherever it stands, it acts as a tensor full of it."""
    dtype = getattr(torch, dtype)
    x = (torch.arange(1, 13).view(3, 4) * 7 % 5).to(dtype)
    names = ["add", "mul", "eq"]
    if dtype not in (torch.bool, torch.complex64):
        names += ["sub", "div", "atan2"]
    for name in names:
        call = getattr(torch, name) if not (name in ("div", "atan2") and dtype == torch.int64) else torch.sub
        for one in (torch.tensor(3), torch.tensor([3]), torch.tensor([[3]])):
            one = one.to(dtype)
            full = torch.full((3, 4), 3).to(dtype)
            for number in (one, one.expand(3, 4)):
                for got, want in ((call(x, number), call(x, full)), (call(number, x), call(full, x))):
                    assert torch.equal(got, want) and got.dtype == want.dtype, name
                    assert got.stride() == (4, 1) and got.is_contiguous()
            turned = x.t().contiguous().t()
            assert torch.equal(call(turned, one), call(x, full)) and call(turned, one).stride() == (1, 3)
    empty = torch.empty(0, 3)
    assert (empty * torch.tensor(2.0)).shape == (0, 3)
    assert (torch.ones(1, 4) + torch.ones(1, 1, 1)).shape == (1, 1, 4)
    assert (torch.ones(2) + torch.tensor(1.0, dtype=torch.float64)).dtype == torch.float32
    assert (torch.ones(2) + torch.ones(1, dtype=torch.float64)).dtype == torch.float64


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "bfloat16", "float32", "float64", "complex128"])
def test_rows_of_any_length_beside_a_column_and_a_slice(dtype):
    # Short rows are computed several at once, their operands copied or written out by vectors that overlap.
    torch.manual_seed(0)
    dtype = getattr(torch, dtype)
    for width in (
        1,
        2,
        3,
        5,
        7,
        8,
        9,
        15,
        16,
        17,
        31,
        33,
        48,
        49,
        63,
        64,
        100,
        127,
        128,
        129,
        200,
        255,
        256,
        257,
    ):
        x, y = (torch.randint(0, 2, (2000 // width + 7, width + 2)).to(dtype) for _ in range(2))
        column, row = y[:, :1], y[0, 1:-1]
        plain = [x[:, 1:-1].contiguous(), y[:, 2:].contiguous()]
        whole_column, whole_row = (t.expand(plain[0].shape).contiguous() for t in (column, row))
        for result, expected in (
            (x[:, 1:-1] * column, plain[0] * whole_column),
            (plain[0] * column, plain[0] * whole_column),
            (column + plain[0], whole_column + plain[0]),
            (plain[0] + row, plain[0] + whole_row),
            (x[:, 1:-1] == y[:, 2:], plain[0] == plain[1]),
            (
                torch.where(x[:, 1:-1] != 0, column, y[:, 2:]),
                torch.where(plain[0] != 0, whole_column, plain[1]),
            ),
        ):
            assert result.equal(expected), width
        written = x.clone()
        written[:, 1:-1].mul_(column)
        assert written[:, 1:-1].equal(plain[0] * whole_column) and written[:, 0].equal(x[:, 0])
