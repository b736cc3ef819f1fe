"""Modules as functions of their state, in functorch's older form: `make_functional` and its like."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from rushlight.func._modules import _alike
from rushlight.func._tensor import Tensor
from rushlight.nn import Module, Parameter
from rushlight.nn.utils.stateless import _functional_call

Names = dict[str, list[str]]


def raise_parameter_tying_error() -> NoReturn:
    raise RuntimeError(
        "make_functional(module): we don't yet support models that do parameter tying (also sometimes known "
        "as weight sharing). Please try to rewrite your model by replacing all instances of the tied "
        "parameter with another and/or comment your support in "
        "https://github.com/pytorch/functorch/issues/446"
    )


def create_names_map(named: Any, tied: Any) -> Names:
    """All names of each tensor, by the first of them."""
    first = {tensor: name for name, tensor in dict(named).items()}
    found: Names = {name: [] for name in dict(named)}
    for name, tensor in dict(tied).items():
        found[first[tensor]].append(name)
    return found


def _place(module: Module, name: str) -> tuple[Module, str]:
    path, _, leaf = name.rpartition(".")
    return module.get_submodule(path), leaf


def _set(module: Module, name: str, value: Any) -> None:
    owner, leaf = _place(module, name)
    for table in (owner._parameters, owner._buffers):
        if leaf in table:
            table[leaf] = value
            return
    setattr(owner, leaf, value)


def _extract(module: Module, named: Callable, keeps: Callable) -> tuple[tuple, tuple, Names]:
    """The tensors of a module, their names, all names of each; in their places stand others without data."""
    every = tuple(named(remove_duplicate=False))
    single = tuple(named(remove_duplicate=True))
    names_map = create_names_map(single, every)
    stand_ins = {tensor: keeps(tensor.to("meta"), tensor) for _, tensor in single}
    for name, tensor in every:
        _set(module, name, stand_ins[tensor])
    return tuple(t for _, t in single), tuple(n for n, _ in single), names_map


def extract_weights(mod: Module) -> tuple[tuple, tuple, Names]:
    """The parameters of a module, which loses them."""
    return _extract(mod, mod.named_parameters, lambda meta, t: Parameter(meta.detach(), t.requires_grad))


def extract_buffers(mod: Module) -> tuple[tuple, tuple, Names]:
    """The buffers of a module, which loses them."""
    return _extract(mod, mod.named_buffers, lambda meta, t: meta)


def load_weights(
    mod: Module, names: Sequence[str], params: Sequence[Tensor], as_params: bool = False
) -> None:
    """Puts parameters into their places; as plain tensors unless `as_params`."""
    for name, value in zip(names, params, strict=False):
        owner, leaf = _place(mod, name)
        delattr(owner, leaf)
        setattr(owner, leaf, Parameter(value) if as_params else value)


def load_buffers(
    mod: Module, names: Sequence[str], buffers: Sequence[Tensor], as_params: bool = False
) -> None:
    """Puts buffers into their places."""
    for name, value in zip(names, buffers, strict=False):
        _set(mod, name, value)


def load_state(
    model: Module,
    weights: Sequence[Tensor],
    weight_names: Sequence[str],
    buffers: Sequence[Tensor] = (),
    buffer_names: Sequence[str] = (),
) -> Module:
    """The module with this state in its places."""
    if len(weight_names) != len(weights):
        raise AssertionError(f"expected {len(weight_names)} weights, got {len(weights)}")
    load_weights(model, weight_names, weights)
    if len(buffers):
        if len(buffer_names) != len(buffers):
            raise AssertionError(f"expected {len(buffer_names)} buffers, got {len(buffers)}")
        load_buffers(model, buffer_names, buffers)
    return model


def _call(model: Module, names_map: Names, values: Iterable[Tensor], args: tuple, kwargs: dict) -> Any:
    """The module with these in the places of its tensors."""
    pairs = zip(names_map.values(), values, strict=True)
    given = {name: value for names, value in pairs for name in names}
    return _functional_call(model, given, args, kwargs, tie_weights=False)


class FunctionalModuleWithBuffers(Module):
    """A module that is given its parameters and buffers with every call."""

    def __init__(
        self,
        stateless_model: Module,
        param_names: tuple[str, ...],
        buffer_names: tuple[str, ...],
        param_names_map: Names,
        buffer_names_map: Names,
    ) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names, self.buffer_names = param_names, buffer_names
        self.all_names_map = {**param_names_map, **buffer_names_map}

    @staticmethod
    def _create_from(model: Module, disable_autograd_tracking: bool = False) -> tuple:
        model = copy.deepcopy(model)
        params, param_names, param_map = extract_weights(model)
        buffers, buffer_names, buffer_map = extract_buffers(model)
        if disable_autograd_tracking:
            for param in params:
                param.requires_grad_(False)
        made = FunctionalModuleWithBuffers(model, param_names, buffer_names, param_map, buffer_map)
        return made, params, buffers

    def forward(self, params: Iterable[Tensor], buffers: Iterable[Tensor], *args: Any, **kwargs: Any) -> Any:
        return _call(self.stateless_model, self.all_names_map, (*params, *buffers), args, kwargs)


class FunctionalModule(Module):
    """A module that is given its parameters with every call."""

    def __init__(self, stateless_model: Module, param_names: tuple[str, ...], names_map: Names) -> None:
        super().__init__()
        self.stateless_model, self.param_names, self.names_map = stateless_model, param_names, names_map

    @staticmethod
    def _create_from(model: Module, disable_autograd_tracking: bool = False) -> tuple:
        model = copy.deepcopy(model)
        params, names, names_map = extract_weights(model)
        if disable_autograd_tracking:
            for param in params:
                param.requires_grad_(False)
        return FunctionalModule(model, names, names_map), params

    def forward(self, params: Iterable[Tensor], *args: Any, **kwargs: Any) -> Any:
        return _call(self.stateless_model, self.names_map, params, args, kwargs)


for _class in (FunctionalModuleWithBuffers, FunctionalModule):
    _class.__module__ = "torch._functorch.make_functional"


def make_functional(model: Module, disable_autograd_tracking: bool = False) -> tuple:
    """A module as a function of its parameters, `f(params, *args)`, and the parameters.

    >>> from torch._functorch.make_functional import make_functional
    >>> f, params = make_functional(torch.nn.Linear(2, 1, bias=False))
    >>> f([torch.ones(1, 2)], torch.tensor([1.0, 2.0]))
    tensor([3.])
    """
    if list(model.buffers()):
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) "
            "instead."
        )
    return FunctionalModule._create_from(model, disable_autograd_tracking)


def make_functional_with_buffers(model: Module, disable_autograd_tracking: bool = False) -> tuple:
    """The same of a module with buffers: `f(params, buffers, *args)`, the parameters, the buffers."""
    return FunctionalModuleWithBuffers._create_from(model, disable_autograd_tracking)


def transpose_stack(tuple_of_tuple_of_tensors: tuple[tuple[Tensor, ...], ...]) -> tuple[Tensor, ...]:
    """The tensors in the same place of each tuple, stacked."""
    import rushlight

    columns = zip(*tuple_of_tuple_of_tensors, strict=True)
    return tuple(rushlight.stack(column).detach() for column in columns)


def combine_state_for_ensemble(models: Sequence[Module]) -> tuple:
    """Modules of one class as one function, and their parameters and buffers, stacked."""
    _alike(models, "combine_state_for_ensemble")
    functions, params, buffers = zip(*map(make_functional_with_buffers, models), strict=True)
    return functions[0], transpose_stack(params), transpose_stack(buffers)


def _taking_tuples(function: Module, count: int) -> Callable:
    """The function with its last arguments in one tuple, as the oldest form of all had it."""

    def called(*given: Any) -> Any:
        return function(*given[:count], *given[count])

    return called


def _parts(model: Module) -> tuple:
    """The parameters of a model, a function of them, and their names."""
    if list(model.buffers()):
        raise RuntimeError(
            "make_functional_deprecated_v1(model): `model` has buffers. Please use "
            "make_functional_with_buffers_deprecated_v1(model) instead."
        )
    function, params = make_functional(model)
    return params, _taking_tuples(function, 1), function.param_names


def _parts_with_buffers(model: Module) -> tuple:
    """The same, with the buffers and their names."""
    function, params, buffers = make_functional_with_buffers(model)
    return params, buffers, _taking_tuples(function, 2), function.param_names, function.buffer_names


def _initialised(make: Callable, model_class: Any, ensemble_shape: Sequence[int], device: Any) -> Callable:
    def made(*args: Any, **kwargs: Any) -> tuple:
        if len(ensemble_shape) >= 2:
            raise ValueError("NYI: ensemble_shape with more than 1 element")
        if not len(ensemble_shape):
            return _parts(model_class(*args, **kwargs))
        if ensemble_shape[0] <= 0:
            raise ValueError(f"num_models {ensemble_shape[0]} should be > 0")
        every = [make(model_class(*args, **kwargs).to(device)) for _ in range(ensemble_shape[0])]
        states = list(zip(*every, strict=True))[: len(every[0]) // 2]
        own = make(model_class(*args, **kwargs))  # the function's: torch makes one more, too
        return (*map(transpose_stack, states), *own[len(states) :])

    return made


def functional_init(model_class: Any, ensemble_shape: Sequence[int] = (), device: Any = "cpu") -> Callable:
    """A function that makes a model, or several, and returns the parameters (stacked), a function of them and
    of a tuple of arguments, and their names."""
    return _initialised(_parts, model_class, ensemble_shape, device)


def functional_init_with_buffers(
    model_class: Any, ensemble_shape: Sequence[int] = (), device: Any = "cpu"
) -> Callable:
    """The same of several models with buffers: the parameters, the buffers, a function of both, and the
    names."""
    return _initialised(_parts_with_buffers, model_class, ensemble_shape, device)
