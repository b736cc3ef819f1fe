"""DistributedDataParallel: there is one process, so it can be named and not made."""

from rushlight.nn.module import Module

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """Trains copies of a module in several processes. It needs torch.distributed, which is not there."""

    def __init__(self, module, *args, **kwargs):
        super().__init__()
        raise ValueError(
            "Default process group has not been initialized, please make sure to call init_process_group."
        )
