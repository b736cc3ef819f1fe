"""RMSprop: gradients over the root of the running mean of their squares."""

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
    root_plus,
    zeros_for,
)

__all__ = ["RMSprop"]


class RMSprop(GroupOptimizer):
    """Divides by a running root mean square; ``centered`` by a running standard deviation (Hinton 2012)."""

    _added_options = {
        "momentum": 0,
        "centered": False,
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "capturable": False,
    }

    _listed = ("square_avg", "momentum_buffer", "grad_avg", "step")

    def __init__(
        self,
        params,
        lr=1e-2,
        alpha=0.99,
        eps=1e-8,
        weight_decay=0,
        momentum=0,
        centered=False,
        capturable=False,
        foreach=None,
        maximize=False,
        differentiable=False,
    ):
        defaults = options_of(
            locals(),
            "lr momentum alpha eps centered weight_decay capturable foreach maximize differentiable",
        )
        check_tensor_lr(lr)
        check_at_least_zero(lr=lr, eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        super().__init__(params, defaults)

    def _state_of(self, param, grad, group):
        state = self.state[param]
        if not state:
            state["step"] = new_step_count()
            state["square_avg"] = zeros_for(param)
            if group["momentum"] > 0:
                state["momentum_buffer"] = zeros_for(param)
            if group["centered"]:
                state["grad_avg"] = zeros_for(param)
        return state

    def _update(self, group):
        check_not_capturable(group)
        lr, alpha, eps = as_rate(group["lr"]), group["alpha"], group["eps"]
        weight_decay, momentum = group["weight_decay"], group["momentum"]
        for param, grad in self._moving(group):
            state = self._state_of(param, grad, group)
            state["step"].add_(1)
            if weight_decay:
                grad = grad.add(param, alpha=weight_decay)
            param, grad, square = real_view(param), real_view(grad), real_view(state["square_avg"])
            square.mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
            if group["centered"]:
                mean = real_view(state["grad_avg"]).lerp_(grad, 1 - alpha)
                square = square.addcmul(mean, mean, value=-1)
            divisor = root_plus(square, eps, group["differentiable"])
            if momentum > 0:
                buffer = real_view(state["momentum_buffer"])
                buffer.mul_(momentum).addcdiv_(grad, divisor, value=1)
                param.add_(buffer, alpha=-lr)
            else:
                param.addcdiv_(grad, divisor, value=-lr)


__getattr__, __dir__ = functional(
    RMSprop,
    "rmsprop",
    "square_avgs=square_avg grad_avgs=grad_avg momentum_buffer_list=momentum_buffer state_steps=step",
    "foreach=None maximize=False differentiable=False capturable=False has_complex=False "
    "* lr alpha eps weight_decay momentum centered",
    "* lr alpha eps weight_decay momentum centered maximize differentiable capturable has_complex",
)
