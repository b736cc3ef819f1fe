"""utils.benchmark: the tables and the texts are torch's."""

import re

import pytest
import torch.utils.benchmark

import rushlight.utils.benchmark

LIBRARIES = (rushlight.utils.benchmark, torch.utils.benchmark)


def measurements(lib, **more):
    for size in (10, 100):
        for speed, name in enumerate(("mul", "add"), 1):
            for threads in (1, 2):
                times = [size * speed * 1e-5 / threads * (1 + 0.01 * i) for i in range(10)]
                spec = {"label": "ops", "sub_label": name, "description": f"size {size}", **more}
                task = lib.TaskSpec("x", "pass", num_threads=threads, **spec)
                yield lib.Measurement(10, times, task)


def table(lib, *settings, **more):
    compare = lib.Compare(list(measurements(lib, **more)))
    for setting in settings:
        getattr(compare, setting)()
    return str(compare)


@pytest.mark.parametrize(
    "settings", [(), ("trim_significant_figures",), ("colorize",), ("highlight_warnings",)]
)
def test_tables(settings):
    ours, theirs = (table(lib, *settings) for lib in LIBRARIES)
    assert ours == theirs


@pytest.mark.parametrize(
    "times, spec",
    [
        ([1e-3], {}),
        ([1.0, 1.2], {"label": "L"}),
        ([1e-9 * i for i in range(1, 20)], {"description": "d", "env": "E"}),
        ([1.0, 5.0, 2.0, 8.0], {}),
        ([2e-6] * 10, {"num_threads": 4, "setup": "y = 1"}),
        ([1e-3] * 3, {"stmt": "a\nb", "setup": "c\nd"}),
    ],
)
def test_measurements(times, spec):
    texts = []
    for lib in LIBRARIES:
        measured = lib.Measurement(1, times, lib.TaskSpec(**{"stmt": "x", "setup": "pass", **spec}))
        text = re.sub(r"0x\w+", "", repr(measured))
        texts.append((text, measured.significant_figures, measured.has_warnings, measured.as_row_name))
    assert texts[0] == texts[1]


def fuzzed(library):
    from importlib import import_module

    benchmark = import_module(f"{library.__name__}.utils.benchmark")
    parameters = [
        benchmark.FuzzedParameter("n", minval=1, maxval=16, distribution="loguniform"),
        benchmark.FuzzedParameter("k", minval=2, maxval=9, distribution="uniform"),
        benchmark.FuzzedParameter("step", minval=1, maxval=2, distribution="uniform"),
    ]
    tensors = [
        benchmark.FuzzedTensor("x", size=("n",)),
        benchmark.FuzzedTensor("y", size=("k", 3), steps=("step", 1), max_elements=20, dtype=library.int32),
    ]
    fuzzer = benchmark.Fuzzer(parameters, tensors, [lambda params: params["n"] % 2], seed=3)
    drawn = [
        (params, [(tensor.tolist(), tensor.stride()) for tensor in tensors.values()], str(known))
        for tensors, known, params in fuzzer.take(4)
    ]
    return drawn, fuzzer.rejection_rate


def test_the_fuzzer_draws_as_torch_does():
    assert fuzzed(rushlight) == fuzzed(torch)


class Clock:
    """Takes a known time for each run, which varies a little, and remembers what it was asked."""

    costs = {"fast": 8e-9, "middle": 3e-6, "slow": 2e-3, "slowest": 0.7}

    def __init__(self, stmt, setup, timer, globals):
        self.cost, self.asked = self.costs[stmt], []

    def timeit(self, number):
        self.asked.append(number)
        return number * self.cost * (1 + 0.1 * (len(self.asked) * 0.37 % 1)) + 1e-7


@pytest.mark.parametrize("stmt", Clock.costs)
@pytest.mark.parametrize(
    "method, options",
    [
        ("timeit", {"number": 250}),
        ("blocked_autorange", {}),
        ("blocked_autorange", {"min_run_time": 5}),
        ("adaptive_autorange", {}),
        ("adaptive_autorange", {"threshold": 0.02, "max_run_time": 1.0}),
        ("adaptive_autorange", {"min_run_time": 0.5}),
    ],
)
def test_blocks_are_torchs(stmt, method, options):
    results = []
    for lib in LIBRARIES:
        timer = type("Measured", (lib.Timer,), {"_timer_cls": Clock})(stmt)
        called = []
        if method != "timeit":
            options = {**options, "callback": lambda *block, called=called: called.append(block)}
        measured = getattr(timer, method)(**options)
        text = re.sub(r"0x\w+", "", repr(measured))
        results.append((timer._timer.asked, measured.number_per_run, measured.raw_times, called, text))
    assert results[0] == results[1]


COUNTS = {
    "few": [(100, "/a/Objects/x.c:foo [/lib/x.so]"), (50, "b:bar"), (12, "dictobject.c:lookdict_unicode")],
    "other": [(90, "/a/Objects/x.c:foo [/lib/x.so]"), (20, "d:q"), (50, "b:bar")],
    "many": [(i * 10000, f"file{i}.c:a_function_with_{'a' * i * 3}_name") for i in range(30)],
    "none": [],
}


@pytest.mark.parametrize(
    "expression",
    """
    few | few - other | few + other | other - other | many | many[3:] | none | few.denoise() | few * 0.5
    few.transform(lambda name: name[-1]) | few.filter(lambda name: "b" in name) | few[:2] | list(few)
    few.sum(), len(few) | replace(many, truncate_rows=False) | replace(many, _linewidth=60)
    few - replace(few, inclusive=True) | replace(many, inclusive=True) | stats | stats.counts(denoise=True)
    stats.stats(inclusive=True) | stats.delta(replace(stats, stmt_exclusive_stats=other))
    stats.as_standardized().stats() | stats.as_standardized() | stats.task_spec.title
    lib.CopyIfCallgrind(5, setup="x").setup | lib.CopyIfCallgrind(2j).serialization.name
    lib.CopyIfCallgrind([]) | lib.CopyIfCallgrind(object()) | lib.CopyIfCallgrind.unwrap_all({"a": 1})
    lib.Timer("pass", globals={"x": 1}).collect_callgrind() | lib.Timer(3) | lib.Timer("x", language="java")
    lib.Timer("x", global_setup="y") | lib.Timer("x").repeat() | lib.Timer("x").autorange()
    """.replace("\n", "|").split("|"),
)
def test_counts_of_instructions(expression):
    import dataclasses

    from outcomes import outcome

    if not expression.strip():
        return
    results = []
    for lib in LIBRARIES:
        space = {"lib": lib, "replace": dataclasses.replace}
        for name, rows in COUNTS.items():
            rows = tuple(lib.FunctionCount(*row) for row in rows)
            space[name] = lib.FunctionCounts(rows, inclusive=False)
        inclusive = dataclasses.replace(space["few"], inclusive=True)
        both = (inclusive, space["few"])
        spec = lib.TaskSpec("x", "pass", label="L", description="D", num_threads=2)
        space["stats"] = lib.CallgrindStats(spec, 10, True, *both, *both, None)
        found = outcome(lambda space=space: eval(expression.strip(), space))
        results.append(re.sub(r"0x\w+", "", str(found)).replace("rushlight", "torch"))
    assert results[0] == results[1]
