"""What every test shares: the mark of the comparisons with torch, and how hypothesis explores."""

import gc
import importlib.util
import multiprocessing
import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

TORCH_TESTS = Path(__file__).parent / "torch"

# Results of a size that tests reach are stored past the caches (Note [streaming stores]) on every machine.
os.environ.setdefault("RUSHLIGHT_CACHE", str(1 << 21))

# Datasets of tests live in modules that another process cannot import; Python 3.14 no longer forks by itself.
multiprocessing.set_start_method("fork", force=True)

# tests/ is on the path, where Python would take the directory tests/torch for an (empty) package torch.
_torch = importlib.util.find_spec("torch")
if _torch is not None and _torch.origin is None:
    sys.modules["torch"] = None  # makes `import torch` fail as it should without torch

# Machines differ in speed, so no deadline; continuous integration explores the same examples each time.
settings.register_profile("local", deadline=None, print_blob=True)
settings.register_profile("ci", parent=settings.get_profile("local"), derandomize=True)
settings.load_profile("local")


def pytest_collection_modifyitems(items):
    for item in items:
        if TORCH_TESTS in item.path.parents:
            item.add_marker(pytest.mark.torch)


def pytest_collection_finish():
    """What there is when the tests begin stays: thousands of them, and every module. A collection that looked
    at all that would take half a second, and some tests ask for dozens."""
    gc.collect()
    gc.freeze()
