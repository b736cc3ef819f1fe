"""What `import rushlight` brings along: it is to take no longer than it must."""

import dataclasses
import inspect
import pickle
import subprocess
import sys

import pytest

import rushlight as torch

# More would be felt: `typing` with all it imports was a fifth of the time, `inspect` a fifth of that of `nn`.
# What stands here comes with `collections` and `functools`, or is small.
AT_IMPORT = {
    "__future__", "atexit", "collections", "collections.abc", "copyreg", "functools", "gc", "importlib",
    "importlib.machinery", "itertools", "keyword", "math", "operator", "reprlib", "types", "warnings",
}  # fmt: skip
# `typing` is for those who read the annotations of layers and optimisers, `enum` is what SDPBackend is.
WITH_LAYERS = {"contextlib", "copy", "enum", "re", "typing", "weakref"}
# What Python's own modules import of each other differs between its versions.
OF_OTHERS = {"annotationlib", "ast", "heapq"}

REPORT = "print(*sorted(set(sys.modules) - before))"


def _run(program):
    """What a fresh interpreter says, which finds the Rushlight that is tested here, not its sources."""
    command = [sys.executable, "-S", "-c", f"import sys; sys.path[:] = {sys.path}; {program}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _brought(program):
    return set(_run(f"import os; before = set(sys.modules); {program}; {REPORT}").split())


def _from_the_library(names):
    inner = {name for name in names if name.split(".")[0] in sys.stdlib_module_names}
    return {name for name in inner if not name.startswith(("_", "importlib._", "re.", "typing."))}


@pytest.fixture(scope="module")
def brought():
    return _brought("import rushlight")


def test_importing_takes_little_of_the_standard_library(brought):
    assert _from_the_library(brought) - AT_IMPORT - OF_OTHERS == set()


def test_layers_and_optimisers_take_little_more():
    names = _brought("import rushlight.nn, rushlight.optim")
    assert _from_the_library(names) - AT_IMPORT - WITH_LAYERS - OF_OTHERS == set()
    assert not {name for name in names if name.startswith("rushlight.backends")}


def test_importing_needs_no_package(brought):
    assert {name.split(".")[0] for name in brought} - sys.stdlib_module_names - {"rushlight"} == set()


def test_the_collector_is_left_as_it_was():
    program = "import gc; gc.{}; import rushlight; print(gc.isenabled(), gc.get_freeze_count())"
    assert _run(program.format("enable()")) == "True 0"
    assert _run(program.format("disable()")) == "False 0"
    assert _run("import gc; gc.freeze(); import rushlight; print(gc.get_freeze_count() > 0)") == "True"


def test_types_of_results_are_made_when_they_are_named():
    types = torch.return_types
    assert {"max", "max_out", "linalg_svd", "all_return_types"} <= set(dir(types))
    assert types.max is types.max and type(torch.ones(2, 2).max(0)) is types.max
    assert [kind.__name__ for kind in types.all_return_types] == types.__all__
    result = torch.ones(2, 2).max(0)
    assert type(pickle.loads(pickle.dumps(result))) is types.max
    for name in ("foo", "foo_out", "max_out_out", "_out"):
        assert not hasattr(types, name)


def test_functional_forms_of_optimisers_are_made_when_they_are_named():
    forms = {
        "adam": "adam _single_tensor_adam _multi_tensor_adam _fused_adam",
        "adamw": "adamw",
        "sgd": "sgd _single_tensor_sgd _multi_tensor_sgd _fused_sgd",
        "_muon": "muon _single_tensor_muon",
        "rprop": "rprop _single_tensor_rprop _multi_tensor_rprop",
    }
    for module, names in forms.items():
        home = getattr(torch.optim, module)
        for name in names.split():
            form = getattr(home, name)
            assert inspect.isfunction(form) and form.__name__ == name and name in dir(home)
            assert form.__module__ == home.__name__ and vars(home)[name] is form
    assert not hasattr(torch.optim.adam, "sgd")


def test_options_are_a_dataclass_for_those_who_ask():
    kind = torch.nn.LinearCrossEntropyOptions
    before = kind(batch_chunk_size=3)
    shown, taken = repr(before), inspect.signature(kind)
    assert dataclasses.is_dataclass(kind)
    assert dataclasses.asdict(dataclasses.replace(before, acc_policy="compact"))["acc_policy"] == "compact"
    assert [field.name for field in dataclasses.fields(before)] == list(kind.__match_args__)
    after = kind(batch_chunk_size=3)
    assert (repr(after), inspect.signature(kind)) == (shown, taken) and after == before
    with pytest.raises(TypeError, match="unhashable"):
        hash(after)


def test_context_managers_are_such():
    manager = torch.random.fork_rng()
    with manager:
        torch.manual_seed(3)

    @torch.random.fork_rng()
    def drawn():
        torch.manual_seed(3)
        return torch.rand(1)

    state = torch.get_rng_state()
    assert torch.equal(drawn(), drawn()) and torch.equal(torch.get_rng_state(), state)
    assert list(inspect.signature(torch.random.fork_rng).parameters)[:2] == ["devices", "enabled"]
