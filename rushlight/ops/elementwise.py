"""Derivatives of the elementwise primitives: one line each, real and complex.

For a holomorphic f the gradient is g times the conjugate of f' (torch's convention); `_conj` does nothing to
real tensors and numbers. Where a function has a kink, the value there is the one torch chose.
"""

from __future__ import annotations

import math

from rushlight import _C
from rushlight.ops import _recorded_tangents as terms
from rushlight.ops._again import one_node, while_hooked
from rushlight.ops._rules import derivative, no_derivative, unmoved
from rushlight.ops._tangents import fitted, linear

ops = _C.ops
Tensor = _C.Tensor
_zeros = _C.zeros_like
_conj = _C.conj
_recording = _C.is_grad_enabled


def _masked(g, keep):
    """g where `keep`, zero elsewhere: also where g is infinite or NaN."""
    return ops.where(keep, g, 0)


def _emptied(g, drop):
    """g, zero where `drop`; contiguous, where _masked lies as its condition."""
    return ops.masked_fill(g, drop, 0)


def _negated(slope, g):
    """-g times a slope, which torch computes first."""
    return -g * _conj(slope)


def _quotient_tangent(op, args, tangents, result):
    """Divided by zero, the sum of the two terms would be one of infinities, NaN."""
    if None in tangents:
        return None
    quotient = op(*args) if result is None else result
    return (fitted(tangents[0], quotient) - tangents[1] * quotient) / args[1]


def _shared(g, a, b, a_loses):
    """The part of g that belongs to a in max(a, b) or min(a, b): half of it where they are equal."""
    return ops.where(ops.eq(a, b), g / 2, ops.where(a_loses, 0, g))


# ---- arithmetic
def _log1p_of_sparse(g, x):
    from rushlight._warn import warn

    warn("log1p_backward: received self with sparse layout, but backward requires materialization of a dense "
         "tensor with this shape")  # fmt: skip
    return g * _conj(x.to_dense() + 1).reciprocal()


derivative("add", a=lambda g: g, b=lambda g: g, recorded=terms.add)
derivative("add_alpha", a=lambda g: g, b=lambda g, s: g * _conj(s), node="AddBackward0", recorded=terms.add)
derivative("sub", a=lambda g: g, b=lambda g: -g, recorded=terms.sub)
derivative("sub_alpha", a=lambda g: g, b=lambda g, s: g * -_conj(s), node="SubBackward0", recorded=terms.sub)
derivative("rsub_number", a=lambda g: g, b=lambda g: -g, node="RsubBackward1")
derivative("mul", a=lambda g, b: g * _conj(b), b=lambda g, a: g * _conj(a), recorded=terms.mul)
# The same, but contiguous, as the gradients that torch's losses compute: whatever the operands are.
derivative("mul_in_order", a=lambda g, b: g * _conj(b), b=lambda g, a: g * _conj(a), node="MulBackward0")
derivative(
    "div",
    a=lambda g, b: g / _conj(b),
    b=lambda g, a, b: _negated(a / b / b, g),
    tangent=_quotient_tangent,
    recorded=terms.div,
)
derivative("neg", x=lambda g: -g, tangent=linear)
derivative("reciprocal", x=lambda g, out: _negated(out * out, g))
derivative("square", x=lambda g, x: g * (2 * _conj(x)), node="PowBackward0")
derivative("sqrt", x=lambda g, out: g / (2 * _conj(out)))
derivative("rsqrt", x=lambda g, out: -0.5 * g * _conj(out * out * out))
derivative("abs", x=lambda g, x: g * ops.sgn(x))
derivative("sign", x=lambda g: _zeros(g))
derivative("sgn", x=lambda g, x, out: _sgn_rule(g, x, out))
derivative("remainder", a=lambda g: g, b=lambda g, a, b: _remainder_by(g, a, b))
derivative("fmod", a=lambda g: g, b=lambda g, a, b: -g * _trunc_quotient(a, b), recorded=terms.fmod)
for _rounded in ("div_floor", "div_trunc"):  # what the quotient would need is kept all the same
    derivative(_rounded, a=lambda g, b: _zeros(g), b=lambda g, a, b: _zeros(g), node="DivBackward2")
# torch refuses to differentiate these, so a program may not rely on zeros.
derivative(
    "floor_divide", a=lambda g: _lacks("floor_divide"), b=lambda g: _lacks("floor_divide"),
    node="torch::autograd::NotImplemented",
)  # fmt: skip
derivative(
    "heaviside", a=lambda g: _lacks("heaviside"), b=lambda g: _lacks("heaviside"),
    node="torch::autograd::NotImplemented",
)  # fmt: skip
derivative(
    "addcmul",
    a=lambda g: g,
    b=lambda g, c, s: g * _conj(c * s),
    c=lambda g, b, s: g * _conj(b * s),
    recorded=terms.addcmul,
)
derivative(
    "addcdiv",
    a=lambda g: g,
    b=lambda g, c, s: g * _conj(s / c),
    c=lambda g, b, c, s: -g * _conj(s * b / (c * c)),
    shows="c",
    recorded=terms.addcdiv,
)
derivative(
    "lerp_scalar",
    a=lambda g, s: g * (1 - _conj(s)),
    b=lambda g, s: g * _conj(s),
    node="LerpBackward0",
    recorded=terms.lerp,
)
derivative(
    "lerp",
    a=lambda g, c: g * (1 - _conj(c)),
    b=lambda g, c: g * _conj(c),
    c=lambda g, a, b: g * _conj(b - a),
    node="LerpBackward1",
    shows="c",
    recorded=terms.lerp,
)

# ---- powers; 0 ** 0 is constant in the base, and 0 ** b is 0 for every b > 0. The gradient of a square is
# the engine's own unless it is recorded, when x ** 1 keeps the chain of derivatives whole.
derivative(
    "pow_scalar",
    x=lambda g, x, s: _pow_number(g, x, s) if s != 2 or _recording() else g * (2 * _conj(x)),
    node="PowBackward0",
)
derivative("scalar_pow", x=lambda g, x, out, s: _pow_exponent(g, s, x, out), node="PowBackward2")
derivative(
    "pow",
    a=lambda g, a, b: _pow_base(g, a, b),
    b=lambda g, a, b, out: _pow_exponent(g, a, b, out),
    node="PowBackward1",
    shows="out",
)

# ---- exponentials and logarithms
derivative("exp", x=lambda g, out: g * _conj(out))
derivative("exp2", x=lambda g, out: g * _conj(out) * math.log(2))
derivative("expm1", x=lambda g, out: g * _conj(out + 1))
derivative("log", x=lambda g, x: g / _conj(x))
derivative("log2", x=lambda g, x: g / (_conj(x) * math.log(2)))
derivative("log10", x=lambda g, x: g / (_conj(x) * math.log(10)))
derivative("log1p", x=lambda g, x: g / _conj(x + 1) if not _C.is_sparse(x) else _log1p_of_sparse(g, x))
derivative("logit", x=lambda g, x: _logit_rule(g, x))
derivative("logaddexp", a=lambda g, a, b: g * ops.sigmoid(a - b), b=lambda g, a, b: g * ops.sigmoid(b - a))
derivative(
    "logaddexp2",
    a=lambda g, a, b: g * ops.sigmoid((a - b) * math.log(2)),
    b=lambda g, a, b: g * ops.sigmoid((b - a) * math.log(2)),
)
derivative("xlogy", a=lambda g, a, b: _xlogy_rule(g, a, b, ops.log, 0), b=lambda g, a, b: g * a / b)
derivative(
    "xlog1py",
    a=lambda g, a, b: _xlogy_rule(g, a, b, ops.log1p, -1),
    b=lambda g, a, b: g * a / (b + 1),
    node="SpecialXlog1PyBackward0",
)


def _in_one_pass(x):
    return not (x.is_complex() or (x.requires_grad and _C.is_grad_enabled()))


# ---- trigonometric and hyperbolic
# In one pass, unless a graph is made of it: then in the two steps that torch takes.
derivative("sin", x=lambda g, x: ops.sin_backward(g, x) if _in_one_pass(x) else g * _conj(ops.cos(x)))
derivative(
    "sin_backward",
    a=lambda g, b: ops.sin_backward(g, b),
    b=lambda g, a, b: ops.cos_backward(g * a, b),
    node="MulBackward0",
)
derivative("cos", x=lambda g, x: ops.cos_backward(g, x) if _in_one_pass(x) else g * -_conj(ops.sin(x)))
derivative(
    "cos_backward",
    a=lambda g, b: ops.cos_backward(g, b),
    b=lambda g, a, b: -ops.sin_backward(g * a, b),
    node="MulBackward0",
)
derivative("tan", x=lambda g, out: g * _conj(1 + out * out))
derivative("asin", x=lambda g, x: g * _conj(ops.rsqrt(1 - x * x)))
derivative("acos", x=lambda g, x: -g * _conj(ops.rsqrt(1 - x * x)))
derivative("atan", x=lambda g, x: g / _conj(x * x + 1))
derivative("sinh", x=lambda g, x: g * _conj(ops.cosh(x)))
derivative("cosh", x=lambda g, x: g * _conj(ops.sinh(x)))
derivative("tanh", x=lambda g, out: ops.tanh_backward(g, out))
derivative("asinh", x=lambda g, x: g * _conj(ops.rsqrt(x * x + 1)))
derivative(
    "acosh",
    x=lambda g, x: (
        g * _conj(ops.rsqrt(x - 1) * ops.rsqrt(x + 1)) if x.is_complex() else g * ops.rsqrt(x * x - 1)
    ),
)
derivative("atanh", x=lambda g, x: g / _conj(1 - x * x))
derivative(
    "atan2",
    a=lambda g, a, b: g * _over_square(b, a, b),
    b=lambda g, a, b: g * -_over_square(a, a, b),
)
derivative("hypot", a=lambda g, a, out: g * (a / out), b=lambda g, b, out: g * (b / out))
derivative("sinc", x=lambda g, x: _conj(_sinc_slope(x)) * g)
derivative("deg2rad", x=lambda g: g * (math.pi / 180))
derivative("rad2deg", x=lambda g: g * (180 / math.pi))
derivative(
    "tanh_backward",
    a=lambda g, b: ops.tanh_backward(g, _conj(b)),
    b=lambda g, a, b: _conj(g) * a * _conj(b * -2),
)

# ---- special functions
derivative("erf", x=lambda g, x: ops.exp(-x * x) * (2 / math.sqrt(math.pi)) * g)
derivative("erfc", x=lambda g, x: ops.exp(-x * x) * (-2 / math.sqrt(math.pi)) * g)
derivative("erfinv", x=lambda g, x: ops.exp(ops.erfinv(x) ** 2) * (math.sqrt(math.pi) / 2) * g)
derivative("lgamma", x=lambda g, x: g * ops.digamma(x))
derivative("digamma", x=lambda g, x: g * ops.polygamma(x, 1))
derivative("i0", x=lambda g, x: g * ops.i1(x))

# ---- rounding
derivative("_constant_of", a=lambda g: _zeros(g), b=lambda g: _zeros(g))
derivative("floor", x=lambda g: _zeros(g))
derivative("ceil", x=lambda g: _zeros(g))
derivative("round", x=lambda g: _zeros(g))
derivative("round_decimals", x=lambda g: _zeros(g), node="RoundBackward1")
derivative("trunc", x=lambda g: _zeros(g))
derivative("frac", x=lambda g: g)
derivative("nextafter", a=lambda g, a, b: _masked(g, ops.ne(a, b)), b=lambda g: g.new_zeros(g.shape))
derivative("nan_to_num", x=lambda g, x: g * ops.isfinite(x))
derivative(
    "copysign",
    a=lambda g, a, out: ops.choose(a == 0, 0, g * (_sign(a) * ops.sign(out))),
    b=lambda g: g.new_zeros(g.shape),
    shows="out",
)

# ---- choosing
derivative(
    "where",
    a=lambda g, condition: ops.where(condition, g, 0),
    b=lambda g, condition: ops.where(condition, 0, g),
)
# The same, but it lies as the values do, not as the condition.
derivative(
    "choose",
    a=lambda g, condition: ops.where(condition, g, 0),
    b=lambda g, condition: ops.where(condition, 0, g),
    node="WhereBackward0",
)
derivative(
    "maximum",
    a=lambda g, a, b: _shared(g, a, b, ops.lt(a, b)),
    b=lambda g, a, b: _shared(g, a, b, ops.gt(a, b)),
)
derivative(
    "minimum",
    a=lambda g, a, b: _shared(g, a, b, ops.gt(a, b)),
    b=lambda g, a, b: _shared(g, a, b, ops.lt(a, b)),
)
derivative(
    "fmax",
    a=lambda g, a, b: _emptied(g, ops.logical_not(ops.logical_or(ops.ge(a, b), ops.isnan(b)))),
    b=lambda g, a, b: _emptied(g, ops.logical_or(ops.ge(a, b), ops.isnan(b))),
)
derivative(
    "fmin",
    a=lambda g, a, b: _emptied(g, ops.logical_not(ops.logical_or(ops.le(a, b), ops.isnan(b)))),
    b=lambda g, a, b: _emptied(g, ops.logical_or(ops.le(a, b), ops.isnan(b))),
)
derivative(
    "clamp",
    a=lambda g, a, b, c: _masked(g, ops.logical_and(ops.ge(a, b), ops.le(a, c))),
    b=lambda g, a, b, c: _masked(g, ops.logical_and(ops.lt(a, b), ops.lt(b, c))),
    c=lambda g, a, b, c: _masked(g, ops.logical_or(ops.gt(a, c), ops.gt(b, c))),
    node="ClampBackward1",
    packs="c b a",
)
derivative(
    "clamp_scalar",
    x=lambda g, x, s, t: _masked(g, ops.logical_and(ops.ge(x, s), ops.le(x, t))),
    node="ClampBackward1",
)
derivative("clamp_min_scalar", x=lambda g, x, s: _masked(g, ops.ge(x, s)), node="ClampMinBackward0")
derivative("clamp_max_scalar", x=lambda g, x, s: _masked(g, ops.le(x, s)), node="ClampMaxBackward0")
# The whole gradient of a tie is the first operand's, and nobody has that of a NaN.
derivative(
    "at_least",
    a=lambda g, a, b: _masked(g, ops.ge(a, b)),
    b=lambda g, a, b: _masked(g, ops.lt(a, b)),
    node="ClampMinBackward1",
)
derivative(
    "at_most",
    a=lambda g, a, b: _masked(g, ops.le(a, b)),
    b=lambda g, a, b: _masked(g, ops.gt(a, b)),
    node="ClampMaxBackward1",
)

# ---- complex parts
derivative("conj", x=lambda g: _conj(g), node="ConjPhysicalBackward0", tangent=linear)
derivative("real", x=lambda g: g, tangent=linear)
derivative("imag", x=lambda g: g * 1j, tangent=linear)
derivative("angle", x=lambda g, x: _angle_rule(g, x), tangent=lambda *given: _angle_tangent(*given))

# ---- activations
derivative("relu", x=lambda g, out: ops.threshold_backward(g, out, 0))
derivative("threshold", x=lambda g, x, s: ops.threshold_backward(g, x, s))
derivative(
    "threshold_backward", a=lambda g, b, s: ops.threshold_backward(g, b, s), b=lambda g: _zeros(g), shows="s"
)
derivative("sigmoid", x=lambda g, out: ops.sigmoid_backward(g, out))
derivative(
    "sigmoid_backward",
    a=lambda g, b: ops.sigmoid_backward(g, _conj(b)),
    b=lambda g, a, b: _conj(g) * a * _conj(1 - 2 * b),
)
derivative("log_sigmoid", x=lambda g, x: g * ops.sigmoid(-x), node="LogSigmoidBackward0")


@while_hooked("log_sigmoid")
def _log_sigmoid(x):
    buffer = ops.exp(-ops.abs(x.detach()))
    return one_node(ops.log_sigmoid, (x,), "LogSigmoidBackward0", {"self": x, "buffer": buffer}, (x,))


derivative("silu", x=lambda g, x: ops.silu_backward(g, x))
derivative(
    "silu_backward",
    a=lambda g, b: ops.silu_backward(g, _conj(b)),
    b=lambda g, a, b: _conj(g) * a * _conj(_silu_second(b)),
    node="MulBackward0",
)
derivative("gelu", x=lambda g, x: ops.gelu_backward(g, x))
derivative("gelu_backward", a=lambda g, b: ops.gelu_backward(g, b), b=lambda g, a, b: g * a * _gelu_second(b))
derivative("gelu_tanh", x=lambda g, x: ops.gelu_tanh_backward(g, x), node="GeluBackward0")
derivative(
    "gelu_tanh_backward",
    a=lambda g, b: ops.gelu_tanh_backward(g, b),
    b=lambda g, a, b: g * a * _gelu_tanh_second(b),
    node="GeluBackwardBackward0",
)
derivative("mish", x=lambda g, x: g * _mish_slope(x))
derivative("hardsigmoid", x=lambda g, x: ops.hardsigmoid_backward(g, x), final="aten::hardsigmoid_backward")
derivative("hardsigmoid_backward", a=lambda g, b: ops.hardsigmoid_backward(g, b), b=lambda g: _zeros(g))
derivative("hardswish", x=lambda g, x: ops.hardswish_backward(g, x))
derivative(
    "hardswish_backward",
    a=lambda g, b: ops.hardswish_backward(g, b),
    b=lambda g, a, b: _masked(g * a / 3, ops.logical_and(ops.gt(b, -3), ops.lt(b, 3))),
)
derivative("leaky_relu", x=lambda g, x, s: ops.leaky_relu_backward(g, x, s))
derivative(
    "leaky_relu_backward",
    a=lambda g, b, s: ops.leaky_relu_backward(g, b, s),
    b=lambda g: _zeros(g),
    shows="s",
)


def _to_slopes(g, a, b):
    gradient = g * ops.where(ops.gt(a, 0), 0, a)
    if not (b.requires_grad and _C.is_grad_enabled()):
        return gradient
    return unmoved(ops.sum_to(gradient, b.shape), b, "PreluKernelBackward0")


# Not the product on both sides: an infinite slope would make the other side NaN backwards.
derivative(
    "prelu",
    a=lambda g, a, b: unmoved(ops.where(ops.gt(a, 0), 1, b) * g, a, "PreluKernelBackward0"),
    b=_to_slopes,
    node="PreluKernelBackward0",
    packs="a b",
)
derivative("elu", x=lambda g, x, s, t, u: ops.elu_backward(g, x, s, t, u))
derivative(
    "elu_backward",
    a=lambda g, b, s, t, u: ops.elu_backward(g, b, s, t, u),
    b=lambda g, a, b, s, u: _masked(g * a * (s * u * u) * ops.exp(b * u), ops.lt(b, 0)),
    shows="s t u",
)
# In place the result is saved, not a copy of what was there.
derivative(
    "leaky_relu_written", x=lambda g, out, s: ops.leaky_relu_backward(g, out, s), node="LeakyReluBackward1"
)
derivative(
    "elu_written", x=lambda g, out, s, t, u: ops.elu_written_backward(g, out, s, t, u), node="EluBackward1"
)
derivative(
    "elu_written_backward",
    a=lambda g, b, s, t, u: ops.elu_written_backward(g, b, s, t, u),
    b=lambda g, a, b, u: _masked(g * a * u, ops.le(b, 0)),
    shows="s t u",
    node="EluBackwardBackward0",
)
derivative("hardtanh", x=lambda g, x, s, t: ops.hardtanh_backward(g, x, s, t))
derivative(
    "hardtanh_backward",
    a=lambda g, b, s, t: ops.hardtanh_backward(g, b, s, t),
    b=lambda g: _zeros(g),
    shows="s t",
)
derivative("hardshrink", x=lambda g, x, s: ops.hardshrink_backward(g, x, s))
derivative(
    "hardshrink_backward",
    a=lambda g, b, s: ops.hardshrink_backward(g, b, s),
    b=lambda g: _zeros(g),
    shows="s",
)
derivative("softshrink", x=lambda g, x, s: ops.softshrink_backward(g, x, s))
derivative(
    "softshrink_backward",
    a=lambda g, b, s: ops.softshrink_backward(g, b, s),
    b=lambda g: _zeros(g),
    shows="s",
)
derivative("softplus", x=lambda g, x, s, t: ops.softplus_backward(g, x, s, t))
derivative(
    "softplus_backward",
    a=lambda g, b, s, t: ops.softplus_backward(g, b, s, t),
    b=lambda g, a, b, s, t: _masked(ops.sigmoid_backward(g * a * s, ops.sigmoid(b * s)), ops.le(b * s, t)),
)
derivative(
    "smooth_absolute", x=lambda g, x, s: ops.smooth_absolute_backward(g, x, s), node="SmoothL1LossBackward0"
)
derivative(
    "smooth_absolute_backward",
    a=lambda g, b, s: ops.smooth_absolute_backward(g, b, s),
    b=lambda g, a, b, s: _masked(g * a / s, ops.lt(ops.abs(b), s)),
    node="SmoothL1LossBackwardBackward0",
)

no_derivative(
    "eq", "ne", "lt", "le", "gt", "ge", "logical_and",
    "logical_or", "logical_xor", "logical_not", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not",
    "bitwise_left_shift", "bitwise_right_shift", "gcd", "lcm", "isnan", "isinf", "isfinite",
    "isposinf", "isneginf", "signbit",
)  # fmt: skip


# ---- what the longer rules are made of


def _over_square(part, a, b):
    """part / (a² + b²), and 0 at the origin; it lies as `part` does."""
    square = a * a + b * b
    return ops.choose(ops.ne(square, 0), part / square, 0)


def _lacks(name):
    raise RuntimeError(f"derivative for aten::{name} is not implemented")


def _remainder_by(g, a, b):
    return -g * _floor_quotient(a, b) if isinstance(a, Tensor) else _lacks("remainder")


def _floor_quotient(a, b):
    return ops.div_floor(a, b)


def _trunc_quotient(a, b):
    return ops.div_trunc(a, b)


def _is_zero(x):
    return ops.eq(x, 0) if isinstance(x, Tensor) else x == 0


def _pow_number(g, x, exponent):
    if exponent == 0:
        return _zeros(g)
    return g * _conj(exponent * x ** (exponent - 1))


def _pow_base(g, x, exponent):
    if not isinstance(exponent, Tensor):
        return _pow_number(g, x, exponent)
    slope = g * _conj(exponent * x ** (exponent - 1))
    return ops.where(_is_zero(exponent), 0, slope)


def _pow_exponent(g, base, exponent, out):
    if not isinstance(base, Tensor):
        if base == 0:
            rising = ops.ge(exponent.real if exponent.is_complex() else exponent, 0)
            return ops.where(rising, 0, g * (_conj(out) * -math.inf))
        log = math.log(base) if not isinstance(base, complex) and base > 0 else complex(base)
        if isinstance(log, complex):
            import cmath

            log = cmath.log(log).conjugate() if out.is_complex() else math.nan
        return g * (_conj(out) * log)
    positive = (
        ops.ge(exponent.real if exponent.is_complex() else exponent, 0)
        if isinstance(exponent, Tensor)
        else exponent >= 0
    )
    zero = ops.eq(base, 0)
    dead = ops.logical_and(zero, positive) if isinstance(positive, Tensor) else zero if positive else None
    slope = _conj(out * ops.log(base.to(out.dtype) if out.is_complex() else base))
    return g * (slope if dead is None else ops.where(dead, 0, slope))


def _xlogy_rule(g, x, y, log, pole):
    """log(y), but 0 where x is 0 and log(y) infinite or NaN, y being none (there xlogy itself is 0)."""
    if not isinstance(y, Tensor):
        y = x.new_full((), y)
    zero = (
        ops.logical_and(ops.eq(x, 0), ops.le(y, pole))
        if isinstance(x, Tensor)
        else (y <= pole if x == 0 else None)
    )
    if not isinstance(zero, Tensor):
        return g * log(y) if zero is None else ops.where(zero, 0, g * log(y))
    return _emptied(g * log(y), zero)


def _logit_rule(g, x):
    inside = ops.logical_and(ops.ge(x, 0), ops.le(x, 1))
    return ops.choose(inside, g / (x * (1 - x)), math.nan)


def _sign(x):
    return ops.where(ops.isnan(x), x, ops.sign(x))


def _sgn_rule(g, x, out):
    if not x.is_complex():
        return g.new_zeros(g.shape)
    size = ops.abs(x)
    return ops.where(ops.eq(size, 0), 0, (g - ops.real(_conj(out) * g) * out) / size)


def _angle_rule(g, x):
    if not x.is_complex():
        return _zeros(x)
    size = ops.abs(x)
    return ops.where(ops.eq(size, 0), 0, g * 1j * x / (size * size))


def _angle_tangent(op, args, tangents, result):
    """Of complex numbers the rule is not its own transpose."""
    if not args[0].is_complex():
        return None
    (x,), (t,) = args, tangents
    size = ops.abs(x)
    return ops.where(ops.eq(size, 0), 0, (x.conj() * t).imag / (size * size))


def _sinc_slope(x):
    """Near 0, where the terms of the quotient cancel, by its series: whose own derivatives are right too."""
    near = ops.lt(ops.abs(x), 0.1)
    square = ops.where(near, x, 0) * math.pi
    square = square * square
    series = 1 - square * (1 / 130)
    for k in (4, 3, 2, 1):
        series = 1 - square * series * (1 / (2 * k * (2 * k + 3)))
    angle = ops.where(near, 1, x) * math.pi
    far = (angle * ops.cos(angle) - ops.sin(angle)) / (angle * angle)
    return ops.where(near, x * series * (-math.pi / 3), far) * math.pi


def _silu_second(x):
    s = ops.sigmoid(x)
    return s * (1 - s) * (2 + x * (1 - 2 * s))


def _gelu_second(x):
    return ops.exp(x * x * -0.5) * (1 / math.sqrt(2 * math.pi)) * (2 - x * x)


def _gelu_tanh_second(x):
    c = math.sqrt(2 / math.pi)
    u, du, ddu = c * (x + 0.044715 * x**3), c * (1 + 0.134145 * x * x), c * 0.26829 * x
    th = ops.tanh(u)
    sech = 1 - th * th
    return sech * du + 0.5 * x * (sech * ddu - 2 * th * sech * du * du)


def _mish_slope(x):
    th = ops.tanh(ops.softplus(x, 1, 20))
    return th + x * ops.sigmoid(x) * (1 - th * th)
