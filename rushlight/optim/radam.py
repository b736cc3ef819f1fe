"""RAdam: Adam that waits until its variance estimate can be trusted."""

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
    root_plus,
    zeros_for,
)

__all__ = ["RAdam"]


class RAdam(GroupOptimizer):
    """Adam with the variance of its adaptive rate rectified (Liu et al. 2020)."""

    _added_options = {
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
        "capturable": False,
    }

    _listed = ("exp_avg", "exp_avg_sq", "step")

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        decoupled_weight_decay=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
    ):
        defaults = options_of(
            locals(),
            "lr betas eps weight_decay maximize foreach capturable decoupled_weight_decay differentiable",
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
            state["exp_avg_sq"] = zeros_for(param)
        return state

    def _update(self, group):
        check_not_capturable(group)
        beta1, beta2 = group["betas"]
        lr, eps, weight_decay = as_rate(group["lr"]), group["eps"], group["weight_decay"]
        limit = 2 / (1 - beta2) - 1
        for param, grad in self._moving(group):
            state = self._state_of(param, grad, group)
            step = state["step"].add_(1).item()
            param, grad = real_view(param), real_view(grad)
            if weight_decay:
                if group["decoupled_weight_decay"]:
                    param.mul_(1 - lr * weight_decay)
                else:
                    grad = grad.add(param, alpha=weight_decay)
            mean, square = real_view(state["exp_avg"]), real_view(state["exp_avg_sq"])
            mean.lerp_(grad, 1 - beta1)
            square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
            update = mean / (1 - beta1**step) * lr
            correction = 1 - beta2**step
            # How many samples the variance estimate amounts to; up to five say too little.
            length = limit - 2 * step * beta2**step / correction
            if length > 5.0:
                rectified = (
                    (length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length)
                ) ** 0.5
                divisor = root_plus(square, eps, group["differentiable"])
                update = update * (correction**0.5 / divisor) * rectified
            param.add_(update, alpha=-1.0)


__getattr__, __dir__ = functional(
    RAdam,
    "radam",
    "exp_avgs=exp_avg exp_avg_sqs=exp_avg_sq state_steps=step",
    "decoupled_weight_decay=False foreach=None differentiable=False capturable=False has_complex=False "
    "maximize=False * beta1 beta2 lr weight_decay eps",
    "* beta1 beta2 lr weight_decay eps decoupled_weight_decay differentiable maximize capturable has_complex",
)
