"""Every operation of op_db with one argument replaced by a bad or an odd one ends as in torch: in the same
values, dtype and shape, or in the same exception and first sentence. sweep.py says what is replaced,
single_mistakes.txt where the libraries differ and why."""

import pytest

pytest.importorskip("torch")

import sweep

LISTED = sweep.listed()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("entry", sweep.ENTRIES)
def test_ends_as_in_torch(entry):
    unexpected, stale = [], []
    for kind in sweep.KINDS:
        reasons = LISTED.get((entry, kind), {})
        not_run = {which: why for which, why in reasons.items() if why.startswith(sweep.NOT_RUN)}
        seen = set()
        for which, problem in sweep.check(entry, kind, not_run):
            line = sweep.matching(which, reasons)
            seen.add(line)
            if line is None:
                unexpected.append(f"{entry} | {kind} | {which}: {problem}")
        here = {which for which, why in reasons.items() if not why.endswith(sweep.ON_SOME_PROCESSORS)}
        stale += [f"{entry} | {kind} | {which}" for which in here - seen - not_run.keys()]
    assert not unexpected, "\n".join(unexpected)
    assert not stale, "listed, but nothing differs any more:\n" + "\n".join(stale)


def test_lines_name_entries():
    assert not [line for line in LISTED if line[0] not in sweep.ENTRIES or line[1] not in sweep.KINDS]
