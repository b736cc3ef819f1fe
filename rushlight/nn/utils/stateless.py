"""Calling a module with other parameters in the place of its own."""

import contextlib
from collections import Counter
from collections.abc import Sequence

from rushlight import Tensor
from rushlight._warn import warn
from rushlight.nn.module import Module

__all__ = ["functional_call"]


def functional_call(
    module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False
):
    """`module(*args, **kwargs)` with the tensors of a dict in the place of its parameters and buffers."""
    warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be removed in a "
        "future version of PyTorch. Please use `torch.func.functional_call` instead which is a drop-in "
        "replacement.",
        FutureWarning,
    )
    return _functional_call(
        module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict
    )


def _functional_call(
    module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False
):
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    with _replaced(module, parameters_and_buffers, tie_weights, strict):
        return module(*args, **(kwargs or {}))


def func_functional_call(
    module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights=True, strict=False
):
    """What ``torch.func.functional_call`` is: the same, of one dict or several.

    >>> import rushlight as torch
    >>> layer = torch.nn.Linear(2, 1)
    >>> zeros = {name: torch.zeros_like(value) for name, value in layer.named_parameters()}
    >>> torch.func.functional_call(layer, zeros, torch.ones(2))
    tensor([0.])
    """
    if isinstance(parameter_and_buffer_dicts, dict):
        tensors = parameter_and_buffer_dicts
    elif isinstance(parameter_and_buffer_dicts, Sequence):
        if not all(isinstance(each, dict) for each in parameter_and_buffer_dicts):
            raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
        keys = [key for each in parameter_and_buffer_dicts for key in each]
        repeated = [key for key, count in Counter(keys).items() if count > 1]
        if repeated:
            raise ValueError(
                f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous"
            )
        tensors = {key: value for each in parameter_and_buffer_dicts for key, value in each.items()}
    else:
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
            f"{type(parameter_and_buffer_dicts)}"
        )
    return _functional_call(module, tensors, args, kwargs, tie_weights=tie_weights, strict=strict)


func_functional_call.__name__ = func_functional_call.__qualname__ = "functional_call"


_ABSENT = object()


def _owner(module, name):
    """The module whose tensor has this name, and the name there."""
    path, _, leaf = name.rpartition(".")
    walked = ""
    for part in path.split(".") if path else ():
        if not hasattr(module, part):
            raise AttributeError(f"{type(module).__name__} has no attribute `{part}`")
        module = getattr(module, part)
        walked = f"{walked}.{part}" if walked else part
        if not isinstance(module, Module):
            raise TypeError(f"submodule `{walked}`: {module} is not an instance of torch.nn.Module")
    if not leaf:
        raise KeyError('tensor name can\'t be empty string ""')
    return module, leaf


def _table(owner, leaf, name):
    """The dict in which the module keeps the tensor: among its attributes if it is not registered."""
    for table in (owner._parameters, owner._buffers):
        if leaf in table:
            return table
    kept = getattr(owner, leaf, None)
    if kept is not None and not isinstance(kept, Tensor):
        raise TypeError(f"attribute `{name}`: {kept} is not an instance of torch.Tensor")
    return owner.__dict__


@contextlib.contextmanager
def _replaced(module, tensors, tie_weights, strict):
    named = {**dict(module.named_parameters(remove_duplicate=False)),
             **dict(module.named_buffers(remove_duplicate=False))}  # fmt: skip
    wanted = dict(tensors)
    if tie_weights:  # one tensor under several names is replaced under all of them
        given = {}
        for name, value in tensors.items():
            if name in named:
                first, other = given.setdefault(id(named[name]), (name, value))
                if other is not value:
                    raise ValueError(
                        f"functional_call got multiple values for keys {sorted((first, name))}, which are "
                        "tied. Consider using tie_weights=False"
                    )
        wanted |= {name: given[id(value)][1] for name, value in named.items() if id(value) in given}
    unknown, missing = sorted(wanted.keys() - set(named)), sorted(set(named) - wanted.keys())
    if strict and (unknown or missing):
        texts = []
        if unknown:
            texts.append(f"Unexpected key(s): {', '.join(map(repr, unknown))}.")
        if missing:
            texts.append(f"Missing key(s): {', '.join(map(repr, missing))}.")
        raise RuntimeError(
            f"Error(s) in reparametrizing for {type(module).__name__}:\n\t" + "\n\t".join(texts)
        )
    swapped = {}
    try:
        for name, value in wanted.items():
            owner, leaf = _owner(module, name)
            if not isinstance(value, Tensor) and value is not None:
                raise TypeError(f"{value} is not an instance of torch.Tensor")
            table = _table(owner, leaf, name)
            swapped.setdefault((id(table), leaf), (name, table, leaf, table.get(leaf, _ABSENT)))
            table[leaf] = value
        yield
    finally:
        for name, table, leaf, before in swapped.values():
            # What the forward put there instead, the caller finds in the dict.
            if name in tensors and leaf in table:
                tensors[name] = table[leaf]
            if before is _ABSENT:
                table.pop(leaf, None)
            else:
                table[leaf] = before


def _reparametrize_module(module, parameters_and_buffers, tie_weights=False, strict=False):
    """A block in which the module has the tensors of a dict in the place of its own."""
    return _replaced(module, parameters_and_buffers, tie_weights, strict)
