"""The profiler: counts, nesting, memory, tables, traces, schedules."""

import doctest
import json

import pytest

import rushlight as torch
from rushlight.autograd import profiler as autograd_profiler
from rushlight.profiler import ProfilerAction, profile, record_function, schedule


def train_step(x):
    with record_function("loss"):
        loss = (x * 2).exp().sum()
    loss.backward()


def test_counts_and_nesting():
    x = torch.ones(3, requires_grad=True)
    with autograd_profiler.profile(record_shapes=True) as measured:
        train_step(x)
        train_step(x)
    counts = {average.key: average.count for average in measured.key_averages()}
    assert counts["loss"] == counts["aten::exp"] == counts["ExpBackward0"] == 2
    loss = next(e for e in measured.function_events if e.name == "loss")
    assert [child.name for child in loss.cpu_children] == ["aten::mul", "aten::exp", "aten::sum"]
    assert 0 <= loss.self_cpu_time_total <= loss.cpu_time_total
    product = loss.cpu_children[0]
    assert product.input_shapes[0] == (3,)
    assert x.grad.shape == (3,)


def test_nothing_is_measured_outside():
    with autograd_profiler.profile() as measured:
        pass
    _ = torch.ones(2) + 1
    assert len(measured.function_events) == 0
    with autograd_profiler.profile(enabled=False) as nothing:
        _ = torch.ones(2) + 1
    assert nothing is None
    with autograd_profiler.profile(), pytest.raises(RuntimeError, match="already enabled"):
        _ = autograd_profiler.profile().__enter__()


def test_memory_and_table():
    with profile(profile_memory=True) as measured:
        kept = torch.ones(1024) + 1
    (average,) = measured.key_averages()
    assert average.self_cpu_memory_usage == kept.nbytes
    table = measured.key_averages().table(sort_by="self_cpu_time_total", row_limit=5)
    for text in ("Self CPU %", "# of Calls", "aten::add", "KB", "Self CPU time total"):
        assert text in table


def test_errors_inside_keep_the_books():
    with autograd_profiler.profile() as measured:
        with pytest.raises(RuntimeError):
            _ = torch.ones(2) + torch.ones(3)
        _ = torch.ones(2).exp()
    assert measured.function_events[-1].cpu_parent is None


def test_chrome_trace(tmp_path):
    with profile() as measured:
        _ = torch.ones(2).sin()
    measured.export_chrome_trace(str(tmp_path / "trace.json"))
    (event,) = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert (event["name"], event["ph"]) == ("aten::sin", "X")
    measured.export_chrome_trace(str(tmp_path / "trace.json.gz"))
    assert (tmp_path / "trace.json.gz").exists()


def test_schedule():
    plan = schedule(wait=1, warmup=1, active=2, repeat=1, skip_first=1)
    names = [plan(step).name for step in range(7)]
    assert names == ["NONE", "NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE", "NONE", "NONE"]
    ready = []
    with profile(schedule=plan, on_trace_ready=lambda p: ready.append(len(p.events()))) as measured:
        for _ in range(7):
            torch.ones(2).sin()
            measured.step()
    assert ready == [4]  # two steps, each with one operation
    assert measured.current_action is ProfilerAction.NONE


@pytest.mark.parametrize("module", [autograd_profiler, torch.profiler], ids=["autograd", "profiler"])
def test_examples(module):
    failed, _ = doctest.testmod(module, extraglobs={"rushlight": torch})
    assert not failed
