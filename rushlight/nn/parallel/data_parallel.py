"""DataParallel, which torch spreads over devices and here, as in torch without a GPU, is its module."""

from typing import Generic, TypeVar

from rushlight.nn.module import Module

__all__ = ["DataParallel", "data_parallel"]

T = TypeVar("T", bound=Module)


class DataParallel(Module, Generic[T]):
    """Calls ``module``, which torch would copy to several devices, each for a part of the batch.

    >>> import rushlight as torch
    >>> torch.nn.DataParallel(torch.nn.Linear(2, 3))(torch.ones(4, 2)).shape
    torch.Size([4, 3])
    """

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        # Without devices to spread over, the other arguments have no meaning and torch keeps none of them.
        self.module = module
        self.device_ids = []

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)


def data_parallel(module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None):
    """The module on parts of the inputs, each on a device of its own: there are none to spread them over."""
    raise RuntimeError("device type could not be determined")
