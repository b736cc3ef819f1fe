"""Where torch keeps DataParallel."""

from rushlight.nn.parallel import DataParallel, data_parallel

__all__ = ["DataParallel", "data_parallel"]
