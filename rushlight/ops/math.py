"""The public elementwise functions: torch's names, signatures and docstrings around the primitives."""

from __future__ import annotations

import builtins

from rushlight import _C
from rushlight.ops._public import (
    FOUND_DTYPE,
    FUNCTIONS,
    Tensor,
    check_cast,
    check_tensor,
    function,
    in_place,
    invalid_combination,
    method,
    public,
    type_name,
    undifferentiable,
    write_out,
)

ops = _C.ops


def _example(doc, name, shown, *given):
    """The docstring with a call on tensors of these elements, and the elements of the result."""
    args = ", ".join(f"rushlight.tensor({numbers})" for numbers in given)
    return f"{doc}\n\n    >>> rushlight.{name}({args})\n    tensor({shown})\n    "


def _name(function, name):
    """Names a function, also in its code: an error of its out= form is told by that."""
    function.__code__ = function.__code__.replace(co_name=name)
    function.__name__ = function.__qualname__ = name


def _unary(name, doc, given, shown, *aliases, inplace=True, exact="", lacks=False):
    """Makes `name(input, *, out=None)`, its aliases, and the in-place methods; `exact` refuses an out= of
    another dtype; `lacks`: torch cannot differentiate these methods. `given` and `shown` are the elements of
    an example."""
    op = getattr(ops, name)

    def function(input, *, out=None):
        if out is None:
            return op(input)
        if name == "abs" and isinstance(out, Tensor) and input.is_complex():
            # A complex output takes the moduli of its own dtype, a real one is cast to.
            if out.is_complex() and out.dtype != input.dtype:
                found, expected = type_name(out.dtype), type_name(input.dtype)
                raise RuntimeError(f"Found dtype {found} but expected {expected}")
            return write_out(out, op(input))
        return _into(out, op, input, exact=exact)

    _name(function, name)
    function.__doc__ = _example(doc, name, shown, given)
    public(function, aliases=aliases)
    if inplace:
        for each in (name, *aliases):
            in_place(each, op)
            if lacks:
                _without_derivative(each, name, op)


def _without_derivative(method_name, name, op):
    """An in-place method that is computed apart where it is recorded: its derivative raises."""
    written = Tensor.__dict__[f"{method_name}_"].__wrapped__
    what, node = f"inplace version of {name}", f"{name.capitalize()}Backward1"

    def method(self):
        if not (self.requires_grad and _C.is_grad_enabled()):
            return written(self)
        _C.check_inplace(self)
        before = _C.before_write(self)
        return _C.become(self, undifferentiable(what, op(_C.detach(before)), before, node=node))

    method.__name__, method.__qualname__, method.__doc__ = written.__name__, written.__name__, written.__doc__
    setattr(Tensor, method.__name__, _C.Function(method))


_unary("neg", "The negative of every element.", "[1, -2]", "[-1,  2]", "negative", exact=FOUND_DTYPE)
_unary(
    "abs",
    "The absolute value of every element.",
    "[1, -2]",
    "[1, 2]",
    "absolute",
    inplace=False,
    exact=FOUND_DTYPE,
)


@method(aliases=("absolute_",))
def abs_(self):
    """In-place version of :meth:`abs`."""
    if self.is_complex():
        if self.requires_grad:
            _C.check_inplace(self)
        raise RuntimeError("In-place abs is not supported for complex tensors.")
    return _C.in_place(ops.abs, self)


_unary("sign", "-1, 0 or 1 for every element.", "[3.0, -2.0]", "[ 1., -1.]", exact=FOUND_DTYPE)
_unary(
    "sgn",
    "The sign of every element; x / |x| for complex ones.",
    "[3.0, -2.0]",
    "[ 1., -1.]",
    exact=FOUND_DTYPE,
)
_unary("exp", "e to the power of every element.", "[0.0, 1.0]", "[1.0000, 2.7183]")
_unary("exp2", "2 to the power of every element.", "[0.0, 1.0]", "[1., 2.]")
_unary("expm1", "exp(x) - 1, exact also for small x.", "[0.0, 1.0]", "[0.0000, 1.7183]")
_unary("log", "The natural logarithm.", "[1.0, 2.0]", "[0.0000, 0.6931]")
_unary("log2", "The logarithm to base 2.", "[1.0, 8.0]", "[0., 3.]")
_unary("log10", "The logarithm to base 10.", "[1.0, 100.0]", "[0., 2.]")
_unary("log1p", "log(1 + x), exact also for small x.", "[0.0, 1.0]", "[0.0000, 0.6931]")
_unary("sqrt", "The square root.", "[4.0, 9.0]", "[2., 3.]")
_unary("rsqrt", "One over the square root.", "[4.0, 16.0]", "[0.5000, 0.2500]")
_unary("reciprocal", "1 / x.", "[2.0, 4.0]", "[0.5000, 0.2500]")
_unary("square", "x * x.", "[2.0, 3.0]", "[4., 9.]")
_unary("sin", "The sine.", "[0.0, 1.0]", "[0.0000, 0.8415]")
_unary("cos", "The cosine.", "[0.0, 1.0]", "[1.0000, 0.5403]")
_unary("tan", "The tangent.", "[0.0, 1.0]", "[0.0000, 1.5574]")
_unary("asin", "The inverse sine.", "[0.0, 0.5]", "[0.0000, 0.5236]", "arcsin")
_unary("acos", "The inverse cosine.", "[0.0, 0.5]", "[1.5708, 1.0472]", "arccos")
_unary("atan", "The inverse tangent.", "[0.0, 1.0]", "[0.0000, 0.7854]", "arctan")
_unary("sinh", "The hyperbolic sine.", "[0.0, 1.0]", "[0.0000, 1.1752]")
_unary("cosh", "The hyperbolic cosine.", "[0.0, 1.0]", "[1.0000, 1.5431]")
_unary("tanh", "The hyperbolic tangent.", "[0.0, 1.0]", "[0.0000, 0.7616]")
_unary("asinh", "The inverse hyperbolic sine.", "[0.0, 1.0]", "[0.0000, 0.8814]", "arcsinh", lacks=True)
_unary("acosh", "The inverse hyperbolic cosine.", "[1.0, 2.0]", "[0.0000, 1.3170]", "arccosh", lacks=True)
_unary("atanh", "The inverse hyperbolic tangent.", "[0.0, 0.5]", "[0.0000, 0.5493]", "arctanh", lacks=True)
_unary("sigmoid", "1 / (1 + exp(-x)).", "[0.0, 1.0]", "[0.5000, 0.7311]")
_unary("erf", "The error function.", "[0.0, 1.0]", "[0.0000, 0.8427]")
_unary("erfc", "1 - erf(x).", "[0.0, 1.0]", "[1.0000, 0.1573]")
_unary("erfinv", "The inverse of the error function.", "[0.0, 0.5]", "[0.0000, 0.4769]")
_unary("lgamma", "The logarithm of the gamma function's absolute value.", "[1.0, 4.0]", "[0.0000, 1.7918]")
_unary("digamma", "The derivative of lgamma.", "[1.0, 2.0]", "[-0.5772,  0.4228]")
_unary("i0", "The modified Bessel function of order 0.", "[0.0, 1.0]", "[1.0000, 1.2661]")
_unary("sinc", "sin(pi x) / (pi x), 1 at 0.", "[0.0, 0.5]", "[1.0000, 0.6366]")
_unary("floor", "The largest integer that is not above x.", "[-1.5, 1.5]", "[-2.,  1.]", exact=FOUND_DTYPE)
_unary("ceil", "The smallest integer that is not below x.", "[-1.5, 1.5]", "[-1.,  2.]", exact=FOUND_DTYPE)
_unary("trunc", "x without its fraction.", "[-1.5, 1.5]", "[-1.,  1.]", "fix", exact=FOUND_DTYPE)
_unary("frac", "The fraction of x, with its sign.", "[-1.5, 1.25]", "[-0.5000,  0.2500]", exact=FOUND_DTYPE)
_unary("deg2rad", "Degrees to radians.", "[90.0, 180.0]", "[1.5708, 3.1416]")
_unary("rad2deg", "Radians to degrees.", "[1.0, 3.0]", "[ 57.2958, 171.8873]")
_BOOLEAN = "{} does not support non-boolean outputs."
_unary("isposinf", "Whether x is positive infinity.", '[1.0, float("inf")]', "[False,  True]", inplace=False,
       exact=_BOOLEAN.format("isposinf"))  # fmt: skip
_unary("isneginf", "Whether x is negative infinity.", '[1.0, -float("inf")]', "[False,  True]", inplace=False,
       exact=_BOOLEAN.format("isneginf"))  # fmt: skip
_unary("signbit", "Whether the sign bit is set.", "[1.0, -0.0]", "[False,  True]", inplace=False,
       exact=_BOOLEAN.format("signbit"))  # fmt: skip
_unary("logical_not", "Whether x is zero.", "[0, 2]", "[ True, False]")
_unary("bitwise_not", "All bits inverted.", "[0, 5]", "[-1, -6]", exact=FOUND_DTYPE)


def _query(name, doc, given, shown):
    op = getattr(ops, name)

    def function(input):
        return op(input)

    _name(function, name)
    function.__doc__ = _example(doc, name, shown, given)
    public(function)


_query("isnan", "Whether x is not a number.", '[1.0, float("nan")]', "[False,  True]")
_query("isinf", "Whether x is infinite.", '[1.0, float("inf")]', "[False,  True]")
_query("isfinite", "Whether x is neither infinite nor NaN.", '[1.0, float("inf")]', "[ True, False]")


_NUMBERS = (
    "Tensor input, Tensor other, *, Tensor out = None",
    "Tensor input, Number other, *, Tensor out = None",
)


def _one_tensor(input, other):
    """Arithmetic takes two numbers as well: the first is then a tensor without dimensions."""
    if isinstance(input, Tensor) or isinstance(other, Tensor):
        return input
    if isinstance(input, (int, float, complex)) and isinstance(other, (int, float, complex)):
        return FUNCTIONS["tensor"](input)
    return input


def _into(out, op, *operands, exact=""):
    """The result written to `out`. That it does not hold the dtype is told before that there is no kernel."""
    try:
        result = op(*operands)
    except NotImplementedError:
        if isinstance(out, Tensor):
            check_cast(out, FUNCTIONS["result_type"](*operands[:1], operands[-1]), exact)
        raise
    return write_out(out, result, exact=exact)


_EXTREMES = ("maximum", "minimum", "fmax", "fmin")  # complex numbers are refused before any size


def _binary(name, doc, left, right, shown, *aliases, numbers="right", inplace=True):
    """Makes `name(input, other, *, out=None)`, its aliases, and the in-place methods. `numbers`: on which
    sides a number may stand for a tensor ("", "right", "both"; "tensors" if on both at once)."""
    op = getattr(ops, name)
    if numbers == "tensors":

        def function(input, other, *, out=None):
            input = _one_tensor(input, other)
            if out is None:
                return op(input, other)
            return _into(out, op, input, other)

    elif numbers == "both":

        def function(input, other, *, out=None):
            if not isinstance(input, Tensor) and not isinstance(other, Tensor):
                raise invalid_combination(name, (input, other), *_NUMBERS)
            if out is None:
                return op(input, other)
            return _into(out, op, input, other)

    elif numbers == "right":

        def function(input, other, *, out=None):
            if not isinstance(input, Tensor):
                raise invalid_combination(name, (input, other), *_NUMBERS)
            if out is None:
                return op(input, other)
            return _into(out, op, input, other)

    else:

        def function(input, other, *, out=None):
            check_tensor(input, name, "input", 1)
            check_tensor(other, name, "other", 2)
            try:
                if out is not None:
                    return _into(out, op, input, other)
                return op(input, other)
            except RuntimeError:
                if name in _EXTREMES and (input.is_complex() or other.is_complex()):
                    raise RuntimeError(f"{name} not implemented for complex tensors.") from None
                raise

    _name(function, name)
    function.__doc__ = _example(doc, name, shown, left, right)
    public(function, aliases=aliases)
    if inplace:
        for each in (name, *aliases):
            in_place(each, op, numbers=bool(numbers))


_binary("mul", "input * other.", "[1.0, 4.0]", "[2.0, 4.0]", "[ 2., 16.]", "multiply", numbers="tensors")
_binary(
    "remainder",
    "The remainder of the division, with the divisor's sign.",
    "[7, -7]",
    "[3, 3]",
    "[1, 2]",
    numbers="both",
)
_binary("fmod", "The remainder of the division, with the dividend's sign.", "[7, -7]", "[3, 3]", "[ 1, -1]")
_binary("floor_divide", "The quotient, rounded down.", "[7, -7]", "[2, 2]", "[ 3, -4]", numbers="tensors")
for _extreme, _which, _nan, _shown in (
    ("maximum", "larger", "NaN if either is", "[2., 4.]"),
    ("minimum", "smaller", "NaN if either is", "[1., 4.]"),
    ("fmax", "larger", "a NaN is ignored", "[2., 4.]"),
    ("fmin", "smaller", "a NaN is ignored", "[1., 4.]"),
):
    _doc = f"The {_which} of both; {_nan}."
    _binary(_extreme, _doc, "[1.0, 4.0]", "[2.0, 4.0]", _shown, numbers="", inplace=False)
_binary(
    "atan2",
    "The angle of the point (other, input).",
    "[1.0, 4.0]",
    "[2.0, 4.0]",
    "[0.4636, 0.7854]",
    "arctan2",
    numbers="",
)
_binary("hypot", "sqrt(input ** 2 + other ** 2).", "[3.0, 5.0]", "[4.0, 12.0]", "[ 5., 13.]", numbers="")
_binary("copysign", "The size of input with the sign of other.", "[1.0, 2.0]", "[-3.0, 3.0]", "[-1.,  2.]")
_binary(
    "nextafter",
    "The next number after input in the direction of other.",
    "[1.0, 2.0]",
    "[1.0, 2.0]",
    "[1., 2.]",
    numbers="",
)
_binary(
    "logaddexp2",
    "log2(2 ** input + 2 ** other).",
    "[1.0, 4.0]",
    "[2.0, 4.0]",
    "[2.5850, 5.0000]",
    numbers="",
    inplace=False,
)
_binary(
    "xlogy", "input * log(other), 0 where input is 0.", "[0.0, 2.0]", "[0.0, 1.0]", "[0., 0.]", numbers="both"
)
_binary("gcd", "The greatest common divisor.", "[12, 18]", "[8, 27]", "[4, 9]", numbers="")
_binary("lcm", "The least common multiple.", "[4, 6]", "[6, 8]", "[12, 24]", numbers="")
_binary("bitwise_and", "The bits that both have.", "[12, 10]", "[10, 3]", "[8, 2]", numbers="both")
_binary("bitwise_or", "The bits that either has.", "[12, 10]", "[10, 3]", "[14, 11]", numbers="both")
_binary("bitwise_xor", "The bits that one of both has.", "[12, 10]", "[10, 3]", "[6, 9]", numbers="both")
_binary(
    "bitwise_left_shift", "The bits of input moved up by other.", "[1, 2]", "[3, 1]", "[8, 4]", numbers="both"
)
_binary(
    "bitwise_right_shift",
    "The bits of input moved down by other.",
    "[8, 4]",
    "[3, 1]",
    "[1, 2]",
    numbers="both",
)
_binary("logical_and", "Whether both are nonzero.", "[0, 1]", "[1, 1]", "[False,  True]", numbers="")
_binary("logical_or", "Whether one is nonzero.", "[0, 1]", "[0, 1]", "[False,  True]", numbers="")
_binary("logical_xor", "Whether exactly one is nonzero.", "[0, 1]", "[1, 1]", "[ True, False]", numbers="")
_binary("eq", "Whether both are equal.", "[1.0, 4.0]", "[2.0, 4.0]", "[False,  True]")
_binary("ne", "Whether they differ.", "[1.0, 4.0]", "[2.0, 4.0]", "[ True, False]", "not_equal")
_binary("lt", "Whether input is less.", "[1.0, 4.0]", "[2.0, 4.0]", "[ True, False]", "less")
_binary("le", "Whether input is less or equal.", "[1.0, 4.0]", "[2.0, 4.0]", "[True, True]", "less_equal")
_binary("gt", "Whether input is greater.", "[1.0, 4.0]", "[2.0, 4.0]", "[False, False]", "greater")
_binary(
    "ge", "Whether input is greater or equal.", "[1.0, 4.0]", "[2.0, 4.0]", "[False,  True]", "greater_equal"
)


@public
def heaviside(input, values, *, out=None):
    """0 below zero, 1 above, `values` at zero.

    >>> rushlight.heaviside(rushlight.tensor([-1.5, 0.0, 2.0]), rushlight.tensor([0.5]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    check_tensor(input, "heaviside", "input", 1)
    check_tensor(values, "heaviside", "values", 2)
    _check_heaviside(input, values)
    result = ops.heaviside(input, values)
    if out is None:
        return result
    return write_out(out, result, exact="heaviside is not yet implemented for tensors with different dtypes.")


@method
def heaviside_(self, values):
    """In-place version of :meth:`heaviside`."""
    check_tensor(values, "heaviside_", "values", 1)
    _check_heaviside(self, values)
    return _C.in_place(ops.heaviside, self, values)


def _check_heaviside(input, values):
    if input.is_complex() or values.is_complex():
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    if input.dtype != values.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")


@public
def add(input, other, *, alpha=1, out=None):
    """input + alpha * other.

    >>> rushlight.add(rushlight.tensor([1., 2.]), 10)
    tensor([11., 12.])
    """
    input = _one_tensor(input, other)
    result = ops.add(input, other) if alpha is _ONE else _scaled(ops.add_alpha, input, other, alpha)
    if out is None:
        return result
    return write_out(out, result)


@public(aliases=("subtract",))
def sub(input, other, *, alpha=1, out=None):
    """input - alpha * other.

    >>> rushlight.sub(rushlight.tensor([5, 6]), 2, alpha=2)
    tensor([1, 2])
    """
    input = _one_tensor(input, other)
    if alpha is not _ONE and _is_boolean(input, other):
        _C.subtract(input, other)  # raises, saying why
    result = _C.subtract(input, other) if alpha is _ONE else _scaled(ops.sub_alpha, input, other, alpha)
    if out is None:
        return result
    return write_out(out, result)


_ONE = 1  # the default of alpha; True and 1.0 are equal to it and not for every dtype allowed


def _is_boolean(input, other):
    """Whether one of them is, which cannot be subtracted."""
    kinds = getattr(input, "dtype", None), getattr(other, "dtype", None)
    return _C.bool in kinds or input is True or input is False or other is True or other is False


def _scaled(op, input, other, alpha):
    _check_alpha(input, other, alpha)
    return op(input, other, alpha)


def _check_alpha(input, other, alpha):
    if isinstance(alpha, Tensor):
        if alpha.dim():
            raise TypeError("add(): argument 'alpha' must be Number, not Tensor")
        alpha = alpha.item()
    whole = not any(
        (isinstance(x, Tensor) and (x.is_floating_point() or x.is_complex())) or isinstance(x, float)
        for x in (input, other)
    )
    if whole and (
        isinstance(alpha, float) or not (isinstance(alpha, complex) or hasattr(alpha, "__index__"))
    ):
        wrong = "For integral input tensors, argument alpha must not be a floating point number."
    elif isinstance(alpha, bool) and _C.result_type(input, other) != _C.bool:
        wrong = "Boolean alpha only supported for Boolean results."
    elif isinstance(alpha, complex) and not _C.result_type(input, other).is_complex:
        wrong = "For non-complex input tensors, argument alpha must not be a complex number."
    else:
        return
    if not (_C.is_any_sparse(input) or _C.is_any_sparse(other)):
        ops.eq(input, other)  # shapes that do not fit are told first
    raise RuntimeError(wrong)


@method(aliases=())
def add_(self, other, *, alpha=1):
    """In-place version of add."""
    if alpha is _ONE:
        return _C.in_place(ops.add, self, other)
    _check_alpha(self, other, alpha)
    return _C.in_place(ops.add_alpha, self, other, alpha)


@method(aliases=("subtract_",))
def sub_(self, other, *, alpha=1):
    """In-place version of sub."""
    if _is_boolean(self, other):
        if self.requires_grad and _C.is_grad_enabled():
            _C.check_inplace(self)
        _C.subtract(self, other)  # raises, saying why
    if alpha is _ONE:
        return _C.in_place(ops.sub, self, other)
    _check_alpha(self, other, alpha)
    return _C.in_place(ops.sub_alpha, self, other, alpha)


@public
def rsub(input, other, *, alpha=1):
    """other - alpha * input.

    >>> rushlight.rsub(rushlight.tensor([1, 2]), 10)
    tensor([9, 8])
    """
    if not isinstance(input, Tensor):
        raise invalid_combination(
            "rsub", (input, other), "Tensor input, Tensor other, *, Number alpha = 1",
            "Tensor input, Number other, Number alpha = 1",
        )  # fmt: skip
    if alpha is _ONE or _is_boolean(input, other):
        return _C.subtract(other, input)
    _check_alpha(input, other, alpha)
    return ops.sub_alpha(other, input, alpha)


_ROUNDED = {None: ops.div, "floor": ops.div_floor, "trunc": ops.div_trunc}


def _divider(rounding_mode):
    if rounding_mode not in _ROUNDED:
        raise RuntimeError(
            f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'"
        )
    return _ROUNDED[rounding_mode]


@public(aliases=("divide",))
def div(input, other, *, rounding_mode=None, out=None):
    """input / other, rounded down ('floor') or towards zero ('trunc') if so asked.

    >>> rushlight.div(rushlight.tensor([7, -7]), 2, rounding_mode="floor")
    tensor([ 3, -4])
    """
    result = _divider(rounding_mode)(_one_tensor(input, other), other)
    if out is None:
        return result
    return write_out(out, result)


@method(aliases=("divide_",))
def div_(self, other, *, rounding_mode=None):
    """In-place version of div."""
    return _C.in_place(_divider(rounding_mode), self, other)


@public
def true_divide(input, other, *, out=None):
    """input / other.

    >>> rushlight.true_divide(rushlight.tensor([1, 3]), 2)
    tensor([0.5000, 1.5000])
    """
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
    result = _C.power(input, exponent)
    if out is None:
        return result
    return write_out(out, result)


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
    whole = not (self.is_floating_point() or self.is_complex() or self.dtype == _C.bool)
    if whole and isinstance(exponent, int) and exponent < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    return _C.in_place(ops.pow if isinstance(exponent, Tensor) else ops.pow_scalar, self, exponent)


@public
def float_power(input, exponent, *, out=None):
    """input to the power of exponent, computed in double precision.

    >>> rushlight.float_power(rushlight.tensor([2]), 0.5)
    tensor([1.4142], dtype=torch.float64)
    """
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
    return (
        result
        if out is None
        else write_out(out, result, exact=f"the output given to {_POWER_DTYPE}", writer="pow")
    )


_POWER_DTYPE = "float_power has dtype {out} but the operation's result requires dtype {result}"


@method
def float_power_(self, exponent):
    """In-place version of :meth:`float_power`."""

    def power(base, exponent):
        result = float_power(base, exponent)
        if result.dtype != base.dtype:
            needed = {"out": type_name(base.dtype), "result": type_name(result.dtype)}
            raise RuntimeError(
                "the base given to " + _POWER_DTYPE.replace("power", "power_", 1).format(**needed)
            )
        return result

    return _C.overwrite(self, power, (exponent,), {})


@public
def logaddexp(input, other, *, out=None):
    """log(exp(input) + exp(other)), safe from overflow.

    >>> rushlight.logaddexp(rushlight.tensor([0.0]), rushlight.tensor([0.0]))
    tensor([0.6931])
    """
    check_tensor(input, "logaddexp", "input", 1)
    check_tensor(other, "logaddexp", "other", 2)
    if input.is_complex() or other.is_complex():
        if _C.result_type(input, other) == _C.complex32:
            raise NotImplementedError("\"logaddexp_cpu\" not implemented for 'ComplexHalf'")
        larger = ops.ge(input.real, other.real)
        high, low = ops.where(larger, input, other), ops.where(larger, other, input)
        infinite = ops.isinf(high.real)
        result = ops.where(infinite, high, high + ops.log1p(ops.exp(low - high)))
    else:
        result = ops.logaddexp(input, other)
    return result if out is None else write_out(out, result)


@public
def positive(input):
    """The tensor itself.

    >>> rushlight.positive(rushlight.tensor([-1, 1]))
    tensor([-1,  1])
    """
    check_tensor(input, "positive", "input", 1)
    return +input


@public
def round(input, *, decimals=None, out=None):
    """The nearest integer (the even one of two), or the nearest number with so many decimals.

    >>> rushlight.round(rushlight.tensor([0.5, 1.5, 2.25]), decimals=1)
    tensor([0.5000, 1.5000, 2.2000])
    """
    if isinstance(out, Tensor) and out.dtype != input.dtype and not input.is_floating_point():
        return write_out(out, input, exact=FOUND_DTYPE)  # which refuses
    result = ops.round_decimals(input, *_decimals(decimals)) if decimals else _whole(input, decimals)
    return result if out is None else write_out(out, result, exact=FOUND_DTYPE)


def _whole(input, decimals, run=lambda op, x: op(x)):
    if decimals == 0 and not (input.is_floating_point() or input.is_complex() or input.dtype == _C.bool):
        raise NotImplementedError(f"\"round_vml_cpu\" not implemented for '{type_name(input.dtype)}'")
    return run(ops.round, input)


def _decimals(decimals):
    size = max(decimals, -decimals)
    return (10.0**size if size <= 308 else float("inf")), decimals


@method
def round_(self, *, decimals=None):
    """In-place version of round."""
    if decimals:
        return _C.in_place(ops.round_decimals, self, *_decimals(decimals))
    return _whole(self, decimals, _C.in_place)


@public
def nan_to_num(input, nan=0.0, posinf=None, neginf=None, *, out=None):
    """NaN and the infinities replaced by numbers.

    >>> rushlight.nan_to_num(rushlight.tensor([float("nan"), 1.0]))
    tensor([0., 1.])
    """
    _check_replacements(nan=nan, posinf=posinf, neginf=neginf)
    result = _nan_to_num(input, nan, posinf, neginf)
    return (
        result
        if out is None
        else write_out(out, result, exact="nan_to_num: dtype of out: {out} should be same as input: {result}")
    )


def _check_replacements(**values):
    for name, value in values.items():
        if isinstance(value, complex):
            raise TypeError(f"nan_to_num(): argument '{name}' must be float, not complex")


def _nan_to_num(input, nan=0.0, posinf=None, neginf=None):
    if not input.is_floating_point():
        if input.is_complex():
            parts = (_nan_to_num(p, nan, posinf, neginf) for p in (ops.real(input), ops.imag(input)))
            return FUNCTIONS["complex"](*parts)
        return ops.clone(input)
    return ops.nan_to_num(input, *_replacements(input, nan, posinf, neginf))


def _replacements(input, nan, posinf, neginf):
    from rushlight._dtype_info import extremes

    least, largest = extremes(input.dtype)
    return (
        0.0 if nan is None else nan,
        largest if posinf is None else posinf,
        least if neginf is None else neginf,
    )


@method
def nan_to_num_(self, nan=0.0, posinf=None, neginf=None):
    """In-place version of :meth:`nan_to_num`."""
    _check_replacements(nan=nan, posinf=posinf, neginf=neginf)
    _C.check_inplace(self)
    if not (self.is_floating_point() or self.is_complex()):
        _C.note_write(self)  # copied onto itself
        return self
    if self.is_complex():
        return _C.become(self, _nan_to_num(_C.before_write(self), nan, posinf, neginf))
    return _C.in_place(ops.nan_to_num, self, *_replacements(self, nan, posinf, neginf))


# ---- activations of the main namespace


@public
def relu(input):
    """x where positive, 0 elsewhere.

    >>> rushlight.relu(rushlight.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return ops.relu(input)


in_place("relu")


@function
def threshold(input, threshold, value, *, out=None):
    """x where above the threshold, `value` elsewhere.

    >>> rushlight.threshold(rushlight.tensor([0.5, 2.0]), 1.0, 0.0)
    tensor([0., 2.])
    """
    result = ops.threshold(input, threshold, value)
    return result if out is None else write_out(out, result)
