"""The profiler under its older name."""

from rushlight.autograd.profiler import profile

__all__ = ["profile"]
