"""Derivatives of the fused losses; the public functions are in rushlight/nn/functional/loss.py."""

from __future__ import annotations

import math

from rushlight import _C
from rushlight.ops._again import one_node, while_hooked
from rushlight.ops._rules import derivative, unmoved
from rushlight.ops._tangents import only_of

ops = _C.ops


def _mse_gradient(g, x, target, reduction):
    """2 (x - target), over the number of elements for a mean."""
    difference = x - target
    if reduction != "mean":
        return ops.mul_in_order(g, 2 * difference)
    factor = 2 / difference.numel() if difference.numel() else math.nan
    if difference.dtype in (_C.float16, _C.bfloat16):  # of many elements the factor is too small for a half
        return ops.mul_in_order(difference.float(), g.float() * factor).to(difference.dtype)
    g = g * factor
    return difference * g if difference.is_contiguous() else ops.mul_in_order(difference, g)


def _smooth_l1_gradient(g, x, target, reduction, beta):
    difference = x - target
    if reduction == "mean":
        g = g * (1 / difference.numel() if difference.numel() else math.nan)
    return ops.smooth_absolute_backward(g, difference, beta)


def _one_node(name, rule, g, x, target, *given):
    """The rule of a loss as torch has it: what is recorded of its gradient is one node, of that name."""
    since, made = _C.next_sequence(), rule(g, x, target, *given)
    kept = {"grad_output": _C.keep(g), "self": _C.keep(x), "target": _C.keep(target)}
    return _C.name_node(made, name, since, kept, (g, x, target))


def _mse_rule(g, x, target, reduction):
    if not _C.is_grad_enabled():
        return _mse_gradient(g, x, target, reduction)
    return _one_node("MseLossBackwardBackward0", _mse_gradient, g, x, target, reduction)


def _smooth_l1_rule(g, x, target, reduction, beta):
    if not _C.is_grad_enabled():
        return _smooth_l1_gradient(g, x, target, reduction, beta)
    return _one_node("SmoothL1LossBackwardBackward0", _smooth_l1_gradient, g, x, target, reduction, beta)


# For the target the two change places.
derivative("mse_loss", x=_mse_rule, target=lambda g, x, target, reduction: _mse_rule(g, target, x, reduction))
derivative(
    "smooth_l1_loss",
    x=_smooth_l1_rule,
    target=lambda g, x, target, reduction, beta: _smooth_l1_rule(g, target, x, reduction, beta),
)

derivative(
    "nll_loss",
    x=lambda g, x, target, weight, reduction, ignore_index: unmoved(
        ops.nll_loss_backward(g, target, weight, x.shape, reduction, ignore_index), x, "NllLossBackward0"
    ),
    node="NllLossBackward0",
    tangent=only_of("x"),
)
derivative(
    "nll_loss2d",
    x=lambda g, x, target, weight, reduction, ignore_index: unmoved(
        ops.nll_loss2d_backward(g, target, weight, x.shape, reduction, ignore_index), x, "NllLoss2DBackward0"
    ),
    node="NllLoss2DBackward0",
    tangent=only_of("x"),
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


def total_weight(target, weight, reduction, ignore_index, dtype):
    """The weights of the targets that count, which torch divides by; zero where nothing is summed."""
    if reduction == 0 and target.dim():
        return target.new_zeros((), dtype=dtype)
    counted = target[target != ignore_index]
    return counted.new_tensor(counted.numel(), dtype=dtype) if weight is None else weight[counted].sum()


def _counting(loss, node):
    """nll_loss where hooks look on: torch's node keeps what it divides by, and divides by what it is given
    back."""

    def computed(x, target, weight, reduction, ignore_index, total):
        return _C.unhooked(loss, x, target, weight, reduction, ignore_index)

    def divided(x, target, weight, reduction, ignore_index, total):
        if reduction != 1:
            return _C.unhooked(loss, x, target, weight, reduction, ignore_index)
        return _C.unhooked(loss, x, target, weight, 2, ignore_index) / total

    computed.__wrapped__ = divided

    def record(x, target, weight, reduction, ignore_index):
        total = total_weight(target, weight, reduction, ignore_index, x.dtype)
        kept = {"self": x, "target": target, "weight": weight, "total_weight": total}
        numbers = {"reduction": reduction, "ignore_index": ignore_index}
        args = x, target, weight, reduction, ignore_index, total
        return one_node(computed, args, node, kept | numbers, (x,))

    return record


def _as_images(x, target, weight, reduction, ignore_index):
    """Scores of other dimensions than two are those of an image of one row to torch."""
    if x.dim() == 4:
        return _counted_2d(x, target, weight, reduction, ignore_index)
    rows, classes, *size = x.shape
    image = x.contiguous().view(rows, classes, 1, math.prod(size))
    labels = target.contiguous().view(rows, 1, math.prod(size))
    loss = _counted_2d(image, labels, weight, reduction, ignore_index)
    return loss if reduction else loss.view(rows, *size)


while_hooked("nll_loss")(_counting(ops.nll_loss, "NllLossBackward0"))
_counted_2d = _counting(ops.nll_loss2d, "NllLoss2DBackward0")
while_hooked("nll_loss2d")(_as_images)

mse_loss = _C.ops.mse_loss
smooth_l1_loss = _C.ops.smooth_l1_loss
