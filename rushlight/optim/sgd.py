"""Stochastic gradient descent, with momentum."""

import rushlight
from rushlight import _C, Tensor
from rushlight.optim._forms import functional
from rushlight.optim.optimizer import (
    GroupOptimizer,
    as_number,
    as_rate,
    check_at_least_zero,
    check_fused,
    check_tensor_lr,
    options_of,
)

__all__ = ["SGD"]


class SGD(GroupOptimizer):
    """Gradient descent: ``p -= lr * grad``, and with momentum ``buf = momentum * buf + grad; p -= lr * buf``.

    ``foreach`` and ``fused`` choose between implementations in torch; the numbers are the same, and here so
    is the implementation.

    >>> import rushlight as torch
    >>> x = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.SGD([x], lr=0.1)
    >>> x.square().sum().backward()
    >>> optimizer.step()
    >>> x
    Parameter containing:
    tensor([0.8000], requires_grad=True)
    """

    _added_options = {
        "nesterov": False,
        "maximize": False,
        "foreach": None,
        "differentiable": False,
        "fused": False,
    }

    _listed = ("momentum_buffer",)
    _takes_sparse = True

    def __init__(
        self,
        params,
        lr=1e-3,
        momentum=0,
        dampening=0,
        weight_decay=0,
        nesterov=False,
        *,
        maximize=False,
        foreach=None,
        differentiable=False,
        fused=None,
    ):
        defaults = options_of(
            locals(),
            "lr momentum dampening weight_decay nesterov maximize foreach differentiable fused",
        )
        check_tensor_lr(lr)
        for name, value in {"lr": lr, "momentum": momentum, "weight_decay": weight_decay}.items():
            if value < 0.0:  # as torch asks here, where NaN passes
                check_at_least_zero(**{name: value})
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, defaults)

    def _lists_none(self, key, group):
        return group["momentum"] != 0

    def _init_group(self, group, *lists):
        """Fill the lists that ``sgd`` takes; whether a gradient is sparse."""
        super()._init_group(group, *lists)
        return any(grad.is_sparse for _, grad in self._graded(group))

    def _update(self, group):
        if group["fused"]:
            check_fused(group["params"])
            if any(grad.is_sparse for _, grad in self._graded(group)):
                raise RuntimeError("`_fused_sgd` does not support sparse gradients")
        if not (group["differentiable"] or _C.is_grad_enabled()) and self._all_at_once(group):
            return
        lr, weight_decay, momentum = group["lr"], group["weight_decay"], group["momentum"]
        if isinstance(lr, Tensor) and not lr.requires_grad:
            lr = as_rate(lr)
        if isinstance(weight_decay, Tensor) and not weight_decay.requires_grad:
            weight_decay = as_number(weight_decay)
        for param, grad in self._moving(group):
            if isinstance(weight_decay, Tensor) and weight_decay.requires_grad:
                grad = grad.addcmul_(param.clone(), weight_decay)
            elif weight_decay:
                grad = grad.add(param, alpha=weight_decay)
            if momentum:
                grad = self._with_momentum(param, grad, momentum, group)
            if isinstance(lr, Tensor) and lr.requires_grad:
                param.addcmul_(grad, lr, value=-1)
            else:
                param.add_(grad, alpha=-lr)

    def _all_at_once(self, group):
        """The step of the whole group in native code; False if it has tensors that are not plain ones."""
        params, grads = self._columns(group)
        momentum, buffers, first = group["momentum"], None, False
        if momentum:
            buffers = [self.state[param].get("momentum_buffer") for param in params]
            absent = [buffer is None for buffer in buffers]
            if True in absent:
                if False in absent:
                    return False
                first, buffers = True, [rushlight.empty_like(grad) for grad in grads]
        done = _C.sgd_steps(
            params,
            grads,
            buffers,
            as_rate(group["lr"]),
            as_number(momentum),
            as_number(group["dampening"]),
            as_number(group["weight_decay"]),
            first,
            group["nesterov"],
            group["maximize"],
        )
        if done and first:
            for param, buffer in zip(params, buffers, strict=True):
                self.state[param]["momentum_buffer"] = buffer
        return done

    def _with_momentum(self, param, grad, momentum, group):
        state = self.state[param]
        buffer = state.get("momentum_buffer")
        if buffer is None:
            buffer = state["momentum_buffer"] = grad.detach().clone()
        else:
            buffer.mul_(momentum).add_(grad, alpha=1 - group["dampening"])
        return grad.add(buffer, alpha=momentum) if group["nesterov"] else buffer


__getattr__, __dir__ = functional(
    SGD,
    "sgd",
    "momentum_buffer_list=momentum_buffer",
    "has_sparse_grad=False foreach=None fused=None grad_scale=None found_inf=None * weight_decay momentum lr "
    "dampening nesterov maximize",
    "grad_scale found_inf * weight_decay momentum lr dampening nesterov maximize has_sparse_grad",
    ("single_tensor", "multi_tensor", "fused"),
    grads="d_p_list",
)
