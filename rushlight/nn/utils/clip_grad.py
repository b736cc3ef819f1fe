"""Limiting the size of gradients. ``foreach`` chooses an implementation in torch; numbers are the same."""

import types

import rushlight
from rushlight import Tensor
from rushlight._warn import warn

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
]


def _gradients(parameters):
    parameters = [parameters] if isinstance(parameters, Tensor) else parameters
    return [param.grad for param in parameters if param.grad is not None]


@rushlight.no_grad()
def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The norm of all tensors together, as if they were one vector.

    >>> import rushlight as torch
    >>> torch.nn.utils.get_total_norm([torch.tensor([3.0]), torch.tensor([4.0])])
    tensor(5.)
    """
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    norm_type = float(norm_type)
    if not tensors:
        return rushlight.tensor(0.0)
    norms = rushlight.stack([tensor.norm(norm_type) for tensor in tensors])
    total = norms.norm(norm_type)
    if error_if_nonfinite and not total.isfinite():
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it "
            "cannot be clipped. To disable this error and scale the gradients by the non-finite norm anyway, "
            "set `error_if_nonfinite=False`"
        )
    return total


@rushlight.no_grad()
def clip_grads_with_norm_(parameters, max_norm, total_norm, foreach=None):
    """Scale the gradients in place by ``max_norm / total_norm`` if that is less than 1."""
    gradients, largest = _gradients(parameters), float(max_norm)
    if not gradients:
        return
    factor = (largest / (total_norm + 1e-6)).clamp(max=1.0)
    device = factor.device
    for grad in gradients:
        grad.mul_(factor if grad.device == device else factor.to(grad.device))


@rushlight.no_grad()
def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Scale the gradients in place so that their total norm is at most ``max_norm``; return it.

    >>> import rushlight as torch
    >>> x = torch.nn.Parameter(torch.tensor([3.0, 4.0]))
    >>> x.square().sum().backward()
    >>> torch.nn.utils.clip_grad_norm_([x], max_norm=1.0)
    tensor(10.)
    >>> x.grad
    tensor([0.6000, 0.8000])
    """
    # A generator is gone through twice.
    generated = isinstance(parameters, types.GeneratorType)
    parameters = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    if generated and not parameters:
        warn("`parameters` is an empty generator, no gradient clipping will occur.")
    total = get_total_norm(_gradients(parameters), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(parameters, max_norm, total)
    return total


def clip_grad_norm(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Deprecated in torch: use ``clip_grad_norm_``."""
    warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite)


@rushlight.no_grad()
def clip_grad_value_(parameters, clip_value, foreach=None):
    """Limit every element of the gradients in place to [-clip_value, clip_value]."""
    limit, gradients = float(clip_value), _gradients(parameters)
    if not gradients:  # torch groups them by device first, which takes no empty list
        raise RuntimeError(
            "Expected !nested_tensorlist[0].empty() to be true, but got false.  (Could this error message be "
            "improved?  If so, please report an enhancement request to PyTorch.)"
        )
    for grad in gradients:
        grad.clamp_(min=-limit, max=limit)
