"""torch._dynamo.test_case: what test suites take their classes from, whether or not anything is compiled."""

from __future__ import annotations

import contextlib
import unittest
from typing import Any

try:  # where torch's own helpers for tests are to be found
    from rushlight.testing._internal.common_utils import TestCase as _Base  # type: ignore
    from rushlight.testing._internal.common_utils import run_tests
except ImportError:
    _Base = unittest.TestCase

    def run_tests(argv: Any = None) -> None:
        """Runs the tests of the main module."""
        unittest.main(argv=argv)


class TestCase(_Base):
    """A test case whose class may enter contexts: they are left when the class is done."""

    _exit_stack: contextlib.ExitStack

    @classmethod
    def setUpClass(cls) -> None:
        """Begins the stack of contexts."""
        super().setUpClass()
        cls._exit_stack = contextlib.ExitStack()

    @classmethod
    def tearDownClass(cls) -> None:
        """Leaves the contexts."""
        cls._exit_stack.close()
        super().tearDownClass()
