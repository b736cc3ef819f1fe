"""Window functions under the names of torch.signal.windows.

All take the number of samples M, whether the window is symmetric or one period of a longer one (sym), and
the usual dtype, layout, device and requires_grad. They are computed in double precision and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import rushlight
from rushlight import _C
from rushlight._type_names import type_name
from rushlight.ops.create import _device
from rushlight.ops.windows import cosine_sum, kaiser_shape, triangle

Tensor = _C.Tensor

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming",
    "hamming", "hann", "kaiser", "nuttall",
]  # fmt: skip


def _check(name: str, M: Any, dtype: Any, layout: Any) -> None:
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout not in (None, rushlight.strided):
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if dtype is not None and dtype not in (_C.float32, _C.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")


def _window(shape: Callable, M: Any, sym: bool, dtype: Any, device: Any, requires_grad: Any,
            ends: str = "float int") -> Tensor:  # fmt: skip
    """A window of M samples: `shape` of 0 ... M-1 in double precision and of the steps of the whole window.

    torch calls linspace, of which `ends` are types (a window of one sample is `ones` but for some), and
    complains as that does.
    """
    maker = "empty" if M == 0 else "ones" if M == 1 and ends != "float float" else "linspace"
    if maker == "linspace" and not _is_int(M):
        _refuse(M, device, requires_grad, ends)
    if not (requires_grad is None or isinstance(requires_grad, bool)):
        if maker == "linspace":
            _refuse(M, device, requires_grad, ends)
        raise TypeError(f"{maker}(): argument 'requires_grad' must be bool, not {type_name(requires_grad)}")
    if device is not None and (isinstance(device, bool) or not isinstance(device, (str, int, _C.device))):
        if maker == "linspace":
            _refuse(M, device, requires_grad, ends)
        raise TypeError(f"{maker}(): argument 'device' must be torch.device, not {type_name(device)}")
    M = int(M)
    if M > 1:
        window = shape(_C.arange(0.0, 1.0, M, _C.float64, None), M - 1 if sym else M)
    else:
        window = _C.full((M,), 1.0, _C.float64, None)
    dtype = dtype or rushlight.get_default_dtype()
    device = (_device(None) or "cpu") if device is None else device
    window = window.to(dtype=dtype, device=device)
    return window.requires_grad_() if requires_grad else window


def _is_int(M: Any) -> bool:
    if isinstance(M, Tensor):
        return M.numel() == 1 and not (M.is_floating_point() or M.is_complex() or M.dtype == _C.bool)
    return isinstance(M, int) and not isinstance(M, bool)


def _refuse(M: Any, device: Any, requires_grad: Any, ends: str) -> NoReturn:
    end, start = ends.split()
    shown = f"requires_grad={type_name(requires_grad)}, device={type_name(device)}, layout=torch.layout"
    raise TypeError(
        f"linspace() received an invalid combination of arguments - got ({shown}, dtype=torch.dtype, "
        f"steps={type_name(M)}, end={end}, start={start}, ), but expected one of:\n"
        " * (Number start, Number end, int steps, *, torch.dtype dtype, torch.layout layout, torch.device "
        "device, bool requires_grad)"
    )


def exponential(M, *, center=None, tau=1.0, sym=True, dtype=None, layout=None, device=None,
                requires_grad=False):  # fmt: skip
    """exp(-|n - center| / tau), the center being the middle unless given.

    >>> rushlight.signal.windows.exponential(3)
    tensor([0.3679, 1.0000, 0.3679])
    """
    _check("exponential", M, dtype, layout)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")

    def shape(n, steps):
        return (-(n - (steps / 2 if center is None else center)).abs() / tau).exp()

    return _window(shape, M, sym, dtype, device, requires_grad, "float float")


def cosine(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """One arch of a sine wave.

    >>> rushlight.signal.windows.cosine(3)
    tensor([0.5000, 1.0000, 0.5000])
    """
    _check("cosine", M, dtype, layout)

    def shape(n, steps):
        return ((n + 0.5) * (math.pi / (steps + 1))).sin()

    return _window(shape, M, sym, dtype, device, requires_grad, "float float")


def gaussian(M, *, std=1.0, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """A normal density around the middle, scaled to 1 there.

    >>> rushlight.signal.windows.gaussian(3)
    tensor([0.6065, 1.0000, 0.6065])
    """
    _check("gaussian", M, dtype, layout)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")

    def shape(n, steps):
        return (-0.5 * ((n - steps / 2) / std).square()).exp()

    return _window(shape, M, sym, dtype, device, requires_grad, "float float")


def kaiser(M, *, beta=12.0, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """Kaiser's window: i0(beta sqrt(1 - t^2)) / i0(beta) for t from -1 to 1.

    >>> rushlight.signal.windows.kaiser(3, beta=2.0)
    tensor([0.4387, 1.0000, 0.4387])
    """
    _check("kaiser", M, dtype, layout)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")

    def shape(n, steps):
        return kaiser_shape(n, steps, beta)

    return _window(shape, M, sym, dtype, device, requires_grad, "Tensor Tensor")


def bartlett(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """A triangle from 0 up to 1 and down.

    >>> rushlight.signal.windows.bartlett(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    _check("bartlett", M, dtype, layout)
    return _window(triangle, M, sym, dtype, device, requires_grad)


def general_cosine(M, *, a: Iterable, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """a[0] - a[1] cos(t) + a[2] cos(2t) ... for t from 0 to 2 pi.

    >>> rushlight.signal.windows.general_cosine(3, a=[0.5, 0.5])
    tensor([0., 1., 0.])
    """
    _check("general_cosine", M, dtype, layout)
    if M > 1:
        if not isinstance(a, Iterable):
            raise TypeError("Coefficients must be a list/tuple")
        if not a:
            raise ValueError("Coefficients cannot be empty")

    def shape(n, steps):
        if requires_grad is None:  # which torch makes a tensor of `a` with
            raise TypeError("tensor(): argument 'requires_grad' must be bool, not NoneType")
        return cosine_sum(n, steps, rushlight.tensor(list(a), dtype=_C.float64).tolist())

    return _window(shape, M, sym, dtype, device, requires_grad)


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
    _check("blackman", M, dtype, layout)
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, dtype=dtype, layout=layout, device=device,
                          requires_grad=requires_grad)  # fmt: skip


def nuttall(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """Nuttall's window of four cosines.

    >>> rushlight.signal.windows.nuttall(3)[1]
    tensor(1.)
    """
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, dtype=dtype,
                          layout=layout, device=device, requires_grad=requires_grad)  # fmt: skip
