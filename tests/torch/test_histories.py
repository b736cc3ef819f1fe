"""Random programs about the history of tensors (histories.py) do the same in both libraries: values,
gradients, versions, bases, the names of nodes and of what comes after them, refusals, warnings.

    python tests/torch/test_histories.py SEED COUNT

looks at other programs and prints what differs."""

import importlib
import json
import math
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "torch"), str(ROOT / "tests")]

from histories import program, run, source  # noqa: E402
from processes import lines_of  # noqa: E402

pytestmark = pytest.mark.torch

SEED, COUNT = 1, 500
PARTS = (
    "autograd.forward_ad", "autograd.functional", "utils.checkpoint", "func", "overrides",
    "utils._python_dispatch", "nn.utils.parametrizations", "optim.swa_utils",
)  # fmt: skip


def close(mine, theirs):
    if isinstance(theirs, list):
        return isinstance(mine, list) and len(mine) == len(theirs) and all(map(close, mine, theirs))
    if isinstance(theirs, float) and isinstance(mine, float):
        both_nan = mine != mine and theirs != theirs
        return both_nan or math.isclose(mine, theirs, rel_tol=1e-4, abs_tol=1e-5)
    return mine == theirs


def difference(mine, theirs):
    """How two observations differ, in a few words; None if they don't."""
    if len(mine) != len(theirs) or mine[0] != theirs[0]:
        return f"{theirs} / {mine}"
    for ours, torchs in zip(mine[1:], theirs[1:], strict=True):
        if isinstance(ours, dict) and isinstance(torchs, dict):
            for name, value in torchs.items():
                if not close(ours[name], value):
                    return f"{name}: {value} / {ours[name]}"
        elif ours != torchs:
            return f"{torchs} / {ours}"
    return None


def all_told(name, seed, count):
    told, ended = lines_of(__file__, name, seed, count, [], lambda line: line[0])
    return dict(line for line in told if line[1] is not None), [line[0] for line in ended]


# Sentences of torch about itself, and of what it lacks where the same is computed here.
FAILURES = re.compile(
    r"INTERNAL ASSERT FAILED|^numel: integer multiplication overflow|^Autograd not support dtype"
    r"|^fallback doesn't currently support mutable TensorLists|^Could not run 'aten::"
    r"|<lambda>\(\) missing 1 required positional argument: 'v'$"
    r"|^While computing batched gradients, got: Batching rule not implemented"
)


def excuse(told, mine, theirs, statements):
    """The rule of docs/design/differences.md ("Histories") that a difference falls under, or None.

    mine, theirs: what was told up to it; statements: those of the program up to it."""
    ours, torchs = mine[-1], theirs[-1]
    changed = torchs[1:] if torchs[0] == "refused, and changed" else []
    if len(torchs) == 3 and isinstance(torchs[2], str) and FAILURES.search(torchs[2]):
        return "a failure inside torch"
    if torchs[0] == "tangent" and any(each[0] == "a tangent in its own memory" for each in theirs):
        return "a tangent in the memory of what it belongs to"
    if changed and set(ours[1:] if ours[0] == torchs[0] else []) < set(changed):
        return "a refused call that changed something in torch"
    if "view size is not compatible with input tensor's size" in str(torchs[1:]) and isinstance(
        ours[-1], dict
    ):
        return "a copy where torch wants a view"
    if told.startswith("numbers: ") and ["written while it is read"] in theirs:
        return "an output that is read while it is written"
    if told.startswith("grad: ") and any(
        "Inplace update to inference tensor" in str(each[1:]) for each in theirs
    ):
        return "a refused call that changed something in torch"
    made_in_inference = any("inference" in text for text in statements)
    fresh = ours[-1]["_version"] == 0 and ours[-1]["node"] is None if told.startswith("_version: ") else False
    if fresh or (made_in_inference and told.startswith("_version: ") and torchs[0] in statements):
        return "writes of torch's own"
    if ["a list in one memory"] in theirs:
        return "a list that is overwritten while it is read"
    steps = told.startswith(("next: ", "node: ")) and "Backward" in told
    recorded = "create_graph" in torchs[0] or "torch.func." in torchs[0]
    if steps and (recorded or torchs[0] in ("grad", "tangent", "node", "func")):
        return "a gradient that is recorded in other steps"
    if told.startswith("base: ") and told.endswith(" / None") and torchs[0] in statements:
        return "a result that is a view of what torch made before"
    if re.match(r"\w+\.logical_\w+_\(", str(ours[0])) and "in-place operation" in str(ours[2:]):
        return "a leaf that an undifferentiable write replaces"
    whole = isinstance(ours[-1], dict) and ours[-1].get("dtype", "").startswith("int")
    if whole and told.startswith(("node: ", "requires_grad: ")):
        return "whole numbers that require a gradient"
    if told.startswith("strides: ") and only_single_steps(told, ours[-1]["size"]):
        return "strides of single elements"
    given_data = any(".data = " in text for text in statements)
    if (
        given_data
        and made_in_inference
        and told.startswith(("is_inference: ", "requires_grad: ", "_version: "))
    ):
        return "data given in inference mode"
    if given_data and "Inference tensors do not track version counter." in torchs:
        return "data given in inference mode"
    if told.startswith("strides: ") and "functional.jvp(" in torchs[0]:
        return "a sum of terms in another order"
    return None


def only_single_steps(told, size):
    """Whether the strides differ in dimensions with one element only, or of nothing."""
    theirs, ours = (json.loads(part) for part in told.removeprefix("strides: ").split(" / "))
    return 0 in size or all(a == b or n == 1 for a, b, n in zip(theirs, ours, size, strict=True))


def differences(seed, count):
    """How many programs ran; of those that differ the statement, how, and the rule that excuses it or None;
    and those that ended Rushlight's process."""
    theirs, _ = all_told("torch", seed, count)
    mine, ended = all_told("rushlight", seed, count)
    found = {}
    for number in mine.keys() & theirs.keys():
        for k, (ours, torchs) in enumerate(zip(mine[number], theirs[number], strict=False)):
            told = difference(ours, torchs)
            if told is not None:
                statements = [line[-1] for line in program(seed * 100_000 + number)]
                if torchs[0] in statements:
                    statements = statements[: statements.index(torchs[0]) + 1]
                rule = excuse(told, mine[number][: k + 1], theirs[number][: k + 1], statements)
                found[number] = (torchs[0], told, rule)
                break
    return len(mine), found, ended


def test_few_histories_differ():
    pytest.importorskip("torch")
    ran, found, ended = differences(SEED, COUNT)
    told = [f"{number}: {text}\n    {told[:400]}" for number, (text, told, rule) in found.items() if not rule]
    assert not ended
    assert len(found) < 0.04 * ran
    assert len(told) < 0.01 * ran, "\n".join(told)


if __name__ == "__main__":
    if sys.argv[1] == "run":
        library = importlib.import_module(sys.argv[2])
        for part in PARTS:
            importlib.import_module(f"{sys.argv[2]}.{part}")
        library.set_num_threads(1)
        library.set_warn_always(True)
        seed, count, start = map(int, sys.argv[3:6])
        for number in range(start, count):
            print(json.dumps([number, None]), flush=True)
            print(json.dumps([number, run(library, program(seed * 100_000 + number))]), flush=True)
    else:
        seed, count = int(sys.argv[1]), int(sys.argv[2])
        ran, found, ended = differences(seed, count)
        for number, (text, told, rule) in sorted(found.items(), key=lambda item: item[1][1]):
            if not rule:
                lines = source(program(seed * 100_000 + number))
                print(f"{number}: {text}\n    {told[:400]}\n{lines}\n")
        rules = Counter(rule or "no reason" for *_, rule in found.values())
        print(f"{ran} programs, {len(found)} differ, ended: {ended}; {dict(rules)}")
