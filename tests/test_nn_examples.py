"""The examples in the docstrings are run as they stand."""

import doctest
import importlib
import pkgutil

import pytest

import rushlight
import rushlight.amp
import rushlight.distributions
import rushlight.nn
import rushlight.ops
import rushlight.optim
import rushlight.testing
import rushlight.utils.data
import rushlight.utils.hooks

PACKAGES = (
    rushlight.amp, rushlight.distributions, rushlight.nn, rushlight.ops, rushlight.optim, rushlight.testing,
    rushlight.utils.data,
)  # fmt: skip
MODULES = [
    "rushlight.masked", "rushlight.serialization", "rushlight.signal.windows", "rushlight.special",
    "rushlight.storage", "rushlight.utils.benchmark", "rushlight.utils.hooks",
]  # fmt: skip
MODULES += [
    found.name
    for package in PACKAGES
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + ".")
]


def examples(module):
    """The examples of functions, classes and methods, and of native functions, which doctest overlooks."""
    found = {test.name: test for test in doctest.DocTestFinder().find(module)}
    for name, value in vars(module).items():
        full = f"{module.__name__}.{name}"
        if isinstance(value, rushlight._C.Function) and value.__module__ == module.__name__:
            found[full] = doctest.DocTestParser().get_doctest(
                value.__doc__ or "", dict(vars(module)), full, module.__file__, 0
            )
    return [test for test in found.values() if test.examples]


@pytest.mark.filterwarnings("ignore")  # some of it is deprecated
@pytest.mark.parametrize("name", MODULES)
def test_examples(name, capsys):
    for test in examples(importlib.import_module(name)):
        test.globs["rushlight"] = rushlight
        result = doctest.DocTestRunner(verbose=False).run(test, out=None, clear_globs=True)
        assert result.failed == 0, capsys.readouterr().out


def test_most_functions_have_one():
    count = sum(len(examples(importlib.import_module(name))) for name in MODULES)
    assert count > 80
