"""Powers of two (frexp, ldexp), and small functions of indices and sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rushlight import _C, return_types
from rushlight._versions import uncounted
from rushlight.ops._again import looked_on
from rushlight.ops._examples import writable
from rushlight.ops._public import (
    FUNCTIONS,
    Tensor,
    check_cast,
    dims,
    function,
    in_place_of,
    method,
    public,
    type_name,
    whole,
    write_apart,
    write_out,
)
from rushlight.ops._rules import derivative
from rushlight.ops.create import _finish_numbers
from rushlight.ops.ranges import check_range, real_number

ops = _C.ops
_conj = _C.conj


derivative("frexp", x=lambda g_mantissa, exponent: _scaled(g_mantissa, -exponent))


def _power_of_two(exponent):
    """2 ** exponent for whole exponents, exactly, in float64."""
    bits = (exponent.long() + 1023) << 52
    return bits.view(_C.float64)


@public
def frexp(input, *, out=None):
    """Every number as mantissa * 2 ** exponent, the size of the mantissa in [0.5, 1).

    >>> mantissa, exponent = rushlight.frexp(rushlight.tensor([6., 0.]))
    >>> mantissa, exponent
    (tensor([0.7500, 0.0000]), tensor([3, 0], dtype=torch.int32))
    """
    if not input.is_floating_point():
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    if out is None and looked_on(input):
        return return_types.frexp(ops.frexp(input, lambda x: tuple(frexp(x))))
    since, wide = _C.next_sequence(), _C.detach(input).double()
    # Numbers below the smallest normal one are lifted first; that takes float64 itself only.
    tiny = ops.lt(ops.abs(wide), 2.0**-1022)
    lifted = ops.where(tiny, wide * 2.0**54, wide)
    raw = (lifted.view(_C.int64) >> 52) & 2047
    plain = ops.logical_and(ops.isfinite(wide), ops.ne(wide, 0))
    exponent = ops.where(plain, raw - 1022 - ops.where(tiny, 54, 0), 0)
    half = exponent // 2
    # In two steps, because 2 ** -exponent alone may overflow.
    mantissa = input.double() * _power_of_two(-half) * _power_of_two(half - exponent)
    result = mantissa.to(input.dtype), exponent.to(_C.int32)
    if result[0].requires_grad:
        _C.name_node(result[0], "FrexpBackward0", since, {"exponent": _C.keep(result[1])})
    if out is not None:
        check_cast(
            out[0], input.dtype, "torch.frexp() expects mantissa to have dtype {result_c} but got {out_c}"
        )
        check_cast(out[1], _C.int32, "torch.frexp() expects exponent to have int dtype but got {out_c}")
        return return_types.frexp_out(write_out(o, r) for o, r in zip(out, result, strict=True))
    return return_types.frexp(result)


def _check_factors(input, other):
    for place, (name, value) in enumerate((("input", input), ("other", other)), 1):
        if not isinstance(value, Tensor):
            kind = type(value).__name__
            raise TypeError(f"ldexp(): argument '{name}' (position {place}) must be Tensor, not {kind}")


def _scaled_dtype(input, other):
    dtype = _C.result_type(input, other)
    return dtype if dtype.is_floating_point or dtype.is_complex else _C.get_default_dtype()


# Of the result, as torch has it: the first factor is not kept.
derivative(
    "ldexp",
    a=lambda g, b: _ldexp(g, _conj(b)),
    b=lambda g, out: g * _conj(out) * math.log(2),
    shows="out",
)


def _ldexp(input, other):
    _check_factors(input, other)
    if other.dtype == _C.bool and input.dtype.is_floating_point:
        raise NotImplementedError("\"ldexp_cpu_exp\" not implemented for 'Bool'")
    if (input.requires_grad or other.requires_grad) and _C.is_grad_enabled():
        return ops.ldexp(input, other, _scaled)
    return _scaled(input, other)


def _scaled(input, other):
    dtype = _scaled_dtype(input, other)
    whole = not (input.is_floating_point() or input.is_complex())
    if whole or other.is_floating_point() or other.is_complex():
        # Torch's 2 is a number beside the default dtype, and beside others a tensor of that dtype.
        plain = whole or input.dtype == _C.get_default_dtype()
        return input * FUNCTIONS["pow"](2.0 if plain else input.new_full((), 2), other)
    real = dtype if dtype.is_floating_point else (_C.float64 if dtype == _C.complex128 else _C.float32)
    other = other.to(_C.int64).clamp(-(2**14), 2**14)  # beyond every range, and within that of halves
    exponent = other.to(real)
    if dtype.is_complex:  # an infinite factor must come once: infinities times a complex number are NaN
        return input.to(dtype) * ops.exp2(exponent)
    half = ops.trunc(exponent / 2)
    # In two steps, so that a power beyond the range may still give a number within it.
    return input.to(dtype) * ops.exp2(half) * ops.exp2(exponent - half)


@public
def ldexp(input, other, *, out=None):
    """input * 2 ** other.

    >>> rushlight.ldexp(rushlight.tensor([1., 1.]), rushlight.tensor([3, -1]))
    tensor([8.0000, 0.5000])
    """
    if out is None:
        return _ldexp(input, other)
    if isinstance(out, Tensor):
        _check_scaled(input, other, out.dtype)
    return write_out(out, _ldexp(input, other))


def _check_scaled(input, other, dtype):
    """Refuses to write the result as `dtype` where it does not fit."""
    _check_factors(input, other)
    own = _scaled_dtype(input, other)
    if not _C.can_cast(own, dtype):
        what = f"result type {type_name(own)}" if dtype.is_floating_point else "ldexp"
        raise RuntimeError(f"{what} can't be cast to the desired output type {type_name(dtype)}")


def _ldexp_onto(self, other):
    _check_scaled(self, other, self.dtype)
    return _ldexp(self, other)


in_place_of(_ldexp_onto, "ldexp")


@function
def unravel_index(indices, shape):
    """The coordinates, one tensor per dimension, of places counted through a tensor of the given shape.

    >>> rushlight.unravel_index(rushlight.tensor([3, 5]), (2, 3))
    (tensor([1, 1]), tensor([0, 2]))
    """
    if indices.is_complex() or indices.is_floating_point() or indices.dtype == _C.bool:
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    if not isinstance(shape, (int, Sequence)):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    for size in sizes:
        if not isinstance(size, int):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(size)}")
    if any(size >= 2**63 for size in sizes):
        raise ValueError("Overflow when unpacking long long")
    if any(size < 0 for size in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    result, left = [], indices.long()
    for size in reversed(sizes):
        result.append(left % size)
        left = left.div(size, rounding_mode="floor")
    # torch makes them one tensor, too.
    return FUNCTIONS["stack"](result[::-1], -1).unbind(-1) if result else ()


_LONG = "nonzero_static: Expected out tensor to have scalar type Long but got scalar type{out}"


@public
def nonzero_static(input, *, size, fill_value=-1, out=None):
    """The places of the first `size` nonzero elements, filled up with `fill_value` if there are fewer.

    >>> rushlight.nonzero_static(rushlight.tensor([0, 5, 7]), size=3)
    tensor([[ 1],
            [ 2],
            [-1]])
    """
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    if input.is_meta:
        return _C.full((size, input.dim()), fill_value, _C.int64, input.device)
    found = input.nonzero()[:size]
    result = writable(_C.full((size, input.dim()), fill_value, _C.int64, input.device), found)
    with uncounted(result):
        result[: found.size(0)] = found
    return result if out is None else write_apart(out, result, input, exact=_LONG)


@method
def sum_to_size(self, *size):
    """This tensor summed to the given size: the opposite of expanding it from there.

    >>> rushlight.ones(2, 3).sum_to_size(1, 3)
    tensor([[2., 2., 2.]])
    """
    if not size:
        raise TypeError('sum_to_size() missing 1 required positional arguments: "size"')
    wanted = tuple(int(n) if isinstance(n, bool) else whole(n) for n in dims(size))
    if not wanted:
        return self.sum()
    extra = self.dim() - len(wanted)
    fits = extra >= 0 and all(n in (1, m) for n, m in zip(wanted, self.shape[extra:]))
    if not fits:
        raise RuntimeError(f"size {{{list(wanted)}}} is not expandable to size {{{list(self.shape)}}}.")
    summed = [d for d in range(self.dim()) if d < extra or (wanted[d - extra] == 1 != self.size(d))]
    if not summed:
        return self
    result = self.sum(summed, keepdim=True)
    return result.reshape(wanted) if extra else result


@function
def vander(x, N=None, increasing=False):
    """The matrix of the powers of a vector's elements, one row per element.

    >>> rushlight.vander(rushlight.tensor([2, 3]), 3)
    tensor([[4, 2, 1],
            [9, 3, 1]])
    """
    if x.dim() != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    count = x.size(0) if N is None else N
    if count < 0:
        raise RuntimeError("N must be non-negative.")
    _C.promote_types(x.dtype, _C.int64)  # refuses dtypes that are not promoted
    # Products and not powers: those of complex numbers go through their angles.
    powers = x.unsqueeze(-1).expand(-1, max(count - 1, 0)).cumprod(1)
    ones = powers.new_ones((x.size(0), min(count, 1)))
    if count < 2:
        return ones
    result = ops.cat((ones, powers), 1)
    return result if increasing else result.flip(1)


@function(name="range")
def range_(start=0, end=None, step=1, *, out=None, dtype=None, layout=None, device=None, requires_grad=False):
    """start, start + step, ... up to and including end; deprecated in torch in favour of arange.

    >>> rushlight.range(1, 2, 0.5)
    tensor([1.0000, 1.5000, 2.0000])
    """
    import warnings

    warnings.warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is "
        "inconsistent with Python's range builtin. Instead, use torch.arange, which produces values in "
        "[start, end).",
        stacklevel=2,
    )
    if end is None:
        start, end = 0, start
    given = (x.item() if isinstance(x, Tensor) else x for x in (start, end, step))
    start, end, step = map(real_number, given)
    kind = dtype or (out.dtype if out is not None else _C.get_default_dtype())
    if kind == _C.bool or kind.is_complex:
        raise NotImplementedError(f"\"range_cpu\" not implemented for '{type_name(kind)}'")
    if step == 0:
        raise RuntimeError("step must be nonzero")
    check_range(start, end)
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    count = int((end - start) / step + 1)
    if count >= 2**63:
        raise RuntimeError("invalid size, possible overflow?")
    return _finish_numbers(_C.arange(start, step, count, kind, device), requires_grad, out, "range")
