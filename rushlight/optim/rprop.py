"""Rprop: step sizes that grow while the gradient keeps its sign and shrink when it turns."""

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

__all__ = ["Rprop"]


class Rprop(GroupOptimizer):
    """Resilient backpropagation: only the signs of gradients count (Riedmiller and Braun 1993)."""

    _added_options = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}

    _listed = ("prev", "step_size", "step")

    def __init__(
        self,
        params,
        lr=1e-2,
        etas=(0.5, 1.2),
        step_sizes=(1e-6, 50),
        *,
        capturable=False,
        foreach=None,
        maximize=False,
        differentiable=False,
    ):
        defaults = options_of(locals(), "lr etas step_sizes foreach maximize differentiable capturable")
        check_tensor_lr(lr)
        check_at_least_zero(lr=lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, defaults)

    def _state_of(self, param, grad, group):
        state = self.state[param]
        if not state:
            state["step"] = new_step_count()
            state["prev"] = zeros_for(param)
            lr = as_rate(group["lr"])
            state["step_size"] = rushlight.full_like(grad, complex(lr, lr) if param.is_complex() else lr)
        return state

    def _update(self, group):
        check_not_capturable(group)
        shrink, grow = group["etas"]
        smallest, largest = group["step_sizes"]
        for param, grad in self._moving(group):
            state = self._state_of(param, grad, group)
            state["step"].add_(1)
            param, grad = real_view(param), real_view(grad)
            previous, size = real_view(state["prev"]), real_view(state["step_size"])
            agreement = grad * (previous.clone() if group["differentiable"] else previous)
            turned = agreement < 0
            factor = rushlight.ones_like(agreement)
            factor[agreement > 0] = grow
            factor[turned] = shrink
            size.mul_(factor).clamp_(smallest, largest)
            # Where the sign turned, the parameter stays for one step.
            grad = grad.masked_fill(turned, 0.0)
            param.addcmul_(grad.sign(), size.clone() if group["differentiable"] else size, value=-1)
            previous.copy_(grad)


__getattr__, __dir__ = functional(
    Rprop,
    "rprop",
    "prevs=prev step_sizes=step_size state_steps=step",
    "foreach=None capturable=False maximize=False differentiable=False has_complex=False "
    "* step_size_min step_size_max etaminus etaplus",
    "* step_size_min step_size_max etaminus etaplus maximize capturable differentiable has_complex",
)
