"""Every public function says what it does and shows it: the examples run, and none is missing unnoticed."""

import doctest

import pytest

import rushlight
import rushlight.fft
import rushlight.linalg
import rushlight.nn.functional
import rushlight.special
from rushlight.ops._public import FUNCTIONS

pytestmark = pytest.mark.filterwarnings("ignore")  # some of it is deprecated

SPACES = {
    "rushlight": FUNCTIONS,
    "Tensor": {name: getattr(rushlight.Tensor, name) for name in dir(rushlight.Tensor)},
    "linalg": vars(rushlight.linalg),
    "fft": vars(rushlight.fft),
    "special": vars(rushlight.special),
    "nn.functional": vars(rushlight.nn.functional),
}
# They are made of the function without indices, and say so.
MADE = ("_with_indices",)
# Methods that say something about the tensor or convert it: one line tells all.
NAMES = """
as_subclass coalesce const_data_ptr cuda data_ptr dense_dim dim element_size indices is_coalesced
is_inference is_pinned is_set_to is_shared ndimension nelement pin_memory reinforce resize resize_as
retain_grad register_hook sparse_dim storage size register_post_accumulate_grad_hook storage_offset stride
values get_device is_distributed hardshrink prelu item numpy chalf from_numpy crow_indices col_indices
ccol_indices row_indices
"""
PLAIN = set(NAMES.split())


def public(space):
    for name, value in space.items():
        plain = isinstance(value, (rushlight._C.Function, type(rushlight.is_tensor)))
        if plain and not name.startswith("_") and name not in ("public", "write_out", "invalid_combination"):
            yield name, value


@pytest.mark.parametrize("space", SPACES)
def test_examples_run(space, capsys):
    runner = doctest.DocTestRunner(verbose=False)
    for name, value in public(SPACES[space]):
        test = doctest.DocTestParser().get_doctest(
            value.__doc__ or "", {"rushlight": rushlight}, f"{space}.{name}", None, 0
        )
        names = getattr(value, "__wrapped__", value).__globals__
        test.globs = {**names, "rushlight": rushlight}
        runner.run(test)
    assert runner.summarize(verbose=False).failed == 0, capsys.readouterr().out


@pytest.mark.parametrize("space", SPACES)
def test_every_function_has_a_docstring(space):
    assert not [name for name, value in public(SPACES[space]) if not (value.__doc__ or "").strip()]


@pytest.mark.parametrize("space", SPACES)
def test_every_function_has_an_example(space):
    missing = []
    for name, value in public(SPACES[space]):
        # What works in place is the function's other form.
        if name.endswith("_") or name in PLAIN or getattr(value, "__name__", "").endswith(MADE):
            continue
        doc = value.__doc__ or ""
        # A name that only says what is lacking has nothing to show.
        if ">>>" not in doc and not doc.startswith(("Not implemented:", "Would ", "Was removed ")):
            missing.append(name)
    assert not missing, f"without an example: {sorted(missing)}"
