"""Event files for TensorBoard, through tensorboardX; see `writer.py`."""

from rushlight.utils.tensorboard.writer import SummaryWriter

__all__ = ["SummaryWriter"]
