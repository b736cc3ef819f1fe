"""The old home of `Variable`."""

from rushlight.autograd import Variable, VariableMeta
from rushlight.autograd._native_names import _EngineBase as ImperativeEngine  # noqa: F401  (torch has it here)

__all__ = ["Variable", "VariableMeta"]
