"""Every optimizer of torch's optim_db: options, flags and refusals, and parameters and state step by step."""

import optimdb
import pytest

DTYPES = ("float64", "float32", "complex128")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", optimdb.INFOS)
def test_steps(name, dtype):
    assert not list(optimdb.check(name, dtype))


@pytest.mark.parametrize("name", optimdb.INFOS)
def test_refusals(name):
    assert not list(optimdb.check_errors(name))
