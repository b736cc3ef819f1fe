"""Random parameters and tensors for benchmarks. Start at ``Fuzzer.take``.

The numbers are drawn from NumPy's generator in torch's order, so that a seed means the same tensors there.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import rushlight

__all__ = ["FuzzedParameter", "FuzzedTensor", "Fuzzer", "ParameterAlias", "dtype_size", "prod"]

_ATTEMPTS = 1000


def dtype_size(dtype: Any) -> int:
    """The bytes of an element.

    >>> dtype_size(rushlight.float64)
    8
    """
    return 1 if dtype == rushlight.bool else dtype.itemsize


def prod(values: Any, base: int = 1) -> int:
    """The product of whole numbers.

    >>> prod((2, 3))
    6
    """
    for value in values:
        base *= int(value)
    return base


class ParameterAlias:
    """Stands for the value of another parameter in a distribution."""

    def __init__(self, alias_to: str) -> None:
        self.alias_to = alias_to

    def __repr__(self) -> str:
        return f"ParameterAlias[alias_to: {self.alias_to}]"


class FuzzedParameter:
    """A number drawn from "uniform" or "loguniform" between two others, or from values with probabilities."""

    def __init__(
        self,
        name: str,
        minval: float | None = None,
        maxval: float | None = None,
        distribution: str | dict[Any, float] | None = None,
        strict: bool = False,
    ) -> None:
        self._name, self._minval, self._maxval, self.strict = name, minval, maxval, strict
        if isinstance(distribution, str):
            if distribution not in ("loguniform", "uniform"):
                raise AssertionError(f"Unknown distribution: {distribution}")
            if minval is None or maxval is None:
                raise AssertionError(f"{distribution} requires minval and maxval")
        else:
            if minval is not None or maxval is not None or not isinstance(distribution, dict):
                raise ValueError("a parameter is given by minval, maxval and a name, or by probabilities")
            if any(probability < 0 for probability in distribution.values()):
                raise AssertionError("Probabilities cannot be negative")
            if abs(sum(distribution.values()) - 1) > 1e-5:
                raise AssertionError("Distribution is not normalized")
        self._distribution = distribution

    @property
    def name(self) -> str:
        """What the parameter is called."""
        return self._name

    def sample(self, state: Any) -> Any:
        """A value, from a generator of NumPy's."""
        import math

        low, high, distribution = self._minval, self._maxval, self._distribution
        if isinstance(distribution, dict):
            import numpy

            chosen = state.choice(numpy.arange(len(distribution)), p=tuple(distribution.values()))
            return list(distribution)[chosen]
        assert low is not None and high is not None
        if distribution == "loguniform":
            return min(max(int(2 ** state.uniform(low=math.log2(low), high=math.log2(high))), low), high)
        if isinstance(low, int):
            return int(state.randint(low=low, high=high + 1, dtype="int64"))
        return state.uniform(low=low, high=high)


class FuzzedTensor:
    """A tensor whose sizes and steps are parameters, in a random order of dimensions."""

    def __init__(
        self,
        name: str,
        size: tuple[str | int, ...],
        steps: tuple[str | int, ...] | None = None,
        probability_contiguous: float = 0.5,
        min_elements: int | None = None,
        max_elements: int | None = None,
        max_allocation_bytes: int | None = None,
        dim_parameter: str | None = None,
        roll_parameter: str | None = None,
        dtype: Any = None,
        cuda: bool = False,
        tensor_constructor: Callable[..., Any] | None = None,
    ) -> None:
        if cuda:
            raise NotImplementedError("FuzzedTensor(cuda=True): there is no GPU")
        self._name, self._size, self._steps = name, size, steps
        self._probability_contiguous = probability_contiguous
        self._min_elements, self._max_elements = min_elements, max_elements
        self._max_allocation_bytes = max_allocation_bytes
        self._dim_parameter, self._roll_parameter = dim_parameter, roll_parameter
        self._dtype = rushlight.float32 if dtype is None else dtype
        self._tensor_constructor = tensor_constructor

    @property
    def name(self) -> str:
        """What the tensor is called."""
        return self._name

    @staticmethod
    def default_tensor_constructor(size: Any, dtype: Any, **kwargs: Any) -> Any:
        """Random numbers of a dtype."""
        if dtype.is_floating_point or dtype.is_complex:
            return rushlight.rand(size=size, dtype=dtype, device="cpu")
        return rushlight.randint(1, 127, size=size, dtype=dtype, device="cpu")

    def _get_size_and_steps(self, params: dict[str, Any]) -> tuple[tuple, tuple, tuple]:
        dim = params[self._dim_parameter] if self._dim_parameter is not None else len(self._size)

        def resolved(values: Any) -> tuple:
            values = [params.get(value, value) for value in tuple(values or ())]
            if len(values) > dim:
                values = values[:dim]
            values += [1] * (dim - len(values))
            if self._roll_parameter is not None and values:
                roll = -params[self._roll_parameter] % len(values)
                values = values[roll:] + values[:roll]
            return tuple(int(value) for value in values)

        size, steps = resolved(self._size), resolved(self._steps)
        return size, steps, tuple(n * step for n, step in zip(size, steps, strict=True))

    def satisfies_constraints(self, params: dict[str, Any]) -> bool:
        """Whether the tensor that these parameters make has an allowed size."""
        size, _, allocation = self._get_size_and_steps(params)
        count, nbytes = prod(size), prod(allocation, base=dtype_size(self._dtype))
        return not (
            (self._max_elements and count > self._max_elements)
            or (self._min_elements and count < self._min_elements)
            or (self._max_allocation_bytes and nbytes > self._max_allocation_bytes)
        )

    def _make_tensor(self, params: dict[str, Any], state: Any) -> tuple[Any, dict[str, Any]]:
        import numpy

        size, steps, allocation = self._get_size_and_steps(params)
        make = self._tensor_constructor or self.default_tensor_constructor
        raw = make(size=allocation, dtype=self._dtype, **params)
        dim = len(size)
        order = numpy.arange(dim)
        if state.rand() > self._probability_contiguous and dim > 1:
            while numpy.all(order == numpy.arange(dim)):
                order = state.permutation(raw.dim())
            raw = raw.permute(tuple(order.tolist())).contiguous()
            raw = raw.permute(tuple(numpy.argsort(order).tolist()))
        tensor = raw[tuple(slice(0, n * step, step) for n, step in zip(size, steps, strict=True))]
        return tensor, {
            "numel": int(tensor.numel()),
            "order": order,
            "steps": steps,
            "is_contiguous": tensor.is_contiguous(),
            "dtype": str(self._dtype),
        }


class Fuzzer:
    """Draws sets of parameters that satisfy constraints, and the tensors that they describe.

    >>> n = rushlight.utils.benchmark.FuzzedParameter("n", 2, 9, "uniform")
    >>> x = rushlight.utils.benchmark.FuzzedTensor("x", size=("n",))
    >>> fuzzer = rushlight.utils.benchmark.Fuzzer([n], [x], seed=0)
    >>> [params["n"] == tensors["x"].numel() for tensors, _, params in fuzzer.take(2)]
    [True, True]
    """

    def __init__(
        self,
        parameters: list[Any],
        tensors: list[Any],
        constraints: list[Callable[..., bool]] | None = None,
        seed: int | None = None,
    ) -> None:
        import numpy

        if seed is None:
            seed = int(numpy.random.RandomState().randint(0, 2**32 - 1, dtype=numpy.int64))
        self._seed = seed
        self._parameters = _flat(parameters, FuzzedParameter)
        self._tensors = _flat(tensors, FuzzedTensor)
        self._constraints = constraints or ()
        names, tensor_names = {p.name for p in self._parameters}, {t.name for t in self._tensors}
        overlap = names & tensor_names
        if overlap:
            raise ValueError(f"Duplicate names in parameters and tensors: {overlap}")
        self._rejections = self._total_generated = 0

    def take(self, n: int) -> Iterator[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]:
        """`n` times the tensors, what is known of them, and the parameters."""
        import numpy

        state = numpy.random.RandomState(self._seed)
        rushlight.manual_seed(int(state.randint(low=0, high=2**63, dtype=numpy.int64)))
        for _ in range(n):
            params = self._generate(state)
            made = {tensor.name: tensor._make_tensor(params, state) for tensor in self._tensors}
            yield (
                {name: tensor for name, (tensor, _) in made.items()},
                {name: known for name, (_, known) in made.items()},
                params,
            )

    @property
    def rejection_rate(self) -> float:
        """How many of the drawn sets were refused."""
        return self._rejections / self._total_generated if self._total_generated else 0.0

    def _generate(self, state: Any) -> dict[str, Any]:
        strict: dict[str, Any] = {}
        for _ in range(_ATTEMPTS):
            self._total_generated += 1
            drawn: dict[str, Any] = {}
            for parameter in self._parameters:
                if parameter.strict and parameter.name in strict:
                    drawn[parameter.name] = strict[parameter.name]
                    continue
                drawn[parameter.name] = parameter.sample(state)
                if parameter.strict:
                    strict[parameter.name] = drawn[parameter.name]
            params = _without_aliases(drawn)
            fits = all(constraint(params) for constraint in self._constraints)
            if fits and all(tensor.satisfies_constraints(params) for tensor in self._tensors):
                return params
            self._rejections += 1
        raise ValueError("Failed to generate a set of valid parameters.")


def _flat(entries: Any, kind: type) -> list[Any]:
    """Entries of a list and of lists in it."""
    return list(itertools.chain(*([entry] if isinstance(entry, kind) else entry for entry in entries)))


def _without_aliases(params: dict[str, Any]) -> dict[str, Any]:
    resolved = dict(params)
    for name, value in params.items():
        seen = {name}
        while isinstance(value, ParameterAlias):
            if value.alias_to in seen:
                raise ValueError("ParameterAlias cycle detected")
            seen.add(value.alias_to)
            value = params[value.alias_to]
        resolved[name] = value
    return resolved
