"""Reductions: sums, products, extremes, truth, spread and norms over all or some dimensions.

Derivatives first. `ops.restore` undoes the geometry of a reduction: it brings the reduced dimensions of a
gradient back, expanded to the input's shape.
"""

from __future__ import annotations

import functools
import math

from rushlight import _C, _signatures, return_types
from rushlight._annotations import Any
from rushlight._type_names import type_name as class_name
from rushlight.ops._examples import somewhere
from rushlight.ops._public import (
    C_NAMES,
    FUNCTIONS,
    OVERLAP,
    SAME_DTYPE,
    as_dtype,
    check_tensor,
    function,
    invalid_combination,
    public,
    stumble,
    type_name,
    wrap_dim,
    write_out,
)
from rushlight.ops._rules import derivative, no_derivative
from rushlight.ops._tangents import linear

ops = _C.ops
Tensor = _C.Tensor


def _conj(x):
    return x.conj() if x.is_complex() else x


def _count(shape, dim):
    """How many elements of a tensor of this shape make one result."""
    if dim is None or dim == () or dim == [] or not shape:
        return math.prod(shape)
    return math.prod(shape[d] for d in (dim if isinstance(dim, (tuple, list)) else (dim,)))


derivative("sum", x=lambda g, x_shape: ops.expand(g, x_shape), tangent=linear)
derivative(
    "sum_dim",
    x=lambda g, x_shape, dim, keepdim: ops.restore(g, x_shape, dim, keepdim),
    node="SumBackward1",
    tangent=linear,
)
derivative(
    "restore", g=lambda g_out, dim, keepdim: ops.sum_dim(g_out, dim, keepdim, None), node="ExpandBackward0"
)


def _mean_gradient(g, x_shape, dim, keepdim):
    count = _count(x_shape, dim)
    if count and (_C.is_grad_enabled() or _C.asks_dispatch(g)):  # who looks on sees torch's order
        return ops.restore(g, x_shape, dim, keepdim) / count
    return _C.mark_spread(ops.restore(g / count if count else g, x_shape, dim, keepdim))


derivative("mean", x=lambda g, x_shape: _mean_gradient(g, x_shape, None, False), tangent=linear)
derivative("mean_dim", x=_mean_gradient, node="MeanBackward1", tangent=linear)
derivative(
    "nansum",
    # A product, as in torch: the mean of nothing but NaN has a gradient of NaN.
    x=lambda g, x, dim, keepdim: ops.restore(g, x.shape, dim, keepdim) * ops.eq(x, x),
)


def _product_of_others(x, dim):
    """For every element the product of all others along dim, right at zeros too and differentiable again."""
    length = x.size(dim)
    one = x.new_ones([1 if d == dim else n for d, n in enumerate(x.shape)])
    before = ops.cumprod(x.narrow(dim, 0, length - 1), dim, None, False)
    after = ops.cumprod(x.narrow(dim, 1, length - 1), dim, None, True)
    return FUNCTIONS["cat"]((one, before), dim) * FUNCTIONS["cat"]((after, one), dim)


def _has_zeros(x):
    return x.is_meta or somewhere(ops.eq(x, 0))


def _prod_gradient(g, x, out):
    x = x.to(out.dtype)  # what was multiplied
    if not _has_zeros(x):
        return g * _conj(out / x)
    others = _product_of_others(x.reshape(-1), 0)
    if not x.is_meta and not _C.is_grad_enabled():  # nothing is left of it by two zeros: also no infinity
        several = ops.eq(x, 0).sum() > 1
        if somewhere(several):
            others = ops.where(several, 0, others)
    return g * _conj(others).reshape(x.shape)


def _prod_dim_gradient(g, x, out, dim, keepdim):
    if not x.dim():
        return g
    x, dim = x.to(out.dtype), dim % x.dim()
    g = g if keepdim else ops.unsqueeze(g, dim)
    if not _has_zeros(x):
        return g * _conj((out if keepdim else ops.unsqueeze(out, dim)) / x)
    return g * _conj(_product_of_others(x, dim))


derivative("prod", x=_prod_gradient)
derivative("prod_dim", x=_prod_dim_gradient, node="ProdBackward1")


def _extreme_gradient(g, x, out, dim, keepdim):
    """All elements that attain the extreme share its gradient evenly."""
    attained = ops.eq(ops.restore(out, x.shape, dim, keepdim), x)
    return ops.restore(g, x.shape, dim, keepdim) * attained / ops.sum_dim(attained, dim, True, None)


def _extreme_all_gradient(g, x, out):
    attained = ops.eq(x, out)
    if not out.is_meta and somewhere(out != out):  # the NaNs share it then
        attained = ops.logical_or(attained, ops.logical_and(ops.ne(out, out), ops.ne(x, x)))
    share = g / ops.sum(attained, None)
    if attained.is_contiguous() and not _C.is_grad_enabled():
        return ops.where(attained, share, 0)
    return ops.masked_fill(g.new_zeros(x.shape), attained, share)  # contiguous, in torch's steps


def _at_index(g, indices, x_shape, dim, keepdim):
    """The gradient goes to the one element that was chosen."""
    if not x_shape:
        return g
    if not keepdim:
        g, indices = ops.unsqueeze(g, dim % len(x_shape)), ops.unsqueeze(indices, dim % len(x_shape))
    return FUNCTIONS["scatter"](g.new_zeros(x_shape), dim, indices, g)


for _name in ("max", "min"):
    _title = _name.capitalize()
    derivative(_name, x=_extreme_all_gradient, node=f"{_title}Backward1")
    derivative(
        f"{_name}_dim",
        x=lambda g_values, indices, x_shape, dim, keepdim: _at_index(
            g_values, indices, x_shape, dim, keepdim
        ),
        node=f"{_title}Backward0",
    )
    derivative(f"a{_name}", x=_extreme_gradient)


def _aminmax_gradient(g_min, g_max, x, min, max, dim, keepdim):
    low = None if g_min is None else _extreme_gradient(g_min, x, min, dim, keepdim)
    high = None if g_max is None else _extreme_gradient(g_max, x, max, dim, keepdim)
    return low if high is None else high if low is None else low + high


derivative("aminmax", x=_aminmax_gradient, undefined=True, packs="max min")


def _var_gradient(g, x, dim, correction, keepdim):
    freedom = _count(x.shape, dim) - (1 if correction is None else correction)
    mean = ops.mean_dim(x, dim, True, None)
    if freedom <= 0 and dim is None:  # as torch does: over all elements it does not look at the sign
        return ops.restore(g, x.shape, dim, keepdim) * ops.where(ops.eq(x, mean), math.nan, math.inf)
    return ops.restore((2 / freedom if freedom else math.inf) * g, x.shape, dim, keepdim) * (x - mean)


def _std_gradient(g, x, out, dim, correction, keepdim):
    still = ops.eq(out, 0)
    g_var = ops.choose(still, 0, g / ops.where(still, 1, 2 * out))
    return _var_gradient(g_var, x, dim, correction, keepdim)


def _var_mean_gradient(g_var, g_mean, x, dim, correction, keepdim):
    parts = []
    if g_var is not None:
        parts.append(_var_gradient(g_var, x, dim, correction, keepdim))
    if g_mean is not None:
        parts.append(_mean_gradient(g_mean, x.shape, dim, keepdim))
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


def _std_mean_gradient(g_std, g_mean, x, std, dim, correction, keepdim):
    parts = []
    if g_std is not None:
        parts.append(_std_gradient(g_std, x, std, dim, correction, keepdim))
    if g_mean is not None:
        parts.append(_mean_gradient(g_mean, x.shape, dim, keepdim))
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


derivative("var", x=_var_gradient)
derivative("std", x=_std_gradient)
derivative("var_mean", x=_var_mean_gradient, undefined=True)
derivative("std_mean", x=_std_mean_gradient, undefined=True)


def _norm_gradient(g, x, out, ord, dim, keepdim):
    """Zero where the norm has a kink: at an element of zero, and everywhere if the norm itself is zero.

    There is no second derivative at such a kink, and none is made up: 0 / 0 makes it NaN. Above an order of
    two there is one where elements are zero, so their powers are made of harmless bases.
    """
    if ord == 0:
        return None
    if dim is not None or out.dtype != x.dtype:  # else both are one number, which fits as it is
        g, out = (ops.restore(each, x.shape, dim, keepdim) for each in (g, out))
    if ord == 1:
        return g * ops.sgn(x)
    if math.isinf(ord):
        attained = ops.logical_or(ops.eq(ops.abs(x), out), ops.logical_and(ops.ne(x, x), ops.ne(out, out)))
        return ops.where(attained, ops.sgn(x) * (g / ops.sum_dim(attained, dim, True, None)), 0)
    vanishing = ops.eq(out, 0)
    if ord == 2:
        if _C.is_grad_enabled():  # what torch records; it does not keep the layout
            return g * ops.masked_fill(x / out, vanishing, 0)
        return g * ops.where(vanishing, 0, x / out)
    zero = ops.eq(x, 0)
    base = ops.abs(x) if ord < 2 else ops.where(zero, 1, ops.abs(x))
    power = ops.where(zero, 0, ops.sgn(x) * base ** (ord - 1))
    if ord >= 3:  # then torch has a second derivative of zero, where the norm is
        out = ops.where(vanishing, 1, out)
    # Masked by itself: forward mode differentiates this by g, and 0 times an infinite power is NaN.
    return power * (g * ops.where(vanishing, 0, out ** (1 - ord)))


def _norm_tangent(op, args, tangents, result):
    """How many are not zero has no gradient, but a tangent."""
    return result.new_zeros(result.shape) if args[1] == 0 else None


derivative("vector_norm", x=_norm_gradient, node="LinalgVectorNormBackward0", tangent=_norm_tangent)
derivative(
    "logsumexp",
    x=lambda g, x, out, dim, keepdim: (
        ops.restore(g, x.shape, dim, keepdim) * ops.exp(x - ops.restore(out, x.shape, dim, keepdim))
    ),
)
no_derivative("argmax", "argmin", "any", "all", "count_nonzero")


# ---- sums and products


class _NotGiven:
    """Stands for None where torch knows a dimension that was given as None from one that was not: the nodes
    have different names."""

    def __repr__(self) -> str:
        return "None"


_NOT_GIVEN: Any = _NotGiven()


@public
def sum(input, dim=_NOT_GIVEN, keepdim=False, *, dtype=None, out=None):
    """The sum of all elements, or over the dimensions `dim`.

    >>> rushlight.tensor([[1., 2.], [3., 4.]]).sum(0)
    tensor([4., 6.])
    """
    if out is not None:
        dtype = _dtype_of_out(out, dtype)
    if dim is _NOT_GIVEN and keepdim is False:
        result = ops.sum(input, dtype)
    else:
        result = ops.sum_dim(input, None if dim is _NOT_GIVEN else dim, keepdim, dtype)
    return result if out is None else write_out(out, result, exact=SAME_DTYPE)


def _dtype_of_out(out, dtype):
    """The dtype in which a sum for `out` is taken."""
    return out.dtype if dtype is None and isinstance(out, Tensor) else dtype


@public
def mean(input, dim=_NOT_GIVEN, keepdim=False, *, dtype=None, out=None):
    """The mean of all elements, or over the dimensions `dim`.

    >>> rushlight.tensor([[1., 2.], [3., 4.]]).mean(1, keepdim=True)
    tensor([[1.5000],
            [3.5000]])
    """
    if dim is _NOT_GIVEN and keepdim is False:
        result = ops.mean(input, dtype)
        if isinstance(out, Tensor) and not _C.can_cast(result.dtype, out.dtype):
            raise RuntimeError(
                "mean.dtype_out(): input types can't be cast to the desired output type "
                f"{type_name(out.dtype)}"
            )
    else:
        result = ops.mean_dim(input, None if dim is _NOT_GIVEN else dim, keepdim, dtype)
        default = _C.get_default_dtype()  # of the quotient, the sum being in the output's dtype
        if dtype is None and isinstance(out, Tensor) and not _C.can_cast(default, out.dtype):
            raise RuntimeError(
                f"result type {type_name(default)} can't be cast to the desired output type "
                f"{type_name(out.dtype)}"
            )
    return result if out is None else write_out(out, result, exact="" if dtype is None else SAME_DTYPE)


@public
def nansum(input, dim=None, keepdim=False, *, dtype=None, out=None):
    """The sum, with every NaN counted as zero.

    >>> rushlight.nansum(rushlight.tensor([1.0, float("nan"), 3.0]))
    tensor(4.)
    """
    dtype = as_dtype(dtype)
    if isinstance(out, Tensor):
        if dtype not in (None, out.dtype):
            raise RuntimeError(
                f"nansum: provided dtype must match dtype of result. Got {type_name(out.dtype)} and "
                f"{type_name(dtype)}."
            )
        if input.is_floating_point() and not out.is_floating_point():
            raise NotImplementedError(f"\"nansum_cpu\" not implemented for '{type_name(out.dtype)}'")
    if dtype is not None and dtype.is_complex and input.is_floating_point():
        raise NotImplementedError(f"\"nansum_cpu\" not implemented for '{type_name(dtype)}'")
    if dtype is not None and dtype.is_complex and not input.is_complex():
        total = input.sum(dim, keepdim, dtype=dtype)  # there is no NaN
        return total if out is None else write_out(out, total)
    if dtype is not None and input.is_floating_point() and not dtype.is_floating_point:
        input = ops.where(ops.isnan(input), 0, input)  # as a whole number a NaN would be some number
    result = ops.nansum(input, dim, keepdim, dtype)
    if out is not None and not (input.is_floating_point() or input.is_complex()):
        result = result.to(out.dtype)  # summed up in that dtype
    return result if out is None else write_out(out, result)


@public
def nanmean(input, dim=None, keepdim=False, *, dtype=None, out=None):
    """The mean of the elements that are not NaN.

    >>> rushlight.nanmean(rushlight.tensor([1.0, float("nan"), 3.0]))
    tensor(2.)
    """
    dtype = as_dtype(dtype)
    if not input.is_floating_point() and not input.is_complex():
        raise RuntimeError(
            "nanmean(): expected input to have floating point or complex dtype but got "
            f"{type_name(input.dtype)}"
        )
    if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(
            "nanmean(): could not infer output dtype. Optional dtype must be either a floating point or "
            f"complex dtype. Got: {type_name(dtype)}"
        )
    counted = ops.sum_dim(ops.eq(input, input), dim, keepdim, None)
    if out is None:
        return ops.nansum(input, dim, keepdim, dtype) / counted
    summed = nansum(input, dim, keepdim, dtype=dtype, out=input.new_empty(0, dtype=out.dtype))
    return write_out(out, summed / counted)


@public
def prod(input, dim=None, keepdim=False, *, dtype=None, out=None):
    """The product of all elements, or along the dimension `dim`.

    >>> rushlight.tensor([2., 3., 4.]).prod()
    tensor(24.)
    """
    if out is not None:
        dtype = _dtype_of_out(out, dtype)
    result = ops.prod(input, dtype) if dim is None else ops.prod_dim(input, dim, keepdim, dtype)
    return result if out is None else write_out(out, result, exact=SAME_DTYPE)


# ---- extremes


def _pair(kind, result, out, apart=None):
    """Wraps the results of an operation with several outputs, writing them to the tensors of `out` first,
    which may not share part of the memory of the tensor `apart`."""
    if out is None:
        return tuple.__new__(_type_of(kind), result)
    if _C.copy_to_output(out, result, () if apart is None else (apart,)):  # as nearly always
        return tuple.__new__(_type_of(f"{kind}_out"), out)
    if not isinstance(out, (tuple, list)):
        raise TypeError(f"{kind}(): argument 'out' must be tuple of Tensors, not {class_name(out)}")
    if apart is not None and "partial" in [_C.overlap(apart, place) for place in out]:
        raise RuntimeError(OVERLAP)
    whole = _EXACT_PAIRS.get(kind, (SAME_DTYPE, SAME_DTYPE))
    for place, r, exact in zip(out, result, whole, strict=True):
        if isinstance(place, Tensor) and place.dtype != r.dtype and exact:
            names = {
                "out": type_name(place.dtype),
                "result": type_name(r.dtype),
                "out_c": C_NAMES[place.dtype],
                "result_c": C_NAMES[r.dtype],
            }
            raise RuntimeError(exact.format(name=kind, **names))
        if isinstance(place, Tensor) and place.device != r.device and exact is SAME_DTYPE and kind != "sort":
            raise RuntimeError(
                f"Expected out tensor to have device {r.device}, but got {place.device} instead"
            )
    return _type_of(f"{kind}_out")(write_out(place, r) for place, r in zip(out, result, strict=True))


@functools.cache
def _type_of(kind):
    return getattr(return_types, kind)


# How operations with values and positions refuse tensors of other dtypes as out=.
_MEDIAN = (
    "Expected tensor for 'values' to have the same type as tensor for argument #2 'self'; but type "
    "torch.{out}Tensor does not equal torch.{result}Tensor (while checking arguments for {name})",
    "Expected tensor for argument #1 'indices' to have scalar type Long; but got torch.{out}Tensor instead "
    "(while checking arguments for {name})",
)
_SCAN = ("expected scalar_type {result} but found {out}",) * 2
_EXACT_PAIRS = {
    "aminmax": ("", ""),
    "median": _MEDIAN,
    "nanmedian": _MEDIAN,
    "cummax": _SCAN,
    "cummin": _SCAN,
    "kthvalue": ("output values must be of same type as input", SAME_DTYPE),
    "mode": tuple(
        "expected scalar type '{result}' but got '{out}' for " + which + " output"
        for which in ("values", "indices")
    ),
}


_EXTREME_FORMS = (
    "Tensor input, *, Tensor out = None", "Tensor input, Tensor other, *, Tensor out = None",
    "Tensor input, int dim, bool keepdim = False, *, tuple of Tensors out = None",
    "Tensor input, name dim, bool keepdim = False, *, tuple of Tensors out = None",
)  # fmt: skip


@public
def max(input, dim=None, keepdim=False, *, other=None, out=None):
    """The largest element; with `dim`, the largest along it and its index; with a tensor, maximum().

    >>> rushlight.tensor([[1., 5.], [3., 2.]]).max(1)
    torch.return_types.max(
    values=tensor([5., 3.]),
    indices=tensor([1, 0]))
    """
    if not isinstance(input, Tensor):
        raise invalid_combination("max", (input,) if dim is None else (input, dim), *_EXTREME_FORMS)
    if dim is None and other is None:
        result = ops.max(input)
        return result if out is None else write_out(out, result)
    if other is not None or isinstance(dim, Tensor):
        return FUNCTIONS["maximum"](input, dim if other is None else other, out=out)
    return _pair("max", ops.max_dim(input, dim, keepdim), out, input)


@public
def min(input, dim=None, keepdim=False, *, other=None, out=None):
    """The smallest element; with `dim`, the smallest along it and its index; with a tensor, minimum().

    >>> rushlight.tensor([[1.0, 5.0], [3.0, 2.0]]).min(1).values
    tensor([1., 2.])
    """
    if not isinstance(input, Tensor):
        raise invalid_combination("min", (input,) if dim is None else (input, dim), *_EXTREME_FORMS)
    if dim is None and other is None:
        result = ops.min(input)
        return result if out is None else write_out(out, result)
    if other is not None or isinstance(dim, Tensor):
        return FUNCTIONS["minimum"](input, dim if other is None else other, out=out)
    return _pair("min", ops.min_dim(input, dim, keepdim), out, input)


_SAME_AS_INPUT = (
    "Expected the dtype for input and out to match, but got {result} for input's dtype "
    "and {out} for out's dtype."
)


@public
def amax(input, dim=(), keepdim=False, *, out=None):
    """The largest elements over any dimensions; those that are equal share the gradient evenly.

    >>> rushlight.tensor([[1, 5], [7, 3]]).amax(0)
    tensor([7, 5])
    """
    result = ops.amax(input, dim, keepdim)
    return result if out is None else write_out(out, result, exact=_SAME_AS_INPUT)


@public
def amin(input, dim=(), keepdim=False, *, out=None):
    """The smallest elements over any dimensions; those that are equal share the gradient evenly.

    >>> rushlight.tensor([[1, 5], [7, 3]]).amin((0, 1))
    tensor(1)
    """
    result = ops.amin(input, dim, keepdim)
    return result if out is None else write_out(out, result, exact=_SAME_AS_INPUT)


@public
def aminmax(input, *, dim=None, keepdim=False, out=None):
    """Smallest and largest elements at once, of everything or along `dim`.

    >>> rushlight.tensor([3, 1, 2]).aminmax().max
    tensor(3)
    """
    result = ops.aminmax(input, dim, keepdim)
    for place in () if out is None else out:
        if place.dtype != input.dtype:
            raise RuntimeError(SAME_DTYPE.format(result_c=C_NAMES[input.dtype], out_c=C_NAMES[place.dtype]))
    return _pair("aminmax", result, out, None if dim is None else input)


@public
def argmax(input, dim=None, keepdim=False, *, out=None):
    """Where the largest element stands: its flat index, or its index along `dim`. The first one of equals.

    >>> rushlight.tensor([1, 7, 7, 2]).argmax()
    tensor(1)
    """
    result = ops.argmax(input, dim, keepdim)
    return result if out is None else write_out(out, result, exact=SAME_DTYPE)


@public
def argmin(input, dim=None, keepdim=False, *, out=None):
    """Where the smallest element stands: its flat index, or that along `dim`. The first one of equals.

    >>> rushlight.tensor([3, 1, 2]).argmin()
    tensor(1)
    """
    result = ops.argmin(input, dim, keepdim)
    return result if out is None else write_out(out, result, exact=SAME_DTYPE)


# ---- truth


def _truth(name, input, dim, keepdim, out):
    if out.dtype not in (_C.bool, _C.uint8):
        raise RuntimeError(f"{name} only supports bool tensor for result, got: {type_name(out.dtype)}")
    result = getattr(ops, name)(input, dim, keepdim)
    return write_out(out, result.to(out.dtype))  # of bytes the result is bytes, which bool does not take


@public
def any(input, dim=None, keepdim=False, *, out=None):
    """Whether an element is not zero.

    >>> rushlight.tensor([[0, 0], [1, 0]]).any(1)
    tensor([False,  True])
    """
    if out is None:
        return ops.any(input, dim, keepdim)
    return _truth("any", input, dim, keepdim, out)


@public
def all(input, dim=None, keepdim=False, *, out=None):
    """Whether no element is zero.

    >>> rushlight.tensor([[1, 0], [1, 1]]).all(1)
    tensor([False,  True])
    """
    if out is None:
        return ops.all(input, dim, keepdim)
    return _truth("all", input, dim, keepdim, out)


@public
def count_nonzero(input, dim=None):
    """How many elements are not zero.

    >>> rushlight.count_nonzero(rushlight.tensor([0, 3, 0, 4]))
    tensor(2)
    """
    return ops.count_nonzero(input, dim)


# ---- spread


def _freedom(name, dim, unbiased, correction):
    """Sorts out the overloads (unbiased), (dim, unbiased, keepdim) and (dim, *, correction, keepdim)."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if unbiased is not None:
        if correction is not None:
            raise TypeError(
                f"{name}() received an invalid combination of arguments: give either unbiased or correction"
            )
        correction = 1 if unbiased else 0
    elif dim is not None and correction is None:
        correction = 1
    return dim, correction


def _write_spread(out, result, input):
    """Torch computes it in the dtype of `out`: there is no kernel for complex ones beside a real input."""
    if isinstance(out, Tensor) and out.is_complex() and not input.is_complex() and input.numel():
        raise NotImplementedError(f"\"std_cpu\" not implemented for '{type_name(out.dtype)}'")
    return write_out(out, result)


@public
def var(input, dim=None, unbiased=None, keepdim=False, *, correction=None, out=None):
    """The variance: the mean squared deviation, with `count - correction` (1 unless given) as the divisor.

    >>> rushlight.tensor([1., 2., 3., 4.]).var()
    tensor(1.6667)
    """
    dim, correction = _freedom("var", dim, unbiased, correction)
    result = ops.var(input, dim, correction, keepdim)
    return result if out is None else _write_spread(out, result, input)


@public
def std(input, dim=None, unbiased=None, keepdim=False, *, correction=None, out=None):
    """The standard deviation: the root of the variance.

    >>> rushlight.tensor([1.0, 2.0, 3.0]).std()
    tensor(1.)
    """
    dim, correction = _freedom("std", dim, unbiased, correction)
    result = ops.std(input, dim, correction, keepdim)
    return result if out is None else _write_spread(out, result, input)


@function
def var_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    """Variance and mean, as a pair.

    >>> rushlight.var_mean(rushlight.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """
    dim, correction = _freedom("var_mean", dim, unbiased, correction)
    return ops.var_mean(input, dim, correction, keepdim)


@function
def std_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    """Standard deviation and mean, as a pair.

    >>> rushlight.std_mean(rushlight.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """
    dim, correction = _freedom("std_mean", dim, unbiased, correction)
    return ops.std_mean(input, dim, correction, keepdim)


# ---- norms


def vector_norm(input, ord=2, dim=None, keepdim=False, *, dtype=None, out=None):
    """The norm of order `ord` of all elements, or over the dimensions `dim`, seen as one vector.

    >>> rushlight.linalg.vector_norm(rushlight.tensor([3.0, 4.0]))
    tensor(5.)
    """
    if isinstance(ord, Tensor):
        if ord.dim():
            raise TypeError("linalg_vector_norm(): argument 'ord' (position 2) must be Number, not Tensor")
        ord = ord.item()
    result = ops.vector_norm(input, ord, dim, keepdim, dtype)
    return result if out is None else write_out(out, result, exact=SAME_DTYPE)


@public
def norm(input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    """The p-norm of all elements, or over the dimensions `dim`.

    >>> rushlight.tensor([3., 4.]).norm()
    tensor(5.)
    """
    stumble(input, "layout")
    if isinstance(p, str):
        if p == "fro" and (dim is None or isinstance(dim, int) or len(dim) < 3):
            p = 2
        else:
            from rushlight.ops.linalg_spectral import matrix_norm

            dims = list(range(input.ndim)) if dim is None else [dim] if isinstance(dim, int) else dim
            listed = dim is None or (isinstance(dims, (tuple, list)) and {d.__class__ for d in dims} <= {int})
            if not listed or keepdim.__class__ is not bool or dtype.__class__ not in (type(None), _C.dtype):
                _signatures.check("linalg_matrix_norm", "", (input, p, dims, keepdim), {"dtype": dtype})
            return matrix_norm(input, p, dims, keepdim, dtype=dtype, out=out)
    elif p is None:
        p = 2
    elif hasattr(p, "__array__") and not isinstance(p, Tensor):  # a number of NumPy's, but no array of one
        _signatures.check("linalg_vector_norm", "", (input, p), {})
    try:
        return vector_norm(input, p, dim, keepdim, dtype=dtype, out=out)
    except (TypeError, ValueError, IndexError, RuntimeError):  # torch looks at the kinds first
        dims = [dim] if isinstance(dim, int) else dim
        named = {"out": out, "dtype": dtype} if out is not None else {"dtype": dtype}
        _signatures.check("linalg_vector_norm", "", (input, p, dims, keepdim), named)
        raise


@public
def dist(input, other, p=2):
    """The p-norm of the difference.

    >>> rushlight.dist(rushlight.tensor([1., 2.]), rushlight.tensor([4., 6.]))
    tensor(5.)
    """
    check_tensor(input, "dist", "input", 1)
    check_tensor(other, "dist", "other", 2)
    p = p.item() if isinstance(p, Tensor) else p
    difference = input - other
    if not difference.is_floating_point() and not difference.is_complex():
        raise RuntimeError(
            "norm(): input dtype should be either floating point or complex. Got "
            f"{type_name(difference.dtype)} instead."
        )
    return ops.vector_norm(difference, p, None, False, None)


def _names_any(dim):
    return not isinstance(dim, (tuple, list)) or len(dim) > 0


@public
def logsumexp(input, dim, keepdim=False, *, out=None):
    """log(sum(exp(x))) over the dimensions `dim`, computed so that large elements do not overflow.

    >>> rushlight.tensor([1000., 1000.]).logsumexp(0)
    tensor(1000.6932)
    """
    if isinstance(out, Tensor) and not (out.is_floating_point() or out.is_complex()):
        raise RuntimeError(
            f"logsumexp(): Expected floating point type for result tensor, but got: {type_name(out.dtype)}"
        )
    if dim.__class__ is not int and not keepdim and input.dim() and input.numel() and not _names_any(dim):
        raise RuntimeError(
            f"output with shape [] doesn't match the broadcast shape {[1] * input.dim()}\n\n"
            "An empty list of dimensions is not all of them in torch's logsumexp: name them."
        )
    if isinstance(out, Tensor) and (out.is_complex() or not input.is_complex()):
        input = input.to(out.dtype)  # it is computed in that dtype
    if input.is_complex() and not input.numel():
        result = ops.log(ops.sum_dim(ops.exp(input), dim, keepdim, None))
    elif input.is_complex():
        shift = ops.amax(input.real.detach(), dim, True)
        shift = ops.where(ops.eq(ops.abs(shift), math.inf), 0, shift)
        total = ops.log(ops.sum_dim(ops.exp(input - shift), dim, True, None)) + shift
        result = total if keepdim else total.reshape(ops.sum_dim(input.detach(), dim, False, None).shape)
    else:
        result = ops.logsumexp(input, dim, keepdim)
    return result if out is None else write_out(out, result)


@public
def diff(input, n=1, dim=-1, prepend=None, append=None, *, out=None):
    """The differences of neighbouring elements along `dim`, taken `n` times.

    >>> rushlight.tensor([1, 4, 9, 16]).diff()
    tensor([3, 5, 7])
    """
    if not input.dim():
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n:
        dim = wrap_dim(dim, input.dim())
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    if n == 0:
        result = _C.in_place(ops.copy, FUNCTIONS["zeros_like"](input), input)
        if out is None:
            return result
        return write_out(out, result, exact="expected scalar_type {result} but found {out}", apart=[input])
    pieces = [piece for piece in (prepend, input, append) if piece is not None]
    if len({piece.dim() for piece in pieces}) > 1:
        raise RuntimeError("diff expects prepend or append to be the same dimension as input")
    for piece in pieces:
        for d in range(input.dim()):
            if d != dim and piece.size(d) != input.size(d):
                raise RuntimeError(
                    "diff expects the shape of tensor to prepend or append to match that of input except "
                    f"along the differencing dimension; input.size({d}) = {input.size(d)}, but got "
                    f"tensor.size({d}) = {piece.size(d)}"
                )
    if len(pieces) > 1:
        input = FUNCTIONS["cat"](pieces, dim)
    # Nothing is left after as many steps as there are elements.
    steps = n if n < input.size(dim) else input.size(dim)
    minus = FUNCTIONS["logical_xor" if input.dtype == _C.bool else "sub"]
    for step in range(steps):
        length = input.size(dim)
        after, before = ((input.narrow(dim, start, length - 1) if length else input) for start in (1, 0))
        if out is not None and step == steps - 1:
            return minus(after, before, out=out)
        input = minus(after, before)
    return input if out is None else write_out(out, input, writer="sub")
