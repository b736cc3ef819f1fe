"""One argument of a good call replaced by a bad or an odd one, in both libraries.

`check(entry, kind)` is where to start: it takes a sample call of an operation (opdb.py), replaces one of its
arguments as `kind` says, and yields each change after which the libraries end differently.
`python sweep.py [kind] [entry ...]` prints them.
"""

import math
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from opdb import (
    ENTRIES,
    PHASE,
    TIED,
    UNDEFINED,
    Absent,
    Carrier,
    Unfit,
    attempt,
    differences,
    first_sentence,
    ours,
    samples,
    supported,
    tied_differences,
)

import rushlight

Call = tuple[tuple, dict]
Change = tuple[str, Call]

DTYPES = (
    "float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8", "int8", "int16", "bool",
    "complex64", "complex128",
)  # fmt: skip
SPECIAL = (math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 30.0, -30.0)
# Sizes are among the numbers replaced: 2**31 would ask for gigabytes, 2**63 - 1 is refused.
NUMBERS = (-100, -1, 0, 2, 100, 2**63 - 1, -(2**63), True, 1.5, math.nan, math.inf, None, "a", 1j)
# How the reason of a line begins that is not even run: what torch does there may end the process, or change.
NOT_RUN = ("torch crashes", "undefined", "slow")
ON_SOME_PROCESSORS = ", on some processors"  # with AVX-512 or without, where MKL and oneDNN take other ways
LISTED = Path(__file__).with_name("single_mistakes.txt")


def places(item: Any, path: tuple = ()) -> Iterator[tuple[tuple, torch.Tensor]]:
    """The tensors among the arguments, each with the way to it."""
    return ((way, part) for way, part in parts(item, path) if isinstance(part, torch.Tensor))


def parts(item: Any, path: tuple = ()) -> Iterator[tuple[tuple, Any]]:
    """What is no list among the arguments, each with the way to it."""
    if type(item) in (list, tuple, dict):
        for key, part in item.items() if type(item) is dict else enumerate(item):
            yield from parts(part, (*path, key))
    else:
        yield path, item


def replaced(item: Any, path: tuple, new: Any) -> Any:
    if not path:
        return new
    pairs = item.items() if type(item) is dict else enumerate(item)
    made = {key: replaced(part, path[1:], new) if key == path[0] else part for key, part in pairs}
    return made if type(item) is dict else type(item)(made.values())


def at(path: tuple) -> str:
    """The way to an argument: `1`, `0.2` in a list, `dim`."""
    return ".".join(map(str, path[1:]))


def dtypes(call: Call) -> Iterator[Change]:
    for path, tensor in places(call):
        for dtype in DTYPES:
            if str(tensor.dtype) != f"torch.{dtype}":
                yield f"{at(path)}: {dtype}", replaced(call, path, tensor.to(getattr(torch, dtype)))
    for dtype in DTYPES:
        changed = call
        for path, tensor in places(call):
            changed = replaced(changed, path, tensor.to(getattr(torch, dtype)))
        yield f"all: {dtype}", changed


def shapes(call: Call) -> Iterator[Change]:
    for path, t in places(call):
        made: dict[str, Any] = {"unsqueeze(0)": t.unsqueeze(0), "unsqueeze(-1)": t.unsqueeze(-1)}
        if t.dim():
            made |= {"flat": t.reshape(-1), "twice": torch.cat([t, t]), "twice last": torch.cat([t, t], -1)}
            made |= {"[1:]": t[1:], "[:1]": t[:1]}
        if t.dim() and t.numel():
            made |= {"[0]": t[0], "[..., 0]": t[..., 0]}
        if t.numel():
            made |= {"0-dim": t.reshape(-1)[0].clone(), "number": t.reshape(-1)[0].item()}
        made |= {"None": None, "list": t.tolist()}
        for what, value in made.items():
            yield f"{at(path)}: {what}", replaced(call, path, value)


def emptied(call: Call) -> Iterator[Change]:
    for path, tensor in places(call):
        for dim in range(tensor.dim()):
            yield f"{at(path)}: {dim}", replaced(call, path, tensor.narrow(dim, 0, 0).clone())
    for dim in (0, 1, -1, -2):
        changed = call
        for path, tensor in places(call):
            if tensor.dim() > (dim if dim >= 0 else -1 - dim):
                changed = replaced(changed, path, tensor.narrow(dim, 0, 0).clone())
        if changed is not call:
            yield f"all: {dim}", changed


def numbers(call: Call) -> Iterator[Change]:
    for path, old in parts(call):
        if old is None or isinstance(old, (bool, int, float, complex, str)):
            for new in NUMBERS:
                yield f"{at(path)}: {new!r}", replaced(call, path, new)


def special(call: Call) -> Iterator[Change]:
    """Each of the tensors with numbers here and there at which functions have their corners."""
    for seed in range(3):
        generator = torch.Generator().manual_seed(seed)
        changed = call
        for path, tensor in places(call):
            if tensor.numel() and (tensor.is_floating_point() or tensor.is_complex()):
                chosen = torch.rand(tensor.shape, generator=generator) < (0.3 if tensor.numel() > 1 else 0.7)
                values = torch.tensor(SPECIAL)[torch.randint(len(SPECIAL), tensor.shape, generator=generator)]
                changed = replaced(changed, path, torch.where(chosen, values.to(tensor.dtype), tensor))
        if changed is not call:
            yield f"seed {seed}", changed


KINDS: dict[str, Callable[[Call], Iterator[Change]]] = {
    "dtype": dtypes, "shape": shapes, "empty": emptied, "number": numbers, "special": special,
}  # fmt: skip


def listed() -> dict[tuple[str, str], dict[str, str]]:
    """Why the changes of an entry and kind may differ; `which` may end in a star."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for line in LISTED.read_text().splitlines():
        if not line.startswith("#"):
            entry, kind, which, why = line.split(" | ")
            found.setdefault((entry, kind), {})[which] = why
    return found


def matching(which: str, patterns: dict[str, str]) -> str | None:
    """The line that a change is listed by."""
    fits = (p for p in patterns if p == which or (p.endswith("*") and which.startswith(p[:-1])))
    return next(fits, None)


def call_of(entry: str) -> Call | None:
    """A good call: of the first few samples the one with the most arguments."""
    op = ENTRIES[entry]
    dtype = next((d for d in ("float32", "int64", "bool", "complex64") if supported(op, "function", d)), None)
    if dtype is None:
        return None
    calls = [((s.input, *s.args), dict(s.kwargs)) for s in samples(op, dtype, 4)]
    small = [c for c in calls if sum(t.numel() for _, t in places(c)) < 20000]
    return max(small or calls[:1], key=lambda call: len(list(parts(call))), default=None)


def check(entry: str, kind: str, not_run: dict[str, str] | None = None) -> Iterator[tuple[str, str]]:
    """Which changes of the call end differently, and how."""
    op = ENTRIES[entry]
    try:
        call, mine = call_of(entry), ours(op.op, op.name)
        if call is None or any(tensor.layout != torch.strided for _, tensor in places(call)):
            return
        for which, (args, kwargs) in KINDS[kind](call):
            if not_run and matching(which, not_run) is not None:
                continue
            try:
                for problem in compare(op, mine, args, kwargs):
                    yield which, problem
                    break
            except Unfit:
                continue
            except MemoryError:
                yield which, "MemoryError"
    except (Absent, Unfit):  # docs/coverage.md says so
        return


def compare(op: Any, mine: Any, args: tuple, kwargs: dict) -> Iterator[str]:
    own_args, own_kwargs = Carrier()((args, kwargs))
    torch.manual_seed(0)
    theirs, refusal = attempt(op.op, *args, **kwargs)
    rushlight.manual_seed(0)
    result, error = attempt(mine, *own_args, **own_kwargs)
    ends = [e and f"{type(e).__name__}: {first_sentence(e)}" for e in (error, refusal)]
    if ends[0] != ends[1]:
        yield f"{ends[0]} | torch {ends[1]}"
    elif theirs is NotImplemented:
        if result is not theirs:
            yield f"{result} | torch NotImplemented"
    elif error is None and op.name in TIED:
        yield from tied_differences(result, theirs)
    elif error is None and op.name not in PHASE:
        yield from differences(result, theirs, values=op.name not in UNDEFINED, strides=False)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    reasons = listed() if LISTED.exists() else {}
    for entry in ENTRIES:
        for kind in KINDS:
            if sys.argv[1:2] not in ([], [kind]) or (sys.argv[2:] and entry not in sys.argv[2:]):
                continue
            print(f"# {entry} {kind}", file=sys.stderr)
            skipped = {k: v for k, v in reasons.get((entry, kind), {}).items() if v.startswith(NOT_RUN)}
            for which, problem in check(entry, kind, skipped):
                print(entry, kind, which, problem, sep=" | ", flush=True)
