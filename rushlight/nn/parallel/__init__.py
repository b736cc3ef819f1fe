"""Training on several devices. There is one, so DataParallel calls its module with the whole batch."""

from rushlight._warn import warn
from rushlight.nn.parallel.data_parallel import DataParallel, data_parallel
from rushlight.nn.parallel.distributed import DistributedDataParallel
from rushlight.nn.parallel.parallel_apply import parallel_apply
from rushlight.nn.parallel.replicate import replicate
from rushlight.nn.parallel.scatter_gather import gather, scatter

__all__ = [
    "DataParallel",
    "DistributedDataParallel",
    "data_parallel",
    "gather",
    "parallel_apply",
    "replicate",
    "scatter",
]


def DistributedDataParallelCPU(*args, **kwargs):
    """The older name of DistributedDataParallel."""
    warn(
        "`torch.nn.parallel.DistributedDataParallelCPU` is deprecated, please use "
        "`torch.nn.parallel.DistributedDataParallel` instead.",
        FutureWarning,
    )
    return DistributedDataParallel(*args, **kwargs)
