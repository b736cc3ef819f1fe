"""Where torch keeps FileOpenerIterDataPipe."""

from rushlight.utils.data.datapipes.iter.files import FileOpenerIterDataPipe

__all__ = ["FileOpenerIterDataPipe"]
