"""Writing into what a module was given and what it holds, between its forward and its backward, in both
libraries: is the backward refused, and in which words.

`endings(name, training, count)` is where to start: it yields every write into a parameter, a buffer, an input
or an output of one module of module_db and how the backward ended here and in torch.
"""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from moduledb import INFOS, SEED, ModuleCarrier, flat
from opdb import Unfit

import rushlight

# What requires grad: the parameters; those and the inputs, which are computed; the inputs alone.
WANTED = ("parameters", "all", "inputs")


def mapped(item: Any, function: Callable) -> Any:
    """The same arguments with other tensors."""
    if isinstance(item, (torch.Tensor, rushlight.Tensor)):
        return function(item)
    if isinstance(item, tuple) and hasattr(item, "_fields"):
        return type(item)(*(mapped(part, function) for part in item))
    if isinstance(item, (tuple, list)):
        return type(item)(mapped(part, function) for part in item)
    if isinstance(item, dict):
        return {key: mapped(part, function) for key, part in item.items()}
    return item


def inputs_for(sample: Any, wanted: str) -> tuple[Any, Any, list[torch.Tensor]]:
    """Copies of the arguments of the sample; and the tensors among them, each once."""
    known: dict[int, torch.Tensor] = {}

    def fresh(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) not in known:
            copy = tensor.detach().clone()
            known[id(tensor)] = copy.requires_grad_(tensor.requires_grad and wanted != "parameters")
        return known[id(tensor)]

    given = sample.forward_input
    return mapped(given.args, fresh), mapped(given.kwargs, fresh), list(known.values())


def ending(library: Any, module: Any, args: Any, kwargs: Any, wanted: str, written: int) -> tuple[str, str]:
    """What was written and how the backward of the module ended; no name if there are not as many tensors."""
    if wanted == "inputs":
        module.requires_grad_(False)
    known: dict[int, Any] = {}

    def computed(tensor: Any) -> Any:
        if id(tensor) not in known:
            known[id(tensor)] = tensor * 1 if wanted == "all" and tensor.requires_grad else tensor
        return known[id(tensor)]

    args, kwargs = mapped(args, computed), mapped(kwargs, computed)
    library.manual_seed(SEED)
    outputs = [out for out in flat(module(*args, **kwargs)) if out.requires_grad]
    tensors = [*module.named_parameters(), *module.named_buffers()]
    tensors += [(f"input {at}", tensor) for at, tensor in enumerate(known.values())]
    tensors += [(f"output {at}", tensor) for at, tensor in enumerate(outputs)]
    if written >= len(tensors) or not outputs:
        return "", ""
    with library.no_grad():
        tensors[written][1].copy_(tensors[written][1].clone())
    try:
        library.autograd.backward(outputs, [library.ones_like(out) for out in outputs])
    except RuntimeError as error:
        return tensors[written][0], str(error).split("\n")[0].split(" Hint: ")[0]
    return tensors[written][0], "accepted"


def endings(
    name: str, training: bool, count: int | None = None, dtype: torch.dtype = torch.float32
) -> Iterator[tuple[str, str, str]]:
    info = INFOS[name]
    inputs = info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=True, training=training)
    samples = [each for each in enumerate(inputs) if each[1].forward_input is not None]
    if count is not None:
        samples = samples[:: -(-len(samples) // count)] if samples else []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, sample in samples:
            for wanted in WANTED[
                : 2 if "Lazy" in name else 3
            ]:  # it has no parameters yet that could be frozen
                for what, mine, theirs in endings_of(info, sample, dtype, training, wanted):
                    yield f"{number} {wanted} {what}", mine, theirs


def endings_of(info: Any, sample: Any, dtype: torch.dtype, training: bool, wanted: str) -> Iterator:
    cls, made_of = getattr(rushlight.nn, info.module_cls.__name__), sample.constructor_input
    written, name = 0, "."
    while name:
        carrier = ModuleCarrier()
        args, kwargs, _ = inputs_for(sample, wanted)
        given = [mapped(each, torch.clone) for each in (list(made_of.args), dict(made_of.kwargs))]
        try:
            ours = carrier(args), carrier(kwargs)
            torch.manual_seed(SEED)
            theirs = info.module_cls(*given[0], **given[1]).to(dtype).train(training)
            rushlight.manual_seed(SEED)
            mine = cls(*carrier(given[0]), **carrier(given[1]))
            mine = mine.to(getattr(rushlight, str(dtype)[6:])).train(training)
        except Unfit:
            return
        name, told = ending(torch, theirs, args, kwargs, wanted, written)
        _, ours_told = ending(rushlight, mine, *ours, wanted, written)
        if name:
            yield name, ours_told, told
        written += 1
