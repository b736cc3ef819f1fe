"""What the events of a profile tell, each of them: the same in both libraries."""

import json
from importlib import import_module
from pathlib import Path

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


ARGUMENTS = """
x.t().contiguous()
x.sum(1, keepdim=True), x.sum(), x.sum(dtype=torch.float64)
torch.cat([x, x], 1), torch.stack((x, x))
x + 2, x * 2.5, x - 1, x / 2j, x.add(x, alpha=2), x ** 2, x > 0, x.clamp(0, 1)
x.transpose(0, 1).expand(4, 3, 2), x.view(6), x.reshape(3, 2), x.permute(1, 0)
x.half().sin(), x.bfloat16().cos(), x.cdouble().exp(), x.long().neg(), x.bool().logical_not(), x.int().abs()
x.softmax(1), x.relu(), torch.nn.functional.dropout(x, 0.5), x.unsqueeze(0).squeeze(0), x.narrow(1, 0, 2)
torch.einsum("ij,kj->ik", x, x), torch.where(x > 0, x, x), x.index_select(0, torch.tensor([0])), x[0, 1:]
torch.nn.functional.conv2d(x[None, None], x[None, None]), x @ x.t(), torch.addmm(x @ x.t(), x, x.t())
(x.clone().mul_(2), x.clone().fill_(1), x.clone().uniform_(), x.clone().bernoulli_(0.5))
x.clone().normal_(), x.clone().zero_(), x.clone().add_(x[0])
""".strip().splitlines()
# What torch calls otherwise within others, or with what its Python bindings fill in.
WITHIN = {f"aten::{name}" for name in ("clone", "div_", "to", "bmm", "_convolution")}


@pytest.mark.parametrize("text", ARGUMENTS)
def test_sizes_strides_and_types_of_arguments(text):
    def told(torch):
        x = torch.arange(6.0).reshape(2, 3)
        with import_module(f"{torch.__name__}.autograd.profiler").profile(record_shapes=True) as measured:
            eval(text, {"torch": torch, "x": x})
        found = {}
        for e in measured.function_events:
            about = e.input_shapes, e.structured_input_shapes, e.structured_input_strides, e.input_dtypes
            found.setdefault(e.name, []).append(about)
        return found

    ours, theirs = told(rushlight), told(torch)
    compared = [
        name for name, found in ours.items()
        if name not in WITHIN and name in theirs and len(theirs[name]) == len(found)
    ]  # fmt: skip
    assert compared
    assert {name: ours[name] for name in compared} == {name: theirs[name] for name in compared}


@case("events of one name, each the only part of the one before")
def _(torch):
    util = import_module(f"{torch.__name__}.autograd.profiler_util")
    names = "aaabaaabc"
    found = util.EventList([util.FunctionEvent(i, name, 1, 0, 50 - i) for i, name in enumerate(names)])
    found._build_tree()
    return [(e.id, e.cpu_parent and e.cpu_parent.id, [c.id for c in e.cpu_children]) for e in found]


@case("stacks of derivatives are those of what they are derivatives of")
def _(torch):
    x = torch.ones(2, requires_grad=True)
    util = import_module(f"{torch.__name__}.autograd.profiler_util")
    made = [
        event(torch, scope=scope, sequence_nr=number, stack=stack, fwd_thread=0)
        for scope, number, stack in ((0, 1, ["a"]), (1, 1, ["b"]), (0, 1, ["c"]), (1, 2, ["d"]), (0, 2, None))
    ]
    made[4].set_cpu_parent(made[1])
    found = util.EventList(made)
    found._set_backward_stacktraces()
    return [e.stack for e in found], x.grad


@case("what accelerators tell of an event")
def _(torch):
    util = import_module(f"{torch.__name__}.autograd.profiler_util")
    meta = {"grid": "[1, 2, 3]", "stream": "7", "Is asynchronized op": "true", "dtype": '"float"',
            "other": "1", "est. achieved occupancy %": "2.5", "Seq": "4"}  # fmt: skip
    told = {(key, field, kind("1")) for key, (field, kind) in util._EVENT_METADATA_KEYS.items()}
    made = event(torch, extra_meta=meta).event_metadata
    return sorted(map(str, told)), made, util._build_metadata({"x": "1"}), util.EventMetadata._fields


@case("arrows of the events that the extension tells of")
def _(torch):
    x = torch.ones(2, requires_grad=True)
    with import_module(f"{torch.__name__}.autograd.profiler").profile() as measured:
        (x * 2).sin().sum().backward()
    events = [e for e in measured.kineto_results.events() if e.flow_id()]
    return [(e.name(), e.flow_id(), e.flow_type(), e.flow_start()) for e in events]


@case("events of a trace in a canonical form")
def _(torch):
    util = import_module(f"{torch.__name__}.autograd.profiler_util")
    events = [
        {"name": "b" * 40, "ts": 2, "args": {"node_name": "n", "stack_trace": "f(x)\n  g(x)\n  ~~^^\n"}},
        {"name": "a", "ts": 1, "args": {}},
        {"args": {"stack_trace": "^^"}},
    ]
    return util._canonicalize_profiler_events(events)


@case("tables")
def _(torch):
    util = import_module(f"{torch.__name__}.autograd.profiler_util")
    made = util.EventList([event(torch, input_shapes=[[2]], flops=2000)])
    return (
        util._build_table(made, header="h", with_flops=True),
        util._build_table(made),
        util._build_table([]),
    )


@case("what measuring took")
def _(torch):
    profiler = import_module(f"{torch.__name__}.autograd.profiler")
    with profiler.profile() as measured:
        torch.ones(2).sin()
    stats = measured._stats
    again = measured._parse_kineto_results(measured.kineto_results, 9.0)
    return (
        0 < stats.profiling_window_duration_sec < 1, type(stats).__name__,
        profiler._ProfilerStats() == profiler._ProfilerStats(), profiler._ProfilerStats(2.0), bool(again),
        err(measured._parse_kineto_results, measured.kineto_results, -1), measured._ensure_function_events(),
    )  # fmt: skip


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


def test_the_trace_tells_them_too(tmp_path):
    told = []
    for lib in (rushlight, torch):
        path = str(tmp_path / lib.__name__)
        x = lib.ones(2, 3, requires_grad=True)
        with import_module(f"{lib.__name__}.autograd.profiler").profile(record_shapes=True) as measured:
            (x * 2).sum().backward()
        measured.export_chrome_trace(path)
        events = [e for e in json.loads(Path(path).read_text())["traceEvents"] if e.get("cat") == "cpu_op"]
        shown = "Input type", "Input Strides", "Input Dims", "Record function id"
        told.append([(e["name"], [e["args"].get(key) for key in shown]) for e in events if e["name"] in
                     ("aten::mul", "SumBackward0", "MulBackward0")])  # fmt: skip
        assert all(e["args"]["External id"] > e["args"]["Ev Idx"] >= 0 for e in events)
    assert told[0] == told[1]
