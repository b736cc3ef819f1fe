"""Distributions on the whole line (or a piece of it): a location and a scale."""

from __future__ import annotations

import math
from typing import Any

import rushlight
from rushlight.distributions import constraints
from rushlight.distributions._combined import TransformedDistribution
from rushlight.distributions.distribution import Distribution, ExponentialFamily
from rushlight.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    ExpTransform,
    StickBreakingTransform,
)
from rushlight.distributions.utils import _standard_normal, broadcast_all, euler_constant

_LOC_SCALE = {"loc": constraints.real, "scale": constraints.positive}


class _LocScale(Distribution):
    """What distributions on the whole line that are symmetric about `loc` share."""

    arg_constraints = _LOC_SCALE
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.size(), validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc


class Normal(_LocScale, ExponentialFamily):
    """Mean `loc`, standard deviation `scale`.

    >>> rushlight.distributions.Normal(0.0, 1.0).log_prob(rushlight.tensor(0.0))
    tensor(-0.9189)
    """

    _mean_carrier_measure = 0

    @property
    def stddev(self) -> Any:
        return self.scale

    @property
    def variance(self) -> Any:
        return self.scale.pow(2)

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        with rushlight.no_grad():
            return rushlight.normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        return self.loc + _standard_normal(shape, self.loc.dtype, self.loc.device) * self.scale

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        constant = math.log(math.sqrt(2 * math.pi))
        return -((value - self.loc) ** 2) / (2 * self.scale**2) - self.scale.log() - constant

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        return 0.5 * (1 + rushlight.erf((value - self.loc) * self.scale.reciprocal() / math.sqrt(2)))

    def icdf(self, value: Any) -> Any:
        return self.loc + self.scale * rushlight.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self) -> Any:
        return 0.5 + 0.5 * math.log(2 * math.pi) + rushlight.log(self.scale)

    @property
    def _natural_params(self) -> tuple:
        return self.loc / self.scale.pow(2), -0.5 * self.scale.pow(2).reciprocal()

    def _log_normalizer(self, x: Any, y: Any) -> Any:
        return -0.25 * x.pow(2) / y + 0.5 * rushlight.log(-math.pi / y)


class Laplace(_LocScale):
    """Density exp(-|x - loc| / scale) / (2 scale)."""

    @property
    def variance(self) -> Any:
        return 2 * self.scale.pow(2)

    @property
    def stddev(self) -> Any:
        return (2**0.5) * self.scale

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        info = rushlight.finfo(self.loc.dtype)
        u = rushlight.empty(shape, dtype=self.loc.dtype, device=self.loc.device).uniform_(info.eps - 1, 1)
        return self.loc - self.scale * u.sign() * rushlight.log1p(-u.abs())

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        return -rushlight.log(2 * self.scale) - rushlight.abs(value - self.loc) / self.scale

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        sign = (value - self.loc).sign()
        return 0.5 - 0.5 * sign * rushlight.expm1(-(value - self.loc).abs() / self.scale)

    def icdf(self, value: Any) -> Any:
        term = value - 0.5
        return self.loc - self.scale * term.sign() * rushlight.log1p(-2 * term.abs())

    def entropy(self) -> Any:
        return 1 + rushlight.log(2 * self.scale)


class Cauchy(_LocScale):
    """Density 1 / (pi scale (1 + ((x - loc) / scale)^2)); it has no mean."""

    @property
    def mean(self) -> Any:
        return rushlight.full(self._extended_shape(), math.nan, dtype=self.loc.dtype)

    @property
    def variance(self) -> Any:
        return rushlight.full(self._extended_shape(), math.inf, dtype=self.loc.dtype)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        return self.loc + rushlight.empty(shape, dtype=self.loc.dtype).cauchy_() * self.scale

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        z = (value - self.loc) / self.scale
        return -math.log(math.pi) - self.scale.log() - (z**2).log1p()

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        return rushlight.atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value: Any) -> Any:
        return rushlight.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self) -> Any:
        return math.log(4 * math.pi) + self.scale.log()


class _Half(TransformedDistribution):
    """|x| for x from a distribution around zero."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _base: type

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(
            self._base(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args
        )

    @property
    def scale(self) -> Any:
        """The scale of the whole distribution."""
        return self.base_dist.scale

    @property
    def mode(self) -> Any:
        return rushlight.zeros_like(self.scale)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        inside = self.base_dist.log_prob(value) + math.log(2)
        return rushlight.where(rushlight.as_tensor(value) >= 0, inside, -math.inf)

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob: Any) -> Any:
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self) -> Any:
        return self.base_dist.entropy() - math.log(2)


class HalfNormal(_Half):
    """The absolute value of a Normal(0, scale)."""

    _base = Normal

    @property
    def mean(self) -> Any:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Any:
        return self.scale.pow(2) * (1 - 2 / math.pi)


class HalfCauchy(_Half):
    """The absolute value of a Cauchy(0, scale)."""

    _base = Cauchy

    @property
    def mean(self) -> Any:
        return rushlight.full(self._extended_shape(), math.inf, dtype=self.scale.dtype)

    @property
    def variance(self) -> Any:
        return self.base_dist.variance


class Uniform(Distribution):
    """Equal density between `low` and `high`."""

    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.size(), validate_args=validate_args)
        if self._validate_args and not bool(rushlight.lt(self.low, self.high).all()):
            raise ValueError("Uniform is not defined when low>= high")

    @property
    def arg_constraints(self) -> Any:
        """Each bound by the other."""
        return {"low": constraints.less_than(self.high), "high": constraints.greater_than(self.low)}

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """From low to high."""
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Any:
        return (self.high + self.low) / 2

    @property
    def mode(self) -> Any:
        return math.nan * self.high

    @property
    def stddev(self) -> Any:
        return (self.high - self.low) / 12**0.5

    @property
    def variance(self) -> Any:
        return (self.high - self.low).pow(2) / 12

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        rand = rushlight.rand(shape, dtype=self.low.dtype, device=self.low.device)
        return self.low + rand * (self.high - self.low)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        inside = (self.low.le(value) & self.high.gt(value)).to(self.low.dtype)
        return rushlight.log(inside) - rushlight.log(self.high - self.low)

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: Any) -> Any:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Any:
        return rushlight.log(self.high - self.low)


class LogNormal(TransformedDistribution):
    """exp of a Normal."""

    arg_constraints = _LOC_SCALE
    support = constraints.positive
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args=validate_args), ExpTransform(), validate_args)

    @property
    def loc(self) -> Any:
        """The mean of the logarithm."""
        return self.base_dist.loc

    @property
    def scale(self) -> Any:
        """The standard deviation of the logarithm."""
        return self.base_dist.scale

    @property
    def mean(self) -> Any:
        return (self.loc + self.scale.pow(2) / 2).exp()

    @property
    def mode(self) -> Any:
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> Any:
        square = self.scale.pow(2)
        return square.expm1() * (2 * self.loc + square).exp()

    def entropy(self) -> Any:
        return self.base_dist.entropy() + self.loc


class LogisticNormal(TransformedDistribution):
    """A Normal, broken off a stick part by part."""

    arg_constraints = _LOC_SCALE
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    @property
    def loc(self) -> Any:
        """The mean of the normal variables."""
        return self.base_dist.base_dist.loc

    @property
    def scale(self) -> Any:
        """The standard deviation of the normal variables."""
        return self.base_dist.base_dist.scale


class Gumbel(TransformedDistribution):
    """The distribution of maxima: loc - scale log(-log u)."""

    arg_constraints = _LOC_SCALE
    support = constraints.real

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        info = rushlight.finfo(self.loc.dtype)
        low = rushlight.full_like(self.loc, info.tiny)
        base = Uniform(low, rushlight.full_like(self.loc, 1 - info.eps), validate_args=validate_args)
        minus_one = -rushlight.ones_like(self.scale)
        transforms = [
            ExpTransform().inv, AffineTransform(loc=0, scale=minus_one), ExpTransform().inv,
            AffineTransform(loc=self.loc, scale=-self.scale),
        ]  # fmt: skip
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return type(self)(
            self.loc.expand(batch_shape), self.scale.expand(batch_shape), validate_args=self._validate_args
        )

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    @property
    def mean(self) -> Any:
        return self.loc + self.scale * euler_constant

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def stddev(self) -> Any:
        return (math.pi / math.sqrt(6)) * self.scale

    @property
    def variance(self) -> Any:
        return self.stddev.pow(2)

    def entropy(self) -> Any:
        return self.scale.log() + (1 + euler_constant)


class GeneralizedPareto(Distribution):
    """What exceeds a threshold `loc`: density (1 + c z)^(-1/c - 1) / scale with z = (x - loc) / scale."""

    arg_constraints = {**_LOC_SCALE, "concentration": constraints.real}
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.size(), validate_args=validate_args)
        if self._validate_args and not bool((self.scale > 0).all()):
            raise ValueError("scale must be positive")

    def _is_exponential(self) -> Any:
        return rushlight.isclose(self.concentration, rushlight.zeros_like(self.concentration))

    def _safe_concentration(self) -> Any:
        one = rushlight.ones_like(self.concentration)
        return rushlight.where(self._is_exponential(), one, self.concentration)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """From loc on; up to loc - scale / concentration if that is negative."""
        upper = rushlight.where(
            self.concentration < 0, self.loc - self.scale / self._safe_concentration(), math.inf
        )
        return constraints.interval(self.loc, upper)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        return self.icdf(rushlight.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        z = (value - self.loc) / self.scale
        c = self._safe_concentration()
        general = -(1 / c + 1) * rushlight.log1p(c * z)
        return rushlight.where(self._is_exponential(), -z, general) - self.scale.log()

    def log_survival_function(self, value: Any) -> Any:
        """The logarithm of the probability of more than `value`."""
        self._validate_sample(value)
        z = (value - self.loc) / self.scale
        c = self._safe_concentration()
        return rushlight.where(self._is_exponential(), -z, -rushlight.log1p(c * z) / c)

    def log_cdf(self, value: Any) -> Any:
        """The logarithm of the probability of at most `value`."""
        return rushlight.log1p(-self.log_survival_function(value).exp())

    def cdf(self, value: Any) -> Any:
        return 1 - self.log_survival_function(value).exp()

    def icdf(self, value: Any) -> Any:
        c = self._safe_concentration()
        tail = rushlight.log1p(-value)
        z = rushlight.where(self._is_exponential(), -tail, rushlight.expm1(-c * tail) / c)
        return self.loc + self.scale * z

    @property
    def mean(self) -> Any:
        finite = self.loc + self.scale / (
            1 - rushlight.where(self.concentration < 1, self.concentration, 0.0)
        )
        return rushlight.where(self.concentration < 1, finite, math.inf)

    @property
    def variance(self) -> Any:
        c = rushlight.where(self.concentration < 0.5, self.concentration, 0.0)
        finite = self.scale**2 / ((1 - c) ** 2 * (1 - 2 * c))
        return rushlight.where(self.concentration < 0.5, finite, math.inf)

    @property
    def mode(self) -> Any:
        return self.loc

    def entropy(self) -> Any:
        return rushlight.log(self.scale) + self.concentration + 1


class VonMises(Distribution):
    """A distribution on the circle around the angle `loc`."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        # log I0(k) = log(i0e(k)) + k
        normalizer = (
            math.log(2 * math.pi) + rushlight.special.i0e(self.concentration).log() + self.concentration
        )
        return self.concentration * rushlight.cos(value - self.loc) - normalizer

    def sample(self, sample_shape: Any = ()) -> Any:
        """By Best and Fisher's rejection from a wrapped Cauchy distribution, in double. An accepted angle may
        be drawn anew while others are not accepted yet: so do the numbers agree with torch's."""
        shape = self._extended_shape(sample_shape)
        with rushlight.no_grad():
            concentration = self.concentration.double()
            tau = 1 + (1 + 4 * concentration**2).sqrt()
            rho = (tau - (2 * tau).sqrt()) / (2 * concentration)
            proposal = (1 + rho**2) / (2 * rho)
            # For small concentrations the formula loses its digits.
            proposal = rushlight.where(concentration < 1e-5, 1 / concentration + concentration, proposal)
            proposal, concentration = proposal.expand(shape), concentration.expand(shape)
            x = rushlight.empty(shape, dtype=rushlight.float64)
            done = rushlight.zeros(shape, dtype=rushlight.bool)
            while not bool(done.all()):
                u1, u2, u3 = rushlight.rand((3, *shape), dtype=rushlight.float64).unbind()
                z = rushlight.cos(math.pi * u1)
                f = (1 + proposal * z) / (proposal + z)
                c = concentration * (proposal - f)
                accept = ((c * (2 - c) - u2) > 0) | ((c / u2).log() + 1 - c >= 0)
                x = rushlight.where(accept, (u3 - 0.5).sign() * f.clamp(-1, 1).acos(), x)
                done = done | accept
            angle = (x + math.pi + self.loc.double()) % (2 * math.pi) - math.pi
            return angle.to(self.loc.dtype)

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        """1 - I1(k) / I0(k): the circular variance."""
        return 1 - rushlight.special.i1e(self.concentration) / rushlight.special.i0e(self.concentration)


__all__ = [
    "Cauchy", "GeneralizedPareto", "Gumbel", "HalfCauchy", "HalfNormal", "Laplace", "LogNormal",
    "LogisticNormal", "Normal", "Uniform", "VonMises",
]  # fmt: skip
