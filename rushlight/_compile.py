"""Where libraries find the decorator that keeps a function out of a compiler: there is none here."""

from rushlight.compiler import disable as _disable_dynamo

__all__ = ["_disable_dynamo"]
