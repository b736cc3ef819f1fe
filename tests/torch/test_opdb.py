"""The sample inputs of torch's own operations through both libraries; opdb.py says how, gaps.py what differs.

By default a few samples per operation, form and dtype run. RUSHLIGHT_OPDB=all runs all of them (minutes).
"""

import os

import opdb
import opdb_vmap
import pytest
from gaps import GAPS, operations

pytestmark = pytest.mark.filterwarnings("ignore")

EVERYTHING = os.environ.get("RUSHLIGHT_OPDB") == "all"
SAMPLES = {
    "function": 6,
    "method": 3,
    "inplace": 3,
    "out": 2,
    "errors": 12,
    "grad": 4,
    "gradgrad": 3,
    "forward": 3,
    "vmap": 5,
}
FORMS = opdb.FORMS


def problems(entry, form):
    count = None if EVERYTHING else SAMPLES[form]
    dtypes = opdb.dtypes_of(form)
    if not EVERYTHING and form in ("method", "inplace", "out"):
        dtypes = dtypes[:1] + dtypes[2:3] + dtypes[5:]
    found = []
    for dtype in dtypes:
        for problem in opdb.check(entry, form, dtype, count):
            if problem.startswith(opdb.ABSENT):
                return []  # docs/coverage.md says so
            found.append(f"{form} in {dtype}, sample {problem}")
    return found


@pytest.mark.parametrize(
    "entry, maps", [pytest.param(row["name"], row["vmap"] == "1", id=row["name"]) for row in operations()]
)
def test_operation(entry, maps):
    unexpected, stale = [], []
    for form in FORMS:
        found = problems(entry, form)
        gap = GAPS.get((entry, form))
        if gap is None:
            unexpected += found
        elif not found and (EVERYTHING or gap.shows):
            stale.append(f"GAPS[{entry!r}, {form!r}] says {gap.reason!r}, but nothing differs any more")
    assert not unexpected, "\n".join(unexpected[:20])
    assert not stale, "\n".join(stale)
    assert maps == (entry in opdb_vmap.TAKEN), f"torch's vmap {'refuses' if maps else 'takes'} it"


def test_gaps_name_operations():
    known = {row["name"] for row in operations()}
    assert not [entry for entry, form in GAPS if entry not in known or form not in FORMS]
    assert known <= set(opdb.ENTRIES)
