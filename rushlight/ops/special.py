"""Special functions beyond libm's: derivatives, and those that the main namespace has. The rest of their
public names are in rushlight/special.py."""

from __future__ import annotations

import math

from rushlight import _C
from rushlight._type_names import type_name as class_name
from rushlight.ops._public import Tensor, in_place, in_place_of, public, type_name, whole, write_out
from rushlight.ops._rules import derivative, no_derivative

ops = _C.ops
_NEARLY_ZERO = 1e-8  # the next term of the series is lost in rounding


def _i1_slope(x, scaled, i0, i1):
    """The derivative of i1 or i1e, given both functions: 1/2 at 0, where i1(x) / x is not a number.
    Nor may it be asked beside 0, where 1 / x overflows."""
    if x.dtype.itemsize == 2:
        name = "i1e" if scaled else "i1"
        raise NotImplementedError(f"\"{name}_backward\" not implemented for '{type_name(x.dtype)}'")
    near = ops.lt(ops.abs(x), _NEARLY_ZERO)
    safe = ops.where(near, 1, x)
    at_zero = 0.5 - ops.abs(x) if scaled else 0.5 + 0 * x
    return ops.where(near, at_zero, i0(safe) - i1(safe) * ((ops.sgn(safe) if scaled else 0) + 1 / safe))


def _gamma_density(a, x):
    """exp(-x) x^(a-1) / gamma(a): the derivative of igamma by x."""
    return ops.exp((a - 1) * ops.log(x) - x - ops.lgamma(a))


def _no_derivative(what):
    raise NotImplementedError(f"the derivative for '{what}' is not implemented.")


derivative("i0e", x=lambda g, x, out: g * (ops.i1e(x) - ops.sgn(x) * out), node="SpecialI0EBackward0")
derivative(
    "i1", x=lambda g, x: g * _i1_slope(x, False, ops.i0, ops.i1), node="SpecialI1Backward0", shows="out"
)
derivative(
    "i1e", x=lambda g, x: g * _i1_slope(x, True, ops.i0e, ops.i1e), node="SpecialI1EBackward0", shows="out"
)
derivative("polygamma", x=lambda g, x, s: g * ops.polygamma(x, s + 1))
derivative(
    "zeta",
    a=lambda g: _no_derivative("zeta"),
    b=lambda g, a, b: g * -a * ops.zeta(a + 1, b),
    node="SpecialZetaBackward0",
)
derivative("igamma", a=lambda g: _no_derivative("igamma: input"), b=lambda g, a, b: g * _gamma_density(a, b))
derivative(
    "igammac", a=lambda g: _no_derivative("igammac: input"), b=lambda g, a, b: -g * _gamma_density(a, b)
)
derivative("entr", x=lambda g, x: g * (-ops.log(x) - 1), node="SpecialEntrBackward0")
derivative(
    "erfcx", x=lambda g, x, out: g * (2 * x * out - 2 / math.sqrt(math.pi)), node="SpecialErfcxBackward0"
)
derivative(
    "ndtr", x=lambda g, x: g * ops.exp(x * x * -0.5) * (1 / math.sqrt(2 * math.pi)), node="MulBackward1"
)
derivative(
    "log_ndtr",
    x=lambda g, x: g / ops.erfcx(x * -math.sqrt(0.5)) * math.sqrt(2 / math.pi),
    node="SpecialLogNdtrBackward0",
    shows="out",
)
derivative(
    "ndtri",
    x=lambda g, out: g * math.sqrt(2 * math.pi) * ops.exp(out * out / 2),
    node="SpecialNdtriBackward0",
)

# torch differentiates none of these.
no_derivative(
    "airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "modified_bessel_i0", "modified_bessel_i1",
    "modified_bessel_k0", "modified_bessel_k1", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1",
    "spherical_bessel_j0", "chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v",
    "chebyshev_polynomial_w", "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v", "shifted_chebyshev_polynomial_w", "hermite_polynomial_h",
    "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p",
)  # fmt: skip


def ndtr(x):
    """Of a copy where a gradient is to come: torch's graph keeps x scaled, and lets x be written to."""
    recorded = isinstance(x, Tensor) and x.requires_grad and _C.is_grad_enabled()
    return ops.ndtr(ops.clone(x) if recorded else x)


def _two_tensors(name, input, other):
    for place, (argument, value) in enumerate({"input": input, "other": other}.items(), start=1):
        if not isinstance(value, Tensor):
            kind = type(value).__name__
            raise TypeError(f"{name}(): argument '{argument}' (position {place}) must be Tensor, not {kind}")


@public
def igamma(input, other, *, out=None):
    """The regularised lower incomplete gamma function P(input, other).

    >>> rushlight.igamma(rushlight.tensor([1.]), rushlight.tensor([2.]))
    tensor([0.8647])
    """
    _two_tensors("igamma", input, other)
    result = ops.igamma(input, other)
    return result if out is None else write_out(out, result)


@public
def igammac(input, other, *, out=None):
    """The regularised upper incomplete gamma function, 1 - igamma(input, other).

    >>> rushlight.igammac(rushlight.tensor([1.]), rushlight.tensor([2.]))
    tensor([0.1353])
    """
    _two_tensors("igammac", input, other)
    result = ops.igammac(input, other)
    return result if out is None else write_out(out, result)


in_place("igamma")
in_place("igammac")


def _polygamma(n, input):
    n = whole(n)
    if isinstance(n, bool) or not isinstance(n, int):
        raise TypeError(f"polygamma(): argument 'n' (position 1) must be int, not {class_name(n)}")
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    if n == 0:
        return ops.digamma(input)
    if input.is_complex():
        name = "trigamma" if n == 1 else "polygamma"
        raise NotImplementedError(f"\"{name}\" not implemented for '{type_name(input.dtype)}'")
    return ops.polygamma(input, n)


@public(method=False)
def polygamma(n, input, *, out=None):
    """The n-th derivative of digamma.

    >>> rushlight.polygamma(1, rushlight.tensor([1.]))
    tensor([1.6449])
    """
    result = _polygamma(n, input)
    return result if out is None else write_out(out, result)


@public(name="polygamma", namespace=False)
def _polygamma_method(self, n):
    """The n-th derivative of digamma.

    >>> rushlight.tensor([1.0]).polygamma(1)
    tensor([1.6449])
    """
    return _polygamma(n, self)


in_place_of(_polygamma_method, "polygamma")


@public
def mvlgamma(input, p, *, out=None):
    """The logarithm of the multivariate gamma function of dimension p.

    >>> rushlight.mvlgamma(rushlight.tensor([2.]), 2)
    tensor([0.4516])
    """
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    if input.dtype == _C.bool:
        raise RuntimeError("The input tensor may not be a boolean tensor.")
    if input.is_complex():
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{type_name(input.dtype)}'")
    x = input if input.is_floating_point() else input.to(_C.get_default_dtype())
    shifts = _C.arange(0, -0.5, p, x.dtype, x.device)
    result = ops.lgamma(x.unsqueeze(-1) + shifts).sum(-1) + p * (p - 1) * 0.25 * math.log(math.pi)
    if out is None:
        return result
    return write_out(
        out, result, unsafe=_MVLGAMMA_CAST.format(input=type_name(input.dtype), result="{result}")
    )


# Of the input and the result, as torch says it, though it is the output that does not fit.
_MVLGAMMA_CAST = "mvlgamma: result type {input} can't be cast to the desired output type {result}"


def _mvlgamma_onto(self, p):
    result = mvlgamma(self, p)
    if not _C.can_cast(result.dtype, self.dtype):
        own, made = type_name(self.dtype), type_name(result.dtype)
        raise RuntimeError(_MVLGAMMA_CAST.format(input=own, result=made))
    return result


in_place_of(_mvlgamma_onto, "mvlgamma")
