"""The functions that torch has as one operation: activations, losses, limits. See _whole.py."""

from __future__ import annotations

import math

from rushlight import broadcast_shapes
from rushlight._aten_layers import REDUCTIONS, reduction_number, trimmed
from rushlight._seen._table import Tensor, number, ops, show
from rushlight._seen._whole import whole


def _step(name):
    """A gradient of the first argument that is one step."""
    return lambda g, needs, x, *args: (show(f"{name}_backward.default", g, x, *args),)


# ---- activations


whole("hardtanh", "hardtanh.default",
      lambda input, min_val=-1.0, max_val=1.0, inplace=False: None if inplace else (input, min_val, max_val),
      _step("hardtanh"))  # fmt: skip
whole("relu6", "hardtanh.default", lambda input, inplace=False: None if inplace else (input, 0, 6),
      _step("hardtanh"), run=lambda function, args: function(args[0]))  # fmt: skip
whole("hardshrink", "hardshrink.default", lambda input, lambd=0.5: (input, lambd), _step("hardshrink"), 0.5)
whole("softshrink", "softshrink.default", lambda input, lambd=0.5: (input, lambd), _step("softshrink"), 0.5)
whole("glu", "glu.default", lambda input, dim=-1: (input, dim), _step("glu"), -1)
whole("logsigmoid", "log_sigmoid_forward.default", lambda input: (input,),
      lambda g, needs, x, buffer: (show("log_sigmoid_backward.default", g, x, buffer),))  # fmt: skip

# ---- losses


def _reduced(input, target, *rest, size_average=None, reduce=None, reduction="mean"):
    """The loss of two tensors of one size, with the number of its reduction."""
    if size_average is not None or reduce is not None or reduction not in REDUCTIONS:
        return None
    if not isinstance(target, Tensor) or target.shape != input.shape:
        return None
    return input, target, *rest, reduction_number(reduction)


def _by_name(at):
    """Calls the function with its reduction by name; those after it are named, too."""

    def run(function, args, **names):
        return function(*args[:at], reduction=REDUCTIONS[args[at]], **names)

    return run


def _both(name):
    def gradients(g, needs, x, target, *rest):
        of_x = show(f"{name}_backward.default", g, x, target, *rest) if needs[0] else None
        of_target = show(f"{name}_backward.default", g, target, x, *rest) if needs[1] else None
        return of_x, of_target

    return gradients


def _smooth_arguments(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    found = _reduced(input, target, size_average=size_average, reduce=reduce, reduction=reduction)
    return None if found is None or not beta > 0 else (*found, beta)


def _huber_arguments(input, target, reduction="mean", delta=1.0, weight=None):
    found = None if weight is not None else _reduced(input, target, reduction=reduction)
    return None if found is None else (*found, delta)


whole("soft_margin_loss", "soft_margin_loss.default", _reduced, _step("soft_margin_loss"), 1, run=_by_name(2))
whole("smooth_l1_loss", "smooth_l1_loss.default", _smooth_arguments, _both("smooth_l1_loss"), 1, 1.0,
      inputs=2,
      run=lambda function, args: _by_name(2)(function, args, beta=args[3]))  # fmt: skip
whole("huber_loss", "huber_loss.default", _huber_arguments, _both("huber_loss"), 1, 1.0,
      inputs=2,
      run=lambda function, args: _by_name(2)(function, args, delta=args[3]))  # fmt: skip


def _margin_arguments(
    input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"
):
    if size_average is not None or reduce is not None or reduction not in REDUCTIONS:
        return None
    return input, target, p, margin, weight, reduction_number(reduction)


def _margin_gradients(g, needs, x, target, p, margin, weight, reduction):
    rest = () if reduction == 1 else (reduction,)
    return (show("multi_margin_loss_backward.default", g, x, target, p, margin, weight, *rest),)


whole("multi_margin_loss", "multi_margin_loss.default", _margin_arguments, _margin_gradients, None, 1,
      run=lambda function, args: _by_name(5)(function, args))  # fmt: skip


def _multilabel_arguments(input, target, size_average=None, reduce=None, reduction="mean"):
    return _margin_arguments(input, target, 1, 1.0, None, size_average, reduce, reduction) and (
        input, target, reduction_number(reduction))  # fmt: skip


whole("multilabel_margin_loss", "multilabel_margin_loss_forward.default", _multilabel_arguments,
      _step("multilabel_margin_loss"), run=_by_name(2))  # fmt: skip


def _averaged(gradient, reduction):
    return gradient.div_(gradient.numel()) if reduction == 1 else gradient


def _bce_arguments(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    found = _reduced(input, target, size_average=size_average, reduce=reduce, reduction=reduction)
    if found is None:
        return None
    if weight is not None:
        weight = weight.expand(broadcast_shapes(target.shape, weight.shape))
    return input, target, weight, found[2]


def _bce_gradients(g, needs, x, target, weight, reduction):
    of_x = of_target = None
    if needs[0]:
        rest = () if reduction == 1 else (reduction,)
        of_x = show("binary_cross_entropy_backward.default", g, x, target, weight, *rest)
    if needs[1]:
        of_target = show("logit.default", x).neg_() * g
        if weight is not None:
            of_target = of_target * weight
        of_target = _averaged(of_target, reduction)
    return of_x, of_target


def _logits_arguments(input, target, weight=None, size_average=None, reduce=None, reduction="mean",
                      pos_weight=None):  # fmt: skip
    found = _reduced(input, target, size_average=size_average, reduce=reduce, reduction=reduction)
    return None if found is None or pos_weight is not None else (input, target, weight, None, found[2])


def _logits_gradients(g, needs, x, target, weight, pos_weight, reduction):
    def finished(gradient):
        gradient = gradient * g
        return _averaged(gradient if weight is None else gradient * weight, reduction)

    of_x = finished(x.sigmoid() - target) if needs[0] else None
    return of_x, finished(-x) if needs[1] else None


whole("binary_cross_entropy", "binary_cross_entropy.default", _bce_arguments, _bce_gradients, None, 1,
      run=_by_name(3), inputs=2)  # fmt: skip
whole("binary_cross_entropy_with_logits", "binary_cross_entropy_with_logits.default", _logits_arguments,
      _logits_gradients, None, None, 1,
      inputs=2,
      run=lambda function, args: function(*args[:3], reduction=REDUCTIONS[args[4]]))  # fmt: skip

# ---- limits that are tensors


def _bound(name, beyond, within):
    def arguments(input, bound=None, **kwargs):
        bound = kwargs.get("min" if name == "clamp_min" else "max", bound)
        return (input, bound) if isinstance(bound, Tensor) else None

    def gradients(g, needs, x, bound):
        of_bound = of_x = None
        if needs[1]:
            zero = number(0.0, g)
            of_bound = ops.where(getattr(x, beyond)(bound), g, zero)
        if needs[0]:
            zero = number(0.0, g)
            of_x = ops.where(getattr(x, within)(bound), g, zero)
        return of_x, of_bound

    whole(name, f"{name}.Tensor", arguments, gradients, inputs=2)


_bound("clamp_min", "lt", "ge")
_bound("clamp_max", "gt", "le")

# ---- others


def _mvlgamma(g, needs, x, p):
    options = {"dtype": x.dtype, "layout": x.layout, "device": x.device}
    start = -p / 2.0 + 0.5
    steps = show("arange.start_step", start, 0.5, 0.5, **options)
    args = (steps + x.unsqueeze(-1)).digamma_().sum(-1)
    return (g * args,)


def _real_or_imaginary(g, needs, real, imag):
    def part(at):
        pairs = ops.view_as_real(g)
        return ops.select(pairs, pairs.dim() - 1, at)

    of_imag = part(1) if needs[1] else None
    return part(0) if needs[0] else None, of_imag


whole("mvlgamma", "mvlgamma.default", lambda input, p: (input, p), _mvlgamma)
whole("complex", "complex.default", lambda real, imag, **kwargs: (real, imag), _real_or_imaginary,
      inputs=2)  # fmt: skip
whole("diag_embed", "diag_embed.default",
      lambda input, offset=0, dim1=-2, dim2=-1: (input, offset, dim1, dim2),
      lambda g, needs, x, offset, dim1, dim2: (
          show("diagonal.default", *trimmed((g, offset, dim1, dim2), 0, 0, 1)),),
      0, -2, -1)  # fmt: skip


def _ldexp(g, needs, x, other, out):
    of_other = g * out * math.log(2) if needs[1] else None
    return g * ops.scalar_pow(other, 2) if needs[0] else None, of_other


whole("ldexp", "ldexp.Tensor",
      lambda input, other, **kwargs: (input, other) if isinstance(other, Tensor) else None, _ldexp,
      saves_result=True, inputs=2)  # fmt: skip


def _reversed(input, other, *, alpha=1):
    return (input, other) if isinstance(other, Tensor) and alpha == 1 else None


whole("rsub", "rsub.Tensor", _reversed,
      lambda g, needs, x, other: (-g if needs[0] else None, g if needs[1] else None), inputs=2)  # fmt: skip


# ---- distances

_COMPUTE_MODES = {
    "use_mm_for_euclid_dist_if_necessary": None,
    "use_mm_for_euclid_dist": 1,
    "donot_use_mm_for_euclid_dist": 2,
}


def _cdist_arguments(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    """Euclidean distances of many points are made of products in torch."""
    if compute_mode not in _COMPUTE_MODES or not isinstance(x1, Tensor) or not isinstance(x2, Tensor):
        return None
    products = p == 2 and (compute_mode == "use_mm_for_euclid_dist" or max(x1.shape[-2], x2.shape[-2]) > 25)
    wrong = min(x1.dim(), x2.dim()) < 2 or x1.shape[-1] != x2.shape[-1] or x1.dtype != x2.dtype
    empty = not x1.numel() or not x2.numel()
    if wrong or empty or (products and compute_mode != "donot_use_mm_for_euclid_dist"):
        return None
    return x1, x2, float(p), _COMPUTE_MODES[compute_mode]


def _cdist(g, needs, x1, x2, p, mode, out):
    of_1 = of_2 = None
    if needs[0]:
        of_1 = show("_cdist_backward.default", g, x1, x2, p, out)
    if needs[1]:
        turned = out.transpose(-2, -1).contiguous()
        of_2 = show("_cdist_backward.default", g.transpose(-2, -1).contiguous(), x2, x1, p, turned)
    return of_1, of_2


whole("cdist", "_cdist_forward.default", _cdist_arguments, _cdist, saves_result=True, inputs=2,
      run=lambda function, args: function(*args[:3]))  # fmt: skip
