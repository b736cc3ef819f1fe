"""Images whose channels lie side by side: values, gradients and layouts are torch's.

Kernels work on such images where they lie; each expression also runs on the same image laid out as usual, so
that both ways agree.
"""

import numpy as np
import pytest
import torch
from comparing import BY_ONEDNN, REFUSALS, assert_same
from opdb import first_sentence

import rushlight

# x: 2 x C x 9 x 7, v: 2 x C x 4 x 5 x 6, w and b: C numbers, k, k5 and d: kernels of one channel each.
EXPRESSIONS = """
F.max_pool2d(x, 2)
F.max_pool2d(x, 3, 2, 1)
F.max_pool2d(x, 3, 1, 1, 2)
F.max_pool2d(x, (2, 3), (3, 1), ceil_mode=True)
F.max_pool2d(x, 3, 2, 1, return_indices=True)
F.max_pool3d(v, 2)
F.max_pool3d(v, 3, 2, 1, return_indices=True)
F.max_pool2d(special, 3, 2, 1, return_indices=True)
F.max_pool2d(x.round(), 3, 2, 1, return_indices=True)
F.avg_pool2d(x, 2)
F.avg_pool2d(x, 3, 2, 1, count_include_pad=False)
F.adaptive_avg_pool2d(x, (3, 2))
F.adaptive_avg_pool2d(x, 1)
F.interpolate(x, scale_factor=2)
F.interpolate(x, size=(5, 11), mode="nearest-exact")
F.interpolate(x, size=(13, 4), mode="bilinear")
F.interpolate(x, size=(5, 11), mode="bilinear", align_corners=True)
F.interpolate(x, size=(5, 11), mode="bicubic")
F.interpolate(x, size=(5, 4), mode="bilinear", antialias=True)
F.interpolate(v, size=(5, 4, 3), mode="trilinear")
F.pad(x, (1, 2, 3, 0))
F.pad(x, (-1, 2, 3, -2), value=3.0)
F.pad(x, (0, 0, 0, 0, 1, 2))
F.pad(x, (1, 2, 3, 0), mode="reflect")
F.pad(x, (1, 2, 3, 0), mode="replicate")
F.group_norm(x, 1)
F.group_norm(x, C // 2, w, b)
F.group_norm(x, C, w)
F.group_norm(v, C // 2, w, b)
F.instance_norm(x, weight=w, bias=b)
F.batch_norm(x, None, None, w, b, training=True)
F.conv2d(x, k, b, groups=C)
F.conv2d(x, k, padding=1, groups=C)
F.conv2d(x, k, b, stride=2, padding=1, groups=C)
F.conv2d(x, k, b, stride=(3, 2), padding=(3, 2), dilation=(2, 3), groups=C)
F.conv2d(x, k5, b, stride=2, padding=(4, 1), dilation=(2, 1), groups=C)
F.conv3d(v, d, b, padding=1, groups=C)
F.conv2d(x, dense, b, padding=1)
F.conv2d(x, dense, stride=2)
F.conv2d(x, dense[:, :, :1, :1], b)
F.conv_transpose2d(x, dense, b, stride=2)
x.flip(3)
x.flip(1)
x.flip(1, 2)
F.pixel_shuffle(x, 2)
F.pixel_shuffle(x, 6)
F.pixel_shuffle(x[:, :, :1, :1], 6)
F.pixel_unshuffle(x[:, :, :8, :4], 2)
F.pixel_unshuffle(x[:, :, :6, :6].to(memory_format=torch.channels_last), 3)
"""
CASES = [line for line in EXPRESSIONS.splitlines() if line]


def _values(channels):
    random = np.random.default_rng(channels)

    def draw(*sizes):
        return random.standard_normal(sizes)

    special = draw(2, channels, 9, 7)
    special[0, :, ::2] = np.nan
    special[1, :, 3:] = -np.inf
    return {
        "x": draw(2, channels, 9, 7),
        "v": draw(2, channels, 4, 5, 6),
        "special": special,
        "w": draw(channels),
        "b": draw(channels),
        "k": draw(channels, 1, 3, 3),
        "k5": draw(channels, 1, 2, 5),
        "d": draw(channels, 1, 3, 2, 3),
        "dense": draw(channels, channels, 3, 3),
    }


def _run(lib, expression, channels, dtype, last):
    """The result and the gradients of everything that takes part, with respect to uneven weights."""
    space = {"torch": lib, "F": lib.nn.functional, "C": channels}
    for name, array in _values(channels).items():
        tensor = lib.tensor(array).to(getattr(lib, dtype))
        if last and name in ("x", "v", "special"):
            order = lib.channels_last_3d if name == "v" else lib.channels_last
            tensor = tensor.to(memory_format=order)
        space[name] = tensor.requires_grad_(dtype != "uint8")
    result = eval(expression, space)
    out = result[0] if isinstance(result, tuple) else result
    if dtype == "uint8":
        return [result]
    leaves = [t for t in space.values() if isinstance(t, lib.Tensor)]
    weights = lib.arange(out.numel(), dtype=lib.float32).remainder(7).sub(3).reshape(out.shape).to(out.dtype)
    if last and out.dim() == 4:
        weights = weights.to(memory_format=lib.channels_last)
    return [result, *lib.autograd.grad(out, leaves, weights, allow_unused=True)]


# Gradients of a sum of many terms, and what is subtracted in a norm, lose digits.
SCALES = {"float64": 100.0, "float32": 100.0, "bfloat16": 4.0, "float16": 4.0}


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("channels", [2, 6, 36])
@pytest.mark.parametrize("expression", CASES)
def test_images(expression, channels, dtype):
    try:
        theirs = _run(torch, expression, channels, dtype, True)
    except REFUSALS as refusal:
        with pytest.raises(type(refusal)) as told:
            _run(rushlight, expression, channels, dtype, True)
        assert first_sentence(told.value) == first_sentence(refusal)
        return
    ours = _run(rushlight, expression, channels, dtype, True)
    scale = SCALES[dtype]
    torchs_own = not BY_ONEDNN.get(dtype, True)
    if torchs_own and (channels == 36 or (dtype == "bfloat16" and "conv3d" in expression)):
        scale *= 4  # torch rounds sums of many terms on their way; ours are nearer to those of float64
    # Where torch computes volumes of halves itself it does not keep their layout.
    assert_same(ours[0], theirs[0], scale=scale, strides=not (torchs_own and "conv3d" in expression))
    assert_same(ours[1:], theirs[1:], scale=scale, strides=False)
    assert_same(ours[1:], _run(torch, expression, channels, dtype, False)[1:], scale=scale, strides=False)


def test_group_norm_far_from_zero():
    """Torch's variance is a difference of squares for this layout, wrong in the first digit."""
    x = rushlight.tensor(_values(6)["x"] + 1000, dtype=rushlight.float32)
    image = x.to(memory_format=rushlight.channels_last).requires_grad_()
    exact = x.double().requires_grad_()
    results = [rushlight.nn.functional.group_norm(t, 3, eps=1e-3) for t in (image, exact)]
    weights = rushlight.arange(x.numel()).remainder(7).sub(3.0).reshape(x.shape)
    gradients = [
        rushlight.autograd.grad(r, t, weights.to(t.dtype))[0] for r, t in zip(results, (image, exact))
    ]
    for pair in (results, gradients):
        assert rushlight.allclose(pair[0].double(), pair[1], rtol=0, atol=1e-4)


BYTES = """
F.interpolate(x, scale_factor=2)
F.interpolate(x, size=(13, 4), mode="bilinear")
F.interpolate(x, size=(5, 4), mode="bilinear", antialias=True)
F.interpolate(x, size=(9, 4), mode="bilinear", antialias=True)
F.interpolate(x, size=(5, 11), mode="bicubic")
F.interpolate(x[:, :, :, :1], size=(5, 1), mode="bilinear")
F.interpolate(x, size=(40, 50), mode="bilinear")
F.pad(x, (1, 2, 3, 0))
F.pad(x, (1, 2, 3, 0), mode="reflect")
x.flip(3)
x.flip(1, 2)
"""


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 20])
@pytest.mark.parametrize("expression", [line for line in BYTES.splitlines() if line])
def test_bytes(expression, channels):
    values = np.random.default_rng(channels).integers(0, 256, (3, channels, 9, 7)).astype(np.uint8)
    results = []
    for lib in (rushlight, torch):
        x = lib.tensor(values).to(memory_format=lib.channels_last)
        results.append(eval(expression, {"x": x, "F": lib.nn.functional}))
    assert_same(*results)


@pytest.mark.parametrize(
    "expression",
    ["F.max_pool2d(x, 2)", "F.group_norm(x, 3, w, b)", "F.conv2d(x, k, b, stride=2, padding=1, groups=C)"],
)
def test_second_derivatives(expression):
    """The gradient of a gradient is that of the usual layout, which is checked by finite differences."""
    found = []
    for last in (True, False):
        space = {"torch": rushlight, "F": rushlight.nn.functional, "C": 6}
        for name, array in _values(6).items():
            space[name] = rushlight.tensor(array, requires_grad=True)
        if last:
            space["x"] = space["x"].detach().to(memory_format=rushlight.channels_last).requires_grad_()
        leaves = [space[name] for name in ("x", "w", "b", "k") if name in expression]
        out = eval(expression, space)
        first = rushlight.autograd.grad((out**3).sum(), leaves, create_graph=True)
        total = sum((g**2).sum() for g in first)
        found.append([*first, *rushlight.autograd.grad(total, leaves, allow_unused=True)])
    for one, other in zip(*found, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            assert rushlight.allclose(one, other, rtol=1e-9, atol=1e-9)
