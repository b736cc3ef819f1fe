"""Work large enough for the loops that small samples never reach: tiles, streamed results, filters."""

import itertools
import math
import os

import numpy as np
import pytest

import rushlight as torch


@pytest.fixture(params=[1, 2])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield
    torch.set_num_threads(before)


def spelled_out(x, order):
    """x.permute(order) as a list, by index arithmetic alone."""
    flat, strides = x.contiguous().flatten().tolist(), [math.prod(x.shape[d + 1 :]) for d in range(x.ndim)]
    places = itertools.product(*(range(x.shape[d]) for d in order))
    return [flat[sum(i * strides[d] for i, d in zip(place, order, strict=True))] for place in places]


DTYPES = [torch.uint8, torch.bfloat16, torch.float32, torch.float64, torch.complex128]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    ("shape", "order"),
    [
        ((67, 130), (1, 0)),
        ((3, 70, 33), (0, 2, 1)),
        ((5, 33, 40), (2, 1, 0)),
        ((9, 4, 70, 2), (0, 2, 3, 1)),  # two elements side by side: a tile is one row
        ((2, 3, 40, 5, 7), (4, 0, 3, 1, 2)),
    ],
)
def test_transposed_operands(shape, order, dtype, threads):
    torch.manual_seed(0)
    x = torch.randint(0, 100, shape).to(dtype)
    turned = x.permute(order)
    assert turned.contiguous().flatten().tolist() == spelled_out(x, order)
    other = torch.randint(0, 100, turned.shape).to(dtype)
    expected = turned.contiguous() + other
    assert torch.equal(turned + other, expected)
    assert torch.equal(other + turned, expected)
    into = torch.zeros(shape, dtype=dtype)
    into.permute(order).copy_(other)
    assert torch.equal(into.permute(order).contiguous(), other)
    sliced = x[..., 1:].movedim(-1, 0)
    assert torch.equal(sliced * 1, sliced.contiguous())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    ("shape", "other"),
    [
        ((700, 7), (7,)),
        ((700, 7), (700, 1)),
        ((90, 5, 30), (5, 1)),
        ((90, 5, 30), (90, 1, 30)),
        ((9, 30, 5, 3), (9, 1, 5, 1)),
        ((13, 12, 11, 10), (13, 1, 11, 1)),
        ((40, 128), (128,)),
        ((500, 2), (500, 1)),
        ((30, 1, 30, 1), (1, 30, 1, 30)),
    ],
)
def test_short_rows(shape, other, dtype, threads):
    """Many short rows at once give what each gives, with either operand broadcast, and in place."""
    torch.manual_seed(0)
    a, b = torch.randint(0, 100, shape).to(dtype), torch.randint(0, 100, other).to(dtype)
    x, y = torch.broadcast_tensors(a, b)
    expected = [p + q for p, q in zip(x.flatten().tolist(), y.flatten().tolist(), strict=True)]
    if dtype == torch.uint8:
        expected = [n % 256 for n in expected]
    if dtype != torch.bfloat16:
        assert (a + b).flatten().tolist() == expected == (b + a).flatten().tolist()
    same = x.contiguous() == y.contiguous()
    assert torch.equal(torch.where(a == b, a, b), torch.where(same, x.contiguous(), y.contiguous()))
    if x.shape == a.shape:
        written = a.clone()
        assert torch.equal(written.add_(b), a + b)
        apart = torch.zeros((*shape[:-1], shape[-1] + 1), dtype=dtype)[..., 1:]
        assert torch.equal(apart.copy_(b), y)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, *DTYPES[2:]], ids=str)
@pytest.mark.parametrize("length", [1, 2, 3, 5, 17, 30, 600])
def test_flipped_rows(length, dtype, threads):
    x = torch.arange(200 * length).to(dtype).reshape(4, 25, 2, length)
    for image in (x, x.permute(0, 3, 1, 2), x[:, 1:, :, : max(1, length - 1)]):
        for dims in itertools.chain.from_iterable(itertools.combinations(range(4), n) for n in range(5)):
            index = [range(n - 1, -1, -1) if d in dims else range(n) for d, n in enumerate(image.shape)]
            expected = image[torch.meshgrid(*(torch.tensor(list(i)) for i in index), indexing="ij")]
            assert torch.equal(image.flip(dims), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int8], ids=str)
def test_results_stored_past_the_caches(dtype, threads):
    """What is large gives what its parts give, whole blocks and rests alike."""
    count = (1 << 23) // torch.empty(0, dtype=dtype).itemsize + 77
    x = (torch.arange(count) % 101).to(dtype)
    for f in (lambda x: x + x, lambda x: x * 2, torch.clone, torch.neg, torch.abs):
        result = f(x)
        for start in (0, 4096, count // 2, count - 100):
            assert torch.equal(result[start : start + 100], f(x[start : start + 100]))
    assert torch.equal(x + x, x * 2)
    assert int((x.clone() != x).sum()) == 0
    one = torch.ones((), dtype=dtype).expand(count)
    assert torch.equal(one * x, x)


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("k", [1, 5, 64, 500])
def test_topk_of_long_lines(k, largest):
    torch.manual_seed(1)
    x = torch.randint(0, 3000, (3, 5000)).float()
    x[1, 17] = math.nan
    values, indices = x.topk(k, largest=largest)
    expected = x.sort(stable=True, descending=largest)
    assert torch.equal(values.nan_to_num(-1), expected.values[:, :k].nan_to_num(-1))
    assert torch.equal(x.gather(1, indices).nan_to_num(-1), values.nan_to_num(-1))


@pytest.mark.parametrize(
    ("m", "n", "k"),
    [(700, 333, 1), (1100, 200, 7), (600, 500, 64), (33, 2100, 1030), (16, 2048, 1100), (520, 260, 65)],
)
def test_products_of_few_terms_or_rows(m, n, k, threads):
    torch.manual_seed(2)
    a, b = torch.randn(m, k, dtype=torch.float64), torch.randn(k, n, dtype=torch.float64)
    exact = a @ b
    for left in (a.float(), a.float().mT.contiguous().mT):
        for right in (b.float(), b.float().mT.contiguous().mT):
            assert float((left @ right - exact).abs().max()) < 1e-5 * math.sqrt(k) * 4


def test_remainders_are_exact():
    torch.manual_seed(3)
    x, y = torch.randn(5000) * 50, torch.randn(5000)
    x[:6] = torch.tensor([math.inf, -math.inf, math.nan, 1e30, -0.0, 3.0])
    y[5], y[6], y[7] = math.inf, 0.0, -math.inf
    for value, a, b in zip(torch.fmod(x, y).tolist(), x.tolist(), y.tolist(), strict=True):
        if math.isinf(a) or math.isnan(a) or b == 0:
            assert math.isnan(value)
        else:
            assert value == math.fmod(a, b)
            assert math.copysign(1, value) == math.copysign(1, a)


@pytest.mark.skipif(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") < 2 << 30, reason="needs 2 GB")
def test_a_matrix_too_wide_for_the_best_workspace():
    """LAPACK counts what it would like to have in 32 bits, and here it is more."""
    factors, _ = torch.geqrf(torch.ones(()).expand(2, 1 << 26))
    torch.testing.assert_close(factors[:, -1], torch.tensor([-math.sqrt(2), 0]))


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("width", [1, 7, 64, 1025])
def test_rows_that_are_turned_or_moved_on(dtype, width):
    x = np.arange(3 * width).astype(dtype).reshape(3, width)
    ours = torch.tensor(x)
    for shift in (1, 3, -2, width // 2):
        assert np.array_equal(ours.roll(shift, 1).numpy(), np.roll(x, shift, 1))
    assert np.array_equal(ours.flip(1).numpy(), x[:, ::-1])
    assert np.array_equal(ours.flip(0, 1).numpy(), x[::-1, ::-1])


@pytest.mark.parametrize("counts", [[], [0], [3], [0, 2, 0, 0, 5, 1, 0], [1000, 0, 1]])
def test_repeats_by_counts(counts):
    values = np.arange(len(counts)) * 10
    repeats = torch.tensor(counts, dtype=torch.int64)
    assert torch.tensor(values).repeat_interleave(repeats).tolist() == np.repeat(values, counts).tolist()
    which = torch.repeat_interleave(repeats.int())
    assert which.dtype == torch.int32 and which.tolist() == np.repeat(range(len(counts)), counts).tolist()


@pytest.mark.parametrize("n, r", [(0, 2), (1, 2), (5, 1), (6, 3), (4, 4), (3, 5)])
def test_combinations_are_those_of_itertools(n, r):
    for repeated in (False, True):
        choose = itertools.combinations_with_replacement if repeated else itertools.combinations
        ours = torch.combinations(torch.arange(n) * 2, r, repeated)
        assert ours.shape == (len(list(choose(range(n), r))), r)
        assert ours.tolist() == [list(row) for row in choose(range(0, 2 * n, 2), r)]


def test_bytes_that_are_neither_true_nor_false_are_negated_like_true():
    bools = torch.arange(200, dtype=torch.uint8).view(torch.bool)
    assert (~bools).tolist() == bools.logical_not().tolist() == [True] + [False] * 199


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "amax", "var", "argmax", "count_nonzero"])
@pytest.mark.parametrize("shape", [(3, 5), (300, 900), (7, 9000), (9000, 7)])
def test_reductions_of_expanded_elements(name, shape, threads):
    rows, columns = shape
    base = torch.arange(rows).add(1.0).div(rows)
    for x in (base[:1].expand(shape), base[:, None].expand(shape), base[0].expand(columns, rows).t()):
        for dim in (None, 0, 1):
            options = () if dim is None else (dim,)
            found, whole = (getattr(t, name)(*options) for t in (x, x.contiguous()))
            assert torch.allclose(found.double(), whole.double(), rtol=1e-5, equal_nan=True)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("width", [7, 8, 17, 33, 196, 1030])
def test_one_number_for_a_row(width, dtype):
    x = (torch.arange(5 * width) % 23 + 1).reshape(5, width).to(dtype)
    y = (torch.arange(5) + 2).reshape(5, 1).to(dtype)
    whole = y.expand(5, width).contiguous()
    for f in (torch.add, torch.sub, torch.mul, torch.eq):
        assert torch.equal(f(x, y), f(x, whole)) and torch.equal(f(y, x), f(whole, x))
    shifted = x.clone()[:, 1:]  # in place, with a last vector that overlaps the one before it
    assert torch.equal(shifted.mul_(y), x[:, 1:] * whole[:, 1:])
    if dtype.is_floating_point or dtype.is_complex:
        assert torch.equal(torch.addcmul(x, y, y), torch.addcmul(x, whole, whole))
        assert torch.equal(torch.lerp(x, y, y), torch.lerp(x, whole, whole))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.bool, torch.int8, torch.int16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("length", [1, 7, 8, 31, 100, 5000])
def test_sums_of_narrow_numbers(length, dtype):
    x = (torch.arange(3 * length) * 37 % 251 - (100 if dtype.is_signed else 0)).reshape(3, length).to(dtype)
    whole = x.double()
    for dim in (0, 1, (0, 1)):
        total = x.sum(dim, dtype=torch.float32 if dtype.is_floating_point else None)
        assert torch.equal(total.double(), whole.sum(dim))
        assert torch.equal(x.count_nonzero(dim), whole.count_nonzero(dim))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(
    ("m", "n", "k"), [(1, 1, 5), (4, 1, 4), (1, 3, 9), (16, 1, 16), (30, 1, 3), (7, 1, 40)]
)
def test_many_small_products_with_vectors(m, n, k, dtype):
    torch.manual_seed(0)
    a, b = torch.randn(50, m, k).to(dtype), torch.randn(50, k, n).to(dtype)
    exact = (a.double().unsqueeze(3) * b.double().unsqueeze(1)).sum(2)
    for left in (a, a.mT.contiguous().mT, a[:1].expand(50, m, k)):
        expected = exact if left.stride(0) else (left.double().unsqueeze(3) * b.double().unsqueeze(1)).sum(2)
        torch.testing.assert_close((left @ b).double(), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(
        torch.baddbmm(exact.to(dtype), a, b, beta=2, alpha=3).double(), 5 * exact, rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.complex128], ids=str)
@pytest.mark.parametrize("width", [1, 3, 70, 1025, 3000])
def test_lines_that_are_rolled(width, dtype, threads):
    x = (torch.arange(40 * width) % 201).reshape(40, width).to(dtype)
    lines = x.tolist()
    for shift in (1, 2, 30, -1, width + 1):
        by = shift % width
        assert x.roll(shift, 1).tolist() == [line[width - by :] + line[: width - by] for line in lines]
