"""Batching rules of losses, distances and attention."""

from __future__ import annotations

from typing import Any

from rushlight.func._batching.layers import merged, parted
from rushlight.func._batching.table import Batch, aligned, batching, example_by_example, ops


@batching("mse_loss", "smooth_l1_loss")
def elementwise_loss(op: Any, batch: Batch, x: Any, target: Any, reduction: str, *rest: Any) -> Any:
    x, target = aligned(batch, (x, target), batch.batched)
    loss = op(x, target, "none", *rest)
    return _reduced(loss, {"none": 0, "mean": 1, "sum": 2}[reduction])


def _reduced(loss: Any, reduction: int) -> Any:
    dims = tuple(range(1, loss.dim()))
    if not reduction or not dims:
        return loss
    return (ops.mean_dim if reduction == 1 else ops.sum_dim)(loss, dims, False, None)


def _share(dtype: Any, target: Any, weight: Any, ignore_index: int) -> Any:
    """The weight of every target, none of those that are ignored."""
    kept = ops.ne(target, ignore_index)
    share = kept.to(dtype)
    if weight is not None:
        share = ops.mul(share, ops.index(weight, (ops.where(kept, target, 0),)))
    return share


def _total(dtype: Any, target: Any, weight: Any, ignore_index: int) -> Any:
    """Of each example, what a mean is divided by."""
    return _reduced(_share(dtype, target, weight, ignore_index), 2)


@batching("nll_loss", "nll_loss2d")
def nll_loss(
    op: Any, batch: Batch, x: Any, target: Any, weight: Any, reduction: int, ignore_index: int
) -> Any:
    on_x, on_target, on_weight = batch.batched
    if on_weight or not batch.size:
        return example_by_example(op, batch, x, target, weight, reduction, ignore_index)
    x, target = batch.whole(x, on_x), batch.whole(target, on_target)
    if x.dim() == 2:  # one row each
        loss = op(x, target, weight, 0, ignore_index)
    else:
        loss = parted(batch, op(merged(x), merged(target), weight, 0, ignore_index))
    if reduction != 1:
        return _reduced(loss, reduction)
    return ops.div(_reduced(loss, 2), _total(loss.dtype, target, weight, ignore_index))


@batching("nll_loss_backward", "nll_loss2d_backward")
def nll_loss_backward(op: Any, batch: Batch, g: Any, target: Any, weight: Any, size: Any, reduction: int,
                      ignore_index: int) -> Any:  # fmt: skip
    on_g, on_target, on_weight = batch.batched
    if on_weight or not batch.size:
        return example_by_example(op, batch, g, target, weight, size, reduction, ignore_index)
    g, target = batch.whole(g, on_g), batch.whole(target, on_target)
    if reduction == 1:
        g = ops.div(g, _total(g.dtype, target, weight, ignore_index))
    if reduction and target.dim() > 1:
        g = ops.expand(g.reshape(batch.size, *(1,) * (target.dim() - 1)), target.shape)
    if len(size) == 1:
        return op(g, target, weight, (batch.size, *size), 0, ignore_index)
    rows = op(merged(g), merged(target), weight, (batch.size * size[0], *size[1:]), 0, ignore_index)
    return parted(batch, rows)


@batching("cdist", "cdist_backward")
def cdist(op: Any, batch: Batch, *args: Any) -> Any:
    *tensors, p = args
    whole = [batch.whole(t, flag) for t, flag in zip(tensors, batch.batched, strict=True)]
    return op(*aligned(batch, whole, (True,) * len(whole)), p)


@batching("attention", "attention_backward", "attention_keeping", "attention_keeping_backward")
def attention(op: Any, batch: Batch, *args: Any) -> Any:
    """The dimensions in front are any; a mask broadcasts."""
    count = op.input_count
    tensors: list[Any] = [
        None if t is None else batch.whole(t, flag) for t, flag in zip(args, batch.batched, strict=False)
    ]
    if op.__name__ == "attention_keeping_backward":
        tensors[-1] = tensors[-1].contiguous()
    return op(*aligned(batch, tensors, [t is not None for t in tensors]), *args[count:])
