"""Wording errors: torch's sentence, a blank line, where it happened, and what to do about it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import FrameType

from rushlight import _C
from rushlight._annotations import Any

Place = tuple[str, int, str]  # file, line, function


def module_of(variables: dict[str, Any]) -> str:
    """The name of the module of these globals. In torch's place a module of ours bears torch's."""
    name = variables.get("__name__", "")
    spec = variables.get("__spec__") if name.startswith("torch") else None
    return name if spec is None else spec.name


def _source_line(file: str, line: int) -> str:
    """The text of a line as a traceback shows it; empty if it cannot be read."""
    import linecache

    return linecache.getline(file, line).strip()


def with_places(sentence: str, places: Sequence[tuple[str, Place | None]], advice: str = "") -> str:
    """`sentence`, then each place with its source text, then the advice; places that are None are left "
    "out."""
    lines = []
    for what, place in places:
        if place is None:
            continue
        file, line, function = place
        lines += [f"  {what} at", f'    File "{file}", line {line}, in {function}']
        text = _source_line(file, line)
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
        "not_differentiable": (
            "The graph was cut by an operation that has no derivative (an index, a comparison, rounding to "
            "integers)",
            "Compute the loss from values, not from positions or decisions: softmax for argmax, say.",
        ),
        "inherited": (
            "It was computed from a tensor that does not require grad, made",
            "Create that tensor with requires_grad=True, or call requires_grad_() on it before computing: "
            "a parameter may be frozen.",
        ),
        "created": (
            "It was created without requires_grad",
            "Create it with requires_grad=True, or call requires_grad_() on it before computing.",
        ),
    }[reason]
    return with_places(sentence, [(what, place)], advice)


# What to do, by a part of torch's sentence.
_ADVICE = {
    "must match the size of tensor b": "Sizes are compared from the last dimension backwards: each pair must "
    "be equal, or one of them 1. unsqueeze(), view() or transpose one of the two.",
    "cannot be multiplied": "The last size of the first must equal the last but one of the second: transpose "
    "one of them (.mT), or make the layer's in_features what its input has.",
    "size mismatch, got input": "The matrix needs as many columns as the vector has elements.",
    "first two dimensions of batch2": "The last size of the first must equal the last but one of the second.",
    "inconsistent tensor size": "A dot product needs two vectors of one length.",
    "is not on the expected device": "Compute on one device. A meta tensor has a shape and no data: "
    "torch.empty_like(t, device='cpu') makes room for it, to_empty() does for a module.",
    "is invalid for input of size": "The product of the sizes must stay the same; one of them may be -1.",
    "doesn't match the broadcast shape": "An in-place operation cannot make its tensor larger: write "
    "x = x + y instead of x += y.",
}  # fmt: skip


def shape_of(tensor: Any) -> Any:
    """The shape of a tensor; of a nested one, which has none, the sizes of its parts."""
    try:
        return tensor.shape
    except RuntimeError:
        return tensor.outline()


def explain_operands(
    sentence: str, operands: Sequence[tuple[str, _C.Tensor, Place | None]], advice: str | None = None
) -> str:
    """`sentence`, then each operand with its shape and the line that made it, the module it happened in, and
    what to do."""
    lines = []
    for name, tensor, place in operands:
        device = "" if tensor.device.type == "cpu" else f", device {tensor.device}"
        shape, dtype = list(shape_of(tensor)), str(tensor.dtype).removeprefix("torch.")
        what = f"  {name} has shape {shape}, {dtype}{device}"
        if place is None:
            lines.append(what)
            continue
        file, line, function = place
        lines += [f"{what}; made at", f'    File "{file}", line {line}, in {function}']
        text = _source_line(file, line)
        if text:
            lines.append(f"      {text}")
    module = _module_path()
    if module:
        lines.append(f"  This happened in the module {module}")
    if advice is None:
        advice = next((text for part, text in _ADVICE.items() if part in sentence), None)
    if advice:
        lines.append(f"  {advice}")
    return "\n".join([sentence, "", *lines]) if lines else sentence


def _module_path() -> str | None:
    """`net.2 (Linear(...))`: the module whose forward() is running, by its path from the outermost one."""
    nn = sys.modules.get("rushlight.nn")
    if nn is None:
        return None
    frame: FrameType | None = sys._getframe(1)
    running: list[Any] = []
    while frame is not None:
        if frame.f_code.co_name == "forward":
            names = frame.f_code.co_varnames
            owner = frame.f_locals.get(names[0]) if frame.f_code.co_argcount else None
            if isinstance(owner, nn.Module) and (not running or running[-1] is not owner):
                running.append(owner)
        frame = frame.f_back
    if not running:
        return None
    inner, root = running[0], running[-1]
    path = next((name for name, module in root.named_modules() if module is inner), "")
    name = type(root).__name__ + (f".{path}" if path else "")
    return f"{name}: {inner}" if path and "\n" not in str(inner) else name
