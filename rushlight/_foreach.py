"""Functions on lists of tensors, which optimisers use: `torch._foreach_add(params, updates, alpha=0.1)`.

Each computes tensor by tensor with the function of that name, so gradients, dtypes and errors are the same.
Torch records one node for all results of a list. Here each has its own, and before them stands one that has
torch's name and keeps what torch's node keeps (`_shown`). The names are looked up here by the package's
`__getattr__`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import rushlight
from rushlight import _C, Tensor, _signatures
from rushlight._foreach_nodes import RESULTS as _RESULTS
from rushlight._foreach_nodes import as_one_node
from rushlight.ops._again import looked_on
from rushlight.ops._public import type_name as dtype_name

_UNARY = [
    "abs", "acos", "asin", "atan", "ceil", "clone", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor",
    "frac", "lgamma", "log", "log10", "log1p", "log2", "neg", "reciprocal", "round", "rsqrt", "sigmoid",
    "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
]  # fmt: skip
_BINARY = ["add", "sub", "mul", "div", "maximum", "minimum", "clamp_max", "clamp_min", "pow"]
_KEEP_NOTHING = ("ceil", "clone", "floor", "frac", "neg", "round", "sign", "trunc")
_KEEP_RESULTS = ("exp", "expm1", "reciprocal", "rsqrt", "sigmoid", "sqrt", "tan", "tanh")
_IN_PLACE = {"maximum": "clamp_min_", "minimum": "clamp_max_"}
_SCALARS = {"maximum": "clamp_min", "minimum": "clamp_max"}  # of numbers there is no maximum()
_BOUNDS = {"maximum": "maximum", "clamp_min": "maximum", "minimum": "minimum", "clamp_max": "minimum"}
_WITH_TENSOR = ("add", "mul", "div")  # take one zero-dimensional tensor for all
_NUMBER = (bool, int, float, complex)


# What torch takes, in the language of _signatures.txt.
_ONE = "L self"
_ADDED = "L self,N scalar|L self,S scalars|L self,T other,*,N alpha=1|L self,L other,*,N alpha=1"
_TIMES = "L self,S scalars|L self,T other|L self,L other|L self,N scalar"
_BOUNDED = "L self,N scalar|L self,S scalars|L self,L other"
_RAISED = "L self,N exponent|L self,S exponent|L self,L exponent"
_PRODUCT = "L self,L tensor1,L tensor2"
_TAKEN = {
    "add": _ADDED, "sub": _ADDED.replace("L self,T other,*,N alpha=1|", ""), "mul": _TIMES, "div": _TIMES,
    "pow": f"N self,L exponent|{_RAISED}", "pow_": _RAISED, "mm": "L self,L mat2",
    "lerp": "L self,L tensors1,N weight|L self,L tensors1,S weight|L self,L tensors1,L weights",
    "copy_": "L self,L src,b non_blocking=", **dict.fromkeys(("norm", "powsum"), "L self,N ord=,d? dtype="),
    **dict.fromkeys(("maximum", "minimum", "clamp_max", "clamp_min"), _BOUNDED),
    **dict.fromkeys(
        ("addcmul", "addcdiv"), f"{_PRODUCT},S scalars|{_PRODUCT},T scalars|{_PRODUCT},N value=1"
    ),
}  # fmt: skip


def _checked(name: str, function: Callable) -> Callable:
    """The function, called with the arguments by the names that torch's signature gives them."""
    operation = name.removeprefix("_foreach_")
    texts = _TAKEN.get(operation) or _TAKEN.get(operation.removesuffix("_"), _ONE)

    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        return function(**_signatures.bound(name, texts, args, kwargs))

    return called


def _same_lengths(*lists: Any) -> None:
    """Refuses empty lists and lists of different lengths."""
    if len(lists[0]) == 0:  # a list may have a truth value of its own
        raise RuntimeError("Tensor list must have at least one tensor.")
    for other in lists[1:]:
        if len(other) != len(lists[0]):
            raise RuntimeError(
                f"Tensor lists must have the same number of tensors, got {len(lists[0])} and {len(other)}"
            )


def _per_tensor(tensors: Any, other: Any) -> list:
    """The second operand of each tensor: from a list of tensors or numbers, or the same number for all."""
    if isinstance(other, (list, tuple)) and len(other) and isinstance(other[0], Tensor):
        _same_lengths(tensors, other)
        return list(other)
    _same_lengths(tensors)
    if isinstance(other, (list, tuple)):
        if len(other) != len(tensors):
            raise RuntimeError("Tensor list must have same number of elements as scalar list.")
        return list(other)
    return [other] * len(tensors)


def _binary(operation: str, inplace: bool) -> Callable:
    def function(self: Any, alpha: Any = None, **second: Any) -> Any:
        extra = {} if alpha is None else {"alpha": alpha}
        tensors, (other,) = self, second.values()
        if _signatures._numpy_kind(other) in "biufc":
            other = other.item()
        if not isinstance(tensors, (list, tuple)):  # a number raised to each
            _same_lengths(other)

            def powers(exponents: Any) -> tuple:
                return tuple(rushlight.pow(tensors, exponent) for exponent in exponents)

            kept = {"self": tensors, "exponent": other, "result": None}
            return _recorded("ForeachPowBackward2", powers, [other], (0, _RESULTS), kept)
        if isinstance(other, Tensor):
            if other.dim():
                raise RuntimeError(
                    f"scalar tensor expected to be 0 dim but it has {other.dim()} dimensions and "
                    f"{other.numel()} elements."
                )
            # torch takes it for a number where its signature has one first.
            if operation not in _WITH_TENSOR or (
                operation == "add" and alpha is None and not other.requires_grad
            ):
                other = other.item()
        others = _per_tensor(tensors, other)
        if operation in _BOUNDS:
            _refuse_complex(operation, tensors, others)
        if inplace:
            return _written(operation, tensors, others, extra)
        scalar = not isinstance(others[0], Tensor)
        function = getattr(rushlight, _SCALARS.get(operation, operation) if scalar else operation)
        node, kept = _binary_node(operation, tensors, other)

        def run(tensors: Any, second: Any = None) -> tuple:
            seconds = others if second is None else second * len(tensors) if len(second) == 1 else second
            return tuple(function(t, each, **extra) for t, each in zip(tensors, seconds, strict=True))

        lists = [tensors, *_tensors_in(other)]
        keeps = (1, 0) if lists[1:] else (0,)
        return _recorded(node, run, lists, (*keeps, _RESULTS) if "result" in kept else keeps, kept)

    return function


def _refuse_complex(operation: str, tensors: Any, others: list) -> None:
    for tensor, other in zip(tensors, others, strict=True):
        kind = rushlight.result_type(tensor, other)
        if kind.is_complex and not isinstance(other, Tensor):
            raise NotImplementedError("clamp is not supported for complex types")
        if kind.is_complex:
            name = dtype_name(kind)
            raise NotImplementedError(f"\"{_BOUNDS[operation]}_cpu\" not implemented for '{name}'")


def _tensors_in(operand: Any) -> list:
    """The operand as a list of tensors within a list; nothing if it is made of numbers."""
    if isinstance(operand, Tensor):
        return [[operand]]
    return [operand] if isinstance(operand, (list, tuple)) and isinstance(operand[0], Tensor) else []


def _form(operand: Any) -> str:
    if isinstance(operand, Tensor):
        return "Tensor"
    return (
        "List" if _tensors_in(operand) else "ScalarList" if isinstance(operand, (list, tuple)) else "Scalar"
    )


def _binary_node(operation: str, tensors: Any, other: Any) -> tuple[str, dict]:
    """What torch calls the node, and what it shows. Those with a formula of their own carry no form."""
    form = _form(other)
    name = "Foreach" + "".join(part.capitalize() for part in operation.split("_")) + "Backward"
    if operation in _SCALARS and form != "List":
        several = form == "ScalarList"
        kept = {"scalars": tuple(other)} if several else {"scalar": other}
        return f"{name}{int(several)}", {"self": tensors} | kept
    if operation == "pow" and form != "Scalar":
        kept = {} if form == "ScalarList" else {"result": None}
        return f"{name}{int(form == 'ScalarList')}", {"self": tensors, "exponent": other} | kept
    if operation == "div" and form == "List":
        return f"{name}0", {"self": tensors, "other": other}
    if operation.startswith("clamp"):
        return f"{name}{int(form == 'List')}{form}", {}
    return f"{name}{int(operation != 'pow' and form.startswith('Scalar'))}{form}", {}


def _recorded(
    node: str, run: Callable, lists: list, keeps: tuple[int, ...], kept: dict | None = None
) -> tuple:
    """run(*lists), of one node that shows what torch's shows, and keeps those of the lists of tensors that
    `keeps` counts, in torch's order (or _RESULTS), so that a write into one of them is refused whoever has a
    gradient."""
    if keeps and _C.top_saved_hooks() is not None:
        inputs = tuple(tensor for each in lists for tensor in each)
        if looked_on(*inputs) and not any(map(_C.is_leveled, inputs)):
            return as_one_node(node, run, lists, keeps)
    since = _C.next_sequence()
    results = run(*lists)
    if _C.next_sequence() == since:
        return results
    inputs = tuple(tensor for each in lists for tensor in each)
    kept = {
        name: _kept_results(results)
        if name == "result"
        else [_C.keep(tensor) for tensor in value]
        if _form(value) == "List"
        else value
        for name, value in (kept or {}).items()
    }
    asked = any(
        type(tensor) is not Tensor or _C.asks_dispatch(tensor) or _C.tangent(tensor) is not None
        for tensor in results
    )
    if not asked:
        # Hooks have been shown what the steps keep; what they return for it is never refused.
        hooked = _C.top_saved_hooks() is not None
        kept["lists"] = []
        for at in () if hooked else keeps:
            kept["lists"] += _kept_results(results) if at == _RESULTS else map(_C.keep, lists[at])
        # The steps bear the name as well: derivatives keep numbers as numbers, and anomaly mode tells it.
        results = _C.ops.listed(_C.name_node(results, node, since))
    return _C.name_node(results, node, since, kept, inputs)


def _kept_results(results: tuple) -> list:
    """What is kept of results, without the history that leads to the node that keeps it."""
    return [(*_C.keep(result.detach())[:2], place) for place, result in enumerate(results)]


_OF_NUMBERS = ("add", "sub", "mul", "div")  # have a node of their own in place
_SAVE_OPERANDS = ("mul", "div", "pow", "maximum", "minimum")


def _written(operation: str, tensors: Any, others: list, extra: dict) -> Any:
    rows = [(other,) for other in others]
    if operation in _SAVE_OPERANDS and _refused_later(tensors, others):
        return _as_before(operation, tensors, others)
    in_place = _IN_PLACE.get(operation)
    method = in_place if in_place and not isinstance(others[0], Tensor) else operation + "_"

    def run(tensor: Tensor, other: Any) -> None:
        since = _C.next_sequence()
        if in_place and isinstance(other, Tensor):
            _C.in_place(getattr(_C.ops, operation), tensor, other)
        else:
            getattr(tensor, method)(other, **extra)
        if tensor._is_view():  # its node is that of the view
            return
        if operation in _OF_NUMBERS and not isinstance(other, Tensor) and _C.next_sequence() != since:
            kept = {"other": other} if operation in ("mul", "div") else {}
            _C.name_node(tensor, f"{operation.capitalize()}Backward1", since, kept)

    if in_place and not isinstance(others[0], Tensor):

        def all_of_them(tensors: Any) -> Any:
            return _run(run, True, tensors, rows)

        return _refused_later_on(f"_foreach_{operation}_", all_of_them, [tensors])
    return _run(run, True, tensors, rows)


def _refused_later_on(name: str, run: Callable, lists: list, *others: Tensor) -> Any:
    """run(*lists), which torch cannot differentiate: asking for a gradient is refused."""
    if not _C.is_grad_enabled() or not any(
        tensor.requires_grad for each in (*lists, others) for tensor in each
    ):
        return run(*lists)
    from rushlight.autograd.function import without_derivative

    given = [tensor for each in lists for tensor in each]
    if not name.endswith("_"):
        with rushlight.no_grad():
            results = run(*lists)
        return without_derivative(name, results, *given, *others)
    tensors, rest = lists[0], (*(tensor for each in lists[1:] for tensor in each), *others)
    for tensor in tensors:
        _C.check_inplace(tensor)
    made = [
        without_derivative(name, rushlight.empty_like(tensor), tensor, *rest, space="") for tensor in tensors
    ]
    with rushlight.no_grad():
        run(*lists)
    for tensor, result in zip(tensors, made, strict=True):
        _C.take_history(tensor, result)
    return tensors


def _refused_later(tensors: Any, others: list) -> bool:
    """Whether each operand is overwritten by the list, so that no gradient can be computed from it."""
    if not _C.is_grad_enabled() or not all(tensor.requires_grad for tensor in tensors[1:]):
        return False
    written = {_C.storage_id(tensor) for tensor in tensors}
    return len(tensors) > 1 and all(
        isinstance(other, Tensor)
        and _C.storage_id(other) in written
        and not _is_doubtful(tensor, (other,))  # nothing may fail once the first is written
        for tensor, other in zip(tensors, others, strict=True)
    )


def _as_before(operation: str, tensors: Any, others: list) -> Any:
    """Writes one after the other, but records all of them, as torch does, from before the first."""
    for tensor in tensors:
        _C.check_inplace(tensor)
    made = [
        getattr(rushlight, operation)(tensor if tensor.requires_grad else tensor.clone(), other)
        for tensor, other in zip(tensors, others, strict=True)
    ]
    with rushlight.no_grad():
        _written(operation, tensors, others, {})
    for tensor, result in zip(tensors, made, strict=True):
        _C.take_history(tensor, result)
    return tensors


def _run(run: Callable, inplace: bool, tensors: Any, rows: list) -> Any:
    """Calls `run` with each tensor and its row of arguments. In place those that may be refused come first,
    so that nothing is written if one of them is; unless one is computed from what another becomes."""
    if not inplace:
        return tuple(run(t, *row) for t, row in zip(tensors, rows, strict=True))
    for tensor in sorted(tensors, key=lambda t: t.is_inference()):  # torch refuses those below autograd
        if len(tensors) > 1 or not tensor.is_inference():  # of which a single one tells after its sizes
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
    return not (plain and fits and not _C.is_compressed(tensor) and 0 not in tensor.stride())


def _unary(operation: str, inplace: bool) -> Callable:
    method = operation + "_" * inplace
    node = f"Foreach{'Log1P' if operation == 'log1p' else operation.capitalize()}Backward0"

    def function(self: Any) -> Any:
        _same_lengths(self)

        def run(tensors: Any) -> Any:
            return _run(lambda tensor: getattr(tensor, method)(), inplace, tensors, [()] * len(tensors))

        if inplace:
            return run(self)
        keeps = () if operation in _KEEP_NOTHING else (_RESULTS,) if operation in _KEEP_RESULTS else (0,)
        return _recorded(node, run, [self], keeps)

    return function


def _pointwise(operation: str, inplace: bool) -> Callable:
    method = operation + "_" * inplace

    def function(self: Any, tensor1: Any, tensor2: Any, scalars: Any = None, value: Any = 1) -> Any:
        lists = [self, tensor1, tensor2]
        packed = scalars if isinstance(scalars, Tensor) else None
        if packed is not None:
            if scalars.dim() != 1:
                text = f"Expected packed scalar Tensor to be of dimension 1. Got {scalars.dim()} instead."
                raise RuntimeError(text)
            if len(scalars) != len(self):
                raise RuntimeError(
                    f"Expected length of scalars to match input of length {len(self)} but got {len(scalars)} "
                    "instead."
                )
            scalars = scalars.tolist()
        _same_lengths(*lists)
        values = _per_tensor(self, value if scalars is None else scalars)

        def run(tensors: Any, first: Any, second: Any) -> Any:
            rows = list(zip(first, second, values, strict=True))
            return _run(lambda t, a, b, v: getattr(t, method)(a, b, value=v), inplace, tensors, rows)

        if packed is not None:
            return _refused_later_on(f"_foreach_{method}", run, lists, packed)
        node = f"Foreach{operation.capitalize()}Backward0{'Scalar' if scalars is None else _form(scalars)}"
        return run(*lists) if inplace else _recorded(node, run, lists, (0, 1, 2))

    return function


def _lerp(operation: str, inplace: bool) -> Callable:
    method = operation + "_" * inplace

    def function(self: Any, tensors1: Any, weight: Any = None, weights: Any = None) -> Any:
        weight = weights if weight is None else weight
        _same_lengths(self, tensors1)
        each = _per_tensor(self, weight)

        def run(tensors: Any, ends: Any, weights: Any = each) -> Any:
            rows = list(zip(ends, weights, strict=True))
            return _run(lambda t, end, w: getattr(t, method)(end, w), inplace, tensors, rows)

        node = f"ForeachLerpBackward{int(_form(weight) == 'List')}{_form(weight)}"
        lists = [self, tensors1, *_tensors_in(weight)]
        return run(*lists) if inplace else _recorded(node, run, lists, (0, 1, 2) if lists[2:] else ())

    return function


def _foreach_norm(self: Any, ord: Any = 2, dtype: Any = None) -> tuple:
    """The norm of each tensor.

    >>> rushlight._foreach_norm([rushlight.ones(4), rushlight.ones(9)])
    (tensor(2.), tensor(3.))
    """
    _same_lengths(self)
    if isinstance(ord, (bool, complex)):
        raise RuntimeError("foreach_tensor_norm_slow expects ord to be integer or float")
    if abs(ord) == float("inf") and any(tensor.numel() == 0 for tensor in self):
        raise RuntimeError(
            "_foreach_norm cannot compute the infinity norm on an empty tensor because the operation does "
            "not have an identity"
        )

    def norms(tensors: Any) -> tuple:
        return tuple(rushlight.linalg.vector_norm(tensor, ord, dtype=dtype) for tensor in tensors)

    kept = {"self": self, "ord": ord, "result": None}
    return _recorded("ForeachNormBackward0", norms, [self], (0, _RESULTS), kept)


def _foreach_powsum(self: Any, ord: Any = 2, dtype: Any = None) -> tuple:
    """The sum of the absolute values of each tensor, raised to a power."""
    _same_lengths(self)
    for tensor in self:
        if not (tensor.is_floating_point() or tensor.is_complex()):
            raise NotImplementedError("\"powsum_cpu\" not implemented for 'Long'")

    def run(tensors: Any) -> tuple:
        cast = [tensor if dtype is None else tensor.to(dtype) for tensor in tensors]
        return tuple(rushlight.sum(tensor.abs().pow(ord)) for tensor in cast)

    return _refused_later_on("_foreach_powsum", run, [self])


def _foreach_max(self: Any) -> tuple:
    """The largest element of each tensor."""
    _same_lengths(self)
    if any(tensor.numel() == 0 for tensor in self):
        raise RuntimeError(
            "_foreach_max cannot compute the maximum of an empty tensor; max over zero elements is undefined."
        )

    def largest(tensors: Any) -> tuple:
        return tuple(tensor.max() for tensor in tensors)

    return _recorded("ForeachMaxBackward1", largest, [self], (0, _RESULTS))


def _foreach_mm(self: Any, mat2: Any) -> tuple:
    """The matrix product of each pair."""
    if len(self) == 0:
        raise RuntimeError("_foreach_mm requires non-empty tensor lists")
    if len(self) != len(mat2):
        raise RuntimeError("_foreach_mm: self and mat2 must have the same number of tensors")
    _same_lengths(self, mat2)

    def products(first: Any, second: Any) -> tuple:
        return tuple(rushlight.mm(a, b) for a, b in zip(first, second, strict=True))

    return _recorded("ForeachMmBackward0", products, [self, mat2], (1, 0))


def _foreach_copy_(self: Any, src: Any, non_blocking: Any = False) -> Any:
    """Copies each tensor of `src` into its partner."""
    _same_lengths(self, src)

    def run(tensors: Any, sources: Any) -> Any:
        rows = [(source,) for source in sources]
        return _run(lambda to, source: to.copy_(source, non_blocking), True, tensors, rows)

    return _refused_later_on("_foreach_copy_", run, [self, src])


def _foreach_zero_(self: Any) -> Any:
    """Fills every tensor with zeros."""
    _same_lengths(self)
    return _run(lambda tensor: tensor.zero_(), True, self, [()] * len(self))


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
                function = maker(operation, inplace)
                function.__name__ = function.__qualname__ = name
                function.__doc__ = f"{operation} of each tensor of a list{', in place' * inplace}."
                table[name] = function
    return {name: _checked(name, function) for name, function in table.items()}


FUNCTIONS = _table()
