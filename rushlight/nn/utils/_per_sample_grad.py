"""Gradients of each example of a batch, by expanded weights."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from rushlight import Tensor
from rushlight.nn.module import Module
from rushlight.nn.utils._expanded_weights import ExpandedWeight
from rushlight.nn.utils.stateless import func_functional_call
from rushlight.utils._pytree import tree_leaves


def _batch_size(values: Any, dim: int) -> int:
    """The number of examples that all tensors among the arguments have."""
    sizes = [value.shape[dim] for value in tree_leaves(values) if isinstance(value, Tensor)]
    if not sizes:
        raise RuntimeError(
            "Unable to find a tensor in the passed args and kwargs. They may not be pytree-able and so "
            "ExpandedWeights cannot compute the batch size from the inputs. Please specify it explicitly"
        )
    for size in sizes:
        if size != sizes[0]:
            raise RuntimeError(
                f"When computing batch size, found at least one input with batch size {sizes[0]} and one "
                f"with batch size {size}. Please specify it explicitly using the batch size kwarg in "
                "call_for_per_sample_grads"
            )
    return sizes[0]


def call_for_per_sample_grads(
    module: Module,
    *,
    batch_size: int | None = None,
    loss_reduction: str = "sum",
    batch_first: bool = True,
) -> Callable:
    """The forward of a module whose backward leaves in `grad_sample` of each parameter its gradients by every
    example: a row each. With `loss_reduction="mean"` they are those of the losses of which it is the mean.

    >>> layer = rushlight.nn.Linear(2, 1)
    >>> call_for_per_sample_grads(layer)(rushlight.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    >>> layer.weight.grad_sample, layer.weight.grad
    (tensor([[[1., 2.]],
    <BLANKLINE>
            [[3., 4.]]]), None)
    """
    if loss_reduction not in ("sum", "mean"):
        raise RuntimeError(f"Expected loss_reduction argument to be sum or mean, got {loss_reduction}")
    if not isinstance(module, Module):
        raise RuntimeError(f"Module passed must be nn.Module, got {type(module).__name__}")
    if not (batch_size is None or isinstance(batch_size, int)):
        raise RuntimeError(f"Batch size passed must be None or an integer, got {type(batch_size).__name__}")
    if batch_size is not None and batch_size < 1:
        raise RuntimeError(f"Batch size must be positive, got {batch_size}")
    for parameter in module.parameters():
        if getattr(parameter, "grad_sample", None) is not None:
            raise RuntimeError(
                "Current Expanded Weights accumulates the gradients, which will be incorrect for multiple "
                f"calls without clearing gradients. Please clear out the grad_sample parameter of {parameter}"
            )

    @functools.wraps(module.forward)
    def called(*args: Any, **kwargs: Any) -> Any:
        size = _batch_size((args, kwargs), 0 if batch_first else 1) if batch_size is None else batch_size
        weights = {
            name: ExpandedWeight(value, size, loss_reduction) if value.requires_grad else value
            for name, value in module.named_parameters()
        }
        return func_functional_call(module, weights, args, kwargs)

    return called
