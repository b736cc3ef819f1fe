"""Every program of the four documents runs on Rushlight and prints what torch prints."""

import contextlib
import re
import sys

import pytest
import seed_programs

from rushlight._alias import TorchFinder, name_types, rushlight_name

NUMBER = re.compile(r"-?\d+\.\d*(?:e[-+]\d+)?")


@contextlib.contextmanager
def torch_is_rushlight():
    """`import torch` means Rushlight inside, and what it meant before afterwards."""

    def take_torch():
        return {n: sys.modules.pop(n) for n in list(sys.modules) if n == "torch" or n.startswith("torch.")}

    finder = TorchFinder()
    before = take_torch()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name, module in take_torch().items():  # they say their own names again
            module.__name__ = module.__spec__.name if module.__spec__ else rushlight_name(name)
        name_types("rushlight")
        sys.modules.update(before)


def assert_same_text(actual: str, expected: str) -> None:
    """The same text; a number's last printed digit may be off by one, as sums are added in another order."""
    if actual == expected:
        return
    numbers = [NUMBER.findall(text) for text in (actual, expected)]
    assert NUMBER.sub("#", actual).split() == NUMBER.sub("#", expected).split(), actual
    for a, e in zip(*numbers, strict=True):
        mantissa, _, exponent = e.partition("e")
        digits = len(mantissa.partition(".")[2])
        assert abs(float(a) - float(e)) <= 1.001 * 10.0 ** (int(exponent or 0) - digits), f"{a} is not {e}"


def check(program):
    outcome = seed_programs.run(program)
    assert_same_text(outcome.output, program.expected_output())
    if program.raises is not None:
        assert isinstance(outcome.error, program.raises[0])
        assert str(outcome.error).startswith(program.raises[1])


@pytest.mark.parametrize("program", seed_programs.TABLE, ids=lambda p: p.name)
def test_rushlight_prints_what_torch_prints(program):
    with torch_is_rushlight():
        check(program)


@pytest.mark.torch
@pytest.mark.parametrize("program", seed_programs.TABLE, ids=lambda p: p.name)
def test_the_recorded_output_is_torchs(program):
    check(program)


def test_every_program_is_run():
    assert {path.stem for path in seed_programs.PROGRAMS.glob("*.py")} == {
        p.name for p in seed_programs.TABLE
    }
    assert {path.stem for path in seed_programs.PROGRAMS.glob("*.out")} == {
        p.name for p in seed_programs.TABLE
    }


def test_text_comparison_can_fail():
    assert_same_text("tensor([1.2345, 2.0e-03])", "tensor([1.2346, 2.1e-03])")
    with pytest.raises(AssertionError):
        assert_same_text("tensor([1.2345])", "tensor([1.2347])")
    with pytest.raises(AssertionError):
        assert_same_text(
            "tensor([1.2345], grad_fn=<AddBackward0>)", "tensor([1.2345], grad_fn=<MulBackward0>)"
        )
    with pytest.raises(AssertionError):
        assert_same_text("tensor([1.2345])", "tensor([1.2345, 2.0000])")
