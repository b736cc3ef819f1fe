"""Relaxed distributions: samples with a gradient that are nearly of one class, at low temperatures."""

from __future__ import annotations

import math
from typing import Any

import rushlight
from rushlight.distributions import constraints
from rushlight.distributions._categorical import Categorical
from rushlight.distributions._combined import TransformedDistribution
from rushlight.distributions._discrete import PROBS, Binary
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.transforms import ExpTransform, SigmoidTransform
from rushlight.distributions.utils import broadcast_all, clamp_probs


class LogitRelaxedBernoulli(Binary, Distribution):
    """The logit of a RelaxedBernoulli."""

    arg_constraints = PROBS
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


class _Relaxed(TransformedDistribution):
    """What is relaxed knows its parameters by its base."""

    has_rsample = True

    @property
    def temperature(self) -> Any:
        """How soft: towards 0 samples become 0 or 1."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Any:
        """The logarithms of the odds, or of the probabilities."""
        return self.base_dist.logits

    @property
    def probs(self) -> Any:
        """The probabilities."""
        return self.base_dist.probs


class RelaxedBernoulli(_Relaxed):
    """A Bernoulli softened by a temperature: samples between 0 and 1 with gradients."""

    arg_constraints = PROBS
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)


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


class RelaxedOneHotCategorical(_Relaxed):
    """A OneHotCategorical softened by a temperature: samples on the simplex with gradients."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)


__all__ = ["ExpRelaxedCategorical", "LogitRelaxedBernoulli", "RelaxedBernoulli", "RelaxedOneHotCategorical"]
