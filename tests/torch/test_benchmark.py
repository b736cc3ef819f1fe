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
