"""Adagrad: rates that shrink with the sum of all squared gradients."""

import rushlight
from rushlight.optim._forms import functional
from rushlight.optim.optimizer import (
    GroupOptimizer,
    as_rate,
    at_places_of,
    check_at_least_zero,
    check_fused,
    check_tensor_lr,
    new_step_count,
    options_of,
    real_view,
    root_plus,
)

__all__ = ["Adagrad"]


class Adagrad(GroupOptimizer):
    """Divides each gradient by the root of the sum of its squares so far (Duchi et al. 2011)."""

    _added_options = {"foreach": None, "maximize": False, "differentiable": False, "fused": None}

    _listed = ("sum", "step")
    _takes_sparse = True

    def __init__(
        self,
        params,
        lr=1e-2,
        lr_decay=0,
        weight_decay=0,
        initial_accumulator_value=0,
        eps=1e-10,
        foreach=None,
        *,
        maximize=False,
        differentiable=False,
        fused=None,
    ):
        defaults = options_of(
            locals(),
            "lr lr_decay eps weight_decay initial_accumulator_value foreach maximize differentiable fused",
        )
        check_tensor_lr(lr)
        check_at_least_zero(
            lr=lr,
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            eps=eps,
        )
        super().__init__(params, defaults)

    def add_param_group(self, param_group):
        super().add_param_group(param_group)
        # The sums exist from the start, so that a state dict saved before the first step has them.
        first = param_group["initial_accumulator_value"]
        for param in param_group["params"]:
            state = self.state[param]
            state["step"] = new_step_count()
            value = complex(first, first) if param.is_complex() else first
            state["sum"] = rushlight.full_like(param.detach(), value)

    def share_memory(self):
        """Make the memory of the sums one that other processes see; tensors say whether they can."""
        for group in self.param_groups:
            for param in group["params"]:
                self.state[param]["sum"].share_memory_()

    def _init_group(self, group, *lists):
        """Fill the lists that ``adagrad`` takes; whether there are sparse and complex tensors."""
        complex_ones = super()._init_group(group, *lists)
        return any(grad.is_sparse for _, grad in self._graded(group)), complex_ones

    def _update(self, group):
        if group["fused"]:
            check_fused(group["params"])
            if any(grad.is_sparse for _, grad in self._graded(group)):
                raise RuntimeError("`fused` does not support sparse grad or complex param")
        lr, lr_decay = as_rate(group["lr"]), group["lr_decay"]
        eps, weight_decay = group["eps"], group["weight_decay"]
        for param, grad in self._moving(group):
            state = self.state[param]
            step = state["step"].add_(1).item()
            if grad.is_sparse:
                if weight_decay:
                    raise RuntimeError("weight_decay option is not compatible with sparse gradients")
                _move_sparse(param, grad.coalesce(), state["sum"], eps, lr / (1 + (step - 1) * lr_decay))
                continue
            if weight_decay:
                grad = grad.add(param, alpha=weight_decay)
            param, grad, total = real_view(param), real_view(grad), real_view(state["sum"])
            total.addcmul_(grad, grad, value=1)
            divisor = root_plus(total, eps, group["differentiable"])
            param.addcdiv_(grad, divisor, value=-lr / (1 + (step - 1) * lr_decay))


def _move_sparse(param, grad, total, eps, rate):
    """The same step at the places that the gradient has."""
    values = grad._values()
    total.add_(at_places_of(grad, values.square()))
    divisor = total.sparse_mask(grad)._values().sqrt_().add_(eps)
    param.add_(at_places_of(grad, values / divisor), alpha=-rate)


__getattr__, __dir__ = functional(
    Adagrad,
    "adagrad",
    "state_sums=sum state_steps=step",
    "fused=None grad_scale=None found_inf=None has_sparse_grad=False foreach=None differentiable=False "
    "has_complex=False * lr weight_decay lr_decay eps maximize",
    "grad_scale found_inf * lr weight_decay lr_decay eps has_sparse_grad maximize differentiable has_complex",
    ("single_tensor", "multi_tensor", "fused"),
)
