"""The forms in which torch offers an operation: function, method, in place, `out=`."""

import pytest

import rushlight


def test_functions_that_work_in_place():
    for name in ("abs_", "exp_", "clamp_", "zero_", "relu_", "sigmoid_", "fill_"):
        x = rushlight.tensor([-1.0, 0.5])
        expected = getattr(x.clone(), name)(*([0.0] if name in ("clamp_", "fill_") else []))
        result = getattr(rushlight, name)(x, *([0.0] if name in ("clamp_", "fill_") else []))
        assert result is x and rushlight.equal(x, expected)


def test_put_is_a_function_too():
    x = rushlight.zeros(3)
    assert rushlight.put(x, rushlight.tensor([1]), rushlight.tensor([5.0])).tolist() == [0, 5, 0]
    assert x.tolist() == [0, 0, 0]


def test_empty_permuted():
    x = rushlight.empty_permuted((2, 3, 5), (2, 0, 1), dtype=rushlight.int32)
    assert x.stride() == (3, 1, 6) and x.dtype == rushlight.int32
    for size, layout, message in (
        ((2, 3), (0, 0), "Duplicate dim not allowed"),
        ((2, 3), (0,), "Number of dimensions in size does not match"),
        ((2, 3), (0, 2), "Dimension out of range"),
    ):
        with pytest.raises(RuntimeError, match=message):
            rushlight.empty_permuted(size, layout)


def test_range_includes_its_end():
    with pytest.warns(UserWarning, match="torch.range is deprecated"):
        assert rushlight.range(1, 2, 0.5).tolist() == [1, 1.5, 2]
    with pytest.warns(UserWarning), pytest.raises(RuntimeError, match="inconsistent with step sign"):
        rushlight.range(4, 1)
