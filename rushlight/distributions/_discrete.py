"""Distributions of counts and categories, and their continuous relaxations."""

from __future__ import annotations

import math
from typing import Any

import rushlight
from rushlight import Tensor
from rushlight.distributions import constraints
from rushlight.distributions._combined import TransformedDistribution
from rushlight.distributions._positive import Gamma
from rushlight.distributions.distribution import Distribution, ExponentialFamily
from rushlight.distributions.transforms import ExpTransform, SigmoidTransform
from rushlight.distributions.utils import (
    broadcast_all,
    clamp_probs,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)

_PROBS = {"probs": constraints.unit_interval, "logits": constraints.real}
_EITHER = "Either `probs` or `logits` must be specified, but not both."


class _Binary:
    """What has one probability: given as `probs` or as `logits`, the other one is computed when asked for."""

    _param: Any

    def _take(self, probs: Any, logits: Any) -> None:
        if (probs is None) == (logits is None):
            raise ValueError(_EITHER)
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


class Bernoulli(_Binary, ExponentialFamily):
    """1 with probability `probs`, else 0.

    >>> rushlight.distributions.Bernoulli(0.25).log_prob(rushlight.tensor(1.0)).exp()
    tensor(0.2500)
    """

    arg_constraints = _PROBS
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


class ContinuousBernoulli(_Binary, ExponentialFamily):
    """Density proportional to p^x (1 - p)^(1 - x) on [0, 1]."""

    arg_constraints = _PROBS
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


class Geometric(_Binary, Distribution):
    """How many failures come before the first success."""

    arg_constraints = _PROBS
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


class Binomial(_Binary, Distribution):
    """How many of `total_count` trials succeed."""

    arg_constraints = {"total_count": constraints.nonnegative_integer, **_PROBS}
    has_enumerate_support = True

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        if (probs is None) == (logits is None):
            raise ValueError(_EITHER)
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


class NegativeBinomial(_Binary, Distribution):
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
            raise ValueError(_EITHER)
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


class Categorical(Distribution):
    """A number 0 ... n-1 with the probabilities along the last dimension.

    >>> rushlight.distributions.Categorical(rushlight.tensor([1.0, 3.0])).probs
    tensor([0.2500, 0.7500])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        if (probs is None) == (logits is None):
            raise ValueError(_EITHER)
        given: Tensor = probs if probs is not None else logits
        if given.dim() < 1:
            name = "probs" if probs is not None else "logits"
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if probs is not None:
            self.probs = self._param = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = self._param = logits - logits.logsumexp(dim=-1, keepdim=True)
        self._num_events = self._param.size()[-1]
        super().__init__(self._param.size()[:-1], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        """0 ... n-1."""
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def logits(self) -> Any:
        """The logarithms of the probabilities."""
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Any:
        """The probabilities."""
        return logits_to_probs(self.logits)

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter."""
        return self._param.size()

    @property
    def mean(self) -> Any:
        return rushlight.full(
            self._extended_shape(), math.nan, dtype=self.probs.dtype, device=self.probs.device
        )

    @property
    def mode(self) -> Any:
        return self.probs.argmax(dim=-1)

    @property
    def variance(self) -> Any:
        return self.mean

    def sample(self, sample_shape: Any = ()) -> Any:
        sample_shape = rushlight.Size(sample_shape)
        with rushlight.no_grad():
            rows = self.probs.reshape(-1, self._num_events)
            drawn = rushlight.multinomial(rows, sample_shape.numel(), True).T
            return drawn.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        value = value.long().unsqueeze(-1)
        value, log_pmf = rushlight.broadcast_tensors(value, self.logits)
        return log_pmf.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Any:
        logits = rushlight.clamp(self.logits, min=rushlight.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Any:
        values = rushlight.arange(self._num_events, dtype=rushlight.int64, device=self._param.device)
        values = values.reshape((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values


class _OfCategorical(Distribution):
    """What is drawn from a Categorical has its parameters."""

    _categorical: Categorical

    @property
    def _param(self) -> Any:
        return self._categorical._param

    @property
    def probs(self) -> Any:
        """The probabilities."""
        return self._categorical.probs

    @property
    def logits(self) -> Any:
        """The logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter."""
        return self._categorical.param_shape


class OneHotCategorical(_OfCategorical):
    """A category as a vector with a single one."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits)
        shape = self._categorical.param_shape
        super().__init__(self._categorical.batch_shape, shape[-1:], validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self._categorical.probs

    @property
    def mode(self) -> Any:
        probs = self._categorical.probs
        return rushlight.nn.functional.one_hot(probs.argmax(-1), probs.shape[-1]).to(probs)

    @property
    def variance(self) -> Any:
        return self._categorical.probs * (1 - self._categorical.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        with rushlight.no_grad():
            indices = self._categorical.sample(sample_shape)
            return rushlight.nn.functional.one_hot(indices, self._categorical._num_events).to(self.probs)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self) -> Any:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Any:
        n = self.event_shape[0]
        values = rushlight.eye(n, dtype=self._param.dtype, device=self._param.device)
        values = values.reshape((n,) + (1,) * len(self.batch_shape) + (n,))
        return values.expand((n, *self.batch_shape, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """The same whose samples pass gradients on to the probabilities."""

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Any:
        samples = self.sample(sample_shape)
        probs = self._categorical.probs
        return samples + (probs - probs.detach())


class Multinomial(_OfCategorical):
    """How often each category comes in `total_count` draws."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    total_count: int

    def __init__(
        self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        Binomial(total_count=total_count, probs=self.probs)  # says what is wrong with total_count
        shape = self._categorical.param_shape
        super().__init__(self._categorical.batch_shape, shape[-1:], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        """Counts that sum to at most total_count."""
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Any:
        return self.probs * self.total_count

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        sample_shape = rushlight.Size(sample_shape)
        with rushlight.no_grad():
            drawn = self._categorical.sample(rushlight.Size((self.total_count,)) + sample_shape)
            drawn = drawn.permute(*range(1, drawn.dim()), 0)  # the draws last
            counts = rushlight.zeros(self._extended_shape(sample_shape), dtype=drawn.dtype)
            counts = counts.scatter_add(-1, drawn, rushlight.ones_like(drawn))
            return counts.type_as(self.probs)

    def entropy(self) -> Any:
        n = rushlight.tensor(self.total_count)
        terms = self._categorical.entropy() * self.total_count - rushlight.lgamma(n + 1)
        support = rushlight.arange(self.total_count + 1).reshape((-1,) + (1,) * len(self._batch_shape) + (1,))
        binomial = Binomial(total_count=self.total_count, probs=self.probs)
        weights = rushlight.exp(binomial.log_prob(support.to(self.probs)))
        return terms + (weights * rushlight.lgamma(support + 1)).sum([0, -1])

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        factorials = rushlight.lgamma(value.sum(-1) + 1) - rushlight.lgamma(value + 1).sum(-1)
        logits = logits.masked_fill((value == 0) & (logits == -math.inf), 0)
        return factorials + (logits * value).sum(-1)


class LogitRelaxedBernoulli(_Binary, Distribution):
    """The logit of a RelaxedBernoulli."""

    arg_constraints = _PROBS
    support = constraints.real
    has_rsample = True
    _not_expanded = ("temperature",)

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.temperature = temperature
        self._take(probs, logits)
        super().__init__(self._param.size(), validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(rushlight.rand(shape, dtype=probs.dtype, device=probs.device))
        return (u.log() - (-u).log1p() + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        diff = logits - value.mul(self.temperature)
        return rushlight.as_tensor(self.temperature).log() + diff - 2 * diff.exp().log1p()


class RelaxedBernoulli(TransformedDistribution):
    """A Bernoulli softened by a temperature: samples between 0 and 1 with gradients."""

    arg_constraints = _PROBS
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)

    @property
    def temperature(self) -> Any:
        """How soft: towards 0 samples become 0 or 1."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Any:
        """The logits."""
        return self.base_dist.logits

    @property
    def probs(self) -> Any:
        """The probabilities."""
        return self.base_dist.probs


class ExpRelaxedCategorical(Distribution):
    """The logarithm of a RelaxedOneHotCategorical."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector
    has_rsample = True
    _not_expanded = ("temperature",)

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        shape = self._categorical.param_shape
        super().__init__(self._categorical.batch_shape, shape[-1:], validate_args=validate_args)

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter."""
        return self._categorical.param_shape

    @property
    def logits(self) -> Any:
        """The logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def probs(self) -> Any:
        """The probabilities."""
        return self._categorical.probs

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        uniforms = clamp_probs(rushlight.rand(shape, dtype=self.logits.dtype, device=self.logits.device))
        scores = (self.logits - (-uniforms.log()).log()) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value: Any) -> Any:
        n = self._categorical._num_events
        self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        scale = math.lgamma(n) - rushlight.log(rushlight.as_tensor(self.temperature)).mul(-(n - 1))
        score = logits - value.mul(self.temperature)
        return (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1) + scale


class RelaxedOneHotCategorical(TransformedDistribution):
    """A OneHotCategorical softened by a temperature: samples on the simplex with gradients."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    @property
    def temperature(self) -> Any:
        """How soft: towards 0 samples become one-hot."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Any:
        """The logarithms of the probabilities."""
        return self.base_dist.logits

    @property
    def probs(self) -> Any:
        """The probabilities."""
        return self.base_dist.probs


__all__ = [
    "Bernoulli", "Binomial", "Categorical", "ContinuousBernoulli", "ExpRelaxedCategorical", "Geometric",
    "LogitRelaxedBernoulli", "Multinomial", "NegativeBinomial", "OneHotCategorical",
    "OneHotCategoricalStraightThrough", "Poisson", "RelaxedBernoulli", "RelaxedOneHotCategorical",
]  # fmt: skip
