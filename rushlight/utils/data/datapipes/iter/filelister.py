"""Where torch keeps FileListerIterDataPipe."""

from rushlight.utils.data.datapipes.iter.files import FileListerIterDataPipe

__all__ = ["FileListerIterDataPipe"]
