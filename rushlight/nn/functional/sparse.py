"""Classes as vectors: rows of a learned table, and one-hot vectors."""

from __future__ import annotations

import rushlight
from rushlight import _C
from rushlight._signatures import check_call
from rushlight._warn import warn
from rushlight.nn.functional._checks import functional, number
from rushlight.ops._again import looked_on
from rushlight.ops._examples import has_batch, somewhere
from rushlight.ops._lacking import once
from rushlight.ops._public import legacy_name, stumble, type_name
from rushlight.ops.embedding import one_hot

one_hot = functional(one_hot)

__all__ = ["embedding", "embedding_bag", "one_hot"]


@functional
def embedding(
    input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False
):
    """The rows of `weight` at the indices `input`.

    The row padding_idx gets no gradient; rows longer than max_norm are shortened in place first;
    scale_grad_by_freq divides a row's gradient by how often it is used.

    >>> table = rushlight.tensor([[1., 2.], [3., 4.]])
    >>> rushlight.nn.functional.embedding(rushlight.tensor([1, 0]), table)
    tensor([[3., 4.],
            [1., 2.]])
    """
    if padding_idx is None:
        padding_idx = -1
    else:
        rows = weight.size(0)
        if padding_idx >= rows if padding_idx > 0 else padding_idx < -rows:
            raise AssertionError("Padding_idx must be within num_embeddings")
        check_call("embedding", "T weight,T indices,y padding_idx", weight, input, padding_idx)
        padding_idx = int(padding_idx) % rows
    if max_norm is not None and not weight.is_meta:
        _shorten_rows(weight, input, max_norm, norm_type)
    return rushlight.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


@functional
def embedding_bag(
    input,
    weight,
    offsets=None,
    max_norm=None,
    norm_type=2,
    scale_grad_by_freq=False,
    mode="mean",
    sparse=False,
    per_sample_weights=None,
    include_last_offset=False,
    padding_idx=None,
):
    """The sum, mean or maximum of the rows of `weight` in every bag of indices.

    A bag is a row of `input`, or what lies between two of the `offsets` into a one-dimensional `input`. An
    empty bag gives zeros; padding_idx is left out of its bag.

    >>> table = rushlight.tensor([[1., 2.], [3., 4.]])
    >>> rushlight.nn.functional.embedding_bag(rushlight.tensor([[0, 1], [1, 1]]), table)
    tensor([[2., 3.],
            [3., 4.]])
    """
    if weight.dtype == rushlight.int64 and input.is_floating_point():
        warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, "
            "...)` is deprecated, and should now be `embedding_bag(input, weight, ...)`."
        )
        input, weight = weight, input
    _check_bag_arguments(input, weight, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights)
    if weight.is_meta:
        bags = input.size(0) if offsets is None else offsets.size(0) - bool(include_last_offset)
        return weight.new_empty((bags, weight.size(1)))
    flat = input.reshape(-1).long().contiguous()  # a copy of strided ones, which torch's graph keeps
    if not isinstance(include_last_offset, bool):
        kind = type(include_last_offset).__name__
        raise TypeError(
            f"embedding_bag(): argument 'include_last_offset' (position 8) must be bool, not {kind}"
        )
    starts = _starts(input, offsets, include_last_offset)
    plain = padding_idx is None and per_sample_weights is None and max_norm is None and not sparse
    if plain and mode != "max":
        if looked_on(weight):
            return _kept_bags(flat, weight, offsets, starts, None, scale_grad_by_freq, mode, False, None)
        length = input.size(1) if input.dim() == 2 else -1
        return _C.ops.bag_sum(weight, flat, starts, mode == "mean", length, bool(scale_grad_by_freq))
    rows = weight.size(0)
    if padding_idx is not None and not -rows <= padding_idx < rows:
        raise RuntimeError(
            f"padding_idx must be within the number of embeddings, -{rows} through {rows - 1}, but got "
            f"{padding_idx}"
        )
    outside = (flat < 0) | (flat >= rows)
    if somewhere(outside):
        place = int(outside.nonzero()[0])
        large = flat[flat >= rows]
        if max_norm is not None and large.numel():
            raise IndexError(
                f"select(): index {int(large.min())} out of range for tensor of size {list(weight.shape)} at "
                "dimension 0"
            )
        if (
            mode == "max" or padding_idx is not None or weight.dtype == rushlight.float64
        ):  # which torch sums by other means
            raise RuntimeError(
                "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be "
                f"{int(flat[place])}"
            )
        raise RuntimeError(
            f"Index {place} of input takes value {int(flat[place])} which is not in the valid range "
            f"[0, {rows})"
        )
    if max_norm is not None:
        _shorten_rows(weight, flat, max_norm, norm_type)
    if looked_on(weight, per_sample_weights):
        factors = per_sample_weights
        if factors is not None and factors.dim() > 1:
            factors = factors.reshape(-1)
        return _kept_bags(
            flat, weight, offsets, starts, padding_idx, scale_grad_by_freq, mode, sparse, factors
        )
    factors = once(per_sample_weights, "aten::_embedding_bag_per_sample_weights_backward", weight)
    factors = None if factors is None else factors.reshape(-1)
    weight = once(weight, "_embedding_bag_backward", per_sample_weights)
    one_size = input.dim() == 2 and mode != "max" and padding_idx is None
    if not one_size:
        bag, count = _bags(starts)
    if padding_idx is not None:
        kept = flat != padding_idx % rows
        flat, bag = flat[kept], bag[kept]
        factors = None if factors is None else factors[kept]
    vectors = rushlight.embedding(weight, flat, -1, scale_grad_by_freq, sparse)
    if one_size:
        if factors is not None:
            vectors = vectors * factors.unsqueeze(-1)
        bags = vectors.reshape(*input.shape, weight.size(1))
        return bags.sum(1) if mode == "sum" or not input.size(1) else bags.mean(1)
    if mode == "max":
        return _largest_of_bags(vectors, bag, count)
    if factors is not None:
        vectors = vectors * factors.unsqueeze(-1)
    total = weight.new_zeros((count, weight.size(1))).index_add(0, bag, vectors)
    if mode == "sum":
        return total
    sizes = rushlight.bincount(bag, minlength=count).clamp(min=1)
    return total / sizes.unsqueeze(-1).to(total.dtype)


def _kept_bags(flat, weight, offsets, starts, padding_idx, scale_grad_by_freq, mode, sparse, factors):
    """The same where hooks are shown what is kept: which bag an index is in, and how many of them."""
    bag, count = _bags(starts)
    padding = -1 if padding_idx is None else padding_idx % weight.size(0)
    sizes = rushlight.bincount(bag[flat != padding], minlength=count)

    def run(weight, factors, indices, offsets):
        result = embedding_bag(
            indices, weight, starts, mode=mode, per_sample_weights=factors, include_last_offset=True,
            padding_idx=padding_idx,
        )  # fmt: skip
        places = sizes
        if mode == "sum":
            sizes.zero_()
        if mode == "max":
            counted = indices != padding
            places = _places_of_largest(result, weight, indices[counted], bag[counted])
        told = weight.dtype != rushlight.float64 and weight.stride(1) == 1 and padding < 0
        return result, bag[:0] if mode == "sum" and told else bag, sizes, places

    kind = {"sum": 0, "mean": 1, "max": 2}[mode]
    offsets = starts[:-1] if offsets is None else offsets
    options = kind, padding, bool(scale_grad_by_freq), bool(sparse)
    return _C.ops.embedding_bag(weight, factors, flat, offsets, run, *options)[0]


def _places_of_largest(result, weight, indices, bag):
    """Which row of the table every maximum is of: the first one in its bag."""
    vectors = weight[indices]
    found = (vectors == result[bag]) | (vectors.isnan() & result[bag].isnan())
    position = rushlight.arange(indices.numel()).unsqueeze(-1).expand(found.shape)
    position = rushlight.where(found, position, indices.numel())
    first = rushlight.full(result.shape, indices.numel())
    first = first.scatter_reduce(0, bag.unsqueeze(-1).expand(found.shape), position, "amin")
    there = first < indices.numel()
    return rushlight.where(there, indices[rushlight.where(there, first, 0)], 0) if len(indices) else first


def _check_bag_arguments(input, weight, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights):
    if per_sample_weights is not None:
        stumble(per_sample_weights, "size")
    stumble(input, "size" if per_sample_weights is not None else "dim")
    if per_sample_weights is not None and per_sample_weights.shape != input.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must "
            f"have the same shape as the input ({input.shape})"
        )
    if weight.dim() != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}")
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed "
                f"length sequences. However, found offsets of type {type(offsets)}"
            )
    elif input.dim() == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        stumble(offsets, "dim")
        if offsets.dim() != 1:
            raise ValueError("offsets has to be a 1D Tensor")
    else:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for "
            f"mode='sum' (got mode='{mode}'). Please open a feature request on GitHub."
        )
    kind = input.dtype  # of the indices: a narrower one becomes that of the offsets
    if input.dim() == 1 and not (input.is_floating_point() or input.is_complex() or offsets.is_complex()):
        kind = rushlight.promote_types(kind, offsets.dtype)
    if kind not in (rushlight.int64, rushlight.int32):
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; "
            f"but got {legacy_name(input.to(kind))} instead (while checking arguments for embedding_bag)"
        )
    if not weight.is_floating_point():
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have one of the following scalar types: Half, "
            f"BFloat16, Float, Double; but got {legacy_name(weight)} instead (while checking arguments for "
            "embedding_bag)"
        )
    if per_sample_weights is not None and per_sample_weights.dtype != weight.dtype:
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 "
            f"'per_sample_weights'; but type {legacy_name(weight)} does not equal "
            f"{legacy_name(per_sample_weights)} (while checking arguments for embedding_bag)"
        )


def _starts(input, offsets, include_last_offset):
    """Where every bag begins among the indices, and where the last one ends."""
    n = input.numel()
    if input.dim() == 2:
        count, length = input.shape
        return rushlight.arange(count + 1, device="cpu") * length
    if offsets.dtype.is_floating_point or offsets.dtype.is_complex:  # what the indices would be promoted to
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; "
            f"but got {legacy_name(offsets)} instead (while checking arguments for embedding_bag)"
        )
    starts = offsets.long()
    if starts.numel() and somewhere(starts[0] != 0):
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position "
            f"0. However, got {int(starts[0])}"
        )
    if starts.numel() and somewhere(starts[-1] > n):
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length {n} but got offsets[-1] of {int(starts[-1])}"
        )
    if include_last_offset:
        if not starts.numel():
            raise RuntimeError("include_last_offset: number of offset should be at least 1")
    else:
        starts = rushlight.cat([starts, starts.new_full((1,), n)])
    if somewhere(starts[1:] < starts[:-1]):
        raise RuntimeError("offsets have to be sorted: a bag cannot end before it starts")
    if somewhere(starts[-1] != n) or (starts.numel() == 1 and n):
        raise RuntimeError(
            "Your input appears to be incorrect: the last offset value should be the size of the indices "
            "tensor, but it seems not to be the case."
        )
    return starts


def _bags(starts):
    """The number of the bag that every index is in, and how many bags there are."""
    count = starts.numel() - 1
    return rushlight.arange(count, device="cpu").repeat_interleave(starts[1:] - starts[:-1]), count


def _largest_of_bags(vectors, bag, count):
    """The maximum over every bag; the first of equal elements gets the gradient."""
    if not vectors.size(0):
        return vectors.new_zeros((count, vectors.size(1))) + 0 * vectors.sum()
    sizes = rushlight.bincount(bag, minlength=count)
    starts = sizes.cumsum(0) - sizes
    longest = int(sizes.max())
    places = starts.unsqueeze(-1) + rushlight.arange(longest)
    there = rushlight.arange(longest) < sizes.unsqueeze(-1)
    table = vectors[rushlight.where(there, places, 0)]
    low = rushlight.where(there.unsqueeze(-1), table, float("-inf")).max(1)[0]
    return rushlight.where((sizes > 0).unsqueeze(-1), low, 0)


def _shorten_rows(weight, indices, max_norm, norm_type):
    signature = "T input,T indices,f max_norm"
    max_norm = number("embedding_renorm_", signature, weight, indices, max_norm)
    if weight.dim() != 2:
        raise RuntimeError(
            f"Expected 2-dimensional tensor, but got {weight.dim()}-dimensional tensor for argument #1 "
            "'self' (while checking arguments for embedding_renorm_)"
        )
    if not (weight.is_floating_point() or weight.is_complex()):
        raise RuntimeError(
            f"norm(): input dtype should be either floating point or complex. Got {type_name(weight.dtype)} "
            "instead."
        )
    # A table of inference mode is written outside of it as well, as by torch's kernel.
    with rushlight.inference_mode() if weight.is_inference() else rushlight.no_grad():
        if has_batch(weight) or has_batch(indices):  # other rows in every example
            unread = weight.new_zeros(weight.size(0), dtype=rushlight.bool)
            read = unread.index_fill(0, indices.reshape(-1), True).unsqueeze(1)
            norms = weight.norm(norm_type, 1, keepdim=True)
            weight.mul_(rushlight.where(read & (norms > max_norm), max_norm / (norms + 1e-7), 1.0))
            return
        rows = indices.reshape(-1).unique()
        for row in rows[(rows < -weight.size(0)) | (rows >= weight.size(0))].tolist():
            raise IndexError(
                f"select(): index {row} out of range for tensor of size {list(weight.shape)} at dimension 0"
            )
        norms = weight.index_select(0, rows).norm(norm_type, 1, keepdim=True)
        factors = rushlight.where(norms > max_norm, max_norm / (norms + 1e-7), 1.0).to(weight.dtype)
        weight.index_copy_(0, rows.long(), weight.index_select(0, rows) * factors)
