"""Probability distributions: samples with gradients, densities, entropies, divergences."""

import sys as _sys

from rushlight.distributions import (
    _categorical,
    _combined,
    _discrete,
    _location_scale,
    _multivariate,
    _positive,
    _relaxed,
    constraint_registry,
    constraints,
    distribution,
    kl,
    transforms,
    utils,
)
from rushlight.distributions._categorical import *
from rushlight.distributions._categorical import __all__ as _categorical_names
from rushlight.distributions._combined import Independent, MixtureSameFamily, TransformedDistribution
from rushlight.distributions._discrete import *
from rushlight.distributions._discrete import __all__ as _discrete_names
from rushlight.distributions._location_scale import *
from rushlight.distributions._location_scale import __all__ as _location_scale_names
from rushlight.distributions._multivariate import *
from rushlight.distributions._multivariate import __all__ as _multivariate_names
from rushlight.distributions._positive import *
from rushlight.distributions._positive import __all__ as _positive_names
from rushlight.distributions._relaxed import *
from rushlight.distributions._relaxed import __all__ as _relaxed_names
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
    *_categorical_names,
    *_discrete_names,
    *_location_scale_names,
    *_multivariate_names,
    *_positive_names,
    *_relaxed_names,
    *_transform_names,
]

# torch has a module for each distribution: `torch.distributions.normal` and so on. Classes name it as theirs,
# for that is where a pickle looks for them.
_OWN_MODULES = {
    _combined: {
        "independent": "Independent", "mixture_same_family": "MixtureSameFamily",
        "transformed_distribution": "TransformedDistribution",
    },
    _categorical: {
        "categorical": "Categorical", "multinomial": "Multinomial",
        "one_hot_categorical": "OneHotCategorical OneHotCategoricalStraightThrough",
    },
    _discrete: {
        "bernoulli": "Bernoulli", "binomial": "Binomial", "continuous_bernoulli": "ContinuousBernoulli",
        "geometric": "Geometric", "negative_binomial": "NegativeBinomial", "poisson": "Poisson",
    },
    _location_scale: {
        "cauchy": "Cauchy", "generalized_pareto": "GeneralizedPareto", "gumbel": "Gumbel",
        "half_cauchy": "HalfCauchy", "half_normal": "HalfNormal", "laplace": "Laplace",
        "log_normal": "LogNormal", "logistic_normal": "LogisticNormal", "normal": "Normal",
        "uniform": "Uniform", "von_mises": "VonMises",
    },
    _multivariate: {
        "dirichlet": "Dirichlet", "lkj_cholesky": "LKJCholesky",
        "lowrank_multivariate_normal": "LowRankMultivariateNormal",
        "multivariate_normal": "MultivariateNormal", "wishart": "Wishart",
    },
    _positive: {
        "beta": "Beta", "chi2": "Chi2", "exponential": "Exponential", "fishersnedecor": "FisherSnedecor",
        "gamma": "Gamma", "inverse_gamma": "InverseGamma", "kumaraswamy": "Kumaraswamy", "pareto": "Pareto",
        "studentT": "StudentT", "weibull": "Weibull",
    },
    _relaxed: {
        "relaxed_bernoulli": "LogitRelaxedBernoulli RelaxedBernoulli",
        "relaxed_categorical": "ExpRelaxedCategorical RelaxedOneHotCategorical",
    },
    distribution: {"exp_family": "ExponentialFamily"},
}  # fmt: skip
for _module, _files in _OWN_MODULES.items():
    for _file, _classes in _files.items():
        _sys.modules[f"{__name__}.{_file}"] = _module
        globals()[_file] = _module
        for _class in _classes.split():
            getattr(_module, _class).__module__ = f"{__name__}.{_file}"
