"""The gradient errors of torch, provoked in both libraries by the small programs of gradient_errors.txt: the
same type and first sentence, and in the first part of that list a paragraph that says where or what to do."""

import re
from pathlib import Path

import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")

SETUP = """
import copy, importlib

ck = importlib.import_module(torch.__name__ + ".utils.checkpoint")
fw, func = torch.autograd.forward_ad, torch.autograd.functional
once = torch.autograd.function.once_differentiable
o, grad = torch.ones, torch.autograd.grad
x, z, c, m = o(3, requires_grad=True), o(3, requires_grad=True), o(3), o(2, 2, requires_grad=True)
d = torch.ones(2, dtype=torch.float64, requires_grad=True)
y = x * 2
s = y.sum() * y.sum()
def ng(make):
    with torch.no_grad():
        return make()
def inf(make):
    with torch.inference_mode():
        return make()
def lev(make):
    with fw.dual_level():
        return make()
def det(run):
    with torch.autograd.detect_anomaly():
        return run()
def hooks(make, pack, unpack):
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        return make()
def with_disabled(text, make):
    with torch.autograd.graph.disable_saved_tensors_hooks(text):
        return make()
def F(forward, backward):
    body = {"forward": staticmethod(forward)} | ({"backward": staticmethod(backward)} if backward else {})
    return type("F", (torch.autograd.Function,), body)
def g_of(value):
    p = o(1, requires_grad=True)
    p.grad = torch.tensor([value])
    return p
"""
_, EXPLAINED, PLAIN = re.split(
    r"^# .*\n", Path(__file__).with_name("gradient_errors.txt").read_text(), flags=re.M
)


def refusal(library, program):
    names = {"torch": library}
    exec(SETUP, names)
    with pytest.raises(Exception) as caught:
        exec(program, names)
    first = re.split(r"(?<=[.!?])\s|\n", str(caught.value))[0].rstrip(".")
    shown = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
    return f"{caught.type.__name__}: {first}", shown


@pytest.mark.parametrize("program", EXPLAINED.splitlines())
def test_same_error_explained(program):
    said, text = refusal(rushlight, program)
    assert said == refusal(torch, program)[0]
    assert "\n\n  " in text


@pytest.mark.parametrize("program", PLAIN.splitlines())
def test_same_error(program):
    assert refusal(rushlight, program)[0] == refusal(torch, program)[0]
