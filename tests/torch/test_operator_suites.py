"""What torch's own suites of operators ask about many operators at once, one expression each."""

import itertools

import pytest
from outcomes import outcome

import rushlight

torch = pytest.importorskip("torch")

EXPRESSIONS = """
torch.tensor([1 + 2j, 3j, complex("inf")]).mean()
torch.tensor([[1 + 2j, 3j], [complex("nan"), 1]]).mean(1, keepdim=True)
torch.tensor([[1 + 2j, 3j], [5, 1 - 1j]], requires_grad=True).mean(0)
torch.ones(0, dtype=torch.complex64).mean()
torch.hash_tensor(torch.ones(2, 0, 3), 0)
torch.hash_tensor(torch.ones(2, 0, 3), (0, 2), keepdim=True)
"""


@pytest.mark.parametrize("text", EXPRESSIONS.strip().splitlines())
def test_expressions(text):
    ours, theirs = (outcome(lambda t=t: repr(eval(text, {"torch": t}))) for t in (rushlight, torch))
    assert ours == theirs


def test_elementwise_dtypes():
    def answers(library, utilities):
        some = [
            *(
                library.ones(2, dtype=getattr(library, name))
                for name in ("float16", "int32", "bool", "cfloat")
            ),
            *(library.tensor(1.0), library.tensor(1, dtype=library.int8), 2.5, True, 1, 1j),
        ]
        ask = utilities.elementwise_dtypes
        return [
            [str(dtype) for dtype in ask(*values, type_promotion_kind=kind)]
            for kind in utilities.ELEMENTWISE_TYPE_PROMOTION_KIND
            for values in itertools.product(some, repeat=3)
        ]

    import rushlight._prims_common as ours
    import torch._prims_common as theirs

    assert answers(rushlight, ours) == answers(torch, theirs)
