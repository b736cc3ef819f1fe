"""The logger `torch.autograd.graph`, and who decides what it says."""

import logging
import os
import subprocess
import sys

import pytest

import rushlight as torch


class Kept(logging.Handler):
    def __init__(self):
        super().__init__()
        self.records = []

    def emit(self, record):
        self.records.append(record.getMessage())


@pytest.fixture
def said():
    log, handler = logging.getLogger("torch.autograd.graph"), Kept()
    assert log is torch.autograd.graph.log
    log.addHandler(handler)
    yield handler.records
    log.removeHandler(handler)
    log.setLevel(logging.NOTSET)


def test_every_node_that_runs_is_told(said):
    a = torch.rand(10, requires_grad=True)
    a.sum().backward()
    assert said == []
    logging.getLogger("torch.autograd").setLevel(logging.DEBUG)
    try:
        b = a.mul(2).div(3).sum()
        c = b.clone()
        torch.autograd.backward((b, c))
        names = ["CloneBackward0", "SumBackward0", "DivBackward0", "MulBackward0", "AccumulateGrad"]
        assert len(said) == 5 and all(name in line for name, line in zip(names, said))
        assert said[2].startswith("Executing: <DivBackward0 object at ") and said[2].endswith(
            "with grad_outputs: [f32[10]]"
        )
        said.clear()
        torch.autograd.grad((a * 2).sum(), a)
        assert len(said) == 2  # nothing is accumulated
        u = a.unbind()
        said.clear()
        (u[0] * 2).backward()
        assert said[1].count("None") == 9
    finally:
        logging.getLogger("torch.autograd").setLevel(logging.NOTSET)
    said.clear()
    (a * 2).sum().backward()
    assert said == []


def test_set_logs():
    torch._logging.set_logs(autograd=logging.DEBUG)
    assert logging.getLogger("torch.autograd.graph").isEnabledFor(logging.DEBUG)
    torch._logging.set_logs()
    assert logging.getLogger("torch.autograd").level == 0
    with pytest.raises(TypeError, match="unexpected keyword argument 'foo'"):
        torch._logging.set_logs(foo=1)
    with pytest.raises(ValueError, match="Unrecognized log level for log autograd: True, valid level values"):
        torch._logging.set_logs(autograd=True)


def test_the_environment_decides_too(tmp_path):
    program = "import rushlight as torch; torch.ones(2, requires_grad=True).sum().backward()"
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "TORCH_LOGS": "+autograd"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Executing: <SumBackward0" in run.stderr


def test_a_budget_is_for_compiled_regions():
    budget = torch.autograd.graph.region_activation_memory_budget
    with pytest.raises(RuntimeError, match="can only be used inside a torch"):
        budget(0.5)
    with pytest.raises(ValueError, match=r"must be in \[0, 1\], got 5"):
        budget(5.0)


def test_test_suites_find_the_registered_loggers():
    import unittest

    from rushlight._dynamo import test_case

    from rushlight._logging import _internal

    names = _internal.log_registry.get_log_qnames()
    assert "torch.autograd" in names
    assert all(logging.getLogger(name).handlers for name in names)
    before = _internal._get_log_state()
    torch._logging.set_logs(autograd=logging.DEBUG)
    assert logging.getLogger("torch.autograd").level == logging.DEBUG
    _internal._set_log_state(before)
    assert logging.getLogger("torch.autograd").level != logging.DEBUG
    assert issubclass(test_case.TestCase, unittest.TestCase)
