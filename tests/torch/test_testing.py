"""assert_close says what torch's says, make_tensor draws what torch's draws."""

import numpy
import pytest
import torch
from comparing import assert_same

import rushlight

CASES = [
    lambda t: (t.tensor([1.0, 2.0]), t.tensor([1.0, 2.1])),
    lambda t: (t.ones(2, 3), t.zeros(2, 3)),
    lambda t: (t.tensor(1.0), t.tensor(2.0)),
    lambda t: (1.0, 2.0), lambda t: (1, 2), lambda t: (True, False), lambda t: (1, 1.0),
    lambda t: (1 + 1j, 2 + 1j), lambda t: (None, None), lambda t: (None, 1), lambda t: ("a", "a"),
    lambda t: (t.ones(2), t.ones(3)), lambda t: (t.ones(2), t.ones(2, dtype=t.float64)),
    lambda t: ([1.0, 2.0], [1.0, 3.0]), lambda t: ([1.0], [1.0, 2.0]), lambda t: ({"a": 1}, {"b": 1}),
    lambda t: ({"a": [t.ones(1)]}, {"a": [t.zeros(1)]}), lambda t: (t.tensor([1, 2]), t.tensor([1, 3])),
    lambda t: (t.tensor([True]), t.tensor([False])), lambda t: (t.tensor([t.nan]), t.tensor([t.nan])),
    lambda t: (t.tensor([t.inf]), t.tensor([1.0])), lambda t: (numpy.ones(2), numpy.zeros(2)),
    lambda t: (numpy.float64(1), 1.0), lambda t: (t.ones(2), [1.0, 1.0]), lambda t: (t.ones(2), 1.0),
    lambda t: (t.tensor([[1.0, 5.0], [2.0, 3.0]]), t.tensor([[1.0, 5.5], [2.0, 4.0]])),
    lambda t: (t.tensor([1 + 1j]), t.tensor([1 + 2j])), lambda t: (t.empty(0), t.empty(0)),
    lambda t: (t.tensor([1, 2], dtype=t.uint8), t.tensor([1, 255], dtype=t.uint8)),
    lambda t: (t.tensor([1, 2]), t.tensor([1, 2], dtype=t.uint64)),
    lambda t: (t.tensor([1, 3], dtype=t.uint16), t.tensor([1.0, 2.0])),
]  # fmt: skip
OPTIONS = [
    {},
    {"rtol": 0.0, "atol": 0.5},
    {"equal_nan": True},
    {"check_dtype": False},
    {"check_stride": True},
    {"rtol": 1.0},
    {"msg": "text"},
    {"msg": lambda text: "before " + text},
]


def outcome(library, case, options):
    try:
        library.testing.assert_close(*case(library), **options)
    except (AssertionError, TypeError, ValueError) as error:
        return type(error), str(error)
    return None


@pytest.mark.parametrize("number", range(len(CASES)))
def test_assert_close(number):
    for options in OPTIONS:
        assert outcome(rushlight, CASES[number], options) == outcome(torch, CASES[number], options)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "complex64", "int64", "int8",
                                   "uint8", "bool"])  # fmt: skip
@pytest.mark.parametrize(
    "options", [{}, {"low": 0, "high": 2}, {"noncontiguous": True}, {"exclude_zero": True}]
)
def test_make_tensor(dtype, options):
    made = []
    for library in (rushlight, torch):
        library.manual_seed(0)
        kind = getattr(library, dtype)
        made.append(library.testing.make_tensor((3, 4), dtype=kind, device="cpu", **options))
    assert_same(*made)


TEXT = "alpha beta\ngamma delta\nalpha gamma\nepsilon\n"
FILE_CHECKS = [
    lambda f: f.check("alpha").check("gamma"), lambda f: f.check("zeta"),
    lambda f: f.check("epsilon").check("beta"), lambda f: f.check_not("beta"),
    lambda f: f.check("alpha").check_not("gamma").check("delta"),
    lambda f: f.check("delta").check_not("beta").check("epsilon"),
    lambda f: f.check("gamma").check_not("epsilon"), lambda f: f.check_count("alpha", 2),
    lambda f: f.check_count("alpha", 3), lambda f: f.check_count("alpha", 1, exactly=True),
    lambda f: f.check_count("alpha", 2, exactly=True),
    lambda f: f.check_count("alpha", 1, exactly=True).check("gamma"),
    lambda f: f.check("alpha").check_next("gamma"), lambda f: f.check("alpha").check_next("epsilon"),
    lambda f: f.check("alpha").check_next("beta"), lambda f: f.check("alpha").check_same("beta"),
    lambda f: f.check("alpha").check_same("gamma"), lambda f: f.check_next("alpha"),
    lambda f: f.check_dag("delta").check_dag("beta").check("epsilon"),
    lambda f: f.check_dag("delta").check_dag("zeta"), lambda f: f.check_dag("beta").check_not("delta"),
    lambda f: f.check_regex("al.ha b"), lambda f: f.check_regex("z+a"), lambda f: f,
    lambda f: f.check_source_highlighted("beta"),
]  # fmt: skip


def file_checked(library, program):
    try:
        check = program(library.testing.FileCheck())
        return check.run(TEXT)
    except RuntimeError as error:
        return str(error).split("\n")[0]


@pytest.mark.parametrize("number", range(len(FILE_CHECKS)))
def test_texts_are_checked_as_torch_checks_them(number):
    assert file_checked(rushlight, FILE_CHECKS[number]) == file_checked(torch, FILE_CHECKS[number])


@pytest.mark.parametrize(
    "lines", ["# CHECK: alpha\n# CHECK-NEXT: gamma", "# CHECK-COUNT-EXACTLY-1: alpha", "none"]
)
def test_checks_are_read_from_text(lines):
    def said(library):
        try:
            return library.testing.FileCheck().run(lines, TEXT)
        except RuntimeError as error:
            return str(error).split("\n")[0]

    assert said(rushlight) == said(torch)


@pytest.mark.parametrize(
    "dtype", ["uint8", "uint16", "uint32", "uint64", "int8", "float8_e5m2", "float8_e4m3fn"]
)
@pytest.mark.parametrize(
    "options", [{}, {"low": -5, "high": 5}, {"high": -3}, {"low": 0, "high": 2**40}], ids=str
)
def test_make_tensor_keeps_to_the_numbers_of_the_dtype(dtype, options):
    def made(library):
        library.manual_seed(0)
        kind = getattr(library, dtype)
        try:
            result = library.testing.make_tensor((4,), dtype=kind, device="cpu", **options)
        except ValueError as error:
            return str(error)
        return str(result.dtype), result.to(library.float64).tolist()

    assert made(rushlight) == made(torch)
