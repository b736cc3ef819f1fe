"""Tensors of more than 64 dimensions.

Every native loop and every set of dimensions ends at 64, so natively such a tensor has only those of its
dimensions that are not of size 1, of which memory allows fewer. Its sizes are kept here. As in torch it can
be made, filled, reshaped, reduced as a whole and computed with element by element (`_elementwise`); whatever
else is asked of it is refused in the words that torch has for its reductions.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import rushlight
from rushlight import _C
from rushlight._C import Tensor
from rushlight._outputs import ELEMENTWISE

_FILLING = {"fill_", "zero_", "uniform_", "normal_", "random_", "bernoulli_", "exponential_"}
_WHOLE = {
    *("sum", "mean", "prod", "max", "min", "amax", "amin", "aminmax", "argmax", "argmin", "nansum"),
    *("nanmean", "median", "nanmedian", "count_nonzero", "std", "var", "std_mean", "var_mean", "unique"),
    *("numel", "item", "is_floating_point", "is_complex", "element_size", "storage_offset", "data_ptr"),
    *("untyped_storage", "view", "reshape", "flatten", "ravel", "is_contiguous", "squeeze"),
    *("__bool__", "__float__", "__int__"),
}
_OPERATORS = {
    f"__{side}{name}__"
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor")
    for side in ("", "r", "i")
} | {f"__{name}__" for name in ("eq", "ne", "lt", "le", "gt", "ge", "neg", "abs", "invert", "pos")}
# Each element of the result is made of those at its place.
_BY_ELEMENTS = (
    ELEMENTWISE
    | _OPERATORS
    | {
        *(
            "clone",
            "contiguous",
            "double",
            "float",
            "half",
            "bfloat16",
            "int",
            "long",
            "short",
            "byte",
            "bool",
        ),
        *(
            "isnan",
            "isinf",
            "isfinite",
            "isposinf",
            "isneginf",
            "signbit",
            "positive",
            "relu",
            "sigmoid",
            "silu",
        ),
        *("zeros_like", "ones_like", "full_like", "empty_like", "masked_fill", "lerp", "addcmul", "addcdiv"),
        *("detach", "copy_", "isclose", "equal"),
    }
)
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
        casts = name == "to" and len(args) == 2 and type(args[1]) is _C.dtype and not kwargs
        if casts or name in _BY_ELEMENTS or name.removesuffix("_") in _BY_ELEMENTS - {"clone", "detach"}:
            return _elementwise(function, name, args, kwargs or {})
        if not (attribute in _ATTRIBUTES or name in _FILLING or whole or shaping):
            raise RuntimeError(_REFUSAL)
        result = function(_C.as_subclass(args[0], Tensor), *args[1:], **(kwargs or {}))
        return args[0] if name in _FILLING else result


def _together(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """The sizes that two tensors are broadcast to."""
    count = max(len(a), len(b))
    a, b = ((1,) * (count - len(s)) + s for s in (a, b))
    for d in range(count - 1, -1, -1):
        if a[d] != b[d] and 1 not in (a[d], b[d]):
            raise RuntimeError(
                f"The size of tensor a ({a[d]}) must match the size of tensor b ({b[d]}) at non-singleton "
                f"dimension {d}"
            )
    return tuple(m if n == 1 else n for m, n in zip(a, b, strict=True))


def _elementwise(function: Any, name: str, args: tuple, kwargs: dict) -> Any:
    """Computes with those dimensions that are not of size 1 in all operands, and gives the result all."""
    if any(isinstance(value, Tensor) for value in kwargs.values()):
        raise RuntimeError(_REFUSAL)
    shapes = [tuple(t.shape) for t in args if isinstance(t, Tensor)]
    sizes = functools.reduce(_together, shapes)
    kept = [d for d in range(-len(sizes), 0) if any(-d <= len(s) and s[d] != 1 for s in shapes)]

    def few(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        plain = _C.as_subclass(value, Tensor) if isinstance(value, TallTensor) else value
        shape = value.shape
        return plain.reshape([shape[d] if -d <= len(shape) else 1 for d in kept])

    writes = (name.endswith("_") and not name.endswith("__")) or (
        name.startswith("__i") and name != "__invert__"
    )
    if writes and shapes[0] != tuple(sizes):
        told = f"output with shape {list(shapes[0])} doesn't match the broadcast shape {list(sizes)}"
        raise RuntimeError(told)
    result = function(*map(few, args), **kwargs)
    if not isinstance(result, Tensor):
        return result
    return args[0] if writes else tall(tuple(sizes), lambda _: result)


def tall(sizes: tuple[int, ...], make: Any) -> Tensor:
    """What `make` would give for these sizes, which are too many: it is called with the few that count."""
    made = make((0,) if 0 in sizes else tuple(n for n in sizes if n != 1))
    if made.requires_grad:
        raise RuntimeError(_REFUSAL)
    result: Any = _C.as_subclass(made, TallTensor)
    result._sizes = tuple(sizes)
    return result
