"""The old home of `Variable`."""

from rushlight.autograd import Variable, VariableMeta

__all__ = ["Variable", "VariableMeta"]
