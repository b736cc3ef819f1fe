"""What graphs keep is what torch's keep, for all of op_db: hooks on saved tensors are shown the same, and the
same writes between a forward and its backward are refused.

DIFFER lists the operations of which that is not so in the samples looked at, and why. One that has become
better than listed fails, so that the list stays true.

    python tests/torch/test_kept.py COUNT [entry ...]

looks at COUNT samples of each dtype and prints what differs.
"""

import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import kept
import torch
from opdb import ENTRIES

import rushlight

COUNT = 2  # samples of each dtype

# writes: another write is refused. hooks: hooks on saved tensors are shown others. A "_" at the end of a name
# says that it is about the in-place form.
DIFFER = {
    ("hooks", "torch's derivative is of the modulus, for which the result will do; copies are kept"): """
        polar
    """,
    ("writes", "torch does not see that its gradient would be wrong"): """
        kron
    """,
    ("hooks", "the result is shown without its history, which would hold the node that keeps it"): """
        nn.functional.rrelu_
    """,
}


def listed() -> dict[str, str]:
    return {entry: kind for (kind, _), entries in DIFFER.items() for entry in entries.split()}


LISTED = listed()


def differences(entry: str, in_place: bool, count: int = COUNT) -> list[tuple[str, str, str]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(kept.found(entry, count, in_place))


@pytest.mark.parametrize("entry", ENTRIES)
def test_kept(entry: Any) -> None:
    for in_place in (False, True):
        found = differences(entry, in_place)
        worst = next(
            (kind for kind in ("writes", "hooks", "order") if any(kind == one[1] for one in found)), None
        )
        told = [" ".join(one)[:300] for one in found if one[1] == worst]
        name = entry + "_" * in_place
        assert worst == LISTED.get(name), told[:1] or f"{name} is the same now: take it off the list"


# What is computed in a wider type, or gives copies in a narrower one.
HALVES = """
    native_batch_norm _native_batch_norm_legit _batch_norm_with_update native_group_norm native_layer_norm
    matrix_exp nn.functional.rms_norm nn.functional.scaled_dot_product_attention
"""


@pytest.mark.parametrize("entry", HALVES.split())
def test_writes_of_halves(entry: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert not [one for one in kept.found(entry, COUNT, dtypes=("bfloat16",)) if one[1] == "writes"]


@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_writes_into_what_embedding_bag_tells_of_its_bags(mode: int, dtype: str) -> None:
    refused = []
    for lib in (rushlight, torch):
        table = lib.ones(5, 3, dtype=getattr(lib, dtype), requires_grad=True)
        args = table, lib.tensor([0, 1, 2, 1, 4]), lib.tensor([0, 2])
        run = kept.Run(lib, lib.embedding_bag, args, {"mode": mode}, [table], False)
        refused.append([run.refused(which) for which in range(run.write_count())])
    assert refused[0] == refused[1]


def test_a_written_statistic_is_told_without_a_history() -> None:
    told = []
    for lib in (rushlight, torch):
        x = lib.ones(2, 3, requires_grad=True)
        out, mean, _ = lib.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5)
        mean.add_(1)
        with pytest.raises(RuntimeError) as error:
            out.sum().backward()
        told.append(str(error.value).split("\n")[0])
    assert told[0] == told[1]


def test_nothing_unknown_is_listed() -> None:
    assert not {name.removesuffix("_") for name in LISTED} - {name.removesuffix("_") for name in ENTRIES}
    assert len(LISTED) == sum(len(entries.split()) for entries in DIFFER.values())


if __name__ == "__main__":
    for name in sys.argv[2:] or ENTRIES:
        for in_place in (False, True):
            for sample, kind, what in differences(name, in_place, int(sys.argv[1])):
                print(f"{name}{'_' * in_place} {sample} {kind} {what}")
