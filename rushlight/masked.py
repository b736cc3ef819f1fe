"""Reductions and normalisations of the unmasked elements, as torch.masked names them.

Every function puts the operation's identity where the mask is False and runs the operation. A result none of
whose elements is unmasked is that identity (0 for a sum), or NaN where there is none (mean, median).
"""

from __future__ import annotations

import builtins
import math
from typing import Any

import rushlight
from rushlight import _C, _signatures
from rushlight._type_names import type_name as _type_name
from rushlight.ops._public import RARE, public, stumble

Tensor = _C.Tensor
ops = _C.ops

__all__ = [
    "amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean",
    "median", "norm", "normalize", "prod", "softmax", "softmin", "std", "sum", "var",
]  # fmt: skip


__path__: list[str] = []  # torch.masked.maskedtensor is a module; see _absent.py


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in ("_ops", "maskedtensor"):
        return import_module(f"rushlight.masked.{name}")
    if name in ("MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"):
        return getattr(import_module("rushlight.masked.maskedtensor"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _function(function: Any) -> Any:
    return public(function, method=False, namespace=False)


def _mask_of(input: Tensor, mask: Tensor | None) -> Tensor | None:
    """The mask with the size of the input."""
    if mask is None:
        return None
    if len(mask.shape) > input.dim():
        raise IndexError(
            "_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)"
        )
    if mask.shape == input.shape:
        return mask.bool()
    return mask.clone().bool().expand(input.shape)  # graphs keep a copy, as torch's do


def _input_mask(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The mask of a call, as large as the input: where elements are counted."""
    mask = kwargs.get("mask")
    found = _mask_of(input, mask)
    if found is None:
        raise ValueError("_input_mask requires explicit mask")
    return found


# Where the dimension stands among the arguments of the reductions; the other functions keep the size.
_DIM_AT = dict.fromkeys(
    ("sum", "prod", "amax", "amin", "argmax", "argmin", "mean", "median", "logsumexp", "var", "std"), 0
) | {"norm": 1}


def _output_mask(op: Any, input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The mask of the result of `op`: a reduced element counts if one of its elements does."""
    mask = _input_mask(input, *args, **kwargs)
    at = _DIM_AT.get(op.__name__)
    if at is None:
        return mask
    dim = args[at] if len(args) > at else kwargs.get("dim")
    dims = _dims(dim, input.dim())
    if not dims:
        return mask
    return rushlight.any(mask, dims, kwargs.get("keepdim", False))


def _filled(input: Tensor, mask: Tensor | None, value: Any) -> Tensor:
    mask = _mask_of(input, mask)
    return input if mask is None else ops.where(mask, input, value)


def _identity(name: str, dtype: _C.dtype) -> Any:
    """The value that never changes a maximum (amax) or a minimum (amin)."""
    low = name in ("amax", "argmax", "logsumexp")
    if dtype == _C.bool or (dtype in RARE and not dtype.is_floating_point and not dtype.is_complex):
        raise NotImplementedError(f"identity of {name} on {dtype} input")
    if dtype.is_floating_point or (dtype.is_complex and name == "logsumexp"):
        return -math.inf if low else math.inf
    limits = rushlight.iinfo(dtype)  # refuses complex dtypes in torch's words
    return limits.min if low else limits.max


def _cast(input: Tensor, dtype: _C.dtype | None) -> Tensor:
    kept = input.dtype  # what torch asks a tensor for first
    return input if dtype in (None, kept) else input.to(dtype=dtype)


def _dtype_of(input: Tensor, dtype: Any) -> Any:
    """The dtype asked for, or that of the input, which torch asks for first."""
    return input.dtype if dtype is None else dtype


def _dims(dim: Any, ndim: int) -> tuple[int, ...]:
    """The reduced dimensions; no dimension means all of them."""
    if dim is None or (isinstance(dim, tuple) and not dim):
        return tuple(builtins.range(ndim))
    ndim = max(ndim, 1)
    found: list[int] = []
    for d in (dim,) if isinstance(dim, int) else dim:
        if d in found:
            raise RuntimeError(f"dim={d} appears multiple times in the list of dims")
        if d >= ndim or d < -ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {d})"
            )
        found.append(d % ndim)
    return tuple(found)


def _dims_of(name: str, dim: Any, input: Tensor, position: int = 2) -> tuple[int, ...]:
    """_dims for the function `name` of torch's, which takes whole numbers for dimensions."""
    dims: Any = _dims(dim, input.dim())  # as they were given, which may be tensors
    for at, d in enumerate(dims):
        if isinstance(d, Tensor) and d.is_floating_point():
            told = f"must be tuple of ints, but found element of type Tensor at pos {at}"
            raise TypeError(f"{name}(): argument 'dim' (position {position}) {told}")
    return dims


def _check_one(name: str, dim: Any, position: int | None) -> None:
    if isinstance(dim, Tensor) and (dim.dim() or dim.is_floating_point()):
        place = "" if position is None else f" (position {position})"
        raise TypeError(f"{name}(): argument 'dim'{place} must be int, not Tensor")


def _canonical_dim(dim: Any, ndim: int) -> tuple[int, ...]:
    """The reduced dimensions, in order."""
    return tuple(sorted(_dims(dim, ndim)))


def _where(mask: Tensor, input: Tensor, fill_value: Tensor) -> Tensor:
    """The input where the mask is True, else the value."""
    return rushlight.where(mask, input, fill_value)


def _reduction_identity(op_name: str, input: Tensor, *args: Any) -> Tensor | None:
    """What stands for masked elements in a reduction or a running one; None for those that count elements."""
    dtype = input.dtype
    value: Any
    if op_name in ("mean", "var", "std"):
        return None
    if op_name == "median":
        return rushlight.tensor(math.nan, dtype=dtype if dtype.is_floating_point else _C.float32)
    if op_name in ("amax", "amin", "argmax", "argmin", "logsumexp", "logaddexp"):
        value = _identity("amax" if op_name == "logaddexp" else op_name, dtype) if dtype != _C.bool else None
    else:
        value = {"sum": 0, "cumsum": 0, "norm": 0, "prod": 1, "cumprod": 1}.get(op_name)
    if op_name == "norm" and args and args[0] == -math.inf:
        if not dtype.is_floating_point:
            raise AssertionError(f"input must be floating point, got {dtype}")
        value = math.inf
    if value is None:
        raise NotImplementedError(f"identity of {op_name} on {dtype} input")
    return rushlight.tensor(value, dtype=dtype, device=input.device)


def _combine_input_and_mask(op: Any, input: Tensor, mask: Tensor | None, *args: Any) -> Tensor:
    """The input with the identity of an operation where the mask is False."""
    if mask is None:
        return input
    value = _reduction_identity(op if isinstance(op, str) else op.__name__, input, *args)
    return _where(_input_mask(input, mask=mask), input, value)  # type: ignore[arg-type]


@_function
def sum(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The sum of the unmasked elements.

    >>> mask = rushlight.tensor([True, False, True])
    >>> rushlight.masked.sum(rushlight.tensor([1., 2., 3.]), mask=mask)
    tensor(4.)
    """
    stumble(input, "layout")
    dims = _dims_of("sum", dim, input)
    return _filled(input, mask, 0).sum(dims, bool(keepdim), dtype=dtype)


@_function
def prod(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The product of the unmasked elements.

    >>> mask = rushlight.tensor([True, False, True])
    >>> rushlight.masked.prod(rushlight.tensor([1., 2., 3.]), mask=mask)
    tensor(3.)
    """
    stumble(input, "layout")
    input = _cast(input, dtype)
    dims = _dims(dim, input.dim())
    result = _filled(input, mask, 1)
    if not dims:
        # Nothing to multiply: the tensor itself, or its integers as 64 bits.
        whole = not (result.is_floating_point() or result.is_complex())
        return result.to(_C.int64) if whole and dtype is None else result
    for d in sorted(dims, reverse=True):
        _check_one("prod", d, None)
        result = result.prod(d, bool(keepdim))
    return result


def _extreme(name: str, input: Tensor, dim: Any, keepdim: bool, dtype: Any, mask: Tensor | None) -> Tensor:
    stumble(input, "dtype")
    mask = _mask_of(input, mask)
    if mask is not None:
        input = _filled(input, mask, _identity(name, input.dtype))
    return _cast(getattr(input, name)(_dims_of(name, dim, input), bool(keepdim)), dtype)


@_function
def amax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The largest unmasked element.

    >>> mask = rushlight.tensor([True, True, False])
    >>> rushlight.masked.amax(rushlight.tensor([1., 2., 3.]), mask=mask)
    tensor(2.)
    """
    return _extreme("amax", input, dim, keepdim, dtype, mask)


@_function
def amin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The smallest unmasked element.

    >>> mask = rushlight.tensor([False, True, True])
    >>> rushlight.masked.amin(rushlight.tensor([1., 2., 3.]), mask=mask)
    tensor(2.)
    """
    return _extreme("amin", input, dim, keepdim, dtype, mask)


def _place(name: str, input: Tensor, dim: Any, keepdim: bool, dtype: Any, mask: Tensor | None) -> Tensor:
    stumble(input, "dtype")
    if dim is not None:
        _signatures.check_call(name, "T input,i dim", input, dim)
    kept, mask = input.dtype, _mask_of(input, mask)
    if mask is not None:
        input = _filled(input, mask, _identity(name, input.dtype))
    return _cast(getattr(input, name)(dim, bool(keepdim)), kept if dtype is None else dtype)


@_function
def argmax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Where the largest unmasked element is, in the dtype of the input (as torch has it).

    >>> mask = rushlight.tensor([True, True, False])
    >>> rushlight.masked.argmax(rushlight.tensor([1, 2, 3]), mask=mask)
    tensor(1)
    """
    return _place("argmax", input, dim, keepdim, dtype, mask)


@_function
def argmin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Where the smallest unmasked element is, in the dtype of the input (as torch has it).

    >>> mask = rushlight.tensor([False, True, True])
    >>> rushlight.masked.argmin(rushlight.tensor([1, 2, 3]), mask=mask)
    tensor(1)
    """
    return _place("argmin", input, dim, keepdim, dtype, mask)


def _check_counted(dim: Any, mask: Tensor | None) -> None:
    """Where torch counts the elements of a mask, sum() is given the dimensions as they are."""
    known = isinstance(dim, (int, tuple, list, Tensor, type(None))) and not isinstance(dim, bool)
    if mask is not None and not known:
        _signatures.check("sum", "T input,I1? dim=", (mask,), {"dim": dim})


def _count(input: Tensor, dims: tuple[int, ...], keepdim: bool, mask: Tensor | None) -> Tensor:
    """How many elements each result is made of."""
    mask = _mask_of(input, mask)
    if mask is not None:
        return mask.sum(dims, bool(keepdim))
    count = math.prod(input.shape[d] for d in dims) if input.dim() else 1
    shape = [1 if d in dims else n for d, n in enumerate(input.shape) if keepdim or d not in dims]
    return rushlight.full(shape, count, device=input.device)


@_function
def mean(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The mean of the unmasked elements.

    >>> mask = rushlight.tensor([True, False, True])
    >>> rushlight.masked.mean(rushlight.tensor([1., 2., 3.]), mask=mask)
    tensor(2.)
    """
    kind = dtype or input.dtype
    if not (kind.is_floating_point or kind.is_complex):
        which = "Optional" if dtype else "Input"
        raise ValueError(
            f"mean(): Could not infer output dtype. {which} dtype must be either a floating point or complex "
            f"dtype. Got: {kind}"
        )
    input, mask = _cast(input, dtype), _mask_of(input, mask)
    _check_counted(dim, mask)
    dims = _dims_of("sum", dim, input) or _dims(None, input.dim())
    return _filled(input, mask, 0).sum(dims, bool(keepdim)) / _count(input, dims, keepdim, mask)


@_function
def median(input, dim=-1, *, keepdim=False, dtype=None, mask=None):
    """The median of the unmasked elements: the smaller one of two in the middle.

    >>> mask = rushlight.tensor([True, True, False])
    >>> rushlight.masked.median(rushlight.tensor([3., 2., 1.]), 0, mask=mask)
    tensor(2.)
    """
    stumble(input, "dtype")
    dim, mask = _first(dim, input), _mask_of(input, mask)
    _check_one("nanmedian", dim, 2)
    kind = input.dtype  # a floating point one is kept, whatever dtype says, as in torch
    if not kind.is_floating_point:
        kind = kind if dtype is None else dtype
        if mask is not None and not bool(mask.any(dim).all()):
            raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
        input = input.to(_C.float32)
    if not isinstance(keepdim, bool):
        told = f"must be bool, not {_type_name(keepdim)}"
        raise TypeError(f"nanmedian(): argument 'keepdim' (position 3) {told}")
    return _filled(input, mask, math.nan).nanmedian(dim, keepdim)[0].to(dtype=kind)


@_function
def logsumexp(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """log(sum(exp(x))) of the unmasked elements.

    >>> mask = rushlight.tensor([True, True, False])
    >>> rushlight.masked.logsumexp(rushlight.tensor([0., 0., 9.]), mask=mask)
    tensor(0.6931)
    """
    input = _cast(input, dtype)
    kind, dims = input.dtype, _dims_of("logsumexp", dim, input)
    if mask is not None:
        input = _filled(input, mask, _identity("logsumexp", kind))
    return rushlight.logsumexp(input, dims, keepdim=keepdim).to(kind)


@_function
def logaddexp(input, other, *, dtype=None, input_mask=None, other_mask=None):
    """log(exp(input) + exp(other)), where a masked element counts as -inf.

    >>> x, mask = rushlight.tensor([1., 1.]), rushlight.tensor([True, False])
    >>> rushlight.masked.logaddexp(x, x, input_mask=mask)
    tensor([1.6931, 1.0000])
    """
    kind = _dtype_of(input, dtype)
    stumble(other, "layout")
    for each, mask in ((input, input_mask), (other, other_mask)):
        if mask is not None and each.is_complex():  # no complex number is the lowest one
            raise TypeError(
                "torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'"
            )
        odd = each.dtype == rushlight.bool or (each.dtype in RARE and not each.is_floating_point())
        if mask is not None and odd:
            raise NotImplementedError(f"identity of logaddexp on {each.dtype} input")
    if not (input.is_floating_point() or input.is_complex() or other.is_floating_point()):
        return rushlight.logaddexp(input, other)  # which refuses integers
    filled = []
    for each, mask in ((input, input_mask), (other, other_mask)):
        lowest = -math.inf if each.is_complex() or mask is None else _identity("amax", each.dtype)
        filled.append(_filled(each, mask, lowest).to(each.dtype))
    return _cast(rushlight.logaddexp(*filled), kind)


@_function
def cumsum(input, dim, *, dtype=None, mask=None):
    """Running sums that pass over masked elements.

    >>> mask = rushlight.tensor([True, False, True])
    >>> rushlight.masked.cumsum(rushlight.tensor([1., 2., 3.]), 0, mask=mask)
    tensor([1., 1., 4.])
    """
    return _scan("cumsum", input, dim, dtype, mask, 0)


@_function
def cumprod(input, dim, *, dtype=None, mask=None):
    """Running products that pass over masked elements.

    >>> mask = rushlight.tensor([True, False, True])
    >>> rushlight.masked.cumprod(rushlight.tensor([1., 2., 3.]), 0, mask=mask)
    tensor([1., 1., 3.])
    """
    return _scan("cumprod", input, dim, dtype, mask, 1)


def _scan(name: str, input: Tensor, dim: Any, dtype: Any, mask: Tensor | None, identity: int) -> Tensor:
    kind = _dtype_of(input, dtype)
    dim = _first(dim, input)
    _check_one(name, dim, 2)
    filled = _filled(input, mask, identity)
    if kind == _C.bool:
        raise NotImplementedError(f"\"{name}_out_cpu\" not implemented for 'Bool'")
    return getattr(filled, name)(dim, dtype=kind)


def _first(dim: Any, input: Tensor) -> Any:
    """The one dimension of a function that takes one: of several the first counts, as in torch."""
    return _canonical_dim(dim, input.dim())[0]


def _softmax(function: Any, input: Tensor, dim: int, dtype: Any, mask: Tensor | None, extreme: str) -> Tensor:
    dtype = _dtype_of(input, dtype)
    dim, mask = _first(dim, input), _mask_of(input, mask)
    _check_one("log_softmax" if function is rushlight.log_softmax else "softmax", dim, 1)
    if mask is not None:
        input = _filled(input, mask, _identity(extreme, input.dtype))
    return function(input, dim, dtype=dtype)


@_function
def softmax(input, dim, *, dtype=None, mask=None):
    """The softmax of the unmasked elements, 0 at the others.

    >>> mask = rushlight.tensor([True, True, False])
    >>> rushlight.masked.softmax(rushlight.tensor([0., 0., 9.]), 0, mask=mask)
    tensor([0.5000, 0.5000, 0.0000])
    """
    return _softmax(rushlight.softmax, input, dim, dtype, mask, "amax")


@_function
def log_softmax(input, dim, *, dtype=None, mask=None):
    """The logarithm of softmax, -inf at masked elements.

    >>> mask = rushlight.tensor([True, True, False])
    >>> rushlight.masked.log_softmax(rushlight.tensor([0., 0., 9.]), 0, mask=mask)
    tensor([-0.6931, -0.6931,    -inf])
    """
    return _softmax(rushlight.log_softmax, input, dim, dtype, mask, "amax")


@_function
def softmin(input, dim, *, dtype=None, mask=None):
    """The softmax of the negative, 0 at masked elements.

    >>> mask = rushlight.tensor([True, True, False])
    >>> rushlight.masked.softmin(rushlight.tensor([0., 0., -9.]), 0, mask=mask)
    tensor([0.5000, 0.5000, 0.0000])
    """
    return _softmax(rushlight.nn.functional.softmin, input, dim, dtype, mask, "amin")


@_function
def norm(input, ord=2.0, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The vector norm of the unmasked elements.

    >>> mask = rushlight.tensor([True, True, False])
    >>> rushlight.masked.norm(rushlight.tensor([3., 4., 9.]), 2.0, mask=mask)
    tensor(5.)
    """
    dtype = _dtype_of(input, dtype)
    lowest = (mask is not None or not isinstance(ord, Tensor)) and ord == -math.inf
    if lowest and mask is not None and input.is_complex():
        raise AssertionError(f"input must be floating point, got {input.dtype}")
    filled = _filled(input, mask, math.inf if lowest else 0)
    dims = _dims_of("linalg_vector_norm", dim, input, 3)
    filled = filled.to(input.dtype) if input.dtype == rushlight.bool else filled  # refused by its own name
    return rushlight.linalg.vector_norm(filled, ord, dims, bool(keepdim), dtype=dtype)


@_function
def normalize(input, ord, dim, *, eps=1e-12, dtype=None, mask=None):
    """The unmasked elements divided by their norm, but at least by eps; 0 at the others.

    >>> mask = rushlight.tensor([True, True, False])
    >>> rushlight.masked.normalize(rushlight.tensor([3., 4., 9.]), 2.0, 0, mask=mask)
    tensor([0.6000, 0.8000, 0.0000])
    """
    size = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return _filled(input, mask, 0) / ops.maximum(size, size.new_full((), eps))


def _variance(input, dim, unbiased, correction, keepdim, dtype, mask):
    if unbiased is not None and correction is not None:
        raise ValueError("Only one of unbiased and correction may be given")
    if correction is None:
        correction = 0 if unbiased is False else 1
    kind = dtype or input.dtype
    if not (kind.is_floating_point or kind.is_complex) and dtype is None:
        kind = _C.float32
    wide = kind if kind.is_floating_point or kind.is_complex else _C.float32
    mask = _mask_of(input, mask)
    _check_counted(dim, mask)
    dims = _dims_of("sum", dim, input) or _dims(None, input.dim())
    # The sum is in the dtype asked for, which may be too small for it; the rest is not.
    centre = _filled(input, mask, 0).sum(dims, True, dtype=kind) / _count(input, dims, True, mask)
    off = input - centre
    total = _filled(off * off.conj(), mask, 0).sum(dims, bool(keepdim), dtype=wide)
    count = _count(input, dims, keepdim, mask)
    if correction:
        count = (count.to(total.dtype.to_real()) - correction).clamp(min=0)
    return (total / count).to(kind)


@_function
def var(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """The variance of the unmasked elements.

    >>> mask = rushlight.tensor([True, False, True])
    >>> rushlight.masked.var(rushlight.tensor([1., 9., 3.]), mask=mask)
    tensor(2.)
    """
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask)


@_function
def std(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """The standard deviation of the unmasked elements.

    >>> mask = rushlight.tensor([True, False, True])
    >>> rushlight.masked.std(rushlight.tensor([1., 9., 3.]), mask=mask)
    tensor(1.4142)
    """
    return ops.sqrt(_variance(input, dim, unbiased, correction, keepdim, dtype, mask))
