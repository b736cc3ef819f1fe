"""Running the options that torch keeps for its optimizers (optim_db) through both libraries.

`check(name, dtype, steps)` is where to start: it moves the same parameters by the same gradients with every
set of options, also from a state loaded halfway, and yields what differs.
"""

import copy
import itertools
import pickle
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from opdb import Carrier, Unfit, differences, first_sentence
from torch.testing._internal.common_optimizers import optim_db

import rushlight

INFOS = {info.optim_cls.__name__: info for info in optim_db}
FLAGS: tuple[dict[str, Any], ...] = (
    {},
    {"foreach": True},
    {"foreach": False},
    {"fused": True},
    {"differentiable": True},
    {"capturable": True},
    {"fused": True, "foreach": True},
    {"fused": True, "differentiable": True},
)
SHAPES = ((3, 2), (2,), (), (1, 3, 2), (0, 2))


class ParameterCarrier(Carrier):
    """Carries over parameters as parameters, and tensors with their gradients."""

    def tensor(self, source: torch.Tensor) -> Any:
        if id(source) in self.tensors:
            return self.tensors[id(source)]
        made = super().tensor(source.data if type(source) is torch.nn.Parameter else source)
        if type(source) is torch.nn.Parameter:
            made = rushlight.nn.Parameter(made, source.requires_grad)
            self.kept.append(source)
            self.tensors[id(source)] = made
        if source.is_leaf and source.grad is not None:
            made.grad = super().tensor(source.grad)
        return made


def parameters(dtype: torch.dtype, only_matrices: bool) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    shapes = ((3, 2), (4, 4)) if only_matrices else SHAPES
    return [torch.randn(shape, generator=generator, dtype=dtype).requires_grad_() for shape in shapes]


def attempt(function: Any, *args: Any, **kwargs: Any) -> tuple[Any, Exception | None, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            made, error = function(*args, **kwargs), None
        except Exception as raised:
            made, error = None, raised
    said = [str(w.message).split("\n")[0].split(" (Triggered")[0] for w in caught]
    return made, error, [text for text in said if "torch.jit" not in text]


def unlike(mine: Any, theirs: Any) -> str | None:
    """What to say of two outcomes; None if both went well, "" if both failed alike."""
    if mine[2] != theirs[2]:
        return f"warnings {mine[2]}, torch {theirs[2]}"
    a, b = mine[1], theirs[1]
    if a is None and b is None:
        return None
    if a is None or b is None:
        return f"only {'torch' if a is None else 'Rushlight'} refuses: {a or b!r}"
    if type(a).__name__ != type(b).__name__ or first_sentence(a) != first_sentence(b):
        return f"{type(a).__name__}: {first_sentence(a)}; torch {type(b).__name__}: {first_sentence(b)}"
    return ""


def check(name: str, dtype: str = "float64", steps: int = 4) -> Iterator[str]:
    info = INFOS[name]
    kind = getattr(torch, dtype)
    for options in info.optim_inputs_func(device="cpu", dtype=kind):
        for flags in FLAGS:
            if any(flag in options.kwargs for flag in flags):
                continue
            kwargs = {**options.kwargs, **flags}
            for problem in check_options(name, kind, kwargs, steps):
                yield f"{name} {dtype} {kwargs}: {problem}"


def check_options(name: str, kind: torch.dtype, kwargs: dict[str, Any], steps: int) -> Iterator[str]:
    theirs_params = parameters(kind, name == "Muon")
    carrier = Carrier()
    try:
        mine_params = [carrier(p) for p in theirs_params]
        ours_kwargs = carrier(dict(kwargs))
    except Unfit:
        return
    theirs = attempt(getattr(torch.optim, name), theirs_params, **copy.deepcopy(kwargs))
    mine = attempt(getattr(rushlight.optim, name), mine_params, **ours_kwargs)
    problem = unlike(mine, theirs)
    if problem is not None:
        if problem:
            yield f"construct: {problem}"
        return
    mine, theirs = mine[0], theirs[0]
    if repr(mine) != repr(theirs):
        yield f"repr {mine!r}, torch {theirs!r}"
    generator = torch.Generator().manual_seed(5)
    for step in range(steps):
        if step == steps // 2:
            mine, problem = reloaded(mine, mine_params, theirs, ours_kwargs)
            if problem:
                yield problem
                return
        grads = [
            None if step == 1 and i == 0 else torch.randn(p.shape, generator=generator, dtype=p.dtype)
            for i, p in enumerate(theirs_params)
        ]
        for a, b, grad in zip(mine_params, theirs_params, grads):
            b.grad = grad
            a.grad = None if grad is None else Carrier()(grad)
        closure = name == "LBFGS"
        found = attempt(mine.step, *([lambda: closure_of(mine_params)] if closure else []))
        expected = attempt(theirs.step, *([lambda: closure_of(theirs_params)] if closure else []))
        problem = unlike(found, expected)
        if problem is not None:
            if problem:
                yield f"step {step}: {problem}"
            return
        for i, (a, b) in enumerate(zip(mine_params, theirs_params)):
            for problem in differences(a, b):
                yield f"step {step}: parameter {i}: {problem}"
                return
        # The inner products that LBFGS keeps are differences of nearly equal numbers.
        if name == "LBFGS" and kind == torch.float32:
            continue
        for problem in state_differences(mine.state_dict(), theirs.state_dict()):
            yield f"step {step}: state {problem}"
            return


def closure_of(params: list[Any]) -> Any:
    for p in params:
        p.grad = None
    loss = sum((abs(p - 0.3) ** 2).sum() + (abs(p) ** 3).sum() for p in params)
    loss.backward()
    return loss


def state_differences(mine: Any, theirs: Any, path: str = "") -> Iterator[str]:
    if isinstance(theirs, dict):
        if list(mine) != list(theirs):
            yield f"{path} keys {list(mine)}, torch {list(theirs)}"
            return
        for key in theirs:
            yield from state_differences(mine[key], theirs[key], f"{path}.{key}")
    elif isinstance(theirs, (list, tuple)):
        if type(mine) is not type(theirs) or len(mine) != len(theirs):
            yield f"{path} {mine}, torch {theirs}"
            return
        for i, (a, b) in enumerate(zip(mine, theirs)):
            yield from state_differences(a, b, f"{path}[{i}]")
    elif isinstance(theirs, str):
        if mine != theirs:
            yield f"{path} {mine}, torch {theirs}"
    else:
        for problem in differences(mine, theirs):
            yield f"{path} {problem}"


def reloaded(mine: Any, params: list[Any], theirs: Any, kwargs: dict[str, Any]) -> tuple[Any, str]:
    """A new optimizer of ours that goes on where torch's stands; pickled and copied on the way."""
    carrier = Carrier(requires_grad=False)
    fresh = type(mine)(params, **kwargs)
    try:
        fresh.load_state_dict(carrier(theirs.state_dict()))
    except Exception as error:
        return mine, f"load_state_dict: {error!r}"
    copied = copy.deepcopy(fresh)
    if repr(copied) != repr(pickle.loads(pickle.dumps(fresh))):
        return mine, "a copy and a pickle differ"
    # Loading casts, in torch as well.
    theirs.load_state_dict(theirs.state_dict())
    for problem in itertools.islice(state_differences(fresh.state_dict(), theirs.state_dict()), 1):
        return mine, f"loaded state {problem}"
    return fresh, ""


def check_errors(name: str) -> Iterator[str]:
    """The inputs that torch says must be refused."""
    info = INFOS[name]
    inputs = info.optim_error_inputs_func
    if inputs is None:
        return
    for entry in inputs(device="cpu", dtype=torch.float64):
        options = entry.error_on, entry.optimizer_error_input
        carrier = ParameterCarrier()
        try:
            params, kwargs = carrier(options[1].params), carrier(options[1].kwargs)
        except Unfit:
            continue
        theirs = attempt(getattr(torch.optim, name), options[1].params, **options[1].kwargs)
        mine = attempt(getattr(rushlight.optim, name), params, **kwargs)
        problem = unlike(mine, theirs)
        if problem:
            yield f"{name} {options[1].desc}: {problem}"
        elif problem is None:
            problem = unlike(attempt(mine[0].step), attempt(theirs[0].step))
            if problem:
                yield f"{name} {options[1].desc}: step: {problem}"
