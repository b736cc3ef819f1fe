"""`grad`, `vjp`, `jvp` and what is made of them: derivatives of functions, to any order and in any
mixture."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from rushlight import _C
from rushlight.autograd import forward_ad
from rushlight.autograd import grad as gradients_of
from rushlight.func._levels import (
    TANGENTS,
    Tensor,
    begin_gradients,
    level,
    lowered,
    raised,
    tree_flatten,
    tree_map,
    tree_unflatten,
)  # fmt: skip
from rushlight.func._vmap import mapped
from rushlight.utils._pytree import _LEAF_SPEC, treespec_pprint


def _active(value: Any) -> Any:
    """An argument with respect to which is differentiated."""
    if isinstance(value, Tensor):
        if not (value.is_floating_point() or value.is_complex()):
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        return _C.requires_grad_(value, True)
    raise ValueError(f"Thing passed to transform API must be Tensor, got {type(value)}")


def _chosen(args: tuple, argnums: Any) -> Any:
    """The arguments that are meant by one number or several."""
    if argnums.__class__ is int and 0 <= argnums < len(args):
        return args[argnums]

    def check(number: Any) -> int:
        if not isinstance(number, int):
            raise RuntimeError(f"argnum must be int, got: {type(number)}")
        if not -len(args) <= number < len(args):
            raise RuntimeError(f"Got argnum={number}, but only {len(args)} positional inputs")
        return number % len(args)

    if isinstance(argnums, int):
        return args[check(argnums)]
    if not isinstance(argnums, tuple):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    places = tuple(map(check, argnums))
    if not argnums:
        raise RuntimeError("argnums must be non-empty")
    if len(set(places)) != len(places):
        raise RuntimeError(f"argnums elements must be unique, got {places}")
    return tuple(args[place] for place in places)


def slice_argnums(args: tuple, argnums: Any, as_tuple: bool = True) -> Any:
    """The arguments that are meant by one number or several, as a tuple unless `as_tuple=False` is said."""
    chosen = _chosen(args, argnums)
    return (chosen,) if as_tuple and isinstance(argnums, int) else chosen


def as_tuple(value: Any) -> tuple:
    """A tuple as it is, anything else as the only element of one."""
    return value if isinstance(value, tuple) else (value,)


def _replaced(args: tuple, argnums: Any, chosen: Any) -> tuple:
    given = list(args)
    if isinstance(argnums, int):
        given[argnums] = chosen
    else:
        for number, value in zip(argnums, chosen):
            given[number] = value
    return tuple(given)


def _pull(
    outputs: list, inputs: list, cotangents: Any, retain: bool | None = None, create: bool = True
) -> list:
    """Gradients, zeros where there are none."""
    roots: Any = outputs
    given: Any = cotangents or [None] * len(outputs)
    if not all(out.requires_grad for out in outputs):
        reached = [(out, along) for out, along in zip(outputs, given) if out.requires_grad]
        if not reached:
            return [x.new_zeros(x.shape) for x in inputs]
        roots, given = zip(*reached)
    if cotangents is None and len(roots) == 1 and not roots[0].dim() and roots[0].is_floating_point():
        given, fit = (_C.ones_like(roots[0]),), True
    else:
        fit = all(map(_fits, given, roots))
    if fit:
        found = _C.run_backward(
            tuple(roots), tuple(given), create if retain is None else retain, create, tuple(inputs), False
        )
    else:
        found = gradients_of(roots, inputs, given, retain, create, allow_unused=True)
    return [x.new_zeros(x.shape) if g is None else g for g, x in zip(found, inputs)]


def _fits(cotangent: Any, out: Tensor) -> bool:
    """Whether nothing is to be checked, nor converted."""
    return (
        isinstance(cotangent, Tensor)
        and cotangent.shape == out.shape
        and cotangent.dtype == out.dtype
        and cotangent.device == out.device
    )


def _with_aux(out: Any, called: str) -> tuple:
    """The value of a function, and what it returns beside it."""
    if not (isinstance(out, tuple) and len(out) == 2):
        raise RuntimeError(
            f"{called}: output of function f should be a tuple: (output, aux) if has_aux is True"
        )
    return out


def _aux(value: Any, number: int) -> Any:
    """What a function returns beside its value, below the level: tensors only."""
    for each in tree_flatten(value)[0]:
        if not isinstance(each, Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(each)}")
    return lowered(value, number)


def _gradient(func: Callable, argnums: Any, has_aux: bool, args: tuple, kwargs: dict) -> tuple:
    """The gradient, the value, and what the function returns beside it."""
    begun = begin_gradients()
    try:
        number = begun[0]
        args = raised(args, number, False)
        kwargs = raised(kwargs, number, False) if kwargs else kwargs
        chosen = _chosen(args, argnums)
        flat, spec = ([chosen], _LEAF_SPEC) if isinstance(chosen, Tensor) else tree_flatten(chosen)
        for each in flat:
            _active(each)
        out, aux = func(*args, **kwargs), None
        if has_aux:
            out, aux = _with_aux(out, "grad_and_value(f)(*args)")
        if not isinstance(out, Tensor):
            raise RuntimeError(
                f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(out)}"
            )
        if out.dim() != 0:
            raise RuntimeError(
                "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor "
                f"with {out.dim()} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
            )
        gradients = [_C.lower_from_level(g, number) for g in _pull([out], flat, None)]
        found = tree_unflatten(gradients, spec)
        return found, _C.lower_from_level(out, number), _aux(aux, number) if has_aux else None
    finally:
        _C.end_gradients(begun)


def grad_and_value(func: Callable, argnums: Any = 0, has_aux: bool = False) -> Callable:
    """The function that returns the gradient, and the value with it.

    >>> torch.func.grad_and_value(lambda x: (x**2).sum())(torch.tensor([1.0, 2.0]))
    (tensor([2., 4.]), tensor(5.))
    """

    def both(*args: Any, **kwargs: Any) -> Any:
        found, value, aux = _gradient(func, argnums, has_aux, args, kwargs)
        return (found, (value, aux)) if has_aux else (found, value)

    return _C.dressed(both, func)


def grad(func: Callable, argnums: Any = 0, has_aux: bool = False) -> Callable:
    """The function that returns the gradient of a scalar function with respect to the arguments `argnums`.

    >>> torch.func.grad(torch.sin)(torch.tensor(0.0))
    tensor(1.)
    >>> torch.func.grad(torch.func.grad(torch.sin))(torch.tensor(0.0))
    tensor(-0.)
    """

    def alone(*args: Any, **kwargs: Any) -> Any:
        found, _, aux = _gradient(func, argnums, has_aux, args, kwargs)
        return (found, aux) if has_aux else found

    return _C.dressed(alone, func)


def _outputs(out: Any, called: str) -> tuple[list, Any]:
    if not isinstance(out, Tensor):
        flat = tree_flatten(out)[0]
        if not flat or flat == [None]:
            raise RuntimeError(
                f"{called}: Expected f to be a function that has non-empty output (got output = {flat})"
            )
        for value in flat:
            if not isinstance(value, Tensor):
                raise RuntimeError(
                    f"{called}: expected f(*primals) to return only tensors, got unsupported type "
                    f"{type(value)}"
                )
    return tree_flatten(out)


def vjp(func: Callable, *primals: Any, has_aux: bool = False) -> tuple:
    """The value of a function, and the function that pulls cotangents of it back to its arguments.

    >>> value, pull = torch.func.vjp(torch.sin, torch.tensor(0.0))
    >>> value, pull(torch.tensor(2.0))
    (tensor(0.), (tensor(2.),))
    """
    begun = begin_gradients()
    try:
        number = begun[0]
        inner = raised(primals, number, False)
        ins, in_spec = tree_flatten(inner)
        for each in ins:
            _active(each)
        out = func(*inner)
        if has_aux:
            out, aux = _with_aux(out, "vjp(f, *primals)")
            aux = _aux(aux, number)
        outs, out_spec = _outputs(out, "vjp(f, *primals)")
        for each in outs:
            if not (each.is_floating_point() or each.is_complex()):
                raise RuntimeError(
                    "vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor "
                    f"with dtype {each.dtype}"
                )
        value = tree_unflatten([_C.lower_from_level(each, number) for each in outs], out_spec)
    finally:
        _C.end_gradients(begun)

    def pull(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        if create_graph is None:
            create_graph = _C.is_grad_enabled()
        given, spec = tree_flatten(cotangents)
        if spec != out_spec:
            shown, wanted = map(treespec_pprint, (spec, out_spec))
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to "
                f"the function. cotangents: {shown}, primal output: {wanted}"
            )
        found = _pull(outs, ins, given, retain_graph, create_graph)
        return tree_unflatten([_C.living(g) for g in found], in_spec)

    return (value, pull, aux) if has_aux else (value, pull)


class _Carriers:
    """Who needs the dual level, which there is one of for all threads; it is open until the last has
    ended."""

    lock = threading.Lock()
    count = 0
    level: int | None = None


_carriers = _Carriers()


class _carrying:
    """Tangents travel with tensors: a dual level, unless one is open."""

    __slots__ = ("forward",)

    def __enter__(self) -> None:
        with _carriers.lock:
            if not _carriers.count and forward_ad._current_level < 0:
                _carriers.level = forward_ad.enter_dual_level()
            _carriers.count += 1
        self.forward = _C.set_forward_mode(True)

    def __exit__(self, *error: object) -> None:
        _C.set_forward_mode(self.forward)
        with _carriers.lock:
            _carriers.count -= 1
            if not _carriers.count and _carriers.level is not None:
                ending, _carriers.level = _carriers.level, None
                forward_ad.exit_dual_level(level=ending)


def _list_of_tensors(flat: list, api: str, name: str) -> list:
    if not flat:
        raise RuntimeError(f"{api}: Expected {name} to contain at least one Tensor.")
    for value in flat:
        if not isinstance(value, Tensor):
            raise RuntimeError(f"{api}: Expected {name} to only contain Tensors, got {type(value)}")
    return flat


def jvp(func: Callable, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> tuple:
    """The value of a function and its derivative along `tangents`.

    >>> torch.func.jvp(torch.sin, (torch.tensor(0.0),), (torch.tensor(3.0),))
    (tensor(0.), tensor(3.))
    """
    return _jvp(func, primals, tangents, None, strict, has_aux)


def _jvp(func: Callable, primals: Any, tangents: Any, argnums: Any, strict: bool, has_aux: bool) -> tuple:
    called = "jvp(f, primals, tangents)"
    if not isinstance(primals, tuple):
        raise RuntimeError(
            f"{called}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals)."
        )
    chosen = primals if argnums is None else _chosen(primals, argnums)
    (flat, spec), (along, tangent_spec) = tree_flatten(chosen), tree_flatten(tangents)
    if spec != tangent_spec:
        raise RuntimeError(
            f"{called}: Expected primals and tangents to have the same python structure. For example, if "
            f"primals is a tuple of 3 tensors, tangents also must be. Got primals with structure {spec} and "
            f"tangents with structure {tangent_spec}"
        )
    flat = _list_of_tensors(flat, called, "primals")
    along = _list_of_tensors(along, called, "tangents")
    with level(TANGENTS) as number, _carrying():
        duals = []
        for primal, tangent in zip(flat, along):
            tangent = _C.below_level(number, _fitting, primal, tangent)
            dual = _C.raise_to_level(primal, number, False)
            _C.set_tangent(dual, _C.raise_to_level(tangent, number, False))
            duals.append(dual)
        inner = tree_unflatten(duals, spec)
        if argnums is not None:
            inner = _replaced(raised(primals, number, False), argnums, inner)
        out = func(*inner)
        if has_aux:
            out, aux = _with_aux(out, called)
            aux = _aux(aux, number)
        outs, out_spec = _outputs(out, called)
        found = []
        for value in outs:
            known = _C.is_leveled(value) and value.level == number
            tangent = _C.tangent(value) if known else None
            if tangent is None and strict:
                raise RuntimeError(
                    "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. "
                    "This is not allowed with strict=True."
                )
            found.append(_C.lower_from_level(tangent, number) if tangent is not None else None)
        values = [_C.lower_from_level(value, number) for value in outs]
        found = [
            _C.below_level(number, _zeros_of, value) if tangent is None else tangent
            for value, tangent in zip(values, found)
        ]
    result = tree_unflatten(values, out_spec), tree_unflatten(found, out_spec)
    return (*result, aux) if has_aux else result


def _zeros_of(value: Tensor) -> Tensor:
    return value.new_zeros(value.shape)


def _fitting(primal: Tensor, tangent: Tensor) -> Tensor:
    """The tangent, in the dtype of what it is the tangent of."""
    for name, value in (("primal", primal), ("tangent", tangent)):
        if not (value.is_floating_point() or value.is_complex()):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {value.dtype}")
    if primal.shape != tangent.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, "
            f"this is not supported. Tensor is of size {list(primal.shape)} while the given forward gradient "
            f"is of size {list(tangent.shape)}."
        )
    if tangent.is_complex() and not primal.is_complex():
        raise RuntimeError(
            f"Expected primal and tangent to have the same dtype, got {primal.dtype} and {tangent.dtype}"
        )
    tangent = tangent if tangent.dtype == primal.dtype else tangent.to(primal.dtype)
    # Where it will be written with what is computed of the primal.
    if _C.is_leveled(primal) and _levels_of(primal) - _levels_of(tangent):
        every = primal.new_ones((), dtype=_C.bool)
        tangent = _C.ops.where(every, tangent, tangent)
    return tangent


def _levels_of(x: Any) -> set:
    """The levels at work that a tensor belongs to."""
    found = set()
    while _C.is_leveled(x):
        found.add((x.level, x.batched))
        x = _C.living(x.value)
    return found


def _refuse_complex(api: str, values: list, are_inputs: bool) -> None:
    for at, value in enumerate(values):
        if isinstance(value, Tensor) and value.is_complex():
            raise RuntimeError(
                f"{api}: Expected all {'inputs' if are_inputs else 'outputs'} to be real but received "
                f"complex tensor at flattened input idx: {at}"
            )


def basis(tensors: Any) -> list:
    """For each tensor, the unit vectors of all together as they lie in it: (number of all, *its sizes)."""
    from rushlight.autograd.functional import _construct_standard_basis_for

    tensors = tuple(tensors)
    units = _construct_standard_basis_for(tensors, tuple(x.numel() for x in tensors))
    return [unit.view(len(unit), *x.shape) for unit, x in zip(units, tensors)]


def jacrev(
    func: Callable,
    argnums: Any = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable:
    """The function that returns the Jacobian, computed backwards, a row at a time for all rows at once.

    >>> torch.func.jacrev(torch.sin)(torch.zeros(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    def jacobian(*args: Any, **kwargs: Any) -> Any:
        import rushlight

        chosen = _chosen(args, argnums)
        several = isinstance(argnums, tuple)

        def of_chosen(*values: Any) -> Any:
            return func(*_replaced(args, argnums, values if several else values[0]), **kwargs)

        primals = chosen if several else (chosen,)
        ins, in_spec = tree_flatten(primals)
        _refuse_complex("jacrev", ins, True)
        if has_aux:
            out, pull, aux = vjp(of_chosen, *primals, has_aux=True)
        else:
            out, pull = vjp(of_chosen, *primals)
        outs, out_spec = tree_flatten(out)
        _refuse_complex("jacrev", outs, False)
        units = basis(outs)
        total = units[0].shape[0]
        step = chunk_size or total
        rows: list = []
        for start in range(0, total, step) if total else (0,):
            some = tree_unflatten([part[start : start + step] for part in units], out_spec)
            rows.append(tree_flatten(mapped(pull, some) if step > 1 or start else _single(pull, some))[0])
        columns = [part[0] if len(rows) == 1 else rushlight.cat(part) for part in zip(*rows)]
        counts = [value.numel() for value in outs]
        split = [column.split(counts, 0) for column in columns]
        jacobians = []
        for i, value in enumerate(outs):
            parts = [split[j][i].view((*value.shape, *x.shape)) for j, x in enumerate(ins)]
            made = tree_unflatten(parts, in_spec)
            jacobians.append(made if several else made[0])
        result = tree_unflatten(jacobians, out_spec)
        return (result, aux) if has_aux else result

    return _C.dressed(jacobian, func)


def _single(pull: Callable, cotangents: Any) -> Any:
    """One row, by itself."""
    rows = tree_flatten(cotangents)[0][0].shape[0]
    if rows != 1:
        return mapped(pull, cotangents)
    found = pull(tree_map(lambda x: x[0], cotangents))
    return tree_map(lambda x: x.unsqueeze(0) if _C.is_leveled(x) else _C.forget_base(x.unsqueeze(0)), found)


def jacfwd(func: Callable, argnums: Any = 0, has_aux: bool = False, *, randomness: str = "error") -> Callable:
    """The function that returns the Jacobian, computed forwards, a column at a time for all columns at once.

    >>> torch.func.jacfwd(torch.cos)(torch.zeros(2))
    tensor([[-0., -0.],
            [-0., -0.]])
    """

    def jacobian(*args: Any, **kwargs: Any) -> Any:
        wrapped = functools.partial(func, **kwargs) if kwargs else func
        chosen = args if argnums is None else _chosen(args, argnums)
        ins, in_spec = tree_flatten(chosen)
        _refuse_complex("jacfwd", ins, True)
        units = tree_unflatten(basis(ins), in_spec)

        def push(along: Any) -> Any:
            out = _jvp(wrapped, args, along, argnums, False, has_aux)
            return (out[1], out[2]) if has_aux else (out[1],)

        results = mapped(push, units, (0, None) if has_aux else 0, randomness)
        outs, out_spec = tree_flatten(results[0])
        _refuse_complex("jacfwd", outs, False)
        counts = [x.numel() for x in ins]
        jacobians = []
        for value in outs:
            parts = value.movedim(0, -1).split(counts, -1)
            shaped = [part.reshape((*value.shape[1:], *x.shape)) for part, x in zip(parts, ins)]
            jacobians.append(tree_unflatten(shaped, in_spec))
        result = tree_unflatten(jacobians, out_spec)
        return (result, results[1]) if has_aux else result

    return _C.dressed(jacobian, func)


def hessian(func: Callable, argnums: Any = 0) -> Callable:
    """The function that returns the matrix of second derivatives: forwards over backwards.

    >>> torch.func.hessian(lambda x: (x**3).sum())(torch.ones(2))
    tensor([[6., 0.],
            [0., 6.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


def functionalize(func: Callable, *, remove: str = "mutations") -> Callable:
    """The function itself: what it writes into its arguments is written, and what it returns returned.
    Torch's takes the writes out of the trace that a compiler sees; there is none here."""
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. Valid "
            "options are:\n     remove='mutations' and remove='mutations_and_views', which are the same here."
        )

    def same(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)

    return _C.dressed(same, func)
