"""Small programs that are wrong in one place or another (odd_programs.py) end alike in both libraries: with
the same value, or the same type of exception and first sentence. Few differ, for the reasons that
docs/design/differences.md gives; none ends our process. Each library runs as another process, since some of
these programs end torch.

    python tests/torch/test_odd_programs.py SEED COUNT [FAMILY ...]

looks at other programs and prints what differs."""

import importlib
import json
import resource
import signal
import sys
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "torch"), str(ROOT / "tests")]

from odd_programs import programs, run_program  # noqa: E402
from processes import lines_of  # noqa: E402

pytestmark = pytest.mark.torch

SEED, COUNT = 3, 2000


def run(library, seed, count, start, families):
    resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))
    library.set_num_threads(1)
    warnings.simplefilter("ignore")
    for number, text in programs(seed, count, families or None, start):
        print(json.dumps([number, text, "begins", ""]), flush=True)
        signal.alarm(20)  # ends the process
        kind, said = run_program(library, text)
        signal.alarm(0)
        print(json.dumps([number, text, kind, said]))
    sys.stdout.flush()


def outcomes(name, seed, count, families):
    """What became of every program in a library, and the programs that ended its process."""
    told, ended = lines_of(__file__, name, seed, count, families, lambda line: line[0])
    return {(number, text): (kind, said) for number, text, kind, said in told}, [line[1] for line in ended]


def failed_inside(theirs, ours):
    """Both refuse, torch by an assertion that names a file of its sources."""
    return "taken" not in (theirs[0], ours[0]) and "/pytorch/" in theirs[1]


def differences(seed, count, families):
    theirs, _ = outcomes("torch", seed, count, families)
    mine, ended = outcomes("rushlight", seed, count, families)
    differ = []
    for key, ours in mine.items():
        torchs = theirs.get(key, ("begins", ""))
        if "begins" not in (torchs[0], ours[0]) and torchs != ours and not failed_inside(torchs, ours):
            differ.append((key[1], torchs, ours))
    return len(mine), differ, ended


def test_few_programs_end_otherwise_than_in_torch():
    pytest.importorskip("torch")
    ran, differ, ended = differences(SEED, COUNT, [])
    told = [f"{text}\n    torch {theirs}\n    ours  {ours}" for text, theirs, ours in differ]
    assert not ended
    assert len(differ) < 0.02 * ran, "\n".join(told)


if __name__ == "__main__":
    if sys.argv[1] == "run":
        run(importlib.import_module(sys.argv[2]), *map(int, sys.argv[3:6]), sys.argv[6:])
    else:
        ran, differ, ended = differences(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
        for text, *ends in sorted(differ):
            told = [f"{kind}: {said[:230]}" for kind, said in ends]
            print(f"{text}\n    torch {told[0]}\n    ours  {told[1]}")
        print(f"{ran} programs, {len(differ)} differ, ended: {ended}")
