"""What torch warns of once in a process is warned of once."""

import warnings

import pytest

import rushlight as torch
from rushlight import _warn

EYE = torch.eye(3)
CALLS = {
    "cholesky": lambda: torch.cholesky(EYE),
    "qr": lambda: torch.qr(EYE),
    "lu": lambda: torch.lu(EYE),
    "lu_solve": lambda: torch.lu_solve(EYE, *torch.linalg.lu_factor(EYE)),
    "triangular_solve": lambda: torch.triangular_solve(EYE, EYE),
    "istft": lambda: torch.istft(
        torch.ones(3, 17, dtype=torch.complex64), 4, window=torch.ones(4), length=70
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_second_call_is_silent(name, monkeypatch):
    monkeypatch.setattr(_warn, "_warned", set())
    with pytest.warns(UserWarning):
        CALLS[name]()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CALLS[name]()
    torch.set_warn_always(True)
    try:
        with pytest.warns(UserWarning):
            CALLS[name]()
    finally:
        torch.set_warn_always(False)
