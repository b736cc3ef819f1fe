"""Putting tensors together, taking them apart and rearranging their elements: cat, stack, split,
flip, roll, repeat and their kin.

Derivatives first: what was put together is taken apart again.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

from rushlight import _C
from rushlight._outputs import OVERLAP
from rushlight._warn import warn_once
from rushlight.ops._public import (
    SAME_DTYPE,
    Tensor,
    check_apart,
    dims,
    function,
    invalid_combination,
    method,
    public,
    shares_elements,
    type_name,
    whole,
    wrap_dim,
    write_apart,
    write_out,
)
from rushlight.ops._rules import derivative
from rushlight.ops.create import arange

ops = _C.ops


def _cat_pieces(g, tensors_shape, dim):
    dim = wrap_dim(dim, g.dim())
    pieces, start = [], 0
    for shape in tensors_shape:
        if len(shape) != g.dim():  # an empty vector that cat skipped
            pieces.append(g.new_zeros(shape))
            continue
        pieces.append(ops.slice(g, dim, start, start + shape[dim], 1))
        start += shape[dim]
    return pieces


def _blocks(g, tensors_shape):
    blocks, row, column = [], 0, 0
    for shape in tensors_shape:
        height, width = (1, 1, *shape)[-2:]
        block = ops.slice(ops.slice(g, 0, row, row + height, 1), 1, column, column + width, 1)
        blocks.append(block.reshape(shape))
        row, column = row + height, column + width
    return blocks


def _sum_repeats(g, x_shape, repeats):
    if 0 in repeats:
        return g.new_zeros(x_shape)
    extra = len(repeats) - len(x_shape)
    sizes = [n for r, s in zip(repeats, (1,) * extra + tuple(x_shape), strict=True) for n in (r, s)]
    summed = g.reshape(sizes).sum(tuple(range(0, len(sizes), 2))) if sizes else g
    return summed.reshape(x_shape)


derivative("cat", tensors=_cat_pieces)
derivative("stack", tensors=lambda g, dim: ops.unbind(g, dim))
derivative("block_diag", tensors=_blocks)
derivative("flip", x=lambda g, dims: ops.flip(g, dims))
derivative("roll", x=lambda g, shifts, dims: ops.roll(g, tuple(-s for s in shifts), dims))
derivative("repeat", x=_sum_repeats)
derivative("tril", x=lambda g, diagonal: ops.tril(g, diagonal))
derivative("triu", x=lambda g, diagonal: ops.triu(g, diagonal))


def _tensors(tensors, name):
    if isinstance(tensors, Tensor) or not isinstance(tensors, (tuple, list)):
        raise TypeError(
            f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not "
            f"{type(tensors).__name__}"
        )
    return tensors


# ---- together


@function(aliases=("concat", "concatenate"))
def cat(tensors, dim=0, *, axis=None, out=None):
    """Joins tensors along an existing dimension.

    >>> rushlight.cat([rushlight.tensor([1, 2]), rushlight.tensor([3])])
    tensor([1, 2, 3])
    """
    tensors = _tensors(tensors, "cat")
    if out is not None and tensors:
        common = functools.reduce(_C.promote_types, (t.dtype for t in tensors))
        if not _C.can_cast(common, out.dtype):
            raise TypeError(
                f"torch.cat(): input types can't be cast to the desired output type {type_name(out.dtype)}"
            )
    result = ops.cat(tensors, dim if axis is None else axis)
    if out is None:
        return result
    if any(t is out for t in tensors):  # also if it has no elements yet
        raise RuntimeError(OVERLAP)
    return write_apart(out, result, *tensors, exact="")


@function
def stack(tensors, dim=0, *, out=None):
    """Joins tensors of one shape along a new dimension.

    >>> rushlight.stack([rushlight.tensor([1, 2]), rushlight.tensor([3, 4])])
    tensor([[1, 2],
            [3, 4]])
    """
    result = ops.stack(_tensors(tensors, "stack"), dim)
    if out is None:
        return result
    check_apart(out, *tensors)
    if not _C.can_cast(result.dtype, out.dtype):
        raise TypeError(
            f"torch.cat(): input types can't be cast to the desired output type {type_name(out.dtype)}"
        )
    return write_out(out, result)


def _kind_of(value):
    from rushlight._type_names import type_name  # only needed to complain

    return type_name(value)


def _some(tensors, name):
    if not _tensors(tensors, name):
        raise RuntimeError(f"{name} expects a non-empty TensorList")
    return tensors


def _each(name, function_, tensors):
    """atleast_1d(a, b) or atleast_1d((a, b)) gives a tuple, atleast_1d(a) a tensor."""
    if len(tensors) == 1:
        if isinstance(tensors[0], Tensor):
            return function_(tensors[0])
        tensors = tensors[0]
    if not isinstance(tensors, (tuple, list)):
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got ({_kind_of(tensors)}), but "
            "expected one of:\n * (Tensor input)\n * (tuple of Tensors tensors)"
        )
    for i, one in enumerate(tensors):
        if not isinstance(one, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {_kind_of(one)}")
    return tuple(function_(t) for t in tensors)


def _one_dim(t):
    return t if t.dim() else t.reshape(1)


def _two_dims(t):
    return t.reshape(1, 1) if t.dim() == 0 else t.unsqueeze(0) if t.dim() == 1 else t


def _three_dims(t):
    return t.reshape(1, 1, 1) if t.dim() == 0 else _two_dims(t).unsqueeze(-1) if t.dim() < 3 else t


@function
def atleast_1d(*tensors):
    """The tensors with at least one dimension.

    >>> rushlight.atleast_1d(rushlight.tensor(3)).shape
    torch.Size([1])
    """
    return _each("atleast_1d", _one_dim, tensors)


@function
def atleast_2d(*tensors):
    """The tensors with at least two dimensions.

    >>> rushlight.atleast_2d(rushlight.ones(3)).shape
    torch.Size([1, 3])
    """
    return _each("atleast_2d", _two_dims, tensors)


@function
def atleast_3d(*tensors):
    """The tensors with at least three dimensions.

    >>> rushlight.atleast_3d(rushlight.ones(3)).shape
    torch.Size([1, 3, 1])
    """
    return _each("atleast_3d", _three_dims, tensors)


@function
def hstack(tensors, *, out=None):
    """Joins tensors column by column (vectors end to end).

    >>> rushlight.hstack([rushlight.tensor([1]), rushlight.tensor([2, 3])])
    tensor([1, 2, 3])
    """
    tensors = [_one_dim(t) for t in _some(tensors, "hstack")]
    return cat(tensors, 0 if tensors[0].dim() == 1 else 1, out=out)


@function(aliases=("row_stack",))
def vstack(tensors, *, out=None):
    """Joins tensors row by row (vectors become rows).

    >>> rushlight.vstack([rushlight.tensor([1, 2]), rushlight.tensor([3, 4])])
    tensor([[1, 2],
            [3, 4]])
    """
    return cat([_two_dims(t) for t in _some(tensors, "vstack")], 0, out=out)


@function
def dstack(tensors, *, out=None):
    """Joins tensors along the third dimension.

    >>> rushlight.dstack([rushlight.ones(2), rushlight.ones(2)]).shape
    torch.Size([1, 2, 2])
    """
    return cat([_three_dims(t) for t in _some(tensors, "dstack")], 2, out=out)


@function
def column_stack(tensors, *, out=None):
    """Joins tensors column by column; vectors become columns.

    >>> rushlight.column_stack([rushlight.tensor([1, 2]), rushlight.tensor([3, 4])])
    tensor([[1, 3],
            [2, 4]])
    """
    columns = [t.reshape(t.numel(), 1) if t.dim() <= 1 else t for t in _some(tensors, "column_stack")]
    return cat(columns, 1, out=out)


@function
def block_diag(*tensors):
    """Matrices along the diagonal of a larger one, zeros elsewhere.

    >>> rushlight.block_diag(rushlight.tensor([[1, 2]]), rushlight.tensor(3))
    tensor([[1, 2, 0],
            [0, 0, 3]])
    """
    return ops.block_diag(tensors or (_C.empty((1, 0), None, None),))


@function
def broadcast_tensors(*tensors):
    """The tensors expanded to their common shape.

    >>> [t.shape for t in rushlight.broadcast_tensors(rushlight.ones(2, 1), rushlight.ones(3))]
    [torch.Size([2, 3]), torch.Size([2, 3])]
    """
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tensors[0]
    _check_tensors(tensors)
    shape = ()
    for t in tensors:
        shape = _common_shape(shape, t.shape)
    return tuple(ops.expand(t, shape) for t in tensors)


def _check_tensors(tensors):
    """Refuses what is no tensor among several, as torch does where it takes a list of them."""
    for i, t in enumerate(tensors):
        if not isinstance(t, _C.Tensor):
            error: Any = TypeError(f"expected Tensor as element {i} in argument 0, but got {_kind_of(t)}")
            error.worded = True
            raise error


def _common_shape(a, b):
    if len(a) < len(b):
        longer, shorter = list(b), a
    else:
        longer, shorter = list(a), b
    offset = len(longer) - len(shorter)
    for i in reversed(range(len(shorter))):
        m, n = longer[offset + i], shorter[i]
        if m != n and m != 1 and n != 1:
            first, second = (m, n) if len(a) >= len(b) else (n, m)
            raise RuntimeError(
                f"The size of tensor a ({first}) must match the size of tensor b ({second}) at non-singleton "
                f"dimension {offset + i}"
            )
        longer[offset + i] = n if m == 1 else m
    return tuple(longer)


@function
def broadcast_shapes(*shapes):
    """The shape that tensors of these shapes broadcast to.

    >>> rushlight.broadcast_shapes((2, 1), (3,))
    torch.Size([2, 3])
    """
    from rushlight._size import Size

    for shape in shapes:
        if not isinstance(shape, (int, tuple, list, str)):
            raise RuntimeError(
                f"Input shapes should be of type ints, a tuple of ints, or a list of ints, got {shape}"
            )
    listed = [(shape,) if isinstance(shape, int) else tuple(shape) for shape in shapes]
    common = [1] * max(map(len, listed), default=0)
    for at, shape in enumerate(listed):
        for d in range(-1, -1 - len(shape), -1):
            if shape[d] < 0:
                raise ValueError("Attempting to broadcast a dimension with negative length!")
            if common[d] == 1:
                common[d] = shape[d]
            elif shape[d] not in (1, common[d]):
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {shape[d]} at {d}! Mismatching argument "
                    f"at index {at} had {shapes[at]}; but expected shape should be broadcastable to {common}"
                )
    return Size(common)


@function
def meshgrid(*tensors, indexing=None):
    """Coordinate grids from vectors: the i-th result varies along dimension i (indexing="ij").

    >>> rushlight.meshgrid(rushlight.tensor([1, 2]), rushlight.tensor([3, 4]), indexing="ij")[0]
    tensor([[1, 1],
            [2, 2]])
    """
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tuple(tensors[0])
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    _check_tensors(tensors)
    if not isinstance(indexing, (str, type(None))):
        raise TypeError(f"meshgrid(): argument 'indexing' must be str, not {type(indexing).__name__}")
    for t in tensors:
        if t.dtype != tensors[0].dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
        if t.device != tensors[0].device:
            raise RuntimeError("meshgrid expects all tensors to have the same device")
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    for t in tensors:
        if t.dim() > 1:
            raise RuntimeError(f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {t}")
    if indexing is None:
        warn_once(
            "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument."
        )
    swapped = indexing == "xy" and len(tensors) >= 2
    if swapped:
        tensors = (tensors[1], tensors[0], *tensors[2:])
    shape = tuple(t.numel() for t in tensors)
    grids = []
    for i, t in enumerate(tensors):
        place = [1] * len(shape)
        place[i] = shape[i]
        grids.append(ops.expand(ops.view(t, place), shape))
    if swapped:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


def _vector(t):
    if t.dim() != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(t.shape)}")
    return t


@function
def cartesian_prod(*tensors):
    """All combinations of one element from each vector, one per row.

    >>> rushlight.cartesian_prod(rushlight.tensor([1, 2]), rushlight.tensor([3, 4])).tolist()
    [[1, 3], [1, 4], [2, 3], [2, 4]]
    """
    _check_tensors(tensors)
    for t in tensors:
        _vector(t)
    if len(tensors) == 1:
        return tensors[0]
    return ops.stack([grid.reshape(-1) for grid in meshgrid(*tensors, indexing="ij")], 1)


@public
def combinations(input, r=2, with_replacement=False):
    """The subsets of `r` elements of a vector, one per row.

    >>> rushlight.combinations(rushlight.tensor([1, 2, 3])).tolist()
    [[1, 2], [1, 3], [2, 3]]
    """
    _vector(input)
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return input.new_empty((0,))
    if input.numel() > 1 and r * math.log2(input.numel()) >= 63:  # torch makes a grid of them all
        raise RuntimeError("numel: integer multiplication overflow")
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = list(choose(range(input.numel()), r))
    index = _C.from_data(rows, _C.int64, None) if rows else _C.empty((0, r), _C.int64, None)
    index = index.to(input.device)
    return stack([ops.index(input, (column,)) for column in index.unbind(1)], 1)


# ---- apart


@public
def tensor_split(
    input, indices_or_sections=None, dim=0, *, sections=None, indices=None, tensor_indices_or_sections=None
):
    """Views of pieces along a dimension: near-equal sections, or cut before positions.

    >>> [piece.tolist() for piece in rushlight.tensor_split(rushlight.arange(5), (1, 3))]
    [[0], [1, 2], [3, 4]]
    """
    indices_or_sections = _cuts(
        "tensor_split", indices_or_sections, sections, indices, tensor_indices_or_sections
    )
    if input.dim() == 0:
        raise RuntimeError(
            "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims"
        )
    dim = wrap_dim(dim, input.dim())
    if isinstance(indices_or_sections, Tensor):
        if indices_or_sections.device.type != "cpu":
            raise RuntimeError(
                "tensor_split expected tensor_indices_or_sections to be on cpu, but it's on "
                f"{indices_or_sections.device}"
            )
        if indices_or_sections.dtype != _C.int64:
            raise RuntimeError(
                "tensor_split expected tensor_indices_or_sections to have dtype of long, but got "
                f"{type_name(indices_or_sections.dtype)}"
            )
        if indices_or_sections.dim() > 1:
            raise RuntimeError(
                "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or "
                f"one-dimensional tensor, but got a tensor with {indices_or_sections.dim()} dims"
            )
        indices_or_sections = indices_or_sections.tolist()
    length = input.size(dim)
    indices_or_sections = whole(indices_or_sections)
    if isinstance(indices_or_sections, int):
        sections = indices_or_sections
        if sections <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {sections}")
        if sections >= 2**63:
            raise ValueError("Overflow when unpacking long long")
        size, larger = divmod(length, sections)
        if sections > 1 << 32:
            raise RuntimeError(f"tensor_split: {sections} pieces are more than memory holds")
        cuts = [i * size + min(i, larger) for i in range(1, sections)]
    else:
        cuts = list(indices_or_sections)
    return tuple(ops.slice(input, dim, a, b, 1) for a, b in zip([0, *cuts], [*cuts, length], strict=True))


def _cuts(name, *given):
    """The one of `indices_or_sections`, `sections` and `indices` that was given."""
    found = [value for value in given if value is not None]
    if len(found) != 1:
        raise TypeError(f"{name}() received an invalid combination of arguments")
    return found[0]


def _split_along(name, input, indices_or_sections, dim, least):
    if input.dim() < least:
        raise RuntimeError(
            f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor with "
            f"{input.dim()} "
            "dimensions!"
        )
    if isinstance(indices_or_sections, str) or type(indices_or_sections).__name__ == "ndarray":
        raise invalid_combination(
            name,
            (input, indices_or_sections),
            "Tensor input, int sections",
            "Tensor input, tuple of ints indices",
        )
    indices_or_sections = whole(indices_or_sections)
    if isinstance(indices_or_sections, int):
        sections = indices_or_sections
        if sections < 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {sections}")
        if sections == 0 or input.size(dim) % sections:
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension "
                f"{input.size(dim)} is not divisible by the split_size {sections}!"
            )
    return tensor_split(input, indices_or_sections, dim)


@public
def hsplit(input, indices_or_sections=None, *, sections=None, indices=None):
    """Splits column by column (a vector: element by element).

    >>> [piece.tolist() for piece in rushlight.arange(4).hsplit(2)]
    [[0, 1], [2, 3]]
    """
    indices_or_sections = _cuts("hsplit", indices_or_sections, sections, indices)
    return _split_along("hsplit", input, indices_or_sections, 0 if input.dim() == 1 else 1, 1)


@public
def vsplit(input, indices_or_sections=None, *, sections=None, indices=None):
    """Splits row by row.

    >>> [piece.tolist() for piece in rushlight.tensor([[1], [2]]).vsplit(2)]
    [[[1]], [[2]]]
    """
    indices_or_sections = _cuts("vsplit", indices_or_sections, sections, indices)
    return _split_along("vsplit", input, indices_or_sections, 0, 2)


@public
def dsplit(input, indices_or_sections=None, *, sections=None, indices=None):
    """Splits along the third dimension.

    >>> [piece.shape for piece in rushlight.ones(1, 2, 4).dsplit(2)]
    [torch.Size([1, 2, 2]), torch.Size([1, 2, 2])]
    """
    indices_or_sections = _cuts("dsplit", indices_or_sections, sections, indices)
    return _split_along("dsplit", input, indices_or_sections, 2, 3)


# ---- rearranged


@public
def flip(input, *dims_, **keywords):
    """A copy with the order of elements reversed along `dims`.

    >>> rushlight.flip(rushlight.arange(3), (0,))
    tensor([2, 1, 0])
    """
    chosen = keywords.pop("dims", None)
    if keywords or (chosen is None) == (not dims_):
        raise TypeError("flip() received an invalid combination of arguments")
    return ops.flip(input, dims(dims_) if chosen is None else tuple(chosen))


@public
def fliplr(input):
    """A copy with the columns in reverse order.

    >>> rushlight.fliplr(rushlight.tensor([[1, 2], [3, 4]]))
    tensor([[2, 1],
            [4, 3]])
    """
    if input.dim() < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return ops.flip(input, (1,))


@public
def flipud(input):
    """A copy with the rows in reverse order.

    >>> rushlight.flipud(rushlight.tensor([[1, 2], [3, 4]]))
    tensor([[3, 4],
            [1, 2]])
    """
    if input.dim() < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return ops.flip(input, (0,))


@public
def roll(input, shifts, dims=None):
    """A copy with elements moved along `dims`, those beyond the end coming in at the front (None: flattened).

    >>> rushlight.roll(rushlight.arange(4), 1)
    tensor([3, 0, 1, 2])
    """
    shifts, dims = whole(shifts), whole(dims)
    shifts = (shifts,) if isinstance(shifts, int) else tuple(shifts)
    if not shifts:
        raise RuntimeError("`shifts` required")
    dims = () if dims is None else (dims,) if isinstance(dims, int) else tuple(dims)
    if dims and not input.dim():
        raise IndexError(f"Dimension specified as {dims[0]} but tensor has no dimensions")
    if not dims and len(shifts) == 1:
        return ops.roll(input.reshape(-1), shifts, (0,)).reshape(input.shape)
    return ops.roll(input, shifts, dims)


@public
def rot90(input, k=1, dims=(0, 1)):
    """A copy turned by k * 90 degrees in the plane of two dimensions, from the first towards the second.

    >>> rushlight.rot90(rushlight.tensor([[1, 2], [3, 4]]))
    tensor([[2, 4],
            [1, 3]])
    """
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if input.dim() < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {input.dim()}")
    a, b = (wrap_dim(d, input.dim()) for d in dims)
    if a == b:
        raise RuntimeError(
            f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}"
        )
    k %= 4
    if k == 1:
        return ops.transpose(ops.flip(input, (b,)), a, b)
    if k == 2:
        return ops.flip(input, (a, b))
    if k == 3:
        return ops.transpose(ops.flip(input, (a,)), a, b)
    return ops.clone(input)


@method
def repeat(self, *repeats):
    """A copy with the tensor repeated along each dimension.

    >>> rushlight.tensor([1, 2]).repeat(2, 2)
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    if not repeats:
        raise TypeError('repeat() missing 1 required positional arguments: "repeats"')
    return ops.repeat(self, dims(repeats))


@public
def tile(input, *dims_):
    """Like repeat, but missing leading repeats are 1.

    >>> rushlight.tile(rushlight.tensor([1, 2]), (2,))
    tensor([1, 2, 1, 2])
    """
    repeats = dims(dims_)
    return ops.repeat(input, (1,) * (input.dim() - len(repeats)) + tuple(repeats))


@public
def repeat_interleave(input=None, repeats=None, dim=None, *, output_size=None):
    """A copy with each element (or each slice along `dim`) repeated in place.

    >>> rushlight.tensor([1, 2]).repeat_interleave(2)
    tensor([1, 1, 2, 2])
    """
    if input is None or repeats is None:  # the positions that counts stand for
        return _positions(repeats if input is None else input, output_size)
    if not isinstance(repeats, Tensor):
        repeats = whole(repeats)
    if isinstance(repeats, int) and repeats < 0:
        raise RuntimeError("Repeats must be non-negative")
    if isinstance(repeats, Tensor) and repeats.dim() > 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    if dim is None:
        input, dim = input.flatten(), 0
    dim = wrap_dim(dim, input.dim())
    if isinstance(repeats, int):
        shape = tuple(input.shape)
        if output_size is not None and output_size != shape[dim] * repeats:
            raise RuntimeError(
                f"repeat_interleave: Invalid output_size, expected {shape[dim] * repeats} but got "
                f"{output_size}"
            )
        wide = ops.expand(ops.unsqueeze(input, dim + 1), (*shape[: dim + 1], repeats, *shape[dim + 1 :]))
        return ops.view(ops.contiguous_copy(wide), (*shape[:dim], shape[dim] * repeats, *shape[dim + 1 :]))
    if repeats.numel() == 1:
        repeats = ops.expand(repeats.reshape(1), (input.size(dim),))
    elif repeats.numel() != input.size(dim):
        raise RuntimeError(
            f"repeats must have the same size as input along dim, but got repeats.size(0) = "
            f"{repeats.numel()} and "
            f"input.size({dim}) = {input.size(dim)}"
        )
    return ops.index_select(input, _positions(repeats, output_size), dim)


def _positions(repeats, output_size):
    if repeats.dtype not in (_C.int32, _C.int64):
        raise NotImplementedError(
            f"\"repeat_interleave_cpu\" not implemented for '{type_name(repeats.dtype)}'"
        )
    if repeats.dim() != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    if repeats.is_meta:
        if output_size is None:
            raise RuntimeError("cannot repeat_interleave a meta tensor without output_size")
        return repeats.new_empty((output_size,))
    counts = repeats.tolist()
    if any(n < 0 for n in counts):
        raise RuntimeError("repeats can not be negative")
    total = sum(counts)
    if output_size is not None and output_size != total:
        raise RuntimeError("allocated size does not match required size")
    ends = repeats.cumsum(0)
    every = arange(total, dtype=repeats.dtype, device=repeats.device)
    return ops.searchsorted(ends, every, None, True).to(repeats.dtype)


# ---- triangles


@public
def tril(input, diagonal=0, *, out=None):
    """The lower triangle of a matrix or batch of matrices, zeros above.

    >>> rushlight.tril(rushlight.tensor([[1, 2], [3, 4]]))
    tensor([[1, 0],
            [3, 4]])
    """
    result = ops.tril(input, diagonal)
    return result if out is None else write_out(out, result, exact=SAME_DTYPE)


@public
def triu(input, diagonal=0, *, out=None):
    """The upper triangle of a matrix or batch of matrices, zeros below.

    >>> rushlight.triu(rushlight.tensor([[1, 2], [3, 4]]))
    tensor([[1, 2],
            [0, 4]])
    """
    result = ops.triu(input, diagonal)
    return result if out is None else write_out(out, result, exact=SAME_DTYPE)


@method
def tril_(self, diagonal=0):
    """In-place version of :meth:`tril`."""
    if self.dim() > 1 and shares_elements(self) and not self.requires_grad:
        for row in range(self.size(-2)):
            self[..., row, max(row + diagonal + 1, 0) :].fill_(0)
        return self
    return _C.in_place(ops.tril, self, diagonal)


@method
def triu_(self, diagonal=0):
    """In-place version of :meth:`triu`."""
    if self.dim() > 1 and shares_elements(self) and not self.requires_grad:
        for row in range(self.size(-2)):
            self[..., row, : max(row + diagonal, 0)].fill_(0)
        return self
    return _C.in_place(ops.triu, self, diagonal)


def _triangle_indices(name, row, col, offset, dtype, device, upper):
    from rushlight import get_default_device

    if row < 0:
        raise RuntimeError(f"row must be non-negative, got{row}")
    if col < 0:
        raise RuntimeError(f"col must be non-negative, got{col}")
    if dtype not in (_C.int32, _C.int64):
        raise NotImplementedError(f"\"{name}\" not implemented for '{type_name(dtype)}'")
    offset = max(-row, min(offset, col))
    # The rows that reach into the triangle, and where in them it begins and ends.
    first, last = (0, min(row, max(col - offset, 0))) if upper else (min(max(-offset, 0), row), row)
    rows = _C.arange(first, 1, last - first, _C.int64, None)
    begins = (rows + offset).clamp(0, col) if upper else ops.mul(rows, 0)
    counts = (col - begins) if upper else (rows + (offset + 1)).clamp(0, col)
    ends = counts.cumsum(0)
    columns = _C.arange(0, 1, int(ends[-1]) if len(ends) else 0, _C.int64, None)
    columns = columns - (ends - counts - begins).repeat_interleave(counts)
    place = device if device is not None else get_default_device()
    pairs = rows.repeat_interleave(counts), columns
    return ops.stack(pairs, 0).to(device=place, dtype=dtype)


@function
def tril_indices(row, col, offset=0, *, dtype=_C.int64, device=None, layout=None):
    """The coordinates of the lower triangle of a row x col matrix: row numbers, then column numbers.

    >>> rushlight.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    return _triangle_indices("tril_indices", row, col, offset, dtype, device, False)


@function
def triu_indices(row, col, offset=0, *, dtype=_C.int64, device=None, layout=None):
    """The coordinates of the upper triangle of a row x col matrix: row numbers, then column numbers.

    >>> rushlight.triu_indices(2, 2)
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """
    return _triangle_indices("triu_indices", row, col, offset, dtype, device, True)
