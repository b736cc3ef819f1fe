"""Putting tensors together and taking them apart: cat, stack, meshgrid, tensor_split and their kin.

Derivatives first: what was put together is taken apart again.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence

from rushlight import _C
from rushlight._native_printing import shown_natively
from rushlight._outputs import OVERLAP
from rushlight._type_names import type_name as class_name
from rushlight._warn import warn_once
from rushlight.ops._public import (
    Tensor,
    check_apart,
    check_resized,
    function,
    invalid_combination,
    public,
    type_name,
    whole,
    wrap_dim,
    write_apart,
    write_out,
)
from rushlight.ops._rules import derivative
from rushlight.ops._tangents import linear
from rushlight.ops.rearrange import ranges

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


derivative("cat", tensors=_cat_pieces, tangent=linear)
derivative("stack", tensors=lambda g, dim: ops.unbind(g, dim), tangent=linear)
derivative("block_diag", tensors=_blocks, tangent=linear)


def _tensors(tensors, name):
    if isinstance(tensors, Tensor) or not isinstance(tensors, (tuple, list)):
        raise TypeError(
            f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not {class_name(tensors)}"
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
    if not _C.can_cast(result.dtype, out.dtype):
        raise TypeError(
            f"torch.cat(): input types can't be cast to the desired output type {type_name(out.dtype)}"
        )
    if out.shape == result.shape:
        check_apart(out, *tensors)
    else:
        check_resized(out, result, tensors)
    return write_out(out, result)


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
            f"{name}() received an invalid combination of arguments - got ({class_name(tensors)}), but "
            "expected one of:\n * (Tensor input)\n * (tuple of Tensors tensors)"
        )
    for i, one in enumerate(tensors):
        if not isinstance(one, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {class_name(one)}")
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
    for at, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            break
        if tensor.device != tensors[0].device:
            raise RuntimeError(
                "Input tensors must all be on the same device. "
                f"Input 0 is on device {tensors[0].device} and input {at} is on device {tensor.device}."
            )
    return ops.block_diag(tensors or (_C.empty((1, 0), None, None),))


@function
def broadcast_tensors(*tensors):
    """The tensors expanded to their common shape.

    >>> [t.shape for t in rushlight.broadcast_tensors(rushlight.ones(2, 1), rushlight.ones(3))]
    [torch.Size([2, 3]), torch.Size([2, 3])]
    """
    _check_tensors(tensors)
    shape = ()
    for t in tensors:
        shape = _common_shape(shape, t.shape)
    return tuple(t if t.shape == shape else ops.expand(t, shape) for t in tensors)


def _check_tensors(tensors):
    """Refuses what is no tensor among several, as torch does where it takes a list of them."""
    for i, t in enumerate(tensors):
        if not isinstance(t, _C.Tensor):
            error = TypeError(f"expected Tensor as element {i} in argument 0, but got {class_name(t)}")
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

    shapes = tuple(shape for shape in shapes if shape is not None)
    for shape in shapes:
        if not isinstance(shape, (int, Sequence)):
            raise RuntimeError(
                f"Input shapes should be of type ints, a tuple of ints, or a list of ints, got {shape}"
            )
    listed = [(shape,) if isinstance(shape, int) else tuple(shape) for shape in shapes]
    common = [1] * max(map(len, listed), default=0)
    for at, shape in enumerate(listed):
        for d in range(-1, -1 - len(shape), -1):
            if common[d] == 1 and shape[d] != 1:
                if shape[d] < 0:
                    raise ValueError("Attempting to broadcast a dimension with negative length!")
                common[d] = shape[d]
            if shape[d] != 1 and shape[d] != common[d]:  # as NaN is not even itself
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
    if isinstance(indexing, bytes):
        indexing = indexing.decode()
    if not isinstance(indexing, (str, type(None))) and all(isinstance(t, Tensor) for t in tensors):
        raise TypeError(f"meshgrid(): argument 'indexing' must be str, not {class_name(indexing)}")
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    _check_tensors(tensors)
    for t in tensors:
        if t.dtype != tensors[0].dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
        if t.device != tensors[0].device:
            raise RuntimeError("meshgrid expects all tensors to have the same device")
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    for t in tensors:
        if t.dim() > 1:
            told = shown_natively(t)
            raise RuntimeError(f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {told}")
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
    if r >= 2**60:
        raise RuntimeError("cannot create std::vector larger than max_size()")
    recorded = input.requires_grad and _C.is_grad_enabled()
    if input.numel() < 2 and r > (64 if recorded else 1):  # one row, or none
        rows = input if with_replacement else input[:0]
        since, repeated = _C.next_sequence(), rows.unsqueeze(1).repeat(1, r)
        return _C.name_node(repeated, "StackBackward0", since, {"dim": 1})
    if input.numel() and r * math.log2(input.numel()) >= 63:  # torch makes a grid of them all
        raise RuntimeError("numel: integer multiplication overflow")
    if r >= 2**32:
        raise RuntimeError("cannot create std::vector larger than max_size()")
    if recorded:
        return _selected_combinations(input, r, with_replacement)
    columns = [_C.arange(0, 1, input.numel(), _C.int64, None)]
    for _ in range(r - 1):  # behind the last of each row every element that may follow it
        begins = columns[-1] + (not with_replacement)
        which, following = ranges(begins, input.numel() - begins)
        columns = [*(ops.index_select(column, which, 0) for column in columns), following]
    return stack([ops.index(input, (column.to(input.device),)) for column in columns], 1)


def _selected_combinations(input, r, with_replacement):
    """The same from the grid of all choices: what torch's graph keeps of it is kept."""
    numbers = meshgrid(*[_C.arange(0, 1, input.numel(), _C.int64, None)] * r, indexing="ij")
    rising = numbers[0] >= 0
    for one, following in itertools.pairwise(numbers):
        rising = rising & (one <= following if with_replacement else one < following)
    rising = rising.to(input.device)
    return stack([ops.masked_select(grid, rising) for grid in meshgrid(*[input] * r, indexing="ij")], 1)


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
        # As C++ divides: the sign does not matter.
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
