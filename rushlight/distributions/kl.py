"""kl_divergence: the distance of one distribution from another, where there is a formula for it."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any

import rushlight
from rushlight.distributions._categorical import Categorical, OneHotCategorical
from rushlight.distributions._combined import Independent, TransformedDistribution
from rushlight.distributions._discrete import (
    Bernoulli,
    Binomial,
    ContinuousBernoulli,
    Geometric,
    Poisson,
)
from rushlight.distributions._location_scale import Cauchy, Gumbel, HalfNormal, Laplace, Normal, Uniform
from rushlight.distributions._multivariate import (
    Dirichlet,
    LowRankMultivariateNormal,
    MultivariateNormal,
    _half_log_det,
    _mahalanobis,
)
from rushlight.distributions._positive import Beta, Exponential, Gamma, Pareto
from rushlight.distributions.distribution import ExponentialFamily
from rushlight.distributions.utils import _sum_rightmost, euler_constant

__all__ = ["kl_divergence", "register_kl"]

_KL_REGISTRY: dict[tuple[type, type], Callable] = {}
inf = math.inf


def register_kl(type_p: Any, type_q: Any) -> Callable:
    """Decorates a function that computes kl_divergence for a pair of types."""
    if not isinstance(type_p, type):  # torch takes any class: some wrap distributions without deriving
        raise TypeError(f"Expected type_p to be a Distribution subclass but got {type_p}")
    if not isinstance(type_q, type):  # torch takes any class: some wrap distributions without deriving
        raise TypeError(f"Expected type_q to be a Distribution subclass but got {type_q}")

    def add(function: Callable) -> Callable:
        _KL_REGISTRY[type_p, type_q] = function
        _find.cache_clear()
        return function

    return add


@functools.cache
def _find(type_p: Any, type_q: Any) -> Callable | None:
    """The function for the closest pair of base classes, the first of the two deciding."""
    pairs = [(p, q) for p, q in _KL_REGISTRY if issubclass(type_p, p) and issubclass(type_q, q)]
    if not pairs:
        return None
    depth = type_p.__mro__.index, type_q.__mro__.index
    left = min(pairs, key=lambda pair: (depth[0](pair[0]), depth[1](pair[1])))
    right = min(pairs, key=lambda pair: (depth[1](pair[1]), depth[0](pair[0])))
    if _KL_REGISTRY[left] is not _KL_REGISTRY[right]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please "
            f"register_kl({left[0].__name__}, {right[1].__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return _KL_REGISTRY[left]


def kl_divergence(p: Any, q: Any) -> Any:
    """The mean of log p(x) - log q(x) for x from p.

    >>> normal = rushlight.distributions.Normal
    >>> rushlight.distributions.kl_divergence(normal(0.0, 1.0), normal(1.0, 1.0))
    tensor(0.5000)
    """
    kinds: Any = type(p), type(q)
    function = _find(*kinds)
    if function is None:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}"
        )
    return function(p, q)


def _infinite_like(tensor: Any) -> Any:
    return rushlight.full_like(tensor, inf)


def _x_log_x(tensor: Any) -> Any:
    return rushlight.special.xlogy(tensor, tensor)


# ---- the same family on both sides


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Any:
    softplus = rushlight.nn.functional.softplus
    one = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    one = rushlight.where(q.probs == 0, inf, one)
    one = rushlight.where(p.probs == 0, 0.0, one)
    zero = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    zero = rushlight.where(q.probs == 1, inf, zero)
    zero = rushlight.where(p.probs == 1, 0.0, zero)
    return one + zero


@register_kl(Beta, Beta)
def _beta(p: Any, q: Any) -> Any:
    total_p, total_q = p.concentration1 + p.concentration0, q.concentration1 + q.concentration0
    normalizers = (
        q.concentration1.lgamma() + q.concentration0.lgamma() + total_p.lgamma()
        - (p.concentration1.lgamma() + p.concentration0.lgamma() + total_q.lgamma())
    )  # fmt: skip
    return (
        normalizers
        + (p.concentration1 - q.concentration1) * rushlight.digamma(p.concentration1)
        + (p.concentration0 - q.concentration0) * rushlight.digamma(p.concentration0)
        + (total_q - total_p) * rushlight.digamma(total_p)
    )


@register_kl(Binomial, Binomial)
def _binomial(p: Any, q: Any) -> Any:
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not implemented"
        )
    kl = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return rushlight.where((p.total_count > q.total_count).expand(kl.shape), inf, kl)


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Any:
    t = p.probs * (p.logits - q.logits)
    t = rushlight.where((q.probs == 0).expand(t.shape), inf, t)
    return rushlight.where((p.probs == 0).expand(t.shape), 0.0, t).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: Any, q: Any) -> Any:
    return _categorical(p._categorical, q._categorical)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: Any, q: Any) -> Any:
    return (
        p.mean * (p.logits - q.logits) + p._cont_bern_log_norm() + rushlight.log1p(-p.probs)
        - q._cont_bern_log_norm() - rushlight.log1p(-q.probs)
    )  # fmt: skip


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Any:
    total_p, total_q = p.concentration.sum(-1), q.concentration.sum(-1)
    normalizers = total_p.lgamma() - total_q.lgamma()
    terms = (p.concentration.lgamma() - q.concentration.lgamma()).sum(-1)
    slope = p.concentration.digamma() - total_p.digamma().unsqueeze(-1)
    return normalizers - terms + ((p.concentration - q.concentration) * slope).sum(-1)


@register_kl(Exponential, Exponential)
def _exponential(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_expfamily_expfamily(p: Any, q: Any) -> Any:
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed using Bregman "
            "divergences"
        )
    others = q._natural_params
    params, normalizer, gradients = p._differentiated()
    result = q._log_normalizer(*others) - normalizer
    for one, other, gradient in zip(params, others, gradients):
        term = (other - one) * gradient
        result = result - _sum_rightmost(term, len(q.event_shape))
    return result


@register_kl(Gamma, Gamma)
def _gamma(p: Any, q: Any) -> Any:
    return (
        q.concentration * (p.rate / q.rate).log()
        + rushlight.lgamma(q.concentration)
        - rushlight.lgamma(p.concentration)
        + (p.concentration - q.concentration) * rushlight.digamma(p.concentration)
        + (q.rate - p.rate) * (p.concentration / p.rate)
    )


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Any, q: Any) -> Any:
    ratio, q_at, p_at = p.scale / q.scale, q.loc / q.scale, p.loc / q.scale
    moment = rushlight.exp(q_at + (1 + ratio).lgamma() - p_at)
    return ratio * euler_constant - ratio.log() - q_at + p_at + moment - (1 + euler_constant)


@register_kl(Geometric, Geometric)
def _geometric(p: Any, q: Any) -> Any:
    return -p.entropy() - rushlight.log1p(-q.probs) / p.probs - q.logits


@register_kl(Laplace, Laplace)
def _laplace(p: Any, q: Any) -> Any:
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + distance / q.scale + ratio * rushlight.exp(-distance / p.scale) - 1


@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> Any:
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: Any, q: Any) -> Any:
    return _normal(p.base_dist, q.base_dist)


@register_kl(Pareto, Pareto)
def _pareto(p: Any, q: Any) -> Any:
    ratio = q.alpha / p.alpha
    result = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return rushlight.where(p.support.lower_bound < q.support.lower_bound, inf, result)


@register_kl(Poisson, Poisson)
def _poisson(p: Any, q: Any) -> Any:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Any:
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return rushlight.where((q.low > p.low) | (q.high < p.high), inf, result)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Any, q: Any) -> Any:
    above = ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log()
    return above - (4 * p.scale * q.scale).log()


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Any:
    if p.transforms != q.transforms:
        raise NotImplementedError
    if p.event_shape != q.event_shape:
        raise NotImplementedError
    return _sum_rightmost(
        kl_divergence(p.base_dist, q.base_dist), len(p.event_shape) - len(p.base_dist.event_shape)
    )


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


def _normals(p: Any, q: Any, half_log_dets: Any, tril_q: Any, factors: Any) -> Any:
    """Between normal vectors: q's Cholesky factor, and matrices whose columns make up p's covariance."""
    if p.event_shape != q.event_shape:
        raise ValueError("KL-divergence between two multivariate normals with different event shapes")
    trace: Any = 0
    for factor in factors:
        batch = rushlight.broadcast_shapes(tril_q.shape[:-2], factor.shape[:-2])
        solved = rushlight.linalg.solve_triangular(
            tril_q.expand(batch + tril_q.shape[-2:]), factor.expand(batch + factor.shape[-2:]), upper=False
        )
        trace = trace + solved.pow(2).sum((-2, -1))
    distance = _mahalanobis(tril_q, q.loc - p.loc)
    return half_log_dets + 0.5 * (trace + distance - p.event_shape[0])


def _tril_of(d: Any) -> Any:
    low_rank = isinstance(d, LowRankMultivariateNormal)
    return d.scale_tril if low_rank else d._unbroadcasted_scale_tril


@register_kl(MultivariateNormal, MultivariateNormal)
@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _multivariate_normal(p: Any, q: Any) -> Any:
    tril_p, tril_q = _tril_of(p), _tril_of(q)
    return _normals(p, q, _half_log_det(tril_q) - _half_log_det(tril_p), tril_q, [tril_p])


# ---- different families: minus the entropy of p, minus the mean of log q


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Any, q: Any) -> Any:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Beta, ContinuousBernoulli)
def _beta_continuous_bernoulli(p: Any, q: Any) -> Any:
    return -p.entropy() - p.mean * q.logits - rushlight.log1p(-q.probs) - q._cont_bern_log_norm()


@register_kl(Beta, Exponential)
def _beta_exponential(p: Any, q: Any) -> Any:
    return -p.entropy() - q.rate.log() + q.rate * p.mean


@register_kl(Beta, Gamma)
def _beta_gamma(p: Any, q: Any) -> Any:
    mean_log = p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    return (
        -p.entropy() - q.concentration * q.rate.log() + q.concentration.lgamma()
        - (q.concentration - 1) * mean_log + q.rate * p.mean
    )  # fmt: skip


@register_kl(Beta, Normal)
def _beta_normal(p: Any, q: Any) -> Any:
    second = p.variance + p.mean.pow(2)
    return -p.entropy() + _against_normal(p.mean, second, q)


def _against_normal(mean: Any, second: Any, q: Any) -> Any:
    """Minus the mean of log q(x) for a normal q, from the first two moments of x."""
    square = q.scale.pow(2)
    constant = 0.5 * (2 * math.pi * square).log()
    return constant + (second * 0.5 - mean * q.loc + q.loc.pow(2) * 0.5) / square


@register_kl(Beta, Uniform)
def _beta_uniform(p: Any, q: Any) -> Any:
    result = -p.entropy() + (q.high - q.low).log()
    return rushlight.where((q.low > p.support.lower_bound) | (q.high < p.support.upper_bound), inf, result)


@register_kl(ContinuousBernoulli, Exponential)
def _continuous_bernoulli_exponential(p: Any, q: Any) -> Any:
    return -p.entropy() - rushlight.log(q.rate) + q.rate * p.mean


@register_kl(ContinuousBernoulli, Normal)
def _continuous_bernoulli_normal(p: Any, q: Any) -> Any:
    return -p.entropy() + _against_normal(p.mean, p.variance + p.mean.pow(2), q)


@register_kl(ContinuousBernoulli, Uniform)
def _continuous_bernoulli_uniform(p: Any, q: Any) -> Any:
    result = -p.entropy() + (q.high - q.low).log()
    outside = rushlight.max(
        rushlight.ge(q.low, p.support.lower_bound), rushlight.le(q.high, p.support.upper_bound)
    )
    return rushlight.where(outside, rushlight.ones_like(result) * inf, result)


@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return (
        -q.concentration * ratio.log() + ratio + q.concentration.lgamma()
        + q.concentration * euler_constant - (1 + euler_constant)
    )  # fmt: skip


@register_kl(Exponential, Gumbel)
def _exponential_gumbel(p: Any, q: Any) -> Any:
    product, at = p.rate * q.scale, q.loc / q.scale
    return (
        product.log() - 1 - at + product.reciprocal()
        + rushlight.exp(at) * product / (1 + product)
    )  # fmt: skip


@register_kl(Exponential, Normal)
def _exponential_normal(p: Any, q: Any) -> Any:
    return p.rate.log() - 1 + _against_normal(p.rate.reciprocal(), 2 * p.rate.pow(-2), q)


@register_kl(Gamma, Exponential)
def _gamma_exponential(p: Any, q: Any) -> Any:
    return -p.entropy() - q.rate.log() + q.rate * p.concentration / p.rate


@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p: Any, q: Any) -> Any:
    product, at = p.rate * q.scale, q.loc / q.scale
    return (
        (p.concentration - 1) * p.concentration.digamma() - p.concentration.lgamma() - p.concentration
        + product.log() + p.concentration / product - at
        + rushlight.exp(at) * (1 + product.reciprocal()).pow(-p.concentration)
    )  # fmt: skip


@register_kl(Gamma, Normal)
def _gamma_normal(p: Any, q: Any) -> Any:
    return -p.entropy() + _against_normal(p.mean, p.variance + p.mean.pow(2), q)


@register_kl(Gumbel, Normal)
def _gumbel_normal(p: Any, q: Any) -> Any:
    ratio = p.scale / q.scale
    mean = (p.loc + p.scale * euler_constant - q.loc) / q.scale
    return (
        -ratio.log() + 0.5 * math.log(2 * math.pi) - (1 + euler_constant)
        + 0.5 * (ratio * math.pi).pow(2) / 6 + 0.5 * mean.pow(2)
    )  # fmt: skip


@register_kl(Laplace, Normal)
def _laplace_normal(p: Any, q: Any) -> Any:
    return -p.entropy() + _against_normal(p.loc, p.variance + p.loc.pow(2), q)


@register_kl(Normal, Gumbel)
def _normal_gumbel(p: Any, q: Any) -> Any:
    at, ratio = (p.loc - q.loc) / q.scale, (p.scale / q.scale).pow(2)
    return -p.entropy() + q.scale.log() + at + rushlight.exp(-at + 0.5 * ratio)


@register_kl(Normal, Laplace)
def _normal_laplace(p: Any, q: Any) -> Any:
    difference, root = p.loc - q.loc, math.sqrt(2)
    z = difference / p.scale
    mean_distance = math.sqrt(2 / math.pi) * p.scale * rushlight.exp(-0.5 * z.pow(2)) + difference * (
        rushlight.erf(z / root)
    )
    return -p.entropy() + (2 * q.scale).log() + mean_distance / q.scale


@register_kl(Pareto, Exponential)
def _pareto_exponential(p: Any, q: Any) -> Any:
    product = p.scale * q.rate
    result = (p.alpha / product).log() - p.alpha.reciprocal() + p.alpha * product / (p.alpha - 1) - 1
    return rushlight.where(p.alpha <= 1, inf, result)


@register_kl(Pareto, Gamma)
def _pareto_gamma(p: Any, q: Any) -> Any:
    common = p.scale.log() + p.alpha.reciprocal()
    result = (
        p.alpha.log() - common + q.concentration.lgamma() - q.concentration * q.rate.log()
        + (1 - q.concentration) * common + q.rate * p.alpha * p.scale / (p.alpha - 1) - 1
    )  # fmt: skip
    return rushlight.where(p.alpha <= 1, inf, result)


@register_kl(Pareto, Normal)
def _pareto_normal(p: Any, q: Any) -> Any:
    mean = p.alpha * p.scale / (p.alpha - 1)
    second = p.alpha * p.scale.pow(2) / (p.alpha - 2)
    return rushlight.where(p.alpha <= 2, inf, -p.entropy() + _against_normal(mean, second, q))


@register_kl(Uniform, Beta)
def _uniform_beta(p: Any, q: Any) -> Any:
    width = p.high - p.low
    low = (q.concentration1 - 1) * (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    high = (q.concentration0 - 1) * (_x_log_x(1 - p.high) - _x_log_x(1 - p.low) + width) / width
    normalizer = (
        q.concentration1.lgamma() + q.concentration0.lgamma()
        - (q.concentration1 + q.concentration0).lgamma()
    )  # fmt: skip
    result = high - low + normalizer - width.log()
    return rushlight.where((p.high > q.support.upper_bound) | (p.low < q.support.lower_bound), inf, result)


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous_bernoulli(p: Any, q: Any) -> Any:
    result = -p.entropy() - p.mean * q.logits - rushlight.log1p(-q.probs) - q._cont_bern_log_norm()
    outside = rushlight.max(
        rushlight.ge(p.high, q.support.upper_bound), rushlight.le(p.low, q.support.lower_bound)
    )
    return rushlight.where(outside, rushlight.ones_like(result) * inf, result)


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Any, q: Any) -> Any:
    result = q.rate * (p.high + p.low) / 2 - ((p.high - p.low) * q.rate).log()
    return rushlight.where(p.low < q.support.lower_bound, inf, result)


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Any, q: Any) -> Any:
    width = p.high - p.low
    mean_log = (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    result = (
        -width.log() + q.concentration.lgamma() - q.concentration * q.rate.log()
        + (1 - q.concentration) * mean_log + q.rate * (p.high + p.low) / 2
    )  # fmt: skip
    return rushlight.where(p.low < q.support.lower_bound, inf, result)


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p: Any, q: Any) -> Any:
    scaled = q.scale / (p.high - p.low)
    high, low = (p.high - q.loc) / q.scale, (p.low - q.loc) / q.scale
    return scaled.log() + 0.5 * (high + low) - scaled * (rushlight.exp(-high) - rushlight.exp(-low))


@register_kl(Uniform, Normal)
def _uniform_normal(p: Any, q: Any) -> Any:
    return -p.entropy() + _against_normal(p.mean, p.variance + p.mean.pow(2), q)


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Any, q: Any) -> Any:
    width = p.high - p.low
    mean_log = (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    result = mean_log * (q.alpha + 1) - q.alpha * q.scale.log() - q.alpha.log() - width.log()
    return rushlight.where(p.low < q.support.lower_bound, inf, result)


# ---- p has density where q has none


def _beyond(type_p: type, *types_q: type) -> None:
    def infinite(p: Any, q: Any) -> Any:
        like = next(value for value in p.__dict__.values() if isinstance(value, rushlight.Tensor))
        return rushlight.full(p.batch_shape, inf, dtype=like.dtype, device=like.device)

    for type_q in types_q:
        register_kl(type_p, type_q)(infinite)


_beyond(ContinuousBernoulli, Pareto)
_beyond(Exponential, Beta, ContinuousBernoulli, Pareto, Uniform)
_beyond(Gamma, Beta, ContinuousBernoulli, Pareto, Uniform)
_beyond(Gumbel, Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)
_beyond(Laplace, Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)
_beyond(Normal, Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)
_beyond(Pareto, Beta, ContinuousBernoulli, Uniform)
_beyond(Poisson, Bernoulli, Binomial)


@register_kl(Beta, Pareto)
def _beta_pareto(p: Any, q: Any) -> Any:
    return _infinite_like(p.concentration1)
