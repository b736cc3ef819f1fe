"""An `out=` or a tensor changed in place that shares part of its memory with an input: refused here if and
only if torch refuses it, in the same words, before anything is written."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from opdb import ENTRIES, Absent, Carrier, Unfit, attempt, first_sentence, ours, samples, supported
from sweep import places, replaced

import rushlight

# Where torch writes over what it is still reading, and complains of the number it finds.
READ_LATE = {"linalg.cholesky", "linalg.inv"}
# Checked by torch in some layouts of the right side only, or for an empty output only.
BY_LAYOUT = {
    "linalg.solve", "linalg.lu_solve", "lu_solve", "linalg.householder_product", "ormqr",
    "conj_physical",
}  # fmt: skip
BEFORE = 2  # elements of the common memory before the first tensor


def difference(function: Any, mine: Any, args: tuple, kwargs: dict) -> str:
    """How the two libraries end a call differently; "" if they do not."""
    carry = Carrier()
    own_args, own_kwargs = carry((args, kwargs))
    before = [(carry.tensors[id(t)], carry.tensors[id(t)].clone()) for _, t in places((args, kwargs))]
    torch.manual_seed(0)
    _, refusal = attempt(function, *args, **kwargs)
    rushlight.manual_seed(0)
    _, error = attempt(mine, *own_args, **own_kwargs)
    ends = [e and f"{type(e).__name__}: {first_sentence(e)}" for e in (error, refusal)]
    if ends[0] != ends[1]:
        return f"{ends[0]}, torch: {ends[1]}"
    if error and any(t.shape != old.shape or not rushlight.equal(t, old) for t, old in before if t.numel()):
        return f"{ends[0]}, and something was written"
    return ""


def outputs(op: Any, args: tuple, kwargs: dict) -> Iterator[tuple[str, tuple, dict]]:
    """Calls whose `out` begins where an input begins or one element later, of the right size and not."""
    torch.manual_seed(0)
    result, refusal = attempt(op.op, *args, **kwargs)
    if refusal is not None or not isinstance(result, torch.Tensor) or not result.numel():
        return
    for path, tensor in places((args, kwargs)):
        if tensor.dtype != result.dtype or not tensor.numel() or not tensor.dim():
            continue
        for start in (0, 1):
            for size in (result.numel(), 0, 2):
                memory = torch.zeros(BEFORE + tensor.numel() + result.numel() + 2, dtype=tensor.dtype)
                inside = memory[BEFORE : BEFORE + tensor.numel()].view(tensor.shape).copy_(tensor)
                out = memory[BEFORE + start : BEFORE + start + size]
                if size == result.numel():
                    out = out.view(result.shape)
                called, named = replaced((args, kwargs), path, inside)
                yield f"out of {size} elements {start} behind {path}", called, {**named, "out": out}


def writes(op: Any, args: tuple, kwargs: dict) -> Iterator[tuple[str, tuple, dict]]:
    """Calls in place whose other tensors begin where the changed one begins or one element later."""
    changed = args[0]
    if not isinstance(changed, torch.Tensor) or not changed.numel():
        return
    for path, tensor in places((args, kwargs)):
        if path == (0, 0) or tensor.dtype != changed.dtype or not tensor.numel():
            continue
        for start in (0, 1):
            memory = torch.zeros(BEFORE + changed.numel() + tensor.numel() + 2, dtype=tensor.dtype)
            read = memory[BEFORE + start : BEFORE + start + tensor.numel()].view(tensor.shape).copy_(tensor)
            written = memory[BEFORE : BEFORE + changed.numel()].view(changed.shape).copy_(changed)
            called, named = replaced((args, kwargs), path, read)
            yield f"{path} {start} behind self", (written, *called[1:]), named


def problems(op: Any, form: str) -> Iterator[str]:
    function, calls = (op.op, outputs) if form == "out" else (op.inplace_variant, writes)
    name = op.name if form == "out" else f"Tensor.{getattr(function, '__name__', op.name)}"
    for sample in samples(op, "float32", 2):
        if form == "inplace" and getattr(sample, "broadcasts_input", False):
            continue
        for what, args, kwargs in calls(op, (sample.input, *sample.args), dict(sample.kwargs)):
            try:
                found = difference(function, ours(function, name), args, kwargs)
            except (Absent, Unfit):
                return
            if found:
                yield f"{form}, {what}: {found}"


@pytest.mark.filterwarnings("ignore")  # of outputs that are resized, and of deprecated functions
@pytest.mark.parametrize("entry", [name for name in ENTRIES if name not in READ_LATE | BY_LAYOUT])
def test_shared_memory_is_refused_as_in_torch(entry):
    forms = [form for form in ("out", "inplace") if supported(ENTRIES[entry], form, "float32")]
    wrong = [problem for form in forms for problem in problems(ENTRIES[entry], form)]
    assert not wrong, "\n".join(wrong)
