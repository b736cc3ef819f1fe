"""Fourier transforms."""

from __future__ import annotations

from rushlight._seen._table import ops, seen


def _real(spectrum):
    pairs = ops.view_as_real(spectrum)
    return ops.select(pairs, pairs.dim() - 1, 0)


def _of_real(g, x_shape, dims, scale, forward, onesided):
    if not forward:
        return NotImplemented
    if onesided:
        whole = g.new_zeros(x_shape)
        ops.slice(whole, dims[-1], 0, g.shape[dims[-1]], 1).copy_(g)
        g = whole
    return _real(ops.fft_c2c(g, dims, scale, False))


def _to_real(g, dims, scale, forward, length):
    """What half a spectrum stands for twice counts twice."""
    if forward:
        return NotImplemented
    spectrum = ops.fft_r2c(g, dims, scale, True, True)
    twice = length - spectrum.shape[dims[-1]]
    if twice > 0:
        ops.slice(spectrum, dims[-1], 1, 1 + twice, 1).mul_(2)
    return spectrum


seen("fft_r2c", x=_of_real, complex=True)
seen("fft_c2r", x=_to_real, complex=True)
