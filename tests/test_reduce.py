"""Reductions, scans and sorting where they are awkward: ties, zeros, NaN, nothing at all, very many elements.

What is ordinary about them is checked from the table of samples (test_ops.py)."""

import math
import pickle

import pytest
from gradcheck import gradcheck, gradgradcheck

import rushlight as torch

NAN, INF = math.nan, math.inf


def gradient(function, *values):
    x = torch.tensor(values, dtype=torch.float64, requires_grad=True)
    result = function(x)
    (result[0] if isinstance(result, tuple) else result).sum().backward()
    return x.grad.tolist()


def same(found, expected):
    return all(
        math.isclose(a, b, abs_tol=1e-12) or (a != a and b != b) for a, b in zip(found, expected, strict=True)
    )


@pytest.mark.parametrize(
    ("function", "values", "expected"),
    [
        # full max() and amax() share the gradient among equals, max(dim) gives it to the index
        (lambda x: x.max(), (3, 1, 3, 0), (0.5, 0, 0.5, 0)),
        (lambda x: x.amax(), (3, 1, 3, 0), (0.5, 0, 0.5, 0)),
        (lambda x: x.max(0), (3, 1, 3, 0), (1, 0, 0, 0)),
        (lambda x: x.min(), (1, 1, 3, 1), (1 / 3, 1 / 3, 0, 1 / 3)),
        (lambda x: x.aminmax().max, (3, 1, 3, 0), (0.5, 0, 0.5, 0)),
        (lambda x: x.max(), (1, NAN, 3, NAN), (0, 0.5, 0, 0.5)),
        (lambda x: x.median(), (1, 3, 3, 3, 0), (0, 1 / 3, 1 / 3, 1 / 3, 0)),
        (lambda x: x.cummax(0), (1, 1, 0, 2), (1, 2, 0, 1)),
        # products with zeros
        (lambda x: x.prod(), (0, 2, 3), (6, 0, 0)),
        (lambda x: x.prod(), (0, 0, 3), (0, 0, 0)),
        (lambda x: x.prod(0), (4, 0, 3), (0, 12, 0)),
        (lambda x: x.cumprod(0), (2, 0, 3, 0, 5), (1, 8, 0, 0, 0)),
        # kinks of norms, and spreads of nothing
        (lambda x: x.norm(), (0, 0), (0, 0)),
        (lambda x: x.norm(1), (0, -2), (0, -1)),
        (lambda x: x.norm(3), (0, 0), (0, 0)),
        (lambda x: x.norm(0.5), (0, 2), (0, 1)),
        (lambda x: x.norm(INF), (2, -2, 1), (0.5, -0.5, 0)),
        (lambda x: x.norm(-INF), (2, -2, 1), (0, 0, 1)),
        (lambda x: x.std(), (2, 2, 2), (0, 0, 0)),
        (lambda x: x.var(correction=3), (2, 1), (INF, INF)),
        (lambda x: x.nansum(), (NAN, 2), (0, 1)),
        (lambda x: x.nanmean(), (NAN, 2, 4), (0, 0.5, 0.5)),
        # logarithms of sums that are zero or infinite
        (lambda x: x.logsumexp(0), (-INF, 1), (0, 1)),
        (lambda x: x.logsumexp(0), (-INF, -INF), (NAN, NAN)),
        (lambda x: x.softmax(0)[0], (-INF, 2), (0, 0)),
    ],
)
@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
def test_gradient_at_awkward_points(function, values, expected):
    assert same(gradient(function, *values), expected)


SMOOTH = {
    "prod with zero": (lambda x: x.prod(), (0.0, 2.0, 3.0, -1.0)),
    "prod with two zeros": (lambda x: x.prod(), (0.0, 2.0, 0.0, -1.0)),
    "cumprod with zeros": (lambda x: x.cumprod(0), (2.0, 0.0, 3.0, 0.0)),
    "cumsum": (lambda x: x.cumsum(0) ** 2, (2.0, 0.5, 3.0)),
    "logcumsumexp": (lambda x: x.logcumsumexp(0) * 2 - x, (2.0, 0.5, 3.0, -20.0)),
    "softmax": (lambda x: x.softmax(0) ** 2, (2.0, 0.5, 3.0)),
    "log_softmax": (lambda x: x.log_softmax(0) ** 2, (2.0, 0.5, 3.0)),
    "logsumexp": (lambda x: x.logsumexp(0) ** 2, (2.0, 0.5, 3.0)),
    "std": (lambda x: x.std() ** 3, (2.0, 0.5, 3.0)),
    "var_mean": (lambda x: sum(torch.var_mean(x, correction=0)), (2.0, 0.5, 3.0)),
    "std_mean": (lambda x: sum(torch.std_mean(x)), (2.0, 0.5, 3.0)),
    "norm 2": (lambda x: x.norm() ** 3, (2.0, 0.5, 3.0)),
    "norm 3": (lambda x: x.norm(3), (2.0, -0.5, 3.0)),
    "norm 1.5": (lambda x: x.norm(1.5), (2.0, -0.5, 3.0)),
    "sort": (lambda x: x.sort()[0] * torch.arange(3), (2.0, 0.5, 3.0)),
    "topk": (lambda x: x.topk(2)[0] ** 2, (2.0, 0.5, 3.0)),
    "kthvalue": (lambda x: x.kthvalue(2)[0] ** 2, (2.0, 0.5, 3.0)),
    "median": (lambda x: x.median(0)[0] ** 2, (2.0, 0.5, 3.0)),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_first_and_second_derivatives(name):
    function, values = SMOOTH[name]
    x = torch.tensor(values, dtype=torch.float64)
    gradcheck(torch, function, [x])
    gradgradcheck(torch, function, [x], tolerance=10)


@pytest.mark.parametrize("order", [0.5, 1.5, 2])
def test_norm_at_zero_has_no_second_derivative(order):
    x = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    (g,) = torch.autograd.grad(x.norm(order), x, create_graph=True)
    assert g.tolist() == [0.0, 0.0, 0.0]
    (h,) = torch.autograd.grad(g.sum(), x)
    assert h.isnan().all()


def test_norm_with_a_zero_has_second_derivatives_above_order_two():
    x = torch.tensor([0.0, 1.0, 2.0], dtype=torch.float64)
    gradgradcheck(torch, lambda x: x.norm(3.5), [x], tolerance=10)


NODES = {
    "SumBackward0": lambda x: x.sum(),
    "SumBackward1": lambda x: x.sum(0),
    "MeanBackward0": lambda x: x.mean(),
    "MeanBackward1": lambda x: x.mean((0, 1)),
    "ProdBackward0": lambda x: x.prod(),
    "ProdBackward1": lambda x: x.prod(1),
    "MaxBackward0": lambda x: x.max(0)[0],
    "MaxBackward1": lambda x: x.max(),
    "MinBackward0": lambda x: x.min(0)[0],
    "AmaxBackward0": lambda x: x.amax(0),
    "AminmaxBackward0": lambda x: x.aminmax()[1],
    "VarBackward0": lambda x: x.var(0),
    "StdBackward0": lambda x: x.std(),
    "VarMeanBackward0": lambda x: torch.var_mean(x)[1],
    "LinalgVectorNormBackward0": lambda x: x.norm(),
    "NansumBackward0": lambda x: x.nansum(),
    "CumsumBackward0": lambda x: x.cumsum(0),
    "CumprodBackward0": lambda x: x.cumprod(0),
    "CummaxBackward0": lambda x: x.cummax(0)[0],
    "LogcumsumexpBackward0": lambda x: x.logcumsumexp(0),
    "LogsumexpBackward0": lambda x: x.logsumexp(0),
    "SoftmaxBackward0": lambda x: x.softmax(0),
    "LogSoftmaxBackward0": lambda x: x.log_softmax(0),
    "SortBackward0": lambda x: x.sort()[0],
    "TopkBackward0": lambda x: x.topk(1)[0],
    "KthvalueBackward0": lambda x: x.kthvalue(1)[0],
    "MedianBackward0": lambda x: x.median(),
    "MedianBackward1": lambda x: x.median(0)[0],
    "ModeBackward0": lambda x: x.mode()[0],
}


@pytest.mark.parametrize("name", NODES)
def test_node_name(name):
    assert NODES[name](torch.ones(2, 3, requires_grad=True)).grad_fn.name() == name


def test_named_results():
    x = torch.tensor([[1.0, 5.0], [3.0, 2.0]])
    result = x.max(1)
    assert repr(result) == "torch.return_types.max(\nvalues=tensor([5., 3.]),\nindices=tensor([1, 0]))"
    values, indices = result
    assert result.values is values and result.indices is indices and result[1] is indices
    assert isinstance(result, tuple) and type(result) is torch.return_types.max
    copy = pickle.loads(pickle.dumps(result))
    assert type(copy) is type(result) and copy.values.tolist() == [5.0, 3.0]
    assert x.aminmax().min.item() == 1 and x.aminmax().max.item() == 5
    assert torch.sort(x).indices.tolist() == [[0, 1], [1, 0]]


def test_out():
    x = torch.tensor([[1.0, 5.0], [3.0, 2.0]])
    out = torch.empty(2)
    assert torch.sum(x, 0, out=out) is out and out.tolist() == [4.0, 7.0]
    values, indices = torch.empty(2), torch.empty(2, dtype=torch.int64)
    result = torch.max(x, 1, out=(values, indices))
    assert result.values is values and values.tolist() == [5.0, 3.0] and indices.tolist() == [1, 0]
    assert torch.cumsum(x, 1, out=torch.empty(2, 2)).tolist() == [[1.0, 6.0], [3.0, 5.0]]


def test_nan_and_infinity():
    x = torch.tensor([1.0, NAN, 3.0, NAN])
    assert x.argmax().item() == x.argmin().item() == 1
    assert math.isnan(x.max().item()) and math.isnan(x.amin().item())
    assert x.cummax(0).indices.tolist() == [0, 1, 1, 3]
    assert x.sort().indices.tolist() == [0, 2, 1, 3]
    assert x.sort(descending=True).indices.tolist() == [1, 3, 2, 0]
    assert x.nansum().item() == 4 and x.nanmedian().item() == 1 and x.median(0).indices.item() == 1
    assert torch.tensor([INF, 1.0]).sum().item() == INF
    assert math.isnan(torch.tensor([INF, -INF], dtype=torch.float64).sum().item())
    assert torch.tensor([1000.0, 1000.0]).logsumexp(0).item() == pytest.approx(1000 + math.log(2))
    assert torch.tensor([INF, 1.0]).logsumexp(0).item() == INF


def test_first_of_equals():
    x = torch.tensor([2, 7, 7, 1, 1])
    assert x.argmax().item() == 1 and x.argmin().item() == 3
    assert x.max(0).indices.item() == 1 and x.topk(2).indices.tolist() == [1, 2]
    assert x.cummax(0).indices.tolist() == [0, 1, 2, 2, 2]  # but the last one here
    assert x.mode() == (1, 4)
    for n in (100, 5000):  # two ways of sorting
        x = torch.arange(n) % 7
        order = x.argsort()
        pairs = list(zip(x[order].tolist(), order.tolist()))
        assert pairs == sorted(pairs)
        order = x.argsort(descending=True)
        pairs = [(-value, at) for value, at in zip(x[order].tolist(), order.tolist())]
        assert pairs == sorted(pairs)


def test_empty():
    x = torch.zeros(0, 3)
    assert x.sum().item() == 0 and x.prod().item() == 1 and x.all().item() and not x.any().item()
    assert x.sum(0).tolist() == [0.0] * 3 and x.sum(1).shape == (0,) and x.amax(1).shape == (0,)
    assert math.isnan(x.mean().item()) and x.logsumexp(0).tolist() == [-INF] * 3
    assert x.cumsum(0).shape == (0, 3) and x.softmax(1).shape == (0, 3) and x.sort(0).values.shape == (0, 3)
    assert x.max(1).values.shape == (0,) and x.norm().item() == 0
    y = torch.zeros(0, 3, requires_grad=True)
    (y.prod() + y.sum() + y.cumprod(0).sum()).backward()
    assert y.grad.shape == (0, 3)


def test_integers_wrap_and_widen():
    x = torch.full((300,), 100, dtype=torch.int8)
    assert x.sum().item() == 30000 and x.sum().dtype == torch.int64
    assert x.sum(dtype=torch.int8).item() == (30000 + 128) % 256 - 128
    assert torch.full((3,), 2**62).sum().item() == 3 * 2**62 - 2**64
    assert torch.tensor([True, True]).sum().item() == 2 and torch.tensor([3, 4]).prod().item() == 12
    assert torch.tensor([1, 2], dtype=torch.uint8).any().dtype == torch.uint8
    assert x.cumsum(0)[-1].item() == 30000 and x.clone().cumsum_(0).dtype == torch.int8


def test_many_elements_stay_accurate():
    n = 1_000_000
    x = torch.full((n,), 0.1)
    exact = 0.100000001490116119384765625 * n
    assert abs(x.sum().item() - exact) <= exact * 2e-7
    assert x.view(1000, 1000).sum(0).tolist() == pytest.approx([exact / 1000] * 1000, rel=2e-7)
    y = x + 1000
    y[::2] += 1  # a variance of about 1/4 far from zero
    assert y.var(correction=0).item() == pytest.approx(0.25, rel=1e-4)
    assert x.double().sum().item() == pytest.approx(exact, rel=1e-15)


@pytest.mark.parametrize("shape", [(500_000,), (3, 200_000), (200_000, 3), (700, 700)])
def test_threads_do_not_change_results(shape):
    torch.manual_seed(0)
    x = torch.randn(shape)
    functions = (
        lambda: x.sum(),
        lambda: x.sum(0),
        lambda: x.sum(-1),
        lambda: x.var(0),
        lambda: x.norm(),
        lambda: x.argmax(),
        lambda: x.softmax(-1),
        lambda: x.cumsum(0),
        lambda: x.logsumexp(0),
    )
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = [f() for f in functions]
        torch.set_num_threads(4)
        assert all(torch.equal(a, f()) for a, f in zip(alone, functions))
    finally:
        torch.set_num_threads(before)


def test_layouts():
    x = torch.arange(120.0).view(2, 3, 4, 5)
    for y in (x.permute(3, 1, 0, 2), x[:, ::2, :, 1::2], x.select(1, 0).unsqueeze(1).expand(2, 3, 4, 5)):
        dense = y.contiguous()
        for dim in ((0,), (1,), (0, 2), (1, 3), (0, 1, 2, 3)):
            assert torch.equal(y.sum(dim), dense.sum(dim)) and torch.equal(y.amax(dim), dense.amax(dim))
            assert torch.allclose(y.var(dim, correction=0), dense.var(dim, correction=0))
        for dim in range(4):
            assert torch.equal(y.argmin(dim), dense.argmin(dim)) and torch.equal(
                y.cumsum(dim), dense.cumsum(dim)
            )
            assert torch.equal(y.softmax(dim), dense.softmax(dim)) and torch.equal(
                y.argsort(dim), dense.argsort(dim)
            )


def test_refusals():
    x = torch.ones(3, 4)
    with pytest.raises(
        IndexError, match=r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 2\)"
    ):
        x.sum(2)
    with pytest.raises(RuntimeError, match="dim 0 appears multiple times in the list of dims"):
        x.sum((0, -2))
    with pytest.raises(
        RuntimeError, match=r"max\(\): Expected reduction dim to be specified for input.numel\(\) == 0"
    ):
        torch.zeros(0).max()
    with pytest.raises(IndexError, match=r"max\(\): Expected reduction dim 0 to have non-zero size"):
        torch.zeros(0, 3).max(0)
    with pytest.raises(RuntimeError, match="could not infer output dtype"):
        torch.arange(3).mean()
    with pytest.raises(RuntimeError, match="std and var only support floating point and complex dtypes"):
        torch.arange(3).var()
    with pytest.raises(TypeError):
        x.sum("rows")
    with pytest.raises(TypeError):
        x.sum(0, 1)
    with pytest.raises(RuntimeError, match="selected index k out of range"):
        x.topk(5)
    with pytest.warns(UserWarning, match="degrees of freedom is <= 0"):
        torch.ones(1).var()


def test_meta_has_shapes():
    x = torch.empty(3, 4, device="meta")
    assert x.sum(0).shape == (4,) and x.max(1).indices.shape == (3,) and x.softmax(0).device.type == "meta"
    assert x.var(dim=1, keepdim=True).shape == (3, 1) and x.topk(2).values.shape == (3, 2)


def test_diff():
    x = torch.tensor([1, 4, 9, 16])
    assert x.diff().tolist() == [3, 5, 7] and x.diff(n=2).tolist() == [2, 2] and x.diff(n=9).tolist() == []
    assert x.diff(prepend=torch.tensor([0])).tolist() == [1, 3, 5, 7]
    assert torch.tensor([True, False, False]).diff().tolist() == [True, False]


def test_differences_of_any_order_end():
    assert torch.diff(torch.ones(5), 2**62).shape == (0,)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("magnitude", [1e-38, 1e-25, 1.0, 1e25, 1e37])
@pytest.mark.parametrize("dim", [0, 1, (0, 1)])
def test_squares_of_deviations_may_be_beyond_the_type(dtype, magnitude, dim):
    torch.manual_seed(0)
    x = ((torch.randn(150, 40, dtype=torch.float64) + 1) * magnitude).to(dtype)
    exact = x.double().std(dim)
    assert ((x.std(dim).double() - exact) / exact).abs().max() <= torch.finfo(dtype).eps


@pytest.mark.parametrize(
    "average",
    [
        lambda x: x.mean(),
        lambda x: x.mean(0),
        lambda x: x.mean(1, keepdim=True),
        lambda x: x.mean((0, 1)),
        lambda x: torch.nn.functional.adaptive_avg_pool1d(x, 1),
    ],
)
def test_a_hook_may_write_into_the_gradient_of_a_mean(average):
    x = torch.ones(2, 3, requires_grad=True)
    y = x * 1
    y.register_hook(lambda gradient: gradient.mul_(2))
    average(y).sum().backward()
    (plain,) = torch.autograd.grad(average(x).sum(), x)
    assert torch.equal(x.grad, 2 * plain) and torch.equal(plain.zero_(), torch.zeros(2, 3))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bins_of_many_elements_are_those_between_the_edges(dtype):
    # Between even edges the bin is computed, then compared with its edges, on which many elements lie here.
    torch.manual_seed(0)
    dtype = getattr(torch, dtype)
    for bins, low, high in ((1, -1.0, 1.0), (10, -3.0, 2.5), (700, 0.1, 0.7), (100, 1e6, 1e6 + 2)):
        x = (torch.rand(2000, dtype=torch.float64) * 1.2 * (high - low) + low - 0.1 * (high - low)).to(dtype)
        weight = torch.rand(2000).to(dtype)
        edges = torch.histogram(x, bins, range=(low, high)).bin_edges
        x[:1000] = edges[torch.randint(0, bins + 1, (1000,))]
        x[1000:1003] = torch.tensor([math.inf, -math.inf, math.nan])
        inside = (x >= edges[0]) & (x <= edges[-1])
        found = (torch.searchsorted(edges, x[inside], right=True) - 1).clamp(max=bins - 1)
        result = torch.histogram(x, bins, range=(low, high))
        assert result.hist.equal(torch.bincount(found, minlength=bins).to(dtype))
        weighed = torch.histogram(x, bins, range=(low, high), weight=weight).hist
        torch.testing.assert_close(weighed, torch.bincount(found, weight[inside].double(), bins).to(dtype))
        assert torch.histogram(x, edges).hist.equal(result.hist)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["cummax", "cummin"])
def test_running_extremes_of_lines_of_any_length(name, dtype):
    # Long lines are looked at vector by vector; the last of equal elements wins, and so does the last NaN.
    torch.manual_seed(0)
    sign = 1 if name == "cummax" else -1
    for length in (1, 2, 7, 16, 31, 32, 33, 100, 257):
        x = torch.randint(-6, 6, (5, length)).to(getattr(torch, dtype))
        x[1] = torch.arange(length) * sign
        x[2] = torch.arange(length) * -sign
        x[3] = sign * math.inf
        x[4, length // 2 :: 5] = math.nan
        for lines in (x, x.t().contiguous().t()):
            values, indices = getattr(torch, name)(lines, 1)
            for row, found, places in zip(x.tolist(), values.tolist(), indices.tolist(), strict=True):
                best, where = row[0], 0
                for i, value in enumerate(row):
                    if value != value or sign * value >= sign * best:
                        best, where = value, i
                    assert where == places[i]
                    assert found[i] == best or (best != best and found[i] != found[i])
