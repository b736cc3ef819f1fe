"""Where Rushlight is known to differ from torch in an operation that both have.

`GAPS` maps (entry of ops.tsv, form) to the reason. tests/torch/test_opdb.py fails for a difference that is
not here and for an entry that no longer shows one; `make coverage` writes docs/coverage.md from this table,
from ops.tsv and from what the package exports.
"""

import csv
from dataclasses import dataclass
from pathlib import Path

# What a difference means: a letter in docs/coverage.md, which counts them apart. Without one, something is
# missing.
KINDS = {
    "T": "torch's own result is wrong, which tests/torch/test_torch_is_off.py proves, and this one is right",
    "R": "both are rounded in float32, to within its precision of the exact value, and differ by as much",
}


@dataclass(frozen=True)
class Gap:
    reason: str
    shows: bool = True  # among the few samples that run by default
    kind: str = ""


def operations():
    """The rows of ops.tsv: torch's operations, most used first, and the forms that each has."""
    with open(Path(__file__).parent / "ops.tsv", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


GAPS: dict[tuple[str, str], Gap] = {}


def gap(entry: str, forms: str, reason: str, hidden: str = "", kind: str = "") -> None:
    """Notes a difference in these forms; the default samples do not show it in those named `hidden`."""
    for form in forms.split():
        GAPS[entry, form] = Gap(reason, kind=kind)
    for form in hidden.split():
        GAPS[entry, form] = Gap(reason, shows=False, kind=kind)


# ---- counted apart
gap("cov", "", "sums of float32 weights beside float64 data", hidden="gradgrad forward", kind="R")

# ---- missing
for _name in ("resize_", "resize_as_"):
    gap(_name, "vmap", "refused in a batch; torch leaves the sizes that the function sees as they were")

# ---- torch's value is off: compared with mpmath, finite differences, or the definition
OFF = "torch is off by more than the tolerance (compared with mpmath)"
for _n in range(5):
    gap(f"polygamma.polygamma_n_{_n}", "function method inplace out", OFF, kind="T")
gap("special.polygamma.special_polygamma_n_0", "function out", OFF, kind="T")
gap("special.bessel_y1", "function", OFF, hidden="out", kind="T")
gap("logcumsumexp", "forward", OFF, kind="T")
gap("matrix_exp", "function", "torch overflows to NaN in bfloat16", kind="T")
gap("masked.logaddexp", "gradgrad", "0 where one of the two is masked, where torch gives NaN", kind="T")
for _form in ("grad", "gradgrad"):
    _why = "torch gives the gradient to the elements that were replaced"
    gap("as_strided_scatter", _form, _why, kind="T")
gap("narrow_copy", "out", "torch fills an out= with gaps in the wrong order", kind="T")
gap("nn.functional.gelu", "out", "torch leaves an out= with gaps unwritten", kind="T")
gap("nn.functional.avg_pool3d", "out", "torch fills an out= with gaps in the wrong order", kind="T")
for _name in ("mean", "logsumexp"):
    gap(_name, "out", "torch writes complex results into a real out=, dropping the imaginary part", kind="T")
