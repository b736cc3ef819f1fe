"""Adam and AdamW."""

import rushlight
from rushlight import _C, Tensor
from rushlight.optim._forms import functional
from rushlight.optim.optimizer import (
    GroupOptimizer,
    _to_scalar,
    as_number,
    as_rate,
    check_at_least_zero,
    check_betas,
    check_fused,
    check_not_capturable,
    check_tensor_lr,
    new_step_count,
    options_of,
    real_view,
    zeros_for,
)

__all__ = ["Adam"]


class Adam(GroupOptimizer):
    """Steps of the running mean of gradients over the root of the running mean of their squares.

    ``foreach`` and ``fused`` choose between implementations in torch; the numbers are the same, and here so
    is the implementation. ``capturable`` belongs to GPU graphs and is refused on the CPU, as in torch.

    >>> import rushlight as torch
    >>> x = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.Adam([x], lr=0.1)
    >>> x.square().sum().backward()
    >>> optimizer.step()
    >>> x
    Parameter containing:
    tensor([0.9000], requires_grad=True)
    """

    _added_options = {
        "amsgrad": False,
        "maximize": False,
        "foreach": None,
        "capturable": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
        "fused": None,
    }

    _listed = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step")

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        amsgrad=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
        fused=None,
        decoupled_weight_decay=False,
    ):
        defaults = options_of(
            locals(),
            "lr betas eps weight_decay amsgrad maximize foreach capturable differentiable fused "
            "decoupled_weight_decay",
        )
        if isinstance(lr, Tensor) and foreach and not capturable:
            raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
        check_tensor_lr(lr)
        check_at_least_zero(lr=lr, eps=eps)
        check_betas(betas)
        check_at_least_zero(weight_decay=weight_decay)
        if not any(isinstance(betas[0], kind) and isinstance(betas[1], kind) for kind in (float, Tensor)):
            raise ValueError("betas must be either both floats or both Tensors")
        for i, beta in enumerate(betas):
            if isinstance(beta, Tensor):
                if foreach and not capturable:
                    raise ValueError(
                        f"betas[{i}] as a Tensor is not supported for capturable=False and foreach=True"
                    )
                if beta.numel() != 1:
                    raise ValueError(f"Tensor betas[{i}] must be 1-element")
        super().__init__(params, defaults)

    def _state_of(self, param, grad, group):
        state = self.state[param]
        if not state:
            self._refuse_sparse(grad)
            state["step"] = new_step_count()
            state["exp_avg"] = zeros_for(param)
            state["exp_avg_sq"] = zeros_for(param)
            if group["amsgrad"]:
                state["max_exp_avg_sq"] = zeros_for(param)
        return state

    def _refuse_sparse(self, grad):
        if grad.is_sparse:
            raise RuntimeError("Adam does not support sparse gradients, please consider SparseAdam instead")

    def _update(self, group):
        if group["fused"]:
            check_fused(group["params"])
        check_not_capturable(group)
        amsgrad = group["amsgrad"]
        beta1, beta2 = group["betas"]
        params, grads = self._columns(group)
        states = [
            self.state[param] or self._state_of(param, grad, group) for param, grad in zip(params, grads)
        ]
        if not (group["differentiable"] or _C.is_grad_enabled()) and _C.adam_steps(
            params,
            grads,
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [state["max_exp_avg_sq"] for state in states] if amsgrad else None,
            [state["step"] for state in states],
            as_rate(group["lr"]),
            beta1,
            beta2,
            group["eps"],
            as_number(group["weight_decay"]),
            group["decoupled_weight_decay"],
            group["maximize"],
        ):
            return
        for param, grad, state in zip(params, grads, states, strict=True):
            self._refuse_sparse(grad)
            _step(param, grad, state, group, beta1, beta2)


def _step(param, grad, state, group, beta1, beta2):
    """One parameter, operation by operation: what the native steps leave, and what is differentiable."""
    differentiable, amsgrad, decay = group["differentiable"], group["amsgrad"], group["weight_decay"]
    lr = group["lr"]
    if not differentiable:
        lr, beta1, beta2, decay = as_rate(lr), _to_scalar(beta1), _to_scalar(beta2), as_number(decay)
    if group["maximize"]:
        grad = -grad
    step = state["step"].add_(1).item()
    if not _is_zero(decay):
        if group["decoupled_weight_decay"]:
            param.mul_(1 - lr * decay)
        elif differentiable and isinstance(decay, Tensor):
            grad = grad.addcmul_(param.clone(), decay)
        else:
            grad = grad.add(param, alpha=decay)
    param, grad = real_view(param), real_view(grad)
    mean, square = real_view(state["exp_avg"]), real_view(state["exp_avg_sq"])
    mean.lerp_(grad, 1 - beta1)
    if differentiable and isinstance(beta2, Tensor):
        # The gradient of what is kept needs the square as it was, that of what is added the gradient.
        square.copy_(square.clone().mul(beta2).addcmul(grad, grad * (1 - beta2)))
    else:
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
    if amsgrad:
        largest = real_view(state["max_exp_avg_sq"])
        largest.copy_(rushlight.maximum(largest.clone() if differentiable else largest, square))
        square = largest
    step_size, correction = lr / (1 - beta1**step), (1 - beta2**step) ** 0.5
    if differentiable:
        # The size of the step goes into the divisor, whose parts later steps write to.
        divisor = square.clone().sqrt() / (correction * -step_size) + group["eps"] / -step_size
        param.addcdiv_(mean.clone(), divisor)
    else:
        divisor = (square.sqrt() / correction).add_(group["eps"])
        param.addcdiv_(mean, divisor, value=-step_size)


def _is_zero(decay):
    return not isinstance(decay, Tensor) and decay == 0


__getattr__, __dir__ = functional(
    Adam,
    "adam",
    "exp_avgs=exp_avg exp_avg_sqs=exp_avg_sq max_exp_avg_sqs=max_exp_avg_sq state_steps=step",
    "foreach=None capturable=False differentiable=False fused=None grad_scale=None found_inf=None "
    "has_complex=False decoupled_weight_decay=False * amsgrad beta1 beta2 lr weight_decay eps maximize",
    "grad_scale found_inf * amsgrad has_complex beta1 beta2 lr weight_decay eps maximize capturable "
    "differentiable decoupled_weight_decay",
    ("single_tensor", "multi_tensor", "fused"),
)
