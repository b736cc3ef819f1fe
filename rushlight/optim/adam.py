"""Adam and AdamW."""

import math

import rushlight
from rushlight import _C, Tensor
from rushlight.nn.parameter import Parameter
from rushlight.optim.optimizer import (
    GroupOptimizer,
    as_number,
    check_at_least_zero,
    check_betas,
    check_not_capturable,
    check_tensor_lr,
    new_step_count,
    options_of,
    real_view,
    zeros_for,
)

__all__ = ["Adam"]

_PLAIN = (Tensor, Parameter)


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
        if isinstance(betas[0], Tensor) != isinstance(betas[1], Tensor):
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

    def __setstate__(self, state):
        super().__setstate__(state)
        for param_state in self.state.values():
            # Checkpoints of old versions count steps with a Python number.
            if param_state and not isinstance(param_state.get("step", None), (Tensor, type(None))):
                param_state["step"] = new_step_count().fill_(float(param_state["step"]))

    def _state_of(self, param, amsgrad):
        state = self.state[param]
        if not state:
            state["step"] = new_step_count()
            state["exp_avg"] = zeros_for(param)
            state["exp_avg_sq"] = zeros_for(param)
            if amsgrad:
                state["max_exp_avg_sq"] = zeros_for(param)
        return state

    def _update(self, group):
        check_not_capturable(group)
        if group["differentiable"] and any(isinstance(b, Tensor) and b.requires_grad for b in group["betas"]):
            raise NotImplementedError("Adam: gradients with respect to betas are not implemented")
        beta1, beta2 = map(as_number, group["betas"])
        lr = group["lr"]
        if not group["differentiable"]:
            lr = as_number(lr)
        eps, weight_decay, amsgrad = group["eps"], group["weight_decay"], group["amsgrad"]
        decoupled = group["decoupled_weight_decay"]
        # The sweep in native code is for plain tensors; a subclass is asked by each operation.
        one_sweep = not group["differentiable"]
        for param in group["params"]:
            grad = param.grad
            if grad is None:
                continue
            state = self._state_of(param, amsgrad)
            step = state["step"].add_(1).item()
            largest = state["max_exp_avg_sq"] if amsgrad else None
            if one_sweep and type(param) in _PLAIN and type(grad) is Tensor and _C.adam_step(
                param, grad, state["exp_avg"], state["exp_avg_sq"], largest, beta1, beta2, eps, weight_decay,
                decoupled, lr, step, group["maximize"],
            ):  # fmt: skip
                continue
            if group["maximize"]:
                grad = -grad
            if weight_decay:
                if decoupled:
                    param.mul_(1 - lr * weight_decay)
                else:
                    grad = grad.add(param, alpha=weight_decay)
            param, grad = real_view(param), real_view(grad)
            mean, square = real_view(state["exp_avg"]), real_view(state["exp_avg_sq"])
            mean.lerp_(grad, 1 - beta1)
            square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
            if amsgrad:
                largest = real_view(largest)
                square = largest.copy_(rushlight.maximum(largest, square))
            divisor = (square.sqrt() / math.sqrt(1 - beta2**step)).add_(eps)
            step_size = lr / (1 - beta1**step)
            if isinstance(step_size, Tensor):
                param.sub_(mean / divisor * step_size)
            else:
                param.addcdiv_(mean, divisor, value=-step_size)
