"""Both libraries record the same graphs and write the same code."""

import operator

import pytest
import torch

import rushlight

PROGRAMS = [
    lambda t: lambda x, y=2, *, z=3: -(x + 1) * y / x.size(0) + x.shape[0] @ x.T - z,
    lambda t: lambda x, *a, **k: x + a[0] + k["q"],
    lambda t: lambda x: t.cat([x, x], dim=1)[..., None, 0:2, [1, 2]],
    lambda t: lambda x: x.to(t.device("cpu"), t.half) * float("inf"),
    lambda t: lambda x: (x == 1) & (x < 2) | ~(x != 3),
    lambda t: lambda x: 2 - x + 2**x + (1 / x) + (5 // x) % 3,
    lambda t: lambda x: operator.getitem(x.max(dim=1).values, 0).add(1).add(2).add_1,
    lambda t: lambda x: ({"o": x, "l": [x, (x.sum(), None)]}, t.float32, "s"),
    lambda t: lambda x: t.sigmoid(x) + t.einsum("ij->ji", x),
    lambda t: lambda x: x + t.ones(2),
    lambda t: lambda x: x if x.sum() else -x,
    lambda t: lambda x: [v for v in x],  # noqa: C416
    lambda t: lambda x: len(x),
    lambda t: t.nn.Sequential(t.nn.Linear(2, 2), t.nn.Sequential(t.nn.ReLU(), t.nn.Flatten())),
]


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_recorded_programs(number):
    texts = []
    for library in (rushlight, torch):
        try:
            traced = library.fx.symbolic_trace(PROGRAMS[number](library))
            texts.append((traced.code, str(traced.graph), str(traced)))
        except (ValueError, RuntimeError) as error:
            texts.append((type(error).__name__, str(error).split("\n")[0]))
    assert texts[0] == texts[1]
