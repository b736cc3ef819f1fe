"""The different elements of a tensor, and those that differ from the one before."""

from __future__ import annotations

from rushlight import _C
from rushlight.ops._examples import filled
from rushlight.ops._public import FUNCTIONS, needs_values, public, type_name, undifferentiable, wrap_dim

ops = _C.ops


def _check_sortable(input, dim):
    if input.is_complex() or str(input.dtype).startswith("torch.float8"):
        kernel = "unique" if dim is None else "unique_dim"
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{type_name(input.dtype)}'")


def _wrap_some(dim, ndim):
    """wrap_dim of tensors that have dimensions."""
    if not ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return wrap_dim(dim, ndim)


@public
def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """The elements (or slices along dim) without those that equal their predecessor.

    >>> rushlight.unique_consecutive(rushlight.tensor([1, 1, 2, 1]))
    tensor([1, 2, 1])
    """
    _check_sortable(input, dim)
    needs_values("unique_consecutive", input)
    found = _unique_consecutive(_C.detach(input), return_inverse, return_counts, dim)
    return without_derivative("unique_consecutive", "UniqueConsecutiveBackward0", input, found)


def without_derivative(name, node, input, found):
    """What was found in `input`; its values require grad as those do, but have no derivative."""
    values = undifferentiable(name, found[0], input, node=node)
    return (values, *found[1:]) if len(found) > 1 else values


def _unique_consecutive(input, return_inverse, return_counts, dim):
    d = 0 if dim is None else _wrap_some(dim, input.dim())
    rows = input.reshape(-1) if dim is None or input.dim() == 0 else input.movedim(d, 0)
    n = rows.size(0)
    inverse = counts = None
    if n:
        if rows.dim() == 1:
            changed = ops.ne(rows[1:], rows[:-1])
        elif rows.numel():
            flat = rows.reshape(n, -1)
            changed = ops.ne(flat[1:], flat[:-1]).any(-1)
        else:
            changed = _C.full((n - 1,), False, _C.bool, None)
        starts = FUNCTIONS["cat"]([_C.full((1,), True, _C.bool, None), changed])
        if rows.dim() == 1 and not return_counts:
            kept = rows[starts]
        else:
            first = starts.nonzero().reshape(-1)
            kept = rows[first]
        if return_inverse:
            inverse = starts.long().cumsum(0) - 1
        if return_counts:
            ends = FUNCTIONS["cat"]([first[1:], _C.full((1,), n, _C.int64, None)])
            counts = ends - first
    else:
        kept, inverse, counts = rows, _C.empty((0,), _C.int64, None), _C.empty((0,), _C.int64, None)
    kept = kept.movedim(0, d) if dim is not None and input.dim() else kept
    result = (kept,)
    if return_inverse:
        result += (inverse.reshape(input.shape) if dim is None else inverse,)
    if return_counts:
        result += (counts,)
    return result


@public
def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The different elements (or slices along dim), sorted.

    >>> rushlight.unique(rushlight.tensor([3, 1, 3]))
    tensor([1, 3])
    """
    _check_sortable(input, dim)
    needs_values("_unique2" if dim is None else "unique_dim", input)
    given, input = input, _C.detach(input)
    if dim is None:
        flat = input.reshape(-1)
        ordered, order = flat.sort(stable=True)
    else:
        d = _wrap_some(dim, input.dim())
        rows = input.movedim(d, 0)
        if list(rows.shape).count(0) > 1:
            raise RuntimeError(
                "Number of zero sized dimensions is more than one, so unique cannot be applied "
            )
        if rows.size(0) and not rows.numel():
            raise RuntimeError(
                "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied"
            )
        rows = rows.reshape(rows.size(0), rows.numel() // max(rows.size(0), 1))
        order = _C.arange(0, 1, rows.size(0), _C.int64, None)
        for column in reversed(range(rows.size(1))):  # least significant column first; each sort is stable
            order = order[rows[:, column][order].argsort(stable=True)]
        ordered = input.movedim(d, 0)[order].movedim(0, d)
    result = _unique_consecutive(ordered, return_inverse, return_counts, dim)
    if return_inverse:
        places = _C.full((order.numel(),), 0, _C.int64, None)
        places = filled(ops.index_put, places, (order,), result[1].reshape(-1), False)
        result = (result[0], places.reshape(input.shape) if dim is None else places, *result[2:])
    name, node = ("_unique2", "Unique2Backward0") if dim is None else ("unique_dim", "UniqueDimBackward0")
    return without_derivative(name, node, given, result)
