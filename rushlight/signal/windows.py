"""Window functions under the names of torch.signal.windows.

All take the number of samples M, whether the window is symmetric or one period of a longer one (sym), and
the usual dtype, layout, device and requires_grad. They are computed in double precision and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import rushlight
from rushlight import _C
from rushlight.ops.create import _device
from rushlight.ops.windows import cosine_sum, kaiser_shape, triangle

Tensor = _C.Tensor

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming",
    "hamming", "hann", "kaiser", "nuttall",
]  # fmt: skip


def _places(name: str, M: int, sym: bool, dtype: Any, layout: Any) -> tuple[Tensor, int, Any]:
    """0 ... M-1 in double precision, the number of steps of the whole window, and the result's dtype."""
    if isinstance(M, bool) or not isinstance(M, int):
        raise TypeError(f"{name}(): argument 'M' must be int, not {type(M).__name__}")
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout not in (None, rushlight.strided):
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    dtype = dtype or rushlight.get_default_dtype()
    if dtype not in (_C.float32, _C.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    return _C.arange(0.0, 1.0, M, _C.float64, None), M - 1 if sym and M > 1 else M, dtype


def _finish(window: Tensor, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    if window.numel() == 1:
        window = _C.full((1,), 1.0, _C.float64, None)
    return window.to(dtype=dtype, device=_device(device) or "cpu").requires_grad_(requires_grad)


def exponential(M, *, center=None, tau=1.0, sym=True, dtype=None, layout=None, device=None,
                requires_grad=False):  # fmt: skip
    """exp(-|n - center| / tau), the center being the middle unless given.

    >>> rushlight.signal.windows.exponential(3)
    tensor([0.3679, 1.0000, 0.3679])
    """
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    n, steps, dtype = _places("exponential", M, sym, dtype, layout)
    middle = steps / 2 if center is None else center
    return _finish((-(n - middle).abs() / tau).exp(), dtype, device, requires_grad)


def cosine(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """One arch of a sine wave.

    >>> rushlight.signal.windows.cosine(3)
    tensor([0.5000, 1.0000, 0.5000])
    """
    n, steps, dtype = _places("cosine", M, sym, dtype, layout)
    return _finish(((n + 0.5) * (math.pi / (steps + 1))).sin(), dtype, device, requires_grad)


def gaussian(M, *, std=1.0, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """A normal density around the middle, scaled to 1 there.

    >>> rushlight.signal.windows.gaussian(3)
    tensor([0.6065, 1.0000, 0.6065])
    """
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    n, steps, dtype = _places("gaussian", M, sym, dtype, layout)
    return _finish((-0.5 * ((n - steps / 2) / std).square()).exp(), dtype, device, requires_grad)


def kaiser(M, *, beta=12.0, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """Kaiser's window: i0(beta sqrt(1 - t^2)) / i0(beta) for t from -1 to 1.

    >>> rushlight.signal.windows.kaiser(3, beta=2.0)
    tensor([0.4387, 1.0000, 0.4387])
    """
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    n, steps, dtype = _places("kaiser", M, sym, dtype, layout)
    return _finish(kaiser_shape(n, steps, beta), dtype, device, requires_grad)


def bartlett(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """A triangle from 0 up to 1 and down.

    >>> rushlight.signal.windows.bartlett(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    n, steps, dtype = _places("bartlett", M, sym, dtype, layout)
    return _finish(triangle(n, steps), dtype, device, requires_grad)


def general_cosine(M, *, a: Iterable, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """a[0] - a[1] cos(t) + a[2] cos(2t) ... for t from 0 to 2 pi.

    >>> rushlight.signal.windows.general_cosine(3, a=[0.5, 0.5])
    tensor([0., 1., 0.])
    """
    n, steps, dtype = _places("general_cosine", M, sym, dtype, layout)
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    weights = [float(each) for each in a]
    if not weights:
        raise ValueError("Coefficients cannot be empty")
    return _finish(cosine_sum(n, steps, weights), dtype, device, requires_grad)


def general_hamming(M, *, alpha=0.54, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """alpha - (1 - alpha) cos(t) for t from 0 to 2 pi.

    >>> rushlight.signal.windows.general_hamming(3, alpha=0.6)
    tensor([0.2000, 1.0000, 0.2000])
    """
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, dtype=dtype, layout=layout, device=device,
                          requires_grad=requires_grad)  # fmt: skip


def hamming(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """Hamming's window, 0.54 - 0.46 cos(t).

    >>> rushlight.signal.windows.hamming(3)
    tensor([0.0800, 1.0000, 0.0800])
    """
    return general_hamming(M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def hann(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """Hann's window, 0.5 - 0.5 cos(t).

    >>> rushlight.signal.windows.hann(3)
    tensor([0., 1., 0.])
    """
    return general_hamming(M, alpha=0.5, sym=sym, dtype=dtype, layout=layout, device=device,
                           requires_grad=requires_grad)  # fmt: skip


def blackman(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """Blackman's window, 0.42 - 0.5 cos(t) + 0.08 cos(2t).

    >>> rushlight.signal.windows.blackman(3)[1]
    tensor(1.)
    """
    _places("blackman", M, sym, dtype, layout)
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, dtype=dtype, layout=layout, device=device,
                          requires_grad=requires_grad)  # fmt: skip


def nuttall(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """Nuttall's window of four cosines.

    >>> rushlight.signal.windows.nuttall(3)[1]
    tensor(1.)
    """
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, dtype=dtype,
                          layout=layout, device=device, requires_grad=requires_grad)  # fmt: skip
