"""Derivatives of the fused losses; the public functions are in rushlight/nn/functional/loss.py."""

from __future__ import annotations

import math

from rushlight import _C
from rushlight.ops._rules import derivative, unmoved


def _mse_gradient(g, x, target, reduction):
    """2 (x - target), over the number of elements for a mean."""
    difference = x - target
    if reduction != "mean":
        return g * (2 * difference)
    factor = 2 / difference.numel() if difference.numel() else math.nan
    if difference.dtype in (_C.float16, _C.bfloat16):  # of many elements the factor is too small for a half
        return (difference.float() * (g.float() * factor)).to(difference.dtype)
    return difference * (g * factor)


derivative(
    "mse_loss",
    x=_mse_gradient,
    target=lambda g, x, target, reduction: -_mse_gradient(g, x, target, reduction),
)

ops = _C.ops
derivative(
    "nll_loss",
    x=lambda g, x, target, weight, reduction, ignore_index: unmoved(
        ops.nll_loss_backward(g, target, weight, x.shape, reduction, ignore_index), x, "NllLossBackward0"
    ),
    node="NllLossBackward0",
)
derivative(
    "nll_loss2d",
    x=lambda g, x, target, weight, reduction, ignore_index: unmoved(
        ops.nll_loss2d_backward(g, target, weight, x.shape, reduction, ignore_index), x, "NllLoss2DBackward0"
    ),
    node="NllLoss2DBackward0",
)
# The loss is linear in the scores, so the derivative of its gradient is the loss again.
derivative(
    "nll_loss_backward",
    g=lambda g_out, target, weight, reduction, ignore_index: ops.nll_loss(
        g_out, target, weight, reduction, ignore_index
    ),
)
derivative(
    "nll_loss2d_backward",
    g=lambda g_out, target, weight, reduction, ignore_index: ops.nll_loss2d(
        g_out, target, weight, reduction, ignore_index
    ),
)

mse_loss = _C.ops.mse_loss
