"""Wording errors: torch's sentence, a blank line, where it happened, and what to do about it."""

from __future__ import annotations

import linecache
from collections.abc import Sequence

from rushlight import _C

Place = tuple[str, int, str]  # file, line, function


def with_places(sentence: str, places: Sequence[tuple[str, Place | None]], advice: str = "") -> str:
    """`sentence`, then each place with its source text, then the advice; places that are None are left "
    "out."""
    lines = []
    for what, place in places:
        if place is None:
            continue
        file, line, function = place
        lines += [f"  {what} at", f'    File "{file}", line {line}, in {function}']
        text = linecache.getline(file, line).strip()
        if text:
            lines.append(f"      {text}")
    if advice:
        lines.append(f"  {advice}")
    return "\n".join([sentence, "", *lines]) if lines else sentence


def explain_no_graph(index: int, tensor: _C.Tensor) -> str:
    """Why backward() cannot start at `tensor`: where its graph was cut, or that it never had one."""
    sentence = f"element {index} of tensors does not require grad and does not have a grad_fn"
    reason, place = _C.origin(tensor)
    if not tensor.dtype.is_floating_point and not tensor.dtype.is_complex:
        return with_places(
            sentence,
            [("It was made", place)],
            f"Its dtype is {tensor.dtype}: only floating point and complex tensors have gradients.",
        )
    what, advice = {
        "detached": (
            "The graph was cut by detach()",
            "Differentiate before detaching, or leave detach() (and .data, .item(), .numpy()) out.",
        ),
        "no_grad": (
            "It was computed without recording (under no_grad or inference_mode)",
            "Compute it outside the no_grad block, or inside `with torch.enable_grad():`.",
        ),
        "inherited": (
            "It was computed from a tensor created without requires_grad",
            "Create that tensor with requires_grad=True, or call requires_grad_() on it before computing.",
        ),
        "created": (
            "It was created without requires_grad",
            "Create it with requires_grad=True, or call requires_grad_() on it before computing.",
        ),
    }[reason]
    return with_places(sentence, [(what, place)], advice)
