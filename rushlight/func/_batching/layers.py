"""Batching rules of convolutions, pools, resizing, padding and sampling."""

from __future__ import annotations

from typing import Any

from rushlight.func._batching.table import Batch, batching, example_by_example, ops


def merged(x: Any) -> Any:
    """The examples of a batch among the images of each."""
    return x.reshape(x.shape[0] * x.shape[1], *x.shape[2:])


def parted(batch: Batch, result: Any) -> Any:
    if isinstance(result, tuple):
        return tuple(parted(batch, part) for part in result)
    return result.reshape(batch.size, result.shape[0] // batch.size, *result.shape[1:])


_PLANES = {
    **{f"adaptive_{kind}_pool{n}d": n for kind in ("avg", "max") for n in (1, 2, 3)},
    **{f"avg_pool{n}d": n for n in (1, 2, 3)},
    **{f"max_pool{n}d{form}": n for form in ("", "_with_indices", "_gradient") for n in (1, 2, 3)},
    **{f"{kind}_pad{n}d": n for kind in ("circular", "reflection", "replication") for n in (1, 2, 3)},
    **{f"upsample_{kind}2d": 2 for kind in ("bicubic", "bilinear", "nearest", "nearest_exact")},
    "upsample_bicubic2d_aa": 2, "upsample_bilinear2d_aa": 2, "upsample_lanczos2d_aa": 2,
    "upsample_linear1d": 1, "upsample_nearest1d": 1, "upsample_nearest_exact1d": 1, "upsample_nearest3d": 3,
    "upsample_nearest_exact3d": 3, "upsample_trilinear3d": 3, "fractional_max_pool2d": 2,
    "fractional_max_pool3d": 3, "im2col": 2, "col2im": 1,
}  # fmt: skip
_PLANES = {name: n for name, n in _PLANES.items() if hasattr(ops, name)}


@batching(*_PLANES)
def of_planes(op: Any, batch: Batch, *args: Any) -> Any:
    count = op.input_count
    tensors = [batch.whole(t, flag) for t, flag in zip(args[:count], batch.batched, strict=False)]
    if tensors[0].dim() != _PLANES[op.__name__] + 3 or not batch.size or not tensors[0].numel():
        return example_by_example(op, batch, *args)
    return parted(batch, op(*map(merged, tensors), *args[count:]))


@batching("constant_pad_nd")
def constant_pad(op: Any, batch: Batch, x: Any, pad: Any, value: Any) -> Any:
    if len(pad) // 2 >= x.dim():
        return example_by_example(op, batch, x, pad, value)
    return op(x, pad, value)


def side_by_side(batch: Batch, x: Any, batched: bool) -> Any:
    """The channels of all examples as the channels of one: (images, examples * channels, ...)."""
    x = batch.whole(x, batched)
    order = (1, 0, *range(2, x.dim()))
    x = ops.permute(x, order)
    return x.reshape(x.shape[0], x.shape[1] * x.shape[2], *x.shape[3:])


def apart(batch: Batch, y: Any) -> Any:
    y = y.reshape(y.shape[0], batch.size, y.shape[1] // batch.size, *y.shape[2:])
    return ops.permute(y, (1, 0, *range(2, y.dim())))


def stacked(batch: Batch, x: Any, batched: bool) -> Any:
    """(examples * rows, ...): the weights of all, one after the other."""
    return merged(batch.whole(x, batched))


@batching("convolution", "conv_transpose")
def convolution(op: Any, batch: Batch, x: Any, weight: Any, bias: Any, *attributes: Any) -> Any:
    on_x, on_weight, on_bias = batch.batched[:3]
    *geometry, groups = attributes
    if x.dim() - on_x != weight.dim() - on_weight or not batch.size:
        return example_by_example(op, batch, x, weight, bias, *attributes)
    if not on_weight and not on_bias:
        return parted(batch, op(merged(x), weight, bias, *attributes))
    if not on_weight:  # one bias for each example
        out = op(merged(x) if on_x else x, weight, None, *attributes)
        bias = bias.reshape(batch.size, 1, -1, *(1,) * (weight.dim() - 2))
        return ops.add(parted(batch, out) if on_x else out, bias)
    bias = None if bias is None else stacked(batch, bias, on_bias)
    images, filters = side_by_side(batch, x, on_x), stacked(batch, weight, on_weight)
    out = op(images, filters, bias, *geometry, groups * batch.size)
    return apart(batch, out)


@batching("conv_input_gradient")
def conv_input_gradient(op: Any, batch: Batch, grad: Any, weight: Any, size: Any, *attributes: Any) -> Any:
    on_grad, on_weight = batch.batched[:2]
    *geometry, groups = attributes
    size = tuple(size)
    if not batch.size:
        return example_by_example(op, batch, grad, weight, size, *attributes)
    if not on_weight:
        return parted(batch, op(merged(grad), weight, (batch.size * size[0], *size[1:]), *attributes))
    out = op(side_by_side(batch, grad, on_grad), stacked(batch, weight, True),
             (size[0], batch.size * size[1], *size[2:]), *geometry, groups * batch.size)  # fmt: skip
    return apart(batch, out)


@batching("conv_weight_gradient")
def conv_weight_gradient(op: Any, batch: Batch, x: Any, grad: Any, size: Any, *attributes: Any) -> Any:
    on_x, on_grad = batch.batched[:2]
    *geometry, groups = attributes
    size = tuple(size)
    if not batch.size:
        return example_by_example(op, batch, x, grad, size, *attributes)
    out = op(side_by_side(batch, x, on_x), side_by_side(batch, grad, on_grad),
             (batch.size * size[0], *size[1:]), *geometry, groups * batch.size)  # fmt: skip
    return out.reshape(batch.size, *size)


@batching("max_pool_gather", "max_pool_scatter", "max_unpool", "pick_products", "pick_weighted",
          "spread_weighted", "grid_gradient", "grid_sample", "grid_sample_gradient", "grid_slopes",
          "grid_terms")  # fmt: skip
def of_images(op: Any, batch: Batch, *args: Any) -> Any:
    """What computes each image by itself, however large."""
    if not batch.size:
        return example_by_example(op, batch, *args)
    tensors = [batch.whole(t, flag) for t, flag in zip(args, batch.batched, strict=False)]
    if op.__name__.startswith("max_"):  # the dimensions before the plane are any
        return op(*tensors, *args[len(tensors) :])
    return parted(batch, op(*map(merged, tensors), *args[len(tensors) :]))
