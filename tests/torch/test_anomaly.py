"""Anomaly detection: the same results and refusals in both libraries."""

import contextlib
import io
import threading
import warnings

import pytest
import torch as torch_itself
from outcomes import collector, err, function_of, outcome

import rushlight


def cases(torch):
    found, case = collector()
    AN = torch.autograd.detect_anomaly
    L = lambda *s: torch.ones(*s, requires_grad=True)
    AN = torch.autograd.detect_anomaly

    @case("nan")
    def _():
        with AN():
            x = torch.zeros(2, requires_grad=True)
            y = (x / x).sum()
            y.backward()

    @case("nan sqrt")
    def _():
        with AN():
            x = torch.zeros(2, requires_grad=True)
            y = (x.sqrt() * 0).sum()
            y.backward()
            return x.grad

    @case("no check")
    def _():
        with AN(check_nan=False):
            x = torch.zeros(2, requires_grad=True)
            y = (x / x).sum()
            y.backward()
            return x.grad

    @case("custom raise")
    def _():
        class F(torch.autograd.Function):
            @staticmethod
            def forward(c, x):
                return x * 2

            @staticmethod
            def backward(c, g):
                raise ValueError("custom")

        with AN():
            F.apply(L(2)).sum().backward()

    @case("outside forward")
    def _():
        x = torch.zeros(2, requires_grad=True)
        y = (x / x).sum()
        with AN():
            y.backward()

    @case("version")
    def _():
        with AN():
            x = L(2) * 1
            y = x.sin()
            x.mul_(2)
            y.sum().backward()

    @case("set")
    def _():
        torch.autograd.set_detect_anomaly(True)
        a = torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()
        with torch.autograd.set_detect_anomaly(False):
            b = torch.is_anomaly_enabled()
        c = torch.is_anomaly_enabled()
        torch.autograd.set_detect_anomaly(True, check_nan=False)
        d = torch.is_anomaly_check_nan_enabled()
        torch.autograd.set_detect_anomaly(False)
        return a, b, c, d, torch.is_anomaly_enabled()

    @case("double")
    def _():
        with AN():
            x = torch.zeros(2, requires_grad=True)
            y = (x**1.5).sum()
            (g,) = torch.autograd.grad(y, x, create_graph=True)
            (g2,) = torch.autograd.grad(g.sum(), x, create_graph=True)
            (g2 * 0).sum().backward()
            return x.grad

    @case("complex")
    def _():
        with AN():
            x = torch.zeros(2, dtype=torch.complex64, requires_grad=True)
            (x.sqrt() * 0).abs().sum().backward()

    class Spoilt(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def backward(ctx, grad):
            return grad * float("nan"), grad

    @case("of an input that needs no gradient")
    def _():
        with AN():
            Spoilt.apply(torch.ones(2), L(2)).sum().backward()

    @case("a conjugate that is not computed yet")
    def _():
        class Conjugated(Spoilt):
            @staticmethod
            def backward(ctx, grad):
                return (grad * complex("nan")).conj(), None

        with AN():
            x = torch.ones(2, dtype=torch.complex128, requires_grad=True)
            Conjugated.apply(x, torch.ones(2)).real.sum().backward()

    for name, switch in {"mode": lambda: torch.autograd.set_detect_anomaly(1),
                         "check": lambda: torch.autograd.set_detect_anomaly(True, check_nan=1),
                         "enter": lambda: AN(check_nan=None).__enter__()}.items():  # fmt: skip
        case(f"switched by no bool: {name}")(switch)

    @case("other threads")
    def _():
        seen = []

        def train():
            seen.append((torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()))
            x = torch.zeros(2, requires_grad=True)
            try:
                (x.sqrt() * x).sum().backward()
            except RuntimeError as error:
                seen.append(str(error).partition("\n")[0])

        with AN():
            other = threading.Thread(target=train)
            other.start()
            other.join()
        return seen

    @case("a gradient of a gradient whose function nobody watched")
    def _():
        def fail(ctx, grad):
            raise ValueError("no gradient")

        failing = function_of(torch, lambda ctx, x: x * 1, fail, name="Failing")
        outer = function_of(torch, lambda ctx, x: x * 2, lambda ctx, g: failing.apply(g * 2), name="Outer")
        x = torch.ones(2, requires_grad=True)
        y = outer.apply(x * x).sum()
        told = []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with torch.autograd.detect_anomaly(check_nan=False):
                (grad,) = torch.autograd.grad(y, x, create_graph=True)
                told.append(err(grad.sum().backward))
        return told, [str(w.message).split(". ")[:2] for w in caught if "No forward" in str(w.message)]

    @case("what is printed of warnings that are errors")
    def _():
        told = io.StringIO()
        with contextlib.redirect_stderr(told), warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            with torch.autograd.set_detect_anomaly(True):
                y = torch.zeros(2, requires_grad=True).sqrt()
                said = err(lambda: (y * 0).sum().backward())
        lines = [line for line in told.getvalue().split("\n") if "Triggered" not in line]
        return said, lines[0], lines[-1:], lines.count("")

    @case("what hooks after a node make of its results")
    def _():
        told = []
        spoil, mend = (lambda gi, go: (gi[0] * float("nan"),)), (lambda gi, go: (torch.ones(2),))
        nans = function_of(torch, lambda ctx, x: x * 1, lambda ctx, g: g * float("nan"), name="Nans")
        for make, hook in ((torch.exp, spoil), (torch.sqrt, mend), (nans.apply, mend), (nans.apply, spoil)):
            with torch.autograd.set_detect_anomaly(True):
                x = torch.zeros(2, requires_grad=True)
                y = make(x)
                y.grad_fn.register_hook(hook)
                told += [err(lambda y=y: y.backward(torch.zeros(2))), x.grad]
        return told

    return found


@pytest.mark.parametrize("name", cases(rushlight))
def test_as_in_torch(name):
    expected = outcome(cases(torch_itself)[name])
    assert outcome(cases(rushlight)[name]) == expected
