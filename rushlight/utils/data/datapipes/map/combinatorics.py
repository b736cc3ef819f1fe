"""Where torch keeps ShufflerIterDataPipe."""

from rushlight.utils.data.datapipes.map import ShufflerIterDataPipe

__all__ = ["ShufflerIterDataPipe"]
