"""docs/coverage.md and the type stubs say what is true."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("tool", ["coverage.py", "stubs.py", "pictures.py"])
def test_the_page_is_up_to_date(tool):
    command = [sys.executable, str(ROOT / "tools" / tool), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
