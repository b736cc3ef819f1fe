"""Where torch keeps BatcherMapDataPipe."""

from rushlight.utils.data.datapipes.map import BatcherMapDataPipe

__all__ = ["BatcherMapDataPipe"]
