"""Distributions of vectors and matrices."""

from __future__ import annotations

import math
from typing import Any

import rushlight
from rushlight._warn import warn
from rushlight.distributions import constraints
from rushlight.distributions._dirichlet import _Dirichlet, _Dirichlet_backward  # noqa: F401
from rushlight.distributions._positive import Beta
from rushlight.distributions.distribution import Distribution, ExponentialFamily
from rushlight.distributions.utils import _standard_normal, broadcast_all, lazy_property


class Dirichlet(ExponentialFamily):
    """Fractions that sum to one, with density proportional to the product of x_i^(concentration_i - 1)."""

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Any, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        shape = concentration.shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        return _Dirichlet.apply(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        return (
            rushlight.xlogy(self.concentration - 1.0, value).sum(-1)
            + rushlight.lgamma(self.concentration.sum(-1))
            - rushlight.lgamma(self.concentration).sum(-1)
        )

    @property
    def mean(self) -> Any:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Any:
        above = (self.concentration - 1).clamp(min=0.0)
        mode = above / above.sum(-1, True)
        corner = (self.concentration < 1).all(dim=-1)
        best = rushlight.nn.functional.one_hot(mode.argmax(dim=-1), self.concentration.shape[-1]).to(mode)
        return rushlight.where(corner.unsqueeze(-1), best, mode)

    @property
    def variance(self) -> Any:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def entropy(self) -> Any:
        k, total = self.concentration.size(-1), self.concentration.sum(-1)
        return (
            rushlight.lgamma(self.concentration).sum(-1)
            - rushlight.lgamma(total)
            - (k - total) * rushlight.digamma(total)
            - ((self.concentration - 1.0) * rushlight.digamma(self.concentration)).sum(-1)
        )

    @property
    def _natural_params(self) -> tuple:
        return (self.concentration,)

    def _log_normalizer(self, x: Any) -> Any:
        return x.lgamma().sum(-1) - rushlight.lgamma(x.sum(-1))


def _precision_to_scale_tril(precision: Any) -> Any:
    """The Cholesky factor of the inverse of a matrix."""
    flipped = rushlight.linalg.cholesky(rushlight.flip(precision, (-2, -1)))
    inverse = rushlight.transpose(rushlight.flip(flipped, (-2, -1)), -2, -1)
    identity = rushlight.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return rushlight.linalg.solve_triangular(inverse, identity, upper=False)


def _batch_mv(matrix: Any, vector: Any) -> Any:
    return rushlight.matmul(matrix, vector.unsqueeze(-1)).squeeze(-1)


def _half_log_det(tril: Any) -> Any:
    return tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def _mahalanobis(tril: Any, x: Any) -> Any:
    """|L^-1 x|^2."""
    shape = rushlight.broadcast_shapes(tril.shape[:-1], x.shape)
    solved = rushlight.linalg.solve_triangular(
        tril.expand(shape + tril.shape[-1:]), x.expand(shape).unsqueeze(-1), upper=False
    )
    return solved.pow(2).sum((-2, -1))


def _one_matrix(error: type[Exception], *matrices: Any) -> tuple[str, Any]:
    """The only matrix that was given, and its name."""
    names = ("covariance_matrix", "precision_matrix", "scale_tril")
    given = [(name, matrix) for name, matrix in zip(names, matrices, strict=True) if matrix is not None]
    if len(given) != 1:
        raise error("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
    return given[0]


class MultivariateNormal(Distribution):
    """A normal vector with a mean and a covariance, given as such, as its inverse or as Cholesky factor."""

    arg_constraints = {
        "loc": constraints.real_vector, "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite, "scale_tril": constraints.lower_cholesky,
    }  # fmt: skip
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self, loc: Any, covariance_matrix: Any = None, precision_matrix: Any = None, scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        name, matrix = _one_matrix(ValueError, covariance_matrix, precision_matrix, scale_tril)
        if matrix.dim() < 2:
            raise ValueError(
                f"{name}{' matrix' if name == 'scale_tril' else ''} must be at least two-dimensional, with "
                "optional leading batch dimensions"
            )
        batch = rushlight.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand((*batch, -1, -1)))
        self.loc = loc.expand((*batch, -1))
        super().__init__(batch, self.loc.shape[-1:], validate_args=validate_args)
        if scale_tril is not None:
            self._unbroadcasted_scale_tril = scale_tril
        elif covariance_matrix is not None:
            self._unbroadcasted_scale_tril = rushlight.linalg.cholesky(covariance_matrix)
        else:
            self._unbroadcasted_scale_tril = _precision_to_scale_tril(precision_matrix)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(MultivariateNormal, _instance)
        batch_shape = rushlight.Size(batch_shape)
        new.loc = self.loc.expand(batch_shape + self.event_shape)
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        for name in ("covariance_matrix", "scale_tril", "precision_matrix"):
            if name in self.__dict__:
                setattr(
                    new, name, getattr(self, name).expand(batch_shape + self.event_shape + self.event_shape)
                )
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @lazy_property
    def scale_tril(self) -> Any:
        """The Cholesky factor of the covariance."""
        shape = self._batch_shape + self._event_shape + self._event_shape
        return self._unbroadcasted_scale_tril.expand(shape)

    @lazy_property
    def covariance_matrix(self) -> Any:
        """The covariance."""
        tril = self._unbroadcasted_scale_tril
        shape = self._batch_shape + self._event_shape + self._event_shape
        return rushlight.matmul(tril, tril.mT).expand(shape)

    @lazy_property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance."""
        tril = self._unbroadcasted_scale_tril
        identity = rushlight.eye(tril.shape[-1], dtype=tril.dtype, device=tril.device).expand(tril.shape)
        inverse = rushlight.linalg.solve_triangular(tril, identity, upper=False)
        shape = self._batch_shape + self._event_shape + self._event_shape
        return rushlight.matmul(inverse.mT, inverse).expand(shape)

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        shape = self._batch_shape + self._event_shape
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        eps = _standard_normal(self._extended_shape(sample_shape), self.loc.dtype, self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, eps)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        distance = _mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        normalizer = self._event_shape[0] * math.log(2 * math.pi) + distance
        return -0.5 * normalizer - _half_log_det(self._unbroadcasted_scale_tril)

    def entropy(self) -> Any:
        half = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        entropy = half + _half_log_det(self._unbroadcasted_scale_tril)
        return entropy.expand(self._batch_shape) if self._batch_shape else entropy


class LowRankMultivariateNormal(Distribution):
    """A normal vector with covariance W W^T + diag(D), for a thin W."""

    arg_constraints = {
        "loc": constraints.real_vector, "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }  # fmt: skip
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Any, cov_factor: Any, cov_diag: Any, validate_args: bool | None = None) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        if cov_factor.dim() < 2:
            raise ValueError(
                "cov_factor must be at least two-dimensional, with optional leading batch dimensions"
            )
        event = loc.shape[-1:]
        if cov_factor.shape[-2:-1] != event:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event[0]} x m")
        if cov_diag.shape[-1:] != event:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event}")
        batch = rushlight.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        self.loc = loc.expand(batch + event)
        self.cov_factor = cov_factor.expand(batch + cov_factor.shape[-2:])
        self.cov_diag = cov_diag.expand(batch + event)
        super().__init__(batch, event, validate_args=validate_args)

    @lazy_property
    def _capacitance_tril(self) -> Any:
        """The Cholesky factor of I + W^T D^-1 W."""
        m = self.cov_factor.shape[-1]
        scaled = self.cov_factor.mT / self.cov_diag.unsqueeze(-2)
        identity = rushlight.eye(m, dtype=scaled.dtype, device=scaled.device)
        return rushlight.linalg.cholesky(rushlight.matmul(scaled, self.cov_factor) + identity)

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @lazy_property
    def variance(self) -> Any:
        """The diagonal of the covariance."""
        return self.cov_factor.pow(2).sum(-1) + self.cov_diag

    @lazy_property
    def covariance_matrix(self) -> Any:
        """W W^T + diag(D)."""
        return rushlight.matmul(self.cov_factor, self.cov_factor.mT) + rushlight.diag_embed(self.cov_diag)

    @lazy_property
    def scale_tril(self) -> Any:
        """The Cholesky factor of the covariance."""
        return rushlight.linalg.cholesky(self.covariance_matrix)

    @lazy_property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance, by Woodbury's identity."""
        scaled = self.cov_factor.mT / self.cov_diag.unsqueeze(-2)
        a = rushlight.linalg.solve_triangular(self._capacitance_tril, scaled, upper=False)
        return rushlight.diag_embed(self.cov_diag.reciprocal()) - rushlight.matmul(a.mT, a)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        narrow = shape[:-1] + self.cov_factor.shape[-1:]
        eps_w = _standard_normal(narrow, self.loc.dtype, self.loc.device)
        eps_d = _standard_normal(shape, self.loc.dtype, self.loc.device)
        return self.loc + _batch_mv(self.cov_factor, eps_w) + self.cov_diag.sqrt() * eps_d

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        diff = value - self.loc
        scaled = _batch_mv(self.cov_factor.mT / self.cov_diag.unsqueeze(-2), diff)
        distance = (diff.pow(2) / self.cov_diag).sum(-1) - _mahalanobis(self._capacitance_tril, scaled)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + self._log_det() + distance)

    def _log_det(self) -> Any:
        return 2 * _half_log_det(self._capacitance_tril) + self.cov_diag.log().sum(-1)

    def entropy(self) -> Any:
        return 0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._log_det())


class LKJCholesky(Distribution):
    """Cholesky factors of random correlation matrices, uniform for concentration 1."""

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        super().__init__(self.concentration.size(), rushlight.Size((dim, dim)), validate_args)
        # The marginal distributions of the squared norms of the rows ("onion method").
        marginal = self.concentration + 0.5 * (dim - 2)
        offset = rushlight.arange(dim - 1, dtype=self.concentration.dtype, device=self.concentration.device)
        offset = rushlight.cat([offset.new_zeros((1,)), offset])
        self._beta = Beta(offset + 0.5, marginal.unsqueeze(-1) - 0.5 * offset)

    def sample(self, sample_shape: Any = ()) -> Any:
        with rushlight.no_grad():
            y = self._beta.sample(sample_shape).unsqueeze(-1)
            shape = self._extended_shape(sample_shape)
            normal = rushlight.randn(shape, dtype=y.dtype, device=y.device).tril(-1)
            directions = normal / normal.norm(dim=-1, keepdim=True)
            directions = rushlight.where(rushlight.isnan(directions), 0.0, directions)
            w = rushlight.sqrt(y) * directions
            eps = rushlight.finfo(w.dtype).tiny
            diagonal = rushlight.clamp(1 - rushlight.sum(w**2, dim=-1), min=eps).sqrt()
            return w + rushlight.diag_embed(diagonal)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = rushlight.arange(2, self.dim + 1, device=self.concentration.device)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        unnormalized = rushlight.sum(order * diagonal.log(), dim=-1)
        less = self.dim - 1
        alpha = self.concentration + 0.5 * less
        denominator = rushlight.lgamma(alpha) * less
        numerator = rushlight.mvlgamma(alpha - 0.5, less)
        return unnormalized - (0.5 * less * math.log(math.pi) + numerator - denominator)


class Wishart(ExponentialFamily):
    """Random covariance matrices: sums of `df` outer products of normal vectors."""

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    @property
    def arg_constraints(self) -> dict:
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self._event_shape[-1] - 1),
        }

    def __init__(
        self, df: Any, covariance_matrix: Any = None, precision_matrix: Any = None, scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        name, matrix = _one_matrix(AssertionError, covariance_matrix, precision_matrix, scale_tril)
        if matrix.dim() < 2:
            raise ValueError(
                "scale_tril must be at least two-dimensional, with optional leading batch dimensions"
            )
        df = rushlight.as_tensor(df, dtype=matrix.dtype, device=matrix.device)
        batch = rushlight.broadcast_shapes(matrix.shape[:-2], df.shape)
        event = matrix.shape[-2:]
        self.df = df.expand(batch)
        setattr(self, name, matrix.expand((*batch, -1, -1)))
        if bool((self.df <= event[-1] - 1).any()):
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {event[-1] - 1}.")
        if bool((self.df < event[-1]).any()):
            warn(
                "Low df values detected. Singular samples are highly likely to occur for "
                "ndim - 1 < df < ndim."
            )
        super().__init__(batch, event, validate_args=validate_args)
        if scale_tril is not None:
            self._unbroadcasted_scale_tril = scale_tril
        elif covariance_matrix is not None:
            self._unbroadcasted_scale_tril = rushlight.linalg.cholesky(covariance_matrix)
        else:
            self._unbroadcasted_scale_tril = _precision_to_scale_tril(precision_matrix)

    @lazy_property
    def scale_tril(self) -> Any:
        """The Cholesky factor of the scale."""
        return self._unbroadcasted_scale_tril.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def covariance_matrix(self) -> Any:
        """The scale matrix."""
        tril = self._unbroadcasted_scale_tril
        return (tril @ tril.mT).expand(self._batch_shape + self._event_shape)

    @lazy_property
    def precision_matrix(self) -> Any:
        """The inverse of the scale matrix."""
        tril = self._unbroadcasted_scale_tril
        identity = rushlight.eye(tril.shape[-1], dtype=tril.dtype, device=tril.device).expand(tril.shape)
        inverse = rushlight.linalg.solve_triangular(tril, identity, upper=False)
        return (inverse.mT @ inverse).expand(self._batch_shape + self._event_shape)

    @property
    def mean(self) -> Any:
        return self.df.reshape((*self._batch_shape, 1, 1)) * self.covariance_matrix

    @property
    def mode(self) -> Any:
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        factor = rushlight.where(factor <= 0, math.nan, factor)
        return factor.reshape((*self._batch_shape, 1, 1)) * self.covariance_matrix

    @property
    def variance(self) -> Any:
        v = self.covariance_matrix
        diagonal = v.diagonal(dim1=-2, dim2=-1)
        outer = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self.df.reshape((*self._batch_shape, 1, 1)) * (v.pow(2) + outer)

    def rsample(self, sample_shape: Any = (), max_try_correction: int | None = None) -> Any:
        """Draws by `_bartlett`, and again for matrices that are singular after rounding, so many times."""
        sample_shape = rushlight.Size(sample_shape)
        sample = self._bartlett(sample_shape)
        # torch takes the first draw of all for singular: so that both draw the same numbers, again it is.
        again = self._is_definite(sample)
        for _ in range(10 if max_try_correction is None else max_try_correction):
            count = int(again.sum())
            if not count:
                break
            drawn = self._bartlett(rushlight.Size((count,)))
            if count == again.numel():
                sample = drawn.reshape(sample.shape)
            else:
                sample = sample.index_put((again,), drawn)
            again = again.masked_scatter(again, ~self._is_definite(drawn))
        return sample

    def _is_definite(self, sample: Any) -> Any:
        """For each matrix of a sample, or for each batch of them if any is."""
        with rushlight.no_grad():
            definite = self.support.check(sample)
        return (
            definite.flatten(definite.dim() - len(self._batch_shape)).any(-1)
            if self._batch_shape
            else definite
        )

    def _bartlett(self, sample_shape: Any) -> Any:
        """Bartlett's decomposition: a triangle of normals with chi variables on its diagonal."""
        from rushlight.distributions._positive import Chi2

        n = self._event_shape[-1]
        steps = rushlight.arange(n, dtype=self.df.dtype, device=self.df.device)
        chi2 = Chi2(self.df.unsqueeze(-1) - steps)
        eps = rushlight.finfo(self.df.dtype).eps
        diagonal = chi2.rsample(sample_shape).clamp(min=eps).sqrt().diag_embed()
        rows, columns = rushlight.tril_indices(n, n, -1)
        shape = sample_shape + self._batch_shape + (n * (n - 1) // 2,)
        below = rushlight.randn(shape, dtype=self.df.dtype, device=self.df.device)
        noise = rushlight.zeros((*shape[:-1], n * n), dtype=self.df.dtype)
        noise = noise.scatter(-1, (rows * n + columns).expand(shape), below).reshape((*shape[:-1], n, n))
        chol = self._unbroadcasted_scale_tril @ (noise + diagonal)
        return chol @ chol.mT

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        nu, p = self.df, self._event_shape[-1]
        solved = rushlight.cholesky_solve(value, self._unbroadcasted_scale_tril)
        return (
            -nu * (p * math.log(2) / 2 + _half_log_det(self._unbroadcasted_scale_tril))
            - rushlight.mvlgamma(nu / 2, p)
            + (nu - p - 1) / 2 * rushlight.linalg.slogdet(value).logabsdet
            - solved.diagonal(dim1=-2, dim2=-1).sum(dim=-1) / 2
        )

    def entropy(self) -> Any:
        nu, p = self.df, self._event_shape[-1]
        steps = rushlight.arange(p, dtype=nu.dtype, device=nu.device) / 2
        slope = rushlight.digamma((nu / 2).unsqueeze(-1) - steps).sum(-1)
        return (
            (p + 1) * (p * math.log(2) / 2 + _half_log_det(self._unbroadcasted_scale_tril))
            + rushlight.mvlgamma(nu / 2, p)
            - (nu - p - 1) / 2 * slope
            + nu * p / 2
        )

    @property
    def _natural_params(self) -> tuple:
        return -0.5 * self.precision_matrix, 0.5 * (self.df - self._event_shape[-1] - 1)

    def _log_normalizer(self, x: Any, y: Any) -> Any:
        p = x.shape[-1]
        half = y + (p + 1) / 2
        log_det = rushlight.linalg.slogdet(-2 * x).logabsdet
        return half * (p * math.log(2) - log_det) + rushlight.mvlgamma(half, p)


__all__ = ["Dirichlet", "LKJCholesky", "LowRankMultivariateNormal", "MultivariateNormal", "Wishart"]
