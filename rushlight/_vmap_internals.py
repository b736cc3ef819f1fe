"""`_vmap`: a function of single examples applied to batches of them, example by example.

torch's transform runs the function once on tensors with a hidden dimension. Here it runs once per example and
the results are stacked: the same values at the cost of a loop. (`torch.func`, which is faster, is to come.)
"""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from rushlight import _C, stack
from rushlight.ops._tangents import batching
from rushlight.utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_unflatten

__all__ = ["vmap"]


def _batch_size(values: list, dims: list, name: str, in_dims: Any) -> int:
    sizes = []
    for value, dim in zip(values, dims, strict=True):
        if dim is None:
            continue
        if not isinstance(dim, int):
            raise ValueError(
                f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={dim} for an input but in_dim "
                "must be either an integer dimension or None."
            )
        if not isinstance(value, _C.Tensor):
            raise ValueError(
                f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={dim} for an input but the "
                f"input is of type {type(value)}. We cannot vmap over non-Tensor arguments, please "
                "use None as the respective in_dim"
            )
        if not 0 <= dim < value.dim():
            raise ValueError(
                f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={dim} for some input, but that "
                f"input is a Tensor of dimensionality {value.dim()} so expected in_dim to satisfy "
                f"0 <= in_dim < {value.dim()}."
            )
        sizes.append(value.size(dim))
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if any(size != sizes[0] for size in sizes):
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} "
            "for the mapped dimension"
        )
    return sizes[0]


def _misfit(name: str, in_dims: tuple, spec: Any) -> ValueError:
    return ValueError(
        f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): in_dims is not compatible with the structure of "
        f"`inputs`. in_dims has structure {tree_flatten(in_dims)[1]} but inputs has structure {spec}."
    )


def _places(out_dims: Any, count: int | None, name: str) -> tuple[int, ...]:
    """Where the batch goes in each of `count` results, which are not known before the function ran (None)."""
    places = out_dims if isinstance(out_dims, tuple) else (out_dims,) * (1 if count is None else count)
    if not all(isinstance(place, int) for place in places):
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims}): `out_dims` must be an int or a tuple of int "
            "representing where in the outputs the vmapped dimension should appear."
        )
    if count is not None and len(places) != count:
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims}): `out_dims` must have one dim per output (got {count} "
            f"outputs) of {name}."
        )
    return places


@contextlib.contextmanager
def _marked(batches: list) -> Iterator[None]:
    """Nothing may depend on the values of an example."""
    for batch in batches:
        _C.mark_batched(batch, True)
    try:
        yield
    finally:
        for batch in batches:
            _C.mark_batched(batch, False)


def _vmap(func: Callable, in_dims: Any = 0, out_dims: Any = 0, allow_none_pass_through: bool = False) -> Any:
    """The function of batches: `in_dims` says where the batch is in every argument (None: it has none),
    `out_dims` where to put it in the results.

    >>> from rushlight._vmap_internals import _vmap
    >>> _vmap(rushlight.dot)(rushlight.ones(2, 3), rushlight.arange(6.0).reshape(2, 3))
    tensor([ 3., 12.])
    """

    @functools.wraps(func)
    def batched(*args: Any) -> Any:
        name = getattr(func, "__name__", repr(func))
        if not args:
            raise ValueError(
                f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying "
                "to vmap over a function with no inputs. The latter is unsupported."
            )
        values, spec = tree_flatten(args)
        dims: list[int | None]
        if isinstance(in_dims, int):
            dims = [in_dims] * len(values)
        elif isinstance(in_dims, tuple) and len(in_dims) == len(args):
            found = _broadcast_to_and_flatten(in_dims, spec)
            if found is None:
                raise _misfit(name, in_dims, spec)
            dims = found
        elif isinstance(in_dims, tuple):
            raise _misfit(name, in_dims, spec)
        else:
            raise ValueError(
                f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): expected `in_dims` to be int or a "
                f"(potentially nested) tuple matching the structure of inputs, got: {type(in_dims)}."
            )
        size = _batch_size(values, dims, name, in_dims)
        _places(out_dims, None, name)
        results, slices = [], []
        for i in range(size):
            one = [v if d is None else v.select(d, i) for v, d in zip(values, dims, strict=True)]
            slices.append(one)
            with batching, _marked([v for v, d in zip(values, dims, strict=True) if d is not None]):
                results.append(func(*tree_unflatten(one, spec)))
        if not results:
            raise ValueError(
                f"vmap({name})(<inputs>): the batch is empty, and so is what is known of its results"
            )
        several = isinstance(results[0], tuple)
        columns = list(zip(*results, strict=True)) if several else [tuple(results)]
        places = _places(out_dims, len(columns), name)
        given = zip(values, dims, zip(*slices, strict=True), strict=True)
        known = [(column, value, True) for value, dim, column in given if dim == 0]
        # A view comes after what it is a view of.
        order = sorted(range(len(columns)), key=lambda i: getattr(columns[i][0], "_base", None) is not None)
        stacked: dict[int, Any] = {}
        for i in order:
            found = _as_known(columns[i], known) if places[i] == 0 else None
            if found is None:
                found = _stacked(columns[i], places[i], name, allow_none_pass_through, i if several else None)
            stacked[i] = found
            if places[i] == 0:
                known.append((columns[i], found, False))
        return tuple(stacked[i] for i in range(len(columns))) if several else stacked[0]

    return batched


def _as_known(column: tuple, known: list[tuple[tuple, Any, bool]]) -> Any:
    """What comes out twice, or went in and comes out, is one tensor, and a view is a view of its base."""
    if not all(isinstance(value, _C.Tensor) for value in column):
        return None
    for values, whole, went_in in known:
        if all(a is b for a, b in zip(column, values, strict=True)):
            return whole
        first = column[0]
        place = (first.shape, first.stride(), first.storage_offset())
        if (
            all(a._base is b for a, b in zip(column, values, strict=True))
            and all((a.shape, a.stride(), a.storage_offset()) == place for a in column)
            and all(not b.storage_offset() and b.stride() == whole.stride()[1:] for b in values)
            and whole.dtype == first.dtype
            and not whole.storage_offset()
        ):
            if not went_in and (values[0].shape, values[0].stride(), 0) == place:
                return whole
            sizes, strides = (len(column), *first.shape), (whole.stride(0), *first.stride())
            return whole.as_strided(sizes, strides, first.storage_offset())
    return None


def _stacked(column: tuple, place: int, name: str, none_allowed: bool, number: int | None) -> Any:
    if none_allowed and all(value is None for value in column):
        return None
    for value in column:
        if not isinstance(value, _C.Tensor):
            raise ValueError(
                f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(value)} "
                + ("as the return." if number is None else f"for return {number}.")
            )
        if _C.is_sparse(value):
            from rushlight._sparse.table import refuse

            refuse("aten::view")
    return stack(column, place)


def vmap(func: Callable, in_dims: Any = 0, out_dims: Any = 0) -> Any:
    """`_vmap` under the name that it had."""
    warnings.warn(
        "Please use `torch.vmap` instead of `torch._vmap_internals.vmap`.", FutureWarning, stacklevel=2
    )
    return _vmap(func, in_dims, out_dims)
