"""DataParallel. There is one device, so it calls its module with the whole batch."""

from rushlight.nn.module import Module
from rushlight.nn.parallel.distributed import DistributedDataParallel

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]


class DataParallel(Module):
    """Calls ``module``, which torch would copy to several devices, each for a part of the batch.

    >>> import rushlight as torch
    >>> torch.nn.DataParallel(torch.nn.Linear(2, 3))(torch.ones(4, 2)).shape
    torch.Size([4, 3])
    """

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        if device_ids:
            raise NotImplementedError("DataParallel over devices is not implemented")
        self.dim = dim
        self.module = module
        self.device_ids = []
        self.output_device = output_device

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)


def data_parallel(module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None):
    """The result of ``module`` for the inputs, on the one device there is.

    >>> import rushlight as torch
    >>> torch.nn.parallel.data_parallel(torch.nn.Linear(2, 3), torch.ones(4, 2)).shape
    torch.Size([4, 3])
    """
    if device_ids:
        raise NotImplementedError("data_parallel over devices is not implemented")
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    return module(*inputs, **(module_kwargs or {}))
