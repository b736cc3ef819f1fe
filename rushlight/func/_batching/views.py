"""Batching rules of views and of what undoes them."""

from __future__ import annotations

import math
from typing import Any

from rushlight.func._batching.table import Batch, batching, ops, place, places


@batching("alias", "conj_view", "neg_view", "view_as_complex", "view_as_real", "straight", "clone",
          "contiguous_copy", "to_dtype", "to_device")  # fmt: skip
def same(op: Any, batch: Batch, x: Any, *rest: Any) -> Any:
    """What does not ask how many dimensions there are."""
    if op.__name__ == "view_as_complex" and x.dim() == 1:
        raise RuntimeError("Input tensor must have one or more dimensions")
    return op(x, *rest)


@batching("once")
def once(op: Any, batch: Batch, x: Any, by: Any, name: str) -> Any:
    return op(batch.whole(x, batch.batched[0]), by, name)


@batching("clone_strided")
def clone_strided(op: Any, batch: Batch, x: Any, stride: Any) -> Any:
    return ops.clone(x)


@batching("rows_copy")
def rows_copy(op: Any, batch: Batch, x: Any) -> Any:
    return ops.clone(x)


@batching("expand")
def expand(op: Any, batch: Batch, x: Any, size: Any) -> Any:
    more = len(size) - (x.dim() - 1)
    for _ in range(more):
        x = ops.unsqueeze(x, 1)
    return op(x, (batch.size, *size))


@batching("view")
def view(op: Any, batch: Batch, x: Any, size: Any) -> Any:
    if not batch.size and -1 in size:  # of no examples, it is said by the others
        known = math.prod(n for n in size if n != -1)
        size = [math.prod(x.shape[1:]) // known if n == -1 and known else n for n in size]
    return op(x, (batch.size, *size))


@batching("as_strided")
def as_strided(
    op: Any, batch: Batch, x: Any, size: Any, stride: Any, offset: Any, layout: Any, start: Any
) -> Any:
    first = x.storage_offset()
    if size and 0 not in size:
        reach = offset - start + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
        end = sum((n - 1) * step for n, step in zip(x.shape[1:], x.stride()[1:], strict=True))
        if offset < start or (x.numel() and reach > end):
            raise RuntimeError(
                f"result = tensor.as_strided({list(size)}, {list(stride)}, {offset}) can access memory "
                "outside of `tensor`. This is not supported inside of vmap since it would access memory of "
                "other examples"
            )
    return op(x, (batch.size, *size), (x.stride(0), *stride), first + offset - start, x.stride(), first)


@batching("diagonal")
def diagonal(op: Any, batch: Batch, x: Any, offset: int, dim1: int, dim2: int) -> Any:
    count = x.dim() - 1
    return op(x, offset, place(dim1, count), place(dim2, count))


@batching("diagonal_backward")
def diagonal_backward(op: Any, batch: Batch, g: Any, shape: Any, offset: int, dim1: int, dim2: int) -> Any:
    count = len(shape)
    return op(g, (batch.size, *shape), offset, place(dim1, count), place(dim2, count))


@batching("permute")
def permute(op: Any, batch: Batch, x: Any, dims: Any) -> Any:
    return op(x, (0, *places(tuple(dims), x.dim() - 1)))


@batching("select")
def select(op: Any, batch: Batch, x: Any, dim: int, index: int) -> Any:
    return op(x, place(dim, x.dim() - 1), index)


@batching("select_backward", "slice_backward")
def put_back(op: Any, batch: Batch, g: Any, shape: Any, dim: int, *rest: Any) -> Any:
    return op(g, (batch.size, *shape), place(dim, len(shape)), *rest)


@batching("slice", "unfold")
def along_one(op: Any, batch: Batch, x: Any, dim: int, *rest: Any) -> Any:
    if x.dim() == 1:  # `unfold` of a number
        return ops.transpose(op(ops.unsqueeze(x, 1), 1, *rest), 1, 1).squeeze(1)
    return op(x, place(dim, x.dim() - 1), *rest)


@batching("split", "split_with_sizes")
def split(op: Any, batch: Batch, x: Any, sizes: Any, dim: int) -> Any:
    return op(x, sizes, place(dim, x.dim() - 1))


@batching("unbind")
def unbind(op: Any, batch: Batch, x: Any, dim: int) -> Any:
    return op(x, place(dim, x.dim() - 1))


@batching("squeeze")
def squeeze(op: Any, batch: Batch, x: Any) -> Any:
    return ops.squeeze_dims(x, tuple(d for d in range(1, x.dim()) if x.shape[d] == 1))


@batching("squeeze_dim", "squeeze_dims")
def squeeze_dims(op: Any, batch: Batch, x: Any, dim: Any) -> Any:
    dims = places((dim,) if isinstance(dim, int) else tuple(dim), x.dim() - 1)
    return ops.squeeze_dims(x, tuple(d for d in dims if d < x.dim()))


@batching("t")
def t(op: Any, batch: Batch, x: Any) -> Any:
    return ops.transpose(x, 1, 2) if x.dim() == 3 else ops.alias(x)


@batching("transpose")
def transpose(op: Any, batch: Batch, x: Any, dim0: int, dim1: int) -> Any:
    count = x.dim() - 1
    first, second = place(dim0, count), place(dim1, count)
    return ops.alias(x) if count == 0 else op(x, first, second)


@batching("unsqueeze")
def unsqueeze(op: Any, batch: Batch, x: Any, dim: int) -> Any:
    return op(x, place(dim, x.dim()))


@batching("sum_to")
def sum_to(op: Any, batch: Batch, x: Any, shape: Any) -> Any:
    more = x.dim() - 1 - len(shape)
    if more:
        x = ops.sum_dim(x, tuple(range(1, more + 1)), False, None)
    return op(x, (batch.size, *shape))


@batching("restore")
def restore(op: Any, batch: Batch, g: Any, size: Any, dim: Any, keepdim: bool) -> Any:
    count = len(size)
    dims = places(dim, count)
    if dims is None or dims == ():
        dims = tuple(range(1, count + 1))
    if count == 0:
        return g.reshape(batch.size)
    return op(g, (batch.size, *size), dims, keepdim)


@batching("repeat")
def repeat(op: Any, batch: Batch, x: Any, repeats: Any) -> Any:
    more = len(repeats) - (x.dim() - 1)
    if more > 0:
        x = x.reshape(batch.size, *(1,) * more, *x.shape[1:])
    return op(x, (1, *repeats))
