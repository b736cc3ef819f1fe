"""The Sobol sequence: its published start, its balance, scrambling, and the ways to move in it."""

import pytest

import rushlight as torch
from rushlight.quasirandom import SobolEngine, direction_numbers

FIRST = [[0.0, 0.0, 0.0], [0.5, 0.5, 0.5], [0.75, 0.25, 0.25], [0.25, 0.75, 0.75], [0.375, 0.375, 0.625]]


def test_the_sequence_starts_as_published():
    assert SobolEngine(3).draw(5).tolist() == FIRST


def test_the_table():
    rows = direction_numbers(21201)
    assert rows.shape == (21201, 30)
    # Column j is odd in bit j from the top, and nothing below it: each is a basis of its own.
    lowest = rows & -rows
    assert (lowest == 1 << torch.arange(29, -1, -1)).all()
    assert torch.equal(rows[:500], direction_numbers(500))


@pytest.mark.parametrize("scramble", [False, True])
def test_every_interval_holds_one_point(scramble):
    torch.manual_seed(0)
    points = SobolEngine(50, scramble).draw(64, dtype=torch.float64)
    cells = (points * 64).long().sort(0).values
    assert torch.equal(cells, torch.arange(64)[:, None].expand(64, 50))


def test_scrambling_follows_the_seed():
    drawn = SobolEngine(5, scramble=True, seed=1234).draw(2)
    torch.testing.assert_close(
        drawn,
        torch.tensor([[0.2031, 0.4212, 0.0052, 0.8780, 0.6396], [0.8889, 0.8496, 0.7040, 0.2345, 0.1021]]),
        atol=1e-4,
        rtol=0,
    )
    torch.manual_seed(3)
    unseeded = SobolEngine(5, scramble=True).draw(2)
    torch.manual_seed(3)
    assert torch.equal(unseeded, SobolEngine(5, scramble=True).draw(2)) and not torch.equal(unseeded, drawn)


@pytest.mark.parametrize("parts", [[1, 1, 98], [50, 50], [7, 13, 1, 79], [100]])
def test_draw_goes_on_where_it_stopped(parts):
    whole = SobolEngine(4, True, 2).draw(100)
    engine = SobolEngine(4, True, 2)
    assert torch.equal(whole, torch.cat([engine.draw(n) for n in parts]))
    assert engine.num_generated == 100
    assert torch.equal(engine.reset().draw(3), whole[:3])
    assert torch.equal(engine.fast_forward(40).draw(5), whole[43:48])
    out = torch.empty(0)
    assert engine.draw(2, out=out) is out and torch.equal(out, whole[48:50])


def test_errors():
    with pytest.raises(ValueError, match=r"range of dimensionality for SobolEngine is \[1, 21201\]"):
        SobolEngine(21202)
    engine = SobolEngine(2)
    engine.draw(3)
    with pytest.raises(ValueError, match=r"require n to be a power of 2\. 3 points"):
        engine.draw_base2(2)
    with pytest.raises(NotImplementedError, match="not implemented for 'Half'"):
        engine.draw(2, dtype=torch.float16)
    with pytest.raises(TypeError, match="argument 'n'"):
        engine.draw(2.5)
    with pytest.raises(RuntimeError, match="no more than"):
        engine.fast_forward(2**30)
    assert torch.equal(engine.draw(1), SobolEngine(2).fast_forward(3).draw(1))
