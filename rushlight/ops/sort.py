"""Sorting, picking elements by rank (topk, kthvalue, median, mode), and searching what is sorted.

Derivatives first: the gradient of a chosen element goes to where it was taken from.
"""

from __future__ import annotations

from rushlight import _C
from rushlight._type_names import type_name as class_name
from rushlight._warn import warn_once
from rushlight.ops._public import (
    SAME_DTYPE,
    Tensor,
    check_apart,
    check_cast,
    function,
    public,
    type_name,
    write_out,
)
from rushlight.ops._rules import derivative, no_derivative
from rushlight.ops.reduce import _at_index, _extreme_all_gradient, _pair

ops = _C.ops


def _back(g_values, indices, x_shape, dim):
    return _at_index(g_values, indices, x_shape, dim, True)


def _back_one(g_values, indices, x_shape, dim, keepdim):
    return _at_index(g_values, indices, x_shape, dim, keepdim)


derivative("sort", x=_back)
no_derivative("searchsorted")
derivative("topk", x=_back)
derivative("kthvalue", x=_back_one)
derivative("mode", x=_back_one)
for _name in ("median", "nanmedian"):
    derivative(_name, x=_extreme_all_gradient)
    derivative(f"{_name}_dim", x=_back_one, node=f"{_name.capitalize()}Backward1")


@public
def sort(input, dim=-1, descending=False, *, stable=False, out=None):
    """The elements in order along `dim`, and where each stood. Equal ones keep their order, stable or not.

    >>> rushlight.tensor([3, 1, 2]).sort()
    torch.return_types.sort(
    values=tensor([1, 2, 3]),
    indices=tensor([1, 2, 0]))
    """
    if not isinstance(stable, (bool, type(None))):
        raise TypeError(f"sort(): argument 'stable' must be bool, not {class_name(stable)}")
    return _pair("sort", ops.sort(input, dim, descending), out, input)


@public
def argsort(input, dim=-1, descending=False, *, stable=False):
    """The positions that sort() gives.

    >>> rushlight.argsort(rushlight.tensor([3, 1, 2]))
    tensor([1, 2, 0])
    """
    return sort(input, stable=stable, dim=dim, descending=descending)[1]


@public
def msort(input, *, out=None):
    """The elements in order along the first dimension.

    >>> rushlight.msort(rushlight.tensor([3, 1, 2]))
    tensor([1, 2, 3])
    """
    result = ops.sort(input, 0, False)[0]
    return result if out is None else write_out(out, result, exact=SAME_DTYPE, apart=[input])


@public
def topk(input, k, dim=-1, largest=True, sorted=True, *, out=None):
    """The `k` largest (or smallest) elements along `dim`, and where they stand: in order, or as they
    were found if they need not be `sorted`.

    >>> rushlight.tensor([3, 1, 4, 1, 5]).topk(2)
    torch.return_types.topk(
    values=tensor([5, 4]),
    indices=tensor([4, 2]))
    """
    if not isinstance(sorted, bool):
        raise TypeError(f"topk(): argument 'sorted' must be bool, not {class_name(sorted)}")
    return _pair("topk", ops.topk(input, k, dim, largest, sorted), out, input)


@public
def kthvalue(input, k, dim=-1, keepdim=False, *, out=None):
    """The `k`-th smallest element along `dim`, counted from 1, and where it stands.

    >>> rushlight.tensor([5, 1, 3]).kthvalue(2).values
    tensor(3)
    """
    if out:
        check_cast(out[0], input.dtype, "output values must be of same type as input")
        check_cast(out[1], _C.int64, "output indices must be of scalar type Long")
    for place in out or ():
        check_apart(place, input)
    return _pair("kthvalue", ops.kthvalue(input, k, dim, keepdim), out)


@public
def median(input, dim=None, keepdim=False, *, out=None):
    """The middle element (the lower one of two), of everything or along `dim`, there with its position.

    >>> rushlight.tensor([3., 1., 2., 9.]).median()
    tensor(2.)
    """
    if dim is None:
        return ops.median(input)
    return _pair("median", ops.median_dim(input, dim, keepdim), out, input)


@public
def nanmedian(input, dim=None, keepdim=False, *, out=None):
    """The median of the elements that are not NaN.

    >>> rushlight.nanmedian(rushlight.tensor([1.0, float("nan"), 3.0]))
    tensor(1.)
    """
    if dim is None:
        return ops.nanmedian(input)
    return _pair("nanmedian", ops.nanmedian_dim(input, dim, keepdim), out, input)


@public
def mode(input, dim=-1, keepdim=False, *, out=None):
    """The most frequent element along `dim` (the smallest of several), and the last place it stands.

    >>> rushlight.tensor([1, 2, 2, 3]).mode().values
    tensor(2)
    """
    return _pair("mode", ops.mode(input, dim, keepdim), out, input)


# ---- searching sorted sequences


@function
def searchsorted(sorted_sequence, input, *, out_int32=False, right=False, side=None, sorter=None, out=None):
    """Where each value would go into a sorted sequence (right: after its equals).

    >>> rushlight.searchsorted(rushlight.tensor([1, 3, 5]), rushlight.tensor([0, 3, 6]))
    tensor([0, 1, 3])
    """
    if side not in (None, "left", "right"):
        raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left while right "
            "was True"
        )
    if not isinstance(input, Tensor):
        kind = _C.result_type(sorted_sequence, input)  # a number has the digits of the sequence
        input = _C.from_data(input, _C.float64 if isinstance(input, float) else None, None).to(kind)
    for what, tensor in (("input value", input), ("boundary", sorted_sequence), ("sorter", sorter)):
        if tensor is not None and not tensor.is_contiguous():
            warn_once(
                f"torch.searchsorted(): {what} tensor is non-contiguous, this will lower the performance due "
                "to extra data copy when converting non-contiguous tensor to contiguous, please use "
                f"contiguous {what} tensor if possible. This message will only appear once per program."
            )
    result = ops.searchsorted(sorted_sequence, input, sorter, bool(right) or side == "right")
    if out_int32:
        result = result.to(_C.int32)
    if out is not None and out.dtype != result.dtype:
        raise RuntimeError(
            "torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or Long(int64) "
            f"depending on whether out_int32 flag is True, but we got output tensor's dtype "
            f"{type_name(out.dtype)} and out_int32 flag is {bool(out_int32)}"
        )
    return result if out is None else write_out(out, result)


@function
def bucketize(input, boundaries, *, out_int32=False, right=False, out=None):
    """Which of the intervals between sorted `boundaries` each value falls into.

    >>> rushlight.bucketize(rushlight.tensor([0, 2, 5]), rushlight.tensor([1, 3]))
    tensor([0, 1, 2])
    """
    if boundaries.dim() != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.dim()})")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right, out=out)
