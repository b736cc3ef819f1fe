"""Probability distributions: samples with gradients, densities, entropies, divergences."""

import sys as _sys

from rushlight.distributions import (
    _combined,
    _discrete,
    _location_scale,
    _multivariate,
    _positive,
    constraint_registry,
    constraints,
    distribution,
    kl,
    transforms,
    utils,
)
from rushlight.distributions._combined import Independent, MixtureSameFamily, TransformedDistribution
from rushlight.distributions._discrete import *
from rushlight.distributions._discrete import __all__ as _discrete_names
from rushlight.distributions._location_scale import *
from rushlight.distributions._location_scale import __all__ as _location_scale_names
from rushlight.distributions._multivariate import *
from rushlight.distributions._multivariate import __all__ as _multivariate_names
from rushlight.distributions._positive import *
from rushlight.distributions._positive import __all__ as _positive_names
from rushlight.distributions.constraint_registry import biject_to, transform_to
from rushlight.distributions.distribution import Distribution, ExponentialFamily
from rushlight.distributions.kl import kl_divergence, register_kl
from rushlight.distributions.transforms import *
from rushlight.distributions.transforms import __all__ as _transform_names

__all__ = [
    "Distribution",
    "ExponentialFamily",
    "Independent",
    "MixtureSameFamily",
    "TransformedDistribution",
    "biject_to",
    "kl_divergence",
    "register_kl",
    "transform_to",
    *_discrete_names,
    *_location_scale_names,
    *_multivariate_names,
    *_positive_names,
    *_transform_names,
]

# torch has a module for each distribution: `torch.distributions.normal` and so on.
_OWN_MODULES = {
    _combined: "independent mixture_same_family transformed_distribution",
    _discrete: "bernoulli binomial categorical continuous_bernoulli geometric multinomial negative_binomial "
    "one_hot_categorical poisson relaxed_bernoulli relaxed_categorical",
    _location_scale: "cauchy generalized_pareto gumbel half_cauchy half_normal laplace log_normal "
    "logistic_normal normal uniform von_mises",
    _multivariate: "dirichlet lkj_cholesky lowrank_multivariate_normal multivariate_normal wishart",
    _positive: "beta chi2 exponential fishersnedecor gamma inverse_gamma kumaraswamy pareto studentT weibull",
    distribution: "exp_family",
}
for _module, _names in _OWN_MODULES.items():
    for _name in _names.split():
        _sys.modules[f"{__name__}.{_name}"] = _module
        globals()[_name] = _module
