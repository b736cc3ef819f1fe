"""Calling a module with other parameters in the place of its own."""

import contextlib

from rushlight import Tensor

__all__ = ["functional_call"]


def functional_call(
    module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False
):
    """`module(*args, **kwargs)` with the tensors of a dict in the place of its parameters and buffers.

    >>> import rushlight as torch
    >>> layer = torch.nn.Linear(2, 1)
    >>> zeros = {name: torch.zeros_like(value) for name, value in layer.named_parameters()}
    >>> torch.nn.utils.stateless.functional_call(layer, zeros, torch.ones(2))
    tensor([0.])
    """
    if isinstance(parameters_and_buffers, (list, tuple)):
        merged = {}
        for part in parameters_and_buffers:
            merged.update(part)
        parameters_and_buffers = merged
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    with _replaced(module, parameters_and_buffers, tie_weights, strict):
        return module(*args, **(kwargs or {}))


def _owner(module, name):
    path, _, leaf = name.rpartition(".")
    return module.get_submodule(path), leaf


@contextlib.contextmanager
def _replaced(module, tensors, tie_weights, strict):
    named = {**dict(module.named_parameters(remove_duplicate=False)),
             **dict(module.named_buffers(remove_duplicate=False))}  # fmt: skip
    unknown, missing = sorted(set(tensors) - set(named)), sorted(set(named) - set(tensors))
    if strict and (unknown or missing):
        texts = []
        if unknown:
            texts.append(f"Unexpected key(s): {', '.join(unknown)}.")
        if missing:
            texts.append(f"Missing key(s): {', '.join(missing)}.")
        raise RuntimeError(
            f"Error(s) in loading state_dict for {type(module).__name__}:\n\t" + "\n\t".join(texts)
        )
    wanted = dict(tensors)
    if tie_weights:  # one tensor under several names is replaced under all of them
        given: dict = {}
        for name, value in tensors.items():
            if name in named:
                other = given.setdefault(id(named[name]), value)
                if other is not value:
                    raise ValueError(
                        f"functional_call got multiple values for keys {sorted(tensors)}, which are tied. "
                        "Consider using tie_weights=False"
                    )
        wanted |= {name: given[id(value)] for name, value in named.items() if id(value) in given}
    swapped = []
    try:
        for name, value in wanted.items():
            if not isinstance(value, Tensor) and value is not None:
                raise TypeError(f"{value} is not an instance of torch.Tensor")
            owner, leaf = _owner(module, name)
            for table in (owner._parameters, owner._buffers):
                if leaf in table:
                    swapped.append((table, leaf, table[leaf]))
                    table[leaf] = value
                    break
            else:
                raise AttributeError(f"{type(owner).__name__} has no attribute `{leaf}`")
        yield
    finally:
        for table, leaf, before in reversed(swapped):
            table[leaf] = before
