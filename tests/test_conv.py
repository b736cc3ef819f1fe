"""Convolutions and pooling where the table of samples does not reach: every kernel, threads, large inputs."""

import itertools
import math
import os
import random
import subprocess
import sys

import numpy as np
import pytest

import rushlight as torch

F = torch.nn.functional


def convolved(x, w, stride, padding, dilation, groups):
    """conv2d by its definition, in double precision."""
    x, w = x.double(), w.double()
    n, c, _, _ = x.shape
    out, per_group, kh, kw = w.shape
    x = F.pad(x, (padding[1], padding[1], padding[0], padding[0]))
    height = (x.shape[2] - dilation[0] * (kh - 1) - 1) // stride[0] + 1
    width = (x.shape[3] - dilation[1] * (kw - 1) - 1) // stride[1] + 1
    total = torch.zeros(n, out, height, width, dtype=torch.float64)
    for i, j in itertools.product(range(kh), range(kw)):
        rows = slice(i * dilation[0], i * dilation[0] + (height - 1) * stride[0] + 1, stride[0])
        cols = slice(j * dilation[1], j * dilation[1] + (width - 1) * stride[1] + 1, stride[1])
        pixels = x[:, :, rows, cols].reshape(n, groups, c // groups, height, width)
        weights = w[:, :, i, j].reshape(groups, out // groups, per_group)
        term = torch.einsum("ngchw,goc->ngohw", pixels, weights)
        total = total + term.reshape(n, out, height, width)
    return total


def near(a, b, tolerance):
    scale = float(b.detach().abs().max()) + 1e-6
    return float((a.detach().double() - b.detach()).abs().max()) <= tolerance * scale


def check_convolution(rng, dtype, tolerance):
    """A random geometry: the result and the gradients of input and weights."""
    groups = rng.choice([1, 1, 2, 3])
    c, out = groups * rng.randint(1, 6), groups * rng.randint(1, 20)
    if rng.random() < 0.3:
        groups = out = c
    kernel, stride = [rng.randint(1, 4) for _ in "hw"], [rng.choice([1, 1, 2, 3]) for _ in "hw"]
    padding, dilation = [rng.randint(0, 3) for _ in "hw"], [rng.randint(1, 2) for _ in "hw"]
    size = [dilation[d] * (kernel[d] - 1) + 1 + rng.randint(0, 30) for d in range(2)]
    x, w = torch.randn(rng.randint(1, 4), c, *size), torch.randn(out, c // groups, *kernel)
    case = f"{tuple(x.shape)} {tuple(w.shape)} {stride} {padding} {dilation} {groups} {dtype}"
    settings = (tuple(stride), tuple(padding), tuple(dilation), groups)
    pairs = []
    for cast, function in ((dtype, lambda x, w: F.conv2d(x, w, None, *settings)), (torch.float64, None)):
        a, b = x.to(cast).requires_grad_(), w.to(cast).requires_grad_()
        y = function(a, b) if function else convolved(a, b, *settings)
        g = torch.arange(y.numel()).remainder(7).reshape(y.shape).to(y.dtype) - 3
        pairs.append([y, *torch.autograd.grad(y, (a, b), g)])
    for what, ours, exact in zip(("result", "input", "weight"), *pairs, strict=True):
        assert ours.dtype == dtype
        assert near(ours, exact, tolerance), f"{what} of {case}"


@pytest.fixture(params=[1, 3])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.mark.parametrize("seed", range(12))
def test_convolutions_agree_with_their_definition(seed, threads):
    torch.manual_seed(seed)
    rng = random.Random(seed)
    for dtype, tolerance in ((torch.float32, 1e-5), (torch.float64, 1e-12), (torch.bfloat16, 0.03)):
        check_convolution(rng, dtype, tolerance)


def test_the_other_kernels_agree_too():
    """Without AVX-512 and AVX2, convolutions are products of matrices."""
    program = (
        "import random, rushlight as torch, test_conv\n"
        "torch.manual_seed(5)\n"
        "for seed in range(8): test_conv.check_convolution(random.Random(seed), torch.float32, 1e-5)\n"
    )
    here = os.path.dirname(__file__)
    root = os.path.dirname(os.path.dirname(torch.__file__))
    environment = os.environ | {"RUSHLIGHT_CPU": "baseline", "PYTHONPATH": os.pathsep.join([here, root])}
    result = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, cwd="/")
    assert result.returncode == 0, result.stderr.decode()


def test_many_small_images_share_a_block(threads):
    x, w = torch.randn(37, 8, 7, 7), torch.randn(40, 8, 3, 3)
    y = F.conv2d(x, w, padding=1)
    exact = convolved(x, w, (1, 1), (1, 1), (1, 1), 1)
    assert near(y, exact, 1e-5)


def test_a_transposed_convolution_is_the_adjoint():
    x, w = torch.randn(3, 4, 9, 8, dtype=torch.float64), torch.randn(6, 4, 3, 2, dtype=torch.float64)
    y = F.conv2d(x, w, None, (2, 1), 1)
    g = torch.randn(*y.shape, dtype=torch.float64)
    back = F.conv_transpose2d(g, w, None, (2, 1), 1)
    assert back.shape == x.shape
    assert abs(float((back * x).sum() - (y * g).sum())) < 1e-9


def test_large_inputs_leave_the_interpreter_free(threads):
    """Long loops run without the GIL; their results are made with it."""
    x = torch.randn(8, 16, 40, 40, requires_grad=True)
    samples = torch.rand(8, 16, 2)
    for pool in (
        lambda x: F.max_pool2d(x, 3, 2, 1),
        lambda x: F.max_pool2d(x, 2, return_indices=True)[0],
        lambda x: F.adaptive_max_pool2d(x, 7),
        lambda x: F.fractional_max_pool2d(x, 2, 13, _random_samples=samples),
        lambda x: F.avg_pool2d(x, 3, 2, 1),
        lambda x: F.adaptive_avg_pool2d(x, 7),
        lambda x: F.interpolate(x, size=31, mode="bicubic"),
        lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect"),
        lambda x: F.unfold(x, 3),
    ):
        whole = pool(x)
        assert torch.equal(whole[:1], pool(x[:1]))
        (gradient,) = torch.autograd.grad(whole.sum(), x)
        assert gradient.shape == x.shape


def test_max_pooling_finds_nan_and_ties():
    nan = float("nan")
    x = torch.tensor(
        [[[1.0, nan, 3.0, 3.0], [2.0, 0.0, 3.0, nan], [-1.0, -1.0, 5.0, 4.0], [-1.0, -1.0, 5.0, 5.0]]]
    )
    x.requires_grad_()
    values, indices = F.max_pool2d(x, 2, return_indices=True)
    assert indices.tolist() == [[[1, 7], [8, 10]]]
    assert str(values.tolist()) == str([[[nan, nan], [-1.0, 5.0]]])
    plain = F.max_pool2d(x, 2)
    assert str(plain.tolist()) == str(values.tolist())
    (one,) = torch.autograd.grad(values.sum(), x)
    (other,) = torch.autograd.grad(plain.sum(), x)
    assert one.tolist() == other.tolist()
    assert sorted(one.reshape(-1).tolist()) == [0.0] * 12 + [1.0] * 4


def test_absurd_sizes_are_refused():
    x, w = torch.ones(1, 1, 4, 4), torch.ones(1, 1, 2, 2)
    huge = 2**40
    for call in (
        lambda: F.conv2d(x, w, padding=huge),
        lambda: F.conv2d(x, w, stride=2**70),
        lambda: F.conv2d(x, w, dilation=huge),
        lambda: F.conv_transpose2d(x, w, stride=2**31 - 1, padding=0),
        lambda: F.max_pool2d(x, 2, huge),
        lambda: F.max_pool2d(x, huge),
        lambda: F.avg_pool2d(x, huge),
        lambda: F.unfold(x, 2, padding=huge),
        lambda: F.fold(torch.ones(1, 4, 1), (huge, huge), 2),
        lambda: F.pad(x, (huge, huge, huge, huge)),
        lambda: F.pad(x, (huge, huge, huge, huge), mode="replicate"),
        lambda: F.interpolate(x, size=huge),
        lambda: F.adaptive_avg_pool2d(x, huge),
        lambda: F.adaptive_max_pool2d(x, huge),
    ):
        with pytest.raises((RuntimeError, OverflowError, ValueError, MemoryError)):
            call()


def test_indices_outside_are_refused():
    x = torch.ones(1, 1, 2, 2)
    for bad in (16, -1, 2**62):
        where = torch.tensor([[[[0, 1], [2, bad]]]])
        with pytest.raises(RuntimeError, match="Found an invalid max index"):
            F.max_unpool2d(x, where, 2)


def test_what_lies_outside_the_image_is_not_read():
    """Points beyond the border are zero, even next to infinite pixels; those without a place are NaN."""
    image = torch.full((1, 1, 2, 2), float("inf"))
    far = torch.full((1, 1, 1, 2), 5.0)
    assert F.grid_sample(image, far, align_corners=False).tolist() == [[[[0.0]]]]
    nowhere = torch.full((1, 1, 1, 2), float("nan"))
    assert F.grid_sample(image, nowhere, align_corners=False).isnan().all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_max_pool_takes_the_first_maximum_and_the_last_nan(dtype):
    # Few values, so that windows have ties; against windows searched one by one.
    rng = np.random.default_rng(0)
    for kernel, stride, padding, dilation in ((3, 2, 1, 1), (2, 1, 1, 2), (4, 3, 2, 1), (3, 1, 0, 2)):
        x = rng.integers(-2, 3, (2, 11, 9)).astype(dtype)
        x[rng.random(x.shape) < 0.05] = np.nan
        y, index = torch.nn.functional.max_pool2d(
            torch.from_numpy(x), kernel, stride, padding, dilation, return_indices=True
        )
        for plane in range(2):
            for i, j in np.ndindex(*y.shape[1:]):
                best, at = -np.inf, None
                for a, b in np.ndindex(kernel, kernel):
                    r, c = i * stride - padding + a * dilation, j * stride - padding + b * dilation
                    if not (0 <= r < 11 and 0 <= c < 9):
                        continue
                    if at is None or x[plane, r, c] > best or np.isnan(x[plane, r, c]):
                        best, at = x[plane, r, c], r * 9 + c
                assert index[plane, i, j] == at
                assert y[plane, i, j].item() == best or np.isnan(best)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "size, weight, options",
    [
        ((3, 5, 9, 9), (70, 5, 3, 3), {"padding": 1}),
        ((2, 6, 31), (64, 3, 5), {"padding": 2, "stride": 2, "groups": 2}),  # 32 channels of a group
        ((2, 3, 4, 19, 23), (67, 3, 2, 3, 3), {"dilation": 2}),
        ((2, 6, 15, 17), (6, 1, 7, 7), {"padding": 3, "groups": 6}),
        ((3, 4, 13, 33), (4, 1, 5, 3), {"padding": (2, 1), "groups": 4}),
        ((3, 4, 8, 16), (4, 1, 3, 3), {"groups": 4}),
        ((3, 6, 16, 35), (6, 1, 3, 3), {"groups": 6, "stride": 2, "padding": 1}),
        ((2, 8, 20, 14), (8, 1, 5, 7), {"groups": 8, "stride": (3, 2), "padding": (0, 4)}),
        ((2, 6, 129), (6, 1, 5), {"padding": 2, "groups": 6}),  # one line: several vectors at a time
        ((3, 4, 250), (4, 1, 4), {"padding": 3, "groups": 4, "stride": 2, "dilation": 2}),
        # The one plane of the result meets nothing but the padding.
        ((2, 16, 1, 13, 9), (16, 1, 1, 3, 3), {"groups": 16, "stride": (3, 1, 1), "padding": 1}),
    ],
)
def test_single_precision_agrees_with_double(size, weight, options, threads):
    torch.manual_seed(0)
    conv = getattr(torch.nn.functional, f"conv{len(size) - 2}d")
    x, w, b = torch.randn(size), torch.randn(weight), torch.randn(weight[0])
    single = [t.requires_grad_() for t in (x, w, b)]
    double = [t.detach().double().requires_grad_() for t in (x, w, b)]
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        got, exact = conv(*single, **options), conv(*double, **options)
        g = torch.randn(got.shape)
        got.backward(g)
        exact.backward(g.double())
    finally:
        torch.set_num_threads(before)
    for a, e in zip([got, *(t.grad for t in single)], [exact, *(t.grad for t in double)], strict=True):
        assert (a - e).abs().max() <= 2e-6 * e.abs().max()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "stride, padding, dilation", [(1, 1, 1), (2, 3, 1), (3, 0, 2), ((1, 2), (8, 1), (2, 1))]
)
@pytest.mark.parametrize("size", [(9, 28), (14, 7), (5, 33)])
def test_depthwise_is_dense_with_zeros_between_channels(dtype, stride, padding, dilation, size):
    torch.manual_seed(0)
    x = torch.randn(2, 3, *size, dtype=getattr(torch, dtype), requires_grad=True)
    w = torch.randn(3, 1, 3, 3, dtype=x.dtype, requires_grad=True)
    bias = torch.randn(3, dtype=x.dtype)
    places = {"stride": stride, "padding": padding, "dilation": dilation}
    ours = F.conv2d(x, w, bias, groups=3, **places)
    dense = F.conv2d(x, w * torch.eye(3, dtype=x.dtype)[:, :, None, None], bias, **places)
    g = torch.randn_like(ours)
    for a, b in zip(
        (ours, *torch.autograd.grad(ours, (x, w), g)),
        (dense, *torch.autograd.grad(dense, (x, w), g)),
        strict=True,
    ):
        torch.testing.assert_close(a, b)


def test_what_no_weight_meets_stays_out_of_its_gradient():
    """A line of the image may go on where the last vector of a line of outputs does not."""
    x, w = torch.ones(1, 2, 4, 12), torch.ones(2, 1, 1, 3, requires_grad=True)
    x[..., 11] = float("inf")
    y = F.conv2d(x, w, groups=2)
    (gradient,) = torch.autograd.grad(y, w, torch.ones_like(y))
    assert gradient[:, 0, 0, :2].isfinite().all() and gradient[:, 0, 0, 2].isinf().all()


@pytest.mark.skipif(sys.platform != "linux", reason="needs limits of memory")
def test_a_copy_of_the_image_is_as_large_as_the_image():
    """Images of few results are taken together, but not more of them than there are."""
    program = """
import resource, rushlight as torch
x, w = torch.ones(1, 3, 1200, 1200), torch.ones(300, 3, 3, 3, requires_grad=True)
y = torch.nn.functional.conv2d(x, w, stride=600, padding=1)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 29),) * 2)
y.sum().backward()
"""
    subprocess.run([sys.executable, "-P", "-c", program], check=True)


# Products of pairs: odd numbers of channels and of pixels, strides, groups, blocks of several images.
@pytest.mark.parametrize(
    ("shape", "weight", "options"),
    [
        ((3, 5, 9, 11), (17, 5, 3, 3), {"padding": 1}),
        ((2, 8, 40, 33), (65, 8, 3, 3), {"padding": 1, "stride": 2}),
        ((5, 6, 7, 7), (20, 3, 3, 2), {"padding": (2, 0), "groups": 2, "dilation": (2, 1)}),
        ((2, 4, 30, 19), (9, 4, 4, 4), {"stride": 3}),
        ((4, 16, 13), (12, 16, 5), {"padding": 2}),
        ((2, 7, 5, 6, 9), (10, 7, 3, 2, 3), {"padding": 1, "stride": (1, 2, 2)}),
        ((3, 32, 8, 8), (33, 32, 1, 1), {}),
    ],
)
def test_convolutions_of_bfloat16_are_rounded_once(shape, weight, options):
    torch.manual_seed(0)
    x, w = torch.randn(shape).bfloat16(), torch.randn(weight).bfloat16()
    b = torch.randn(weight[0]).bfloat16()
    convolve = getattr(torch, f"conv{len(shape) - 2}d")
    results = []
    for dtype in (torch.bfloat16, torch.float64):
        given = [t.to(dtype).requires_grad_() for t in (x, w, b)]
        y = convolve(*given, **options)
        torch.manual_seed(1)
        g = torch.randn(y.shape).bfloat16().to(dtype)
        results.append([y, *torch.autograd.grad(y, given[:2], g)])
    for ours, exact in zip(*results, strict=True):
        assert ours.dtype == torch.bfloat16
        # Half a unit in the last place, and what single precision loses where terms cancel.
        torch.testing.assert_close(ours.double(), exact, rtol=2**-8, atol=1e-5 * exact.abs().max().item())


def test_infinite_weights_of_bfloat16_reach_only_what_they_touch():
    w = torch.zeros(4, 8, 3, 3, dtype=torch.bfloat16)
    w[:, :, 1, 1] = torch.inf
    g = torch.ones(2, 4, 10, 10, dtype=torch.bfloat16)
    x = torch.zeros(2, 8, 10, 10, dtype=torch.bfloat16, requires_grad=True)
    grad, wide = (
        torch.autograd.grad(torch.conv2d(x.to(t), w.to(t), padding=1), x, g.to(t))[0]
        for t in (torch.bfloat16, torch.float32)
    )
    assert torch.equal(grad.isnan(), wide.isnan()) and torch.equal(grad.isinf(), wide.isinf())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("padding", [0, 1])
def test_transposed_convolutions_of_single_pixels(dtype, padding):
    torch.manual_seed(0)
    x, w, b = torch.randn(5, 6, 1, 1), torch.randn(6, 9, 4, 3), torch.randn(9)
    x, w, b = (t.to(dtype) for t in (x, w, b))
    spread = torch.einsum("nc,cohw->nohw", x[:, :, 0, 0].double(), w.double()) + b.double()[:, None, None]
    expected = spread[:, :, padding : 4 - padding, padding : 3 - padding]
    result = torch.conv_transpose2d(x, w, b, padding=padding)
    torch.testing.assert_close(result, expected.to(dtype))


def parts_of_a_grid_sample(x, grid, g, modes):
    """The sample and its gradients by way of the weights of all pixels, in double precision."""
    x, grid, g = (t.double() for t in (x, grid, g))
    n, c, *sizes = x.shape
    points, rows = grid.flatten(1, -2), g.flatten(2)
    weights, index = torch._C.ops.grid_terms(points, sizes, *modes)
    outside = index < 0
    weights = torch.where(outside & ~weights.isnan(), 0.0, weights)
    pixels = torch.cat([x.flatten(2), x.new_zeros(n, c, 1)], 2)
    places = torch.where(outside, math.prod(sizes), index)
    each = places.unsqueeze(1).expand(-1, c, -1, -1)
    picked = pixels.unsqueeze(2).expand(-1, -1, places.shape[1], -1).gather(3, each)
    out = (picked * weights.unsqueeze(1)).sum(2).reshape(g.shape)
    spread = (rows.unsqueeze(2) * weights.unsqueeze(1)).flatten(2)
    dx = torch.zeros_like(pixels).scatter_add(2, each.flatten(2), spread)[:, :, :-1].reshape(x.shape)
    products = (rows.unsqueeze(2) * picked).sum(1)
    dgrid = torch._C.ops.grid_gradient(products, points, sizes, *modes).reshape(grid.shape)
    return out, dx, dgrid


CHECK_OF_GRIDS = """
import sys, itertools, rushlight as torch, test_conv
torch.manual_seed(0)
for dtype, kernel, padding, align, dims in itertools.product(
    (torch.float32, torch.float64), range(3), range(3), (False, True), (2, 3)
):
    if kernel == 2 and dims == 3:
        continue
    for channels, size in zip((1, 4, 5, 8, 11, 19, 0), ((1, 1, 2), (3, 4, 1), (19, 13, 3), (2, 7, 5)) * 2):
        size, points = size[:dims], ((7, 21, 1) if channels == 4 else (2, 3, 5))[:dims]
        x, g = torch.randn(2, channels, *size).to(dtype), torch.randn(2, channels, *points).to(dtype)
        grid = (torch.rand(2, *points, dims) * 3 - 1.5).to(dtype)
        x = x.transpose(2, 3).contiguous().transpose(2, 3)
        modes = kernel, padding, align
        result = torch._C.ops.grid_sample(x, grid, *modes)
        dx, dgrid = torch._C.ops.grid_sample_gradient(g, x, grid, *modes, True, True)
        close = 3e-4 if dtype == torch.float32 else 1e-11
        exact = test_conv.parts_of_a_grid_sample(x, grid, g, modes)
        for ours, other in zip((result, dx, dgrid), exact):
            torch.testing.assert_close(ours.double(), other, rtol=close, atol=close)
        alone = torch._C.ops.grid_sample_gradient(g, x, grid, *modes, False, True)
        assert alone[0].numel() == 0 and alone[1].equal(dgrid)
        alone = torch._C.ops.grid_sample_gradient(g, x, grid, *modes, True, False)
        assert alone[1].numel() == 0 and alone[0].equal(dx)
"""


@pytest.mark.parametrize("cpu", ["", "baseline"])
def test_points_of_images_of_any_number_of_channels(cpu, tmp_path):
    # 4, 8 or 16 channels lie side by side while points are sampled; blocks of 128 points, squares of four.
    places = [os.path.dirname(__file__), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"RUSHLIGHT_CPU": cpu, "PYTHONPATH": os.pathsep.join(places)}
    # Not beside the source tree, which has no native core.
    subprocess.run([sys.executable, "-c", CHECK_OF_GRIDS], env=environment, cwd=tmp_path, check=True)


def test_a_grid_that_does_not_fit_its_image_is_refused():
    x, grid = torch.randn(2, 3, 4, 5), torch.zeros(2, 6, 7, 2)
    sample, gradient = torch._C.ops.grid_sample, torch._C.ops.grid_sample_gradient
    wrong = [
        (x[0], grid), (x, grid[:1]), (x, grid.double()), (x, grid[..., :1]), (x, grid[0]),
        (x[:, :, :0], grid), (x.unsqueeze(4), grid), (x.half(), grid.half()), (x.reshape(120), grid),
    ]  # fmt: skip
    for x_, grid_ in wrong:
        with pytest.raises((RuntimeError, NotImplementedError)):
            sample(x_, grid_, 0, 0, False)
    for modes in ((3, 0), (-1, 0), (0, 3), (0, -1)):
        with pytest.raises(RuntimeError):
            sample(x, grid, *modes, False)
    for g in (torch.zeros(2, 3, 6, 6), torch.zeros(2, 3, 6, 7).double(), torch.zeros(2, 3, 42)):
        with pytest.raises(RuntimeError):
            gradient(g, x, grid, 0, 0, False, True, True)


@pytest.mark.parametrize("threads", [1, 2])
def test_points_of_one_image_are_shared_by_threads(threads):
    torch.manual_seed(0)
    x, grid, g = torch.randn(1, 3, 20, 30), torch.rand(1, 90, 61, 2) * 2 - 1, torch.randn(1, 3, 90, 61)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        result = F.grid_sample(x, grid, align_corners=False)
    finally:
        torch.set_num_threads(before)
    exact, _, _ = parts_of_a_grid_sample(x, grid, g, (0, 0, False))
    torch.testing.assert_close(result.double(), exact, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "nearest"])
def test_a_gradient_of_points_that_is_recorded_is_the_same(mode):
    torch.manual_seed(0)
    x, grid = torch.randn(2, 5, 6, 4).requires_grad_(), (torch.rand(2, 3, 7, 2) * 2.4 - 1.2).requires_grad_()
    out = F.grid_sample(x, grid, mode=mode, align_corners=True)
    g = torch.randn_like(out)
    at_once = torch.autograd.grad(out, (x, grid), g, retain_graph=True)
    recorded = torch.autograd.grad(out, (x, grid), g, create_graph=True)
    for a, b in zip(at_once, recorded, strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("seed", range(40))
def test_strided_convolutions_and_their_transposes_by_phases(seed, threads):
    # Phases of the result are convolutions of their own; of float only, double precision goes another way.
    draw = random.Random(seed)
    dims, groups = draw.choice((1, 2, 2, 3)), draw.choice((1, 1, 2))
    stride = [draw.choice((1, 2, 2, 3, 4)) for _ in range(dims)]
    kernel = [draw.randint(1, 6) for _ in range(dims)]
    dilation = [draw.choice((1, 2)) if step == 1 else 1 for step in stride]
    padding = [draw.randint(0, d * (k - 1)) for d, k in zip(dilation, kernel, strict=True)]
    more = [draw.randrange(max(step, d)) for step, d in zip(stride, dilation, strict=True)]
    sizes = [draw.randint(1, 40 // dims**2 + 3) for _ in range(dims)]
    channels, to = 5 * groups, draw.choice((3, 8, 17)) * groups
    torch.manual_seed(seed)
    x, w = torch.randn(3, channels, *sizes), torch.randn(channels, to // groups, *kernel)
    bias = draw.choice((None, torch.randn(to)))

    def run(dtype):
        leaves = [t.detach().to(dtype).requires_grad_() for t in (x, w)]
        transposed = getattr(F, f"conv_transpose{dims}d")
        options = {"stride": stride, "padding": padding, "groups": groups, "dilation": dilation}
        shift = None if bias is None else bias.to(dtype)
        try:
            y = transposed(*leaves, shift, output_padding=more, **options)
        except RuntimeError:  # nothing is left of the image
            return None
        # That is also the gradient of this convolution.
        back = getattr(F, f"conv{dims}d")(y, leaves[1], **options)
        return y, back, *torch.autograd.grad(back.square().sum(), leaves)

    ours, exact = run(torch.float32), run(torch.float64)
    assert (ours is None) == (exact is None)
    for a, b in zip(ours or (), exact or (), strict=True):
        assert near(a, b, 1e-5)


@pytest.mark.parametrize("padding", [0, 1])
def test_an_infinite_weight_of_a_strided_transposed_convolution_reaches_only_what_it_touches(padding):
    x, weight = torch.ones(2, 4, 9, 9), torch.ones(4, 8, 4, 4)
    weight[0, 3, 1, 2] = float("inf")
    for y in (
        F.conv_transpose2d(x, weight, stride=2, padding=padding),
        F.conv_transpose2d(x.double(), weight.double(), stride=2, padding=padding),
    ):
        assert not y.isnan().any()
        reached = y[:, 3, 1 - padding :: 2, 2 - padding :: 2]
        assert y.isinf().sum() == reached.isinf().sum() == 2 * 81


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_an_infinite_weight_of_a_transposed_convolution_reaches_only_what_it_touches(dtype):
    weight = torch.tensor([[[[float("inf"), 1], [1, 1]]]], dtype=dtype)
    result = torch.nn.functional.conv_transpose2d(torch.ones(1, 1, 3, 3, dtype=dtype), weight, dilation=2)
    assert not result.isnan().any()
    assert result.isinf().sum() == 9


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64", "complex128"])
def test_constant_padding_of_any_dimensions(dtype):
    dtype = getattr(torch, dtype)
    for sizes in ((), (3,), (2, 3), (2, 1, 5), (3, 2, 4, 35), (2, 3, 1, 2, 3)):
        x = torch.arange(1, 1 + math.prod(sizes)).reshape(sizes).to(dtype)
        for pads in itertools.product(((0, 0), (2, 1)), repeat=len(sizes)):
            expected = torch.full([n + a + b for n, (a, b) in zip(sizes, pads)], 7).to(dtype)
            expected[tuple(slice(a, a + n) for n, (a, _) in zip(sizes, pads))] = x
            got = F.pad(x, [count for pair in reversed(pads) for count in pair], value=7)
            assert torch.equal(got, expected) and got.is_contiguous()
    planes = torch.randn(40, 3, 30, 31)  # by several threads
    assert torch.equal(F.pad(planes, (1, 2, 3, 4))[..., 3:-4, 1:-2], planes)
