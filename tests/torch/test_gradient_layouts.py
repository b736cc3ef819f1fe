"""Gradients lie in memory as torch's do: what comes after them may view, not only reshape, them."""

import itertools

import pytest
import torch

import rushlight

pytestmark = pytest.mark.torch


def laid(lib, x, how):
    """x in another layout."""
    if how == "turned":
        return x.mT.contiguous().mT
    if how == "wider":
        return lib.empty((*x.shape[:-1], x.shape[-1] + 1), dtype=x.dtype)[..., :-1].copy_(x)
    if how == "wider turned":
        return lib.empty((*x.shape[:-2], x.shape[-1] + 1, x.shape[-2]), dtype=x.dtype)[..., 1:, :].mT.copy_(x)
    if how == "repeated":
        return x[..., :1].expand(x.shape)
    return x


LAYOUTS = ("plain", "turned", "wider", "wider turned", "repeated")
PRODUCTS = {
    "matmul": (lambda lib, a, b: a @ b, ((3, 4), (4, 5))),
    "mm": (lambda lib, a, b: lib.mm(a, b), ((3, 4), (4, 5))),
    "addmm": (lambda lib, a, b: lib.addmm(lib.ones(5, dtype=a.dtype), a, b, alpha=2), ((3, 4), (4, 5))),
    "rows": (lambda lib, a, b: a @ b, ((2, 3, 4), (4, 5))),
    "batches": (lambda lib, a, b: a @ b, ((2, 3, 4), (2, 4, 5))),
    "shared": (lambda lib, a, b: a @ b, ((2, 1, 3, 4), (2, 4, 5))),
    "bmm": (lambda lib, a, b: lib.bmm(a, b), ((2, 3, 4), (2, 4, 5))),
    "vector": (lambda lib, a, b: a[0] @ b, ((3, 4), (4, 5))),
    "vector of batch": (lambda lib, a, b: a[0] @ b, ((3, 4), (2, 4, 5))),
    "matrix of vector": (lambda lib, a, b: a @ b[:, 0], ((3, 4), (4, 5))),
    "linear": (lambda lib, a, b: lib.nn.functional.linear(a, b), ((3, 4), (5, 4))),
    "linear of rows": (lambda lib, a, b: lib.nn.functional.linear(a, b), ((2, 3, 4), (5, 4))),
    "layer": (
        lambda lib, a, b: lib.nn.functional.linear(a, b, lib.ones(5, dtype=a.dtype)),
        ((2, 3, 4), (5, 4)),
    ),
    "chain": (lambda lib, a, b: lib.linalg.multi_dot([a, b, b.mT]), ((3, 4), (4, 5))),
    "inner": (lambda lib, a, b: lib.inner(a, b), ((2, 3, 4), (5, 4))),
}


def strides(lib, function, operands, seed):
    """Of the gradients that grad() returns, recorded or not; and the gradients."""
    result = function(lib, *operands)
    lib.manual_seed(seed)
    weights = lib.randn(result.shape, dtype=result.dtype)
    found = lib.autograd.grad(result, operands, weights, retain_graph=True)
    recorded = lib.autograd.grad(result, operands, weights, create_graph=True)
    return [each.stride() for each in (*found, *recorded)], [each.tolist() for each in found]


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_gradients_of_products(name, dtype):
    function, shapes = PRODUCTS[name]
    for hows in itertools.product(LAYOUTS, repeat=2):
        told = []
        for lib in (rushlight, torch):
            lib.manual_seed(0)
            drawn = [lib.randn(shape, dtype=getattr(lib, dtype)) for shape in shapes]
            operands = [laid(lib, x, how).requires_grad_() for x, how in zip(drawn, hows, strict=True)]
            told.append(strides(lib, function, operands, 1))
        assert told[0][0] == told[1][0], hows
        for mine, theirs in zip(told[0][1], told[1][1], strict=True):
            torch.testing.assert_close(torch.tensor(mine), torch.tensor(theirs))


FORMATS = ("contiguous_format", "channels_last")
IMAGES = {
    "conv2d": lambda F, x, w: F.conv2d(x, w),
    "strided": lambda F, x, w: F.conv2d(x, w, stride=2, padding=1),
    "grouped": lambda F, x, w: F.conv2d(x, w[:, :2], groups=2),
    "depthwise": lambda F, x, w: F.conv2d(x, w[:, :1], groups=4),
    "pointwise": lambda F, x, w: F.conv2d(x, w[:, :, :1, :1]),
    "to one channel": lambda F, x, w: F.conv2d(x, w[:1]),
    "to one channel, pointwise": lambda F, x, w: F.conv2d(x, w[:1, :, :1, :1]),
    "transposed": lambda F, x, w: F.conv_transpose2d(x, w),
    "avg_pool2d": lambda F, x, w: F.avg_pool2d(x, 2) * w.sum(),
    "adaptive": lambda F, x, w: F.adaptive_avg_pool2d(x, 3) * w.sum(),
    "reflect": lambda F, x, w: F.pad(x, (1, 1, 1, 1), mode="reflect") * w.sum(),
    "replicate": lambda F, x, w: F.pad(x, (1, 1, 1, 1), mode="replicate") * w.sum(),
    "nearest": lambda F, x, w: F.interpolate(x, scale_factor=2) * w.sum(),
    "bicubic": lambda F, x, w: F.interpolate(x, scale_factor=2, mode="bicubic") * w.sum(),
    "relu": lambda F, x, w: F.relu(x) * w.sum(),
    "leaky_relu": lambda F, x, w: F.leaky_relu(x) * w.sum(),
    "threshold": lambda F, x, w: F.threshold(x, 0.1, 2.0) * w.sum(),
}


@pytest.mark.parametrize("name", IMAGES)
def test_gradients_of_images(name):
    for formats in itertools.product(FORMATS, repeat=3):
        told = []
        for lib in (rushlight, torch):
            lib.manual_seed(0)
            x, w = lib.randn(2, 4, 6, 6), lib.randn(4, 4, 3, 3)
            x, w = (
                each.contiguous(memory_format=getattr(lib, format)).requires_grad_()
                for each, format in zip((x, w), formats, strict=False)
            )
            result = IMAGES[name](lib.nn.functional, x, w)
            given = lib.randn(result.shape).contiguous(memory_format=getattr(lib, formats[2]))
            found = lib.autograd.grad(result, (x, w), given)
            told.append(([each.stride() for each in found], [each.tolist() for each in found]))
        assert told[0][0] == told[1][0], formats
        for mine, theirs in zip(told[0][1], told[1][1], strict=True):
            torch.testing.assert_close(torch.tensor(mine), torch.tensor(theirs), rtol=1e-4, atol=1e-4)


BINARY = {
    "fmin": lambda lib, a, b: lib.fmin(a, b),
    "fmax": lambda lib, a, b: lib.fmax(a, b),
    "copysign": lambda lib, a, b: lib.copysign(a, b),
    "xlogy": lambda lib, a, b: lib.xlogy(a, b),
    "pow": lambda lib, a, b: lib.pow(a, b),
    "nan_to_num": lambda lib, a, b: lib.nan_to_num(a) * b,
    "maximum": lambda lib, a, b: lib.maximum(a, b),
    "atan2": lambda lib, a, b: lib.atan2(a, b),
}


@pytest.mark.parametrize("name", BINARY)
def test_gradients_of_elements(name):
    for hows in itertools.product(LAYOUTS, repeat=2):
        told = []
        for lib in (rushlight, torch):
            a = lib.tensor([[0.5, 0.0, 2.0], [1.0, -2.0, 0.0]])
            b = lib.tensor([[0.5, 0.0, -1.0], [2.0, 3.0, 0.5]])
            operands = [laid(lib, x, how).requires_grad_() for x, how in zip((a, b), hows, strict=True)]
            told.append(strides(lib, BINARY[name], operands, 1))
        assert told[0][0] == told[1][0], hows
        for mine, theirs in zip(told[0][1], told[1][1], strict=True):
            torch.testing.assert_close(torch.tensor(mine), torch.tensor(theirs), equal_nan=True)


def beside(lib, shape, seed):
    """Heads as a linear layer made them, one beside the other."""
    lib.manual_seed(seed)
    batch, heads, rows, width = shape
    return lib.randn(batch, rows, heads, width).transpose(1, 2)


HEADS = {
    "apart": lambda lib, shape, seed: beside(lib, shape, seed).contiguous(),
    "beside": beside,
    "batch second": lambda lib, shape, seed: (
        beside(lib, shape, seed).transpose(0, 2).contiguous().transpose(0, 2)
    ),
    "wider": lambda lib, shape, seed: beside(lib, (*shape[:-1], shape[-1] + 1), seed)[..., :-1],
}
ATTENTIONS = {
    "plain": lambda F, *heads: F.scaled_dot_product_attention(*heads),
    "causal": lambda F, *heads: F.scaled_dot_product_attention(*heads, is_causal=True),
    "masked": lambda F, *heads: F.scaled_dot_product_attention(*heads, heads[0][0, 0, :, :5].detach()),
    "shared": lambda F, q, k, v: F.scaled_dot_product_attention(q, k[:, :1], v[:, :1], enable_gqa=True),
}


@pytest.mark.parametrize("name", ATTENTIONS)
@pytest.mark.parametrize("rows", [7, 70])  # few rows are one block
def test_attention(name, rows):
    for hows in itertools.product(HEADS, repeat=2):
        told = []
        for lib in (rushlight, torch):
            shapes = (2, 3, rows, 8), (2, 3, 5, 8), (2, 3, 5, 8)
            heads = [
                HEADS[how](lib, shape, seed).requires_grad_()
                for seed, (how, shape) in enumerate(zip((*hows, hows[0]), shapes, strict=True))
            ]
            result = ATTENTIONS[name](lib.nn.functional, *heads)
            given = HEADS[hows[1]](lib, result.shape, 3)
            found = [result, *lib.autograd.grad(result, heads, given, retain_graph=True)]
            found += lib.autograd.grad(result.sum(), heads)
            told.append(([each.stride() for each in found], [each.tolist() for each in found]))
        assert told[0][0] == told[1][0], hows
        for mine, theirs in zip(told[0][1], told[1][1], strict=True):
            torch.testing.assert_close(torch.tensor(mine), torch.tensor(theirs), rtol=1e-4, atol=1e-5)


F = "nn.functional."
AWAY = {"acosh": 1.5}  # from where a function is not defined
ONE = (
    "abs sqrt rsqrt reciprocal exp expm1 log log1p sin cos tan tanh asinh acosh sigmoid erf erfc erfinv "
    "lgamma sinc angle logit max min median nanmedian amax amin var std nansum mean cumsum logsumexp "
    f"log_softmax {F}relu {F}gelu {F}silu {F}mish {F}hardswish {F}softplus {F}logsigmoid "
    f"{F}hardtanh"
).split()
ALONG = {"cumsum": (1,), "logsumexp": (1,), "log_softmax": (1,)}
TWO = (
    f"div mul pow fmax nextafter where_first {F}mse_loss {F}l1_loss {F}smooth_l1_loss {F}huber_loss"
).split()
UPSTREAM = {
    "sum": lambda lib, out: out.sum(),
    "mean": lambda lib, out: out.mean(),
    "mean of turned": lambda lib, out: out.mT.mean() if out.dim() > 1 else out.mean(),
    "mean of sums": lambda lib, out: out.sum(-1).mean() if out.dim() else out.mean(),
    "mean of means": lambda lib, out: out.mean(-1).mean() if out.dim() else out.mean(),
    "means": lambda lib, out: (out.mean(0) * 2).sum() if out.dim() else out.mean(),
    "plain": lambda lib, out: (out * weights(lib, out)).sum(),
    "turned": lambda lib, out: (
        (out * laid(lib, weights(lib, out), "turned")).sum() if out.dim() > 1 else out.sum()
    ),
}


def weights(lib, out):
    lib.manual_seed(3)
    return lib.randn(out.shape)


def found_by(name):
    """The function of that name in a library."""

    def function(lib, *operands):
        for part in name.split("."):
            lib = getattr(lib, part)
        return lib(*operands, *ALONG.get(name, ()))

    if name == "where_first":
        return lambda lib, a, b: lib.where(a > 0.5, a, b)
    return function


@pytest.mark.parametrize("name", [*ONE, *TWO])
def test_gradients_of_functions(name):
    """Whatever follows: a sum gives one number to all elements, a mean one to each, a mean of sums both."""
    function, count = found_by(name), 1 + (name in TWO)
    for hows in itertools.product(("plain", "turned", "repeated"), repeat=count):
        for after, reduce in UPSTREAM.items():
            told = []
            for lib in (rushlight, torch):
                lib.manual_seed(0)
                drawn = [lib.rand(3, 4) + AWAY.get(name, 0) for _ in hows]
                operands = [laid(lib, x, how).requires_grad_() for x, how in zip(drawn, hows, strict=True)]
                loss = reduce(lib, function(lib, *operands))
                found = lib.autograd.grad(loss, operands)
                told.append(([each.stride() for each in found], [each.tolist() for each in found]))
            assert told[0][0] == told[1][0], (hows, after)
            for mine, theirs in zip(told[0][1], told[1][1], strict=True):
                torch.testing.assert_close(torch.tensor(mine), torch.tensor(theirs), rtol=1e-4, atol=1e-5)


LOSSES = ["mse_loss", "smooth_l1_loss", "huber_loss", "l1_loss", "multi_margin_loss"]
REDUCED = [*itertools.product(LOSSES, ("none", "mean", "sum")), ("soft_margin_loss", "sum")]


@pytest.mark.parametrize("name, reduction", REDUCED)
def test_gradients_of_losses(name, reduction):
    for hows in itertools.product(LAYOUTS, repeat=3):
        told = []
        for lib in (rushlight, torch):
            lib.manual_seed(0)
            x, target = (laid(lib, lib.randn(4, 5), how).requires_grad_() for how in hows[:2])
            target = lib.tensor([0, 2, 1, 4]) if name == "multi_margin_loss" else target.detach()
            loss = getattr(lib.nn.functional, name)(x, target, reduction=reduction)
            given = lib.randn(loss.shape)
            found = lib.autograd.grad(loss, x, laid(lib, given, hows[2]) if loss.dim() > 1 else given)
            told.append(found[0].stride())
        assert told[0] == told[1], hows


def test_mean_over_channels_last():
    """What is turned between the mean and the product lies turned, though it is one number for many."""
    told = []
    for lib in (rushlight, torch):
        x = lib.ones(2, 3, 4, 5).contiguous(memory_format=lib.channels_last).requires_grad_()
        pooled = (x * x.detach()).permute(0, 2, 3, 1).mean((1, 2))
        told.append([each.stride() for each in lib.autograd.grad([pooled.sum(), pooled.mean()], x)])
    assert told[0] == told[1]


def test_transposed_convolution_that_is_padded_by_its_stride():
    told = []
    for lib in (rushlight, torch):
        x, weight = lib.ones(2, 2, 4, 4, requires_grad=True), lib.ones(2, 2, 4, 5)
        options = {
            "stride": (3, 2),
            "padding": (1, 2),
            "output_padding": (2, 3),
            "groups": 2,
            "dilation": (4, 4),
        }
        result = lib.nn.functional.conv_transpose2d(x, weight, **options)
        told.append(lib.autograd.grad(result.sum(), x)[0].stride())
    assert told[0] == told[1]


def test_mask_of_attention_with_added_keys():
    told = []
    for lib in (rushlight, torch):
        layer = lib.nn.MultiheadAttention(4, 2, add_bias_kv=True)
        x, mask = lib.ones(3, 2, 4), lib.zeros(3, 3, requires_grad=True)
        told.append(lib.autograd.grad(layer(x, x, x, attn_mask=mask)[0].sum(), mask)[0].stride())
    assert told[0] == told[1]


@pytest.mark.parametrize("given", ["own", "plain", "repeated", "turned"])
def test_nan_to_num(given):
    told = []
    for lib in (rushlight, torch):
        inf, nan = float("inf"), float("nan")
        x = lib.tensor([[nan, inf], [-inf, 2.0], [1.0, 3.0]]).t().requires_grad_()
        g = {
            "own": lib.ones_like(x),
            "plain": lib.tensor([[inf, nan, 1.0], [2.0, inf, nan]]),
            "repeated": lib.ones(()).expand(2, 3),
            "turned": lib.ones(3, 2).t(),
        }[given]
        (grad,) = lib.autograd.grad(x.nan_to_num(), x, g)
        told.append((grad.stride(), grad.isnan().tolist(), grad.nan_to_num().tolist()))
    assert told[0] == told[1]


@pytest.mark.parametrize("shifts", [(1, 1), (1, 3), (3, 1), (0, 1), ((1, 1), (0, 1)), ((1, 0), (0, 1)), (1,)])
def test_images_that_are_rolled_or_divided_by_their_root_stay_as_they_lie(shifts):
    told = []
    for lib in (rushlight, torch):
        images = lib.arange(1.0, 121.0).view(2, 4, 5, 3).permute(0, 3, 1, 2)
        volumes = lib.arange(1.0, 121.0).view(2, 2, 2, 5, 3).permute(0, 4, 1, 2, 3)
        for x in (images, volumes, images[:, :, ::2], images[1:], images.transpose(2, 3)):
            rolled = x.roll(*shifts)
            told.append((rolled.stride(), rolled.tolist(), lib.fft.fftshift(x).stride()))
            told.append([lib.rms_norm(x, x.shape[-1:], weight).stride()
                         for weight in (None, lib.ones(x.shape[-1:]))])  # fmt: skip
    assert told[: len(told) // 2] == told[len(told) // 2 :]


IN_ORDER = {
    "atan2": lambda lib, a, b: lib.atan2(a, b),
    "atan2, summed": lambda lib, a, b: lib.atan2(a, b).sum(0),
    "select_scatter": lambda lib, a, b: lib.select_scatter(a, b[0], 0, 1),
    "slice_scatter": lambda lib, a, b: lib.slice_scatter(a, b[:, :2], 1, 1, 3),
    "diagonal_scatter": lambda lib, a, b: lib.diagonal_scatter(a, b[:, 0]),
}


@pytest.mark.parametrize("name", IN_ORDER)
def test_gradients_that_may_be_viewed_in_torch(name):
    for hows in itertools.product(LAYOUTS[:-1], LAYOUTS[:-1], LAYOUTS):
        told = []
        for lib in (rushlight, torch):
            lib.manual_seed(0)
            operands = [laid(lib, lib.rand(3, 4), how).requires_grad_() for how in hows[:2]]
            result = IN_ORDER[name](lib, *operands)
            given = lib.randn(result.shape)
            given = laid(lib, given, hows[2]) if given.dim() > 1 else given
            found = lib.autograd.grad(result, operands, given)
            told.append(([each.is_contiguous() for each in found], [each.tolist() for each in found]))
        assert all(mine or not theirs for mine, theirs in zip(told[0][0], told[1][0], strict=True)), hows
        for mine, theirs in zip(told[0][1], told[1][1], strict=True):
            torch.testing.assert_close(torch.tensor(mine), torch.tensor(theirs))
