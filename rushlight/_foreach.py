"""Functions on lists of tensors, which optimisers use: `torch._foreach_add(params, updates, alpha=0.1)`.

Each computes tensor by tensor with the function of that name, so gradients, dtypes and errors are the same.
The names are looked up here by the package's `__getattr__`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import rushlight
from rushlight import _C, Tensor, _signatures
from rushlight._type_names import type_name
from rushlight.ops._public import type_name as dtype_name

_UNARY = [
    "abs", "acos", "asin", "atan", "ceil", "clone", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor",
    "frac", "lgamma", "log", "log10", "log1p", "log2", "neg", "reciprocal", "round", "rsqrt", "sigmoid",
    "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
]  # fmt: skip
_BINARY = ["add", "sub", "mul", "div", "maximum", "minimum", "clamp_max", "clamp_min", "pow"]
_IN_PLACE = {"maximum": "clamp_min_", "minimum": "clamp_max_"}
_SCALARS = {"maximum": "clamp_min", "minimum": "clamp_max"}  # of numbers there is no maximum()
_BOUNDS = {"maximum": "maximum", "clamp_min": "maximum", "minimum": "minimum", "clamp_max": "minimum"}
_WITH_TENSOR = ("add", "mul", "div")  # take one zero-dimensional tensor for all
_NUMBER = (bool, int, float, complex)


def _lists(name: str, *lists: Any) -> None:
    """Refuses what is not a list of tensors, empty lists and lists of different lengths."""
    for position, value in enumerate(lists):
        if isinstance(value, Tensor) or not isinstance(value, (list, tuple)):
            called = "self" if position == 0 else "other"
            raise TypeError(
                f"{name}(): argument '{called}' (position {position + 1}) must be tuple of Tensors, not "
                f"{type_name(value)}"
            )
        for at, element in enumerate(value):
            if not isinstance(element, Tensor):
                kind = type_name(element)
                raise TypeError(f"expected Tensor as element {at} in argument {position}, but got {kind}")
    if len(lists[0]) == 0:  # a list may have a truth value of its own
        raise RuntimeError("Tensor list must have at least one tensor.")
    for other in lists[1:]:
        if len(other) != len(lists[0]):
            raise RuntimeError(
                f"Tensor lists must have the same number of tensors, got {len(lists[0])} and {len(other)}"
            )


def _invalid(name: str, args: tuple, kwargs: dict) -> NoReturn:
    given = [type_name(value) for value in args]
    given += [f"{key}={type_name(value)}" for key, value in kwargs.items()]
    raise TypeError(
        f"{name}() received an invalid combination of arguments - got ({', '.join(given)}), but expected one "
        "of:\n * (tuple of Tensors, tuple of Tensors)\n * (tuple of Tensors, tuple of Numbers)\n"
        " * (tuple of Tensors, Number)"
    )


def _per_tensor(name: str, tensors: Any, other: Any) -> list:
    """The second operand of each tensor: from a list of tensors or numbers, or the same number for all."""
    if isinstance(other, (list, tuple)) and (len(other) == 0 or isinstance(other[0], Tensor)):
        _lists(name, tensors, other)
        return list(other)
    _lists(name, tensors)
    if isinstance(other, (list, tuple)):
        if any(isinstance(value, Tensor) for value in other):
            raise TypeError(f"expected Tensor as element 0 in argument 1, but got {type_name(other[0])}")
        if not all(isinstance(value, _NUMBER) for value in other):
            _invalid(name, (tensors, other), {})
        if len(other) != len(tensors):
            raise RuntimeError("Tensor list must have same number of elements as scalar list.")
        return list(other)
    return [other] * len(tensors)


def _binary(name: str, operation: str, inplace: bool) -> Callable:
    def function(*args: Any, **kwargs: Any) -> Any:
        extra = {"alpha": kwargs.pop("alpha")} if "alpha" in kwargs and operation in ("add", "sub") else {}
        second = [key for key in ("other", "scalar", "scalars", "tensor", "exponent") if key in kwargs]
        values = list(args) + [kwargs.pop(key) for key in ("self", *second) if key in kwargs]
        if kwargs or len(values) != 2:
            _invalid(name, args, kwargs | extra)
        tensors, other = values
        if _signatures._numpy_kind(other) in "biufc":
            other = other.item()
        if operation == "pow" and not inplace and isinstance(tensors, _NUMBER):
            _lists(name, other)
            return tuple(rushlight.pow(tensors, exponent) for exponent in other)
        if isinstance(tensors, Tensor) or not isinstance(tensors, (list, tuple)):
            _invalid(name, args, kwargs | extra)
        whole = isinstance(other, Tensor)
        if not whole and not isinstance(other, (list, tuple, *_NUMBER)):
            _invalid(name, args, kwargs | extra)
        if whole and other.dim() and operation in _WITH_TENSOR:
            raise RuntimeError(
                f"scalar tensor expected to be 0 dim but it has {other.dim()} dimensions and "
                f"{other.numel()} elements."
            )
        if whole and other.dim():
            _invalid(name, args, kwargs)
        if whole and extra and operation == "sub":
            raise TypeError(f"{name}(): argument 'other' (position 2) must be tuple of Tensors, not Tensor")
        if whole and operation not in _WITH_TENSOR:
            other = other.item()
        if extra and isinstance(other, _NUMBER):
            _invalid(name, args, kwargs | extra)
        others = _per_tensor(name, tensors, other)
        if operation in _BOUNDS:
            _refuse_complex(operation, tensors, others)
        if operation in _SCALARS and not inplace and not isinstance(others[0], Tensor):
            return tuple(
                _limited(tensor, bound, operation, other)
                for tensor, bound in zip(tensors, others, strict=True)
            )
        return _apply(name, operation, inplace, tensors, others, extra)

    return function


def _refuse_complex(operation: str, tensors: Any, others: list) -> None:
    for tensor, other in zip(tensors, others, strict=True):
        kind = rushlight.result_type(tensor, other)
        if kind.is_complex and not isinstance(other, Tensor):
            raise NotImplementedError("clamp is not supported for complex types")
        if kind.is_complex:
            name = dtype_name(kind)
            raise NotImplementedError(f"\"{_BOUNDS[operation]}_cpu\" not implemented for '{name}'")


def _limited_function(tensor: Tensor, bound: Any, operation: str, given: Any) -> Any:
    return getattr(tensor, _SCALARS[operation])(bound)


def _limited_node(tensor: Tensor, bound: Any, operation: str, given: Any) -> tuple:
    """The name of the node, and what torch saves of the call."""
    several = isinstance(given, (list, tuple))
    kept = {"scalars": tuple(given)} if several else {"scalar": given}
    return f"Foreach{operation.capitalize()}Backward{int(several)}", kept


_limited: Any = _C.Function(_limited_function)
_limited.node_name = _limited_node


def _apply(name: str, operation: str, inplace: bool, tensors: Any, others: list, extra: dict) -> Any:
    method = _IN_PLACE.get(operation, operation + "_") if inplace else operation
    rows = [(other,) for other in others]
    return _run(lambda tensor, other: getattr(tensor, method)(other, **extra), inplace, tensors, rows)


def _run(run: Callable, inplace: bool, tensors: Any, rows: list) -> Any:
    """Calls `run` with each tensor and its row of arguments. In place those that may be refused come first,
    so that nothing is written if one of them is; unless one is computed from what another becomes."""
    if not inplace:
        return tuple(run(t, *row) for t, row in zip(tensors, rows, strict=True))
    for tensor in tensors:
        _C.check_inplace(tensor)
    calls = list(zip(tensors, rows, strict=True))
    doubts = [_is_doubtful(*call) for call in calls]
    if any(doubts) and not all(doubts) and not _depend(calls):
        calls = [
            call for wanted in (True, False) for call, at in zip(calls, doubts, strict=True) if at == wanted
        ]
    for tensor, row in calls:
        run(tensor, *row)
    return tensors


def _depend(calls: list) -> bool:
    """Whether a call reads or writes memory that another one writes."""
    written = [_C.storage_id(tensor) for tensor, _ in calls]
    places = set(written)
    return len(places) < len(written) or any(
        isinstance(each, Tensor) and own != _C.storage_id(each) in places
        for own, (_, row) in zip(written, calls, strict=True)
        for each in row
    )


def _is_doubtful(tensor: Tensor, row: tuple) -> bool:
    """Whether an in-place operation may refuse the tensor, or what is given with it."""
    plain = tensor.dtype.is_floating_point and not (tensor.requires_grad and tensor.is_leaf)
    fits = all(
        (other.dtype == tensor.dtype and other.shape == tensor.shape and other.device == tensor.device)
        if isinstance(other, Tensor)
        else not isinstance(other, complex)
        for other in row
    )
    return not (plain and fits and 0 not in tensor.stride())


def _unary(name: str, operation: str, inplace: bool) -> Callable:
    method = operation + "_" * inplace

    def function(self: Any, **kwargs: Any) -> Any:
        _lists(name, self)
        if kwargs:
            raise TypeError(f"{name}() got an unexpected keyword argument '{next(iter(kwargs))}'")
        return _run(lambda tensor: getattr(tensor, method)(), inplace, self, [()] * len(self))

    return function


def _pointwise(name: str, operation: str, inplace: bool) -> Callable:
    method = operation + "_" * inplace

    def function(
        self: Any, tensor1: Any, tensor2: Any, scalars: Any = None, *, value: Any = 1, **more: Any
    ) -> Any:
        lists = (self, tensor1, tensor2)
        if more or not all(isinstance(each, (list, tuple)) for each in lists):
            _invalid(name, lists if scalars is None else (*lists, scalars), more)
        _lists(name, *lists)
        if isinstance(scalars, Tensor):
            if scalars.dim() != 1:
                text = f"Expected packed scalar Tensor to be of dimension 1. Got {scalars.dim()} instead."
                raise RuntimeError(text)
            if len(scalars) != len(self):
                raise RuntimeError(
                    f"Expected length of scalars to match input of length {len(self)} but got {len(scalars)} "
                    "instead."
                )
            scalars = scalars.tolist()
        values = _per_tensor(name, self, value if scalars is None else scalars)
        rows = list(zip(tensor1, tensor2, values, strict=True))
        return _run(lambda t, a, b, v: getattr(t, method)(a, b, value=v), inplace, self, rows)

    return function


def _lerp(name: str, operation: str, inplace: bool) -> Callable:
    method = "lerp" + "_" * inplace

    def function(self: Any, tensors1: Any, weight: Any) -> Any:
        _lists(name, self, tensors1)
        rows = list(zip(tensors1, _per_tensor(name, self, weight), strict=True))
        return _run(lambda t, end, w: getattr(t, method)(end, w), inplace, self, rows)

    return function


def _foreach_norm(self: Any, ord: Any = 2, dtype: Any = None) -> tuple:
    """The norm of each tensor.

    >>> rushlight._foreach_norm([rushlight.ones(4), rushlight.ones(9)])
    (tensor(2.), tensor(3.))
    """
    _lists("_foreach_norm", self)
    if isinstance(ord, (bool, complex)):
        raise RuntimeError("foreach_tensor_norm_slow expects ord to be integer or float")
    if abs(ord) == float("inf") and any(tensor.numel() == 0 for tensor in self):
        raise RuntimeError(
            "_foreach_norm cannot compute the infinity norm on an empty tensor because the operation does "
            "not have an identity"
        )
    return tuple(rushlight.linalg.vector_norm(tensor, ord, dtype=dtype) for tensor in self)


def _foreach_powsum(self: Any, ord: Any = 2, dtype: Any = None) -> tuple:
    """The sum of the absolute values of each tensor, raised to a power."""
    _lists("_foreach_powsum", self)
    for tensor in self:
        if not (tensor.is_floating_point() or tensor.is_complex()):
            raise NotImplementedError("\"powsum_cpu\" not implemented for 'Long'")
    cast = [tensor if dtype is None else tensor.to(dtype) for tensor in self]
    return tuple(rushlight.sum(tensor.abs().pow(ord)) for tensor in cast)


def _foreach_max(self: Any) -> tuple:
    """The largest element of each tensor."""
    _lists("_foreach_max", self)
    if any(tensor.numel() == 0 for tensor in self):
        raise RuntimeError(
            "_foreach_max cannot compute the maximum of an empty tensor; max over zero elements is undefined."
        )
    return tuple(tensor.max() for tensor in self)


def _foreach_mm(self: Any, mat2: Any) -> tuple:
    """The matrix product of each pair."""
    if len(self) == 0:
        raise RuntimeError("_foreach_mm requires non-empty tensor lists")
    if len(self) != len(mat2):
        raise RuntimeError("_foreach_mm: self and mat2 must have the same number of tensors")
    _lists("_foreach_mm", self, mat2)
    return tuple(_mm(a, b) for a, b in zip(self, mat2, strict=True))


_mm: Any = _C.Function(lambda a, b: rushlight.mm(a, b))
_mm.node_name = lambda a, b: ("ForeachMmBackward0", {})


def _foreach_copy_(self: Any, src: Any, non_blocking: Any = False) -> Any:
    """Copies each tensor of `src` into its partner."""
    _lists("_foreach_copy_", self, src)
    if not isinstance(non_blocking, bool):
        kind = type_name(non_blocking)
        raise TypeError(f"_foreach_copy_(): argument 'non_blocking' (position 3) must be bool, not {kind}")
    return _run(lambda to, source: to.copy_(source, non_blocking), True, self, [(source,) for source in src])


def _foreach_zero_(self: Any) -> Any:
    """Fills every tensor with zeros."""
    _lists("_foreach_zero_", self)
    for tensor in self:
        tensor.zero_()
    return self


def _table() -> dict[str, Callable]:
    table: dict[str, Callable] = {
        name: value for name, value in globals().items() if name.startswith("_foreach_") and callable(value)
    }
    makers = [(_unary, _UNARY), (_binary, _BINARY), (_pointwise, ["addcmul", "addcdiv"]), (_lerp, ["lerp"])]
    for maker, operations in makers:
        for operation in operations:
            for inplace in (False, True):
                name = f"_foreach_{operation}{'_' * inplace}"
                if name == "_foreach_clone_":
                    continue
                function = maker(name, operation, inplace)
                function.__name__ = function.__qualname__ = name
                function.__doc__ = f"{operation} of each tensor of a list{', in place' * inplace}."
                table[name] = function
    return table


FUNCTIONS = _table()
