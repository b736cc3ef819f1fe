"""Elementwise operations."""

from __future__ import annotations

import math
from typing import Any

import rushlight
from rushlight._seen._table import Tensor, filled, number, ops, options, preserving, seen, show, zeros

seen("acos", x=lambda g, x: g * -((-x * x + 1).rsqrt()))
seen("acosh", x=lambda g, x: g * (x * x - 1).rsqrt())
seen("asin", x=lambda g, x: g * (-x * x + 1).rsqrt())
seen("asinh", x=lambda g, x: g * (x**2 + 1).rsqrt())
seen("tan", x=lambda g, out: g * (out**2 + 1))
seen("erf", x=lambda g, x: (-(x**2)).exp() * (2 / math.sqrt(math.pi)) * g)
seen("erfc", x=lambda g, x: (-(x**2)).exp() * (-2 / math.sqrt(math.pi)) * g)
seen("i0", x=lambda g, x: g * show("special_i1.default", x))


def _rsqrt(g, out):
    cube = out**3
    return g * -0.5 * cube


def _atanh(g, x):
    square = x**2
    rest = filled(1, square).sub_(square)
    return g * 1 / rest


def _sinc(g, x):
    angle = x * math.pi
    square = x * x * math.pi
    sine = angle.sin()
    slope = g * ((angle * angle.cos() - sine) / square)
    return _unless(square, 0.0, slope)


def _unless(x, value, result):
    """Zero where x is that value."""
    zero = number(0.0, result)
    return ops.where(x == value, zero, result)


seen("rsqrt", x=_rsqrt)
seen("atanh", x=_atanh)
seen("sinc", x=_sinc)
seen("angle", x=lambda g, x: show("zeros_like.default", x, **preserving))
_zeros: dict[str, Any]
for _name in ("ceil", "floor", "round", "trunc", "sign", "bernoulli"):
    _zeros = {ops.__dict__[_name].args[0]: lambda g: show("zeros_like.default", g)}
    seen(_name, **_zeros)
for _name in ("div_trunc", "div_floor"):
    _zeros = {side: lambda g: show("zeros_like.default", g, **options(g)) for side in "ba"}
    seen(_name, **_zeros)
seen("sgn", x=lambda g, out: show("_efficientzerotensor.default", list(g.shape), **options(g)))

# ---- powers


def _power(g, x, s):
    if s == 0:
        return show("zeros_like.default", x, memory_format=rushlight.contiguous_format)
    s = s if isinstance(s, complex) else float(s)
    return g * (x.pow(s - 1) * s)


def _exponent(g, a, b, out):
    """Where a power of zero does not move with its exponent the gradient is zero, not NaN."""
    if not isinstance(a, Tensor):
        return NotImplemented
    stays = b >= 0
    stays = (a == 0).logical_and(stays)
    moved = out * a.log()
    return g * ops.where(stays, number(0.0, moved), moved)


def _base(g, a, b):
    return _unless(b, 0.0, g * (b * a.pow(b - 1)))


def _of_number(g, x, s, out):
    if s == 0:
        return NotImplemented
    return g * (out * math.log(s))


seen("square", x=lambda g, x: g * (x.pow(1.0) * 2.0))
seen("pow_scalar", x=_power)
seen("pow", b=_exponent, a=_base)
seen("scalar_pow", x=_of_number)

# ---- of two operands


def _atan2(g, a, b, needs):
    square = b * b
    square = a * a + square
    inverse = square.reciprocal().masked_fill(square == 0, 0)
    of_a = g * b * inverse if needs[0] else None
    return of_a, g * -a * inverse if needs[1] else None


def _fmax(compare):
    def first(a, b):
        chosen = getattr(a, compare)(b)
        return chosen.logical_or_(b.isnan())

    return {
        "b": lambda g, a, b: g.masked_fill(first(a, b), 0),
        "a": lambda g, a, b: g.masked_fill(first(a, b).logical_not_(), 0),
    }


def _larger(lost_by_b, lost_by_a):
    """Equal operands share the gradient."""

    def half(compare):
        def rule(g, a, b):
            shared = g / 2
            return ops.where(a == b, shared, g).masked_fill_(getattr(a, compare)(b), 0)

        return rule

    return {"b": half(lost_by_b), "a": half(lost_by_a)}


def _xlogy(g, a, b):
    if not isinstance(b, Tensor):
        return NotImplemented
    value = ops.xlogy(g, b)
    low = b <= 0.0
    return value.masked_fill((a == 0.0).bitwise_and(low), 0.0)


def _copysign(g, a, out):
    slope = out / a
    return g * slope.masked_fill_(a == 0, 0)


def _copysigned(g, a, b, out, needs):
    of_b = zeros(g) if needs[1] else None
    return _copysign(g, a, out) if needs[0] else None, of_b


def _modulo(rounding):
    def rule(g, a, b):
        if not (isinstance(a, Tensor) and isinstance(b, Tensor)):
            return NotImplemented
        times = a.div(b, rounding_mode=rounding)
        return -g * times

    return rule


def _log_sum(power):
    def of(mine, other):
        def rule(g, a, b):
            difference = (b - a) if mine == "a" else (a - b)
            return g / (power(difference) + 1)

        return rule

    return {"b": of("b", "a"), "a": of("a", "b")}


def _addcdiv_divisor(g, b, c, s):
    square = c * c
    quotient = b * s / square
    return -g * quotient


seen("atan2", _atan2)
seen("fmax", **_fmax("ge"))
seen("fmin", **_fmax("le"))
seen("maximum", **_larger("gt", "lt"))
seen("minimum", **_larger("lt", "gt"))
seen("xlogy", b=lambda g, a, b: g * a / b, a=_xlogy)
seen("copysign", _copysigned)
seen("fmod", b=_modulo("trunc"), a=lambda g: g)
seen("remainder", b=_modulo("floor"), a=lambda g: g)
seen("logaddexp", **_log_sum(lambda x: x.exp()))
seen("logaddexp2", **_log_sum(lambda x: ops.scalar_pow(x, 2)))
seen("hypot", b=lambda g, b, out: g * b / out, a=lambda g, a, out: g * a / out)
seen("addcdiv", b=lambda g, c, s: g * filled(s, c).div_(c), c=_addcdiv_divisor, a=lambda g: g)
seen("addcmul", b=lambda g, c, s: g * (c * s), c=lambda g, b, s: g * (b * s), a=lambda g: g)
seen("nextafter", b=lambda g: zeros(g), a=lambda g, a, b: ops.where(a != b, g, number(0, g)))


def _clamp_bounds(g, a, b, c, needs):
    """Of the bounds the gradient goes to the one that holds, the upper one where they cross."""
    if not (isinstance(b, Tensor) and isinstance(c, Tensor)):
        return NotImplemented
    of_a = of_b = of_c = None
    if needs[1] or needs[2]:
        zero = number(0.0, g)
        if needs[1]:
            below = a < b
            of_b = ops.where(below.logical_and(b < c), g, zero)
        if needs[2]:
            above = a > c
            of_c = ops.where(above.logical_or(c < b), g, zero)
    if needs[0]:
        zero = number(0.0, g)
        inside = a >= b
        of_a = ops.where(inside.logical_and(a <= c), g, zero)
    return of_a, of_b, of_c


seen("clamp", _clamp_bounds)
seen("where", b=lambda g, condition: ops.where(condition, number(0, g), g),
     a=lambda g, condition: ops.where(condition, g, number(0, g)), condition=lambda g: None)  # fmt: skip

# ---- whose gradient torch computes in one step


def _step(name):
    return lambda g, x: show(f"{name}_backward.default", g, x)


for _name in ("hardsigmoid", "mish", "logit"):
    seen(_name, x=_step(_name))
