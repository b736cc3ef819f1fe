"""Batching rules of reductions, scans and sorting: what goes along dimensions."""

from __future__ import annotations

from typing import Any

from rushlight.func._batching.table import Batch, batching, ops, place, places

# Where among their attributes they are told the dimensions, and keepdim.
_REDUCTIONS = {
    "all": (0, 1), "amax": (0, 1), "amin": (0, 1), "aminmax": (0, 1), "any": (0, 1), "argmax": (0, 1),
    "argmin": (0, 1), "count_nonzero": (0, None), "kthvalue": (1, 2), "logsumexp": (0, 1), "max_dim": (0, 1),
    "mean_dim": (0, 1), "median_dim": (0, 1), "min_dim": (0, 1), "mode": (0, 1), "nanmedian_dim": (0, 1),
    "nansum": (0, 1), "prod_dim": (0, 1), "std": (0, 2), "std_mean": (0, 2), "sum_dim": (0, 1), "var": (0, 2),
    "var_mean": (0, 2), "vector_norm": (1, 2),
}  # fmt: skip
_OF_ONE = {"argmax", "argmin", "aminmax"}  # dimension at a time: all of them are made one


def _reshaped(result: Any, shape: tuple) -> Any:
    if isinstance(result, tuple):
        return tuple(part.reshape(shape) for part in result)
    return result.reshape(shape)


@batching(*_REDUCTIONS)
def reduction(op: Any, batch: Batch, x: Any, *attributes: Any) -> Any:
    at, keep_at = _REDUCTIONS[op.__name__]
    given = list(attributes)
    count = x.dim() - 1
    dims = places(given[at], count)
    keepdim = keep_at is not None and bool(given[keep_at])
    every = dims is None or (dims == () and op.__name__ not in ("all", "any"))
    if count == 0:
        given[at] = (1,) if isinstance(dims, tuple) or (every and op.__name__ not in _OF_ONE) else 1
        if keep_at is not None:
            given[keep_at] = False
        return op(ops.unsqueeze(x, 1), *given)
    if every and op.__name__ in _OF_ONE:
        kept = (batch.size, *(1,) * count) if keepdim else (batch.size,)
        given[at], given[keep_at] = 1, False  # type: ignore[index]
        return _reshaped(op(batch.rows(x), *given), kept)
    given[at] = tuple(range(1, count + 1)) if every else dims
    return op(x, *given)


_WHOLE = {"max": "amax", "min": "amin", "sum": "sum_dim", "mean": "mean_dim", "prod": "prod_dim"}


@batching(*_WHOLE)
def whole(op: Any, batch: Batch, x: Any, *dtype: Any) -> Any:
    """All elements of each example."""
    return getattr(ops, _WHOLE[op.__name__])(batch.rows(x), 1 if op.__name__ == "prod" else (1,),
                                             False, *dtype)  # fmt: skip


@batching("median", "nanmedian")
def median(op: Any, batch: Batch, x: Any) -> Any:
    return getattr(ops, f"{op.__name__}_dim")(batch.rows(x), 1, False)[0]


def _scan(op: Any, batch: Batch, tensors: tuple, attributes: tuple, at: int) -> Any:
    """Along one dimension, the result as large as the argument."""
    tensors = tuple(batch.whole(t, flag) for t, flag in zip(tensors, batch.batched, strict=False))
    count = tensors[0].dim() - 1
    given = list(attributes)
    given[at] = place(given[at], count)
    if count:
        return op(*tensors, *given)
    result = op(*(ops.unsqueeze(t, 1) for t in tensors), *given)
    return tuple(part.squeeze(1) for part in result) if isinstance(result, tuple) else result.squeeze(1)


@batching("cummax", "cummin", "cumprod", "cumsum", "logcumsumexp", "softmax", "log_softmax", "sort")
def scan(op: Any, batch: Batch, x: Any, *attributes: Any) -> Any:
    return _scan(op, batch, (x,), attributes, 0)


@batching("topk")
def topk(op: Any, batch: Batch, x: Any, *attributes: Any) -> Any:
    if x.dim() == 1:
        k = attributes[0]
        if k not in (0, 1):
            raise RuntimeError("selected index k out of range")
        values, indices = op(ops.unsqueeze(x, 1), k, 1, *attributes[2:])
        return values.reshape(batch.size), indices.reshape(batch.size)
    return _scan(op, batch, (x,), attributes, 1)


@batching("softmax_backward", "log_softmax_backward")
def scan_of_two(op: Any, batch: Batch, g: Any, result: Any, dim: int) -> Any:
    return _scan(op, batch, (g, result), (dim,), 0)


@batching("logcumsumexp_backward", "logcumsumexp_tangent")
def scan_of_three(op: Any, batch: Batch, g: Any, x: Any, result: Any, *attributes: Any) -> Any:
    return _scan(op, batch, (g, x, result), attributes, 0)


@batching("flip")
def flip(op: Any, batch: Batch, x: Any, dims: Any) -> Any:
    count = x.dim() - 1
    return ops.clone(x) if count == 0 else op(x, places(tuple(dims), count))


@batching("roll")
def roll(op: Any, batch: Batch, x: Any, shifts: Any, dims: Any) -> Any:
    if x.dim() == 1:
        return ops.clone(x)
    if not dims:
        return op(batch.rows(x), shifts, (1,)).reshape(x.shape)
    return op(x, shifts, places(dims, x.dim() - 1))


@batching("tril", "triu")
def triangle(op: Any, batch: Batch, x: Any, diagonal: int) -> Any:
    if x.dim() < 3:
        raise RuntimeError(f"{op.__name__}: input tensor must have at least 2 dimensions")
    return op(x, diagonal)


@batching("fft_c2c", "fft_c2r", "fft_r2c")
def fft(op: Any, batch: Batch, x: Any, dims: Any, *attributes: Any) -> Any:
    return op(x, places(tuple(dims), x.dim() - 1), *attributes)
