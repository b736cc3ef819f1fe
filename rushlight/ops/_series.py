"""Special functions that appear in derivatives, composed of differentiable operations in double precision."""

from __future__ import annotations

import math

from rushlight import _C

ops = _C.ops
_SHIFT = 12  # the asymptotic series is good to double precision beyond this
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)


def polygamma(n: int, x: _C.Tensor) -> _C.Tensor:
    """The n-th derivative of digamma: recurrence up to large arguments, then the asymptotic series."""
    if n == 0:
        return ops.digamma(x)
    dtype = x.dtype if x.dtype.is_floating_point else _C.get_default_dtype()
    y = x if x.dtype == _C.float64 else ops.to_dtype(x, _C.float64)
    if n == 1:
        # Reflection: psi1(1 - x) + psi1(x) = (pi / sin(pi x))^2.
        negative = ops.lt(y, 0.5)
        mirrored = _positive(1, ops.where(negative, 1 - y, y))
        sine = ops.sin(ops.where(negative, y, 0.5) * math.pi)
        result = ops.where(negative, (math.pi / sine) ** 2 - mirrored, mirrored)
    else:
        result = _positive(n, y)
    return result if dtype == _C.float64 else ops.to_dtype(result, dtype)


def _positive(n, x):
    sign = -1.0 if n % 2 == 0 else 1.0
    total = x * 0
    for _ in range(_SHIFT):
        total = total + math.factorial(n) / x ** (n + 1)
        x = x + 1
    series = math.factorial(n - 1) / x**n + math.factorial(n) / (2 * x ** (n + 1))
    for k, number in enumerate(_BERNOULLI, start=1):
        series = series + number * math.factorial(2 * k + n - 1) / math.factorial(2 * k) / x ** (2 * k + n)
    return sign * (total + series)


def bessel_i1(x: _C.Tensor) -> _C.Tensor:
    """The modified Bessel function of order 1, as the mean of exp(x cos t) cos t over a period.

    The trapezoid rule converges exponentially there; 256 points serve every x whose result is finite.
    """
    y = x if x.dtype == _C.float64 else ops.to_dtype(x, _C.float64)
    angles = _C.arange(0.5, 1, 256, _C.float64, x.device)
    cosines = ops.cos(angles * (math.pi / 256))
    size = ops.abs(y)
    scaled = (ops.exp(ops.unsqueeze(y, -1) * cosines - ops.unsqueeze(size, -1)) * cosines).mean(-1)
    result = scaled * ops.exp(size)
    return result if x.dtype == _C.float64 else ops.to_dtype(result, x.dtype)
