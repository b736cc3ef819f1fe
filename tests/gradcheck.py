"""Gradients against finite differences, in float64 and complex128.

For outputs y and random cotangents v, the loss is L = Re(sum(conj(v) * y)). What the library returns for v is
compared, element by element, with dL/dRe(x) + i dL/dIm(x): torch's convention for complex numbers.
"""

import random
from collections.abc import Callable
from typing import Any

from sampling import nest, tensors_in

STEP = 1e-6


def gradcheck(lib: Any, function: Callable[..., Any], inputs: list[Any], *, tolerance: float = 1.0) -> None:
    """Raise AssertionError unless the gradients of `function(*inputs)` agree with finite differences."""
    inputs = [tensor.detach().clone().requires_grad_() for tensor in inputs]
    outputs = _differentiable(lib, function(*inputs))
    assert outputs, "no output can be differentiated"
    assert all(output.requires_grad for output in outputs), "an output does not require a gradient"
    cotangents = _cotangents(lib, outputs)
    found = lib.autograd.grad(outputs, inputs, cotangents, allow_unused=True)
    weights = [_flat(cotangent) for cotangent in cotangents]

    def loss(*tensors: Any) -> float:
        with lib.no_grad():
            results = _differentiable(lib, function(*tensors))
        total = 0.0
        for weight, result in zip(weights, results, strict=True):
            total += sum(
                (complex(w).conjugate() * y).real for w, y in zip(weight, _flat(result), strict=True)
            )
        return total

    for place, (tensor, gradient) in enumerate(zip(inputs, found, strict=True)):
        expected = _slopes(lib, loss, inputs, place)
        actual = [0.0] * len(expected) if gradient is None else _flat(gradient)
        if gradient is not None:
            assert gradient.shape == tensor.shape, f"input {place}: gradient of shape {tuple(gradient.shape)}"
            assert gradient.dtype == tensor.dtype, f"input {place}: gradient of dtype {gradient.dtype}"
        for element, (a, e) in enumerate(zip(actual, expected, strict=True)):
            bound = tolerance * (1e-6 + 1e-5 * abs(e))
            assert abs(a - e) <= bound, (
                f"input {place}, element {element}: gradient {a}, finite difference {e}"
            )


def gradgradcheck(
    lib: Any, function: Callable[..., Any], inputs: list[Any], *, tolerance: float = 1.0
) -> None:
    """The same for the gradient itself, as a function of the inputs and of the cotangents."""
    inputs = [tensor.detach().clone() for tensor in inputs]
    with lib.no_grad():
        cotangents = _cotangents(lib, _differentiable(lib, function(*inputs)))

    def gradient(*tensors: Any) -> list[Any]:
        with lib.enable_grad():
            tensors = [tensor if tensor.requires_grad else tensor.requires_grad_() for tensor in tensors]
            leaves, weights = tensors[: len(inputs)], tensors[len(inputs) :]
            outputs = _differentiable(lib, function(*leaves))
            found = lib.autograd.grad(outputs, leaves, weights, create_graph=True, allow_unused=True)
            # Adding zero times the inputs keeps a gradient that is constant in them differentiable.
            anchor = sum((tensor * 0).sum() for tensor in tensors)
            return [0 * leaf + anchor if g is None else g + anchor for leaf, g in zip(leaves, found)]

    gradcheck(lib, gradient, inputs + cotangents, tolerance=10 * tolerance)


def _slopes(lib: Any, loss: Callable[..., float], inputs: list[Any], place: int) -> list[Any]:
    tensor = inputs[place]
    numbers = _flat(tensor)
    units = (1.0, 1j) if tensor.dtype.is_complex else (1.0,)

    def at(element: int, shift: Any) -> float:
        moved = list(numbers)
        moved[element] += shift
        replaced = list(inputs)
        replaced[place] = lib.tensor(nest(moved, tuple(tensor.shape)), dtype=tensor.dtype)
        return loss(*[item.detach() for item in replaced])

    slopes = []
    for element in range(len(numbers)):
        parts = [(at(element, STEP * unit) - at(element, -STEP * unit)) / (2 * STEP) * unit for unit in units]
        slopes.append(sum(parts))
    return slopes


def _differentiable(lib: Any, result: Any) -> list[Any]:
    tensors = tensors_in(lib, result)
    return [tensor for tensor in tensors if tensor.dtype.is_floating_point or tensor.dtype.is_complex]


def _cotangents(lib: Any, outputs: list[Any]) -> list[Any]:
    rng = random.Random(7)

    def number(dtype: Any) -> Any:
        return complex(rng.uniform(-1, 1), rng.uniform(-1, 1)) if dtype.is_complex else rng.uniform(-1, 1)

    result = []
    for output in outputs:
        numbers = [number(output.dtype) for _ in range(output.numel())]
        shape = tuple(output.shape)
        empty = output.numel() == 0
        made = (
            lib.zeros(shape, dtype=output.dtype)
            if empty
            else lib.tensor(nest(numbers, shape), dtype=output.dtype)
        )
        result.append(made)
    return result


def _flat(tensor: Any) -> list[Any]:
    return tensor.detach().reshape(-1).tolist()
