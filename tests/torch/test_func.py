"""Programs of func_programs/ in both libraries: they end alike, with the same value or the same exception,
whose first sentence is the same.

A program starts with a line `# name`; its last line is what it gives. `a(2, 3)` is a tensor of these sizes.
"""

import ast
import re
import warnings
from pathlib import Path

import pytest

import rushlight

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.torch

SETUP = """
from collections import OrderedDict, namedtuple
from torch.func import *
import math
F, nn, fwAD = torch.nn.functional, torch.nn, torch.autograd.forward_ad
Point = namedtuple('Point', 'x y')
def a(*shape, dtype=torch.float64):
    n = math.prod(shape)
    return ((torch.arange(n, dtype=torch.float64) * 0.7 + 0.3).sin() + 0.1).reshape(shape).to(dtype)
def net(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()
torch.manual_seed(7)
"""
FILES = sorted((Path(__file__).resolve().parent / "func_programs").glob("*.txt"))


def blocks(file):
    return re.split(r"\n\s*\n(?=#)", file.read_text().strip())


PROGRAMS = {
    f"{file.stem}: {block.partition(chr(10))[0][2:]}": block for file in FILES for block in blocks(file)
}


def shown(library, value):
    """A value as tuples and numbers."""
    if isinstance(value, library.Tensor):
        return (
            "T",
            str(value.dtype),
            tuple(value.shape),
            value.requires_grad,
            value.detach().reshape(-1).tolist(),
        )
    if isinstance(value, dict):
        return (type(value).__name__, tuple((key, shown(library, item)) for key, item in value.items()))
    if isinstance(value, (tuple, list)):
        return (type(value).__name__, *(shown(library, item) for item in value))
    if isinstance(value, (int, float, str, bool, type(None))):
        return value
    return re.sub(r" at 0x\w+", "", str(value)).replace("rushlight", "torch")


def sentence(text):
    first = re.split(r"\n|(?<=[a-z\)\]'\"`])\. ", text, maxsplit=1)[0]
    return re.sub(r"0x[0-9a-f]+", "0x", first.rstrip(". ").replace("rushlight", "torch"))


def outcome(library, text):
    """What a program gives: its last value, or the exception and its first sentence."""
    of_library = re.compile(r"^((?:from|import) .*)$", re.M)
    text = of_library.sub(lambda line: re.sub(r"\btorch\b", library.__name__, line[1]), SETUP + text)
    tree = ast.parse(text)
    last = ast.Expression(tree.body.pop().value)
    space = {"torch": library}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(tree, "program", "exec"), space)
            return shown(library, eval(compile(last, "program", "eval"), space))
    except Exception as error:
        return ("raises", type(error).__name__, sentence(str(error)))


def alike(ours, theirs):
    if isinstance(ours, (tuple, list)):
        return (
            isinstance(theirs, (tuple, list)) and len(ours) == len(theirs) and all(map(alike, ours, theirs))
        )
    if isinstance(ours, (float, complex)) and isinstance(theirs, (float, int, complex)):
        return (
            ours == theirs
            or (ours != ours and theirs != theirs)
            or abs(ours - theirs) <= 2e-6 * (1 + abs(theirs))
        )
    if isinstance(ours, str) and isinstance(theirs, str):
        return sentence(ours) == sentence(theirs) if "0x" in ours else ours == theirs
    return type(ours) is type(theirs) and ours == theirs


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_ends_as_in_torch(name):
    theirs = outcome(torch, PROGRAMS[name])
    ours = outcome(rushlight, PROGRAMS[name])
    assert rushlight._C.top_level() is None and rushlight.is_grad_enabled()
    assert alike(ours, theirs), f"{ours}\ntorch: {theirs}"


def test_every_program_has_a_name_of_its_own():
    assert sum(len(blocks(file)) for file in FILES) == len(PROGRAMS)
