"""Adafactor: adaptive rates whose memory grows with rows plus columns, not their product."""

import rushlight
from rushlight.optim._forms import functional
from rushlight.optim.optimizer import (
    GroupOptimizer,
    as_rate,
    check_tensor_lr,
    new_step_count,
    options_of,
    zeros_for,
)

__all__ = ["Adafactor"]


class Adafactor(GroupOptimizer):
    """Keeps the mean square gradient of each row and each column only (Shazeer and Stern 2018)."""

    __module__ = "rushlight.optim"

    _added_options = {"foreach": None}

    _listed = ("row_var", "col_var", "variance", "step")

    def __init__(
        self,
        params,
        lr=1e-2,
        beta2_decay=-0.8,
        eps=(None, 1e-3),
        d=1.0,
        weight_decay=0.0,
        *,
        foreach=None,
        maximize=False,
    ):
        defaults = options_of(locals(), "lr beta2_decay eps d weight_decay foreach maximize")
        check_tensor_lr(lr)
        if not 0.0 <= lr:  # noqa: SIM300
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not 0.0 >= beta2_decay:  # noqa: SIM300
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not 0.0 <= eps[0]:  # noqa: SIM300
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not 0.0 <= eps[1]:  # noqa: SIM300
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not 1.0 <= d:  # noqa: SIM300
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not 0.0 <= weight_decay:  # noqa: SIM300
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        super().__init__(params, defaults)

    def _state_of(self, param, grad, group):
        if param.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        state = self.state[param]
        if not state:
            state["step"] = new_step_count()
            if grad.dim() > 1:
                state["row_var"] = grad.new_zeros((*grad.shape[:-1], 1))
                state["col_var"] = grad.new_zeros((*grad.shape[:-2], 1, grad.shape[-1]))
            else:
                state["variance"] = zeros_for(grad)
        return state

    def _lists_none(self, key, group):
        return True

    def _update(self, group):
        lr, weight_decay = as_rate(group["lr"]), group["weight_decay"]
        for param, grad in self._moving(group):
            state = self._state_of(param, grad, group)
            step = state["step"].add_(1).item()
            smallest = rushlight.finfo(param.dtype).eps if group["eps"][0] is None else group["eps"][0]
            # The step is relative to the size of the parameters, but never smaller than eps[1].
            size = max(group["eps"][1], _root_mean_square(param)) * min(lr, step**-0.5)
            if weight_decay:
                param.mul_(1 - lr * weight_decay)
            variance = _variance(state, grad, step ** group["beta2_decay"], smallest)
            update = variance.clamp_(min=smallest * smallest).rsqrt_().mul_(grad)
            param.add_(update, alpha=-size / max(1.0, _root_mean_square(update) / group["d"]))


def _root_mean_square(tensor):
    return tensor.norm(2).item() / tensor.numel() ** 0.5


def _variance(state, grad, weight, smallest):
    """The mean square gradient after this one, rebuilt from rows and columns where there are any."""
    if grad.dim() <= 1:
        return state["variance"].lerp_(grad * grad, weight).clone()
    rows, columns = state["row_var"], state["col_var"]
    rows.lerp_(grad.norm(2, dim=-1, keepdim=True).square_().div_(grad.size(-1)), weight)
    columns.lerp_(grad.norm(2, dim=-2, keepdim=True).square_().div_(grad.size(-2)), weight)
    return (rows @ columns).div_(rows.mean(dim=-2, keepdim=True).clamp_(min=smallest))


__getattr__, __dir__ = functional(
    Adafactor,
    "adafactor",
    "row_vars=row_var col_vars=col_var variances=variance state_steps=step",
    "foreach=None grad_scale=None found_inf=None has_complex=False "
    "* d lr beta2_decay weight_decay eps1 eps2 maximize",
    "grad_scale found_inf * d lr beta2_decay weight_decay eps1 eps2 maximize has_complex",
)
