"""Padding, resizing, and moving pixels between channels and space."""

from __future__ import annotations

from rushlight._warn import warn
from rushlight.nn.functional._checks import functional
from rushlight.ops import resample
from rushlight.ops.resample import channel_shuffle, native_channel_shuffle, pixel_shuffle, pixel_unshuffle

__all__ = [
    "channel_shuffle",
    "interpolate",
    "native_channel_shuffle",
    "pad",
    "pixel_shuffle",
    "pixel_unshuffle",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]

pad = functional(resample.pad)
interpolate = functional(resample.interpolate)


@functional
def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """interpolate by its former name.

    >>> import warnings, rushlight as torch
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     torch.nn.functional.upsample(torch.ones(1, 1, 2), scale_factor=2)
    tensor([[[1., 1., 1., 1.]]])
    """
    warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.")
    return resample.interpolate(input, size, scale_factor, mode, align_corners)


@functional
def upsample_nearest(input, size=None, scale_factor=None):
    """interpolate in mode "nearest"."""
    warn("`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.")
    return resample.interpolate(input, size, scale_factor, mode="nearest")


@functional
def upsample_bilinear(input, size=None, scale_factor=None):
    """interpolate in mode "bilinear" with aligned corners."""
    warn("`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.")
    return resample.interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)
