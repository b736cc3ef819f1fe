"""What graphs keep, in both libraries: which tensors pack hooks are shown, and which writes between a forward
and its backward are refused.

`Run.kept()` and `Run.refused()` observe one call with one set of inputs that require grad; `found(entry)`
compares the samples of an operation. An input or output, or a view of all of it, is told by its memory;
whatever else is kept is "other" and has a dtype and a number of elements only. Whether it requires grad is
told of all.
"""

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import torch
from opdb import ENTRIES, Absent, Carrier, Unfit, attempt, ours, samples, supported, tensors_in

import rushlight

MODIFIED = "one of the variables needed for gradient computation has been modified by an inplace operation"


def tensors_of(item: Any, kind: Any) -> list[Any]:
    """The tensors in an argument, also in dictionaries, each once."""
    if isinstance(item, kind):
        return [item]
    if isinstance(item, dict):
        item = list(item.values())
    found: list[Any] = []
    if isinstance(item, (list, tuple)):
        for part in item:
            found += [t for t in tensors_of(part, kind) if not any(t is seen for seen in found)]
    return found


class Run:
    """One call in one library. In place, the operation works on a copy of its first argument."""

    def __init__(
        self, lib: Any, function: Callable, args: Any, kwargs: Any, leaves: list[Any], in_place: bool
    ) -> None:
        self.lib, self.function, self.args, self.kwargs = lib, function, args, kwargs
        self.leaves, self.in_place = leaves, in_place

    def call(self) -> tuple[list[Any], list[Any]]:
        """The tensors that went in and those that came out."""
        self.lib.manual_seed(0)
        args = self.args
        if self.in_place:
            args = (args[0].clone(), *args[1:])
        result = self.function(*args, **self.kwargs)
        inputs = tensors_of((args, self.kwargs), self.lib.Tensor)
        outputs = [t for t in tensors_in(result, self.lib.Tensor) if not any(t is other for other in inputs)]
        return inputs, outputs or tensors_in(result, self.lib.Tensor)

    def kept(self) -> list[tuple]:
        shown: list[Any] = []

        def pack(tensor: Any) -> Any:
            shown.append((tensor, "with grad" if tensor.requires_grad else "without"))
            return tensor

        with self.lib.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            inputs, outputs = self.call()
        named = [(f"input {n}", t) for n, t in enumerate(inputs)]
        named += [(f"output {n}", t) for n, t in enumerate(outputs)]

        def name(tensor: Any) -> str:
            if not tensor.numel():
                return "empty"
            place = (tensor.data_ptr(), tensor.numel())
            for told, t in named:
                if t is tensor or (t.data_ptr(), t.numel()) == place:
                    return told
            return "other"

        return [(name(t), str(t.dtype).split(".")[-1], t.numel(), wanted) for t, wanted in shown]

    def write_count(self) -> int:
        inputs, outputs = self.call()
        return len({id(t) for t in (*inputs, *outputs)})

    def refused(self, which: int) -> str | None:
        """Whether the backward is refused after a write into the tensor of this number: None if there is no
        gradient to compute."""
        try:
            inputs, outputs = self.call()
        except RuntimeError:  # a view made under no_grad, whose base was written by the last write
            return None
        written = [*inputs, *(t for t in outputs if not any(t is other for other in inputs))]
        self.lib.autograd.graph.increment_version(written[which].detach())
        wanted = [t for t in outputs if t.requires_grad]
        leaves = [leaf for leaf in self.leaves if leaf.requires_grad]
        if not wanted or not leaves:
            return None
        try:
            self.lib.autograd.grad(wanted, leaves, [self.lib.ones_like(t) for t in wanted], allow_unused=True)
        except RuntimeError as error:
            return "refused" if MODIFIED in str(error) else None
        return "taken"


def subsets(count: int) -> Iterator[list[bool]]:
    """All inputs require grad, or one of them alone."""
    yield [True] * count
    if 1 < count <= 4:
        for alone in range(count):
            yield [n == alone for n in range(count)]


def compared(mine: Run, theirs: Run) -> Iterator[tuple[str, str]]:
    """What differs: (kind, what). Kinds are "writes", "hooks" and "order"."""
    there, here = theirs.kept(), mine.kept()
    if there != here:
        more, less = Counter(here) - Counter(there), Counter(there) - Counter(here)
        if more or less:
            yield "hooks", f"keeps {list(more.elements())} too, lacks {list(less.elements())}"
        else:
            yield "order", f"{here}, torch {there}"
    n = theirs.write_count()
    if mine.write_count() != n:
        return
    for which in range(n):
        torchs, our = theirs.refused(which), mine.refused(which)
        if torchs != our and None not in (torchs, our):
            yield "writes", f"{which}: {our}, torch {torchs}"


def found(
    entry: str, count: int, in_place: bool = False, dtypes: tuple[str, ...] = ("float64", "complex128")
) -> Iterator[tuple[str, str, str]]:
    """(sample, kind, what) of every difference in the samples of an operation."""
    op = ENTRIES[entry]
    function = op.inplace_variant if in_place else op.op
    if function is None:
        return
    for dtype in dtypes:
        if not supported(op, "grad", dtype):
            continue
        some = max(1, count // 2) if dtype == "complex128" else count
        for number, sample in enumerate(samples(op, dtype, some, requires_grad=True)):
            if in_place and sample.broadcasts_input:
                continue
            carry = Carrier()
            theirs_args, theirs_kwargs = (sample.input, *sample.args), dict(sample.kwargs)
            try:
                args, kwargs = carry(theirs_args), carry(theirs_kwargs)
                here = ours(function, "" if in_place else op.name)
            except (Unfit, Absent):
                continue
            if in_place and not isinstance(sample.input, torch.Tensor):
                continue
            leaves = carry.leaves
            for wanted in subsets(len(leaves)):
                for pair, flag in zip(leaves, wanted):
                    for leaf in pair:
                        leaf.requires_grad_(flag)
                runs = (
                    Run(rushlight, here, args, kwargs, [leaf for leaf, _ in leaves], in_place),
                    Run(torch, function, theirs_args, theirs_kwargs, [leaf for _, leaf in leaves], in_place),
                )
                if any(attempt(run.call)[1] is not None for run in runs):
                    continue
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    for kind, what in compared(*runs):
                        yield f"{dtype}[{number}]{[int(w) for w in wanted]}", kind, what
