"""Adamax: Adam with the largest gradient in place of the mean square."""

import rushlight
from rushlight.optim._forms import functional
from rushlight.optim.optimizer import (
    GroupOptimizer,
    as_rate,
    check_at_least_zero,
    check_betas,
    check_not_capturable,
    check_tensor_lr,
    new_step_count,
    options_of,
    real_view,
    zeros_for,
)

__all__ = ["Adamax"]


class Adamax(GroupOptimizer):
    """Adam under the infinity norm (Kingma and Ba 2015)."""

    _added_options = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}

    _listed = ("exp_avg", "exp_inf", "step")

    def __init__(
        self,
        params,
        lr=2e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        foreach=None,
        *,
        maximize=False,
        differentiable=False,
        capturable=False,
    ):
        defaults = options_of(
            locals(),
            "lr betas eps weight_decay foreach maximize differentiable capturable",
        )
        check_tensor_lr(lr)
        check_at_least_zero(lr=lr, eps=eps)
        check_betas(betas)
        check_at_least_zero(weight_decay=weight_decay)
        super().__init__(params, defaults)

    def _state_of(self, param, grad, group):
        state = self.state[param]
        if not state:
            state["step"] = new_step_count()
            state["exp_avg"] = zeros_for(param)
            state["exp_inf"] = zeros_for(param)
        return state

    def _update(self, group):
        check_not_capturable(group)
        beta1, beta2 = group["betas"]
        lr, eps, weight_decay = as_rate(group["lr"]), group["eps"], group["weight_decay"]
        for param, grad in self._moving(group):
            state = self._state_of(param, grad, group)
            step = state["step"].add_(1).item()
            if weight_decay:
                grad = grad.add(param, alpha=weight_decay)
            param, grad = real_view(param), real_view(grad)
            mean, largest = real_view(state["exp_avg"]), real_view(state["exp_inf"])
            mean.lerp_(grad, 1 - beta1)
            size = grad.abs().add_(eps)
            largest.mul_(beta2)
            largest.copy_(rushlight.maximum(largest.clone() if largest.requires_grad else largest, size))
            param.addcdiv_(mean, largest, value=-lr / (1 - beta1**step))


__getattr__, __dir__ = functional(
    Adamax,
    "adamax",
    "exp_avgs=exp_avg exp_infs=exp_inf state_steps=step",
    "foreach=None maximize=False differentiable=False capturable=False has_complex=False "
    "* eps beta1 beta2 lr weight_decay",
    "* eps beta1 beta2 lr weight_decay maximize differentiable capturable has_complex",
)
