"""`_vmap`: the batching that torch had before `torch.vmap`, and has for batches of gradients.

It is made of the same levels, refuses random numbers whatever one may say, and has words of its own.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from rushlight import _C
from rushlight.func._levels import BATCH, level
from rushlight.func._vmap import batched_at, together
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
        with level(BATCH, size) as number:
            given = [
                v if d is None else _C.below_level(number, batched_at, v, number, d)
                for v, d in zip(values, dims, strict=True)
            ]
            found = func(*tree_unflatten(given, spec))
            several = isinstance(found, tuple)
            results = found if several else (found,)
            places = _places(out_dims, len(results), name)
            whole: list[Any] = []
            for i, (result, place) in enumerate(zip(results, places, strict=True)):
                if result is None and allow_none_pass_through:
                    whole.append(None)
                    continue
                _check_result(result, name, i if several else None)
                whole.append(_C.below_level(number, _together_at, result, number, size, place))
        return tuple(whole) if several else whole[0]

    return batched


def _check_result(result: Any, name: str, number: int | None) -> None:
    if not isinstance(result, _C.Tensor):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(result)} "
            + ("as the return." if number is None else f"for return {number}.")
        )


def _together_at(result: Any, number: int, size: int, place: int) -> Any:
    batch = together(result, number, size)
    if _C.is_any_sparse(batch):
        from rushlight._sparse.table import refuse

        refuse("aten::view")
    return batch.movedim(0, place) if place else batch


def vmap(func: Callable, in_dims: Any = 0, out_dims: Any = 0) -> Any:
    """`_vmap` under the name that it had."""
    warnings.warn(
        "Please use `torch.vmap` instead of `torch._vmap_internals.vmap`.", FutureWarning, stacklevel=2
    )
    return _vmap(func, in_dims, out_dims)
