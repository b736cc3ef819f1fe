"""torch.distributed.checkpoint.state_dict for one process: states by plain names.

A plain name is what a parameter is called without the wrappers around modules (what torch.compile puts before
a module, the wrapper for checkpointing). The optimiser's state goes by these names, not by numbers, so
that it fits a model whose optimiser was made with its parameters in other groups. Nothing is spread over
processes here: what torch asks the other processes for raises what torch raises without a process group.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from itertools import chain
from typing import Any

from rushlight._C import Tensor
from rushlight.autograd import no_grad
from rushlight.distributed import get_rank
from rushlight.nn._optimized import OptimizedModule
from rushlight.nn._state import _EXTRA_STATE_KEY_SUFFIX, _IncompatibleKeys
from rushlight.nn.module import Module
from rushlight.ops.create import tensor, zeros_like
from rushlight.optim import Optimizer

__all__ = [
    "StateDictOptions", "get_model_state_dict", "get_optimizer_state_dict", "get_state_dict",
    "set_model_state_dict", "set_optimizer_state_dict", "set_state_dict",
]  # fmt: skip

CHECKPOINT_PREFIX = "_checkpoint_wrapped_module."
_EXTRA = object()  # stands for what get_extra_state gives
States = dict[str, Any]


@dataclass
class StateDictOptions:
    """How states are taken and set.

    ``full_state_dict`` gathers what is spread over processes (nothing is), and fills what is missing with the
    model's own values when setting. ``cpu_offload`` puts tensors on the CPU, ``ignore_frozen_params`` leaves
    out parameters without a gradient, ``strict`` is load_state_dict's. ``flatten_optimizer_state_dict`` gives
    one dictionary without nesting, ``dsd_fqn_modifiers`` names a method of modules that renames members.
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def get_model_state_dict(
    model: Module, *, submodules: set[Module] | None = None, options: StateDictOptions | None = None
) -> States:
    """The model's state by plain names.

    >>> sorted(get_model_state_dict(rushlight.compile(rushlight.nn.Linear(1, 1))))
    ['bias', 'weight']
    """
    options = _checked(options)
    prefixes = _prefixes(model, submodules)
    states = _model_states(model, prefixes, options)
    _require_model(states, prefixes, options)
    return states


def get_optimizer_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    submodules: set[Module] | None = None,
    options: StateDictOptions | None = None,
) -> States:
    """The state of the optimisers, all in one, by plain names."""
    several = _several(optimizers)
    _require_optimizers(several)
    options = _checked(options)
    _prefixes(model, submodules)
    states = _optimizer_states(model, several, options)
    _require_optimizer_states(states, options)
    return states


def get_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    submodules: set[Module] | None = None,
    options: StateDictOptions | None = None,
) -> tuple[States, States]:
    """The model's state and that of its optimisers, both by plain names."""
    several = _several(optimizers)
    options = _checked(options)
    prefixes = _prefixes(model, submodules)
    states = _model_states(model, prefixes, options)
    optimizer_states = _optimizer_states(model, several, options) if several else {}
    _require_model(states, prefixes, options)
    if several:
        _require_optimizer_states(optimizer_states, options)
    return states, optimizer_states


def set_model_state_dict(
    model: Module, model_state_dict: States, *, options: StateDictOptions | None = None
) -> _IncompatibleKeys:
    """Loads the model's state from a dictionary of plain names."""
    model_state_dict = _of_submodules(model, model_state_dict)
    options = _checked(options)
    _require_model(model_state_dict, (), options)
    return _load_model(model, model_state_dict, options)


def set_optimizer_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    optim_state_dict: States,
    *,
    options: StateDictOptions | None = None,
) -> None:
    """Loads the state of the optimisers from a dictionary of plain names."""
    several = _several(optimizers)
    _require_optimizers(several)
    options = _checked(options)
    _require_optimizer_states(optim_state_dict, options)
    _load_optimizers(model, several, optim_state_dict, options)


def set_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    model_state_dict: States,
    optim_state_dict: States,
    options: StateDictOptions | None = None,
) -> _IncompatibleKeys:
    """Loads the model's state and that of its optimisers. An empty state leaves the model alone."""
    model_state_dict = _of_submodules(model, model_state_dict)
    several = _several(optimizers)
    if not model_state_dict:
        _require_optimizers(several)
    options = _checked(options)
    if several:
        _require_optimizer_states(optim_state_dict, options)
        _load_optimizers(model, several, optim_state_dict, options)
    return _load_model(model, model_state_dict, options)


# What is asked for and given.


def _several(optimizers: Optimizer | Iterable[Optimizer]) -> tuple[Optimizer, ...]:
    return (optimizers,) if isinstance(optimizers, Optimizer) else tuple(optimizers)


def _checked(options: StateDictOptions | None) -> StateDictOptions:
    options = options or StateDictOptions()
    if options.broadcast_from_rank0 and not options.full_state_dict:
        raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True.")
    return options


def _require_optimizers(optimizers: tuple[Optimizer, ...]) -> None:
    if not optimizers:
        raise RuntimeError("Optimizers are not passed in but optim_only is set to True.")


def _may_be_empty(options: StateDictOptions) -> bool:
    return (options.cpu_offload and options.full_state_dict) or options.broadcast_from_rank0


def _require_model(states: States, prefixes: tuple[str, ...], options: StateDictOptions) -> None:
    if not (
        states or prefixes or options.ignore_frozen_params or not options.strict or _may_be_empty(options)
    ):
        raise RuntimeError(
            "The option indicates that model state_dict is required to save or load, but model state_dict "
            f"is empty.rank = {get_rank()}."
        )
    for name in states:
        if "_flat_param" in name:
            raise RuntimeError(
                f"{name} contains _flat_param. This can happen if the model is not the root module."
            )


def _require_optimizer_states(states: States, options: StateDictOptions) -> None:
    if not states and not _may_be_empty(options):
        raise RuntimeError(
            "The option indicates that model state_dict is required to save, "
            f"or load but optim state_dict is empty. {states}"
        )


# Names.


def plain_name(model: Module, name: str, modifiers: str = "_fqn_modifiers") -> str:
    """The name without the modules that only wrap others."""
    return _walked(model, name, modifiers, keep_compiled=False)


def _walked(model: Module, name: str, modifiers: str, keep_compiled: bool) -> str:
    name = name.replace(CHECKPOINT_PREFIX, "")
    steps = name.split(".")
    if len(steps) == 1:
        return name
    kept = []
    here: Any = model
    for i, step in enumerate(steps):
        if isinstance(here, OptimizedModule):
            if step != "_orig_mod":
                raise AssertionError(f"Expected '_orig_mod', got '{step}'")
            here = here._orig_mod
            if keep_compiled:
                kept.append(step)
            continue
        if hasattr(here, modifiers):
            inner = getattr(here, modifiers)().get(step)
            if inner and hasattr(here, inner):
                here = getattr(here, inner)
        kept.append(step)
        if step == _EXTRA_STATE_KEY_SUFFIX:
            if i != len(steps) - 1:
                raise RuntimeError("Expect `_extra_state` to be the last obj name")
        else:
            here = getattr(here, step)
    return ".".join(kept)


def _values(model: Module, modifiers: str = "_fqn_modifiers") -> Iterator[tuple[str, Any]]:
    """What a model's state is made of, by the model's own names; a shared parameter under each of them."""
    seen: set[Module] = set()

    def below(module: Module, prefix: str) -> Iterator[tuple[str, Any]]:
        seen.add(module)
        dot = f"{prefix}." if prefix else ""
        for name, inner in module.named_children():
            if inner not in seen:
                hidden = hasattr(module, modifiers) and name in getattr(module, modifiers)().values()
                yield from below(inner, prefix if hidden else dot + name)
        for name, value in chain(module.named_buffers(recurse=False), module.named_parameters(recurse=False)):
            if name not in module._non_persistent_buffers_set:
                yield dot + name, value
        if type(module).get_extra_state is not Module.get_extra_state:
            yield dot + _EXTRA_STATE_KEY_SUFFIX, _EXTRA

    return below(model, "")


def _names_of_values(model: Module) -> dict[Tensor, list[str]]:
    names: dict[Tensor, list[str]] = {}
    for name, value in _values(model):
        if value is not _EXTRA:
            found = names.setdefault(value, [])
            if (plain := plain_name(model, name)) not in found:
                found.append(plain)
    return names


def _prefixes(model: Module, submodules: set[Module] | None) -> tuple[str, ...]:
    if not submodules:
        return ()
    warnings.warn(
        "Getting submodules only model/optim state_dict is deprecated and will be removed in 2.5. This "
        "feature can be achieved by manually filtering out the state_dict returned from get_state_dict.",
        FutureWarning,
        stacklevel=3,
    )
    chosen = set(submodules)
    return tuple(f"{plain_name(model, name)}." for name, module in model.named_modules() if module in chosen)


# The model.


@no_grad()
def _model_states(model: Module, prefixes: tuple[str, ...], options: StateDictOptions) -> States:
    states = model.state_dict()
    for name in list(states):
        plain = plain_name(model, name)
        if plain != name:
            states[plain] = states.pop(name)
    if prefixes:
        keep = options.keep_submodule_prefixes
        states = {
            name if keep else name.removeprefix(prefix): value
            for name, value in states.items()
            for prefix in prefixes
            if name.startswith(prefix)
        }
    if options.ignore_frozen_params:
        for name, parameter in model.named_parameters():
            if not parameter.requires_grad:
                states.pop(plain_name(model, name))
    return _gathered(states, options)


def _gathered(states: States, options: StateDictOptions) -> States:
    if not (options.full_state_dict or options.cpu_offload):
        return states

    def taken(value: Any) -> Any:
        if isinstance(value, Tensor):
            return value.to("cpu") if options.cpu_offload else value
        if value is None or isinstance(value, int | float | str | bytes | BytesIO):
            return value
        if isinstance(value, dict):
            return {key: taken(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            inner = [taken(item) for item in value]
            return tuple(inner) if isinstance(value, tuple) else inner
        raise ValueError(f"Unexpected value type {type(value)}")

    return taken(states)


def _of_submodules(model: Module, states: dict[Any, Any]) -> States:
    """Names from the whole model, where the states of its modules are given by module."""
    if not states or not isinstance(next(iter(states)), Module):
        return states
    warnings.warn(
        "Passing model_state_dict as a ``Dict[nn.Module, Dict[str, Any]]``is deprecated and will be "
        "removed in 2.5. If you need this feature, please preprocess the model_state_dict to achieve the "
        "same functionality.",
        FutureWarning,
        stacklevel=3,
    )
    return {
        f"{plain_name(model, name)}.{inner}": value
        for module, given in states.items()
        for name, found in model.named_modules()
        if found is module
        for inner, value in given.items()
    }


@no_grad()
def _load_model(model: Module, states: States, options: StateDictOptions) -> _IncompatibleKeys:
    if not states and not options.broadcast_from_rank0:
        return _IncompatibleKeys({}, {})
    own: States = {}
    for name, value in _values(model, options.dsd_fqn_modifiers):
        plain = plain_name(model, name, options.dsd_fqn_modifiers)
        wrapped = _walked(model, name, options.dsd_fqn_modifiers, keep_compiled=True)
        if plain != wrapped:
            if options.broadcast_from_rank0:
                get_rank()
            given = states.pop(plain, None)
            if given is not None:
                states[wrapped] = given
            elif options.strict:
                raise RuntimeError(f"Missing key: {plain}.")
        own[wrapped] = value
    assign = False
    if options.full_state_dict:
        devices = {value.device for value in own.values() if isinstance(value, Tensor) and value.dim() > 0}
        on_meta = {device for device in devices if device.type == "meta"}
        assign = bool(on_meta)
        devices -= on_meta
        if options.broadcast_from_rank0 or not devices:
            get_rank()
        if len(devices) > 1:
            raise ValueError("Multiple devices found")
        _lay_over(states, own, devices.pop())
        states.update(own)
    return model.load_state_dict(state_dict=states, strict=options.strict, assign=assign)


def _lay_over(given: States, own: States, device: Any) -> None:
    """Puts what is given in the place of what is there, tensors on the device."""
    for name, value in given.items():
        if not isinstance(value, Tensor):
            own[name] = value
        elif value.dim() == 0:
            own[name] = value.cpu()
        elif own.get(name) is not None:
            own[name] = value.detach().to(device)


# The optimisers.


def _start(optimizer: Optimizer) -> None:
    """Lets an optimiser that made no step yet make its state, by a step that changes nothing."""
    if optimizer.state:
        return
    groups = optimizer.param_groups
    parameters = [parameter for group in groups for parameter in group["params"]]
    if any(parameter.grad is not None for parameter in parameters):
        return  # one without state, such as SGD; a step would use these gradients
    for parameter in parameters:
        if parameter.requires_grad:
            parameter.grad = zeros_like(parameter)
    rates = [group.get("lr") for group in groups]
    for group in groups:
        if "lr" in group:
            group["lr"] = tensor(0.0) if isinstance(group["lr"], Tensor) else 0.0
    optimizer.step(closure=None)
    for group, rate in zip(groups, rates, strict=True):
        if "lr" in group:
            group["lr"] = rate
    optimizer.zero_grad(set_to_none=True)


@no_grad()
def _optimizer_states(model: Module, optimizers: tuple[Optimizer, ...], options: StateDictOptions) -> States:
    result: States = {"state": {}, "param_groups": []}
    for optimizer in optimizers:
        _start(optimizer)
        states = optimizer.state_dict()
        numbers = {
            parameter: number
            for number, parameter in enumerate(chain(*(group["params"] for group in optimizer.param_groups)))
        }
        names = {
            numbers[parameter]: plain_name(model, name)
            for name, parameter in model.named_parameters()
            if parameter in numbers
        }
        result["state"].update({names[number]: state for number, state in states["state"].items()})
        for group in states["param_groups"]:
            group["params"] = [names[number] for number in group["params"]]
            result["param_groups"].append(group)
    if options.flatten_optimizer_state_dict:
        result = _flattened(result)
    return _gathered(result, options)


def _flattened(states: States) -> States:
    flat: States = {}

    def put(prefix: str, inner: Mapping[Any, Any]) -> None:
        for key, value in inner.items():
            if isinstance(value, dict):
                put(f"{prefix}.{key}", value)
            elif isinstance(value, Tensor | int | float):
                flat[f"{prefix}.{key}"] = value
            else:
                raise NotImplementedError(
                    "Flattening optimizer state_dict only supports tensor, int, float, dict states now. "
                    f"Type is {type(value)}."
                )

    for name, state in states["state"].items():
        put(f"state.{name}", state)
    for group in states["param_groups"]:
        for name in group.pop("params"):
            flat.update({f"param_groups.{name}.{key}": value for key, value in group.items()})
    return flat


def _unflattened(optimizer: Optimizer, flat: States, names: dict[Tensor, list[str]]) -> States:
    states: States = {}
    groups: list[States] = []
    for group in optimizer.param_groups:
        keys = [key for key in group if key != "params"]
        chosen: list[str] = []
        for parameter in group["params"]:
            for name in names[parameter]:
                # Of the names of a shared parameter the one that was saved counts.
                if len(names[parameter]) > 1 and f"param_groups.{name}.{keys[0]}" not in flat:
                    continue
                chosen.append(name)
                if parameter.requires_grad:
                    states[name] = {
                        key: flat[path]
                        if (path := f"state.{name}.{key}") in flat
                        else _below(flat, f"{path}.")
                        for key in optimizer.state[parameter]
                    }
        groups.append({"params": chosen, **{key: flat[f"param_groups.{chosen[0]}.{key}"] for key in keys}})
    return {"state": states, "param_groups": groups}


def _below(flat: States, prefix: str) -> States:
    """The nested dictionary whose entries begin so."""
    nested: States = {}
    for path, value in flat.items():
        if path.startswith(prefix):
            *outer, last = path.removeprefix(prefix).split(".")
            here = nested
            for step in outer:
                here = here.setdefault(step, {})
            here[last] = value
    return nested


def _part(optimizer: Optimizer, states: States, names: dict[Tensor, list[str]], strict: bool) -> States:
    """Of the state of several optimisers what belongs to this one, its groups in this one's order."""
    saved_states, saved_groups = states["state"], states["param_groups"]
    if all(isinstance(key, int) for key in saved_states):
        return states  # it is an optimiser's own
    part: States = {}
    groups: list[States] = []
    for group in optimizer.param_groups:
        chosen: list[str] = []
        settings: States = {}
        for parameter in group["params"]:
            for name in names[parameter]:
                found = [saved for saved in saved_groups if name in saved["params"]]
                if len(names[parameter]) > 1 and not found:
                    continue
                chosen.append(name)
                if parameter.requires_grad:
                    if name in saved_states:
                        part[name] = saved_states[name]
                    elif strict:
                        raise RuntimeError(
                            f"Missing optimizer state for parameter '{name}' in checkpoint. The parameter "
                            "requires gradients but has no saved optimizer state. To load anyway, use "
                            "StateDictOptions(strict=False)."
                        )
                for saved in found:
                    settings.update(saved)
        if not group["params"]:
            settings = _empty_group(optimizer, saved_groups)
        groups.append({**settings, "params": chosen})
    return {"state": part, "param_groups": groups}


def _empty_group(optimizer: Optimizer, saved_groups: list[States]) -> States:
    empty = [saved for saved in saved_groups if not saved["params"]]
    if len(empty) != 1:
        raise ValueError(
            "There are param groups that have zero parameters. In such a case, DSD only support exactly "
            "one param group with zero parameters.But the loaded state_dict has zero or more than one "
            "param groups that have zero parameters."
        )
    if len(saved_groups) != len(optimizer.param_groups):
        raise ValueError(
            "When there is a parameter group that has zero parameters, multiple optimizers are not supported."
        )
    return empty[0]


@no_grad()
def _load_optimizers(
    model: Module, optimizers: tuple[Optimizer, ...], states: States, options: StateDictOptions
) -> None:
    names = _names_of_values(model)
    for optimizer in optimizers:
        _start(optimizer)
        if not states:
            part: States = {}
        elif "state" in states:
            part = _part(optimizer, states, names, options.strict)
        else:
            part = _unflattened(optimizer, states, names)
        if options.full_state_dict:
            part = _filled(model, optimizer, part, options)
        optimizer.load_state_dict(state_dict=part)


def _filled(model: Module, optimizer: Optimizer, part: States, options: StateDictOptions) -> States:
    """What is given, and the optimiser's own where nothing is; tensors on the device of the optimiser's."""
    cpu = StateDictOptions(
        cpu_offload=options.cpu_offload, flatten_optimizer_state_dict=options.flatten_optimizer_state_dict
    )
    own = _leaves(_optimizer_states(model, (optimizer,), cpu))
    devices = {value.device for value in own.values() if isinstance(value, Tensor) and value.dim() > 0}
    if len(devices) > 1:
        raise ValueError("Device mismatch")
    if not devices:
        raise AssertionError("Expected device to be set")
    if options.broadcast_from_rank0:
        get_rank()
    given = _leaves(part)
    _lay_over(given, own, devices.pop())  # type: ignore[arg-type]
    filled = _nested({**given, **own})
    for group in filled["param_groups"]:
        group.setdefault("params", [])
    return filled


def _leaves(value: Any, path: tuple[str | int, ...] = ()) -> dict[tuple[str | int, ...], Any]:
    """What lies in nested dictionaries and lists, by the path to it."""
    if isinstance(value, Mapping):
        entries: Iterable[tuple[str | int, Any]] = ((str(key), inner) for key, inner in value.items())
    elif isinstance(value, list | tuple):
        entries = enumerate(value)
    else:
        return {path: value}
    return {key: leaf for step, inner in entries for key, leaf in _leaves(inner, (*path, step)).items()}


def _nested(leaves: dict[tuple[str | int, ...], Any]) -> States:
    """The dictionaries and lists that `_leaves` took apart; what was a tuple is a list, as in torch."""
    root: dict[str | int, Any] = {}
    for path, value in sorted(leaves.items(), key=lambda leaf: [s for s in leaf[0] if isinstance(s, int)]):
        here: Any = root
        for step, after in zip(path, (*path[1:], None), strict=True):
            inner = value if after is None else {} if isinstance(after, str) else []
            if isinstance(here, list):
                while len(here) <= step:  # type: ignore[operator]
                    here.append(None)
                if after is None or here[step] is None:  # type: ignore[index]
                    here[step] = inner  # type: ignore[index]
                here = here[step]  # type: ignore[index]
            elif after is None:
                here[step] = inner
            else:
                here = here.setdefault(step, inner)
    return root  # type: ignore[return-value]
