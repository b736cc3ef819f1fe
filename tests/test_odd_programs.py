"""What must hold of any small program, however odd its parts: no crash, and an exception that says what is
wrong. `make asan` runs this under AddressSanitizer."""

import warnings

import pytest
from odd_programs import programs, run_program

import rushlight

# What torch raises for bad input, and what Python, NumPy and the unpickler raise.
SANE = {"taken", "TypeError", "ValueError", "RuntimeError", "NotImplementedError", "IndexError", "KeyError",
        "AttributeError", "AssertionError", "OverflowError", "ZeroDivisionError", "MemoryError", "EOFError",
        "BufferError", "UnpicklingError", "UnicodeDecodeError", "FileNotFoundError", "IsADirectoryError",
        "UnsupportedOperation", "PicklingError", "_UFuncNoLoopError", "UFuncTypeError", "OSError",
        "SyntaxError"}  # fmt: skip
# Fills memory that the test has not got, or takes very long: what is asked for is made.
LARGE = ("2**40", "10**30")


@pytest.mark.parametrize("seed", range(3))
def test_odd_programs_end_in_sane_ways(seed):
    wrong, taken = [], 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _, text in programs(seed, 600):
            if any(word in text for word in LARGE):
                continue
            kind, said = run_program(rushlight, text)
            taken += kind == "taken"
            if kind not in SANE or "INTERNAL" in said:
                wrong.append(f"{text} raised {kind}: {said}")
    assert not wrong, "\n".join(wrong)
    assert 150 < taken < 500
