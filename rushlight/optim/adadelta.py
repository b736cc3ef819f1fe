"""Adadelta: steps in the units of the parameters, without a rate to tune."""

import rushlight
from rushlight.optim._forms import functional
from rushlight.optim.optimizer import (
    GroupOptimizer,
    as_rate,
    check_at_least_zero,
    check_not_capturable,
    check_tensor_lr,
    new_step_count,
    options_of,
    real_view,
    zeros_for,
)

__all__ = ["Adadelta"]


class Adadelta(GroupOptimizer):
    """Scales gradients by the ratio of the typical step to the typical gradient (Zeiler 2012)."""

    _added_options = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}

    _listed = ("square_avg", "acc_delta", "step")

    def __init__(
        self,
        params,
        lr=1.0,
        rho=0.9,
        eps=1e-6,
        weight_decay=0,
        foreach=None,
        *,
        capturable=False,
        maximize=False,
        differentiable=False,
    ):
        defaults = options_of(locals(), "lr rho eps weight_decay maximize capturable foreach differentiable")
        check_tensor_lr(lr)
        check_at_least_zero(lr=lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_at_least_zero(eps=eps, weight_decay=weight_decay)
        super().__init__(params, defaults)

    def _state_of(self, param, grad, group):
        state = self.state[param]
        if not state:
            state["step"] = new_step_count()
            state["square_avg"] = zeros_for(param)
            state["acc_delta"] = zeros_for(param)
        return state

    def _update(self, group):
        check_not_capturable(group, devices="'cuda', 'xpu', 'hpu', 'privateuseone'")
        lr, rho, eps, weight_decay = as_rate(group["lr"]), group["rho"], group["eps"], group["weight_decay"]
        for param, grad in self._moving(group):
            state = self._state_of(param, grad, group)
            state["step"].add_(1)
            if weight_decay:
                grad = grad.add(param, alpha=weight_decay)
            grad = real_view(grad)
            square, steps = real_view(state["square_avg"]), real_view(state["acc_delta"])
            square.mul_(rho).addcmul_(grad, grad, value=1 - rho)
            if group["differentiable"]:
                delta = (steps + eps).sqrt() / (square + eps).sqrt() * grad
            else:
                delta = (steps + eps).sqrt_().div_((square + eps).sqrt_()).mul_(grad)
            steps.mul_(rho).addcmul_(delta, delta, value=1 - rho)
            param.add_(rushlight.view_as_complex(delta) if param.is_complex() else delta, alpha=-lr)


__getattr__, __dir__ = functional(
    Adadelta,
    "adadelta",
    "square_avgs=square_avg acc_deltas=acc_delta state_steps=step",
    "capturable=False foreach=None differentiable=False has_complex=False * lr rho eps weight_decay maximize",
    "* lr rho eps weight_decay maximize differentiable capturable has_complex",
)
