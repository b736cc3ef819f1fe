"""SparseAdam, which is defined for sparse gradients only."""

import math

from rushlight.optim.optimizer import (
    GroupOptimizer,
    as_rate,
    at_places_of,
    check_betas,
    check_tensor_lr,
    zeros_for,
)

__all__ = ["SparseAdam"]


class SparseAdam(GroupOptimizer):
    """Adam that moves, and remembers, only what the sparse gradient of a step has.

    >>> import rushlight as torch
    >>> words = torch.nn.Embedding.from_pretrained(torch.zeros(3, 2), freeze=False, sparse=True)
    >>> optimizer = torch.optim.SparseAdam(words.parameters(), lr=0.5)
    >>> words(torch.tensor([1])).sum().backward()
    >>> optimizer.step()
    >>> words.weight.detach()
    tensor([[ 0.0000,  0.0000],
            [-0.5000, -0.5000],
            [ 0.0000,  0.0000]])
    """

    _added_options = {"maximize": False}
    _listed = ("exp_avg", "exp_avg_sq", "step")
    _numbers = ()  # the count of steps is a Python number

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, maximize=False):
        check_tensor_lr(lr)
        if not lr > 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not eps > 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        if places := self._places(lambda param: param.is_sparse):
            raise ValueError(
                f"Sparse params at indices {places}: SparseAdam requires dense parameter tensors"
            )
        if places := self._places(lambda param: param.is_complex()):
            raise ValueError(
                f"Complex params at indices {places}: SparseAdam does not support complex parameters"
            )

    def _places(self, wanted):
        return [
            [i, j]
            for i, group in enumerate(self.param_groups)
            for j, param in enumerate(group["params"])
            if wanted(param)
        ]

    def _state_of(self, param, grad, group):
        if not grad.is_sparse:
            raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
        state = self.state[param]
        if not state:
            state["step"] = 0
            state["exp_avg"] = zeros_for(param)
            state["exp_avg_sq"] = zeros_for(param)
        return state

    def _update(self, group):
        pairs = self._graded(group)
        states = [self._state_of(param, grad, group) for param, grad in pairs]
        for (param, grad), state in zip(pairs, states, strict=True):
            state["step"] += 1
            move(param, grad, state["exp_avg"], state["exp_avg_sq"], state["step"], group)


def move(param, grad, mean, square, step, group):
    """Moves `param` and its averages at the places that the gradient has."""
    grad = grad.coalesce()
    values = -grad._values() if group["maximize"] else grad._values()
    if not values.numel():
        return
    (beta1, beta2), rate = group["betas"], as_rate(group["lr"])
    moment = _averaged(mean, grad, values, beta1)
    spread = _averaged(square, grad, values.square(), beta2).sqrt_().add_(group["eps"])
    size = rate * math.sqrt(1 - beta2**step) / (1 - beta1**step)
    param.add_(at_places_of(grad, moment.div_(spread).mul_(-size)))


def _averaged(average, grad, values, beta):
    """The new averages where the gradient has values, added to the old ones as the change they are."""
    old = average.sparse_mask(grad)._values()
    change = values.sub(old).mul_(1 - beta)
    average.add_(at_places_of(grad, change))
    return change.add_(old)
