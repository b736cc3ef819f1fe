"""Nested inputs for each device, and nested outputs from them."""

from rushlight import Tensor
from rushlight.nn.parallel import comm
from rushlight.nn.parallel._functions import Gather, Scatter

__all__ = ["gather", "is_namedtuple", "scatter", "scatter_kwargs"]


def is_namedtuple(obj):
    """Whether a tuple has named fields."""
    return isinstance(obj, tuple) and hasattr(obj, "_asdict") and hasattr(obj, "_fields")


_is_namedtuple = is_namedtuple


def scatter(inputs, target_gpus, dim=0):
    """The inputs for each device: tensors in parts, everything else as it is.

    >>> import rushlight as torch
    >>> torch.nn.parallel.scatter((1, {"a": 2}), [0, 1])
    [(1, {'a': 2}), (1, {'a': 2})]
    """
    for device in target_gpus:
        comm.device_index(device)

    def parts(item):
        if isinstance(item, Tensor):
            return Scatter.apply(target_gpus, None, dim, item)
        if is_namedtuple(item):
            return [type(item)(*fields) for fields in zip(*map(parts, item))]
        if isinstance(item, tuple) and item:
            return list(zip(*map(parts, item)))
        if isinstance(item, list) and item:
            return [list(entries) for entries in zip(*map(parts, item))]
        if isinstance(item, dict) and item:
            return [type(item)(entries) for entries in zip(*map(parts, item.items()))]
        return [item for _ in target_gpus]

    return parts(inputs)


def scatter_kwargs(inputs, kwargs, target_gpus, dim=0):
    """Positional and keyword arguments for each device; the shorter of the two is filled up with none."""
    positional = scatter(inputs, target_gpus, dim) if inputs else []
    named = scatter(kwargs, target_gpus, dim) if kwargs else []
    count = max(len(positional), len(named))
    positional += [() for _ in range(count - len(positional))]
    named += [{} for _ in range(count - len(named))]
    return tuple(positional), tuple(named)


def gather(outputs, target_device, dim=0):
    """The outputs of all devices, together on one."""

    def together(parts):
        first = parts[0]
        if isinstance(first, Tensor):
            return Gather.apply(target_device, dim, *parts)
        if first is None:
            return None
        if isinstance(first, dict):
            if not all(len(first) == len(part) for part in parts):
                raise ValueError("All dicts must have the same number of keys")
            return type(first)((key, together([part[key] for part in parts])) for key in first)
        if is_namedtuple(first):
            return type(first)._make(map(together, zip(*parts)))
        return type(first)(map(together, zip(*parts)))

    return together(outputs)
