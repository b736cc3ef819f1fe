"""What `import rushlight` brings along: it is to take no longer than it must."""

import subprocess
import sys

import pytest

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


def _brought(program):
    code = f"import os, sys; before = set(sys.modules); {program}; {REPORT}"
    done = subprocess.run([sys.executable, "-S", "-c", f"import sys; sys.path[:] = {sys.path}; {code}"],
                          capture_output=True, text=True, check=True)  # fmt: skip
    return set(done.stdout.split())


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
    for before, after in (("enable()", "True 0"), ("disable()", "False 0")):
        done = subprocess.run([sys.executable, "-c", program.format(before)], capture_output=True, text=True)
        assert done.stdout.strip() == after, done.stderr
    frozen = "import gc; gc.freeze(); import rushlight; print(gc.get_freeze_count() > 0)"
    done = subprocess.run([sys.executable, "-c", frozen], capture_output=True, text=True)
    assert done.stdout.strip() == "True", done.stderr
