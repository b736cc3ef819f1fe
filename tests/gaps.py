"""Where Rushlight is known to differ from torch in an operation that both have.

`GAPS` maps (entry of ops.tsv, form) to the reason. tests/torch/test_opdb.py fails for a difference that is
not here and for an entry that no longer shows one; `make coverage` writes docs/coverage.md from this table,
from ops.tsv and from what the package exports.
"""

import csv
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Gap:
    reason: str
    shows: bool = True  # among the few samples that run by default


def operations():
    """The rows of ops.tsv: torch's operations, most used first, and the forms that each has."""
    with open(Path(__file__).parent / "ops.tsv", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


GAPS: dict[tuple[str, str], Gap] = {}


def gap(entry: str, forms: str, reason: str, hidden: str = "") -> None:
    """Notes a difference in these forms; the default samples do not show it in those named `hidden`."""
    for form in forms.split():
        GAPS[entry, form] = Gap(reason)
    for form in hidden.split():
        GAPS[entry, form] = Gap(reason, shows=False)


# ---- not there yet
NO_SPARSE = "sparse=True: there are no sparse gradients"
gap("nn.functional.embedding", "", NO_SPARSE, hidden="function")

# ---- rounding
gap("matrix_exp", "function", "torch overflows to NaN in bfloat16")
gap("masked.logaddexp", "gradgrad", "0 where both are masked, where torch gives NaN")
gap("cov", "", "float32 weights are summed in another order", hidden="gradgrad forward")

# ---- torch's value is off: checked against mpmath, finite differences, or the definition
OFF = "torch is off by more than the tolerance (compared with mpmath)"
for _n in range(5):
    gap(f"polygamma.polygamma_n_{_n}", "function method inplace out", OFF)
gap("special.polygamma.special_polygamma_n_0", "function out", OFF)
gap("special.bessel_y1", "function", OFF, hidden="out")
gap("logcumsumexp", "forward", OFF)
gap("as_strided_scatter", "grad gradgrad", "torch gives the gradient to the elements that were replaced")
gap("narrow_copy", "out", "torch fills an out= with gaps in the wrong order")
gap("nn.functional.gelu", "out", "torch leaves an out= with gaps unwritten")
gap("nn.functional.avg_pool3d", "out", "torch fills an out= with gaps in the wrong order")
gap("mean", "out", "torch writes a complex mean into a real out=, dropping the imaginary part")
gap("logsumexp", "out", "torch writes complex results into a real out=, dropping the imaginary part")

# ---- the words of an error: those of Python or of a C++ assertion in torch
WORDS = "refused in other words"
for _name in (
    "__radd__", "__rmul__", "__rdiv__",
):  # fmt: skip
    gap(_name, "errors", WORDS)
