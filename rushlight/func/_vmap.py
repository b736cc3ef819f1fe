"""`vmap`: a function of single examples, applied to batches of them at once."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from rushlight import _C
from rushlight.func._levels import (
    BATCH,
    Tensor,
    level,
    lowered,
    number_of,
    tree_flatten,
    tree_map,
    tree_unflatten,
)
from rushlight.utils._pytree import _broadcast_to_and_flatten


def name_of(func: Any) -> str:
    if hasattr(func, "__name__"):
        return func.__name__
    if isinstance(func, functools.partial):
        return f"functools.partial({name_of(func.func)}, ...)"
    return repr(func)


def _has(x: Tensor, dim: int) -> bool:
    return -x.dim() <= dim < x.dim()


def _in_dims(in_dims: Any, args: tuple, func: Any) -> tuple[list, list, Any]:
    """The arguments, where each has its examples, and the structure of all."""

    def refusal(text: str) -> ValueError:
        return ValueError(f"vmap({name_of(func)}, in_dims={in_dims}, ...)(<inputs>): {text}")

    if not isinstance(in_dims, (int, tuple)):
        raise refusal(
            "expected `in_dims` to be int or a (potentially nested) tuple matching the structure "
            f"of inputs, got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({name_of(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are "
            "trying to vmap over a function with no inputs. The latter is unsupported."
        )
    values, spec = tree_flatten(args)
    if in_dims.__class__ is int and all(isinstance(x, Tensor) and _has(x, in_dims) for x in values):
        return values, [in_dims if in_dims >= 0 else in_dims + x.dim() for x in values], spec
    dims = [in_dims] * len(values) if type(in_dims) is int else _broadcast_to_and_flatten(in_dims, spec)
    if dims is None:
        raise refusal(
            "in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{tree_flatten(in_dims)[1]} but inputs has structure {spec}."
        )
    for i, (value, dim) in enumerate(zip(values, dims, strict=True)):
        if dim is None:
            continue
        if not isinstance(dim, int):
            raise refusal(
                f"Got in_dim={dim} for an input but in_dim must be either an integer dimension or None."
            )
        if not isinstance(value, Tensor):
            raise refusal(
                f"Got in_dim={dim} for an input but the input is of type {type(value)}. We cannot "
                "vmap over non-Tensor arguments, please use None as the respective in_dim"
            )
        rank = value.dim()
        if not -rank <= dim < rank:
            raise refusal(
                f"Got in_dim={dim} for some input, but that input is a Tensor of dimensionality "
                f"{rank} so expected in_dim to satisfy -{rank} <= in_dim < {rank}."
            )
        if dim < 0:
            dims[i] = dim % rank
    return values, dims, spec


def _size(values: list, dims: list) -> int:
    sizes = [values[i].size(dim) for i, dim in enumerate(dims) if dim is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if sizes.count(sizes[0]) != len(sizes):
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} "
            "for the mapped dimension"
        )
    return sizes[0]


def _out_dims(out_dims: Any, spec: Any, func: Any) -> list:
    if type(out_dims) is tuple and len(out_dims) == 1 and spec.is_leaf():
        out_dims = out_dims[0]  # of the only result
    if type(out_dims) is int:
        return [out_dims] * spec.num_leaves
    dims = _broadcast_to_and_flatten(out_dims, spec)
    if dims is None:
        raise ValueError(
            f"vmap({name_of(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the "
            f"structure of `outputs`. out_dims has structure {tree_flatten(out_dims)[1]} but outputs has "
            f"structure {spec}."
        )
    for dim in dims:
        if dim is not None and not isinstance(dim, int):
            raise ValueError(
                f"vmap({name_of(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a "
                "python collection of ints representing where in the outputs the vmapped dimension should "
                "appear."
            )
    return dims


def batched_at(x: Tensor, number: int, dim: int) -> Tensor:
    """The batch as a tensor of the level, its examples along `dim`."""
    return _C.raise_to_level(x if dim == 0 else x.movedim(dim, 0), number, True)


def together(value: Any, number: int, size: int) -> Tensor:
    """The batch that a tensor of the level stands for; what is no batch, so many times."""
    inner = _C.lower_from_level(value, number)
    if inner is not value and value.batched:
        return inner
    return inner.unsqueeze(0).expand(size, *inner.shape)


def _together(value: Any, number: int, size: int, dim: int | None, func: Any) -> Any:
    """A result of a function, or of what has this name, with its examples along `dim`."""
    if not isinstance(value, Tensor):
        if dim is None:
            return value
        name = func if isinstance(func, str) else name_of(func)
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(value)}. Did you mean to "
            "set out_dims= to None for output?"
        )
    inner = _C.lower_from_level(value, number)
    batched = inner is not value and getattr(value, "batched", False)
    if dim is None:
        if batched:
            name = func if isinstance(func, str) else name_of(func)
            raise ValueError(
                f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None"
            )
        return inner
    if not batched:
        inner = inner.unsqueeze(0).expand(size, *inner.shape)
    return inner.movedim(0, dim) if dim else inner


# Note [the steps of vmap]
# Libraries put functions of their own in the place of `_process_batched_inputs`, `_create_batched_inputs` and
# `_unwrap_batched` of torch._functorch.vmap, so that whole batches of their own kind (tensordict's) can be
# mapped over. So these have torch's names and arguments, and `vmap` asks that module for them, if it was
# imported. A level is the number of the transforms at work, as everywhere in torch._functorch. By that number
# tensordict keeps tensors of a level for the next `vmap` of the same batch. So a level whose tensors are made
# by a library has the number of the last one at its depth with batches of its size: they are alive again.


_numbers: dict[tuple[int, int], int] = {}  # of levels at a depth with batches of a size, if made by libraries


_THIS = sys.modules[__name__]


def _steps(modules: dict = sys.modules) -> Any:
    """Where the steps are looked up; see Note [the steps of vmap]."""
    return modules.get("rushlight._functorch.vmap") or _THIS


def _process_batched_inputs(in_dims: Any, args: tuple, func: Any) -> tuple:
    """The size of the batch, where each argument has its examples, the arguments and their structure."""
    values, dims, spec = _in_dims(in_dims, args, func)
    return _size(values, dims), dims, values, spec


def _create_batched_inputs(flat_in_dims: list, flat_args: list, vmap_level: int, args_spec: Any) -> Any:
    """The arguments for one example: batches as tensors of the level."""
    return _begun(flat_in_dims, flat_args, number_of(vmap_level), args_spec)


def _begun(dims: list, values: list, number: int, spec: Any) -> Any:
    def begun(value: Any, dim: int | None) -> Any:
        if dim is None:
            return value
        if dim == 0:
            return _C.raise_to_level(value, number, True)
        return _C.below_level(number, batched_at, value, number, dim)

    given = list(map(begun, values, dims))
    return tree_unflatten(given, spec)


def _unwrap_batched(
    batched_outputs: Any, out_dims: Any, vmap_level: int, batch_size: int, func: Callable
) -> Any:
    """The results of all examples."""
    return _ended(batched_outputs, out_dims, number_of(vmap_level), batch_size, func)


def _ended(outputs: Any, out_dims: Any, number: int, size: int, func: Callable) -> Any:
    flat, spec = tree_flatten(outputs)
    places = _out_dims(out_dims, spec, func)
    made = [
        _C.below_level(number, _together, value, number, size, places[i], func)
        for i, value in enumerate(flat)
    ]
    return tree_unflatten(made, spec)


def _maybe_remove_batch_dim(
    name: str, batched_output: Any, vmap_level: int, batch_size: int, out_dim: int | None
) -> Any:
    """One result of all examples; without a place for them it must be the same for all."""
    number = number_of(vmap_level)
    return _C.below_level(number, _together, batched_output, number, batch_size, out_dim, name)


def run(func: Callable, size: int, values: list, dims: list, spec: Any, out_dims: Any, randomness: str,
        kwargs: dict) -> Any:  # fmt: skip
    """One batch, all of it at once."""
    steps = _steps()
    foreign = steps._create_batched_inputs is not _create_batched_inputs
    if steps is _THIS or (not foreign and steps._unwrap_batched is _unwrap_batched):
        with level(BATCH, size, randomness) as number:
            result = func(*_begun(dims, values, number, spec), **kwargs)
            return _ended(result, out_dims, number, size, func)
    depth = len(_C.all_levels()) + 1
    again = _numbers.get((depth, size), 0) if foreign else 0
    with level(BATCH, size, randomness, again) as number:
        if foreign:
            _numbers[depth, size] = number
        result = func(*steps._create_batched_inputs(dims, values, depth, spec), **kwargs)
        return steps._unwrap_batched(result, out_dims, depth, size, func)


def restore_vmap(func: Callable, in_dims: Any, batch_size: int, randomness: str) -> Callable:
    """The function of whole batches, which returns as well where each of its results has its examples: None
    for what is the same for all of them, and for what is no tensor."""

    def batched(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        with level(BATCH, batch_size, randomness) as number:
            flat, spec = tree_flatten(args)
            dims = _broadcast_to_and_flatten(in_dims, spec)
            if dims is None:
                raise AssertionError("in_dims is not compatible with the structure of the arguments")
            outputs = func(*_begun(dims, flat, number, spec), **kwargs)
            flat, spec = tree_flatten(outputs)
            places = [0 if _is_batch(value, number) else None for value in flat]
            found = [together(x, number, batch_size) if place == 0 else _below(x, number)
                     for x, place in zip(flat, places, strict=True)]  # fmt: skip
        return tree_unflatten(found, spec), tree_unflatten(places, spec)

    return batched


def _below(value: Any, number: int) -> Any:
    return _C.lower_from_level(value, number) if isinstance(value, Tensor) else value


def _is_batch(value: Any, number: int) -> bool:
    return _below(value, number) is not value and value.batched


def mapped(func: Callable, arg: Any, out_dims: Any = 0, randomness: str = "error") -> Any:
    """`vmap` of a function of one argument, called."""
    _check_randomness(randomness)
    if _steps()._process_batched_inputs is not _process_batched_inputs:
        return vmap(func, out_dims=out_dims, randomness=randomness)(arg)
    values, spec = tree_flatten((arg,))
    return run(func, values[0].shape[0], values, [0] * len(values), spec, out_dims, randomness, {})


def _check_randomness(randomness: Any) -> None:
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}"
        )


def vmap(
    func: Callable,
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable:
    """The function of whole batches: `in_dims` says along which dimension of every argument the examples lie
    (None: it is the same for all), `out_dims` where they are to be in the results.

    `randomness` says whether random numbers are refused ("error"), the same for all examples, or different;
    `chunk_size`, how many examples are computed at once.

    >>> dots = torch.vmap(torch.dot)
    >>> dots(torch.ones(2, 3), torch.arange(6.0).reshape(2, 3))
    tensor([ 3., 12.])
    """
    _check_randomness(randomness)
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    def batched(*args: Any, **kwargs: Any) -> Any:
        size, dims, values, spec = _steps()._process_batched_inputs(in_dims, args, func)
        if chunk_size is None or size <= chunk_size:
            return run(func, size, values, dims, spec, out_dims, randomness, kwargs)
        import rushlight

        parts = []
        state = rushlight.get_rng_state() if randomness == "same" else None
        for start in range(0, size, chunk_size):
            if state is not None:  # every step draws what the first one draws
                rushlight.set_rng_state(state)
            some = [
                value if dim is None else value.narrow(dim, start, min(chunk_size, size - start))
                for value, dim in zip(values, dims, strict=True)
            ]
            count = min(chunk_size, size - start)
            parts.append(run(func, count, some, dims, spec, out_dims, randomness, kwargs))
        return _concatenated(parts, out_dims, func)

    return _C.dressed(batched, func)


def vmap_impl(
    func: Callable,
    in_dims: Any,
    out_dims: Any,
    randomness: str,
    chunk_size: int | None,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """`vmap` of a function, called."""
    return vmap(func, in_dims, out_dims, randomness, chunk_size=chunk_size)(*args, **kwargs)


def _concatenated(parts: list, out_dims: Any, func: Callable) -> Any:
    import rushlight

    flat = [tree_flatten(part) for part in parts]
    spec = flat[0][1]
    places = _out_dims(out_dims, spec, func)
    columns = zip(*(values for values, _ in flat), strict=True)
    whole = [
        column[0] if place is None else rushlight.cat(column, place)
        for column, place in zip(columns, places, strict=True)
    ]
    return tree_unflatten(whole, spec)


def chunk_vmap(
    func: Callable, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", chunks: int = 2
) -> Callable:
    """`vmap` in so many steps."""
    _check_randomness(randomness)
    if chunks == 1:
        return vmap(func, in_dims, out_dims, randomness)

    def batched(*args: Any, **kwargs: Any) -> Any:
        size = _steps()._process_batched_inputs(in_dims, args, func)[0]
        each = -(-size // chunks)
        return vmap(func, in_dims, out_dims, randomness, chunk_size=each)(*args, **kwargs)

    return _C.dressed(batched, func)


__all__ = ["batched_at", "chunk_vmap", "lowered", "name_of", "run", "tree_map", "vmap"]
