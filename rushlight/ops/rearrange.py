"""Rearranging the elements of one tensor: flip, roll, repeat and their kin, and its triangles."""

from __future__ import annotations

from rushlight import _C
from rushlight._versions import uncounted
from rushlight.ops._examples import filled, somewhere
from rushlight.ops._public import (
    SAME_DTYPE,
    Tensor,
    dims,
    function,
    method,
    public,
    shares_elements,
    type_name,
    whole,
    wrap_dim,
    write_out,
)
from rushlight.ops._rules import derivative
from rushlight.ops._tangents import linear

ops = _C.ops


def _sum_repeats(g, x_shape, repeats):
    if 0 in repeats:
        return g.new_zeros(x_shape)
    extra = len(repeats) - len(x_shape)
    sizes = [n for r, s in zip(repeats, (1,) * extra + tuple(x_shape), strict=True) for n in (r, s)]
    summed = g.reshape(sizes).sum(tuple(range(0, len(sizes), 2))) if sizes else g
    return summed.reshape(x_shape)


derivative("flip", x=lambda g, dims: ops.flip(g, dims), tangent=linear)
derivative("roll", x=lambda g, shifts, dims: ops.roll(g, tuple(-s for s in shifts), dims), tangent=linear)
derivative("repeat", x=_sum_repeats, tangent=linear)
derivative("tril", x=lambda g, diagonal: ops.tril(g, diagonal), tangent=linear)
derivative("triu", x=lambda g, diagonal: ops.triu(g, diagonal), tangent=linear)


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
    if not input.numel():
        return input.clone()
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
            f"expected rotation dims to be different, but got dim0 = {+dims[0]} and dim1 = {+dims[1]}"
        )
    k = k % 4
    if k == 1:
        return ops.transpose(ops.flip(input, (b,)), a, b)
    if k == 2:
        return ops.flip(input, (a, b))
    if k == 3:
        return ops.transpose(ops.flip(input, (a,)), a, b)
    return ops.contiguous_copy(input)


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
    given = dim
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
            f"input.size({given}) = {input.size(dim)}"
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
    if somewhere(repeats < 0):
        raise RuntimeError("repeats can not be negative")
    ends = repeats.cumsum(0)
    total = int(ends[-1]) if len(ends) else 0
    if output_size is not None and output_size != total:
        raise RuntimeError("allocated size does not match required size")
    # The position of an element is the number of counts that end before it.
    ended = _C.full((total + 1,), 0, _C.int64, None)
    ended = filled(ops.index_add, ended, ends, _C.full((len(ends),), 1, _C.int64, None), 0, 1)
    return ended[:total].cumsum(0, dtype=repeats.dtype)


def ranges(begins, counts):
    """All numbers of several ranges behind each other: which range each is of, and the numbers."""
    which = _positions(counts, None)
    shifts = begins - counts.cumsum(0) + counts
    return which, _C.arange(0, 1, len(which), _C.int64, None) + ops.index_select(shifts, which, 0)


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
        with uncounted(self):
            for row in range(self.size(-2)):
                self[..., row, max(row + diagonal + 1, 0) :].fill_(0)
        return _C.note_write(self)
    return _C.in_place(ops.tril, self, diagonal)


@method
def triu_(self, diagonal=0):
    """In-place version of :meth:`triu`."""
    if self.dim() > 1 and shares_elements(self) and not self.requires_grad:
        with uncounted(self):
            for row in range(self.size(-2)):
                self[..., row, : max(row + diagonal, 0)].fill_(0)
        return _C.note_write(self)
    return _C.in_place(ops.triu, self, diagonal)


def _triangle_indices(name, row, col, offset, dtype, device, pin_memory, requires_grad, upper):
    from rushlight import get_default_device
    from rushlight.ops.create import _checked, _finish

    _checked(None, pin_memory)

    row, col, offset = map(whole, (row, col, offset))
    if row < 0:
        raise RuntimeError(f"row must be non-negative, got{row}")
    if col < 0:
        raise RuntimeError(f"col must be non-negative, got{col}")
    if dtype not in (_C.int32, _C.int64):
        raise NotImplementedError(f"\"{name}\" not implemented for '{type_name(dtype)}'")
    row = row if col else 0  # no row has an element then
    offset = max(-row, min(offset, col))
    # The rows that reach into the triangle, and where in them it begins and ends.
    first, last = (0, min(row, max(col - offset, 0))) if upper else (min(max(-offset, 0), row), row)
    if col == 0 or first > last:
        first = last
    place = device if device is not None else get_default_device()
    found = _C.triangle_indices(first, last, col, offset, upper, dtype, place)
    return _finish(found, requires_grad)


@function
def tril_indices(row, col, offset=0, *, dtype=_C.int64, device=None, layout=None, pin_memory=False,
                 requires_grad=False):  # fmt: skip
    """The coordinates of the lower triangle of a row x col matrix: row numbers, then column numbers.

    >>> rushlight.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    return _triangle_indices(
        "tril_indices", row, col, offset, dtype, device, pin_memory, requires_grad, False
    )


@function
def triu_indices(row, col, offset=0, *, dtype=_C.int64, device=None, layout=None, pin_memory=False,
                 requires_grad=False):  # fmt: skip
    """The coordinates of the upper triangle of a row x col matrix: row numbers, then column numbers.

    >>> rushlight.triu_indices(2, 2)
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """
    return _triangle_indices("triu_indices", row, col, offset, dtype, device, pin_memory, requires_grad, True)
