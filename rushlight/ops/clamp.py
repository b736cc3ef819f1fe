"""clamp, clamp_min and clamp_max: elements moved into a range of numbers or of tensors."""

from __future__ import annotations

import math

from rushlight import _C
from rushlight.ops._examples import is_derived
from rushlight.ops._public import (
    C_NAMES,
    FOUND_DTYPE,
    Tensor,
    invalid_combination,
    method,
    public,
    type_name,
    write_out,
)

ops = _C.ops


@public(aliases=("clip",))
def clamp(input, min=None, max=None, *, out=None):
    """Every element moved into the range [min, max]; either bound may be missing or a tensor.

    >>> rushlight.clamp(rushlight.tensor([-1., 0.5, 2.]), 0, 1)
    tensor([0.0000, 0.5000, 1.0000])
    """
    return _clamped("clamp", input, min, max, out)


def _clamped(name, input, low, high, out):
    op, args = _clamp_call(input, low, high, name)
    try:
        result = op(*args)
    except RuntimeError as error:
        _refuse_complex_bounds(name, input, low, high, error)
        raise
    if out is None:
        return result
    return write_out(
        out, result, exact="" if isinstance(low, Tensor) or isinstance(high, Tensor) else FOUND_DTYPE
    )


def _refuse_complex_bounds(name, input, low, high, error):
    """What torch says of complex operands: of a complex input before it looks at shapes."""
    tensors = [bound for bound in (low, high) if isinstance(bound, Tensor)]
    if name in ("clamp", "clamp_") and input.is_complex() and tensors:
        raise NotImplementedError("clamp is not supported for complex types")
    other = any(words in str(error) for words in ("must match the size", "can't be cast"))
    if not other and tensors and any(t.is_complex() for t in (input, *tensors)):
        kernel = "clamp" if len(tensors) == 2 else "maximum" if high is None else "minimum"
        common = _C.result_type(input, *tensors)
        raise NotImplementedError(f"\"{kernel}_cpu\" not implemented for '{type_name(common)}'")


def _is_number(x):
    return isinstance(x, Tensor) and x.dim() == 0 and not x.requires_grad and not _C.is_leveled(x)


def _as_tensor(number, input):
    """A number as a tensor that decides a dtype beside the input no more than the number does."""
    own = input.is_floating_point() or isinstance(number, int)
    return _C.full((), number, input.dtype if own else _C.get_default_dtype(), input.device)


def _real_bounds(name, input, low, high):
    """Complex numbers as limits: of floating point numbers only, and without imaginary parts."""
    if name == "clamp_" and not input.is_floating_point() and not input.is_complex():
        wide = type_name(_C.result_type(input, 1j))
        raise RuntimeError(
            f"result type {wide} can't be cast to the desired output type {C_NAMES[input.dtype]}"
        )
    if not input.is_floating_point() or name.startswith("clamp_m"):
        raise NotImplementedError("clamp is not supported for complex types")
    if any(isinstance(bound, complex) and bound.imag for bound in (low, high)):
        raise RuntimeError("value cannot be converted to type double without overflow")
    return [bound.real if isinstance(bound, complex) else bound for bound in (low, high)]


def _clamp_call(input, low, high, name="clamp"):
    """The primitive and its arguments."""
    if low is None and high is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if isinstance(low, complex) or isinstance(high, complex):
        low, high = _real_bounds(name, input, low, high)
    if low is None and isinstance(high, Tensor):
        return ops.minimum if not _differentiated(input, high) else ops.at_most, (input, high)
    if high is None and isinstance(low, Tensor):
        return ops.maximum if not _differentiated(input, low) else ops.at_least, (input, low)
    if isinstance(low, Tensor) or isinstance(high, Tensor):
        from numbers import Number  # which nothing else needs at import

        # Of a tensor and a number, the tensor counts as a number if it can.
        if any(_C.is_leveled(x) and not x.dim() for x in (low, high)):  # a number for every example
            low, high = (_as_tensor(x, input) if isinstance(x, Number) else x for x in (low, high))
            return ops.clamp, (input, low, high)
        if isinstance(low, Number) and _is_number(high):
            return _clamp_call(input, low, high.item(), name)
        if isinstance(high, Number) and _is_number(low):
            return _clamp_call(input, low.item(), high, name)
        if not (isinstance(low, Tensor) and isinstance(high, Tensor)):
            raise invalid_combination(
                "clamp", (input, low, high), "Tensor input, Tensor min = None, Tensor max = None",
                "Tensor input, Number min = None, Number max = None",
            )  # fmt: skip
        return ops.clamp, (input, low, high)
    if low is None:
        return ops.clamp_max_scalar, (input, high)
    if high is None:
        return ops.clamp_min_scalar, (input, low)
    if low != low or high != high:  # whatever the other one is, and whether the dtype holds it
        low = high = math.nan
    return ops.clamp_scalar, (input, low, high)


@method(aliases=("clip_",))
def clamp_(self, min=None, max=None):
    """In-place version of clamp."""
    return _clamp_onto("clamp_", self, min, max)


def _clamp_onto(name, self, min, max):
    op, args = _clamp_call(self, min, max, name)
    try:
        return _C.in_place(op, *args)
    except RuntimeError as error:
        if isinstance(max if min is None else min, Tensor):
            _C.check_inplace(self)  # which torch asks first
        shapes = "must match the size" in str(error)
        if name != "clamp_" and not shapes and isinstance(max if min is None else min, Tensor):
            common = _C.result_type(self, max if min is None else min)
            if common.is_complex and not self.is_complex():
                wide, own = type_name(common), type_name(self.dtype)
                words = f"result type {wide} can't be cast to the desired output type {own}"
                raise RuntimeError(words) from None
        _refuse_complex_bounds(name, self, min, max, error)
        said, own = str(error).partition("\n")[0], type_name(self.dtype)
        numbers = not any(isinstance(bound, Tensor) for bound in args[1:])
        if numbers and said.endswith(f"desired output type {own}"):
            raise RuntimeError(said.removesuffix(own) + C_NAMES[self.dtype]) from None
        raise


def _differentiated(a, b):
    return is_derived(a, b)


def _check_bound(name, input, bound, value):
    if not isinstance(input, Tensor):
        raise invalid_combination(
            name, (input, value), f"Tensor input, Tensor {bound}, *, Tensor out = None",
            f"Tensor input, Number {bound}, *, Tensor out = None",
        )  # fmt: skip


@public
def clamp_min(input, min, *, out=None):
    """Elements below `min` become `min`.

    >>> rushlight.clamp_min(rushlight.tensor([1, 5]), 3)
    tensor([3, 5])
    """
    _check_bound("clamp_min", input, "min", min)
    return _clamped("clamp_min", input, min, None, out)


@public
def clamp_max(input, max, *, out=None):
    """Elements above `max` become `max`.

    >>> rushlight.clamp_max(rushlight.tensor([1, 5]), 3)
    tensor([1, 3])
    """
    _check_bound("clamp_max", input, "max", max)
    return _clamped("clamp_max", input, None, max, out)


@method
def clamp_min_(self, min):
    """In-place version of clamp_min."""
    return _clamp_onto("clamp_min_", self, min, None)


@method
def clamp_max_(self, max):
    """In-place version of clamp_max."""
    return _clamp_onto("clamp_max_", self, None, max)
