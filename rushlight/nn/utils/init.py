"""Creating a module without initialising its parameters."""

from rushlight.nn.module import Module

__all__ = ["skip_init"]


def skip_init(module_cls, *args, **kwargs):
    """The module with whatever its memory held, for weights that are about to be loaded.

    >>> import rushlight.nn as nn
    >>> nn.utils.skip_init(nn.Linear, 2, 3).weight.shape
    torch.Size([3, 2])
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    import inspect

    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    # On the meta device initialising costs nothing and draws no random numbers.
    return module_cls(*args, device="meta", **kwargs).to_empty(device=device)
