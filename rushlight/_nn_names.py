"""torch._C._nn: functions of nn.functional as torch's core has them, losses with a number for a reduction."""

from __future__ import annotations

from typing import Any

from rushlight import ops
from rushlight._functional_names import _reduction
from rushlight.nn import functional as F

_SAME = frozenset(
    (
        "adaptive_avg_pool2d", "adaptive_avg_pool3d", "avg_pool2d", "avg_pool3d", "elu", "elu_", "gelu",
        "glu", "hardsigmoid", "hardswish", "hardtanh", "hardtanh_", "leaky_relu", "leaky_relu_", "linear",
        "mish", "one_hot", "relu6", "scaled_dot_product_attention", "silu", "softplus", "softshrink",
    )
)  # fmt: skip
_LOSSES = frozenset(
    (
        "binary_cross_entropy", "huber_loss", "l1_loss", "mse_loss", "multi_margin_loss",
        "multilabel_margin_loss", "nll_loss", "nll_loss2d", "nll_loss_nd", "smooth_l1_loss",
        "soft_margin_loss",
    )
)  # fmt: skip
_PADS = {"reflection_pad": "reflect", "replication_pad": "replicate"}


def _loss(name: str) -> Any:
    function = getattr(F, name.removesuffix("2d").removesuffix("_nd"))
    weighted = name == "binary_cross_entropy"

    def loss(input: Any, target: Any, *rest: Any, reduction: int = 1, **options: Any) -> Any:
        if name.startswith("nll_loss") and rest:  # weight, reduction, ignore_index
            options["weight"], rest = rest[0], rest[1:]
            if rest:
                reduction = rest[0]
            if len(rest) > 1:
                options["ignore_index"] = rest[1]
        elif weighted and rest:
            options["weight"] = rest[0]
            reduction = rest[1] if len(rest) > 1 else reduction
        elif name == "multi_margin_loss" and rest:
            options.update(zip(("p", "margin", "weight"), rest))
            reduction = rest[3] if len(rest) > 3 else reduction
        elif rest:
            reduction = rest[0]
            if len(rest) > 1:
                options["beta" if name == "smooth_l1_loss" else "delta"] = rest[1]
        return function(input, target, reduction=_reduction(reduction), **options)

    loss.__name__ = loss.__qualname__ = name
    return loss


def _pad(mode: str) -> Any:
    return lambda input, padding: F.pad(input, tuple(padding), mode=mode)


def find(name: str) -> Any:
    """The function of this name."""
    if name in _SAME:
        return getattr(F, name)
    if name in _LOSSES:
        return _loss(name)
    if name[:-2] in _PADS and name[-2:] in ("1d", "2d", "3d"):
        return _pad(_PADS[name[:-2]])
    if "upsample_" in name:
        from rushlight._aten_resample import FUNCTIONS as resampling

        if name in resampling:
            return resampling[name]
    if name == "_test_warn_in_autograd":
        from rushlight._test_operations import _test_warn_in_autograd

        return _test_warn_in_autograd
    if name == "log_sigmoid":
        return F.logsigmoid
    if not name.startswith("__") and hasattr(ops.aten, name):
        return getattr(ops.aten, name)
    raise AttributeError(f"module 'torch._C._nn' has no attribute '{name}'")
