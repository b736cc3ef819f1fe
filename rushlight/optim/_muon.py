"""Muon: momentum made orthogonal, for the matrices of a network."""

import math

from rushlight.optim._authors import _to_scalar
from rushlight.optim._forms import functional
from rushlight.optim.optimizer import GroupOptimizer, as_number, check_tensor_lr, options_of, zeros_for

__all__ = ["Muon"]


EPS = 1e-7
DEFAULT_A, DEFAULT_B, DEFAULT_C = 3.4445, -4.7750, 2.0315
DEFAULT_NS_STEPS = 5


class Muon(GroupOptimizer):
    """Moves each matrix along the nearly orthogonal factor of its momentum (Jordan et al. 2024)."""

    __module__ = "rushlight.optim"

    _listed = ("momentum_buffer",)

    def __init__(
        self,
        params,
        lr=1e-3,
        weight_decay=0.1,
        momentum=0.95,
        nesterov=True,
        ns_coefficients=(DEFAULT_A, DEFAULT_B, DEFAULT_C),
        eps=EPS,
        ns_steps=DEFAULT_NS_STEPS,
        adjust_lr_fn=None,
    ):
        defaults = options_of(
            locals(),
            "lr weight_decay momentum nesterov ns_coefficients eps ns_steps adjust_lr_fn",
        )
        check_tensor_lr(lr)
        for name, value in (("Learning rate", lr), ("momentum", momentum), ("weight decay", weight_decay)):
            if not 0.0 <= value:  # noqa: SIM300
                raise ValueError(f"{name} should be >= 0 but is: {value}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        super().__init__(params, defaults)
        for group in self.param_groups:
            for param in group["params"]:
                if param.ndim != 2:
                    raise ValueError(
                        "Muon only supports 2D parameters whereas we found a parameter with size: "
                        f"{param.size()}"
                    )

    def _state_of(self, param, grad, group):
        if param.is_complex():
            raise RuntimeError("Muon does not support complex parameters")
        self._refuse_sparse(grad)
        state = self.state[param]
        if not state:
            state["momentum_buffer"] = zeros_for(grad)
        return state

    def _update(self, group):
        lr, momentum = _to_scalar(group["lr"]), group["momentum"]
        for param, grad in self._graded(group):
            buffer = self._state_of(param, grad, group)["momentum_buffer"].lerp_(grad, 1 - momentum)
            update = grad.lerp(buffer, momentum) if group["nesterov"] else buffer
            update = _zeropower_via_newtonschulz(
                update, group["ns_coefficients"], group["ns_steps"], group["eps"]
            )
            # A rate that is a tensor stays one until the end: its dtype rounds.
            param.mul_(as_number(1 - lr * group["weight_decay"]))
            param.add_(update, alpha=-as_number(_adjust_lr(lr, group["adjust_lr_fn"], param.shape)))


def _adjust_lr(lr, adjust_lr_fn, param_shape):
    rows, columns = param_shape[:2]
    if adjust_lr_fn == "match_rms_adamw":
        return lr * (0.2 * math.sqrt(max(rows, columns)))
    return lr * math.sqrt(max(1, rows / columns))


def _zeropower_via_newtonschulz(grad, ns_coefficients, ns_steps, eps):
    """The matrix with all singular values near 1, by a quintic Newton-Schulz iteration in bfloat16."""
    if ns_steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(ns_coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = ns_coefficients
    tall = grad.size(0) > grad.size(1)
    x = grad.bfloat16()
    if tall:
        x = x.T
    x = x / x.norm().clamp(min=eps)
    for _ in range(ns_steps):
        gram = x @ x.T
        x = x.addmm(gram.addmm(gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x


__getattr__, __dir__ = functional(
    Muon,
    "muon",
    "muon_momentum_bufs=momentum_buffer",
    "* foreach=None lr weight_decay momentum nesterov ns_coefficients ns_steps eps adjust_lr_fn has_complex",
    "* lr weight_decay momentum nesterov ns_coefficients ns_steps eps adjust_lr_fn has_complex",
    ("single_tensor",),
)
