"""What the Functions of expanded weights share: checks, and where gradients of the examples go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import Tensor
from rushlight.nn.utils._expanded_weights.expanded_weights_impl import ExpandedWeight


def standard_kwargs(kwarg_names: Any, expanded_args: tuple) -> tuple[tuple, dict]:
    """Arguments of a Function as positional ones and those of these names, which come last."""
    count = len(expanded_args) - len(kwarg_names)
    return expanded_args[:count], dict(zip(kwarg_names, expanded_args[count:], strict=True))


def _expanded(args: tuple, kwargs: dict) -> list[ExpandedWeight]:
    return [x for x in (*args, *kwargs.values()) if isinstance(x, ExpandedWeight)]


def _check_input(name: str, value: Any) -> None:
    if isinstance(value, ExpandedWeight):
        raise RuntimeError(
            "Expanded Weights do not support inputs that are also ExpandedWeights. Input must be a Tensor, "
            f"got {type(value).__name__} in function {name}"
        )
    if not isinstance(value, Tensor):
        raise RuntimeError(
            "Expanded Weights requires a Tensor as the first input to get the batch dimension, got "
            f"{type(value).__name__} in function {name}"
        )
    if not value.dim():
        raise RuntimeError(
            f"Expanded Weights requires a batch dimension but got an input of size 0 in function {name}"
        )
    if not value.shape[0]:
        raise RuntimeError(
            f"0 is not a valid batch size for Expanded Weights but got input tensor of {value} in function "
            f"{name}"
        )


def _check_weights(value: Tensor, weights: list[ExpandedWeight]) -> None:
    for weight in weights:
        size = value.shape[0 if weight.batch_first else 1]
        fits = size <= weight.batch_size if weight.allow_smaller_batches else size == weight.batch_size
        if not fits:
            raise RuntimeError(
                "Expected ExpandedWeights to have batch size matching input but got input batch size of "
                f"{size} with ExpandedWeight of batch size {weight.batch_size}"
            )
    for weight in weights:
        if weight.loss_reduction != weights[0].loss_reduction:
            raise RuntimeError(
                "Expected ExpandedWeights to all have the same loss_reduction argument but got one"
                f"with {weights[0].loss_reduction} and one with {weight.loss_reduction}"
            )


def check_arguments(func: Callable, expanded_args: tuple, expanded_kwargs: dict) -> None:
    """Refuses an input whose examples are not those of the weights."""
    _check_input(func.__name__, expanded_args[0])
    _check_weights(expanded_args[0], _expanded(expanded_args, expanded_kwargs))


def forward_helper(func: Callable, expanded_args: tuple, expanded_kwargs: dict) -> Any:
    """What a function makes of its arguments with the parameters in the place of expanded weights; the first
    argument is the input, and has the examples."""
    check_arguments(func, expanded_args, expanded_kwargs)
    args = [unexpanded(value) for value in expanded_args]
    return func(*args, **{name: unexpanded(value) for name, value in expanded_kwargs.items()})


def unexpanded(value: Any) -> Any:
    """The parameter of an expanded weight; everything else as it is."""
    return value.orig_weight if isinstance(value, ExpandedWeight) else value


def unpack_expanded_weight_or_tensor(maybe_expanded_weight: Any, func: Callable = lambda x: x) -> Any:
    """What `func` makes of the parameter, or of a tensor without a gradient; None for what is no tensor."""
    if not isinstance(maybe_expanded_weight, Tensor):
        return None
    if isinstance(maybe_expanded_weight, ExpandedWeight):
        return func(maybe_expanded_weight.orig_weight)
    if maybe_expanded_weight.requires_grad:
        raise RuntimeError(
            "ExpandedWeights currently does not support a mixture of ExpandedWeight parameters and normal "
            "Parameters."
        )
    return func(maybe_expanded_weight)


def set_grad_sample_if_exists(maybe_expanded_weight: Any, per_sample_grad_fn: Callable) -> None:
    """Adds the gradients of the examples to those that an expanded weight has: a row for each of them."""
    parameter = unpack_expanded_weight_or_tensor(maybe_expanded_weight)
    if not isinstance(maybe_expanded_weight, ExpandedWeight):
        return
    weight: Any = maybe_expanded_weight
    found = per_sample_grad_fn(parameter)
    if weight.loss_reduction == "mean":
        found = found * weight.batch_size
    lacking = weight.batch_size - found.shape[0]
    if lacking > 0:  # sequences that had ended
        rest = found.new_zeros(lacking, *found.shape[1:])
        found = rushlight.cat((found, rest))
    before = getattr(parameter, "grad_sample", None)
    parameter.grad_sample = found if before is None else before + found


def sum_over_all_but_batch_and_last_n(tensor: Tensor, n_dims: int) -> Tensor:
    """The sum of each example over all but its last dimensions."""
    between = range(1, tensor.dim() - n_dims)
    return tensor.sum(tuple(between)) if between else tensor
