"""Programs of one line that once ended otherwise than in torch: both libraries give the same, or refuse with
the same type and first sentence. odd_lines.txt has them, in the language of odd_programs.py."""

import sys
import warnings
from pathlib import Path

import pytest

import rushlight

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from odd_programs import run_program

torch = pytest.importorskip("torch")

LINES = Path(__file__).with_name("odd_lines.txt").read_text().splitlines()


@pytest.mark.parametrize("part", range(8))
def test_odd_lines(part):
    lines = LINES[part::8]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = {line: run_program(rushlight, line) for line in lines}
        assert ours == {line: run_program(torch, line) for line in lines}
