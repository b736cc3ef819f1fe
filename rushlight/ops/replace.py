"""A copy with one view of it replaced: select_scatter, slice_scatter and kin."""

from __future__ import annotations

from rushlight import _C
from rushlight._versions import uncounted
from rushlight.ops._examples import writable
from rushlight.ops._public import FUNCTIONS, SAME_DTYPE, public, type_name, write_out

ops = _C.ops
_in_place = _C.in_place


def _same_strides(values, input):
    """A copy with the strides and the offset of `input`, gaps included; in row-major order if elements share
    memory, and as any copy of a negative or conjugate view, which torch resolves first."""
    shares = any(stride == 0 and size > 1 for stride, size in zip(input.stride(), input.shape))
    shares = shares or input.is_neg() or input.is_conj()
    if shares or _C.dispatches(input):  # a wrapper's class knows how it lies
        return ops.clone(values)
    size, offset = tuple(input.shape), input.storage_offset()
    if offset and values.numel():  # in memory of its own, where strides and offsets mean the same
        reach = offset + 1 + sum((n - 1) * stride for n, stride in zip(size, input.stride()))
        memory = _C.empty_strided((reach,), (1,), input.dtype, input.device)
        whole = _C.forget_base(memory.as_strided(size, input.stride(), offset))
    else:
        whole = _C.empty_strided(size, input.stride(), input.dtype, input.device)
    with uncounted(whole):
        return _in_place(ops.copy, whole, values)


def _replaced(input, src, view):
    whole = _same_strides(input, input) if not _C.is_leveled(src) else writable(ops.clone(input), src)
    part = view(whole)
    if part.shape != src.shape:
        raise RuntimeError(
            "expected src to have a size equal to the slice of self. src size = "
            f"{list(src.shape)}, slice size = {list(part.shape)}"
        )
    with uncounted(whole):
        _in_place(ops.copy, part, src)
    return whole


def _scattered(input, src, view, view_of_memory=False):
    """_replaced, as one node if it is recorded. view_of_memory: the view is one of `input` as it lies."""
    recorded = _C.is_grad_enabled() and (input.requires_grad or src.requires_grad)
    if not recorded or _C.dispatches(input) or input.device.type == "meta":
        return _replaced(input, src, view)
    if not (input.is_floating_point() or input.is_complex()):
        _replaced(input, src.detach(), view)
        raise RuntimeError(f"Autograd not support dtype: {type_name(input.dtype)}")
    if input.dtype != src.dtype:
        src = src.to(input.dtype)
    shares = any(stride == 0 for stride in input.stride()) or input.is_neg() or input.is_conj()
    gaps = not shares and FUNCTIONS["empty_like"](input).stride() != input.stride()
    dense = ops.clone(input) if shares or gaps else input
    part = view(dense.detach())
    if part.shape != src.shape or (gaps and view_of_memory):
        return _replaced(input, src, view)
    offset = part.storage_offset() - dense.storage_offset()
    result = ops.replace(input, src, dense.stride(), tuple(part.shape), part.stride(), offset)
    if input.storage_offset() and not shares and not gaps:
        lying = _same_strides(result.detach(), input)
        _C.set_storage(
            result, lying, result.dtype, lying.storage_offset(), tuple(lying.shape), lying.stride()
        )
    if result._version:  # in steps, for who looks on: those are none of the user's writes
        _C.set_version(result, 0)
    if not gaps:
        return result
    result = _same_strides(result, input)
    with uncounted(result):  # elements that share memory hold what was written last
        _in_place(ops.copy, result.detach(), _replaced(input.detach(), src.detach(), view))
    return result


@public
def select_scatter(input, src, dim, index):
    """A copy of `input` with input.select(dim, index) replaced by `src`.

    >>> rushlight.select_scatter(rushlight.zeros(2, 2), rushlight.ones(2), 0, 1)
    tensor([[0., 0.],
            [1., 1.]])
    """
    return _scattered(input, src, lambda x: ops.select(x, dim, index))


@public
def slice_scatter(input, src, dim=0, start=None, end=None, step=1, *, out=None):
    """A copy of `input` with input[start:end:step] along `dim` replaced by `src`.

    >>> rushlight.slice_scatter(rushlight.zeros(4), rushlight.ones(2), 0, 1, 3)
    tensor([0., 1., 1., 0.])
    """
    result = _scattered(input, src, lambda x: ops.slice(x, dim, start, end, step))
    return result if out is None else write_out(out, result, exact=SAME_DTYPE)


@public
def diagonal_scatter(input, src, offset=0, dim1=0, dim2=1):
    """A copy of `input` with one of its diagonals replaced by `src`.

    >>> rushlight.diagonal_scatter(rushlight.zeros(2, 2), rushlight.ones(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    return _scattered(input, src, lambda x: ops.diagonal(x, offset, dim1, dim2))


@public
def as_strided_scatter(input, src, size, stride, storage_offset=None):
    """A copy of `input` with the elements of an as_strided view replaced by `src`.

    >>> rushlight.as_strided_scatter(rushlight.zeros(4), rushlight.ones(2), (2,), (2,), 1)
    tensor([0., 1., 0., 1.])
    """
    return _scattered(input, src, lambda x: x.as_strided(size, stride, storage_offset), True)
