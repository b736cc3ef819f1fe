"""Muon: momentum made orthogonal, for the matrices of a network."""

import math

from rushlight.optim.optimizer import GroupOptimizer, as_number, check_tensor_lr, options_of, zeros_for

__all__ = ["Muon"]


class Muon(GroupOptimizer):
    """Moves each matrix along the nearly orthogonal factor of its momentum (Jordan et al. 2024)."""

    def __init__(
        self,
        params,
        lr=1e-3,
        weight_decay=0.1,
        momentum=0.95,
        nesterov=True,
        ns_coefficients=(3.4445, -4.7750, 2.0315),
        eps=1e-7,
        ns_steps=5,
        adjust_lr_fn=None,
    ):
        defaults = options_of(
            locals(),
            "lr weight_decay momentum nesterov ns_coefficients eps ns_steps adjust_lr_fn",
        )
        check_tensor_lr(lr)
        for name, value in (("Learning rate", lr), ("momentum", momentum), ("weight decay", weight_decay)):
            if not value >= 0.0:
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

    def _update(self, group):
        lr, momentum = group["lr"], group["momentum"]
        for param in group["params"]:
            grad = param.grad
            if grad is None:
                continue
            if param.is_complex():
                raise RuntimeError("Muon does not support complex parameters")
            state = self.state[param]
            if not state:
                state["momentum_buffer"] = zeros_for(grad)
            buffer = state["momentum_buffer"].lerp_(grad, 1 - momentum)
            update = grad.lerp(buffer, momentum) if group["nesterov"] else buffer
            update = _orthogonal(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
            # A rate that is a tensor stays one until the end: its dtype rounds.
            param.mul_(as_number(1 - lr * group["weight_decay"]))
            param.add_(update, alpha=-as_number(lr * _rate_factor(group["adjust_lr_fn"], param.shape)))


def _rate_factor(adjust, shape):
    rows, columns = shape
    if adjust == "match_rms_adamw":
        return 0.2 * math.sqrt(max(rows, columns))
    return math.sqrt(max(1, rows / columns))


def _orthogonal(matrix, coefficients, steps, eps):
    """The matrix with all singular values near 1, by a quintic Newton-Schulz iteration in bfloat16."""
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    tall = matrix.size(0) > matrix.size(1)
    x = matrix.bfloat16()
    if tall:
        x = x.T
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.T
        x = x.addmm(gram.addmm(gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x
