"""Programs in the language of odd_programs.py that once ended otherwise than in torch: each line of
mended_programs.txt ends alike in both libraries, with the same value or the same exception."""

import sys
import warnings
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]

from odd_programs import run_program  # noqa: E402

import rushlight  # noqa: E402

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.torch

LINES = (HERE / "mended_programs.txt").read_text().splitlines()
PROGRAMS = [line for line in LINES if line and not line.startswith("#")]


@pytest.mark.parametrize("program", PROGRAMS)
def test_it_ends_as_in_torch(program):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = run_program(torch, program)
        assert run_program(rushlight, program) == theirs
