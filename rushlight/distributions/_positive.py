"""Distributions of positive numbers and fractions: the gamma family and its relatives."""

from __future__ import annotations

import math
from typing import Any

import rushlight
from rushlight.distributions import constraints
from rushlight.distributions._combined import TransformedDistribution
from rushlight.distributions._location_scale import Uniform
from rushlight.distributions.distribution import Distribution, ExponentialFamily
from rushlight.distributions.transforms import AffineTransform, ExpTransform, PowerTransform
from rushlight.distributions.utils import _standard_normal, broadcast_all, euler_constant


class Exponential(ExponentialFamily):
    """Density rate exp(-rate x).

    >>> rushlight.distributions.Exponential(2.0).mean
    tensor(0.5000)
    """

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.size(), validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.rate.reciprocal()

    @property
    def mode(self) -> Any:
        return rushlight.zeros_like(self.rate)

    @property
    def stddev(self) -> Any:
        return self.rate.reciprocal()

    @property
    def variance(self) -> Any:
        return self.rate.pow(-2)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        return rushlight.empty(shape, dtype=self.rate.dtype).exponential_() / self.rate

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        return 1 - rushlight.exp(-self.rate * value)

    def icdf(self, value: Any) -> Any:
        return -rushlight.log1p(-value) / self.rate

    def entropy(self) -> Any:
        return 1.0 - rushlight.log(self.rate)

    @property
    def _natural_params(self) -> tuple:
        return (-self.rate,)

    def _log_normalizer(self, x: Any) -> Any:
        return -rushlight.log(-x)


class Gamma(ExponentialFamily):
    """Density rate^c x^(c-1) exp(-rate x) / Gamma(c) with the concentration c."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.size(), validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.concentration / self.rate

    @property
    def mode(self) -> Any:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Any:
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        value = rushlight._standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        value.detach().clamp_(min=rushlight.finfo(value.dtype).tiny)  # never 0
        return value

    def log_prob(self, value: Any) -> Any:
        value = rushlight.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        self._validate_sample(value)
        return (
            rushlight.xlogy(self.concentration, self.rate)
            + rushlight.xlogy(self.concentration - 1, value)
            - self.rate * value
            - rushlight.lgamma(self.concentration)
        )

    def entropy(self) -> Any:
        return (
            self.concentration
            - rushlight.log(self.rate)
            + rushlight.lgamma(self.concentration)
            + (1.0 - self.concentration) * rushlight.digamma(self.concentration)
        )

    @property
    def _natural_params(self) -> tuple:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x: Any, y: Any) -> Any:
        return rushlight.lgamma(x + 1) + (x + 1) * rushlight.log(-y.reciprocal())

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        return rushlight.special.gammainc(self.concentration, self.rate * value)


class Chi2(Gamma):
    """The sum of `df` squared standard normal variables."""

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self) -> Any:
        """The degrees of freedom."""
        return self.concentration * 2


class InverseGamma(TransformedDistribution):
    """1 / x for x from a Gamma."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        minus_one = -base.rate.new_ones(())
        super().__init__(base, PowerTransform(minus_one), validate_args=validate_args)

    @property
    def concentration(self) -> Any:
        """The concentration."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Any:
        """The rate."""
        return self.base_dist.rate

    @property
    def mean(self) -> Any:
        result = self.rate / (self.concentration - 1)
        return rushlight.where(self.concentration > 1, result, math.inf)

    @property
    def mode(self) -> Any:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Any:
        result = self.rate.square() / ((self.concentration - 1).square() * (self.concentration - 2))
        return rushlight.where(self.concentration > 2, result, math.inf)

    def entropy(self) -> Any:
        return (
            self.concentration
            + self.rate.log()
            + self.concentration.lgamma()
            - (1 + self.concentration) * self.concentration.digamma()
        )


class Beta(ExponentialFamily):
    """Density proportional to x^(concentration1 - 1) (1 - x)^(concentration0 - 1)."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        from rushlight.distributions._multivariate import Dirichlet

        one, zero = broadcast_all(concentration1, concentration0)
        self._dirichlet = Dirichlet(rushlight.stack([one, zero], -1), validate_args=validate_args)
        super().__init__(self._dirichlet._batch_shape, validate_args=validate_args)

    @property
    def concentration1(self) -> Any:
        """The exponent of x, plus one."""
        return self._dirichlet.concentration[..., 0]

    @property
    def concentration0(self) -> Any:
        """The exponent of 1 - x, plus one."""
        return self._dirichlet.concentration[..., 1]

    @property
    def mean(self) -> Any:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Any:
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self) -> Any:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self._dirichlet.rsample(sample_shape).select(-1, 0)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        return self._dirichlet.log_prob(rushlight.stack([value, 1.0 - value], -1))

    def entropy(self) -> Any:
        return self._dirichlet.entropy()

    @property
    def _natural_params(self) -> tuple:
        return self.concentration1, self.concentration0

    def _log_normalizer(self, x: Any, y: Any) -> Any:
        return rushlight.lgamma(x) + rushlight.lgamma(y) - rushlight.lgamma(x + y)


class StudentT(Distribution):
    """A normal variable over the root of an independent Chi2(df) / df."""

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.size(), validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return rushlight.where(self.df > 1, self.loc, math.nan)

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        finite = self.scale.pow(2) * self.df / (self.df - 2)
        heavy = rushlight.where(self.df > 1, rushlight.full_like(self.df, math.inf), math.nan)
        return rushlight.where(self.df > 2, finite, heavy)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        x = _standard_normal(shape, self.df.dtype, self.df.device)
        z = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * (x * rushlight.rsqrt(z / self.df))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        y = (value - self.loc) / self.scale
        normalizer = (
            self.scale.log()
            + 0.5 * self.df.log()
            + 0.5 * math.log(math.pi)
            + rushlight.lgamma(0.5 * self.df)
            - rushlight.lgamma(0.5 * (self.df + 1.0))
        )
        return -0.5 * (self.df + 1.0) * rushlight.log1p(y**2.0 / self.df) - normalizer

    def entropy(self) -> Any:
        beta = rushlight.lgamma(0.5 * self.df) + math.lgamma(0.5) - rushlight.lgamma(0.5 * (self.df + 1))
        slope = rushlight.digamma(0.5 * (self.df + 1)) - rushlight.digamma(0.5 * self.df)
        return self.scale.log() + 0.5 * (self.df + 1) * slope + 0.5 * self.df.log() + beta


class FisherSnedecor(Distribution):
    """The ratio of two independent Chi2 variables, each over its degrees of freedom."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2)
        super().__init__(self.df1.size(), validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return rushlight.where(self.df2 > 2, self.df2 / (self.df2 - 2), math.nan)

    @property
    def mode(self) -> Any:
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return rushlight.where(self.df1 <= 2, math.nan, mode)

    @property
    def variance(self) -> Any:
        finite = (
            2 * self.df2.pow(2) * (self.df1 + self.df2 - 2)
            / (self.df1 * (self.df2 - 2).pow(2) * (self.df2 - 4))
        )  # fmt: skip
        return rushlight.where(self.df2 > 4, finite, math.nan)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        tiny = rushlight.finfo(self.df1.dtype).tiny
        above = self._gamma1.rsample(sample_shape).reshape(shape)
        below = self._gamma2.rsample(sample_shape).reshape(shape)
        below.detach().clamp_(min=tiny)
        ratio = above / below
        ratio.detach().clamp_(min=tiny)
        return ratio

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        one, two, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        normalizer = (one + two).lgamma() - one.lgamma() - two.lgamma()
        density = one * ratio.log() + (one - 1) * rushlight.log(value)
        return normalizer + density - (one + two) * rushlight.log1p(ratio * value)


class Pareto(TransformedDistribution):
    """Density alpha scale^alpha / x^(alpha + 1) from `scale` on."""

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        transforms = [ExpTransform(), AffineTransform(loc=0, scale=self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return type(self)(
            self.scale.expand(batch_shape), self.alpha.expand(batch_shape), validate_args=self._validate_args
        )

    @property
    def mean(self) -> Any:
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    @property
    def mode(self) -> Any:
        return self.scale

    @property
    def variance(self) -> Any:
        a = self.alpha.clamp(min=2)
        return self.scale.pow(2) * a / ((a - 1).pow(2) * (a - 2))

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """From `scale` on."""
        return constraints.greater_than_eq(self.scale)

    def entropy(self) -> Any:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())


class Weibull(TransformedDistribution):
    """scale times a power of an exponential variable."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(rushlight.ones_like(self.scale), validate_args=validate_args)
        transforms = [
            PowerTransform(exponent=self.concentration_reciprocal), AffineTransform(loc=0, scale=self.scale),
        ]  # fmt: skip
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return type(self)(
            self.scale.expand(batch_shape), self.concentration.expand(batch_shape),
            validate_args=self._validate_args,
        )  # fmt: skip

    @property
    def mean(self) -> Any:
        return self.scale * rushlight.exp(rushlight.lgamma(1 + self.concentration_reciprocal))

    @property
    def mode(self) -> Any:
        return self.scale * ((self.concentration - 1) / self.concentration) ** self.concentration.reciprocal()

    @property
    def variance(self) -> Any:
        second = rushlight.exp(rushlight.lgamma(1 + 2 * self.concentration_reciprocal))
        return self.scale.pow(2) * (
            second - rushlight.exp(2 * rushlight.lgamma(1 + self.concentration_reciprocal))
        )

    def entropy(self) -> Any:
        inverse = self.concentration_reciprocal
        return euler_constant * (1 - inverse) + rushlight.log(self.scale * inverse) + 1


class Kumaraswamy(TransformedDistribution):
    """(1 - u^(1/concentration0))^(1/concentration1): a relative of Beta with a simple cdf."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base = Uniform(
            rushlight.full_like(self.concentration0, 0), rushlight.full_like(self.concentration0, 1),
            validate_args=validate_args,
        )  # fmt: skip
        transforms = [
            PowerTransform(exponent=self.concentration0.reciprocal()), AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(exponent=self.concentration1.reciprocal()),
        ]  # fmt: skip
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return type(self)(
            self.concentration1.expand(batch_shape), self.concentration0.expand(batch_shape),
            validate_args=self._validate_args,
        )  # fmt: skip

    def _moment(self, n: int) -> Any:
        arg = 1 + n / self.concentration1
        log_moment = (
            rushlight.lgamma(arg) + rushlight.lgamma(self.concentration0)
            - rushlight.lgamma(arg + self.concentration0)
        )  # fmt: skip
        return self.concentration0 * rushlight.exp(log_moment)

    @property
    def mean(self) -> Any:
        return self._moment(1)

    @property
    def mode(self) -> Any:
        a, b = self.concentration1, self.concentration0
        mode = ((a - 1) / (a * b - 1)) ** a.reciprocal()
        return rushlight.where((a < 1) | (b < 1), math.nan, mode)

    @property
    def variance(self) -> Any:
        return self._moment(2) - self.mean.pow(2)

    def entropy(self) -> Any:
        one, zero = 1 - self.concentration1.reciprocal(), 1 - self.concentration0.reciprocal()
        harmonic = rushlight.digamma(self.concentration0 + 1) + euler_constant
        return zero + one * harmonic - rushlight.log(self.concentration1) - rushlight.log(self.concentration0)


__all__ = [
    "Beta", "Chi2", "Exponential", "FisherSnedecor", "Gamma", "InverseGamma", "Kumaraswamy", "Pareto",
    "StudentT", "Weibull",
]  # fmt: skip
