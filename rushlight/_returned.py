"""What a kernel of one's own returned, as its schema says: numbers become the kind that it names, tuples
lists where it names a list, and what is none of it is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from rushlight import Tensor
from rushlight._schema import Argument, FunctionSchema


def returned(schema: FunctionSchema, result: Any) -> Any:
    """The result of a call, of which a kernel returned this.

    >>> from rushlight._returned import returned
    >>> from rushlight._schema import FunctionSchema
    >>> returned(FunctionSchema("f(Tensor x) -> (float, int[])"), (2, (1, True)))
    (2.0, [1, 1])
    """
    declared = schema.returns
    if not declared:
        if result is not None:
            raise RuntimeError(
                f"Expected PythonKernelHolder for {schema.name} to return None but it returned something "
                "else instead."
            )
        return None
    if len(declared) == 1:
        return _as(declared[0], result)
    if not isinstance(result, Sequence):
        raise TypeError(f"Object of type '{type(result).__name__}' is not an instance of 'sequence'")
    if len(result) != len(declared):
        raise RuntimeError(f"{schema.name} returned {len(result)} values, its schema says {len(declared)}")
    return tuple(map(_as, declared, result))


def _as(declared: Argument, value: Any) -> Any:
    if value is None and declared.is_optional:
        return None
    if declared.is_list:
        return _as_list(declared, value)
    return _as_one(declared, value)


def _as_list(declared: Argument, value: Any) -> list:
    if not isinstance(value, Iterable) or isinstance(value, (str, bytes, dict, Tensor)):
        _refuse(value)
    found = list(value)
    try:
        return [
            None if each is None and declared.optional_elements else _as_one(declared, each, of_list=True)
            for each in found
        ]
    except (RuntimeError, TypeError):
        _refuse(value)


def _as_one(declared: Argument, value: Any, of_list: bool = False) -> Any:
    if declared.word == "Tensor":
        if isinstance(value, Tensor) or (value is None and not of_list):  # None is an undefined tensor
            return value
        raise RuntimeError(f"Unable to cast {value!s} to Tensor")
    if declared.elements:
        found = tuple(value)
        if len(found) != len(declared.elements):
            raise RuntimeError(
                f"Object {value!s} had a different number of elements than type {declared.type}"
            )
        return tuple(map(_as, declared.elements, found))
    if declared.word == "Scalar":
        if not isinstance(value, (int, float, complex)):
            raise RuntimeError(f"Cannot cast {value!s} to number")
        if isinstance(value, int) and not _fits(value):
            raise OverflowError("int too big to convert")
        return value
    return _KINDS[declared.word](value) if declared.word in _KINDS else value


def _fits(number: int) -> bool:
    return -(2**63) <= number < 2**63


def _int(value: Any) -> int:
    if isinstance(value, float) or not _fits(found := _number(int, ("__int__", "__index__"), value)):
        _refuse(value)
    return found


def _float(value: Any) -> float:
    return _number(float, ("__float__", "__index__"), value)


def _bool(value: Any) -> bool:
    return value is not None and _number(bool, ("__bool__",), value)


def _str(value: Any) -> str:
    return value if isinstance(value, str) else _refuse(value)


_KINDS: dict[str, Callable[[Any], Any]] = {
    "int": _int, "SymInt": _int, "float": _float, "bool": _bool, "str": _str,
}  # fmt: skip


def _number(kind: Callable, ways: tuple[str, ...], value: Any) -> Any:
    """The value as a number, if it knows one of these ways to become one."""
    if not any(hasattr(type(value), way) for way in ways):
        _refuse(value)
    try:
        return kind(value)
    except (TypeError, ValueError, RuntimeError):  # as of a tensor with several elements
        _refuse(value)


def _refuse(value: Any) -> NoReturn:
    raise RuntimeError(
        f"Unable to cast Python instance of type {type(value)} to C++ type '?' (#define "
        "PYBIND11_DETAILED_ERROR_MESSAGES or compile in debug mode for details)"
    )
