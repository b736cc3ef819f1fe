"""The examples under torch, by changing one import: the same losses, number by number."""

import sys
import types
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
STEPS = {"char_gpt": 8, "digits_cnn": 8, "policy_gradient": 3, "pinn": 20}
NAMES = [
    "regression", "digits_cnn", "char_gpt", "vae", "forecast_lstm", "pinn", "policy_gradient", "accumulation",
    "custom_function",
]  # fmt: skip


def load(name, line):
    source = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    assert source.count("import rushlight as torch\n") == 1
    module = types.ModuleType(f"{name}_under_test")
    module.__file__ = str(EXAMPLES / f"{name}.py")
    exec(
        compile(source.replace("import rushlight as torch\n", line), module.__file__, "exec"), module.__dict__
    )
    return module


@pytest.mark.parametrize("name", NAMES)
def test_the_same_losses(name, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(EXAMPLES), *sys.path])
    steps = STEPS.get(name, 30)
    ours = load(name, "import rushlight as torch\n").train(steps)
    theirs = load(name, "import torch\n").train(steps)
    assert ours == pytest.approx(theirs, rel=2e-4, abs=1e-5)
