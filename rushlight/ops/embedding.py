"""Rows of a table, one-hot classes and counts: what classes and words are looked up with."""

from __future__ import annotations

from rushlight import _C
from rushlight.ops._examples import filled, has_batch, somewhere
from rushlight.ops._lacking import finally_
from rushlight.ops._public import FUNCTIONS, function, needs_values, public, type_name, undifferentiable
from rushlight.ops._rules import derivative
from rushlight.ops._tangents import linear
from rushlight.ops.ranges import arange

ops = _C.ops
_in_place = _C.in_place

derivative(
    "embedding",
    weight=lambda g, index, weight_shape, padding_idx, scale: ops.embedding_backward(
        g, index, weight_shape[0], padding_idx, scale
    ),
    tangent=linear,
)
derivative(
    "embedding_sparse",
    weight=lambda g, index, weight_shape, padding_idx, scale, sparse: _sparse_rows(
        g, index, weight_shape, padding_idx, scale
    ),
    node="EmbeddingBackward0",
    tangent=linear,
)
derivative(
    "embedding_backward",
    g=lambda g_out, index, padding_idx, scale: _embedding_rows(g_out, index, padding_idx, scale),
    node="EmbeddingDenseBackwardBackward0",
    tangent=linear,
)
derivative(
    "bag_sum",
    weight=lambda g, weight_shape, index, starts, mean, length, scale: ops.embedding_backward(
        _rows_of_bags(g, starts, mean, length), index, weight_shape[0], -1, scale
    ),
    node="EmbeddingBagBackward0",
    final="_embedding_bag_backward",
    tangent=linear,
)


def _bag_of_each(bag, indices, offsets):
    """The bag that each index is in, also where torch's kernel does not write it down."""
    if bag.numel() == indices.numel():
        return bag
    return FUNCTIONS["bucketize"](arange(indices.numel(), device="cpu"), offsets, right=True) - 1


def _to_table(
    g_out, weight_shape, factors, indices, offsets, bag, sizes, places, mode, padding, scale, sparse
):
    bag = _bag_of_each(bag, indices, offsets)

    def gradient(g, factors):
        if mode == 2:
            g = ops.where((sizes > 0).unsqueeze(-1), g, 0)
            return g.new_zeros(weight_shape).scatter_add(0, places, g)
        rows = ops.index_select(g, bag, 0)
        if mode == 1:
            rows = rows / ops.index_select(sizes, bag, 0).unsqueeze(-1)
        if factors is not None:
            rows = rows * factors.unsqueeze(-1)
        if sparse:
            return _sparse_rows(rows, indices, weight_shape, padding, scale)
        return ops.embedding_backward(rows, indices, weight_shape[0], padding, scale)

    return finally_(gradient, "_embedding_bag_backward")(g_out, factors)


def _to_factors(g_out, weight, indices, offsets, bag, padding):
    bag = _bag_of_each(bag, indices, offsets)

    def gradient(g, weight):
        products = ops.index_select(g, bag, 0) * ops.index_select(weight, indices, 0)
        return ops.masked_fill(products.sum(1), indices == padding, 0)

    return finally_(gradient, "aten::_embedding_bag_per_sample_weights_backward")(g_out, weight)


# As torch's node is, for hooks on what it keeps.
derivative(
    "embedding_bag",
    weight=_to_table,
    factors=_to_factors,
    shows="factors indices offsets bag sizes places weight_shape mode padding scale sparse",
    node="EmbeddingBagBackward0",
    packs="indices offsets factors weight",
)


def _rows_of_bags(g, starts, mean, length):
    """What bag_sum's rows get of the gradient of their bags; `length` is that of all bags, or -1."""
    if length >= 0:
        g = g / length if mean and length else g
        return g.unsqueeze(1).expand(-1, length, -1).reshape(g.size(0) * length, g.size(1))
    lengths = starts[1:] - starts[:-1]
    if mean:
        g = g / lengths.clamp(min=1).unsqueeze(-1).to(g.dtype)
    bag = arange(g.size(0), device="cpu").repeat_interleave(lengths)
    return ops.index_select(g, bag, 0)


def _sparse_rows(g, index, size, padding_idx, scale):
    """What embedding_backward adds up in a table, as the entries of a sparse one."""
    if scale:
        raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
    rows, values = index.reshape(-1).to(_C.int64), g.reshape(index.numel(), size[1])
    if padding_idx >= 0 or not values.numel():
        kept = (rows != padding_idx).nonzero().squeeze(1) if size[1] else rows[:0]
        rows, values = rows[kept], ops.index_select(values, kept, 0)
    return ops.sparse_coo(rows.unsqueeze(0), values, size, False)


def _embedding_rows(table, index, padding_idx, scale):
    """What embedding_backward did, transposed: rows read back, scaled and without padding."""
    rows = ops.embedding(table, index, padding_idx, scale)
    if padding_idx >= 0:
        rows = ops.masked_fill(rows, (index == padding_idx).unsqueeze(-1), 0)
    if scale:
        counts = bincount(index.reshape(-1), minlength=table.size(0))
        rows = rows / ops.take(counts, index.to(_C.int64)).unsqueeze(-1)
    return rows


@function
def embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    """The rows of `weight` at `indices`.

    >>> rushlight.embedding(rushlight.tensor([[1.0, 2.0], [3.0, 4.0]]), rushlight.tensor([1, 1]))
    tensor([[3., 4.],
            [3., 4.]])
    """
    if sparse:
        return ops.embedding_sparse(weight, indices, padding_idx, bool(scale_grad_by_freq), True)
    return ops.embedding(weight, indices, padding_idx, bool(scale_grad_by_freq))


def one_hot(input, num_classes=-1):
    """Zeros with a one at each class, in a new last dimension (torch.nn.functional.one_hot).

    >>> rushlight.nn.functional.one_hot(rushlight.tensor([0, 2]))
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    if input.dtype != _C.int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if input.numel() == 0:
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return input.new_zeros((*input.shape, num_classes))
    if input.is_meta and num_classes > 0:
        return input.new_zeros((*input.shape, num_classes))
    if somewhere(input < 0):
        raise RuntimeError("Class values must be non-negative.")
    if num_classes == -1:
        if _C.is_leveled(input) and has_batch(input):
            raise RuntimeError(
                "When vmap-ing torch.nn.functional.one_hot, please provide an explicit positive num_classes "
                "argument."
            )
        num_classes = input.max().item() + 1
    elif somewhere(input >= num_classes):
        raise RuntimeError("Class values must be smaller than num_classes.")
    zeros = input.new_zeros((*input.shape, num_classes))
    return filled(ops.scatter_value, zeros, input.unsqueeze(-1), 1, -1)


@public
def bincount(input, weights=None, minlength=0):
    """How often each non-negative integer occurs, or the sum of the weights that go with it.

    >>> rushlight.bincount(rushlight.tensor([1, 1, 3]))
    tensor([0, 2, 0, 1])
    """
    if input.dtype.is_floating_point or input.dtype.is_complex or input.dtype == _C.bool:
        raise NotImplementedError(f"\"bincount_cpu\" not implemented for '{type_name(input.dtype)}'")
    needs_values("bincount", input)
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    smallest, largest = 0, -1
    if input.dim() == 1 and input.numel():
        smallest, largest = (end.item() for end in ops.aminmax(_C.detach(input), None, False))
    if input.dim() != 1 or smallest < 0:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is not None and weights.shape != input.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    if largest == 2**63 - 1:
        raise RuntimeError(f"maximum value of input overflowed, it should be < {largest} but got {largest}")
    length = max(largest + 1, minlength)
    if weights is None:
        weights = _C.full((), 1, _C.int64, input.device).expand(input.shape)
    elif weights.dtype != _C.float32:
        weights = weights.to(_C.float64)
    counts = _C.full((length,), 0, weights.dtype, weights.device)
    index = input if input.dtype == _C.int64 else input.to(_C.int64)
    result = filled(ops.index_add, counts, index, weights.detach(), 0, 1)
    _C.set_version(result, 0)  # a new one, which nobody has seen written
    return undifferentiable("bincount", result, weights)
