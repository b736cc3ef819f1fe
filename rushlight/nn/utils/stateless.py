"""Calling a module with other parameters in the place of its own."""

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


def _registered(module):
    """The parameters and buffers by their names, and where each of them is: a dict, and the key there."""
    parameters, buffers, places = {}, {}, {}
    for path, each in module.named_modules(remove_duplicate=False):
        start = f"{path}." if path else ""
        for found, table in ((parameters, each._parameters), (buffers, each._buffers)):
            for leaf, value in table.items():
                if value is not None:
                    found[start + leaf] = value
                    places[start + leaf] = table, leaf
    kind = type(module)
    if kind.named_parameters is not Module.named_parameters or kind.named_buffers is not Module.named_buffers:
        parameters = dict(module.named_parameters(remove_duplicate=False))
        buffers = dict(module.named_buffers(remove_duplicate=False))
    return {**parameters, **buffers}, places


def _wanted(module, named, tensors, tie_weights, strict):
    """What is to be in the place of every tensor, also of those that are known by other names."""
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
    if strict and wanted.keys() != named.keys():
        unknown, missing = sorted(wanted.keys() - named.keys()), sorted(named.keys() - wanted.keys())
        texts = []
        if unknown:
            texts.append(f"Unexpected key(s): {', '.join(map(repr, unknown))}.")
        if missing:
            texts.append(f"Missing key(s): {', '.join(map(repr, missing))}.")
        raise RuntimeError(
            f"Error(s) in reparametrizing for {type(module).__name__}:\n\t" + "\n\t".join(texts)
        )
    return wanted


class _replaced:
    """A block in which the module has the tensors of a dict in the place of its own."""

    __slots__ = ("given", "swapped", "tensors")

    def __init__(self, module, tensors, tie_weights, strict):
        self.given, self.tensors, self.swapped = (module, tie_weights, strict), tensors, {}

    def __enter__(self):
        module, *options = self.given
        named, places = _registered(module)
        try:
            for name, value in _wanted(module, named, self.tensors, *options).items():
                place = places.get(name)
                if place is None:
                    owner, leaf = _owner(module, name)
                if not isinstance(value, Tensor) and value is not None:
                    raise TypeError(f"{value} is not an instance of torch.Tensor")
                table, leaf = place or (_table(owner, leaf, name), leaf)
                self.swapped.setdefault((id(table), leaf), (name, table, leaf, table.get(leaf, _ABSENT)))
                table[leaf] = value
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *error):
        for name, table, leaf, before in self.swapped.values():
            # What the forward put there instead, the caller finds in the dict.
            if name in self.tensors and leaf in table:
                self.tensors[name] = table[leaf]
            if before is _ABSENT:
                table.pop(leaf, None)
            else:
                table[leaf] = before


def _reparametrize_module(module, parameters_and_buffers, tie_weights=False, strict=False):
    """A block in which the module has the tensors of a dict in the place of its own."""
    return _replaced(module, parameters_and_buffers, tie_weights, strict)
