"""DataParallel: a module whose batch is split over GPUs; where there is none, the module itself."""

import rushlight
from rushlight.nn.module import Module

__all__ = ["DataParallel", "data_parallel"]


class DataParallel(Module):
    """Calls `module`. Splitting a batch over several GPUs is not supported.

    >>> import rushlight as torch
    >>> torch.nn.DataParallel(torch.nn.ReLU())(torch.tensor([-1.0, 1.0]))
    tensor([0., 1.])
    """

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        if device_ids and rushlight.cuda.is_available() and len(device_ids) > 1:
            raise NotImplementedError("DataParallel over several GPUs: Rushlight computes on one device")
        self.module = module
        self.dim = dim
        self.device_ids = []
        self.output_device = output_device

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)


def data_parallel(module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None):
    """Calls a module as DataParallel does."""
    if not isinstance(inputs, tuple):
        inputs = (inputs,) if inputs is not None else ()
    return DataParallel(module, device_ids, output_device, dim)(*inputs, **(module_kwargs or {}))
