"""Averaged stochastic gradient descent."""

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

__all__ = ["ASGD"]


class ASGD(GroupOptimizer):
    """Gradient descent that also averages the parameters, in state ``ax`` (Polyak and Juditsky 1992)."""

    _numbers = ("step", "eta", "mu")
    _added_options = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}

    _listed = ("mu", "ax", "eta", "step")

    def __init__(
        self,
        params,
        lr=1e-2,
        lambd=1e-4,
        alpha=0.75,
        t0=1e6,
        weight_decay=0,
        foreach=None,
        maximize=False,
        differentiable=False,
        capturable=False,
    ):
        defaults = options_of(
            locals(),
            "lr lambd alpha t0 weight_decay foreach maximize differentiable capturable",
        )
        check_tensor_lr(lr)
        check_at_least_zero(lr=lr, weight_decay=weight_decay)
        super().__init__(params, defaults)

    def _state_of(self, param, grad, group):
        state = self.state[param]
        if not state:
            state["step"] = new_step_count()
            state["eta"] = new_step_count().copy_(rushlight.as_tensor(as_rate(group["lr"])))
            state["mu"] = new_step_count().fill_(1.0)
            state["ax"] = zeros_for(param)
        return state

    def _update(self, group):
        check_not_capturable(group, "params, mus, etas, and state_steps")
        lr, lambd, weight_decay = as_rate(group["lr"]), group["lambd"], group["weight_decay"]
        for param, grad in self._moving(group):
            state = self._state_of(param, grad, group)
            param, grad, average = real_view(param), real_view(grad), real_view(state["ax"])
            step = state["step"].add_(1).item()
            rate, share = state["eta"].item(), state["mu"].item()
            if weight_decay:
                grad = grad.add(param, alpha=weight_decay)
            param.mul_(1 - lambd * rate)
            param.add_(grad, alpha=-rate)
            if share == 1:
                average.copy_(param)
            else:
                average.add_((param - average).mul_(share))
            state["eta"].copy_(rushlight.as_tensor(lr / (1 + lambd * lr * step) ** group["alpha"]))
            state["mu"].copy_(rushlight.as_tensor(1 / max(1, step - group["t0"])))


__getattr__, __dir__ = functional(
    ASGD,
    "asgd",
    "axs=ax mus=mu etas=eta state_steps=step",
    "foreach=None maximize=False differentiable=False capturable=False has_complex=False "
    "* lambd lr t0 alpha weight_decay",
    "* lambd lr t0 alpha weight_decay maximize differentiable capturable has_complex",
)
