"""All parameters as one vector, and back."""

import rushlight
from rushlight import Tensor
from rushlight.nn.module import typename

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def _check_param_device(param, old_param_device):
    """The number of the device that a parameter is on, -1 for the CPU; the one before must be the same."""
    place = param.get_device() if param.device.type == "cuda" else -1
    if old_param_device is not None and place != old_param_device:
        raise TypeError("Found two parameters on different devices, this is currently not supported.")
    return place


def parameters_to_vector(parameters):
    """The parameters one after the other in a vector, differentiably.

    >>> import rushlight as torch
    >>> torch.nn.utils.parameters_to_vector(torch.nn.Linear(2, 3).parameters()).shape
    torch.Size([9])
    """
    device, pieces = None, []
    for param in parameters:
        device = _check_param_device(param, device)
        pieces.append(param.view(-1))
    return rushlight.cat(pieces)


def vector_to_parameters(vec, parameters):
    """Point each parameter at its slice of the vector."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {typename(vec)}")
    device, offset = None, 0
    for param in parameters:
        device = _check_param_device(param, device)
        count = param.numel()
        param.data = vec[offset : offset + count].view_as(param).data
        offset += count
