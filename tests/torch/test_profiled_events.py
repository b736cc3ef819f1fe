"""What the events of a profile tell, each of them: the same in both libraries."""

from importlib import import_module

import pytest
import torch
from outcomes import collector, err, outcome

import rushlight

CASES, case = collector()
IMPORTANT = {"block", *(f"aten::{name}" for name in ("mm", "sin", "mul", "add", "sum"))}


def profiled(torch, function, **options):
    with import_module(f"{torch.__name__}.autograd.profiler").profile(**options) as measured:
        function()
    return [
        event
        for event in measured.function_events
        if event.name in IMPORTANT or (event.name.endswith("Backward0") and ":" not in event.name)
    ]


def event(torch, **options):
    cls = import_module(f"{torch.__name__}.autograd.profiler_util").FunctionEvent
    return cls(id=1, name="one", thread=0, start_us=0, end_us=3, **options)


@case("an arrow leads from each operation to its derivative")
def _(torch):
    x = torch.ones(2, 3, requires_grad=True)

    def passes():
        y = x.sin()
        (y * y + y).sum().backward()
        torch.autograd.grad((x * 2).sum(), x)

    found = profiled(torch, passes)
    arrows = [(e.name, e.flow_id, e.flow_type, e.flow_start) for e in found if e.flow_id]
    return arrows, {(e.flow_id, e.flow_type, e.flow_start) for e in found if not e.flow_id}


@case("what they are, and the shapes of their arguments")
def _(torch):
    profiler = import_module(f"{torch.__name__}.autograd.profiler")

    def named():
        with profiler.record_function("block"):
            torch.mm(torch.ones(2, 3), torch.ones(3, 4)).sin()

    told = []
    for shapes in (True, False):
        for e in profiled(torch, named, record_shapes=shapes):
            told += [(e.name, e.activity_type, e.structured_input_shapes, e.linked_correlation_id)]
            told += [(e.metadata_json, e.python_id, e.event_metadata, e.external_id == e.id)]
    return told


@case("strides and dtypes of a profile that did not look at arguments")
def _(torch):
    return [(e.structured_input_strides, e.input_dtypes) for e in profiled(torch, torch.ones(2).sin)]


@case("an event made by hand keeps what it was given")
def _(torch):
    given = {
        "activity_type": "cpu_op", "metadata_json": "{}", "flow_id": 3, "flow_type": 1, "flow_start": True,
        "external_id": 4, "linked_correlation_id": 5, "structured_input_shapes": [[2]], "python_id": 6,
        "structured_input_strides": [[1]], "input_dtypes": ["float"], "python_parent_id": 7,
        "python_module_id": 8, "trace_name": "other",
    }  # fmt: skip
    with_all, plain = event(torch, **given), event(torch)
    return [(getattr(with_all, name) == value, getattr(plain, name)) for name, value in given.items()]


@pytest.mark.parametrize("name", CASES)
def test_it_gives_what_torch_gives(name):
    ours, theirs = outcome(lambda: CASES[name](rushlight)), outcome(lambda: CASES[name](torch))
    assert ours == theirs


def test_what_is_not_noted_is_not_told():
    x = rushlight.ones(2)
    (sin,) = profiled(rushlight, x.sin, record_shapes=True)
    for name in ("structured_input_strides", "input_dtypes"):
        assert "NotImplementedError: the profiler notes the shapes" in err(getattr, sin, name)
    with pytest.raises(NotImplementedError):
        event(rushlight, extra_meta={"stream": "3"})
