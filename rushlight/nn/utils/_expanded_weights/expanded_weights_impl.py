"""The weight that a batch of examples shares, and which functions take it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import rushlight
from rushlight import Tensor
from rushlight.ops import rnn
from rushlight.utils._pytree import tree_leaves

HANDLED_FUNCTIONS: dict[Callable, Any] = {}


def implements_per_sample_grads(torch_function: Callable) -> Callable:
    """Lets an `autograd.Function` stand for a function of weights: it is applied to the names of the keyword
    arguments, the function, and the values of all arguments."""

    def register(autograd_func: Any) -> Any:
        HANDLED_FUNCTIONS[torch_function] = autograd_func
        return autograd_func

    return register


class ExpandedWeight(Tensor):
    """A parameter as the weight of a batch: only functions that know how to take the gradient of each example
    take it."""

    handled_functions = HANDLED_FUNCTIONS

    def __new__(cls, orig_weight: Any, batch_size: int, loss_reduction: str) -> ExpandedWeight:
        if not isinstance(orig_weight, Tensor):
            raise RuntimeError(f"Can only make Expanded Weights of Tensors, got {type(orig_weight).__name__}")
        if not orig_weight.requires_grad:
            raise RuntimeError("Can only build ExpandedWeights objects of tensors that requires_grad")
        return Tensor._make_subclass(cls, orig_weight, True)

    def __init__(self, orig_weight: Tensor, batch_size: int, loss_reduction: str) -> None:
        self.orig_weight, self.batch_size, self.loss_reduction = orig_weight, batch_size, loss_reduction
        self.batch_first, self.allow_smaller_batches = True, False

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in cls.handled_functions:
            return cls.handled_functions[func].apply(tuple(kwargs), func, *args, *kwargs.values())
        if func in _RECURRENT:
            return _recurrent(func, args, kwargs)
        raise RuntimeError(f"Expanded Weights encountered but cannot handle function {func.__name__}")

    @property
    def dtype(self) -> Any:
        return self.orig_weight.dtype

    @property
    def data(self) -> Any:  # type: ignore[override]
        return self.orig_weight.data

    @property
    def shape(self) -> Any:
        return self.orig_weight.shape

    @property
    def device(self) -> Any:
        return self.orig_weight.device

    @property
    def is_cuda(self) -> bool:
        return self.orig_weight.is_cuda

    def data_ptr(self) -> int:
        return self.orig_weight.data_ptr()

    def get_device(self) -> int:
        return self.orig_weight.get_device()

    def set_batch_first(self, is_batch_first: bool = True) -> None:
        self.batch_first = is_batch_first

    def set_allow_smaller_batches(self, is_allow_smaller_batches: bool) -> None:
        self.allow_smaller_batches = is_allow_smaller_batches


# Recurrent layers are taken apart into the products with their weights.
_RECURRENT = {
    rushlight.lstm: "lstm",
    rushlight.gru: "gru",
    rushlight.rnn_tanh: "tanh",
    rushlight.rnn_relu: "relu",
}


@contextlib.contextmanager
def _smaller_batches(weights: list[ExpandedWeight]) -> Iterator[None]:
    """Of packed sequences, some end before others."""
    for weight in weights:
        weight.set_allow_smaller_batches(True)
    try:
        yield
    finally:
        for weight in weights:
            weight.set_allow_smaller_batches(False)


def _direction(
    mode: str, x: Tensor, h: Tensor, c: Any, weights: tuple, sizes: Any, reverse: bool, shown: bool
) -> tuple:
    """One layer in one direction, the examples first in whatever is multiplied with a weight."""
    w_ih, w_hh, b_ih, b_hh, w_hr = weights
    if sizes is None:
        of_x = rnn.linear(x.transpose(0, 1), w_ih, b_ih).transpose(0, 1)
    else:
        of_x = rushlight.cat([rnn.linear(part, w_ih, b_ih) for part in x.split(list(sizes))])
    return rnn._steps(mode, of_x, h, c, w_hh, b_hh, w_hr, sizes, reverse)


def _recurrent(func: Any, args: tuple, kwargs: dict) -> Any:
    weights = [x for x in tree_leaves((args, kwargs)) if isinstance(x, ExpandedWeight)]
    with _smaller_batches(weights):
        return rnn._run(func.__name__, _RECURRENT[func], args, kwargs, _direction)
