"""Comparing results and making inputs in tests."""

from rushlight.testing import _utils
from rushlight.testing._comparison import assert_allclose, assert_close
from rushlight.testing._creation import make_tensor
from rushlight.testing._file_check import FileCheck

__all__ = ["assert_allclose", "assert_close", "make_tensor", "FileCheck"]
