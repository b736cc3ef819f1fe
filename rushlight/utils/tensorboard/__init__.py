"""Records of training runs for TensorBoard, which need no TensorBoard to be written."""

from rushlight.utils.tensorboard.writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]
