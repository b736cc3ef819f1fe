"""Calls with one or two arguments changed: both libraries take them, or both refuse them with the same type
of exception. Not all do (see LIMITS and the shares below): what torch refuses because of a library it is
built with, or takes by accident, is not asked for. torch runs as another process, since some of these calls
end it."""

import json
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mutations import mutated_calls

pytestmark = pytest.mark.torch

SEED, COUNT = 11, 1500
# What torch says where nothing is wrong with the arguments: limits of its own.
LIMITS = (
    "MKL FFT error",
    "does not support automatic differentiation for outputs with complex dtype",
    "view size is not compatible with input tensor's size and stride",
)


def outcomes(library, start=0):
    """What every call is and what became of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for told, function, args, kwargs in mutated_calls(library, SEED, COUNT):
            if int(told.split()[1][:-1]) < start:
                continue
            yield told, "begins", ""
            try:
                function(*args, **kwargs)
                yield told, "taken", ""
            except Exception as error:
                yield told, type(error).__name__, str(error).partition("\n")[0]


def outcomes_of_torch():
    found, start = {}, 0
    for _ in range(20):  # each crash of torch ends a process
        command = [sys.executable, __file__, str(start)]
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        lines = [json.loads(line) for line in run.stdout.splitlines() if line.endswith("]")]
        found |= {told: (kind, sentence) for told, kind, sentence in lines}
        if run.returncode == 0:
            return found
        start = int(lines[-1][0].split()[1][:-1]) + 1
    raise RuntimeError("torch crashes too often")


def test_the_same_calls_are_taken():
    pytest.importorskip("torch")
    import rushlight

    theirs = outcomes_of_torch()
    count, taken_by_one, other_type = 0, [], []
    for told, kind, sentence in outcomes(rushlight):
        kind_torch, sentence_torch = theirs.get(told, ("begins", ""))
        if "begins" in (kind, kind_torch) or any(limit in sentence_torch for limit in LIMITS):
            continue
        count += 1
        shown = f"{told}\n    torch {kind_torch} {sentence_torch}\n    ours  {kind} {sentence}"
        if kind != kind_torch:
            (taken_by_one if "taken" in (kind, kind_torch) else other_type).append(shown)
    assert count > 0.8 * COUNT
    assert len(taken_by_one) <= 0.012 * count, "\n".join(taken_by_one)
    assert len(other_type) <= 0.025 * count, "\n".join(other_type)


if __name__ == "__main__":
    import torch

    for line in outcomes(torch, int(sys.argv[1])):
        print(json.dumps(line), flush=True)
