"""torch's older window functions, `hann_window(length, periodic)` and its kin."""

from __future__ import annotations

import math

from rushlight import _C
from rushlight.ops._public import C_NAMES, FUNCTIONS, as_dtype, function, whole
from rushlight.ops.create import _device

ops = _C.ops


def _window(name, length, periodic, shape, dtype, device, requires_grad, pin_memory):
    length = whole(length)
    if isinstance(length, bool) or not isinstance(length, int):
        kind = type(length).__name__
        raise TypeError(f"{name}(): argument 'window_length' (position 1) must be int, not {kind}")
    if length < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={length}")
    dtype = as_dtype(dtype) or _C.get_default_dtype()
    if dtype.is_complex:
        kind = "ComplexFloat" if dtype == _C.complex64 else "ComplexDouble"
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{kind}'")
    if not dtype.is_floating_point:
        raise RuntimeError(
            f"{name} expects floating point dtypes, got: TensorOptions("
            f"dtype={C_NAMES[dtype]}, device=cpu, layout=Strided (default), requires_grad=false (default), "
            "pinned_memory=false, memory_format=(nullopt))"
        )
    if pin_memory:
        raise RuntimeError("Need to provide pin_memory allocator to use pin memory.")
    if length == 1:
        window = _C.full((1,), 1.0, _C.float64, None)
    else:
        places = _C.arange(0.0, 1.0, length, _C.float64, None)
        window = shape(places, length if periodic else length - 1)
    return _C.requires_grad_(window.to(dtype=dtype, device=_device(device) or "cpu"), requires_grad)


def cosine_sum(places, steps, weights):
    """weights[0] - weights[1] cos(t) + weights[2] cos(2t) ... for t from 0 to 2 pi."""
    angle = places * (2 * math.pi / max(steps, 1))
    return sum((-1) ** k * weight * ops.cos(angle * k) for k, weight in enumerate(weights))


def triangle(places, steps):
    """From 0 up to 1 and down."""
    return 1 - ops.abs(places * (2 / max(steps, 1)) - 1)


def kaiser_shape(places, steps, beta):
    """i0(beta sqrt(1 - t^2)) / i0(beta) for t from -1 to 1."""
    beta = abs(beta)  # i0 is even, and the scaling below is not
    t = places * (2 / max(steps, 1)) - 1
    root = ops.sqrt(FUNCTIONS["clamp"](1 - t * t, min=0)) * beta
    # Both Bessel functions are scaled by exponentials, which alone would overflow for large beta.
    scale = ops.i0e(_C.full((), float(beta), _C.float64, None))
    return ops.i0e(root) * ops.exp(root - beta) / scale


def _cosines(*weights):
    return lambda places, steps: cosine_sum(places, steps, weights)


@function
def hann_window(window_length, periodic=True, *, dtype=None, layout=None, device=None, requires_grad=False,
                pin_memory=False):  # fmt: skip
    """Hann's window.

    >>> rushlight.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    shape = _cosines(0.5, 0.5)
    return _window("hann_window", window_length, periodic, shape, dtype, device, requires_grad, pin_memory)


@function
def hamming_window(window_length, periodic=True, alpha=0.54, beta=0.46, *, dtype=None, layout=None,
                   device=None, requires_grad=False, pin_memory=False):  # fmt: skip
    """Hamming's window, alpha - beta cos(t).

    >>> rushlight.hamming_window(4)
    tensor([0.0800, 0.5400, 1.0000, 0.5400])
    """
    shape = _cosines(alpha, beta)
    return _window("hamming_window", window_length, periodic, shape, dtype, device, requires_grad, pin_memory)


@function
def blackman_window(window_length, periodic=True, *, dtype=None, layout=None, device=None,
                    requires_grad=False, pin_memory=False):  # fmt: skip
    """Blackman's window.

    >>> rushlight.blackman_window(4)[1:]
    tensor([0.3400, 1.0000, 0.3400])
    """
    shape = _cosines(0.42, 0.5, 0.08)
    return _window(
        "blackman_window", window_length, periodic, shape, dtype, device, requires_grad, pin_memory
    )


@function
def bartlett_window(window_length, periodic=True, *, dtype=None, layout=None, device=None,
                    requires_grad=False, pin_memory=False):  # fmt: skip
    """A triangle from 0 up to 1 and down.

    >>> rushlight.bartlett_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window(
        "bartlett_window", window_length, periodic, triangle, dtype, device, requires_grad, pin_memory
    )


@function
def kaiser_window(window_length, periodic=True, beta=12.0, *, dtype=None, layout=None, device=None,
                  requires_grad=False, pin_memory=False):  # fmt: skip
    """Kaiser's window of shape beta.

    >>> rushlight.kaiser_window(4, True, 2.0)
    tensor([0.4387, 0.8348, 1.0000, 0.8348])
    """
    shape = lambda places, steps: kaiser_shape(places, steps, beta)  # noqa: E731
    return _window("kaiser_window", window_length, periodic, shape, dtype, device, requires_grad, pin_memory)
