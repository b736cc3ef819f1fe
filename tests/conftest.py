"""What every test shares: tests under tests/torch compare with torch and carry its mark."""

from pathlib import Path

import pytest

TORCH_TESTS = Path(__file__).parent / "torch"


def pytest_collection_modifyitems(items):
    for item in items:
        if TORCH_TESTS in item.path.parents:
            item.add_marker(pytest.mark.torch)
