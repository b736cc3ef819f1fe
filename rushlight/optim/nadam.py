"""NAdam: Adam with Nesterov momentum."""

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

__all__ = ["NAdam"]


class NAdam(GroupOptimizer):
    """Adam that looks one momentum step ahead (Dozat 2016)."""

    _numbers = ("step", "mu_product")
    _added_options = {
        "maximize": False,
        "foreach": None,
        "capturable": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
    }

    _listed = ("exp_avg", "exp_avg_sq", "mu_product", "step")

    def __init__(
        self,
        params,
        lr=2e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        momentum_decay=4e-3,
        decoupled_weight_decay=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
    ):
        defaults = options_of(
            locals(),
            "lr betas eps weight_decay momentum_decay decoupled_weight_decay maximize foreach capturable "
            "differentiable",
        )
        check_tensor_lr(lr)
        check_at_least_zero(lr=lr, eps=eps)
        check_betas(betas)
        check_at_least_zero(weight_decay=weight_decay, momentum_decay=momentum_decay)
        super().__init__(params, defaults)

    def _state_of(self, param, grad, group):
        state = self.state[param]
        if not state:
            state["step"] = new_step_count()
            state["mu_product"] = new_step_count().fill_(1.0)
            state["exp_avg"] = zeros_for(param)
            state["exp_avg_sq"] = zeros_for(param)
        return state

    def _update(self, group):
        check_not_capturable(group, "params, mu_products and state_steps")
        beta1, beta2 = group["betas"]
        lr, eps, weight_decay = as_rate(group["lr"]), group["eps"], group["weight_decay"]
        momentum_decay = group["momentum_decay"]
        for param, grad in self._moving(group):
            state = self._state_of(param, grad, group)
            step = state["step"].add_(1).item()
            param, grad = real_view(param), real_view(grad)
            if weight_decay:
                if group["decoupled_weight_decay"]:
                    param.mul_(1 - lr * weight_decay)
                else:
                    grad = grad.add(param, alpha=weight_decay)
            momentum = beta1 * (1.0 - 0.5 * 0.96 ** (step * momentum_decay))
            momentum_next = beta1 * (1.0 - 0.5 * 0.96 ** ((step + 1) * momentum_decay))
            product = state["mu_product"].mul_(momentum)
            mean, square = real_view(state["exp_avg"]), real_view(state["exp_avg_sq"])
            mean.lerp_(grad, 1 - beta1)
            square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
            if group["differentiable"]:
                # The weights stay tensors, and what later steps write to is copied.
                divisor = (square / (1 - beta2**step)).sqrt() + eps
                product = product.clone()
                weighted = grad * (-lr * (1.0 - momentum) / (1.0 - product))
                param.addcdiv_(weighted, divisor)
                weighted = mean.clone() * (-lr * momentum_next / (1.0 - product * momentum_next))
                param.addcdiv_(weighted, divisor)
                continue
            divisor = (square / (1 - beta2**step)).sqrt_().add_(eps)
            product = product.item()
            param.addcdiv_(grad, divisor, value=-lr * (1.0 - momentum) / (1.0 - product))
            param.addcdiv_(mean, divisor, value=-lr * momentum_next / (1.0 - product * momentum_next))


__getattr__, __dir__ = functional(
    NAdam,
    "nadam",
    "exp_avgs=exp_avg exp_avg_sqs=exp_avg_sq mu_products=mu_product state_steps=step",
    "decoupled_weight_decay=False foreach=None capturable=False differentiable=False has_complex=False "
    "maximize=False * beta1 beta2 lr weight_decay momentum_decay eps",
    "* beta1 beta2 lr weight_decay momentum_decay eps decoupled_weight_decay maximize capturable "
    "differentiable has_complex",
)
