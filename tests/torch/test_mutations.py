"""Calls with one or two arguments changed end alike in both libraries: in the same result, or in the same
type of exception with the same first sentence, and with the same tensors changed. Where they do not, a rule
of differences.py says why. Each library runs as another process, since some of these calls end torch.

    python tests/torch/test_mutations.py SEED COUNT [FAMILY ...]

looks at other calls and tells what no rule explains."""

import collections
import importlib
import json
import math
import re
import resource
import signal
import sys
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "torch"), str(ROOT / "tests")]

from differences import RULES, Outcome, explanation  # noqa: E402
from mutations import mutated_calls  # noqa: E402
from processes import lines_of  # noqa: E402

pytestmark = pytest.mark.torch

SEED, COUNT = 11, 3000
FAMILIES = ("elementwise", "reduce", "shape", "index", "special", "numeric", "create")
SOLVERS = ("linalg", "fft")
LAYERS = ("functional", "norm", "conv")
# Results that are drawn, or memory that nobody wrote.
DRAWN = ("rand", "normal", "uniform_", "exponential_", "geometric_", "cauchy_", "bernoulli", "multinomial",
         "poisson", "empty", "random_", "resize_", "dropout", "manual_seed")  # fmt: skip


def number(value):
    """A number as JSON can hold it."""
    if isinstance(value, complex):
        return [number(value.real), number(value.imag)]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def close(a, b):
    """Whether two descriptions differ in the last bits of numbers only."""
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(close, a, b))
    numbers = all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in (a, b))
    return abs(a - b) <= 1e-2 * (1 + abs(a)) if numbers else a == b


def described(library, value):
    """A result in words that are the same for both libraries."""
    if isinstance(value, library.Tensor):
        strides = list(value.stride()) if value.numel() > 1 else []
        told = [str(value.dtype).rpartition(".")[2], list(value.shape), value.requires_grad, strides]
        if value.is_meta or value.numel() > 200 or min(value.shape, default=0) < 0:  # torch leaves such
            return told
        try:
            return [*told, [number(one) for one in value.detach().reshape(-1).tolist()]]
        except RuntimeError:  # a tensor that torch left half resized
            return told
    if isinstance(value, (list, tuple)):
        return [described(library, one) for one in value[:20]]
    return repr(value).replace("rushlight", "torch")[:200]


# What torch tells of itself around a sentence: the line that failed, and whom to write to.
SURROUNDINGS = re.compile(
    r"^\[enforce fail at [^]]*\] err == 0\. |  \(Could this error message be improved.*$"
)


def sentence(error):
    """The first line of an error, as both libraries say it."""
    return SURROUNDINGS.sub("", str(error).partition("\n")[0].replace("rushlight", "torch"))


def tensors_in(library, value):
    if isinstance(value, library.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from tensors_in(library, one)


def run(library, seed, count, start, families):
    """Prints what every call is and what becomes of it."""
    resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))
    library.set_num_threads(1)
    warnings.simplefilter("ignore")
    for told, function, args, kwargs in mutated_calls(library, seed, count, families or None, start):
        print(json.dumps([told, "begins", "", []]), flush=True)
        drawn = any(word in told for word in DRAWN)
        given = list(tensors_in(library, [args, list(kwargs.values())]))
        before = [described(library, t) for t in given]
        signal.alarm(20)  # ends the process
        library.default_generator.manual_seed(0)
        try:
            result = function(*args, **kwargs)
            end = ["taken", None if drawn else described(library, result)]
        except Exception as error:
            end = [type(error).__name__, sentence(error)]
        signal.alarm(0)
        after = [] if drawn and end[0] == "taken" else [described(library, t) for t in given]
        print(json.dumps([told, *end, [now if now != was else 0 for now, was in zip(after, before)]]))
    sys.stdout.flush()


def outcomes(name, seed, count, families):
    """What became of every call in a library, and the calls that ended its process."""
    told, ended = lines_of(__file__, name, seed, count, families, lambda line: int(line[0].split()[1][:-1]))
    found = {call: Outcome(kind, text, tuple(changed)) for call, kind, text, changed in told}
    return found, [line[0] for line in ended]


def differences(seed, count, families):
    """How many calls each rule explains, those that none does, and those that ended our process."""
    theirs, _ = outcomes("torch", seed, count, families)
    mine, ended = outcomes("rushlight", seed, count, families)
    explained, unexplained = collections.Counter(), []
    for told, ours in mine.items():
        torchs = theirs.get(told, Outcome("begins", ""))
        alike = torchs.kind == ours.kind and close(torchs.text, ours.text)
        if "begins" in (torchs.kind, ours.kind) or (alike and close(torchs.changed, ours.changed)):
            continue
        name = explanation(told, torchs, ours)
        explained[name] += 1
        if name is None:
            ends = [torchs, ours] if torchs.text == ours.text else [(e.kind, e.text) for e in (torchs, ours)]
            unexplained.append(f"{told}\n    torch {ends[0]}\n    ours  {ends[1]}")
    assert len(set(mine) & set(theirs)) > 0.97 * len(mine)
    return explained, unexplained, ended


def test_no_difference_is_left_unexplained():
    pytest.importorskip("torch")
    _, unexplained, ended = differences(SEED, COUNT, FAMILIES)
    assert not ended
    assert not unexplained, "\n".join(unexplained)


def test_hardly_any_difference_in_solvers_and_transforms():
    pytest.importorskip("torch")
    _, unexplained, ended = differences(SEED, COUNT // 2, SOLVERS)
    assert not ended
    assert len(unexplained) <= 0.0007 * COUNT // 2, "\n".join(unexplained)


def test_hardly_any_difference_in_layers():
    pytest.importorskip("torch")
    _, unexplained, ended = differences(SEED, COUNT // 2, LAYERS)
    assert not ended
    assert len(unexplained) <= 0.001 * COUNT // 2, "\n".join(unexplained)


def test_every_rule_has_its_reason():
    text = (ROOT / "docs" / "design" / "differences.md").read_text()
    assert [name for name in RULES if f"**{name[0].upper()}{name[1:]}**" not in text] == []


if __name__ == "__main__":
    if sys.argv[1] == "run":
        run(importlib.import_module(sys.argv[2]), *map(int, sys.argv[3:6]), sys.argv[6:])
    else:
        counted, left, ended = differences(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:] or FAMILIES)
        print("\n".join(left), *ended, dict(counted), sep="\n")
