"""`make demo` runs to its end, in plain text when it does not write to a terminal."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import rushlight

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_tour(encoding):
    result = subprocess.run(
        [sys.executable, EXAMPLES / "tour.py"],
        env={
            **os.environ,
            "PYTHONPATH": str(Path(rushlight.__file__).parents[1]),
            "PYTHONIOENCODING": encoding,
        },
        capture_output=True,
        encoding=encoding,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    assert "\x1b" not in result.stdout
    assert "\r" not in result.stdout
    assert "Run your own" in result.stdout
