"""The custom Functions that torch keeps under this name: a change of dtype, and a change of shape."""

from rushlight.autograd._functions.tensor import Resize, Type

__all__ = ["Resize", "Type"]
