"""Tensors of more than 64 dimensions.

Every native loop and every set of dimensions ends at 64, so natively such a tensor has only those of its
dimensions that are not of size 1, of which memory allows fewer. Its sizes are kept here. As in torch it can
be made, filled, reshaped and reduced as a whole; whatever else is asked of it is refused in the words that
torch has for its reductions.
"""

from __future__ import annotations

import math
from typing import Any

import rushlight
from rushlight import _C
from rushlight._C import Tensor

_FILLING = {"fill_", "zero_", "uniform_", "normal_", "random_", "bernoulli_", "exponential_"}
_WHOLE = {
    *("sum", "mean", "prod", "max", "min", "amax", "amin", "aminmax", "argmax", "argmin", "nansum"),
    *("nanmean", "median", "nanmedian", "count_nonzero", "std", "var", "std_mean", "var_mean", "unique"),
    *("numel", "item", "is_floating_point", "is_complex", "element_size", "storage_offset", "data_ptr"),
    *("untyped_storage", "view", "reshape", "flatten", "ravel", "is_contiguous"),
    *("__bool__", "__float__", "__int__"),
}
_ATTRIBUTES = {
    *("dtype", "device", "layout", "requires_grad", "is_meta", "is_leaf", "grad_fn", "grad", "itemsize"),
}
_REFUSAL = "only tensors with up to 64 dims are supported"


class TallTensor(Tensor):
    _sizes: tuple[int, ...]

    @property
    def shape(self) -> Any:
        return rushlight.Size(self._sizes)

    @property
    def ndim(self) -> int:
        return len(self._sizes)

    def dim(self) -> int:
        return len(self._sizes)

    ndimension = dim

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    def stride(self, dim: int | None = None) -> Any:
        steps = tuple(math.prod(self._sizes[d + 1 :]) for d in range(len(self._sizes)))
        return steps if dim is None else steps[dim]

    def detach(self) -> Tensor:  # torch.tensor() asks for it without asking __torch_function__
        raise RuntimeError(_REFUSAL)

    def __len__(self) -> int:
        return self._sizes[0]

    def __repr__(self) -> str:
        values = repr(_C.as_subclass(self, Tensor).tolist())
        return f"tensor({values}, size={self._sizes}, dtype={self.dtype})"

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        name = getattr(function, "__name__", "")
        attribute = getattr(getattr(function, "__self__", None), "__name__", "") if name == "__get__" else ""
        whole = name in _WHOLE and len(args) == 1 and not kwargs
        shaping = name in ("view", "reshape") and all(type(item) is not _C.dtype for item in args[1:])
        if not (attribute in _ATTRIBUTES or name in _FILLING or whole or shaping):
            raise RuntimeError(_REFUSAL)
        result = function(_C.as_subclass(args[0], Tensor), *args[1:], **(kwargs or {}))
        return args[0] if name in _FILLING else result


def tall(sizes: tuple[int, ...], make: Any) -> Tensor:
    """What `make` would give for these sizes, which are too many: it is called with the few that count."""
    made = make((0,) if 0 in sizes else tuple(n for n in sizes if n != 1))
    if made.requires_grad:
        raise RuntimeError(_REFUSAL)
    result: Any = _C.as_subclass(made, TallTensor)
    result._sizes = tuple(sizes)
    return result
