"""Where torch keeps ConcaterMapDataPipe and ZipperMapDataPipe."""

from rushlight.utils.data.datapipes.map import ConcaterMapDataPipe, ZipperMapDataPipe

__all__ = ["ConcaterMapDataPipe", "ZipperMapDataPipe"]
