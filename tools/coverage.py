"""Writes docs/coverage.md: entry by entry, which of torch's operations Rushlight has, in which forms.

    python tools/coverage.py            writes the file (`make coverage`)
    python tools/coverage.py --check    fails if it is not up to date

The rows come from tests/ops.tsv, the differences from tests/gaps.py (which `make test-torch` holds against
torch), and what exists from the package itself.
"""

import functools
import inspect
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests")]

from gaps import GAPS, KINDS, operations  # noqa: E402

import rushlight  # noqa: E402
import rushlight.nn  # noqa: E402
from rushlight._aten import FUNCTIONS as ATEN  # noqa: E402

PAGE = ROOT / "docs" / "coverage.md"
# Columns of the page: form, column of ops.tsv that says whether torch has it.
FORMS = [
    ("function", None), ("method", "method"), ("inplace", "inplace"), ("out", "out"), ("grad", "autograd"),
    ("gradgrad", "gradgrad"), ("forward", "forward_ad"), ("vmap", "vmap"), ("errors", None),
]  # fmt: skip


def exists(path):
    try:
        functools.reduce(getattr, path.split("."), rushlight)
    except AttributeError:
        return False
    return True


def has(name):
    """As a function, or as a method: of that name, or one that only exists in place (uniform_)."""
    return exists(name) or exists(f"Tensor.{name}") or exists(f"Tensor.{name}_") or name in ATEN


def base_name(entry):
    """`max.binary` is a set of samples for `max`, `nn.functional.relu` a function."""
    parts = entry.split(".")
    for length in range(len(parts), 0, -1):
        name = ".".join(parts[:length])
        if has(name):
            return name
    prefixes = {"nn": 3, "linalg": 2, "fft": 2, "special": 2, "masked": 2, "signal": 3}
    return ".".join(parts[: prefixes.get(parts[0], 1)])


def has_form(name, form):
    if form == "method":
        return exists(f"Tensor.{name}")
    if form == "inplace" and name.startswith("nn.functional."):
        return (
            "inplace" in inspect.signature(functools.reduce(getattr, name.split("."), rushlight)).parameters
        )
    if form == "inplace":  # x += y calls what x + y has beside it
        return exists(f"Tensor.{name.removesuffix('_')}_") or name.startswith("__")
    return True


def cells(row):
    """The forms of one entry: 'yes', '-' where torch has none, 'missing', or the number of a note."""
    name = base_name(row["name"])
    here = has(name)
    result = {}
    for form, column in FORMS:
        if column is not None and row[column] != "1":
            result[form] = "-"
        elif not here or not has_form(name, form):
            result[form] = "missing"
        elif (row["name"], form) in GAPS:
            gap = GAPS[row["name"], form]
            result[form] = gap.kind or gap.reason
        else:
            result[form] = "yes"
    if row["aliases"]:
        lacking = [alias for alias in row["aliases"].split(",") if not exists(alias.removeprefix("torch."))]
        if here and lacking:
            result["function"] = "missing: " + ", ".join(lacking)
    return result


def page():
    rows = [(row["name"], cells(row)) for row in operations()]
    marked = [cell for _, forms in rows for cell in forms.values() if cell != "-"]
    same = [name for name, forms in rows if all(cell in ("yes", "-") for cell in forms.values())]
    complete = [name for name, forms in rows if all(cell in ("yes", "-", *KINDS) for cell in forms.values())]
    absent = [name for name, forms in rows if forms["function"] == "missing"]
    works = sum(cell == "yes" for cell in marked)
    notes = {}
    lines = [
        "# Coverage",
        "",
        "Torch's operations on dense tensors, most used first, and what of them Rushlight has. Written by",
        "`make coverage`; `make test-torch` compares every form with torch 2.13 on the sample inputs of",
        "torch's own tests. Under vmap a batch gives what its examples give, and what torch takes is taken.",
        "",
        f"- {len(same)} of {len(rows)} entries work as torch's do in every form, {len(complete) - len(same)} "
        f"more but for forms under a letter, {len(absent)} absent",
        f"- {works} of {len(marked)} forms work as torch's do",
        *(f"- {marked.count(letter)} forms marked {letter}: {meaning}" for letter, meaning in KINDS.items()),
        "",
        "x works as in torch, . torch has none, **0** missing, a number: differs, see the notes; a letter: "
        "see above.",
        "",
        "| operation | " + " | ".join(form for form, _ in FORMS) + " |",
        "|---|" + "---|" * len(FORMS),
    ]
    for name, forms in rows:
        shown = []
        for form, _ in FORMS:
            cell = forms[form]
            if cell in ("yes", "-", "missing", *KINDS):
                shown.append({"yes": "x", "-": ".", "missing": "**0**"}.get(cell, cell))
            else:
                shown.append(str(notes.setdefault(cell, len(notes) + 1)))
        lines.append(f"| {name} | " + " | ".join(shown) + " |")
    lines += ["", "## Notes", ""] + [f"{number}. {reason}" for reason, number in notes.items()]
    lines += ["", "## Letters", "", "| operation | forms | | |", "|---|---|---|---|"]
    apart = {}
    for (name, form), gap in GAPS.items():
        if gap.kind:
            apart.setdefault((name, gap.kind, gap.reason), []).append(form)
    lines += [f"| {name} | {' '.join(f)} | {kind} | {why} |" for (name, kind, why), f in apart.items()]
    lines += ["", "## Absent", "", ", ".join(absent) if absent else "Nothing."]
    return "\n".join(lines) + "\n"


def main():
    text = page()
    if "--check" in sys.argv:
        if not PAGE.exists() or PAGE.read_text() != text:
            sys.exit("docs/coverage.md is not up to date: run `make coverage`")
        return
    PAGE.write_text(text)
    import stubs

    stubs.main()


if __name__ == "__main__":
    main()
