"""Convolutions, and patches of images as columns."""

from rushlight.nn.functional._checks import functional
from rushlight.ops import conv as _ops
from rushlight.ops.conv import (
    conv1d,
    conv2d,
    conv3d,
    conv_tbc,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
)

__all__ = [
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "fold",
    "unfold",
]

unfold = functional(_ops.unfold)
fold = functional(_ops.fold)
