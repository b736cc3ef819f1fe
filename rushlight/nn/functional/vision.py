"""Padding, resizing, and moving pixels between channels and space."""

from __future__ import annotations

from rushlight._signatures import check_call
from rushlight._warn import warn
from rushlight.nn import functional as F
from rushlight.nn.functional._checks import functional
from rushlight.ops import resample
from rushlight.ops.grid import affine_grid_generator, grid_sampler
from rushlight.ops.resample import channel_shuffle, native_channel_shuffle, pixel_shuffle, pixel_unshuffle

__all__ = [
    "affine_grid",
    "grid_sample",
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
    return F.interpolate(input, size, scale_factor, mode, align_corners)


@functional
def upsample_nearest(input, size=None, scale_factor=None):
    """interpolate in mode "nearest".

    >>> rushlight.nn.functional.upsample_nearest(rushlight.ones(1, 1, 2, 2), scale_factor=2).shape
    torch.Size([1, 1, 4, 4])
    """
    warn("`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.")
    return F.interpolate(input, size, scale_factor, mode="nearest")


@functional
def upsample_bilinear(input, size=None, scale_factor=None):
    """interpolate in mode "bilinear" with aligned corners.

    >>> rushlight.nn.functional.upsample_bilinear(rushlight.ones(1, 1, 2, 2), scale_factor=2).shape
    torch.Size([1, 1, 4, 4])
    """
    warn("`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.")
    return F.interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


_CHANGED = (
    "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please "
    "specify "
    "align_corners=True if the old behavior is desired. See the documentation of grid_sample for details."
)
_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
_PADDING = {"zeros": 0, "border": 1, "reflection": 2}


@functional
def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """The image at the points of the grid, which hold x, y (and z) in [-1, 1].

    mode is "bilinear", "nearest" or "bicubic"; padding_mode says what lies outside: "zeros", "border" or
    "reflection". With align_corners -1 and 1 are the centres of the outer pixels, else their outer edges.

    >>> import rushlight as torch
    >>> image, middle = torch.tensor([[[[0.0, 1.0], [2.0, 3.0]]]]), torch.zeros(1, 1, 1, 2)
    >>> torch.nn.functional.grid_sample(image, middle, align_corners=False)
    tensor([[[[1.5000]]]])
    """
    if mode not in tuple(_MODES):
        raise ValueError(
            "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: "
            f"'{mode}'"
        )
    if padding_mode not in tuple(_PADDING):
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or "
            "'reflection', but got: "
            f"'{padding_mode}'"
        )
    if align_corners is None:
        warn(_CHANGED)
        align_corners = False
    if align_corners.__class__ is not bool:
        signature = "T input,T grid,i interpolation_mode,i padding_mode,b align_corners"
        check_call("grid_sampler", signature, input, grid, 0, 0, align_corners)
    return grid_sampler(input, grid, _MODES[mode], _PADDING[padding_mode], align_corners)


@functional
def affine_grid(theta, size, align_corners=None):
    """The grid that grid_sample needs to move an image of `size` by the affine maps theta (N, 2, 3).

    >>> import rushlight as torch
    >>> torch.nn.functional.affine_grid(torch.eye(2, 3).unsqueeze(0), (1, 1, 4, 5), align_corners=False).shape
    torch.Size([1, 4, 5, 2])
    """
    if align_corners is None:
        warn(_CHANGED)
        align_corners = False
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    if len(size) not in (4, 5):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. "
            "Got size "
            f"{size}."
        )
    dims = len(size) - 2
    if theta.dim() != 3 or tuple(theta.shape[-2:]) != (dims, dims + 1):
        raise ValueError(
            f"Expected a batch of {dims}D affine matrices of shape Nx{dims}x{dims + 1} for size {size}. Got "
            f"{theta.shape}."
        )
    if align_corners and min(size[-dims:]) == 1:
        warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when "
            "align_corners=True. This is not an intended use case of affine_grid. See the documentation of "
            "affine_grid for details."
        )
    elif min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    check_call("affine_grid_generator", "T theta,I size,b align_corners", theta, size, align_corners)
    return affine_grid_generator(theta, size, align_corners)
