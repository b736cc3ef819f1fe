"""Distributions of one yes or no (and its continuous kin) and of counts."""

from __future__ import annotations

import math
from typing import Any

import rushlight
from rushlight.distributions import constraints
from rushlight.distributions._positive import Gamma
from rushlight.distributions.distribution import Distribution, ExponentialFamily
from rushlight.distributions.utils import (
    broadcast_all,
    clamp_probs,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)

PROBS = {"probs": constraints.unit_interval, "logits": constraints.real}
EITHER = "Either `probs` or `logits` must be specified, but not both."


class Binary:
    """What has one probability: given as `probs` or as `logits`, the other one is computed when asked for."""

    _param: Any

    def _take(self, probs: Any, logits: Any) -> None:
        if (probs is None) == (logits is None):
            raise ValueError(EITHER)
        if probs is not None:
            (self.probs,) = broadcast_all(probs)
            self._param = self.probs
        else:
            (self.logits,) = broadcast_all(logits)
            self._param = self.logits

    @lazy_property
    def logits(self) -> Any:
        """log(p / (1 - p))."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Any:
        """The probability of success."""
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter."""
        return self._param.size()


def _bce(logits: Any, value: Any) -> Any:
    """-log of the probability of `value` under logits."""
    return rushlight.nn.functional.binary_cross_entropy_with_logits(logits, value, reduction="none")


class Bernoulli(Binary, ExponentialFamily):
    """1 with probability `probs`, else 0.

    >>> rushlight.distributions.Bernoulli(0.25).log_prob(rushlight.tensor(1.0)).exp()
    tensor(0.2500)
    """

    arg_constraints = PROBS
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._take(probs, logits)
        super().__init__(self._param.size(), validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.probs

    @property
    def mode(self) -> Any:
        mode = (self.probs >= 0.5).to(self.probs)
        return rushlight.where(self.probs == 0.5, math.nan, mode)

    @property
    def variance(self) -> Any:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        with rushlight.no_grad():
            return rushlight.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -_bce(logits, value)

    def entropy(self) -> Any:
        return _bce(self.logits, self.probs)

    def enumerate_support(self, expand: bool = True) -> Any:
        values = rushlight.arange(2, dtype=self._param.dtype, device=self._param.device)
        values = values.reshape((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values

    @property
    def _natural_params(self) -> tuple:
        return (rushlight.logit(self.probs),)

    def _log_normalizer(self, x: Any) -> Any:
        return rushlight.log1p(rushlight.exp(x))


class ContinuousBernoulli(Binary, ExponentialFamily):
    """Density proportional to p^x (1 - p)^(1 - x) on [0, 1]."""

    arg_constraints = PROBS
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self, probs: Any = None, logits: Any = None, lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        self._take(probs, logits)
        if probs is not None:
            # Clamping would hide what is not a probability.
            if validate_args is not None and not bool(self.arg_constraints["probs"].check(self.probs).all()):
                raise ValueError("The parameter probs has invalid values")
            self.probs = self._param = clamp_probs(self.probs)
        self._lims = lims
        super().__init__(self._param.size(), validate_args=validate_args)

    def _outside_unstable_region(self) -> Any:
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut_probs(self) -> Any:
        """The probabilities, kept away from one half, where the formulas divide 0 by 0."""
        return rushlight.where(self._outside_unstable_region(), self.probs, self._lims[0])

    def _cont_bern_log_norm(self) -> Any:
        cut = self._cut_probs()
        below = rushlight.where(cut <= 0.5, cut, 0.0)
        above = rushlight.where(cut >= 0.5, cut, 1.0)
        log_norm = rushlight.log(rushlight.abs(rushlight.log1p(-cut) - rushlight.log(cut))) - rushlight.where(
            cut <= 0.5, rushlight.log1p(-2.0 * below), rushlight.log(2.0 * above - 1.0)
        )
        x = rushlight.pow(self.probs - 0.5, 2)
        taylor = math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x
        return rushlight.where(self._outside_unstable_region(), log_norm, taylor)

    @property
    def mean(self) -> Any:
        cut = self._cut_probs()
        means = cut / (2.0 * cut - 1.0) + 1.0 / (rushlight.log1p(-cut) - rushlight.log(cut))
        x = self.probs - 0.5
        taylor = 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x.pow(2)) * x
        return rushlight.where(self._outside_unstable_region(), means, taylor)

    @property
    def stddev(self) -> Any:
        return rushlight.sqrt(self.variance)

    @property
    def variance(self) -> Any:
        cut = self._cut_probs()
        spread = rushlight.log1p(-cut) - rushlight.log(cut)
        variance = cut * (cut - 1.0) / rushlight.pow(1.0 - 2.0 * cut, 2) + 1.0 / rushlight.pow(spread, 2)
        x = rushlight.pow(self.probs - 0.5, 2)
        taylor = 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x
        return rushlight.where(self._outside_unstable_region(), variance, taylor)

    def sample(self, sample_shape: Any = ()) -> Any:
        with rushlight.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        return self.icdf(rushlight.rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -_bce(logits, value) + self._cont_bern_log_norm()

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        cut = self._cut_probs()
        cdfs = (
            rushlight.pow(cut, value) * rushlight.pow(1.0 - cut, 1.0 - value) + cut - 1.0
        ) / (2.0 * cut - 1.0)  # fmt: skip
        unbounded = rushlight.where(self._outside_unstable_region(), cdfs, value)
        inside = rushlight.where(rushlight.le(value, 0.0), 0.0, unbounded)
        return rushlight.where(rushlight.ge(value, 1.0), 1.0, inside)

    def icdf(self, value: Any) -> Any:
        cut = self._cut_probs()
        numerator = rushlight.log1p(-cut + value * (2.0 * cut - 1.0)) - rushlight.log1p(-cut)
        quantile = numerator / (rushlight.log(cut) - rushlight.log1p(-cut))
        return rushlight.where(self._outside_unstable_region(), quantile, value)

    def entropy(self) -> Any:
        log0, log1 = rushlight.log1p(-self.probs), rushlight.log(self.probs)
        return self.mean * (log0 - log1) - self._cont_bern_log_norm() - log0

    @property
    def _natural_params(self) -> tuple:
        return (self.logits,)

    def _log_normalizer(self, x: Any) -> Any:
        outside = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        cut = rushlight.where(outside, x, self._lims[0] - 0.5)
        log_norm = rushlight.log(rushlight.abs(rushlight.special.expm1(cut))) - rushlight.log(
            rushlight.abs(cut)
        )
        taylor = 0.5 * x + rushlight.pow(x, 2) / 24.0 - rushlight.pow(x, 4) / 2880.0
        return rushlight.where(outside, log_norm, taylor)


class Geometric(Binary, Distribution):
    """How many failures come before the first success."""

    arg_constraints = PROBS
    support = constraints.nonnegative_integer

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._take(probs, logits)
        super().__init__(self._param.size(), validate_args=validate_args)
        if self._validate_args and probs is not None and not bool((self.probs > 0).all()):
            raise ValueError(
                f"Expected parameter probs ({type(self.probs).__name__} of shape "
                f"{tuple(self.probs.shape)}) of "
                f"distribution {self!r} to be positive but found invalid "
                f"values:\n{self.probs[self.probs <= 0]}"
            )

    @property
    def mean(self) -> Any:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Any:
        return rushlight.zeros_like(self.probs)

    @property
    def variance(self) -> Any:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        tiny = rushlight.finfo(self.probs.dtype).tiny
        with rushlight.no_grad():
            u = rushlight.empty(shape, dtype=self.probs.dtype, device=self.probs.device).uniform_(tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        # 0 * log(0) is 0 here.
        probs = rushlight.where((probs == 1) & (value == 0), 0.0, probs)
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self) -> Any:
        return _bce(self.logits, self.probs) / self.probs


class Binomial(Binary, Distribution):
    """How many of `total_count` trials succeed."""

    arg_constraints = {"total_count": constraints.nonnegative_integer, **PROBS}
    has_enumerate_support = True

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        if (probs is None) == (logits is None):
            raise ValueError(EITHER)
        if probs is not None:
            self.total_count, self.probs = broadcast_all(total_count, probs)
            self.total_count = self.total_count.type_as(self.probs)
            self._param = self.probs
        else:
            self.total_count, self.logits = broadcast_all(total_count, logits)
            self.total_count = self.total_count.type_as(self.logits)
            self._param = self.logits
        super().__init__(self._param.size(), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        """0 up to total_count."""
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Any:
        return self.total_count * self.probs

    @property
    def mode(self) -> Any:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        with rushlight.no_grad():
            return rushlight.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        factorials = (
            rushlight.lgamma(self.total_count + 1) - rushlight.lgamma(value + 1)
            - rushlight.lgamma(self.total_count - value + 1)
        )  # fmt: skip
        # n log(1 - p) + k logit(p), with log(1 - p) = -softplus(logit p)
        # log(1 + exp(logits)) without overflow; at 0 both terms of the mean of clamps count for the slope.
        positive = (self.logits.clamp(min=0) + self.logits - self.logits.clamp(max=0)) / 2
        trials = self.total_count * (positive + rushlight.log1p((-self.logits.abs()).exp()))
        return factorials + value * self.logits - trials

    def entropy(self) -> Any:
        total = int(self.total_count.max())
        if not bool((self.total_count == total).all()):
            raise NotImplementedError("Inhomogeneous total count not supported by `entropy`.")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(rushlight.exp(log_prob) * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Any:
        total = int(self.total_count.max())
        if not bool((self.total_count == total).all()):
            raise NotImplementedError("Inhomogeneous total count not supported by `enumerate_support`.")
        values = rushlight.arange(1 + total, dtype=self._param.dtype, device=self._param.device)
        values = values.reshape((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values


class NegativeBinomial(Binary, Distribution):
    """How many successes come before `total_count` failures."""

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0), "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }  # fmt: skip
    support = constraints.nonnegative_integer

    def __init__(
        self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        if (probs is None) == (logits is None):
            raise ValueError(EITHER)
        if probs is not None:
            self.total_count, self.probs = broadcast_all(total_count, probs)
            self.total_count = self.total_count.type_as(self.probs)
            self._param = self.probs
        else:
            self.total_count, self.logits = broadcast_all(total_count, logits)
            self.total_count = self.total_count.type_as(self.logits)
            self._param = self.logits
        super().__init__(self._param.size(), validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.total_count * rushlight.exp(self.logits)

    @property
    def mode(self) -> Any:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Any:
        return self.mean / rushlight.sigmoid(-self.logits)

    @lazy_property
    def _gamma(self) -> Any:
        return Gamma(concentration=self.total_count, rate=rushlight.exp(-self.logits), validate_args=False)

    def sample(self, sample_shape: Any = ()) -> Any:
        with rushlight.no_grad():
            return rushlight.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        logsigmoid = rushlight.nn.functional.logsigmoid
        chances = self.total_count * logsigmoid(-self.logits) + value * logsigmoid(self.logits)
        normalization = (
            -rushlight.lgamma(self.total_count + value) + rushlight.lgamma(1.0 + value)
            + rushlight.lgamma(self.total_count)
        )  # fmt: skip
        normalization = normalization.masked_fill(self.total_count + value == 0.0, 0.0)
        return chances - normalization


class Poisson(ExponentialFamily):
    """Counts of independent events at a rate."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.size(), validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.rate

    @property
    def mode(self) -> Any:
        return self.rate.floor()

    @property
    def variance(self) -> Any:
        return self.rate

    def sample(self, sample_shape: Any = ()) -> Any:
        with rushlight.no_grad():
            return rushlight.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        rate, value = broadcast_all(self.rate, value)
        return rushlight.xlogy(value, rate) - rate - (value + 1).lgamma()

    @property
    def _natural_params(self) -> tuple:
        return (rushlight.log(self.rate),)

    def _log_normalizer(self, x: Any) -> Any:
        return rushlight.exp(x)


__all__ = ["Bernoulli", "Binomial", "ContinuousBernoulli", "Geometric", "NegativeBinomial", "Poisson"]
