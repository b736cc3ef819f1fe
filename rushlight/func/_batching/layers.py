"""Batching rules of convolutions, pools, resizing, padding, normalisation, losses and attention."""

from __future__ import annotations

import math
from typing import Any

from rushlight.func._batching.table import Batch, aligned, batching, example_by_example, ops


def _merged(x: Any) -> Any:
    """The examples of a batch among the images of each."""
    return x.reshape(-1, *x.shape[2:])


def _parted(batch: Batch, result: Any) -> Any:
    if isinstance(result, tuple):
        return tuple(_parted(batch, part) for part in result)
    return result.reshape(batch.size, -1, *result.shape[1:]) if batch.size else result.unsqueeze(0)


_PLANES = {
    **{f"adaptive_{kind}_pool{n}d": n for kind in ("avg", "max") for n in (1, 2, 3)},
    **{f"avg_pool{n}d": n for n in (1, 2, 3)},
    **{f"max_pool{n}d{form}": n for form in ("", "_with_indices", "_gradient") for n in (1, 2, 3)},
    **{f"{kind}_pad{n}d": n for kind in ("circular", "reflection", "replication") for n in (1, 2, 3)},
    **{f"upsample_{kind}2d": 2 for kind in ("bicubic", "bicubic2d_aa", "bilinear", "nearest", "nearest_exact")},
    "upsample_bicubic2d_aa": 2, "upsample_bilinear2d_aa": 2, "upsample_lanczos2d_aa": 2,
    "upsample_linear1d": 1, "upsample_nearest1d": 1, "upsample_nearest_exact1d": 1, "upsample_nearest3d": 3,
    "upsample_nearest_exact3d": 3, "upsample_trilinear3d": 3, "fractional_max_pool2d": 2,
    "fractional_max_pool3d": 3, "im2col": 2,
}  # fmt: skip
_PLANES = {name: n for name, n in _PLANES.items() if hasattr(ops, name)}


@batching(*_PLANES)
def of_planes(op: Any, batch: Batch, *args: Any) -> Any:
    count = op.input_count
    tensors = [batch.whole(t, flag) for t, flag in zip(args[:count], batch.batched, strict=False)]
    if tensors[0].dim() != _PLANES[op.__name__] + 3 or not batch.size or not tensors[0].numel():
        return example_by_example(op, batch, *args)
    return _parted(batch, op(*map(_merged, tensors), *args[count:]))


@batching("constant_pad_nd")
def constant_pad(op: Any, batch: Batch, x: Any, pad: Any, value: Any) -> Any:
    if len(pad) // 2 >= x.dim():
        return example_by_example(op, batch, x, pad, value)
    return op(x, pad, value)


def _side_by_side(batch: Batch, x: Any, batched: bool) -> Any:
    """The channels of all examples as the channels of one: (images, examples * channels, ...)."""
    x = batch.whole(x, batched)
    order = (1, 0, *range(2, x.dim()))
    x = ops.permute(x, order)
    return x.reshape(x.shape[0], -1, *x.shape[3:])


def _apart(batch: Batch, y: Any) -> Any:
    y = y.reshape(y.shape[0], batch.size, -1, *y.shape[2:])
    return ops.permute(y, (1, 0, *range(2, y.dim())))


def _stacked(batch: Batch, x: Any, batched: bool) -> Any:
    """(examples * rows, ...): the weights of all, one after the other."""
    x = batch.whole(x, batched)
    return x.reshape(-1, *x.shape[2:])


@batching("convolution", "conv_transpose")
def convolution(op: Any, batch: Batch, x: Any, weight: Any, bias: Any, *attributes: Any) -> Any:
    on_x, on_weight, on_bias = batch.batched[:3]
    *geometry, groups = attributes
    if x.dim() - on_x != weight.dim() - on_weight or not batch.size:
        return example_by_example(op, batch, x, weight, bias, *attributes)
    if not on_weight and not on_bias:
        return _parted(batch, op(_merged(x), weight, bias, *attributes))
    if not on_weight:  # one bias for each example
        out = _parted(batch, op(_merged(x), weight, None, *attributes))
        return ops.add(out, bias.reshape(batch.size, 1, -1, *(1,) * (out.dim() - 3)))
    out = op(_side_by_side(batch, x, on_x), _stacked(batch, weight, on_weight),
             None if bias is None else _stacked(batch, bias, on_bias), *geometry, groups * batch.size)  # fmt: skip
    return _apart(batch, out)


@batching("conv_input_gradient")
def conv_input_gradient(op: Any, batch: Batch, grad: Any, weight: Any, size: Any, *attributes: Any) -> Any:
    on_grad, on_weight = batch.batched[:2]
    *geometry, groups = attributes
    size = tuple(size)
    if not batch.size:
        return example_by_example(op, batch, grad, weight, size, *attributes)
    if not on_weight:
        return _parted(batch, op(_merged(grad), weight, (batch.size * size[0], *size[1:]), *attributes))
    out = op(_side_by_side(batch, grad, on_grad), _stacked(batch, weight, True),
             (size[0], batch.size * size[1], *size[2:]), *geometry, groups * batch.size)  # fmt: skip
    return _apart(batch, out)


@batching("conv_weight_gradient")
def conv_weight_gradient(op: Any, batch: Batch, x: Any, grad: Any, size: Any, *attributes: Any) -> Any:
    on_x, on_grad = batch.batched[:2]
    *geometry, groups = attributes
    size = tuple(size)
    if not batch.size:
        return example_by_example(op, batch, x, grad, size, *attributes)
    out = op(_side_by_side(batch, x, on_x), _side_by_side(batch, grad, on_grad),
             (batch.size * size[0], *size[1:]), *geometry, groups * batch.size)  # fmt: skip
    return out.reshape(batch.size, *size)


@batching("native_layer_norm", "rms_norm")
def layer_norm(op: Any, batch: Batch, x: Any, *rest: Any) -> Any:
    count = op.input_count - 1
    on_x, parameters, flags = batch.batched[0], rest[:count], batch.batched[1 : 1 + count]
    attributes = rest[count:]
    if not any(flags):
        return op(x, *parameters, *attributes)
    out, *statistics = op(batch.whole(x, on_x), *(None,) * count, *attributes)
    for i, (parameter, flag) in enumerate(zip(parameters, flags, strict=True)):
        if parameter is not None:
            out, parameter = aligned(batch, (out, parameter), (True, flag))
            out = ops.mul(out, parameter) if i == 0 else ops.add(out, parameter)
    return out, *statistics


def _by_channel(parameter: Any, rank: int) -> Any:
    """(..., channels) against (..., channels, space)."""
    return parameter.reshape(*parameter.shape, *(1,) * rank)


@batching("native_group_norm")
def group_norm(op: Any, batch: Batch, x: Any, weight: Any, bias: Any, groups: int, eps: float) -> Any:
    on_x, *flags = batch.batched[:3]
    if not batch.size or not x.numel():
        return example_by_example(op, batch, x, weight, bias, groups, eps)
    if not any(flags):
        return _parted(batch, op(_merged(x), weight, bias, groups, eps))
    out, *statistics = _parted(batch, op(_merged(batch.whole(x, on_x)), None, None, groups, eps))
    for i, (parameter, flag) in enumerate(zip((weight, bias), flags, strict=True)):
        if parameter is not None:
            parameter = _by_channel(parameter, out.dim() - 3)
            out, parameter = aligned(batch, (out, parameter), (True, flag))
            out = ops.mul(out, parameter) if i == 0 else ops.add(out, parameter)
    return out, *statistics


@batching("mse_loss", "smooth_l1_loss")
def elementwise_loss(op: Any, batch: Batch, x: Any, target: Any, reduction: int, *rest: Any) -> Any:
    x, target = aligned(batch, (x, target), batch.batched)
    loss = op(x, target, 0, *rest)
    if reduction == 0:
        return loss
    flat = loss.reshape(batch.size, -1)
    return ops.mean_dim(flat, (1,), False, None) if reduction == 1 else ops.sum_dim(flat, (1,), False, None)


@batching("nll_loss")
def nll_loss(op: Any, batch: Batch, x: Any, target: Any, weight: Any, reduction: int, ignore_index: int) -> Any:
    on_x, on_target, on_weight = batch.batched[:3]
    if on_weight or not batch.size:
        return example_by_example(op, batch, x, target, weight, reduction, ignore_index)
    x, target = batch.whole(x, on_x), batch.whole(target, on_target)
    single = x.dim() == 2
    rows, places = x.reshape(-1, x.shape[-1]), target.reshape(-1)
    loss = op(rows, places, weight, 0, ignore_index)
    if single:
        return loss if reduction != 1 else _weighted(loss, places, weight, ignore_index, ())
    loss = loss.reshape(batch.size, -1)
    if reduction == 0:
        return loss
    if reduction == 2:
        return ops.sum_dim(loss, (1,), False, None)
    return _weighted(ops.sum_dim(loss, (1,), False, None), target, weight, ignore_index, (1,))


def _weighted(loss: Any, target: Any, weight: Any, ignore_index: int, dims: tuple) -> Any:
    """Divided by the weights of the targets that are not ignored."""
    kept = ops.ne(target, ignore_index)
    share = kept.to(loss.dtype)
    if weight is not None:
        share = ops.mul(share, ops.index(weight, (ops.where(kept, target, 0),)))
    return ops.div(loss, ops.sum_dim(share, dims, False, None) if dims else share)


@batching("attention")
def attention(op: Any, batch: Batch, q: Any, k: Any, v: Any, mask: Any, scale: Any, causal: bool) -> Any:
    tensors = [batch.whole(t, flag) for t, flag in zip((q, k, v), batch.batched[:3], strict=True)]
    lead = tensors[0].shape[:-2]
    if any(t.shape[:-2] != lead for t in tensors) or not math.prod(lead) or mask is not None or len(lead) < 3:
        return example_by_example(op, batch, q, k, v, mask, scale, causal)
    flat = [t.reshape(-1, *t.shape[2:]) for t in tensors]
    return _parted(batch, op(*flat, None, scale, causal))


