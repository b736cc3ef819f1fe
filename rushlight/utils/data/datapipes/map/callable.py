"""Where torch keeps MapperMapDataPipe."""

from rushlight.utils.data.datapipes.map import MapperMapDataPipe

__all__ = ["MapperMapDataPipe"]
