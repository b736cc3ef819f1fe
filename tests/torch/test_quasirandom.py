"""Sobol points are torch's, bit for bit."""

import pytest
import torch

import rushlight


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("seed", [None, 5])
@pytest.mark.parametrize("dimension", [1, 2, 9, 300])
def test_points(dimension, seed, dtype):
    results = []
    for library in (rushlight, torch):
        library.manual_seed(1)
        engine = library.quasirandom.SobolEngine(dimension, seed is not None or dimension == 9, seed)
        drawn = [engine.draw(n, dtype=getattr(library, dtype)).tolist() for n in (1, 100, 27)]
        engine.fast_forward(1000)
        drawn.append(engine.draw(3).tolist())
        results.append((repr(engine), drawn, engine.reset().draw(4).tolist(), library.rand(1).item()))
    assert results[0] == results[1]


def test_every_direction_number():
    ours = rushlight.quasirandom.direction_numbers(21201)
    assert ours.tolist() == torch.quasirandom.SobolEngine(21201).sobolstate.tolist()
