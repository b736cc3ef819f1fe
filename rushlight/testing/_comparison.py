"""assert_close: are two results equal up to rounding, and if not, where do they differ most?"""

from __future__ import annotations

import cmath
import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import rushlight
from rushlight import _C

_TOLERANCES = {
    _C.float16: (1e-3, 1e-5), _C.bfloat16: (1.6e-2, 1e-5), _C.float32: (1.3e-6, 1e-5),
    _C.float64: (1e-7, 1e-7), _C.complex64: (1.3e-6, 1e-5), _C.complex128: (1e-7, 1e-7),
}  # fmt: skip
_NUMBERS = {bool: _C.bool, int: _C.int64, float: _C.float64, complex: _C.complex128}


class _Difference(Exception):
    """A comparison failed: what to say, and at which key or index."""

    def __init__(self, text: str, kind: type[Exception] = AssertionError) -> None:
        super().__init__(text)
        self.kind = kind
        self.path: list[Any] = []
        self.compared = False  # a difference between values, not between the shapes of the two structures


class _Options:
    def __init__(self, rtol: Any, atol: Any, **flags: bool) -> None:
        self.rtol, self.atol = rtol, atol
        self.__dict__.update(flags)

    equal_nan: bool
    allow_subclasses: bool
    check_device: bool
    check_dtype: bool
    check_layout: bool
    check_stride: bool

    def tolerances(self, *dtypes: _C.dtype) -> tuple[float, float]:
        if (self.rtol is None) ^ (self.atol is None):
            missing = "rtol" if self.rtol is None else "atol"
            raise _Difference(
                f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}.",
                ValueError,
            )
        if self.rtol is not None:
            return self.rtol, self.atol
        known = [_TOLERANCES.get(dtype, (0.0, 0.0)) for dtype in dtypes]
        return max(rtol for rtol, _ in known), max(atol for _, atol in known)


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raises an AssertionError that says how and where unless both are equal up to rounding.

    Takes tensors, numbers, arrays, and sequences and mappings of them. The tolerances depend on the dtype
    unless rtol and atol are given.

    >>> rushlight.testing.assert_close(rushlight.tensor([1.0]), rushlight.tensor([1.0000001]))
    >>> rushlight.testing.assert_close([1, 2], [1, 3])
    Traceback (most recent call last):
    AssertionError: Scalars are not equal!
    <BLANKLINE>
    Expected 3 but got 2.
    Absolute difference: 1
    Relative difference: 0.3333333333333333
    <BLANKLINE>
    The failure occurred for item [1]
    """
    __tracebackhide__ = True
    options = _Options(
        rtol, atol, equal_nan=equal_nan, allow_subclasses=allow_subclasses, check_device=check_device,
        check_dtype=check_dtype, check_layout=check_layout, check_stride=check_stride,
    )  # fmt: skip
    try:
        for place, compare in list(_pairs(actual, expected, options)):
            try:
                compare()
            except _Difference as difference:
                difference.path, difference.compared = place, True
                raise
        return
    except _Difference as difference:
        text = str(difference)
        if difference.path:
            where = "".join(f"[{key!r}]" for key in difference.path)
            text += f"\n\nThe failure occurred for item {where}"
        if difference.compared and msg is not None:
            text = msg(text) if callable(msg) else msg
        failure = difference.kind(text)
    raise failure


def _is_array(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "numpy" and hasattr(value, "dtype")


def _pairs(actual: Any, expected: Any, options: _Options) -> Iterator[tuple[list, Callable[[], None]]]:
    """The comparisons to be made, each with its place; what cannot be compared is refused first."""
    if _is_array(actual) != _is_array(expected):  # a number of NumPy's compares with one of Python's
        actual, expected = (
            value.item() if _is_array(value) and not value.ndim else value for value in (actual, expected)
        )
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        for key in _common_keys(actual, expected):
            yield from _below(key, actual[key], expected[key], options)
    elif _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            raise _Difference(f"The length of the sequences mismatch: {len(actual)} != {len(expected)}")
        for i in range(len(actual)):
            yield from _below(i, actual[i], expected[i], options)
    elif actual is None or expected is None:
        yield [], lambda: _must_be("None", actual, expected)
    elif isinstance(actual, bool) and isinstance(expected, bool):
        yield [], lambda: _must_be("Booleans", actual, expected)
    elif _is_number(actual) and _is_number(expected) and not _is_array(actual):
        options.tolerances(_NUMBERS[type(actual)])
        yield [], lambda: _compare_numbers(actual, expected, options)
    else:
        tensors = _as_tensors(actual, expected, options)
        options.tolerances(tensors[0].dtype)
        yield [], lambda: _compare_tensors(*tensors, options)


def _below(key: Any, actual: Any, expected: Any, options: _Options) -> Iterator:
    try:
        for place, compare in _pairs(actual, expected, options):
            yield [key, *place], compare
    except _Difference as difference:
        difference.path.insert(0, key)
        raise


def _must_be(name: str, actual: Any, expected: Any) -> None:
    if actual is not expected:
        raise _Difference(f"{name} mismatch: {actual} is not {expected}")


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float, complex))


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _common_keys(actual: Mapping, expected: Mapping) -> list:
    missing, added = set(expected) - set(actual), set(actual) - set(expected)
    if missing or added:
        raise _Difference(
            "The keys of the mappings do not match:\n"
            f"Missing keys in the actual mapping: {sorted(missing)}\n"
            f"Additional keys in the actual mapping: {sorted(added)}"
        )
    keys: Any = list(actual)
    with contextlib.suppress(TypeError):  # keys of mixed types stay in their order
        keys = sorted(keys)
    return keys


def _compare_numbers(actual: Any, expected: Any, options: _Options) -> None:
    if options.check_dtype and type(actual) is not type(expected):
        raise _Difference(f"The (d)types do not match: {type(actual)} != {type(expected)}.")
    rtol, atol = options.tolerances(_NUMBERS[type(actual)], _NUMBERS[type(expected)])
    if actual == expected or (options.equal_nan and cmath.isnan(actual) and cmath.isnan(expected)):
        return
    difference = abs(actual - expected)
    if cmath.isfinite(actual) and cmath.isfinite(expected) and difference <= atol + rtol * abs(expected):
        return
    relative = difference / abs(expected) if expected else float("inf")
    raise _Difference(_scalar_text(actual, expected, difference, relative, rtol, atol))


def _scalar_text(actual: Any, expected: Any, absolute: Any, relative: Any, rtol: float, atol: float) -> str:
    equal = rtol == 0 and atol == 0
    text = f"Scalars are not {'equal' if equal else 'close'}!\n\nExpected {expected} but got {actual}.\n"
    if equal:
        return text + f"Absolute difference: {absolute}\nRelative difference: {relative}"
    return text + (
        f"Absolute difference: {absolute} (up to {atol} allowed)\n"
        f"Relative difference: {relative} (up to {rtol} allowed)"
    )


def _as_tensors(actual: Any, expected: Any, options: _Options) -> tuple[Any, Any]:
    """Both as tensors; torch's TypeError if they do not belong together."""
    related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
    same = type(actual) is type(expected)
    tensors = isinstance(actual, _C.Tensor) and isinstance(expected, _C.Tensor)
    arrays = _is_array(actual) and _is_array(expected)
    if not (arrays or tensors) or not (related or arrays) or not (same or options.allow_subclasses or arrays):
        raise _Difference(
            f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.",
            TypeError,
        )
    if arrays:
        return rushlight.as_tensor(actual), rushlight.as_tensor(expected)
    return actual.detach(), expected.detach()


def _compare_tensors(actual: Any, expected: Any, options: _Options) -> None:
    def must_match(name: str, one: Any, other: Any) -> None:
        if one != other:
            raise _Difference(f"The values for attribute '{name}' do not match: {one} != {other}.")

    must_match("shape", actual.shape, expected.shape)
    if options.check_layout:
        must_match("layout", actual.layout, expected.layout)
    if options.check_device:
        must_match("device", actual.device, expected.device)
    if options.check_dtype:
        must_match("dtype", actual.dtype, expected.dtype)
    if options.check_stride:
        must_match("stride()", actual.stride(), expected.stride())
    if actual.device.type == "meta" or expected.device.type == "meta":
        return
    rtol, atol = options.tolerances(actual.dtype, expected.dtype)
    if actual.dtype != expected.dtype:
        wider = rushlight.promote_types(actual.dtype, expected.dtype)
        actual, expected = actual.to(wider), expected.to(wider)
    matches = rushlight.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=options.equal_nan)
    if bool(matches.all()):
        return
    if actual.dim() == 0:
        one, other = actual.item(), expected.item()
        difference = abs(one - other)
        relative = difference / abs(other) if other else float("inf")
        raise _Difference(_scalar_text(one, other, difference, relative, rtol, atol))
    raise _Difference(_tensor_text(actual, expected, matches, rtol, atol))


def _tensor_text(actual: Any, expected: Any, matches: Any, rtol: float, atol: float) -> str:
    shape = tuple(actual.shape)
    whole = not (actual.is_floating_point() or actual.is_complex())
    if whole:  # so that differences do not wrap around
        actual, expected = actual.to(_C.int64), expected.to(_C.int64)
    matches, actual, expected = matches.reshape(-1), actual.reshape(-1), expected.reshape(-1)
    wrong = int((~matches).sum().item())
    total = matches.numel()
    absolute = (actual - expected).abs()
    relative = absolute / expected.abs()
    equal = rtol == 0 and atol == 0

    def greatest(name: str, differences: Any, allowed: float) -> str:
        # What matches within the tolerance does not count.
        differences = rushlight.where(matches, rushlight.zeros_like(differences), differences)
        value, at = rushlight.max(differences, 0)
        place: list[int] = []
        rest = int(at)
        for length in reversed(shape):
            rest, here = divmod(rest, length)
            place.insert(0, here)
        tail = "" if equal else f" (up to {allowed} allowed)"
        return f"Greatest {name} difference: {value.item()} at index {tuple(place)}{tail}"

    return (
        f"Tensor-likes are not {'equal' if equal else 'close'}!\n\n"
        f"Mismatched elements: {wrong} / {total} ({wrong / total:.1%})\n"
        + greatest("absolute", absolute, atol)
        + "\n"
        + greatest("relative", relative, rtol)
    )
