"""Window functions, and names that are imported when first used."""

import importlib

import pytest

import rushlight
from rushlight.signal import windows


@pytest.mark.parametrize("name", sorted(rushlight._LAZY))
def test_every_lazy_name_can_be_imported(name):
    assert getattr(rushlight, name) is importlib.import_module(f"rushlight.{name}")
    assert hasattr(rushlight, name)


def test_symmetric_and_periodic_windows():
    """A periodic window is a symmetric one of one sample more, without its last."""
    for name in windows.__all__:
        extra = {"a": [0.5, 0.3, 0.2]} if name == "general_cosine" else {}
        function = getattr(windows, name)
        for length in (0, 1, 2, 5, 8):
            whole = function(length + 1, **extra, dtype=rushlight.float64)
            part = function(length, sym=False, **extra, dtype=rushlight.float64)
            assert part.shape == (length,)
            if length > 1:
                assert rushlight.allclose(part, whole[:-1], atol=1e-15), name
                assert rushlight.allclose(whole, whole.flip(0), atol=1e-15), name
            elif length == 1:
                assert part.tolist() == [1.0]


def test_older_names():
    for name in ("hann", "hamming", "blackman", "bartlett", "kaiser"):
        older, newer = getattr(rushlight, f"{name}_window"), getattr(windows, name)
        assert rushlight.equal(older(7), newer(7, sym=False))
        assert rushlight.equal(older(7, False), newer(7))
        assert older(3, dtype=rushlight.float16, requires_grad=True).requires_grad
    assert rushlight.allclose(rushlight.kaiser_window(5, True, 8.0), windows.kaiser(5, beta=8.0, sym=False))
    assert rushlight.hamming_window(4, True, 0.5, 0.25).tolist() == [0.25, 0.5, 0.75, 0.5]


def test_errors():
    with pytest.raises(RuntimeError, match="hann_window requires non-negative window_length"):
        rushlight.hann_window(-1)
    with pytest.raises(RuntimeError, match="expects floating point dtypes"):
        rushlight.hann_window(3, dtype=rushlight.int64)
    with pytest.raises(ValueError, match="general_cosine requires non-negative window length, got M=-1"):
        windows.hann(-1)
    with pytest.raises(ValueError, match="expects float32 or float64 dtypes"):
        windows.cosine(3, dtype=rushlight.float16)
    with pytest.raises(ValueError, match="Center must be None for symmetric windows"):
        windows.exponential(3, center=1.0)
    with pytest.raises(ValueError, match="Tau must be positive"):
        windows.exponential(3, tau=0)
    with pytest.raises(ValueError, match="Coefficients cannot be empty"):
        windows.general_cosine(3, a=[])
