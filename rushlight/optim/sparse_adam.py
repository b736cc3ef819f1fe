"""SparseAdam, which torch defines for sparse gradients only."""

from rushlight.optim.optimizer import GroupOptimizer, check_betas, check_tensor_lr

__all__ = ["SparseAdam"]


class SparseAdam(GroupOptimizer):
    """Adam for sparse gradients. Gradients here are dense, and a step says so in torch's words."""

    _added_options = {"maximize": False}

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, maximize=False):
        check_tensor_lr(lr)
        if not lr > 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not eps > 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        places = [
            [i, j]
            for i, group in enumerate(self.param_groups)
            for j, param in enumerate(group["params"])
            if param.is_complex()
        ]
        if places:
            raise ValueError(
                f"Complex params at indices {places}: SparseAdam does not support complex parameters"
            )

    def _update(self, group):
        if any(param.grad is not None for param in group["params"]):
            raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
