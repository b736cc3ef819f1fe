"""Batching rules of indexing, gathering and joining."""

from __future__ import annotations

import math
from typing import Any

from rushlight import _C
from rushlight.func._batching.table import Batch, Tensor, aligned, batching, example_by_example, ops, place
from rushlight.ops._examples import somewhere


def _examples(batch: Batch, like: Any, rank: int) -> Any:
    """0, 1, ... for the examples, to be broadcast with indices of that rank."""
    import rushlight

    return rushlight.arange(batch.size, device=like.device).reshape(batch.size, *(1,) * rank)


def _by_example(batch: Batch, indices: tuple, flags: tuple, like: Any) -> tuple[tuple, int] | None:
    """Indices of a batch, its examples' first, and the rank of what they select by; None where booleans that
    differ among the examples would select as many as they are."""
    given: list[Any] = []
    for index, flag in zip(indices, flags, strict=True):
        if index is None:
            given.append((None, False))
        elif index.dtype in (_C.bool, _C.uint8):
            if flag:
                return None
            given += [(part, False) for part in index.nonzero(as_tuple=True)]
        else:
            given.append((index, flag))
    tensors = [(i, f) for i, f in given if i is not None]
    if not tensors:
        return None
    rank = max(i.dim() - f for i, f in tensors)
    made: list[Any] = [_examples(batch, like, rank)]
    for index, flag in given:
        if flag:
            index = index.reshape(batch.size, *(1,) * (rank - index.dim() + 1), *index.shape[1:])
        made.append(index)
    return tuple(made), rank


def _by_masks(indices: tuple, flags: tuple) -> bool:
    """Whether booleans choose that differ among the examples."""
    pairs = zip(indices, flags, strict=True)
    return any(flag and index.dtype in (_C.bool, _C.uint8) for index, flag in pairs)


def _first(indices: tuple) -> tuple[int, bool]:
    """The first dimension that is indexed, and whether all that are lie side by side."""
    at = [i for i, index in enumerate(indices) if index is not None]
    return at[0], at[-1] - at[0] == len(at) - 1


@batching("index")
def index(op: Any, batch: Batch, x: Any, indices: tuple) -> Any:
    on_x, flags = batch.batched
    if all(i is None for i in indices):
        return op(x, (None, *indices))
    made = _by_example(batch, indices, flags, x)
    if made is None:
        raise RuntimeError(_DYNAMIC)
    chosen, rank = made
    result = op(batch.whole(x, on_x), chosen)
    first, together = _first(chosen[1:])
    if together and first:  # what is indexed is in its place, behind what is not
        order = [0, *range(1 + rank, 1 + rank + first), *range(1, 1 + rank)]
        return ops.permute(result, (*order, *range(len(order), result.dim())))
    return result


def _as_chosen(x: Any, chosen: tuple, rank: int, values: Any) -> Any:
    """Values for the elements of a batch x that `chosen` indexes, in the order of what indexing gives: what
    is indexed is in its place in an example, behind what is not, and comes first in a batch."""
    first, together = _first(chosen[1:])
    if not (together and first) or not isinstance(values, Tensor):
        return values
    import rushlight

    indexed = tuple(rushlight.broadcast_shapes(*(i.shape for i in chosen if i is not None)))
    free = [n for n, i in zip(x.shape, chosen, strict=False) if i is None]
    free += x.shape[len(chosen) :]
    whole = ops.expand(values, (indexed[0], *free[:first], *indexed[1:], *free[first:]))
    order = (0, *range(1 + first, 1 + first + rank), *range(1, 1 + first))
    return ops.permute(whole, (*order, *range(len(order), whole.dim())))


@batching("index_put")
def index_put(op: Any, batch: Batch, x: Any, indices: tuple, values: Any, accumulate: bool) -> Any:
    on_x, flags, on_values = batch.batched
    x = batch.whole(x, on_x)
    masks = [i for i, f in zip(indices, flags, strict=True) if i is not None and f and i.dtype == _C.bool]
    single = not isinstance(values, Tensor) or values.numel() == (batch.size if on_values else 1)
    if masks and len(indices) == 1 and single and not accumulate:
        mask = masks[0].reshape(*masks[0].shape, *(1,) * (x.dim() - masks[0].dim()))
        if isinstance(values, Tensor):
            values = values.reshape((batch.size if on_values else 1), *(1,) * (x.dim() - 1)).to(x.dtype)
        return ops.where(mask, values, x)
    made = _by_example(batch, indices, flags, x) if indices else None
    if made is None and _by_masks(indices, flags):
        raise RuntimeError(_DYNAMIC)
    if made is None:
        inner = Batch(batch.size, (True, flags, on_values), batch.number)
        return example_by_example(op, inner, x, indices, values, accumulate)
    chosen, rank = made
    if on_values:
        free = sum(1 for i in chosen if i is None) + x.dim() - len(chosen)
        values = values.reshape(batch.size, *(1,) * (rank + free - values.dim() + 1), *values.shape[1:])
    return op(x, chosen, _as_chosen(x, chosen, rank, values), accumulate)


@batching("index_backward")
def index_backward(op: Any, batch: Batch, g: Any, indices: tuple, shape: Any) -> Any:
    on_g, flags = batch.batched
    made = _by_example(batch, indices, flags, g)
    if made is None:
        return example_by_example(op, batch, g, indices, shape)
    chosen, rank = made
    g = batch.whole(g, on_g)
    first, together = _first(chosen[1:])
    if together and first:
        order = (0, *range(1 + first, 1 + first + rank), *range(1, 1 + first))
        g = ops.permute(g, (*order, *range(len(order), g.dim())))
    return op(g, chosen, (batch.size, *shape))


def _along(op: Any, batch: Batch, tensors: tuple, dim: int, rest: tuple) -> Any:
    tensors = tuple(
        batch.whole(t, flag) if isinstance(t, Tensor) else t
        for t, flag in zip(tensors, batch.batched, strict=False)
    )
    least = [t.dim() - 1 for t in tensors if isinstance(t, Tensor)]
    at = place(dim, max(least))
    if min(least) > 0:
        return op(*tensors, at, *rest)
    lifted = tuple(
        ops.unsqueeze(t, 1) if isinstance(t, Tensor) and t.dim() == 1 and i < 3 else t
        for i, t in enumerate(tensors)
    )
    result = op(*lifted, 1, *rest)
    wanted = tensors[1] if op.__name__.startswith("gather") else tensors[0]
    return result if wanted.dim() > 1 else result.reshape(batch.size)


@batching("gather", "gather_sparse")
def gather(op: Any, batch: Batch, x: Any, index: Any, dim: int, *rest: Any) -> Any:
    return _along(op, batch, (x, index), dim, rest)


@batching("scatter", "scatter_add", "scatter_reduce")
def scatter(op: Any, batch: Batch, x: Any, index: Any, src: Any, dim: int, *rest: Any) -> Any:
    return _along(op, batch, (x, index, src), dim, rest)


@batching("scatter_value")
def scatter_value(op: Any, batch: Batch, x: Any, index: Any, value: Any, dim: int, *rest: Any) -> Any:
    if isinstance(value, Tensor) and batch.batched[2]:
        return example_by_example(op, batch, x, index, value, dim, *rest)
    inner = Batch(batch.size, batch.batched[:2], batch.number)

    class With:
        __name__ = "scatter_value"

        def __call__(self, x: Any, index: Any, dim: int, *rest: Any) -> Any:
            return op(x, index, value, dim, *rest)

    return _along(With(), inner, (x, index), dim, rest)


@batching("index_select")
def index_select(op: Any, batch: Batch, x: Any, index: Any, dim: int) -> Any:
    on_x, on_index = batch.batched
    count = x.dim() - on_x
    at = place(dim, count)
    if count == 0:
        return example_by_example(op, batch, x, index, dim)
    if not on_index:
        return op(x, index, at)
    if not on_x:
        flat = op(x, index.reshape(-1), at - 1)
        parted = flat.reshape(*x.shape[: at - 1], *(index.shape if index.dim() > 1 else (batch.size, 1)),
                              *x.shape[at:])  # fmt: skip
        return ops.permute(parted, (at - 1, *range(at - 1), *range(at, parted.dim())))
    index = index.reshape(batch.size, *(1,) * (at - 1), math.prod(index.shape[1:]), *(1,) * (count - at))
    return ops.gather(x, index.expand(batch.size, *x.shape[1:at], index.shape[at], *x.shape[at + 1 :]), at)


@batching("index_add", "index_copy", "index_reduce")
def index_write(op: Any, batch: Batch, x: Any, index: Any, source: Any, dim: int, *rest: Any) -> Any:
    on_x, on_index, on_source = batch.batched[:3]
    count = x.dim() - on_x
    if on_index or count == 0 or source.dim() - on_source != count:
        return example_by_example(op, batch, x, index, source, dim, *rest)
    return op(batch.whole(x, on_x), index, batch.whole(source, on_source), place(dim, count), *rest)


@batching("index_fill")
def index_fill(op: Any, batch: Batch, x: Any, index: Any, value: Any, dim: int) -> Any:
    on_x, on_index, on_value = batch.batched[:3]
    count = x.dim() - on_x
    if on_index or on_value or count == 0:
        return example_by_example(op, batch, x, index, value, dim)
    return op(x, index, value, place(dim, count))


@batching("take")
def take(op: Any, batch: Batch, x: Any, index: Any) -> Any:
    on_x, on_index = batch.batched
    if not on_x:
        return op(x, index)
    shape = index.shape[1:] if on_index else index.shape
    if not x[0].numel() if batch.size else True:
        return example_by_example(op, batch, x, index)
    flat = batch.whole(index, on_index).reshape(batch.size, -1)
    count = x.numel() // batch.size
    flat = ops.where(ops.lt(flat, 0), ops.add(flat, count), flat)
    return ops.gather(x.reshape(batch.size, -1), flat, 1).reshape(batch.size, *shape)


_DYNAMIC = (
    "vmap: We do not support batching operators that can support dynamic shape. Attempting to batch over "
    "indexing with a boolean mask."
)


@batching("nonzero")
def nonzero(op: Any, batch: Batch, x: Any) -> Any:
    raise RuntimeError(
        "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over "
        "aten::nonzero. Please file an issue at https://github.com/pytorch/pytorch/issues if you need this "
        "feature."
    )


@batching("masked_select")
def masked_select(op: Any, batch: Batch, x: Any, mask: Any) -> Any:
    if batch.batched[1]:
        raise RuntimeError(
            "vmap: Attempted to vmap over `mask` in torch.masked_select(self, mask) We cannot support this "
            "because for each batch this would return a differently shaped Tensor. Please file an issue at "
            "https://github.com/pytorch/pytorch/issues if you need this feature."
        )
    import rushlight

    shape = tuple(rushlight.broadcast_shapes(x.shape[1:], mask.shape))
    if not shape:
        return example_by_example(op, batch, x, mask)
    x = x.reshape(batch.size, *(1,) * (len(shape) - x.dim() + 1), *x.shape[1:])
    places = ops.expand(mask, shape).nonzero(as_tuple=True)
    return ops.index(ops.expand(x, (batch.size, *shape)), (None, *places))


@batching("put")
def put(op: Any, batch: Batch, x: Any, index: Any, source: Any, accumulate: bool) -> Any:
    on_x, on_index, on_source = batch.batched
    x = batch.whole(x, on_x)
    if not x.numel():
        return example_by_example(op, Batch(batch.size, (True, on_index, on_source), batch.number), x, index,
                                  source, accumulate)  # fmt: skip
    index, source = batch.whole(index, on_index), batch.whole(source, on_source)
    count = x.numel() // batch.size
    inside = ops.logical_and(ops.ge(index, -count), ops.lt(index, count))
    if somewhere(ops.logical_not(inside)):  # which says which one
        return example_by_example(
            op, Batch(batch.size, (True,) * 3, batch.number), x, index, source, accumulate
        )
    moved = ops.where(ops.lt(index, 0), ops.add(index, count), index)
    moved = ops.add(moved, ops.mul(_examples(batch, index, index.dim() - 1), count))
    return op(x, moved, source, accumulate)


@batching("searchsorted")
def searchsorted(op: Any, batch: Batch, edges: Any, values: Any, order: Any, right: bool) -> Any:
    on_edges, on_values, on_order = batch.batched
    if not on_edges and not on_order and edges.dim() == 1:
        return op(edges, values, order, right)
    rank = values.dim() - on_values
    edges, values = batch.whole(edges, on_edges), batch.whole(values, on_values)
    order = None if order is None else batch.whole(order, on_order)
    if edges.dim() > 2 or rank == 1:
        return op(edges, values, order, right)
    shape = values.shape  # any, of one row of edges
    return op(edges, values.reshape(batch.size, math.prod(shape[1:])), order, right).reshape(shape)


@batching("masked_fill")
def masked_fill(op: Any, batch: Batch, x: Any, mask: Any, value: Any) -> Any:
    on_x, on_mask, on_value = batch.batched
    if on_value:
        x, mask = aligned(batch, (x, mask), (on_x, on_mask))
        most = max(x.dim() - on_x, mask.dim() - on_mask)
        value = value.reshape(batch.size, *(1,) * most).to(x.dtype)
        return ops.where(mask, value, x)
    x, mask = aligned(batch, (batch.whole(x, on_x), mask), (True, on_mask))
    return op(x, mask, value)


@batching("copy")
def copy(op: Any, batch: Batch, x: Any, source: Any) -> Any:
    on_x, on_source = batch.batched
    x = batch.whole(x, on_x)
    if on_source and source.dim() < x.dim():
        source = source.reshape(batch.size, *(1,) * (x.dim() - source.dim()), *source.shape[1:])
    return op(x, source)


@batching("fill")
def fill(op: Any, batch: Batch, x: Any, value: Any) -> Any:
    on_x, on_value = batch.batched
    x = batch.whole(x, on_x)
    if not on_value:
        return op(x, value)
    if value.dim() != 1:
        raise RuntimeError(
            f"fill_ only supports 0-dimension value tensor but got tensor with {value.dim() - 1} dimensions."
        )
    return ops.copy(x, value.reshape(batch.size, *(1,) * (x.dim() - 1)))


@batching("embedding", "embedding_sparse")
def embedding(
    op: Any, batch: Batch, weight: Any, index: Any, padding_idx: Any, scale: bool, *rest: Any
) -> Any:
    on_weight, on_index = batch.batched[:2]
    if not on_weight:
        return op(weight, index, padding_idx, scale, *rest)
    if scale or (padding_idx is not None and padding_idx >= 0) or rest:
        return example_by_example(op, batch, weight, index, padding_idx, scale, *rest)
    index = batch.whole(index, on_index)
    return ops.index(weight, (_examples(batch, index, index.dim() - 1), index))


@batching("embedding_backward")
def embedding_backward(
    op: Any, batch: Batch, g: Any, index: Any, rows: int, padding_idx: Any, scale: bool
) -> Any:
    on_g, on_index = batch.batched[:2]
    if scale:
        return example_by_example(op, batch, g, index, rows, padding_idx, scale)
    g, index = batch.whole(g, on_g), batch.whole(index, on_index)
    if padding_idx is not None and padding_idx >= 0:
        g = ops.masked_fill(g, ops.eq(index, padding_idx).unsqueeze(-1), 0)
    moved = ops.add(index, ops.mul(_examples(batch, index, index.dim() - 1), rows))
    whole = op(g, moved, batch.size * rows, -1, False)
    return whole.reshape(batch.size, rows, *whole.shape[1:])


def _joined(batch: Batch, tensors: tuple) -> tuple:
    return tuple(batch.whole(t, flag) for t, flag in zip(tensors, batch.batched[0], strict=True))


@batching("cat")
def cat(op: Any, batch: Batch, tensors: tuple, dim: int) -> Any:
    whole = _joined(batch, tensors)
    count = max(t.dim() - 1 for t in whole)
    # Torch joins tensors of size (0,) to anything: nothing of them is left.
    whole = tuple(t for t in whole if t.dim() == count + 1 or t.shape[1:] != (0,)) or whole
    return op(whole, place(dim, count))


@batching("stack")
def stack(op: Any, batch: Batch, tensors: tuple, dim: int) -> Any:
    whole = _joined(batch, tensors)
    return op(whole, place(dim, whole[0].dim()))


@batching("bag_sum")
def bag_sum(op: Any, batch: Batch, weight: Any, index: Any, starts: Any, *attributes: Any) -> Any:
    """The bags of all examples one after the other."""
    on_weight, _, on_starts = batch.batched
    by_frequency = attributes[-1]  # which is one in each example
    if on_weight or on_starts or by_frequency or not batch.size:
        return example_by_example(op, batch, weight, index, starts, *attributes)
    import rushlight

    count = index.shape[1]
    first = rushlight.arange(batch.size, device=starts.device).unsqueeze(1) * count
    every = rushlight.cat([(first + starts[:-1]).reshape(-1), starts.new_full((1,), batch.size * count)])
    made = op(weight, index.reshape(-1), every, *attributes)
    return made.reshape(batch.size, -1, made.shape[1])
