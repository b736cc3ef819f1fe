"""The profiler: counts, nesting, memory, tables, traces, schedules."""

import doctest
import json
import threading

import pytest

import rushlight as torch
import rushlight.utils.data
from rushlight.autograd import profiler as autograd_profiler
from rushlight.autograd import profiler_util
from rushlight.autograd.profiler_util import EventList, FunctionEvent, FunctionEventAvg
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
    assert product.input_shapes[0] == [3]
    assert x.grad.shape == (3,)


def test_nothing_is_measured_outside():
    with autograd_profiler.profile() as measured:
        pass
    _ = torch.ones(2) + 1
    assert len(measured.function_events) == 0
    with autograd_profiler.profile(enabled=False) as nothing:
        _ = torch.ones(2) + 1
    assert nothing is None
    # The inner of two takes over, as in torch.
    with (
        autograd_profiler.profile() as outer,
        pytest.warns(UserWarning, match="already enabled"),
        autograd_profiler.profile() as inner,
    ):
        _ = torch.ones(2).exp()
    assert len(outer.function_events) == 0 and inner.function_events[-1].name == "aten::exp"


def test_events_of_a_backward():
    x = torch.ones(3, requires_grad=True)
    with autograd_profiler.profile(profile_memory=True) as measured:
        (x * 2).sum(dim=None).backward()
    names = [event.name for event in measured.function_events]
    assert "torch::autograd::AccumulateGrad" in names and "SumBackward1" in names
    assert all(event.fwd_thread == 1 for event in measured.function_events if "Backward" in event.name)
    with autograd_profiler.profile(profile_memory=True) as measured:
        _ = torch.rand(10, 10)
    memory = {event.key: event.cpu_memory_usage for event in measured.key_averages()}
    assert memory["aten::rand"] == 400 and measured.trace_id


def test_memory_and_table():
    with profile(profile_memory=True) as measured:
        kept = torch.ones(1024) + 1
    memory = {average.key: average.self_cpu_memory_usage for average in measured.key_averages()}
    assert memory["aten::add"] == memory["aten::empty"] == kept.nbytes
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
    x = torch.ones(2)
    with profile() as measured:
        _ = x.sin()
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
    x = torch.ones(2)
    with profile(schedule=plan, on_trace_ready=lambda p: ready.append(len(p.events()))) as measured:
        for _ in range(7):
            x.sin()
            measured.step()
    assert ready == [4]  # two steps, each with one operation
    assert measured.current_action is ProfilerAction.NONE


def test_events_know_their_derivatives(tmp_path):
    x = torch.ones(3, requires_grad=True)
    with autograd_profiler.profile() as measured:
        (x * 2).sum().backward()
    events = {event.name: event for event in measured.function_events}
    forward = next(e for e in measured.function_events if e.name == "aten::mul")
    assert forward.sequence_nr == events["MulBackward0"].sequence_nr > 0
    step = events["autograd::engine::evaluate_function: MulBackward0"]
    assert step.cpu_children == [events["MulBackward0"]] and events["MulBackward0"].scope == 1
    measured.export_chrome_trace(str(tmp_path / "trace.json"))
    written = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert sorted(e["ph"] for e in written if e["name"] == "fwdbwd") == ["f", "f", "s", "s"]


def test_stacks_shapes_and_flops(tmp_path):
    x = torch.rand(3, 4)
    with profile(with_stack=True, with_flops=True) as measured:
        torch.mm(x, torch.rand(4, 5))
    product = next(e for e in measured.events() if e.name == "aten::mm")
    assert product.flops == 120 and product.input_shapes == [[3, 4], [4, 5]]
    assert "test_stacks_shapes_and_flops" in product.stack[0]
    by_stack = measured.key_averages(group_by_stack_n=2).table(max_src_column_width=40)
    assert "Source Location" in by_stack and "FLOPs" in by_stack
    measured.export_stacks(str(tmp_path / "stacks"), "self_cpu_time_total")
    with pytest.raises(ValueError, match="metric should be one of"):
        measured.export_stacks(str(tmp_path / "stacks"), "nope")


def test_events_made_by_hand():
    times = [(0, (0, 10)), (0, (1, 5)), (0, (2, 3)), (0, (6, 9)), (1, (1, 4)), (1, (2, 3))]
    events = EventList(
        FunctionEvent(id=i, name="f", thread=thread, start_us=start, end_us=end)
        for i, (thread, (start, end)) in enumerate(times)
    )
    events._populate_cpu_children()
    assert [[child.id for child in event.cpu_children] for event in events] == [[1, 3], [2], [], [], [5], []]
    average = FunctionEventAvg()
    average.add(FunctionEvent(id=0, name="foo", thread=0, start_us=10, end_us=15))
    average.add(FunctionEvent(id=1, name="foo", thread=0, start_us=20, end_us=30))
    average.add(average)
    assert (average.key, average.count, average.cpu_time_total) == ("foo", 4, 30)


def test_averages_of_events_that_nobody_nested_are_refused():
    events = EventList([FunctionEvent(id=0, name="f", thread=0, start_us=0, end_us=1)])
    with pytest.raises(AssertionError, match="Expected tree to be built"):
        events.key_averages()
    events._build_tree()
    assert [average.count for average in events.key_averages()] == [1]
    assert not autograd_profiler.profile().key_averages()
    with pytest.raises(AssertionError, match="FunctionEvent or FunctionEventAvg"):
        FunctionEventAvg().add(3)
    with pytest.raises(AssertionError, match="Expected time_us == 0"):
        profiler_util._format_time_share(1, 0)


def test_events_alone_are_written_as_a_list(tmp_path):
    with autograd_profiler.profile() as measured:
        torch.ones(2)
    measured.function_events.export_chrome_trace(str(tmp_path / "events.json"))
    written = json.loads((tmp_path / "events.json").read_text())
    assert [event["name"] for event in written] == ["aten::ones", "aten::empty", "aten::fill_"]


def test_the_outermost_operation_with_a_derivative_has_the_number_of_its_node():
    x, weight = torch.ones(2, 3, requires_grad=True), torch.ones(4, 3, requires_grad=True)
    with autograd_profiler.profile() as measured:
        torch.nn.functional.linear(x, weight).relu()
    numbers = {event.name: event.sequence_nr for event in measured.function_events}
    first = numbers["aten::linear"]
    assert first > 0 and numbers["aten::t"] == first and numbers["aten::transpose"] == -1
    assert numbers["aten::mm"] == numbers["aten::matmul"] == first + 1
    assert numbers["aten::relu"] == first + 2 and numbers["aten::clamp_min"] == -1


def test_methods_that_are_no_operations_are_no_events():
    x = torch.ones(2, requires_grad=True)
    with autograd_profiler.profile() as measured:
        y = x.double()
        y.register_hook(lambda grad: grad)
        y.detach().tolist()
    assert [event.name for event in measured.function_events] == [
        "aten::to",
        "aten::_to_copy",
        "aten::detach",
    ]


def test_schedules_that_break_off_and_profiles_that_nobody_started():
    actions = [ProfilerAction.RECORD, ProfilerAction.NONE, ProfilerAction.WARMUP, ProfilerAction.NONE]
    told = []
    with (
        pytest.warns(UserWarning, match="Incorrect schedule") as caught,
        profile(schedule=actions.__getitem__, on_trace_ready=told.append) as measured,
    ):
        for _ in range(3):
            torch.ones(1)
            measured.step()
    said = [str(each.message) for each in caught]
    assert said == [f"Incorrect schedule: {name} followed by NONE" for name in ("RECORD", "WARMUP")]
    assert not told and measured.step_num == 3
    idle = profile()
    idle.step()
    with pytest.raises(AssertionError, match="must be initialized before stopping"):
        idle.stop()
    assert not torch.autograd._profiler_enabled()


def test_activities_of_devices_that_are_not_there():
    CPU, CUDA = torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA
    with (
        pytest.warns(UserWarning, match="CUDA is not available"),
        profile(activities=[CPU, CUDA]) as measured,
    ):
        torch.zeros(1)
    assert [event.name for event in measured.events()] == ["aten::zeros", "aten::empty", "aten::zero_"]
    with (
        pytest.warns(UserWarning, match="CUDA is not available"),
        pytest.raises(AssertionError, match="No activities specified"),
        profile(activities=[CUDA]),
    ):
        pass


def test_names_that_the_extension_has_too():
    native = torch._C._autograd
    assert native.DeviceType is torch.autograd.DeviceType is torch.profiler.DeviceType
    assert (
        native._supported_activities() == {torch.autograd.ProfilerActivity.CPU} and native.kineto_available()
    )
    assert not native._profiler_enabled() and not hasattr(native, "absent")


def test_ranges_that_nobody_began_or_named():
    with pytest.raises(AssertionError, match="Expected record to be set"):
        record_function("never begun").__exit__(None, None, None)
    with pytest.raises(RuntimeError, match="Expected a value of type 'str'"):
        record_function(3).__enter__()


def test_ranges_that_other_calls_begin_and_end():
    with autograd_profiler.profile() as measured:
        handle = torch.autograd._record_function_with_args_enter("with arguments", torch.ones(2), 3)
        torch.autograd._record_function_with_args_exit(handle)
        handle = torch.ops.profiler._record_function_enter_new("until complete")
        future = torch.futures.Future()
        after = torch.ops.profiler._call_end_callbacks_on_jit_fut(handle, future)
        future.set_result(3)
        assert after.wait() == 3
    named = [event.name for event in measured.function_events if event.is_user_annotation]
    assert named == ["with arguments", "until complete"]


def test_only_the_measuring_thread_is_measured():
    x = torch.ones(2)
    with autograd_profiler.profile() as measured:
        other = threading.Thread(target=x.exp)
        other.start()
        other.join()
    assert len(measured.function_events) == 0


def test_optimisers_loaders_and_operators_by_name():
    w = torch.rand(2, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)
    with autograd_profiler.profile() as measured:
        (w * 2).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        for _ in torch.utils.data.DataLoader([1, 2]):
            pass
        handle = torch.ops.profiler._record_function_enter_new("block", None)
        torch.ops.profiler._record_function_exit._RecordFunction(handle)
    names = [event.name for event in measured.function_events]
    for name in ("Optimizer.step#SGD.step", "Optimizer.zero_grad#SGD.zero_grad", "block"):
        assert names.count(name) == 1
    assert names.count("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__") == 3


@pytest.mark.parametrize(
    "module",
    [autograd_profiler, profiler_util, torch.profiler.profiler],
    ids=["autograd", "events", "profiler"],
)
def test_examples(module):
    failed, _ = doctest.testmod(module, extraglobs={"rushlight": torch})
    assert not failed


def test_memory_that_goes_between_operations_is_an_event():
    with torch.profiler.profile(profile_memory=True) as measured:
        x = torch.rand(10, 10)
        y = x * 2
        del x
        with torch.profiler.record_function("inside"):
            del y
    seen = [(event.name, event.cpu_memory_usage) for event in measured.events()]
    assert ("[memory]", -400) in seen and ("inside", -400) in seen
    assert sum(name == "[memory]" for name, _ in seen) == 1
    (row,) = [row for row in measured.key_averages() if row.key == "[memory]"]
    assert row.cpu_memory_usage == -400


def test_ranges_for_a_profiler_that_does_not_listen_go_nowhere(monkeypatch):
    itt = torch.profiler.itt
    marked = itt.range("step {}", 1)
    with marked, autograd_profiler.emit_itt() as emitting:
        itt.mark("here")
        with pytest.raises(RuntimeError, match="ITT annotation context manager is not reentrant"):
            emitting.__enter__()
    assert itt.is_available() and autograd_profiler.emit_itt(enabled=False).__enter__() is None
    with pytest.raises(TypeError, match="incompatible function arguments"):
        itt.range_push(3)
    monkeypatch.setenv("INTEL_LIBITTNOTIFY64", "collector.so")
    with pytest.raises(NotImplementedError, match="a collector listens"):
        autograd_profiler.emit_itt().__enter__()


def by_hand(state, **measured):
    wanted = ["report_input_shapes", "profile_memory", "with_stack", "with_flops", "with_modules"]
    flags = [measured.get(name, False) for name in wanted]
    return torch.autograd.ProfilerConfig(state, *flags, torch._C._profiler._ExperimentalConfig())


def test_a_profile_taken_by_hand():
    native = torch._C._autograd
    config, activities = (
        by_hand(torch.autograd.ProfilerState.KINETO, report_input_shapes=True),
        {torch.profiler.ProfilerActivity.CPU},
    )
    torch.autograd._prepare_profiler(config, activities)
    torch.autograd._enable_profiler(config, activities)
    with pytest.raises(RuntimeError, match="already enabled on this thread"):
        torch.autograd._enable_profiler(config, activities)
    assert native._profiler_type().name == "KINETO"
    x = torch.ones(2, 3, requires_grad=True)
    with record_function("block"):
        y = (x * 2).sum()
    y.backward()
    result = torch.autograd._disable_profiler()
    assert native._profiler_type().name == "NONE" and native._disable_profiler().events() == []
    events = {event.name(): event for event in reversed(result.events())}
    product, derivative = events["aten::mul"], events["MulBackward0"]
    assert product.shapes() == [[2, 3], []] and product.sequence_nr() == derivative.sequence_nr() >= 0
    assert result.trace_start_ns() <= product.start_ns() < product.end_ns() <= derivative.start_ns()
    assert (derivative.scope(), derivative.fwd_thread_id(), product.fwd_thread_id()) == (1, 1, 0)
    assert events["block"].activity_type() == "user_annotation" and product.device_type().name == "CPU"
    assert product.dtypes() == ["float", "long int"] and product.structured_input_strides() == [[3, 1], []]
    (block,) = [root for root in result.experimental_event_tree() if root.name == "block"]
    inner = block.children[0]
    assert (inner.name, inner.parent, inner.tag.name) == ("aten::mul", block, "TorchOp")
    assert (
        inner.extra_fields.sequence_number == product.sequence_nr() and inner.typed[1] is inner.extra_fields
    )


def test_records_of_the_older_profiler():
    torch.autograd._enable_profiler_legacy(by_hand(torch.autograd.ProfilerState.CPU))
    with record_function("block"):
        torch.ones(2) + 1
    ((first, *records, last),) = torch.autograd._disable_profiler_legacy()
    assert (first.name(), last.name(), first.kind()) == ("__start_profile", "__stop_profile", "mark")
    kinds = [(record.kind(), record.name()) for record in records]
    assert kinds[0] == ("push", "block") and kinds[-1] == ("pop", "")
    assert ("push", "aten::add") in kinds and records[0].handle() == records[-1].handle()
    assert 0 <= records[0].cpu_elapsed_us(records[-1]) <= first.cpu_elapsed_us(last)
    with pytest.raises(RuntimeError, match="PROFILER_STATE"):
        torch.autograd._disable_profiler_legacy()
    with torch.autograd.profiler_legacy.profile(record_shapes=True) as measured:
        torch.ones(2) + 1
    (add,) = [event for event in measured.function_events if event.name == "aten::add"]
    assert add.is_legacy and add.input_shapes[0] == [2]


def test_the_results_of_a_profile_are_events_too():
    unfinished = autograd_profiler.profile(use_kineto=True)
    assert unfinished.kineto_results is None and unfinished.config()._state.name == "KINETO"
    with profile() as measured:
        torch.ones(2).exp()
    assert "aten::exp" in [event.name() for event in measured.profiler.kineto_results.events()]


def test_handles_of_ranges():
    with autograd_profiler.profile() as measured:
        with record_function("one") as range_:
            assert type(range_.record) is torch.ScriptObject
            assert range_.record._type().name() == "_RecordFunction"
        handle = torch.ops.profiler._record_function_enter("two")
        torch.ops.profiler._record_function_exit(handle)
    assert isinstance(handle, torch.Tensor)
    names = [event.name for event in measured.function_events]
    assert [name for name in names if not name.startswith("aten::")] == ["one", "two"]
    for wrong in (3, torch.ones(2)):
        with pytest.raises(
            RuntimeError, match=r"Expected a value of type 'Tensor'|temporary cpp type wrapper"
        ):
            torch.ops.profiler._record_function_exit(wrong)


def test_all_threads_can_be_measured():
    from threading import Barrier, Thread

    def work(number):
        both.wait()
        with torch.profiler.record_function(f"range {number}"):
            y = torch.ones(2, requires_grad=True) * number
            y.sum().backward()
        both.wait()

    for every in (False, True, False):
        both, started = Barrier(2), [Thread(target=work, args=(number,)) for number in (1, 2)]
        config = torch.profiler._ExperimentalConfig(profile_all_threads=every)
        with torch.profiler.profile(experimental_config=config) as profile:
            torch.ones(1).exp()
            for thread in started:
                thread.start()
            for thread in started:
                thread.join()
        events = profile.events()
        assert {event.thread for event in events if event.name == "aten::exp"} == {1}
        ranges = {event.name: event.thread for event in events if event.name.startswith("range")}
        assert sorted(ranges.values()) == ([2, 3] if every else [])
        for event in events:
            assert event.cpu_parent is None or event.cpu_parent.thread == event.thread
        if every:
            for name in ("aten::mul", "MulBackward0"):
                inside = [event for event in events if event.name == name]
                assert {event.thread for event in inside} == {2, 3}
                assert all(_outermost(event).name.startswith("range") for event in inside)


def _outermost(event):
    while event.cpu_parent is not None:
        event = event.cpu_parent
    return event
