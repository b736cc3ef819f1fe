"""How torch's C++ shows a tensor, which stands in some of its sentences: in columns, with a scale before them
where the numbers are large, and the type and sizes below."""

from __future__ import annotations

import itertools
import math

from rushlight import _C
from rushlight._annotations import Any

_LINE = 80


def _digits(x: float) -> int:
    return math.floor(math.log10(x)) + 1 if x else 1


def _form(numbers: list[float]) -> tuple[int, float, str]:
    """The width of every number, what they are divided by, and the format that rounds them."""
    sizes = [abs(x) for x in numbers if math.isfinite(x)]
    least, most = (_digits(min(sizes)), _digits(max(sizes))) if sizes else (1, 1)
    if all(x == math.floor(x) for x in sizes):
        return (11, 1.0, ".4e") if most > 9 else (most + 1, 1.0, ".0f")
    if most - least > 4:
        return 11 + (abs(most) > 99 or abs(least) > 99), 1.0, ".4e"
    if most > 5 or most < 0:
        return 7, 10.0 ** (most - 1), ".4f"
    return (7 if most == 0 else most + 6), 1.0, ".4f"


def _matrix(rows: list[list[float]], indent: str = "") -> str:
    width, scale, rounded = _form([x for row in rows for x in row])
    per_line = max((_LINE - len(indent)) // (width + 1), 1)
    text = "" if scale == 1 else f"{indent}{scale:g} *\n"
    count = len(rows[0])
    for first in range(0, count, per_line):
        last = min(first + per_line, count)
        if count > per_line:
            both = f"{first + 1} and {last}" if last - first == 2 else f"{first + 1} to {last}"
            text += "\n" * (first > 0) + f"Columns {both}"
        lines = [" ".join(f"{format(x / scale, rounded):>{width}}" for x in row[first:last]) for row in rows]
        text += f"\n{indent}".join(lines) + "\n"  # torch indents all lines but the first
    return text


def shown_natively(t: Any) -> str:
    """A tensor of two or more dimensions as torch's C++ writes it into a stream."""
    kind = t.type().replace("rushlight", "torch")
    if t.dtype in (_C.bool, _C.bfloat16) or t.is_complex():  # which have no name of old
        kind = f"CPU{kind.removeprefix('torch.').removesuffix('Tensor')}Type"
    what = f"[ {kind}{{{','.join(map(str, t.shape))}}} ]"
    if t.is_meta or not t.numel() or t.is_complex():
        return what
    text, batch = "", [range(n) for n in reversed(t.shape[:-2])]  # the first index runs fastest
    for at, place in enumerate(itertools.product(*batch)):
        index = tuple(reversed(place))
        if index:
            text += "\n" * (at > 0) + f"({','.join(str(i + 1) for i in index)},.,.) = \n"
        text += _matrix([[float(x) for x in row] for row in t.detach()[index].tolist()], " " * bool(index))
    return text + what
