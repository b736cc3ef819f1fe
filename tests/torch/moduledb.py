"""Running the constructor and forward arguments that torch keeps for its modules (module_db) through both
libraries.

`check(entry, dtype, training)` is where to start: it builds each module with the same seed in both libraries,
runs it forward and backward and yields what differs.
"""

import copy
import io
import pickle
import types
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from opdb import Carrier, Unfit, differences, first_sentence
from torch.testing._internal.common_modules import module_db

import rushlight

INFOS = {info.name: info for info in module_db}
SEED = 7


class ModuleCarrier(Carrier):
    """Also carries over modules, packed sequences and functions of torch by their names."""

    def __call__(self, item: Any) -> Any:
        if isinstance(item, torch.nn.Module):
            raise Unfit("a module as an argument")
        if isinstance(item, torch.nn.utils.rnn.PackedSequence):
            return rushlight.nn.utils.rnn.PackedSequence(*(self(part) for part in item))
        if isinstance(item, (types.FunctionType, types.BuiltinFunctionType)) and str(
            item.__module__
        ).startswith("torch"):
            for home in (rushlight.nn.functional, rushlight):
                if hasattr(home, item.__name__):
                    return getattr(home, item.__name__)
        return super().__call__(item)


def flat(result: Any) -> list[Any]:
    """The tensors of a result, in order."""
    if isinstance(result, (torch.Tensor, rushlight.Tensor)):
        return [result]
    if isinstance(result, (tuple, list)):
        return [tensor for part in result for tensor in flat(part)]
    if isinstance(result, dict):
        return [tensor for part in result.values() for tensor in flat(part)]
    return []


def attempt(function: Any, *args: Any, **kwargs: Any) -> tuple[Any, Exception | None]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*args, **kwargs), None
    except Exception as error:
        return None, error


def refusals(mine: Exception | None, theirs: Exception | None) -> str | None:
    """What to say if one library refused, or both did differently; None if both accepted."""
    if mine is None and theirs is None:
        return None
    if mine is None or theirs is None:
        return f"only {'torch' if mine is None else 'Rushlight'} refuses: {mine or theirs!r}"
    if type(mine).__name__ != type(theirs).__name__ or first_sentence(mine) != first_sentence(theirs):
        said = [f"{type(error).__name__}: {first_sentence(error)}" for error in (mine, theirs)]
        return "; torch ".join(said)
    return ""


def build(info: Any, arguments: Any, carrier: ModuleCarrier, dtype: Any) -> tuple[Any, Any, str | None]:
    cls = getattr(rushlight.nn, info.module_cls.__name__)
    args, kwargs = carrier(list(arguments.args)), carrier(dict(arguments.kwargs))
    torch.manual_seed(SEED)
    theirs, their_error = attempt(info.module_cls, *arguments.args, **arguments.kwargs)
    rushlight.manual_seed(SEED)
    mine, my_error = attempt(cls, *args, **kwargs)
    problem = refusals(my_error, their_error)
    if problem is None:
        theirs.to(dtype)
        mine.to(getattr(rushlight, str(dtype)[6:]))
    return mine, theirs, problem


def check(
    name: str, dtype: str = "float64", training: bool = True, count: int | None = None
) -> Iterator[str]:
    """What differs between the libraries for the samples of one module, or for `count` of them."""
    info = INFOS[name]
    kind = getattr(torch, dtype)
    inputs = info.module_inputs_func(info, device="cpu", dtype=kind, requires_grad=True, training=training)
    samples = list(enumerate(inputs))
    if count is not None:
        samples = samples[:: -(-len(samples) // count)]  # spread over all of them
    for number, sample in samples:
        for problem in check_sample(info, sample, kind, training):
            yield f"{name} sample {number} {sample.desc} {sample.constructor_input.kwargs}: {problem}"


def check_sample(info: Any, sample: Any, kind: torch.dtype, training: bool) -> Iterator[str]:
    carrier = ModuleCarrier()
    try:
        mine, theirs, problem = build(info, sample.constructor_input, carrier, kind)
        forward = sample.forward_input
        if forward is not None:
            args, kwargs = carrier(list(forward.args)), carrier(dict(forward.kwargs))
    except Unfit:
        return
    if problem is not None:
        if problem:
            yield f"construct: {problem}"
        return
    mine.train(training)
    theirs.train(training)
    if not isinstance(theirs, torch.nn.modules.lazy.LazyModuleMixin):
        yield from compare_modules("made", mine, theirs)
    if forward is None:
        return
    yield from run_both("run", mine, theirs, (args, kwargs), (forward.args, forward.kwargs), carrier)
    yield from compare_modules("after", mine, theirs)
    for what, again in (
        ("deepcopy", copy.deepcopy),
        ("pickle", lambda m: pickle.loads(pickle.dumps(m))),
        ("save", saved_and_loaded),
    ):
        made, error = attempt(again, mine)
        _, their_error = attempt(again, theirs)
        problem = refusals(error, their_error)
        if problem:
            yield f"{what}: {problem}"
        elif problem is None:
            yield from compare_modules(what, made, theirs)


def saved_and_loaded(module: Any) -> Any:
    library = torch if isinstance(module, torch.nn.Module) else rushlight
    buffer = io.BytesIO()
    library.save(module, buffer)
    buffer.seek(0)
    return library.load(buffer, weights_only=False)


def compare_modules(what: str, mine: Any, theirs: torch.nn.Module) -> Iterator[str]:
    if repr(mine) != repr(theirs):
        yield f"{what}: repr {mine!r}, torch {theirs!r}"
    ours, others = mine.state_dict(), theirs.state_dict()
    if list(ours) != list(others):
        yield f"{what}: keys {list(ours)}, torch {list(others)}"
        return
    if str(ours._metadata) != str(others._metadata):
        yield f"{what}: metadata {ours._metadata}, torch {others._metadata}"
    for key in others:
        for problem in differences(ours[key], others[key]):
            yield f"{what}: {key}: {problem}"
    flags = [(n, p.requires_grad) for n, p in mine.named_parameters()]
    if flags != [(n, p.requires_grad) for n, p in theirs.named_parameters()]:
        yield f"{what}: requires_grad {flags}"
    if (a := public(mine)) != (b := public(theirs)):
        yield f"{what}: attributes {sorted(a ^ b)}"


def public(module: Any) -> set[str]:
    return {name for name in module.__dict__ if not name.startswith("_")}


def run_both(
    what: str, mine: Any, theirs: Any, ours_in: Any, theirs_in: Any, carrier: ModuleCarrier
) -> Iterator[str]:
    torch.manual_seed(SEED)
    expected, their_error = attempt(theirs, *theirs_in[0], **theirs_in[1])
    rushlight.manual_seed(SEED)
    found, my_error = attempt(mine, *ours_in[0], **ours_in[1])
    problem = refusals(my_error, their_error)
    if problem is not None:
        if problem:
            yield f"{what}: {problem}"
        return
    ours, others = flat(found), flat(expected)
    for a, b in zip(ours, others, strict=True):
        for problem in differences(a, b):
            yield f"{what}: output {problem}"
        if a.requires_grad != b.requires_grad:
            yield f"{what}: requires_grad {a.requires_grad}, torch {b.requires_grad}"
    pairs = [(a, b) for a, b in zip(ours, others) if b.requires_grad]
    if not pairs:
        return
    generator = torch.Generator().manual_seed(SEED)
    weights = [torch.randn(b.shape, generator=generator, dtype=torch.float64).to(b.dtype) for _, b in pairs]
    to_ours = Carrier()
    _, their_error = attempt(torch.autograd.backward, [b for _, b in pairs], weights)
    _, my_error = attempt(rushlight.autograd.backward, [a for a, _ in pairs], [to_ours(w) for w in weights])
    problem = refusals(my_error, their_error)
    if problem:
        yield f"{what}: backward {problem}"
    yield from compare_gradients(what, mine, theirs, carrier)


def compare_gradients(what: str, mine: Any, theirs: Any, carrier: Carrier) -> Iterator[str]:
    pairs = [(f"input {i}", a, b) for i, (a, b) in enumerate(carrier.leaves) if b.is_leaf]
    pairs += [(name, a, b) for (name, a), b in zip(mine.named_parameters(), theirs.parameters(), strict=True)]
    for name, a, b in pairs:
        if (a.grad is None) != (b.grad is None):
            yield f"{what}: gradient of {name} {'missing' if a.grad is None else 'only here'}"
        elif b.grad is not None:
            for problem in differences(a.grad, b.grad, strides=False):
                yield f"{what}: gradient of {name} {problem}"
