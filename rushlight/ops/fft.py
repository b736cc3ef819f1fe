"""Fourier transforms: the derivatives of the three primitives, and what rushlight.fft is composed of.

The transform is a symmetric matrix F times a scale, so its adjoint is the transform in the other direction
with the same scale. Half a spectrum stands for a whole one: the elements that stand for two count twice.
"""

from __future__ import annotations

import math

from rushlight import _C
from rushlight.ops._public import FOUND_DTYPE, FUNCTIONS, Tensor, check_cast, type_name, write_out
from rushlight.ops._rules import derivative

ops = _C.ops

derivative("fft_c2c", x=lambda g, dims, scale, forward: ops.fft_c2c(g, dims, scale, not forward))


def _weights(spectrum, dim, length, pair):
    """Ones where an element of half a spectrum stands for itself only, `pair` where it stands for two."""
    half = length // 2 + 1
    alone = 2 if length % 2 == 0 and half > 1 else 1
    real = spectrum.real.dtype
    weights = FUNCTIONS["full"]((half,), pair, dtype=real, device=spectrum.device)
    weights[0] = 1
    if alone == 2:
        weights[half - 1] = 1
    return weights.reshape((half,) + (1,) * (spectrum.ndim - 1 - dim % spectrum.ndim))


def _r2c(g, x_shape, dims, scale, forward, onesided):
    if not onesided:
        return ops.real(ops.fft_c2c(g, dims, scale, not forward))
    length = x_shape[dims[-1]]
    return ops.fft_c2r(g * _weights(g, dims[-1], length, 0.5), dims, scale, not forward, length)


def _c2r(g, dims, scale, forward, length):
    spectrum = ops.fft_r2c(g, dims, scale, not forward, True)
    return spectrum * _weights(spectrum, dims[-1], length, 2.0)


derivative("fft_r2c", x=_r2c, shows="x")
derivative("fft_c2r", x=_c2r)

_NORMS = {None: 0, "backward": 0, "ortho": 1, "forward": 2}


def check_norm(norm):
    """torch's error for a norm that does not exist."""
    if norm not in _NORMS:
        raise RuntimeError(f'Invalid normalization mode: "{norm}"')


def scale_of(norm, size, forward):
    """What a transform of `size` points is multiplied by."""
    check_norm(norm)
    mode = _NORMS[norm]
    if mode == 1:
        return 1.0 / math.sqrt(size)
    return 1.0 / size if (mode == 2) == forward else 1.0


_TRANSFORMED = (_C.float32, _C.float64, _C.complex32, _C.complex64, _C.complex128)


def promoted(x, complex_too):
    """x in a dtype that can be transformed; integers become floats, and floats complex if asked."""
    dtype = x.dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        dtype = _C.get_default_dtype()
    if dtype not in _TRANSFORMED:
        raise RuntimeError(f"Unsupported dtype {type_name(dtype)}")
    if complex_too and not dtype.is_complex:
        dtype = _C.complex128 if dtype == _C.float64 else _C.complex64
    return x if dtype == x.dtype else x.to(dtype)


def check_dim(x, dim):
    """The dimension counted from the front; torch's errors otherwise."""
    if not x.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    if not -x.ndim <= dim < x.ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-x.ndim}, {x.ndim - 1}], but got {dim})"
        )
    return dim % x.ndim


def resized(x, sizes):
    """x cut or padded with zeros at the end to `sizes` ({dim: length})."""
    pad = [0] * (2 * x.ndim)  # the last dimension first, before and behind it
    for dim, length in sizes.items():
        missing = length - x.shape[dim]
        if missing < 0:
            x = x.narrow(dim, 0, length)
        elif missing > 0:
            pad[2 * (x.ndim - 1 - dim) + 1] = missing
    return ops.constant_pad_nd(x, tuple(pad), 0) if any(pad) else x


def check_length(n):
    """torch's error for a length that is not positive."""
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({int(n)}) specified")
    return n


def check_out(name, out, real=False):
    """torch's error for an `out` that is not complex, or not real."""
    if isinstance(out, Tensor) and not (out.dtype.is_floating_point if real else out.dtype.is_complex):
        kind = "floating point" if real else "complex"
        name = "fftn" if name in ("ifftn", "ifft2") else name.replace("2", "n")
        raise RuntimeError(f"{name} expects a {kind} output tensor, but got {type_name(out.dtype)}")


def finish(result, out, writer):
    """`result`, or `out` filled with it by what torch calls `writer`."""
    if out is None:
        return result
    if writer == "conj_physical":
        check_cast(out, result.dtype, FOUND_DTYPE)
        return FUNCTIONS["conj_physical"](ops.conj(result), out=out)
    return write_out(out, result.contiguous(), writer=writer)


def transform(x, dims, norm, forward, several=False):
    """The complex transform over dims (with their final sizes) of a real or complex x."""
    scale = scale_of(norm, math.prod(x.shape[d] for d in dims), forward)
    if x.dtype.is_complex or not dims:
        return ops.fft_c2c(promoted(x, True), dims, scale, forward)
    if not several and not forward:  # as torch has it, a view that reads as the conjugate
        return FUNCTIONS["conj"](ops.fft_r2c(x, dims, scale, True, False))
    if several and x.requires_grad and _C.is_grad_enabled():  # as torch has it: x itself is not kept
        return ops.fft_c2c(promoted(x, True), dims, scale, forward)
    return ops.fft_r2c(x, dims, scale, forward, False)


def half_spectrum(x, dims, norm, forward):
    """Of a real x, the first half of the spectrum along the last of dims."""
    scale = scale_of(norm, math.prod(x.shape[d] for d in dims), forward)
    if forward:
        return ops.fft_r2c(x, dims, scale, True, True)
    if len(dims) == 1:
        return FUNCTIONS["conj"](ops.fft_r2c(x, dims, scale, True, True))
    # Two steps leave the result in torch's order of memory.
    return ops.fft_c2c(ops.fft_r2c(x, dims[-1:], scale, forward, True), dims[:-1], 1.0, forward)


def from_half(x, dims, norm, forward, length):
    """The real signal of `length` that half a spectrum belongs to."""
    size = math.prod(x.shape[d] for d in dims[:-1]) * length
    return ops.fft_c2r(x, dims, scale_of(norm, size, forward), forward, int(length))


def many(name, x, s, dim):
    """The dimensions of a transform of several and their lengths, -1 for "as it is"."""
    if s is not None and not isinstance(s, (tuple, list)):
        s = (s,)
    if dim is not None and not isinstance(dim, (tuple, list)):
        dim = (dim,)
    if dim is not None:
        dims = tuple(check_dim(x, d) for d in dim)
        if len(set(dims)) != len(dims):
            raise RuntimeError("FFT dims must be unique")
        if s is not None and len(s) != len(dims):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
    elif s is not None:
        if len(s) > x.ndim:
            raise RuntimeError(
                f"Got shape with {len(s)} values but input tensor only has {x.ndim} dimensions."
            )
        dims = tuple(range(x.ndim - len(s), x.ndim))
    else:
        dims = tuple(range(x.ndim))
    lengths = [x.shape[d] if s is None or s[i] == -1 else s[i] for i, d in enumerate(dims)]
    for length in lengths:
        check_length(length)
    return dims, lengths
