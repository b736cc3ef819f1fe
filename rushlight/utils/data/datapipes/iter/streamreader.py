"""Where torch keeps StreamReaderIterDataPipe."""

from rushlight.utils.data.datapipes.iter.files import StreamReaderIterDataPipe

__all__ = ["StreamReaderIterDataPipe"]
