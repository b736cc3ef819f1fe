"""From a list of samples to a batch: tensors are stacked, containers are kept and filled."""

from __future__ import annotations

import copy
import re
import sys
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import rushlight
from rushlight import Tensor

default_collate_err_msg_format = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)


np_str_obj_array_pattern = re.compile(r"[SaUO]")  # the kinds of arrays that no tensor can hold


def _is_array(value: Any) -> bool:
    """Whether a value is NumPy's, without importing NumPy."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic))


def _convertible(array: Any) -> bool:
    return np_str_obj_array_pattern.search(array.dtype.str) is None


def _rebuilt(original: Any, items: Any) -> Any:
    """A container like `original` with other contents; a plain dict or list where that cannot be made."""
    mapping = isinstance(original, Mapping)
    new: Any
    try:
        if mapping and isinstance(original, MutableMapping):
            new = copy.copy(original)
            new.update(items)
            return new
        if not mapping and isinstance(original, MutableSequence):
            new = copy.copy(original)
            for i, item in enumerate(items):
                new[i] = item
            return new
        return type(original)(items)
    except TypeError:
        return items


def default_convert(data: Any) -> Any:
    """Makes tensors of NumPy arrays, also inside dicts, lists and tuples; leaves the rest as it is.

    >>> rushlight.utils.data.default_convert([1, "text"])
    [1, 'text']
    """
    if isinstance(data, Tensor):
        return data
    if _is_array(data):
        return rushlight.as_tensor(data) if _convertible(data) else data
    if isinstance(data, Mapping):
        return _rebuilt(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(value) for value in data))
    if isinstance(data, tuple):
        return [default_convert(value) for value in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _rebuilt(data, [default_convert(value) for value in data])
    return data


def collate_tensor_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """The tensors stacked along a new first dimension; in a worker into memory that the loader shares."""
    from rushlight.utils.data._utils import worker

    first = batch[0]
    if first.layout is not rushlight.strided:
        raise RuntimeError(
            "Batches of sparse tensors are not currently supported by the default collate_fn; please provide "
            "a custom collate_fn to handle them appropriately."
        )
    if worker._worker_info is None or any(one.requires_grad for one in batch):
        return rushlight.stack(list(batch), 0)
    out = rushlight.empty(len(batch) * first.numel(), dtype=first.dtype, device=first.device)
    if first.device.type == "cpu":
        out.share_memory_()
    return rushlight.stack(list(batch), 0, out=out.view(len(batch), *first.shape))


def collate_numpy_array_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """NumPy arrays as tensors, stacked."""
    if not _convertible(batch[0]):
        raise TypeError(default_collate_err_msg_format.format(batch[0].dtype))
    return collate_tensor_fn([rushlight.as_tensor(array) for array in batch])


def collate_numpy_scalar_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """NumPy numbers as one tensor."""
    return rushlight.as_tensor(batch)


def collate_float_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Floats as one tensor of float64."""
    return rushlight.tensor(batch, dtype=rushlight.float64)


def collate_int_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Ints as one tensor."""
    return rushlight.tensor(batch)


def collate_str_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Text stays a list."""
    return batch


default_collate_fn_map: dict[Any, Callable] = {
    Tensor: collate_tensor_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def collate(batch: Any, *, collate_fn_map: dict[Any, Callable] | None = None) -> Any:
    """default_collate with other functions for some types: a dict from type to function."""
    sample = batch[0]
    kind = type(sample)
    if collate_fn_map is not None:
        if kind in collate_fn_map:
            return collate_fn_map[kind](batch, collate_fn_map=collate_fn_map)
        for known, function in collate_fn_map.items():
            if isinstance(sample, known):
                return function(batch, collate_fn_map=collate_fn_map)
        if _is_array(sample):
            array = sample.ndim or type(sample).__name__ == "ndarray"
            function = collate_numpy_array_fn if array else collate_numpy_scalar_fn
            return function(batch, collate_fn_map=collate_fn_map)
    if isinstance(sample, Mapping):
        return _rebuilt(
            sample,
            {key: collate([one[key] for one in batch], collate_fn_map=collate_fn_map) for key in sample},
        )
    if isinstance(sample, tuple) and hasattr(sample, "_fields"):
        return kind(*(collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch)))
    if isinstance(sample, Sequence):
        if any(len(one) != len(sample) for one in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch)]
        return columns if isinstance(sample, tuple) else _rebuilt(sample, columns)
    raise TypeError(default_collate_err_msg_format.format(kind))


def default_collate(batch: Any) -> Any:
    """Makes a batch of samples: tensors and numbers are stacked, dicts and sequences are gone into.

    >>> rushlight.utils.data.default_collate([{"a": 1}, {"a": 2}])
    {'a': tensor([1, 2])}
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)
