"""Comparing results and making inputs in tests."""

from rushlight.testing._comparison import assert_close
from rushlight.testing._creation import make_tensor

__all__ = ["assert_close", "make_tensor"]
