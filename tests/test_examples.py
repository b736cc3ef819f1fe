"""The examples train: on a small setting each one's loss falls, and its pictures are pictures."""

import importlib
import math
import sys
import zlib
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
# Steps, and what part of the first losses the last ones are at most.
SETTINGS = {
    "regression": (60, None),
    "digits_cnn": (120, 0.8),
    "char_gpt": (120, 0.85),
    "vae": (60, 0.8),
    "forecast_lstm": (60, 0.8),
    "pinn": (150, 0.8),
    "policy_gradient": (3, None),
    "accumulation": (60, 0.5),
    "custom_function": (100, 0.8),
}


@pytest.fixture
def example(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if (
            getattr(sys.modules[name], "__file__", None)
            and EXAMPLES in Path(sys.modules[name].__file__).parents
        ):
            del sys.modules[name]


@pytest.mark.parametrize("name", SETTINGS)
def test_losses_fall(example, name):
    steps, most = SETTINGS[name]
    losses = example(name).train(steps)
    assert all(math.isfinite(loss) for loss in losses)
    tenth = len(losses) // 10
    if most is not None:
        assert sum(losses[-tenth:]) < most * sum(losses[:tenth])


def test_results(example):
    regression = example("regression")
    _, slope, intercept = regression.linear(200)
    assert abs(slope - 3) < 0.1 and abs(intercept + 1) < 0.1
    assert regression.logistic(200)[1] > 0.9
    accumulation = example("accumulation")
    for one, other in zip(accumulation.fit(20, 1), accumulation.fit(20, 8)):
        assert abs(one - other) < 1e-5


def test_final_figures(example):
    """What each program prints at its end, after fewer steps."""
    digits = example("digits_cnn")
    model = digits.fit(150, batch=32)[1].eval()
    images, labels = digits.draw(200)
    assert (model(images).argmax(1) == labels).float().mean() > 0.7
    lstm = example("forecast_lstm")
    _, model, data = lstm.fit(80, hidden=16, length=30, ahead=5, batch=8)
    known, later = data[:500], data[500:530].tolist()
    guess, naive = lstm.forecast(model, known, 30), [known[-1].item()] * 30
    assert math.dist(guess, later) < 0.7 * math.dist(naive, later)
    pinn = example("pinn")
    times = [0.05 * i for i in range(60)]
    model = pinn.fit(2000, width=16)[1]
    learnt = model(pinn.torch.tensor(times).reshape(-1, 1)).flatten().tolist()
    assert max(abs(value - pinn.exact(t)) for value, t in zip(learnt, times)) < 0.1
    lengths = example("policy_gradient").fit(100, limit=60)[0]
    assert sum(lengths[-20:]) > 1.2 * sum(lengths[:20])
    gpt = example("char_gpt")
    losses, model = gpt.fit(60, context=16, width=32, batch=4)
    text = gpt.write(model, "Rushlight ", 20)
    # The text is the README, which changes: a single batch says little.
    assert sum(losses[-20:]) / 20 < 0.85 * losses[0] and text.startswith("Rushlight ") and len(text) == 30
    binary = example("custom_function")
    assert binary.fit(150, binary.BinaryLinear)[-1] < 0.02


def test_pictures(example, tmp_path):
    picture = example("picture")
    curves = picture.save_curves(
        tmp_path / "a.svg", {"one": [1.0, 0.1, 0.01], "two": [2.0, 3.0]}, "Title", log=True
    )
    text = curves.read_text()
    assert text.startswith("<svg") and text.count("<polyline") == 2 and "Title" in text
    images = [[[0.0, 1.0], [0.5, 2.0]]] * 3
    data = picture.save_grey(tmp_path / "a.png", picture.grid(images, 2), scale=2).read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n" and data[16:24] == bytes([0, 0, 0, 12, 0, 0, 0, 12])
    start = data.index(b"IDAT") + 4
    assert len(zlib.decompress(data[start:-16])) == 12 * 13
