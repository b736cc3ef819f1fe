"""Discrete Fourier transforms, as torch.fft names them.

`norm` says where the division by the number of points n goes: "backward" (the default) divides the inverse by
n, "forward" the forward transform by n, "ortho" both by sqrt(n).
"""

from __future__ import annotations

import math as _math

from rushlight import _C
from rushlight._kinds import make_builtin as _make_builtin
from rushlight._type_names import type_name as _class_name
from rushlight.ops import fft as _core
from rushlight.ops._public import FUNCTIONS as _FUNCTIONS
from rushlight.ops._public import Tensor as _Tensor
from rushlight.ops._public import public as _public
from rushlight.ops._public import type_name as _type_name
from rushlight.ops._public import whole as _whole

_fft = _public(namespace=False, method=False)

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn",
    "ifftshift", "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq",
    "rfftn",
]  # fmt: skip


def _tensor(name, input):
    if not isinstance(input, _Tensor):
        raise TypeError(
            f"fft_{name}(): argument 'input' (position 1) must be Tensor, not {_class_name(input)}"
        )


def _one(name, input, n, dim, norm, forward, out):
    _tensor(name, input)
    _core.check_out(name, out)
    x = _core.promoted(input, False)
    dim = _core.check_dim(x, dim)
    if n is not None:
        x = _core.resized(x, {dim: _core.check_length(n)})
    _core.check_length(x.shape[dim])
    writer = "_fft_c2c" if x.dtype.is_complex else "_fft_r2c" if forward else "conj_physical"
    return _core.finish(_core.transform(x, (dim,), norm, forward), out, writer)


def _several(name, input, s, dim, norm, forward, out):
    _tensor(name, input)
    dims, lengths = _core.many(name, input, s, dim)
    x = _core.promoted(input, False)
    x = _core.resized(x, dict(zip(dims, lengths, strict=True)))
    _core.check_norm(norm)
    _core.check_out(name, out)
    return _core.finish(_core.transform(x, dims, norm, forward, True), out, "_fft_c2c")


def _real(name, input, word="real"):
    _tensor(name, input)
    if input.dtype.is_complex:
        raise RuntimeError(f"{name} expects a {word} input tensor, but got {_type_name(input.dtype)}")


def _one_half(name, input, n, dim, norm, forward, out):
    _real(name, input)
    _core.check_out(name, out)
    x = _core.promoted(input, False)
    dim = _core.check_dim(x, dim)
    if n is not None:
        x = _core.resized(x, {dim: _core.check_length(n)})
    _core.check_length(x.shape[dim])
    writer = "_fft_r2c" if forward else "conj_physical"
    return _core.finish(_core.half_spectrum(x, (dim,), norm, forward), out, writer)


def _several_half(name, input, s, dim, norm, forward, out):
    _tensor(name, input)
    if forward:
        _real("rfftn", input, "real-valued")
    dims, lengths = _core.many(name, input, s, dim)
    x = _core.promoted(input, False)
    if not dims:
        raise RuntimeError(f"{name.replace('2', 'n')} must transform at least one axis")
    x = _core.resized(x, dict(zip(dims, lengths, strict=True)))
    _core.check_norm(norm)
    if input.dtype.is_complex:
        raise RuntimeError(f"Only supports floating-point dtypes, but found: {_type_name(input.dtype)}")
    _core.check_out(name, out)
    writer = "_fft_r2c" if forward else "_fft_c2c"
    return _core.finish(_core.half_spectrum(x, dims, norm, forward), out, writer)


def _one_from_half(name, input, n, dim, norm, forward, out):
    _tensor(name, input)
    _core.check_out(name, out, real=True)
    x = _core.promoted(input, True)
    dim = _core.check_dim(x, dim)
    length = _core.check_length(2 * (x.shape[dim] - 1) if n is None else n)
    x = _core.resized(x, {dim: length // 2 + 1})
    return _core.finish(_core.from_half(x, (dim,), norm, forward, length), out, "_fft_c2r")


def _several_from_half(name, input, s, dim, norm, forward, out):
    _tensor(name, input)
    dims, lengths = _core.many(name, input, s, dim)
    x = _core.promoted(input, True)
    if not dims:
        raise RuntimeError(f"{name.replace('2', 'n')} must transform at least one axis")
    given = s if isinstance(s, (tuple, list)) or s is None else (s,)
    if given is None or given[-1] == -1:
        lengths[-1] = 2 * (x.shape[dims[-1]] - 1)
    length = _core.check_length(lengths[-1])
    lengths[-1] = length // 2 + 1
    x = _core.resized(x, dict(zip(dims, lengths, strict=True)))
    _core.check_norm(norm)
    _core.check_out(name, out, real=True)
    return _core.finish(_core.from_half(x, dims, norm, forward, length), out, "_fft_c2r")


# ---- one dimension


@_fft
def fft(input, n=None, dim=-1, norm=None, *, out=None):
    """The discrete Fourier transform along `dim`, cut or padded with zeros to `n` points.

    >>> rushlight.fft.fft(rushlight.tensor([1.0, 0.0, 0.0]))
    tensor([1.+0.j, 1.+0.j, 1.-0.j])
    """
    return _one("fft", input, n, dim, norm, True, out)


@_fft
def ifft(input, n=None, dim=-1, norm=None, *, out=None):
    """The inverse of fft().

    >>> rushlight.fft.ifft(rushlight.ones(3, dtype=rushlight.complex64)).real
    tensor([1., 0., 0.])
    """
    return _one("ifft", input, n, dim, norm, False, out)


@_fft
def rfft(input, n=None, dim=-1, norm=None, *, out=None):
    """The first n // 2 + 1 elements of the transform of a real signal, which determine the others.

    >>> rushlight.fft.rfft(rushlight.ones(4)).shape
    torch.Size([3])
    """
    return _one_half("rfft", input, n, dim, norm, True, out)


@_fft
def irfft(input, n=None, dim=-1, norm=None, *, out=None):
    """The inverse of rfft(): the real signal of n points, by default an even number.

    >>> rushlight.fft.irfft(rushlight.ones(3, dtype=rushlight.complex64))
    tensor([1., 0., 0., 0.])
    """
    return _one_from_half("irfft", input, n, dim, norm, False, out)


@_fft
def hfft(input, n=None, dim=-1, norm=None, *, out=None):
    """The (real) transform of a signal given by its first half, the other half being its conjugate.

    >>> rushlight.fft.hfft(rushlight.ones(3, dtype=rushlight.complex64)).shape
    torch.Size([4])
    """
    return _one_from_half("hfft", input, n, dim, norm, True, out)


@_fft
def ihfft(input, n=None, dim=-1, norm=None, *, out=None):
    """The inverse of hfft(): the first half of the signal.

    >>> rushlight.fft.ihfft(rushlight.ones(4)).shape
    torch.Size([3])
    """
    return _one_half("ihfft", input, n, dim, norm, False, out)


# ---- several dimensions


@_fft
def fftn(input, s=None, dim=None, norm=None, *, out=None):
    """The transform over several dimensions, all by default, cut or padded to the sizes `s`.

    >>> rushlight.fft.fftn(rushlight.ones(2, 2)).real
    tensor([[4., 0.],
            [0., 0.]])
    """
    return _several("fftn", input, s, dim, norm, True, out)


@_fft
def ifftn(input, s=None, dim=None, norm=None, *, out=None):
    """The inverse of fftn().

    >>> rushlight.fft.ifftn(rushlight.ones(2, 2)).real
    tensor([[1., 0.],
            [0., 0.]])
    """
    return _several("ifftn", input, s, dim, norm, False, out)


@_fft
def rfftn(input, s=None, dim=None, norm=None, *, out=None):
    """fftn() of a real signal, the first half along the last of the dimensions.

    >>> rushlight.fft.rfftn(rushlight.ones(3, 4)).shape
    torch.Size([3, 3])
    """
    return _several_half("rfftn", input, s, dim, norm, True, out)


@_fft
def irfftn(input, s=None, dim=None, norm=None, *, out=None):
    """The inverse of rfftn().

    >>> rushlight.fft.irfftn(rushlight.ones(3, 3)).shape
    torch.Size([3, 4])
    """
    return _several_from_half("irfftn", input, s, dim, norm, False, out)


@_fft
def hfftn(input, s=None, dim=None, norm=None, *, out=None):
    """hfft() over several dimensions.

    >>> rushlight.fft.hfftn(rushlight.ones(3, 3)).shape
    torch.Size([3, 4])
    """
    return _several_from_half("hfftn", input, s, dim, norm, True, out)


@_fft
def ihfftn(input, s=None, dim=None, norm=None, *, out=None):
    """The inverse of hfftn().

    >>> rushlight.fft.ihfftn(rushlight.ones(3, 4)).shape
    torch.Size([3, 3])
    """
    return _several_half("ihfftn", input, s, dim, norm, False, out)


@_fft
def fft2(input, s=None, dim=(-2, -1), norm=None, *, out=None):
    """fftn() over two dimensions.

    >>> rushlight.fft.fft2(rushlight.ones(5, 2, 2)).shape
    torch.Size([5, 2, 2])
    """
    return _several("fft2", input, s, dim, norm, True, out)


@_fft
def ifft2(input, s=None, dim=(-2, -1), norm=None, *, out=None):
    """The inverse of fft2().

    >>> rushlight.fft.ifft2(rushlight.ones(5, 2, 2)).shape
    torch.Size([5, 2, 2])
    """
    return _several("ifft2", input, s, dim, norm, False, out)


@_fft
def rfft2(input, s=None, dim=(-2, -1), norm=None, *, out=None):
    """rfftn() over two dimensions.

    >>> rushlight.fft.rfft2(rushlight.ones(5, 2, 4)).shape
    torch.Size([5, 2, 3])
    """
    return _several_half("rfft2", input, s, dim, norm, True, out)


@_fft
def irfft2(input, s=None, dim=(-2, -1), norm=None, *, out=None):
    """The inverse of rfft2().

    >>> rushlight.fft.irfft2(rushlight.ones(5, 2, 3)).shape
    torch.Size([5, 2, 4])
    """
    return _several_from_half("irfft2", input, s, dim, norm, False, out)


@_fft
def hfft2(input, s=None, dim=(-2, -1), norm=None, *, out=None):
    """hfftn() over two dimensions.

    >>> rushlight.fft.hfft2(rushlight.ones(5, 2, 3)).shape
    torch.Size([5, 2, 4])
    """
    return _several_from_half("hfft2", input, s, dim, norm, True, out)


@_fft
def ihfft2(input, s=None, dim=(-2, -1), norm=None, *, out=None):
    """The inverse of hfft2().

    >>> rushlight.fft.ihfft2(rushlight.ones(5, 2, 4)).shape
    torch.Size([5, 2, 3])
    """
    return _several_half("ihfft2", input, s, dim, norm, False, out)


# ---- frequencies


def _frequencies(name, n, count, first_negative, d, out, options):
    """0, 1 ... divided by n * d, from place `first_negative` on counted from -n."""
    dtype = options.get("dtype") or _C.get_default_dtype()
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"{name} requires a floating point or complex dtype")
    if dtype.is_complex:
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{_type_name(dtype)}'")
    if count < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {count}: [{count}]")
    options = {key: value for key, value in options.items() if value is not None}
    requires_grad = options.pop("requires_grad", False)
    numbers = _FUNCTIONS["empty"](count, **(options | {"dtype": dtype}))
    places = _FUNCTIONS["arange"](count, device=numbers.device)
    places = _FUNCTIONS["where"](places < first_negative, places, places - n)
    factor = 1.0 / (n * d) if n * d else _math.inf
    result = (places.to(dtype) * factor).requires_grad_(requires_grad)
    return _core.finish(result, out, f"fft_{name}")


@_fft
def fftfreq(n, d=1.0, *, out=None, dtype=None, layout=None, device=None, requires_grad=False):
    """The frequencies of fft() of n points that lie d apart: 0, 1, ..., -1 divided by n * d.

    >>> rushlight.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    options = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
    return _frequencies("fftfreq", n, n, (n + 1) // 2, d, out, options)


@_fft
def rfftfreq(n, d=1.0, *, out=None, dtype=None, layout=None, device=None, requires_grad=False):
    """The frequencies of rfft() of n points that lie d apart.

    >>> rushlight.fft.rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000])
    """
    options = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
    count = (n // 2 if n > 0 else -(-n // 2)) + 1  # halved towards zero
    return _frequencies("rfftfreq", n, count, count, d, out, options)


def _shift(input, dim, half):
    dim = int(dim) if isinstance(dim, _Tensor) else _whole(dim)
    dims = range(input.ndim) if dim is None else (dim,) if isinstance(dim, int) else dim
    dims = tuple(_core.check_dim(input, d) for d in dims)
    return _FUNCTIONS["roll"](input, tuple(half(input.shape[d]) for d in dims), dims)


@_fft
def fftshift(input, dim=None):
    """Moves the frequency 0 to the middle.

    >>> rushlight.fft.fftshift(rushlight.tensor([0, 1, -2, -1]))
    tensor([-2, -1,  0,  1])
    """
    return _shift(input, dim, lambda n: n // 2)


@_fft
def ifftshift(input, dim=None):
    """The inverse of fftshift().

    >>> rushlight.fft.ifftshift(rushlight.tensor([-2, -1, 0, 1]))
    tensor([ 0,  1, -2, -1])
    """
    return _shift(input, dim, lambda n: (n + 1) // 2)


_make_builtin(globals()[_each] for _each in __all__)
