"""Where torch keeps SequenceWrapperMapDataPipe."""

from rushlight.utils.data.datapipes.map import SequenceWrapperMapDataPipe

__all__ = ["SequenceWrapperMapDataPipe"]
