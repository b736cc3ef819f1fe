"""Reverse-mode differentiation: `backward` and `grad`, the modes, and the graph they walk.

The walk itself is native (graph/engine.cpp); here its arguments are checked and its errors worded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight import _C
from rushlight._errors import explain_no_graph, with_places
from rushlight.autograd import function, graph
from rushlight.autograd.function import Function
from rushlight.autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled

Tensor = _C.Tensor

__all__ = [
    "Function",
    "Variable",
    "backward",
    "enable_grad",
    "grad",
    "inference_mode",
    "no_grad",
    "set_grad_enabled",
]


def _as_tuple(value: Any) -> tuple:
    return value if type(value) is tuple else (value,) if isinstance(value, Tensor) else tuple(value)


def _initial_gradients(tensors: tuple, gradients: tuple, batched: bool = False) -> tuple:
    """A gradient for every root: given ones are checked, missing ones are ones for scalars."""
    made: list[Tensor | None] = []
    for tensor, gradient in zip(tensors, gradients, strict=True):
        if isinstance(gradient, Tensor):
            if gradient.shape != tensor.shape:
                index = next(i for i, t in enumerate(tensors) if t is tensor)
                raise RuntimeError(
                    f"Mismatch in shape: grad_output[{index}] has a shape of {gradient.shape} and "
                    f"output[{index}] "
                    f"has a shape of {tensor.shape}."
                )
            if tensor.is_complex() != gradient.is_complex():
                raise RuntimeError(
                    "For complex Tensors, both grad_output and output are required to have the same dtype. "
                    f"Mismatch in dtype: grad_output[0] has a dtype of {gradient.dtype} and output[0] "
                    f"has a dtype "
                    f"of {tensor.dtype}."
                )
            made.append(gradient)
        elif gradient is None:
            if not tensor.requires_grad:
                made.append(None)
                continue
            if tensor.numel() != 1:
                raise RuntimeError(
                    with_places(
                        "grad can be implicitly created only for scalar outputs",
                        [
                            (
                                f"A tensor of shape {list(tensor.shape)} was computed",
                                tensor.grad_fn and tensor.grad_fn._source,
                            )
                        ],
                        "Reduce it first, y.sum().backward(), or say how its elements weigh: "
                        "y.backward(weights).",
                    )
                )
            if not tensor.dtype.is_floating_point:
                raise RuntimeError(
                    f"grad can be implicitly created only for real scalar outputs but got {tensor.dtype}"
                )
            made.append(_C.ones_like(tensor))
        else:
            raise TypeError(f"gradients can be either Tensors or None, but got {type(gradient).__name__}")
    return tuple(made)


def _check_roots(tensors: tuple) -> None:
    for index, tensor in enumerate(tensors):
        if not tensor.requires_grad:
            raise RuntimeError(explain_no_graph(index, tensor))


def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Adds the gradients of `tensors` with respect to the leaves of their graph to the leaves' `.grad`.

    >>> x = rushlight.tensor(3., requires_grad=True)
    >>> rushlight.autograd.backward(x * x)
    >>> x.grad
    tensor(6.)
    """
    if grad_variables is not None:
        import warnings

        warnings.warn(
            "`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2
        )
        if grad_tensors is None:
            grad_tensors = grad_variables
        else:
            raise RuntimeError("`grad_tensors` and `grad_variables` (deprecated) arguments both passed "
                               "to `backward()`. Please only use `grad_tensors`.")  # fmt: skip
    tensors = _as_tuple(tensors)
    if inputs is not None:
        inputs = _as_tuple(inputs)
        if not inputs:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
        for tensor in inputs:
            if not tensor.requires_grad:
                raise RuntimeError("One of the differentiated Tensors does not require grad")
    gradients = (None,) * len(tensors) if grad_tensors is None else _as_tuple(grad_tensors)
    if len(gradients) != len(tensors):
        raise RuntimeError(f"got {len(tensors)} tensors and {len(gradients)} gradients")
    gradients = _initial_gradients(tensors, gradients)
    _check_roots(tensors)
    keep = create_graph if retain_graph is None else bool(retain_graph)
    _C.run_backward(tensors, gradients, keep, bool(create_graph), inputs, True)


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...]:
    """The gradients of `outputs` with respect to `inputs`, returned instead of accumulated.

    >>> x = rushlight.tensor(3., requires_grad=True)
    >>> rushlight.autograd.grad(x ** 3, x)
    (tensor(27.),)
    """
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, "
                         "but got: allow_unused=False.")  # fmt: skip
    if not only_inputs:
        import warnings

        warnings.warn("only_inputs argument is deprecated and is ignored now (defaults to True). To "
                      "accumulate gradient for other parts of the graph, please use "
                      "torch.autograd.backward.", FutureWarning, stacklevel=2)  # fmt: skip
    allow_unused = materialize_grads if allow_unused is None else allow_unused
    outputs, inputs = _as_tuple(outputs), _as_tuple(inputs)
    given = (None,) * len(outputs) if grad_outputs is None else _as_tuple(grad_outputs)
    if len(given) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(given)} gradients")
    keep = create_graph if retain_graph is None else bool(retain_graph)
    if is_grads_batched:
        return _grad_batched(outputs, inputs, given, keep, create_graph, allow_unused, materialize_grads)
    gradients = _initial_gradients(outputs, given)
    _check_roots(outputs)
    for tensor in inputs:
        if not tensor.requires_grad:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
    result = _C.run_backward(outputs, gradients, keep, bool(create_graph), inputs, False)
    unused = [index for index, gradient in enumerate(result) if gradient is None]
    if not unused:
        return result
    if not allow_unused:
        index = unused[0]
        raise RuntimeError(
            with_places(
                f"The differentiated Tensor at index {index} appears to not have been used in the graph. Set "
                "allow_unused=True if this is the desired behavior.",
                [
                    (
                        f"Input {index}, of shape {list(inputs[index].shape)}, is not used by what was "
                        f"computed",
                        outputs[0].grad_fn and outputs[0].grad_fn._source,
                    )
                ],
                "Check that this very tensor (not a copy of it) enters the computation.",
            )
        )
    if materialize_grads:
        return tuple(_C.zeros_like(x) if g is None else g for g, x in zip(result, inputs, strict=True))
    return result


def _grad_batched(outputs, inputs, given, keep, create_graph, allow_unused, materialize_grads):
    """One run per row of the gradients, results stacked."""
    from rushlight import stack

    sizes = {g.shape[0] for g in given if g is not None}
    if len(sizes) != 1:
        raise ValueError("is_grads_batched: all grad_outputs must have the same leading dimension")
    rows = []
    count = sizes.pop()
    for i in range(count):
        row = tuple(None if g is None else g[i] for g in given)
        rows.append(
            grad(
                outputs,
                inputs,
                row,
                keep or i < count - 1,
                create_graph,
                allow_unused=allow_unused,
                materialize_grads=materialize_grads,
            )
        )
    return tuple(None if column[0] is None else stack(column) for column in zip(*rows, strict=True))


class _VariableMeta(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_VariableMeta):
    """The old name of Tensor: Variable(t) is t."""

    def __new__(cls, data=None, requires_grad=False, volatile=None):
        from rushlight import tensor

        data = tensor([]) if data is None else data
        return data.detach().requires_grad_(requires_grad)
