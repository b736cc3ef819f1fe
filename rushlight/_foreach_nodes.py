"""Functions on lists under hooks on saved tensors: one node, which packs the lists that torch's keeps.

Its derivative is that of the steps, taken again of what the hooks unpacked (ops/_again.py), or follows from
the results where torch keeps nothing else.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import _C
from rushlight.ops._again import gradients_of_steps
from rushlight.ops._rules import RULES

RESULTS = -1


class _Call:
    """The function of the lists, which of them are kept, and where each begins."""

    def __init__(self, operation: str, run: Callable, lists: list, keeps: tuple[int, ...]) -> None:
        self.operation, self.run, self.keeps = operation, run, keeps
        self.sizes = [len(each) for each in lists]

    def split(self, tensors: Any) -> list[list]:
        tensors = iter(tensors)
        return [[next(tensors) for _ in range(size)] for size in self.sizes]

    def steps(self, tensors: Any) -> Any:
        return self.run(*self.split(tensors))


class _Listed(rushlight.autograd.Function):
    @staticmethod
    def forward(ctx, call, *tensors):
        results, lists = call.steps(tensors), call.split(tensors)
        ctx.call = call
        ctx.set_materialize_grads(False)
        kept = [tensor for at in call.keeps for tensor in (results if at == RESULTS else lists[at])]
        ctx.save_for_backward(*kept)
        return results

    @staticmethod
    def backward(ctx, *grads):
        call, kept, wanted = ctx.call, iter(ctx.saved_tensors), ctx.needs_input_grad[1:]
        counts = {at: len(grads) if at == RESULTS else call.sizes[at] for at in call.keeps}
        lists = {at: [next(kept) for _ in range(count)] for at, count in counts.items()}
        if len(lists) == 1 and RESULTS in lists:
            ((rule, _),) = RULES[call.operation].values()
            rows = zip(grads, lists[RESULTS], wanted, strict=True)
            return None, *(rule(g, out) if g is not None and one else None for g, out, one in rows)
        tensors = [tensor for at in range(len(call.sizes)) for tensor in lists[at]]
        if len(set(map(_C.storage_id, tensors))) < len(tensors):  # each place has a gradient of its own
            tensors = [tensor.view_as(tensor) for tensor in tensors]
        return None, *gradients_of_steps(call.steps, tensors, wanted, grads)


@functools.cache
def _named(node: str) -> Any:
    made: Any = type(node, (_Listed,), {"_node_name": node})
    made._backward_cls.__module__ = "builtins"
    return made


def as_one_node(node: str, run: Callable, lists: list, keeps: tuple[int, ...]) -> tuple:
    """run(*lists), recorded as one node of that name."""
    operation = node.removeprefix("Foreach").removesuffix("Backward0").lower()
    call = _Call(operation, run, lists, keeps)
    return _named(node).apply(call, *(tensor for each in lists for tensor in each))
