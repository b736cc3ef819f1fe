"""Derivatives of the fused losses; the public functions are in rushlight/nn/functional/loss.py."""

from __future__ import annotations

import math

from rushlight import _C
from rushlight.ops._rules import derivative


def _mse_gradient(g, x, target, reduction):
    """2 (x - target), over the number of elements for a mean."""
    difference = x - target
    if reduction != "mean":
        return g * (2 * difference)
    return difference * (g * (2 / difference.numel() if difference.numel() else math.nan))


derivative(
    "mse_loss",
    x=_mse_gradient,
    target=lambda g, x, target, reduction: -_mse_gradient(g, x, target, reduction),
)

mse_loss = _C.ops.mse_loss
