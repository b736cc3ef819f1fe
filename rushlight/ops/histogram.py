"""Counting elements in bins: histc, histogram, histogramdd. Composed of searchsorted and scatter_add."""

from __future__ import annotations

import math

from rushlight import _C, return_types
from rushlight.ops._examples import filled
from rushlight.ops._public import (
    C_NAMES,
    FUNCTIONS,
    Tensor,
    function,
    needs_values,
    public,
    refuse_complex,
    type_name,
    undifferentiable,
    whole,
    write_out,
)

ops = _C.ops


def _number(value):
    """A number as the sentences of torch print it."""
    return "nan" if value != value else f"{value:g}"


def _counted(place, inside, bins, weight, dtype, device):
    """How much weight falls into each bin: `place` is the bin of each element, where `inside` holds."""
    place = ops.where(inside, place, bins).long()  # the others: into one bin more, which nobody asks for
    counts = _C.full((bins + 1,), 0, _C.float64, device)
    if weight is None:
        weight = _C.full((place.numel(),), 1, _C.float64, device)
    else:
        weight = weight.reshape(-1).double()
    return filled(_C.ops.scatter_add, counts, place, weight, 0)[:bins].to(dtype)


def _bins(x, edge, within, even):
    """The bin of each element that is within the edges. Between even ones it is computed, and compared with
    the edges beside it: a fifth of the time of a search."""
    count = edge.numel() - 1
    if even and x.numel() > 500 and x.dtype in (_C.float32, _C.float64) and count <= 1 << 16:
        low, high = edge[0].item(), edge[-1].item()
        width = (high - low) / count
        # No edge is rounded, and no element misplaced, by as much as one bin.
        if math.isfinite(width) and width > 64 * _C.finfo(x.dtype).eps * max(abs(low), abs(high)):
            place = FUNCTIONS["clamp"](ops.where(within, (x - low) * (1 / width), 0), max=count - 1).long()
            before = ops.lt(x, edge[:-1].index_select(0, place))
            behind = ops.ge(x, edge[1:].index_select(0, place))
            return FUNCTIONS["clamp"](place + behind.long() - before.long(), max=count - 1)
    return FUNCTIONS["clamp"](FUNCTIONS["searchsorted"](edge, x, right=True) - 1, max=count - 1)


_SAME = (
    "torch.histogram: input tensor and hist tensor should have the same dtype, but got input {result_c} and "
    "hist {out_c}"
)


@public
def histc(input, bins=100, min=0, max=0, *, out=None):
    """How many elements fall into each of `bins` equal parts of [min, max] (of the elements' own range if
    both are equal).

    >>> rushlight.histc(rushlight.tensor([1., 2., 1.]), bins=4, min=0, max=3)
    tensor([0., 2., 1., 0.])
    """
    x = _C.detach(input).reshape(-1)
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    if x.is_complex():
        kernel = "aminmax_cpu" if x.numel() and min == max else "histogram_cpu"
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{type_name(x.dtype)}'")
    if x.dtype == _C.bool:
        raise NotImplementedError("\"linspace_cpu\" not implemented for 'Bool'")
    if not x.is_floating_point():
        raise NotImplementedError(f"\"histogram_cpu\" not implemented for '{type_name(x.dtype)}'")
    if x.is_meta:
        result = x.new_empty(bins)
        return result if out is None else write_out(out, result)
    for limit in (min, max):
        refuse_complex(limit, kind="double")
    low, high = float(min), float(max)
    if low == high and x.numel():
        low, high = x.min().item(), x.max().item()
    if low == high:
        low, high = low - 1, high + 1
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"torch.histc: range of [{_number(low)}, {_number(high)}] is not finite")
    if low >= high:
        raise RuntimeError("torch.histc: max must be larger than min")
    wide = x if x.dtype == _C.float64 else x.float()
    inside = ops.logical_and(ops.ge(wide, low), ops.le(wide, high))
    place = FUNCTIONS["clamp"]((wide - low) * bins / (high - low), max=bins - 1)
    result = _counted(place, inside, bins, None, x.dtype, x.device)
    return result if out is None else write_out(out, result, exact=_SAME)


def _limits(x, limits, dim):
    """Where the bins for the column x begin and end: at `limits`, or over its own range."""
    if limits is not None:
        low, high = map(float, limits)
    elif x.numel():
        if x.dtype not in (_C.float32, _C.float64):
            raise NotImplementedError(f"\"histogramdd\" not implemented for '{type_name(x.dtype)}'")
        low, high = x.min().item(), x.max().item()
    else:
        low, high = 0.0, 1.0
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(
            f"torch.histogramdd: dimension {dim}'s range [{_number(low)}, {_number(high)}] is not finite"
        )
    if low > high:
        raise RuntimeError(
            f"torch.histogramdd: min should not exceed max, but got min {_number(low)} max {_number(high)} "
            f"for dimension {dim}"
        )
    return (low - 0.5, high + 0.5) if low == high else (low, high)


def _edges(input, rows, counts, limits):
    """Evenly spaced edges for each column of `rows`, one more than the bins that `counts` asks for."""
    size = rows.size(-1)
    if not input.is_floating_point() and limits is None:
        raise NotImplementedError(f"\"histogramdd\" not implemented for '{type_name(input.dtype)}'")
    if limits is not None and len(limits) != 2 * size:
        raise RuntimeError(
            f"torch.histogramdd: for a {size}-dimensional histogram range should have {2 * size} elements, "
            f"but got {len(limits)}"
        )
    pairs = [None if limits is None else limits[2 * dim : 2 * dim + 2] for dim in range(size)]
    pairs = [_limits(rows[:, dim].contiguous(), pair, dim) for dim, pair in enumerate(pairs)]
    if len(counts) != size:
        raise RuntimeError(
            "histogramdd: The size of bins must be equal to the innermost dimension of the input."
        )
    if any(count + 1 >= 2**63 for count in counts):
        raise RuntimeError("number of steps must be non-negative")
    return [
        FUNCTIONS["linspace"](low, high, count + 1, dtype=input.dtype, device=input.device)
        for (low, high), count in zip(pairs, counts, strict=True)
    ]


def _histogram(input, bins, limits, weight, density):
    """The counts and the edges of a histogram of the rows of `input`."""
    size = input.size(-1)
    rows = _C.detach(input).reshape(-1 if size else 0, size)
    counted = not bins or not isinstance(bins[0], Tensor)
    edges = _edges(input, rows, bins, limits) if counted else [_C.detach(edge) for edge in bins]
    _check_edges(input, edges)
    if weight is not None:
        if weight.dtype != input.dtype:
            raise RuntimeError(
                "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have "
                f"the same dtype, but got input({C_NAMES[input.dtype]}), and "
                f"weight({C_NAMES[weight.dtype]})"
            )
        if weight.shape != input.shape[:-1]:
            raise RuntimeError(
                "torch.histogramdd: if weight tensor is provided it should have the same shape as the input "
                f"tensor excluding its innermost dimension, but got input with shape {list(input.shape)} and "
                f"weight with shape {list(weight.shape)}"
            )
        weight = _C.detach(weight)
    for dim, edge in enumerate(edges):
        if edge.numel() == 1:
            raise RuntimeError(f"torch.histogram(): bins must be > 0, but got 0 for dimension {dim}")
    if not input.is_floating_point():
        raise NotImplementedError(f"\"histogram_cpu\" not implemented for '{type_name(input.dtype)}'")
    place, inside, total = 0, None, 1
    for dim, edge in enumerate(edges):
        x, count = rows[:, dim].contiguous(), edge.numel() - 1
        within = ops.logical_and(ops.ge(x, edge[0]), ops.le(x, edge[-1]))
        mine = _bins(x, edge, within, counted)
        place = mine + place * count
        inside = within if inside is None else ops.logical_and(inside, within)
        total *= count
    if size == 0:
        return _C.full((), 0, input.dtype, input.device), ()
    hist = _counted(place, inside, total, weight, input.dtype, input.device)
    hist = hist.reshape([edge.numel() - 1 for edge in edges])
    if density:
        hist = hist / hist.sum()
        for dim, edge in enumerate(edges):
            sizes = [1] * size
            sizes[dim] = edge.numel() - 1
            hist = hist / (edge[1:] - edge[:-1]).reshape(sizes)
    return hist, tuple(edges)


def _check_edges(input, edges):
    """Edges are vectors of the input's dtype."""
    for dim, edge in enumerate(edges):
        if edge.dtype != input.dtype:
            raise RuntimeError(
                "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input "
                f"with dtype {C_NAMES[input.dtype]} and bins for dimension {dim} with dtype "
                f"{C_NAMES[edge.dtype]}"
            )
        if edge.dim() != 1:
            raise RuntimeError(
                f"torch.histogramdd: bins tensor should have one dimension, but got {edge.dim()} dimensions "
                f"in the bins tensor for dimension {dim}"
            )
        if edge.numel() == 0:
            raise RuntimeError(
                "torch.histogramdd: bins tensor should have at least 1 element, but got 0 elements in the "
                f"bins tensor for dimension {dim}"
            )


@public
def histogram(input, bins=100, *, range=None, weight=None, density=False, out=None):
    """How many elements (or how much weight) fall into each bin; bins is a number of them or their edges.

    >>> rushlight.histogram(rushlight.tensor([1., 2., 1.]), bins=4, range=(0., 3.)).hist
    tensor([0., 2., 1., 0.])
    """
    needs_values("histogram.bins_tensor" if isinstance(bins, Tensor) else "histogram.bin_ct", input)
    column = input.reshape(-1, 1)
    flat = None if weight is None else weight.reshape(-1)
    given = bins if isinstance(bins, Tensor) else None
    if isinstance(bins, Tensor):
        bins = bins.clone().contiguous()
    elif bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    hist, edges = _histogram(column, [bins], range, flat, density)
    if out is not None:
        pair = write_out(out[0], hist, exact=_SAME), write_out(out[1], edges[0])
        return return_types.histogram_out(pair)
    return return_types.histogram(
        _undifferentiable(("histogram", "histogram"), (hist, edges[0]), input, weight, given)
    )


@function
def histogramdd(input, bins, range=None, weight=None, density=False):
    """A histogram of points: the last dimension of `input` holds their coordinates.

    >>> points = rushlight.tensor([[0., 1.], [1., 0.], [1., 1.]])
    >>> rushlight.histogramdd(points, bins=[2, 2], range=[0., 2., 0., 2.]).hist
    tensor([[0., 1.],
            [1., 1.]])
    """
    needs_values("_histogramdd_bin_edges", input)
    bins = whole(bins)
    bins = [bins] * input.size(-1) if isinstance(bins, int) else [whole(count) for count in bins]
    if input.dim() < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    size = input.size(-1)
    if len(bins) != size and len(bins) and isinstance(bins[0], Tensor):
        raise RuntimeError(
            f"torch.histogramdd: expected {size} sequences of bin edges for a {size}-dimensional histogram "
            f"but got {len(bins)}"
        )
    hist, edges = _histogram(input, bins, range, weight, density)
    if all(isinstance(count, Tensor) for count in bins):
        hist = undifferentiable("_histogramdd_from_bin_tensors", hist, input, weight, *bins)
        return return_types.histogramdd((hist, tuple(bins)))
    names = ("_histogramdd_from_bin_cts", *["_histogramdd_bin_edges"] * len(edges))
    hist, *edges = _undifferentiable(names, (hist, *edges), input, weight)
    return return_types.histogramdd((hist, tuple(edges)))


def _undifferentiable(names, results, *inputs):
    return tuple(undifferentiable(name, made, *inputs) for name, made in zip(names, results, strict=True))
