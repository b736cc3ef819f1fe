"""Batching rules of normalisation."""

from __future__ import annotations

from typing import Any

from rushlight.func._batching.layers import apart, merged, parted, side_by_side, stacked
from rushlight.func._batching.table import Batch, aligned, batching, example_by_example, ops


@batching("native_layer_norm", "rms_norm")
def layer_norm(op: Any, batch: Batch, x: Any, *rest: Any) -> Any:
    count = op.input_count - 1
    on_x, flags = batch.batched[0], batch.batched[1:]
    parameters, attributes = rest[:count], rest[count:]
    if not any(flags):
        return op(x, *parameters, *attributes)
    out, *statistics = op(batch.whole(x, on_x), *(None,) * count, *attributes)
    for i, (parameter, flag) in enumerate(zip(parameters, flags, strict=True)):
        if parameter is not None:
            out, parameter = aligned(batch, (out, parameter), (True, flag))
            out = ops.mul(out, parameter) if i == 0 else ops.add(out, parameter)
    return out, *statistics


def _parameter_gradients(batch: Batch, g: Any, normal: Any, dims: int) -> tuple[Any, Any]:
    """Those of what the normal numbers are multiplied with, and of what is added then."""
    over = tuple(range(1, g.dim() - dims))
    product = ops.mul(g, normal)
    return (
        (ops.sum_dim(product, over, False, None), ops.sum_dim(g, over, False, None)) if over else (product, g)
    )


@batching("native_layer_norm_backward", "rms_norm_backward")
def layer_norm_backward(op: Any, batch: Batch, *args: Any) -> Any:
    count = op.input_count
    *tensors, weight = args[:count]
    dims, eps, affine = args[count:]
    *flags, on_weight = batch.batched
    g, x, *statistics = (batch.whole(t, flag) for t, flag in zip(tensors, flags, strict=True))
    scaled = g
    if on_weight:
        scaled, weight = ops.mul(*aligned(batch, (g, weight), (True, True))), None
    statistics = [t.contiguous() for t in statistics]
    dx, *none = op(scaled, x, *statistics, weight, dims, eps, False)
    if not affine:
        return dx, *(batch.whole(part, False) for part in none)
    normal = ops.mul(x if len(statistics) == 1 else ops.sub(x, statistics[0]), statistics[-1])
    return dx, *_parameter_gradients(batch, g, normal, dims)[: len(none)]


def _each(batch: Batch, parts: Any) -> tuple:
    """(examples * channels) as (examples, channels)."""
    return tuple(part.reshape(batch.size, part.shape[0] // batch.size) for part in parts)


def _several(batch: Batch, parameters: Any, flags: Any) -> list:
    return [p if p is None else stacked(batch, p, flag) for p, flag in zip(parameters, flags, strict=True)]


@batching("native_group_norm")
def group_norm(op: Any, batch: Batch, x: Any, weight: Any, bias: Any, groups: int, eps: float) -> Any:
    on_x, *flags = batch.batched
    if not batch.size or not x.numel():
        return example_by_example(op, batch, x, weight, bias, groups, eps)
    if not any(flags):
        return parted(batch, op(merged(x), weight, bias, groups, eps))
    made = op(side_by_side(batch, x, on_x), *_several(batch, (weight, bias), flags), groups * batch.size, eps)
    return tuple(apart(batch, part) for part in made)


@batching("native_group_norm_backward")
def group_norm_backward(op: Any, batch: Batch, *args: Any) -> Any:
    *tensors, weight, groups, eps = args
    if not batch.size or not tensors[1].numel():
        return example_by_example(op, batch, *args)
    *flags, on_weight = batch.batched
    given = [side_by_side(batch, t, flag).contiguous() for t, flag in zip(tensors, flags, strict=True)]
    dx, *rest = op(*given, *_several(batch, (weight,), (on_weight,)), groups * batch.size, eps)
    return apart(batch, dx), *_each(batch, rest)


@batching("batch_norm_train")
def batch_norm_train(
    op: Any, batch: Batch, x: Any, weight: Any, bias: Any, mean: Any, var: Any, eps: Any
) -> Any:
    if not batch.size:
        return example_by_example(op, batch, x, weight, bias, mean, var, eps)
    on_x, *flags = batch.batched[:3]
    given = _several(batch, (weight, bias), flags)
    out, *statistics = op(side_by_side(batch, x, on_x), *given, None, None, eps)
    return apart(batch, out), *_each(batch, statistics)


@batching("batch_norm_eval")
def batch_norm_eval(op: Any, batch: Batch, x: Any, *args: Any) -> Any:
    if not batch.size:
        return example_by_example(op, batch, x, *args)
    on_x, *flags = batch.batched
    *parameters, eps = args
    if any(flags):
        given = _several(batch, parameters, flags)
        out, *none = op(side_by_side(batch, x, on_x), *given, eps)
        out = apart(batch, out)
    else:
        out, *none = op(merged(x), *parameters, eps)
        out = parted(batch, out)
    return out, *(batch.whole(part, False) for part in none)


@batching("batch_norm_backward")
def batch_norm_backward(op: Any, batch: Batch, g: Any, x: Any, *args: Any) -> Any:
    if not batch.size:
        return example_by_example(op, batch, g, x, *args)
    *parameters, eps, training = args
    on_g, on_x, *flags = batch.batched
    images = side_by_side(batch, g, on_g), side_by_side(batch, x, on_x)
    dx, *rest = op(*images, *_several(batch, parameters, flags), eps, training)
    return apart(batch, dx), *_each(batch, rest)
