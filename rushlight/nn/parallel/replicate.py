"""Copies of a module whose parameters are on other devices."""

from rushlight.nn.parallel import comm
from rushlight.nn.parallel._functions import Broadcast

__all__ = ["replicate"]


def _replicatable_module(module, memo=None):
    """True: only compiled modules could not be copied."""
    return True


def replicate(network, devices, detach=False):
    """A copy of the module for each device; those with parameters need devices that are not there.

    >>> import rushlight as torch
    >>> torch.nn.parallel.replicate(torch.nn.ReLU(), [0, 1])
    [ReLU(), ReLU()]
    """
    if not devices:
        return []
    for device in devices:
        comm.device_index(device)
    tensors = [*network.parameters(), *network.buffers()]
    if tensors:
        Broadcast.apply(devices, *tensors)
    copies = [{} for _ in devices]
    for module in network.modules():
        for made in copies:
            made[module] = module._replicate_for_data_parallel()
    for made in copies:
        for module, copy in made.items():
            for name, child in module._modules.items():
                copy._modules[name] = None if child is None else made[child]
    return [made[network] for made in copies]
