"""What distributions share: broadcasting parameters, probabilities and logits, triangular matrices."""

from __future__ import annotations

from numbers import Number
from typing import Any

import rushlight
from rushlight import Tensor

euler_constant = 0.57721566490153286060
__all__ = [
    "broadcast_all",
    "clamp_probs",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]


def broadcast_all(*values: Any) -> tuple:
    """Tensors of one shape made of numbers and tensors.

    >>> rushlight.distributions.utils.broadcast_all(1.0, rushlight.zeros(2))
    (tensor([1., 1.]), tensor([0., 0.]))
    """
    known = [isinstance(value, (Tensor, Number)) or hasattr(value, "__torch_function__") for value in values]
    if not all(known) or any(isinstance(value, complex) for value in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing "
            "__torch_function__."
        )
    tensors = [value for value in values if isinstance(value, Tensor)]
    if any(isinstance(value, Number) for value in values):
        dtype = tensors[0].dtype if tensors else rushlight.get_default_dtype()
        device = tensors[0].device if tensors else None
        values = tuple(
            rushlight.tensor(value, dtype=dtype, device=device) if isinstance(value, Number) else value
            for value in values
        )
    return rushlight.broadcast_tensors(*values)


def _standard_normal(shape: Any, dtype: Any, device: Any) -> Tensor:
    zeros = rushlight.zeros(shape, dtype=dtype, device=device)
    return rushlight.normal(zeros, rushlight.ones(shape, dtype=dtype, device=device))


def _sum_rightmost(value: Any, dim: int) -> Any:
    """Sums over the last `dim` dimensions."""
    return value if dim == 0 else value.reshape((*value.shape[:-dim], -1)).sum(-1)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities of logits (of two outcomes each), or of log weights along the last dimension."""
    return rushlight.sigmoid(logits) if is_binary else rushlight.softmax(logits, dim=-1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities away from 0 and 1 by the dtype's precision."""
    eps = rushlight.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """The inverse of logits_to_probs."""
    clamped = clamp_probs(probs)
    return rushlight.log(clamped) - rushlight.log1p(-clamped) if is_binary else rushlight.log(clamped)


class lazy_property:
    """A property that is computed at its first use and kept."""

    def __init__(self, wrapped: Any) -> None:
        self.wrapped = wrapped
        self.__doc__ = wrapped.__doc__

    def __get__(self, instance: Any, obj_type: Any = None) -> Any:
        if instance is None:
            return _lazy_property_and_property(self.wrapped)
        with rushlight.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class _lazy_property_and_property(lazy_property, property):
    """What the class itself has: documented as a property."""

    def __init__(self, wrapped: Any) -> None:
        property.__init__(self, wrapped)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The elements of lower triangular matrices, row by row."""
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows, columns = rushlight.tril_indices(n, n, diag)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Lower triangular matrices of their elements, row by row."""
    length = vec.shape[-1]
    n = (-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * length + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    if round(n) - n > 1e-6 or abs(round(n) - n) > 1e-6:
        raise ValueError(
            f"The size of last dimension is {length} which cannot be expressed as the lower triangular "
            "part of "
            "a square D x D matrix."
        )
    n = round(n)
    rows, columns = rushlight.tril_indices(n, n, diag)
    empty = rushlight.zeros((*vec.shape[:-1], n * n), dtype=vec.dtype, device=vec.device)
    index = (rows * n + columns).expand(vec.shape)
    return empty.scatter(-1, index, vec).reshape((*vec.shape[:-1], n, n))
