"""The old home of `Variable`."""

from rushlight.autograd import Variable

__all__ = ["Variable"]
