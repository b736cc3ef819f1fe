"""The public elementwise functions: torch's names, signatures and docstrings around the primitives."""

from __future__ import annotations

import builtins

from rushlight import _C
from rushlight.ops._public import (
    FOUND_DTYPE,
    Tensor,
    check_tensor,
    function,
    in_place,
    in_place_of,
    invalid_combination,
    method,
    public,
    type_name,
    write_out,
)

ops = _C.ops


def _unary(name, doc, *aliases, primitive=None, method=True, inplace=True, module="rushlight", exact=""):
    """Makes `name(input, *, out=None)`, its aliases, and the in-place methods; `exact` refuses an out= of
    another dtype."""
    op = getattr(ops, primitive or name)

    def function(input, *, out=None):
        return op(input) if out is None else write_out(out, op(input), exact=exact)

    function.__name__ = function.__qualname__ = name
    function.__module__ = module
    function.__doc__ = doc
    public(function, aliases=aliases, method=method)
    if inplace:
        for each in (name, *aliases):
            in_place(each, op)


_unary("neg", "The negative of every element.", "negative", exact=FOUND_DTYPE)
_unary("abs", "The absolute value of every element.", "absolute", exact=FOUND_DTYPE)
_unary("sign", "-1, 0 or 1 for every element.", exact=FOUND_DTYPE)
_unary("sgn", "The sign of every element; x / |x| for complex ones.", exact=FOUND_DTYPE)
_unary("exp", "e to the power of every element.")
_unary("exp2", "2 to the power of every element.")
_unary("expm1", "exp(x) - 1, exact also for small x.")
_unary("log", "The natural logarithm.")
_unary("log2", "The logarithm to base 2.")
_unary("log10", "The logarithm to base 10.")
_unary("log1p", "log(1 + x), exact also for small x.")
_unary("sqrt", "The square root.")
_unary("rsqrt", "One over the square root.")
_unary("reciprocal", "1 / x.")
_unary("square", "x * x.")
_unary("sin", "The sine.")
_unary("cos", "The cosine.")
_unary("tan", "The tangent.")
_unary("asin", "The inverse sine.", "arcsin")
_unary("acos", "The inverse cosine.", "arccos")
_unary("atan", "The inverse tangent.", "arctan")
_unary("sinh", "The hyperbolic sine.")
_unary("cosh", "The hyperbolic cosine.")
_unary("tanh", "The hyperbolic tangent.")
_unary("asinh", "The inverse hyperbolic sine.", "arcsinh")
_unary("acosh", "The inverse hyperbolic cosine.", "arccosh")
_unary("atanh", "The inverse hyperbolic tangent.", "arctanh")
_unary("sigmoid", "1 / (1 + exp(-x)).")
_unary("erf", "The error function.")
_unary("erfc", "1 - erf(x).")
_unary("erfinv", "The inverse of the error function.")
_unary("lgamma", "The logarithm of the gamma function's absolute value.")
_unary("digamma", "The derivative of lgamma.")
_unary("i0", "The modified Bessel function of order 0.")
_unary("sinc", "sin(pi x) / (pi x), 1 at 0.")
_unary("floor", "The largest integer that is not above x.", exact=FOUND_DTYPE)
_unary("ceil", "The smallest integer that is not below x.", exact=FOUND_DTYPE)
_unary("trunc", "x without its fraction.", "fix", exact=FOUND_DTYPE)
_unary("frac", "The fraction of x, with its sign.")
_unary("deg2rad", "Degrees to radians.")
_unary("rad2deg", "Radians to degrees.")
for _name, _doc in (
    ("isposinf", "Whether x is positive infinity."),
    ("isneginf", "Whether x is negative infinity."),
    ("signbit", "Whether the sign bit is set."),
):
    _unary(_name, _doc, inplace=False, exact=f"{_name} does not support non-boolean outputs.")
_unary("logical_not", "Whether x is zero.")
_unary("bitwise_not", "All bits inverted.", exact=FOUND_DTYPE)


def _query(name, doc):
    op = getattr(ops, name)

    def function(input):
        return op(input)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    public(function)


_query("isnan", "Whether x is not a number.")
_query("isinf", "Whether x is infinite.")
_query("isfinite", "Whether x is neither infinite nor NaN.")


_NUMBERS = (
    "Tensor input, Tensor other, *, Tensor out = None",
    "Tensor input, Number other, *, Tensor out = None",
)


def _binary(name, doc, *aliases, numbers="right", inplace=True):
    """Makes `name(input, other, *, out=None)`, its aliases, and the in-place methods. `numbers`: on which
    sides a number may stand for a tensor ("", "right", "both")."""
    op = getattr(ops, name)
    if numbers == "both":

        def function(input, other, *, out=None):
            if not isinstance(input, Tensor) and not isinstance(other, Tensor):
                raise invalid_combination(name, (input, other), *_NUMBERS)
            return op(input, other) if out is None else write_out(out, op(input, other))

    elif numbers == "right":

        def function(input, other, *, out=None):
            if not isinstance(input, Tensor):
                raise invalid_combination(name, (input, other), *_NUMBERS)
            return op(input, other) if out is None else write_out(out, op(input, other))

    else:

        def function(input, other, *, out=None):
            check_tensor(input, name, "input", 1)
            check_tensor(other, name, "other", 2)
            return op(input, other) if out is None else write_out(out, op(input, other))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    public(function, aliases=aliases)
    if inplace:
        for each in (name, *aliases):
            in_place(each, op)


_binary("mul", "input * other.", "multiply", numbers="both")
_binary("remainder", "The remainder of the division, with the divisor's sign.", numbers="both")
_binary("fmod", "The remainder of the division, with the dividend's sign.")
_binary("floor_divide", "The quotient, rounded down.", numbers="both")
_binary("maximum", "The larger of both; NaN if either is.", numbers="", inplace=False)
_binary("minimum", "The smaller of both; NaN if either is.", numbers="", inplace=False)
_binary("fmax", "The larger of both; a NaN is ignored.", numbers="", inplace=False)
_binary("fmin", "The smaller of both; a NaN is ignored.", numbers="", inplace=False)
_binary("atan2", "The angle of the point (other, input).", "arctan2", numbers="")
_binary("hypot", "sqrt(input ** 2 + other ** 2).", numbers="")
_binary("copysign", "The size of input with the sign of other.")
_binary("nextafter", "The next number after input in the direction of other.", numbers="")
_binary("logaddexp2", "log2(2 ** input + 2 ** other).", numbers="", inplace=False)
_binary("xlogy", "input * log(other), 0 where input is 0.", numbers="both")
_binary("gcd", "The greatest common divisor.", numbers="")
_binary("lcm", "The least common multiple.", numbers="")
_binary("bitwise_and", "The bits that both have.", numbers="both")
_binary("bitwise_or", "The bits that either has.", numbers="both")
_binary("bitwise_xor", "The bits that one of both has.", numbers="both")
_binary("bitwise_left_shift", "The bits of input moved up by other.", numbers="both")
_binary("bitwise_right_shift", "The bits of input moved down by other.", numbers="both")
_binary("logical_and", "Whether both are nonzero.", numbers="")
_binary("logical_or", "Whether one is nonzero.", numbers="")
_binary("logical_xor", "Whether exactly one is nonzero.", numbers="")
_binary("eq", "Whether both are equal.")
_binary("ne", "Whether they differ.", "not_equal")
_binary("lt", "Whether input is less.", "less")
_binary("le", "Whether input is less or equal.", "less_equal")
_binary("gt", "Whether input is greater.", "greater")
_binary("ge", "Whether input is greater or equal.", "greater_equal")


@public
def heaviside(input, values, *, out=None):
    """0 below zero, 1 above, `values` at zero.

    >>> rushlight.heaviside(rushlight.tensor([-1.5, 0.0, 2.0]), rushlight.tensor([0.5]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    check_tensor(input, "heaviside", "input", 1)
    check_tensor(values, "heaviside", "values", 2)
    result = ops.heaviside(input, values)
    if out is None:
        return result
    return write_out(out, result, exact="heaviside is not yet implemented for tensors with different dtypes.")


in_place("heaviside", second="values")


@public
def add(input, other, *, alpha=1, out=None):
    """input + alpha * other.

    >>> rushlight.add(rushlight.tensor([1., 2.]), 10)
    tensor([11., 12.])
    """
    result = ops.add(input, other) if alpha == 1 else _scaled(ops.add_alpha, input, other, alpha)
    return result if out is None else write_out(out, result)


@public(aliases=("subtract",))
def sub(input, other, *, alpha=1, out=None):
    """input - alpha * other."""
    result = input - other if alpha == 1 else _scaled(ops.sub_alpha, input, other, alpha)
    return result if out is None else write_out(out, result)


def _scaled(op, input, other, alpha):
    whole = not any(
        (isinstance(x, Tensor) and (x.is_floating_point() or x.is_complex())) or isinstance(x, float)
        for x in (input, other)
    )
    if isinstance(alpha, float) and whole:
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    if isinstance(alpha, bool) and _C.result_type(input, other) != _C.bool:
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    return op(input, other, alpha)


@method(aliases=())
def add_(self, other, *, alpha=1):
    """In-place version of add."""
    return _C.in_place(ops.add, self, other) if alpha == 1 else _C.in_place(ops.add_alpha, self, other, alpha)


@method(aliases=("subtract_",))
def sub_(self, other, *, alpha=1):
    """In-place version of sub."""
    return _C.in_place(ops.sub, self, other) if alpha == 1 else _C.in_place(ops.sub_alpha, self, other, alpha)


@public
def rsub(input, other, *, alpha=1):
    """other - alpha * input."""
    if not isinstance(input, Tensor):
        raise invalid_combination(
            "rsub", (input, other), "Tensor input, Tensor other, *, Number alpha = 1",
            "Tensor input, Number other, Number alpha = 1",
        )  # fmt: skip
    return other - input if alpha == 1 else other - input * alpha


_ROUNDED = {None: ops.div, "floor": ops.floor_divide, "trunc": ops.div_trunc}


def _divider(rounding_mode):
    if rounding_mode not in _ROUNDED:
        raise RuntimeError(
            f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'"
        )
    return _ROUNDED[rounding_mode]


@public(aliases=("divide",))
def div(input, other, *, rounding_mode=None, out=None):
    """input / other, rounded down ('floor') or towards zero ('trunc') if so asked."""
    result = _divider(rounding_mode)(input, other)
    return result if out is None else write_out(out, result)


@method(aliases=("divide_",))
def div_(self, other, *, rounding_mode=None):
    """In-place version of div."""
    return _C.in_place(_divider(rounding_mode), self, other)


@public
def true_divide(input, other, *, out=None):
    """input / other."""
    return div(input, other, out=out)


@method
def true_divide_(self, other):
    """In-place version of true_divide."""
    return _C.in_place(ops.div, self, other)


@public
def pow(input, exponent, *, out=None):
    """input to the power of exponent.

    >>> rushlight.pow(rushlight.tensor([1., 2., 3.]), 2)
    tensor([1., 4., 9.])
    """
    _check_power("pow", input, exponent)
    result = input**exponent
    return result if out is None else write_out(out, result)


def _check_power(name, input, exponent):
    if not isinstance(input, Tensor) and not isinstance(exponent, Tensor):
        raise invalid_combination(
            name, (input, exponent), "Tensor input, Tensor exponent, *, Tensor out = None",
            "Number self, Tensor exponent, *, Tensor out = None",
            "Tensor input, Number exponent, *, Tensor out = None",
        )  # fmt: skip


@method
def pow_(self, exponent):
    """In-place version of pow."""
    return _C.in_place(ops.pow if isinstance(exponent, Tensor) else ops.pow_scalar, self, exponent)


@public
def float_power(input, exponent, *, out=None):
    """input to the power of exponent, computed in double precision."""
    _check_power("float_power", input, exponent)
    complex_ = any(
        isinstance(x, builtins.complex) or (isinstance(x, Tensor) and x.is_complex())
        for x in (input, exponent)
    )
    wide = _C.complex128 if complex_ else _C.float64
    input, exponent = (
        x.to(wide) if isinstance(x, Tensor) else (builtins.complex(x) if complex_ else float(x))
        for x in (input, exponent)
    )
    result = input**exponent
    return result if out is None else write_out(out, result)


in_place_of(float_power, "float_power")


@public
def logaddexp(input, other, *, out=None):
    """log(exp(input) + exp(other)), safe from overflow."""
    check_tensor(input, "logaddexp", "input", 1)
    check_tensor(other, "logaddexp", "other", 2)
    if input.is_complex() or other.is_complex():
        larger = ops.ge(real(input), real(other))
        high, low = ops.where(larger, input, other), ops.where(larger, other, input)
        infinite = ops.isinf(real(high))
        result = ops.where(infinite, high, high + ops.log1p(ops.exp(low - high)))
    else:
        result = ops.logaddexp(input, other)
    return result if out is None else write_out(out, result)


@public
def positive(input):
    """The tensor itself."""
    return +input


@public
def round(input, *, decimals=0, out=None):
    """The nearest integer (the even one of two), or the nearest number with so many decimals."""
    result = ops.round(input) if decimals == 0 else ops.round_decimals(input, *_decimals(decimals))
    return result if out is None else write_out(out, result, exact=FOUND_DTYPE)


def _decimals(decimals):
    return 10.0 ** max(decimals, -decimals), decimals


@method
def round_(self, *, decimals=0):
    """In-place version of round."""
    return (
        _C.in_place(ops.round, self)
        if decimals == 0
        else _C.in_place(ops.round_decimals, self, *_decimals(decimals))
    )


@public(aliases=("clip",))
def clamp(input, min=None, max=None, *, out=None):
    """Every element moved into the range [min, max]; either bound may be missing or a tensor.

    >>> rushlight.clamp(rushlight.tensor([-1., 0.5, 2.]), 0, 1)
    tensor([0.0000, 0.5000, 1.0000])
    """
    op, args = _clamp_call(input, min, max)
    result = op(*args)
    return result if out is None else write_out(out, result)


def _clamp_call(input, low, high):
    """The primitive and its arguments."""
    if low is None and high is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if isinstance(low, Tensor) or isinstance(high, Tensor):
        if low is None:
            return ops.minimum, (input, high)
        if high is None:
            return ops.maximum, (input, low)
        return ops.clamp, (input, low, high)
    if low is None:
        return ops.clamp_max_scalar, (input, high)
    if high is None:
        return ops.clamp_min_scalar, (input, low)
    return ops.clamp_scalar, (input, low, high)


@method(aliases=("clip_",))
def clamp_(self, min=None, max=None):
    """In-place version of clamp."""
    op, args = _clamp_call(self, min, max)
    return _C.in_place(op, *args)


def _check_bound(name, input, bound, value):
    if not isinstance(input, Tensor):
        raise invalid_combination(
            name, (input, value), f"Tensor input, Tensor {bound}, *, Tensor out = None",
            f"Tensor input, Number {bound}, *, Tensor out = None",
        )  # fmt: skip


@public
def clamp_min(input, min, *, out=None):
    """Elements below `min` become `min`."""
    _check_bound("clamp_min", input, "min", min)
    return clamp(input, min, None, out=out)


@public
def clamp_max(input, max, *, out=None):
    """Elements above `max` become `max`."""
    _check_bound("clamp_max", input, "max", max)
    return clamp(input, None, max, out=out)


@method
def clamp_min_(self, min):
    """In-place version of clamp_min."""
    return clamp_(self, min)


@method
def clamp_max_(self, max):
    """In-place version of clamp_max."""
    return clamp_(self, None, max)


@public
def nan_to_num(input, nan=0.0, posinf=None, neginf=None, *, out=None):
    """NaN and the infinities replaced by numbers."""
    result = _nan_to_num(input, nan, posinf, neginf)
    return (
        result
        if out is None
        else write_out(out, result, exact="nan_to_num: dtype of out: {out} should be same as input: {result}")
    )


def _nan_to_num(input, nan=0.0, posinf=None, neginf=None):
    if not input.is_floating_point():
        if input.is_complex():
            parts = (_nan_to_num(p, nan, posinf, neginf) for p in (ops.real(input), ops.imag(input)))
            from rushlight.ops._public import FUNCTIONS

            return FUNCTIONS["complex"](*parts)
        return ops.clone(input)
    from rushlight._dtype_info import finfo

    limits = finfo(input.dtype)
    return ops.nan_to_num(
        input,
        0.0 if nan is None else nan,
        limits.max if posinf is None else posinf,
        limits.min if neginf is None else neginf,
    )


in_place_of(nan_to_num, "nan_to_num")


@public
def lerp(input, end, weight, *, out=None):
    """input + weight * (end - input)."""
    result = (
        ops.lerp(input, end, weight) if isinstance(weight, Tensor) else ops.lerp_scalar(input, end, weight)
    )
    return result if out is None else write_out(out, result)


@method
def lerp_(self, end, weight):
    """In-place version of lerp."""
    return _C.in_place(ops.lerp if isinstance(weight, Tensor) else ops.lerp_scalar, self, end, weight)


@public
def addcmul(input, tensor1, tensor2, *, value=1, out=None):
    """input + value * tensor1 * tensor2."""
    result = ops.addcmul(input, tensor1, tensor2, value)
    return result if out is None else write_out(out, result)


@method
def addcmul_(self, tensor1, tensor2, *, value=1):
    """In-place version of addcmul."""
    return _C.in_place(ops.addcmul, self, tensor1, tensor2, value)


@public
def addcdiv(input, tensor1, tensor2, *, value=1, out=None):
    """input + value * tensor1 / tensor2."""
    _check_integer_addcdiv(tensor1, tensor2)
    result = ops.addcdiv(input, tensor1, tensor2, value)
    return result if out is None else write_out(out, result)


def _check_integer_addcdiv(tensor1, tensor2):
    if not any(t.is_floating_point() or t.is_complex() for t in (tensor1, tensor2)):
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will "
            "perform a "
            "true division of tensor1 and tensor2. The historic addcdiv behavior can be implemented as "
            "(input + "
            "value * torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as (input + "
            "value * "
            "tensor1 / tensor2) for float inputs. The future addcdiv behavior is just the latter "
            "implementation: "
            "(input + value * tensor1 / tensor2), for all dtypes."
        )


@method
def addcdiv_(self, tensor1, tensor2, *, value=1):
    """In-place version of addcdiv."""
    _check_integer_addcdiv(tensor1, tensor2)
    return _C.in_place(ops.addcdiv, self, tensor1, tensor2, value)


@function
def where(condition, input=None, other=None, *, out=None):
    """Elements of input where condition holds, of other elsewhere; with condition alone, where it is nonzero.

    >>> rushlight.where(rushlight.tensor([True, False]), 1., 2.)
    tensor([1., 2.])
    """
    if input is None and other is None:
        return condition.nonzero(as_tuple=True)
    result = _where(condition, input, other)
    return (
        result
        if out is None
        else write_out(out, result, exact="Expected out type to be {result} but got {out}")
    )


def _where(condition, input, other):
    if condition.dtype != _C.bool:
        if condition.dtype != _C.uint8:
            raise RuntimeError(
                "where expected condition to be a boolean tensor, but got a tensor with dtype "
                f"{type_name(condition.dtype)}"
            )
        condition = condition.bool()
    if not isinstance(input, Tensor) and not isinstance(other, Tensor):
        kind = _C.result_type(input, other)
        input = _C.full((), input, kind, condition.device)
    return ops.where(condition, input, other)


@method(name="where")
def _where_method(self, condition, other):
    """Elements of this tensor where condition holds, of other elsewhere."""
    return _where(condition, self, other)


# ---- complex numbers


@public
def conj(input):
    """The complex conjugate; real tensors are returned as they are."""
    return ops.conj(input) if input.is_complex() else input


@public
def conj_physical(input, *, out=None):
    """The complex conjugate, computed at once."""
    result = ops.conj(input) if input.is_complex() else input
    return result if out is None else write_out(out, result, exact=FOUND_DTYPE)


@method
def conj_physical_(self):
    """In-place version of conj_physical."""
    return _C.in_place(ops.conj, self) if self.is_complex() else self


@public
def resolve_conj(input):
    """The tensor itself: conjugation is never put off here."""
    return input


@public
def resolve_neg(input):
    """The tensor itself: negation is never put off here."""
    return input


@public
def is_conj(input):
    """Whether conjugation is put off; it never is."""
    return False


@public
def is_neg(input):
    """Whether negation is put off; it never is."""
    return False


@public
def real(input):
    """The real part, as a view; real tensors are returned as they are."""
    return ops.select(ops.view_as_real(input), -1, 0) if input.is_complex() else input


@public
def imag(input):
    """The imaginary part, as a view."""
    if not input.is_complex():
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return ops.select(ops.view_as_real(input), -1, 1)


@public
def angle(input, *, out=None):
    """The angle of every element in the complex plane."""
    result = ops.angle(input)
    return result if out is None else write_out(out, result)


Tensor.real = property(lambda self: real(self), lambda self, value: real(self).copy_(value))
Tensor.imag = property(lambda self: imag(self), lambda self, value: imag(self).copy_(value))


@function
def complex(real, imag, *, out=None):
    """The complex numbers with the given real and imaginary parts."""
    check_tensor(real, "complex", "real", 1)
    check_tensor(imag, "complex", "imag", 2)
    _check_parts(real, imag)
    from rushlight.ops._public import FUNCTIONS

    pair = FUNCTIONS["stack"](FUNCTIONS["broadcast_tensors"](real, imag), -1)
    result = ops.view_as_complex(pair)
    return (
        result
        if out is None
        else write_out(
            out,
            result,
            exact="Expected object of scalar type {result} but got scalar type {out} for argument 'out'",
        )
    )


def _check_parts(a, b):
    names = [type_name(t.dtype) for t in (a, b)]
    if not all(t.dtype in (_C.float16, _C.float32, _C.float64) for t in (a, b)):
        raise RuntimeError(
            f"Expected both inputs to be Half, Float or Double tensors but got {names[0]} and {names[1]}"
        )
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"Expected object of scalar type {names[0]} but got scalar type {names[1]} for second argument"
        )
    if a.dtype == _C.float16:
        raise NotImplementedError("complex numbers of two halves (torch.complex32) are not implemented")


@function
def polar(abs, angle, *, out=None):
    """The complex numbers with the given sizes and angles."""
    check_tensor(abs, "polar", "abs", 1)
    check_tensor(angle, "polar", "angle", 2)
    _check_parts(abs, angle)
    return complex(abs * ops.cos(angle), abs * ops.sin(angle), out=out)


# ---- activations of the main namespace


@public
def relu(input):
    """x where positive, 0 elsewhere."""
    return ops.relu(input)


in_place("relu")


@function
def threshold(input, threshold, value):
    """x where above the threshold, `value` elsewhere."""
    return ops.threshold(input, threshold, value)
