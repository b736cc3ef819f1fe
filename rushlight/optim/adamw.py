"""Adam with weight decay that does not go through the gradient."""

from rushlight.optim._forms import functional
from rushlight.optim.adam import Adam

__all__ = ["AdamW"]


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameters directly (Loshchilov and Hutter 2019).

    >>> import rushlight as torch
    >>> torch.optim.AdamW([torch.nn.Parameter(torch.ones(1))]).defaults["weight_decay"]
    0.01
    """

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=1e-2,
        amsgrad=False,
        *,
        maximize=False,
        foreach=None,
        capturable=False,
        differentiable=False,
        fused=None,
    ):
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True


__getattr__, __dir__ = functional(
    AdamW,
    "adamw",
    "exp_avgs=exp_avg exp_avg_sqs=exp_avg_sq max_exp_avg_sqs=max_exp_avg_sq state_steps=step",
    "foreach=None capturable=False differentiable=False fused=None grad_scale=None found_inf=None "
    "has_complex=False * amsgrad beta1 beta2 lr weight_decay eps maximize",
    "",
    (),
    decoupled_weight_decay=True,
)
