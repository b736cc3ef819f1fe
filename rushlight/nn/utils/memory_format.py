"""The weights of convolutions in another memory format."""

import rushlight

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def _convert(module, memory_format, kinds):
    for part in module.modules():
        if isinstance(part, kinds):
            part.weight.data = part.weight.detach().clone(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module, memory_format):
    """Lays the weights of all 2d convolutions of a module out in a memory format.

    >>> import rushlight as torch
    >>> conv = torch.nn.Conv2d(4, 4, 3)
    >>> conv = torch.nn.utils.convert_conv2d_weight_memory_format(conv, torch.channels_last)
    >>> conv.weight.is_contiguous(memory_format=torch.channels_last)
    True
    """
    return _convert(module, memory_format, (rushlight.nn.Conv2d, rushlight.nn.ConvTranspose2d))


def convert_conv3d_weight_memory_format(module, memory_format):
    """The same for 3d convolutions."""
    return _convert(module, memory_format, (rushlight.nn.Conv3d, rushlight.nn.ConvTranspose3d))
