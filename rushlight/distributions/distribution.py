"""Distribution and ExponentialFamily: what every distribution has."""

from __future__ import annotations

import warnings
from typing import Any, Self

import rushlight
from rushlight import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.utils import lazy_property
from rushlight.ops._examples import everywhere

__all__ = ["Distribution", "ExponentialFamily"]


class Distribution:
    """A batch of probability distributions: `batch_shape` independent ones, samples of `event_shape` each."""

    has_rsample: Any = False
    has_enumerate_support: Any = False
    _validate_args = __debug__
    _not_expanded: tuple[str, ...] = ()

    @property
    def arg_constraints(self) -> Any:
        """What each parameter must satisfy."""
        raise NotImplementedError

    @property
    def support(self) -> Any:
        """What a sample satisfies."""
        raise NotImplementedError

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Switches checks of arguments on or off for distributions made from now on."""
        if value not in (True, False):
            raise ValueError
        Distribution._validate_args = value

    def __init__(
        self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None
    ) -> None:
        self._batch_shape = rushlight.Size(batch_shape)
        self._event_shape = rushlight.Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            try:
                arg_constraints = self.arg_constraints
            except NotImplementedError:
                arg_constraints = {}
                warnings.warn(
                    f"{type(self)} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or "
                    "initialize the distribution with `validate_args=False` to turn off validation.",
                    stacklevel=2,
                )
            for name, constraint in arg_constraints.items():
                lazy = any(isinstance(vars(cls).get(name), lazy_property) for cls in type(self).__mro__)
                given = name in self.__dict__ or not lazy
                if constraints.is_dependent(constraint) or not given:
                    continue
                value = getattr(self, name)
                if not everywhere(constraint.check(value)):
                    raise ValueError(
                        f"Expected parameter {name} ({type(value).__name__} of shape "
                        f"{tuple(value.shape)}) of "
                        f"distribution {self!r} to satisfy the constraint {constraint!r}, but found invalid "
                        f"values:\n{value}"
                    )
        super().__init__()  # a distribution may be a module as well

    def expand(self, batch_shape: Any, _instance: Any = None) -> Self:
        """The same distributions for a larger batch."""
        ours = next(cls for cls in type(self).__mro__ if cls.__module__.startswith(__package__))
        if _instance is None and ours.__module__ in (Distribution.__module__, f"{__package__}.exp_family"):
            raise NotImplementedError
        new = self._get_checked_instance(ours, _instance)
        batch_shape = rushlight.Size(batch_shape)
        batch = self._batch_shape
        for name, value in self.__dict__.items():
            if name in self._not_expanded:
                pass
            elif isinstance(value, Tensor) and value.shape[: len(batch)] == batch:
                value = value.expand(batch_shape + value.shape[len(batch) :])
            elif isinstance(value, Distribution):
                value = value.expand(batch_shape + value._batch_shape[len(batch) :])
            new.__dict__[name] = value
        new._batch_shape = batch_shape
        new.__dict__["_validate_args"] = self._validate_args
        return new

    @property
    def batch_shape(self) -> Any:
        """How many distributions there are."""
        return self._batch_shape

    @property
    def event_shape(self) -> Any:
        """The shape of one sample of one distribution."""
        return self._event_shape

    @property
    def mean(self) -> Any:
        """The mean."""
        raise NotImplementedError

    @property
    def mode(self) -> Any:
        """The value of greatest density."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Any:
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self) -> Any:
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = ()) -> Any:
        """Samples without a gradient."""
        with rushlight.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Samples through which gradients reach the parameters."""
        raise NotImplementedError

    def sample_n(self, n: int) -> Any:
        """n samples."""
        warnings.warn(
            "`sample_n(n)` will be deprecated. Use `sample((n,))` instead.", FutureWarning, stacklevel=2
        )
        return self.sample(rushlight.Size((n,)))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density, or of the probability, at `value`."""
        raise NotImplementedError

    def cdf(self, value: Any) -> Any:
        """The probability of samples up to `value`."""
        raise NotImplementedError

    def icdf(self, value: Any) -> Any:
        """The inverse of cdf."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Any:
        """All values of a discrete distribution, along a new first dimension."""
        raise NotImplementedError

    def entropy(self) -> Any:
        """The entropy in nats."""
        raise NotImplementedError

    def perplexity(self) -> Any:
        """exp(entropy)."""
        return rushlight.exp(self.entropy())

    def _extended_shape(self, sample_shape: Any = ()) -> Any:
        return rushlight.Size(sample_shape) + self._batch_shape + self._event_shape

    def _validate_sample(self, value: Any) -> None:
        """Raises unless `value` could be a sample: for log_prob and its like."""
        if not self._validate_args:
            return
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        start = len(value.size()) - len(self._event_shape)
        if value.size()[start:] != self._event_shape:
            raise ValueError(
                f"The right-most size of value must match event_shape: {value.size()} vs {self._event_shape}."
            )
        expected = self._batch_shape + self._event_shape
        for one, other in zip(reversed(value.size()), reversed(expected)):
            if one != 1 and other != 1 and one != other:
                raise ValueError(
                    f"Value is not broadcastable with batch_shape+event_shape: {value.size()} vs {expected}."
                )
        try:
            support = self.support
        except NotImplementedError:
            support = None
        if support is None:
            warnings.warn(
                f"{type(self)} does not define `support` to enable sample validation. Please initialize the "
                "distribution with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        if not everywhere(support.check(value)):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be "
                "within "
                f"the support ({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        if _instance is None and type(self).__init__ is not cls.__init__:
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method "
                "must "
                "also define a custom .expand() method."
            )
        return self.__new__(type(self)) if _instance is None else _instance

    def __repr__(self) -> str:
        def shown(name: str) -> str:
            value = self.__dict__[name]
            return f"{name}: {value if value.numel() == 1 else value.size()}"

        names = [name for name in self.arg_constraints if name in self.__dict__]
        return f"{type(self).__name__}({', '.join(map(shown, names))})"


class ExponentialFamily(Distribution):
    """A distribution with density exp(t(x) . theta - F(theta) + k(x)); entropy and KL follow from F."""

    @property
    def _mean_carrier_measure(self) -> Any:
        raise NotImplementedError

    @property
    def _natural_params(self) -> tuple:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Any) -> Any:
        raise NotImplementedError

    def _differentiated(self) -> tuple:
        """theta, F(theta) and grad F(theta), with the history of the distribution's parameters if they have
        one."""
        given = self._natural_params
        with rushlight.enable_grad():
            params = [each.clone().requires_grad_() for each in given]
            normalizer = self._log_normalizer(*params)
            needed = any(each.requires_grad for each in given)
            gradients = rushlight.autograd.grad(normalizer.sum(), params, create_graph=needed)
        if needed:
            return params, normalizer, gradients
        return [each.detach() for each in params], normalizer.detach(), gradients

    def entropy(self) -> Any:
        """-E[k(x)] + F(theta) - theta . grad F(theta)."""
        result = -self._mean_carrier_measure
        params, normalizer, gradients = self._differentiated()
        result = result + normalizer
        for param, gradient in zip(params, gradients):
            result = result - (param * gradient).reshape((*self._batch_shape, -1)).sum(-1)
        return result
