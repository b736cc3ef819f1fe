"""Schemas of operations: "ns::name.overload(Tensor x, *, int n=3) -> Tensor", read, written and inferred.

`parse` reads one, `infer_schema` makes one from a function's annotations, and `FunctionSchema.bind` sorts the
arguments of a call into it, with torch's sentences if they do not fit.
"""

from __future__ import annotations

import enum
import functools
import inspect
import itertools
import re
import types
import typing
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from rushlight import _C
from rushlight.ops.create import layout
from rushlight.ops.layout import memory_format
from rushlight.random import Generator

Tensor = _C.Tensor


class Tag(enum.IntEnum):
    """What may be said of an operation when it is defined."""

    core = 0
    cudagraph_unsafe = 1
    data_dependent_output = 2
    dynamic_output_shape = 3
    flexible_layout = 4
    generated = 5
    inplace = 6
    inplace_view = 7
    maybe_aliasing_or_mutating = 8
    needs_contiguous_strides = 9
    needs_exact_strides = 10
    needs_fixed_stride_order = 11
    nondeterministic_bitwise = 12
    nondeterministic_seeded = 13
    out = 14
    out_variant = 15
    pointwise = 16
    pt2_compliant_tag = 17
    reduction = 18
    view_copy = 19

    def __str__(self) -> str:
        return f"Tag.{self.name}"


class Alias:
    """The part of a type in brackets, "(a!)": whose memory it is, and whether it is written."""

    def __init__(self, text: str) -> None:
        self.is_write = "!" in text
        before, arrow, after = text.replace("!", "").replace(" ", "").partition("->")
        self.before_set = set(before.split("|"))
        self.after_set = set(filter(None, after.split("|"))) if arrow else self.before_set


class Type(str):
    """The type of an argument as the type checker names it: "List[int]", "Optional[Tensor]"."""

    @property
    def annotation_str(self) -> str:
        """The type as it stands in annotations."""
        return str(self)

    def kind(self) -> str:
        """`TensorType`, `ListType`, ..."""
        outer = self.partition("[")[0]
        special = {"number": "Number", "str": "String", "Device": "DeviceObj", "Stream": "StreamObj"}
        return f"{special.get(outer, outer[:1].upper() + outer[1:])}Type"

    def getElementType(self) -> Type:
        """What a list or an optional value is of."""
        outer, _, inner = self.partition("[")
        if outer not in ("List", "Optional"):
            raise RuntimeError(f"'{self}' has no element type")
        return Type(inner[:-1])


class Argument:
    """One argument or result: `name`, `type`, `default_value`, `kwarg_only`, `alias_info`."""

    def __init__(self, declared: str, kwarg_only: bool = False, elements: tuple[Argument, ...] = ()) -> None:
        self.elements = elements  # of a tuple that is one result
        declared, has_default, default = declared.partition("=")
        found = re.fullmatch(r"\s*(\w+)((?:\([^)]*\)|\[\d*\]|\?)*)\s*(\w*)\s*", declared)
        if not found:
            first = declared.strip()[:1] or "eof"
            raise RuntimeError(f"expected ident but found '{first}' here:\n{declared}")
        word, marks, self.name = found.groups()
        if word not in _ACCEPTED and not elements:
            raise RuntimeError(
                "\nunknown type specifier. Common valid schema types include Tensor, SymInt, int, float, "
                f"bool, Scalar; for a full list, please see torch's documentation :\n{declared.strip()}"
            )
        alias = re.search(r"\(([^)]*)\)", marks)
        self.alias_info = Alias(alias.group(1)) if alias else None
        sized = re.search(r"\[(\d+)\]", marks)
        self.N = int(sized.group(1)) if sized else None
        marks = re.sub(r"\([^)]*\)|\d", "", marks)  # such as "", "?", "[]", "?[]", "[]?"
        self.word, self.is_list = word, "[]" in marks
        self.is_optional = marks.endswith("?")
        self.optional_elements = marks.startswith("?[")
        self.declared = f"({', '.join(map(str, elements))})" if elements else declared.strip()
        self.kwarg_only = kwarg_only
        self.is_out = bool(kwarg_only and self.alias_info and self.alias_info.is_write)
        self._has_default, self.default_text = bool(has_default), default.strip()
        self.default = _read_default(default.strip()) if has_default else None
        if has_default and self.default is None and not self.is_optional and self.is_list:
            raise RuntimeError(f"expected [ but found 'None' here:\n{default.strip()}")
        if self.word == "float" and not (self.is_list or self.is_optional) and isinstance(self.default, int):
            self.default, self.default_text = float(self.default), f"{self.default}."
        if self.word == "Device" and isinstance(self.default, str):
            self.default = _C.device(self.default)
        if self.N and isinstance(self.default, int):
            self.default = [self.default] * self.N
        if self.is_list and self.alias_info:  # it is the elements that are shared
            self.alias_info.before_set = self.alias_info.after_set = set()

    @property
    def default_value(self) -> Any:
        """What is meant where it is left out; of a dtype its number."""
        if not isinstance(self.default, _C.dtype):
            return self.default
        return _DTYPES.index(str(self.default).partition(".")[2])

    @property
    def type(self) -> Type:
        """As the type checker names it: "List[int]", "Optional[Tensor]"."""
        if self.elements:
            return Type(f"Tuple[{', '.join(each.type for each in self.elements)}]")
        plain = {"SymInt": "int", "Scalar": "number", **dict.fromkeys(_INTEGERS, "int")}
        return self._typed(plain.get(self.word, self.word))

    @property
    def real_type(self) -> Type:
        """The same, where a dtype, a layout or a memory format is no number."""
        return self._typed(self.word) if self.word in _INTEGERS else self.type

    def _typed(self, text: str) -> Type:
        if self.optional_elements:
            text = f"Optional[{text}]"
        text = f"List[{text}]" if self.is_list else text
        return Type(f"Optional[{text}]" if self.is_optional else text)

    def has_default_value(self) -> bool:
        """Whether it may be left out."""
        return self._has_default

    def __str__(self) -> str:
        named = isinstance(self.default, (_C.dtype, _C.device))
        text = str(self.default_value) if named else self.default_text
        text = re.sub(r"^(-?\d+)\.0$", r"\1.", text)  # 2.0 is written "2."
        return self.declared + (f"={text}" if self._has_default else "")


# As torch numbers them.
_DTYPES = (
    "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex32", "complex64",
    "complex128", "bool", "qint8", "quint8", "qint32", "bfloat16",
)  # fmt: skip
_INTEGERS = ("ScalarType", "Layout", "MemoryFormat")


def _read_default(text: str) -> Any:
    if text[:1] in "\"'" and text[-1:] == text[:1] and len(text) > 1:
        return text[1:-1]
    if text.startswith("["):
        return [_read_default(part.strip()) for part in text[1:-1].split(",") if part.strip()]
    if text in ("None", "True", "False"):
        return {"None": None, "True": True, "False": False}[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    found = getattr(__import__("rushlight"), text, None)
    if not isinstance(found, _C.dtype):
        raise RuntimeError(f"\ninvalid numeric default value:\n{text}")
    return found


# Operations whose tensors may be Python numbers.
_TAKE_NUMBERS = {
    f"aten::{name}{ending}"
    for name in ("add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide", "floor_divide")
    for ending in ("", "_")
} | {"aten::to", "aten::_to_copy", "aten::copy", "aten::copy_", "aten::_conj"}


def _is_single(value: Any) -> bool:
    """Whether it is a tensor of one element or a NumPy number."""
    if isinstance(value, Tensor):
        return value.numel() == 1
    return getattr(value, "shape", None) == () and hasattr(value, "__int__")


def _is_int(value: Any) -> bool:
    if isinstance(value, int):
        return -(2**63) <= value < 2**63
    return _is_single(value) and not isinstance(value, float) and not _is_complex(value)


def _is_complex(value: Any) -> bool:
    return value.is_complex() if isinstance(value, Tensor) else getattr(value.dtype, "kind", "") == "c"


def _is_float(value: Any) -> bool:
    return isinstance(value, (int, float)) or (_is_single(value) and not _is_complex(value))


def _is_truth(value: Any) -> bool:
    try:
        return value is None or (hasattr(type(value), "__bool__") and bool(value) in (True, False))
    except (RuntimeError, ValueError):  # of several elements
        return False


_ACCEPTED: dict[str, Callable[[Any], bool]] = {
    "Tensor": lambda v: v is None or isinstance(v, Tensor),
    "int": lambda v: _is_int(v) or isinstance(v, (_C.dtype, layout, memory_format)),
    "SymInt": _is_int,
    "float": _is_float,
    "bool": _is_truth,
    "str": lambda v: isinstance(v, (str, bytes)),
    "Scalar": lambda v: isinstance(v, (int, float, complex, _C.dtype, layout)),
    "complex": lambda v: isinstance(v, (int, float, complex)) or _is_single(v),
    "ScalarType": lambda v: isinstance(v, _C.dtype) or _is_int(v),
    "Device": lambda v: isinstance(v, (_C.device, str, bytes)),
    "Layout": lambda v: isinstance(v, layout) or _is_int(v),
    "MemoryFormat": lambda v: isinstance(v, memory_format) or _is_int(v),
    "Generator": lambda v: isinstance(v, Generator),
    "Dimname": lambda v: isinstance(v, str),
    "QScheme": lambda v: True,
    "Storage": lambda v: True,
    "Stream": lambda v: True,
    "Any": lambda v: True,
}
# What is no list and passes for one: nothing for tensors, sequences and sets for numbers, else what can be
# iterated over.
_LIST_KINDS: dict[str, Callable[[Any], bool]] = {
    "Tensor": lambda v: False,
    **dict.fromkeys(
        ("int", "float", "bool"),
        lambda v: not isinstance(v, (Tensor, dict, str, bytes)) and _is_iterable(v),
    ),
}


def _is_iterable(value: Any) -> bool:
    return hasattr(type(value), "__iter__") and getattr(value, "shape", None) != ()


def _fits(argument: Argument, value: Any) -> bool:
    if not isinstance(value, Tensor) and hasattr(type(value), "__torch_function__"):
        return True  # it will be asked
    accepts = _ACCEPTED[argument.word]
    if value is None and argument.is_optional:
        return True
    if not argument.is_list:
        return accepts(value)
    if argument.N is not None and argument.word != "SymInt" and isinstance(value, (int, float)):
        return accepts(value)
    as_list = _is_iterable if argument.optional_elements else _LIST_KINDS.get(argument.word, _is_iterable)
    if not isinstance(value, (list, tuple)) and not as_list(value):
        return False
    if isinstance(value, Tensor) and argument.word != "Tensor" and value.is_floating_point():
        return False
    missing = argument.optional_elements or argument.word == "bool"
    return all(missing if v is None else accepts(v) for v in value)


_NUMBERS: dict[str, Callable] = {"int": int, "SymInt": int, "float": float, "bool": bool}


def _converted(argument: Argument, value: Any) -> Any:
    """What fits an argument as its kernel gets it: lists and numbers are Python's own."""
    if value is None and argument.is_optional:
        return None
    if not argument.is_list:
        return _number(argument, value)
    if isinstance(value, Tensor) and argument.word != "Tensor":
        value = value.tolist()
    elements = list(value) if _is_iterable(value) else [value] * (argument.N or 1)
    return [None if v is None and argument.optional_elements else _number(argument, v) for v in elements]


def _number(argument: Argument, value: Any) -> Any:
    asked = not isinstance(value, Tensor) and hasattr(type(value), "__torch_function__")
    if asked or argument.word not in _NUMBERS or isinstance(value, (_C.dtype, layout, memory_format)):
        return value
    return _NUMBERS[argument.word](value)


def _with_own_memory(declared: str, fresh: Iterator[int]) -> str:
    """`Tensor! x` is written and shares its memory with nobody who is named: `Tensor($0! -> ) x`."""
    return re.sub(r"^(\s*\w+(?:\[\d*\])?)\s*!", lambda found: f"{found[1]}(${next(fresh)}! -> )", declared)


class FunctionSchema:
    """What an operation takes and returns: `name`, `overload_name`, `arguments`, `returns`, `is_mutable`."""

    def __init__(self, text: str) -> None:
        found = re.fullmatch(r"\s*([\w:]+)(?:\.(\w+))?\s*\((.*)\)\s*->\s*(.+?)\s*", text, re.DOTALL)
        if not found:
            raise RuntimeError(_not_a_schema(text))
        self.name, overload, arguments, returns = found.groups()
        self.overload_name = overload or ""
        self.arguments, keyword = [], False
        fresh = itertools.count()
        for declared in _split(arguments):
            if declared == "*":
                keyword = True
            else:
                self.arguments.append(Argument(_with_own_memory(declared, fresh), keyword))
        several = returns.startswith("(") and returns.endswith(")")
        results = _split(returns[1:-1] if several else returns)
        self.returns = [_result(_with_own_memory(one, fresh)) for one in results]
        self.is_mutable = any(a.alias_info is not None and a.alias_info.is_write for a in self.arguments)

    def _is_view_op(self) -> bool:
        """Whether it returns a view of what it is given."""
        shared = [each.alias_info for each in self.returns if each.alias_info is not None]
        return any(not alias.is_write for alias in shared)

    def __str__(self) -> str:
        words, keyword = [], False
        for argument in self.arguments:
            if argument.kwarg_only and not keyword:
                words.append("*")
                keyword = True
            words.append(str(argument))
        returns = ", ".join(map(str, self.returns))
        overload = f".{self.overload_name}" if self.overload_name else ""
        plain = len(self.returns) == 1 and not self.returns[0].elements
        ending = returns if plain else f"({returns})"
        return f"{self.name}{overload}({', '.join(words)}) -> {ending}"

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FunctionSchema) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    @functools.cached_property
    def _counts(self) -> tuple[int, int]:
        """How many arguments have a place, and how many have to be given."""
        places = sum(not argument.kwarg_only for argument in self.arguments)
        return places, sum(not argument.has_default_value() for argument in self.arguments)

    def refusal(self, args: tuple, kwargs: dict) -> str | None:
        """What is wrong with the number, the names or the types of these arguments, if something is."""
        return self._miscounted(args, kwargs) or self._mistyped(args, kwargs)

    def undefined(self, args: tuple, kwargs: dict) -> str | None:
        """That a tensor is None, which a schema takes and an operation does not."""
        if not any(value is None for value in (*args, *kwargs.values())):
            return None
        for position, argument in enumerate(self.arguments):
            value = args[position] if position < len(args) else kwargs.get(argument.name, argument)
            if value is None and str(argument.type) == "Tensor" and not argument.kwarg_only:
                return (
                    "Expected a proper Tensor but got None (or an undefined Tensor in C++) for argument "
                    f"#{position} '{argument.name}'"
                )
        return None

    def _mistyped(self, args: tuple, kwargs: dict) -> str | None:
        for position, argument in enumerate(self.arguments):
            if position < len(args):
                value = args[position]
            elif argument.name in kwargs:
                value = kwargs[argument.name]
            else:
                continue
            if _fits(argument, value):
                continue
            plain_tensor = argument.word == "Tensor" and not argument.is_list
            if plain_tensor and isinstance(value, (int, float, complex)) and self.name in _TAKE_NUMBERS:
                continue
            return (
                f"{self.name}() Expected a value of type '{argument.type}' for argument "
                f"'{argument.name}' but instead found type '{type(value).__name__}'.\n"
                f"Position: {position}\nValue: {value!r}\nDeclaration: {self}"
            )
        return None

    def _miscounted(self, args: tuple, kwargs: dict) -> str | None:
        places, required = self._counts
        if not kwargs and required <= len(args) <= places:
            return None
        given, names = len(args) + len(kwargs), [argument.name for argument in self.arguments]
        if given > len(names):
            return (
                f"{self.name}() expected at most {len(names)} argument(s) but received {given} argument(s). "
                f"Declaration: {self}"
            )
        if len(args) > places:
            return (
                f"{self.name}() takes {places} positional argument(s) but {len(args)} was/were given.  "
                f"Declaration: {self}"
            )
        for argument in self.arguments[len(args) :]:
            if argument.name not in kwargs and not argument.has_default_value():
                return f"{self.name}() is missing value for argument '{argument.name}'. Declaration: {self}"
        for name in kwargs:
            if name not in names[len(args) :]:
                return f"Unknown keyword argument '{name}' for operator '{self.name}'. Schema: {self}"
        return None

    def bind(self, args: tuple, kwargs: dict, fill: bool = False) -> tuple[list, dict]:
        """The arguments in their places and kinds: positional ones, and those by keyword only. What was left
        out at the end stays out unless it is to be filled in."""
        refusal = self.refusal(args, kwargs)
        if refusal is not None:
            raise RuntimeError(refusal)
        placed: list = []
        named: dict = {}
        skipped: list = []
        for position, argument in enumerate(self.arguments):
            if position < len(args) and not argument.kwarg_only:
                value = args[position]
            elif argument.name in kwargs:
                value = kwargs[argument.name]
            else:
                if not argument.kwarg_only:
                    skipped.append(argument.default)
                elif fill:
                    named[argument.name] = argument.default
                continue
            value = _converted(argument, value)
            if argument.kwarg_only:
                named[argument.name] = value
            else:
                placed += [*skipped, value]
                skipped = []
        return [*placed, *skipped] if fill else placed, named

    def written(self, args: Iterable, kwargs: dict) -> list[Tensor]:
        """The tensors of a call that the operation says it writes to."""
        given = dict(zip((a.name for a in self.arguments), args, strict=False)) | kwargs
        found: list[Tensor] = []
        for argument in self.arguments:
            if argument.alias_info is not None and argument.alias_info.is_write:
                value = given.get(argument.name)
                found += [v for v in (value if isinstance(value, list) else [value]) if isinstance(v, Tensor)]
        return found


def _result(declared: str) -> Argument:
    """One of what is returned; in brackets of its own a tuple."""
    if declared.startswith("(") and declared.endswith(")"):
        return Argument("Tuple", elements=tuple(map(_result, _split(declared[1:-1]))))
    return Argument(declared)


def _split(text: str) -> list[str]:
    """The parts between commas that stand in no bracket and no string."""
    parts, depth, quoted, start = [], 0, "", 0
    for at, sign in enumerate(text):
        if quoted:
            quoted = "" if sign == quoted else quoted
        elif sign in "\"'":
            quoted = sign
        elif sign in "([":
            depth += 1
        elif sign in ")]":
            depth -= 1
        elif sign == "," and not depth:
            parts.append(text[start:at].strip())
            start = at + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


def _not_a_schema(text: str) -> str:
    given = text.rpartition("::")[2].strip() if "(" not in text.partition("::")[0] else text
    if not re.match(r"\w", given):
        return f"expected ident but found '{given[:1] or 'eof'}' here:\n{text}"
    if re.fullmatch(r"\w+(\.\w+)?", given):
        return "Tried to parse a function schema but only the operator name was given"
    if re.match(r"\w+(\.\w+)?\s+\w", given):
        return f"expected eof but found 'ident' here:\n{text}"
    if text.count("(") == text.count(")") and "->" not in text:
        return f"expected arrow but found 'eof' here:\n{text}"
    if text.count("(") > text.count(")"):
        return f"expected ) but found 'eof' here:\n{text}"
    return f"expected ident but found 'eof' here:\n{text}"


@functools.cache
def _lines() -> dict[str, str]:
    """The schemas of torch's own operations that there are here, one per line of a compressed file."""
    packed = Path(__file__).with_name("_schemas.bin").read_bytes()
    return {line[: line.index("(")]: line for line in zlib.decompress(packed).decode().split("\n")}


@functools.cache
def schema_of(name: str) -> FunctionSchema | None:
    """The schema of `aten::add.Tensor`, None if it is not known."""
    space, _, rest = name.partition("::")
    return FunctionSchema(f"aten::{_lines()[rest]}") if space == "aten" and rest in _lines() else None


@functools.cache
def _said() -> dict[str, frozenset[str]]:
    """What is said of torch's own operations: a word per line of a compressed file, and of which it is true.
    Besides tags: "decomposes", "scripted" (known to TorchScript alone), "untagged", "not_sparse" (without a
    kernel for sparse tensors, and not made of other operations)."""
    packed = Path(__file__).with_name("_tags.bin").read_bytes()
    lines = (line.split(" ") for line in zlib.decompress(packed).decode().split("\n"))
    return {word: frozenset(names) for word, *names in lines}


def is_said(word: str, name: str) -> bool:
    """Whether the word is true of `aten::add.Tensor`."""
    space, _, rest = name.partition("::")
    return space == "aten" and rest in _said()[word]


def tags_of(name: str) -> list[Tag]:
    """The tags of `aten::add.Tensor`."""
    tags = [tag for tag in Tag if tag.name in _said() and is_said(tag.name, name)]
    return tags if is_said("untagged", name) else sorted([*tags, Tag.pt2_compliant_tag])


def parse(text: str) -> FunctionSchema:
    """Reads a schema.

    >>> from rushlight._schema import parse
    >>> [a.name for a in parse("f(Tensor x, *, int n=3) -> Tensor").arguments]
    ['x', 'n']
    """
    return FunctionSchema(text)


# ---- from annotations

_Number = typing.Union[int, float, bool]  # noqa: UP007  an alias that compares equal however it is written
_BASES = {
    Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str", _Number: "Scalar",
    _C.dtype: "ScalarType", _C.device: "Device",
}  # fmt: skip
_SINGLE = (_C.dtype, _C.device)


def _without_none(annotation: Any) -> Any:
    """X of Optional[X], or None."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        args = typing.get_args(annotation)
        rest = tuple(a for a in args if a is not type(None))
        if len(rest) < len(args):
            return rest[0] if len(rest) == 1 else typing.Union[rest]  # noqa: UP007
    return None


def _word(annotation: Any, optional_inside: bool = True) -> str | None:
    """How a schema writes a type, or None."""
    if typing.get_origin(annotation) is types.UnionType:
        annotation = typing.Union[typing.get_args(annotation)]  # noqa: UP007
    try:
        if annotation in _BASES:
            return _BASES[annotation]
    except TypeError:
        return None
    inner = _without_none(annotation)
    if inner is not None:
        word = _word(inner, False)
        return None if word in (None, "Tensor[]", "Scalar[]") else f"{word}?"
    if typing.get_origin(annotation) in (list, typing.get_origin(typing.Sequence[int])):
        element = typing.get_args(annotation)[0]
        inner = _without_none(element)
        if inner is Tensor and optional_inside:
            return "Tensor?[]"
        word = _BASES.get(element)
        return None if word is None or element in _SINGLE or element is str else f"{word}[]"
    return None


def _unsupported(name: str, annotation: Any) -> str:
    advice = ""
    if typing.get_origin(annotation) is tuple:
        advice = (
            "We do not support Tuple inputs in schema. As a workaround, please try to use List instead. For "
            "example, list[int].\n\n"
        )
    return (
        f"Parameter {name} has unsupported type {annotation}. {advice}The valid types are: "
        f"{list(_BASES.values())}, optional or in a list."
    )


def _default_text(default: Any) -> str | None:
    """A default as a schema writes it; None if it cannot."""
    if isinstance(default, (str, _C.device)):
        return f'"{default}"'
    if isinstance(default, _C.dtype):
        return str(default).rpartition(".")[2]
    return repr(default) if default is None or isinstance(default, (int, float)) else None


def tuple_to_list(tuple_type: Any) -> Any:
    """The list of what a tuple is of: list[int] for tuple[int, int], without arguments list.

    >>> from rushlight._schema import tuple_to_list
    >>> tuple_to_list(tuple[int, ...])
    list[int]
    """
    kinds = typing.get_args(tuple_type)
    if not kinds:
        return list
    if len(kinds) == 1 or (len(kinds) == 2 and kinds[1] is Ellipsis):
        return list[kinds[0]]  # type: ignore[valid-type]
    return list[typing.Union[kinds]]  # type: ignore[valid-type]  # noqa: UP007


def infer_schema(
    prototype_function: Callable,
    /,
    *,
    mutates_args: str | Iterable[str],
    op_name: str | None = None,
    tags: Any = None,
) -> str:
    """The schema that a function's annotations say, with what it writes to marked.

    >>> def f(x: rushlight.Tensor, n: int = 3) -> rushlight.Tensor: ...
    >>> rushlight.library.infer_schema(f, mutates_args=())
    '(Tensor x, SymInt n=3) -> Tensor'
    """
    signature = inspect.signature(prototype_function)
    scope = {**getattr(prototype_function, "__globals__", {}), **vars(typing)}

    def refuse(what: str) -> typing.NoReturn:
        shown = str(signature).replace("rushlight.", "torch.")
        raise ValueError(f"infer_schema(func): {what} Got func with signature {shown})")

    def resolved(annotation: Any) -> Any:
        if not isinstance(annotation, str):
            return annotation
        start = f"Unsupported type annotation {annotation}. It is not a type. "
        try:
            return eval(annotation, scope)
        except NameError as error:
            return refuse(
                f"{start}({error}). If you are using 'from __future__ import annotations', note that "
                "annotations are evaluated lazily as strings; make sure all types referenced in annotations "
                "are importable at module scope, not only inside a local function."
            )
        except Exception as error:
            return refuse(f"{start}({type(error).__name__}: {error})")

    words, keyword, written = [], False, set()
    tags = tags if isinstance(tags, (tuple, list)) else (tags,)
    if Tag.inplace in tags and Tag.out in tags:
        raise AssertionError("torch.Tag.inplace and torch.Tag.out are mutually exclusive")
    unknown = mutates_args == "unknown"
    wanted = set() if unknown else set(mutates_args)
    for number, (name, param) in enumerate(signature.parameters.items()):
        if param.kind not in (param.POSITIONAL_OR_KEYWORD, param.KEYWORD_ONLY):
            refuse("We do not support positional-only args, varargs, or varkwargs.")
        if param.kind is param.KEYWORD_ONLY and not keyword:
            words.append("*")
            keyword = True
        if param.annotation is param.empty:
            refuse(f"Parameter {name} must have a type annotation.")
        annotation = resolved(param.annotation)
        word = _word(annotation)
        if word is None:
            refuse(_unsupported(name, annotation))
        if isinstance(mutates_args, str) and not unknown:
            raise ValueError(
                "mutates_args must either be a sequence of the names of the arguments that are mutated or "
                "the string 'unknown'. "
            )
        if name in wanted or (unknown and word.startswith("Tensor")):
            if not word.startswith("Tensor"):
                refuse(
                    f"Parameter {name} is in mutable_args but only Tensors or collections of Tensors can be "
                    "mutated"
                )
            word = word.replace("Tensor", f"Tensor(a{number}!)", 1)
            written.add(name)
        words.append(f"{word} {name}")
        if param.default is not param.empty:
            text = _default_text(param.default)
            if text is None:
                refuse(
                    f"Parameter {name} has an unsupported default value type {type(param.default)}. Please "
                    "file an issue on GitHub so we can prioritize this."
                )
            words[-1] += f"={text}"
    if wanted - written:
        refuse(
            f"{wanted - written} in mutates_args were not found in the custom op's signature. mutates_args "
            "should contain the names of all args that the custom op mutates, or just the string 'unknown' "
            "if you don't know."
        )
    if signature.return_annotation is signature.empty:
        refuse("No return type annotation was provided. Please add one.")
    annotation = resolved(signature.return_annotation)
    returned = _return_word(annotation, refuse)
    if Tag.inplace in tags:
        returned = _of_inplace(signature, words, mutates_args, returned, refuse)
    if Tag.out in tags:
        returned = _of_out(signature, words, written, annotation, refuse)
    return f"{op_name or ''}({', '.join(words)}) -> {returned}"


def _of_inplace(
    signature: inspect.Signature, words: list[str], mutates_args: Any, returned: str, refuse: Callable
) -> str:
    """What an operation tagged with `inplace` returns: its first argument."""
    first = next((p for p in signature.parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD), None)
    start = "torch.Tag.inplace requires"
    if first is None:
        return refuse(f"{start} a positional Tensor argument.")
    if words[0].partition(" ")[0] not in ("Tensor", "Tensor(a0!)"):
        refuse(f"{start} the first positional argument to be a Tensor.")
    if isinstance(mutates_args, str) or set(mutates_args) != {first.name}:
        given = mutates_args if isinstance(mutates_args, str) else tuple(mutates_args)
        refuse(f"{start} mutates_args to contain exactly the first positional argument, got {given}.")
    if returned != "Tensor":
        refuse(f"{start} the return annotation to be torch.Tensor.")
    return "Tensor(a0!)"


def _of_out(
    signature: inspect.Signature, words: list[str], written: set, annotation: Any, refuse: Callable
) -> str:
    """What an operation tagged with `out` returns: the tensors by keyword that it writes."""
    params = signature.parameters.values()
    if any(p.kind is not p.KEYWORD_ONLY for p in params if p.name in written):
        refuse("torch.Tag.out requires mutable arguments to be keyword-only.")
    places = [place for place, p in enumerate(params) if p.name in written]
    outs = [word for word in words if "!)" in word]
    if any("!) " not in word for word in outs):
        refuse("torch.Tag.out only supports mutable keyword-only Tensor arguments.")
    if not outs:
        refuse("torch.Tag.out requires at least one mutable keyword-only Tensor argument.")
    several = typing.get_origin(annotation) is tuple and typing.get_args(annotation) == (Tensor,) * len(outs)
    if not (several if len(outs) > 1 else annotation is Tensor):
        names = tuple(p.name for p in params if p.name in written)
        refuse(
            "torch.Tag.out requires the return annotation to match the mutable keyword-only Tensor arguments "
            f"{names}."
        )
    aliased = [f"Tensor(a{place}!)" for place in places]
    return aliased[0] if len(aliased) == 1 else f"({', '.join(aliased)})"


def _returned_word(annotation: Any) -> str | None:
    """How a schema writes the type of a result, or None."""
    if typing.get_origin(annotation) is not tuple:
        plain = typing.get_origin(annotation) in (None, list, typing.Union, types.UnionType)
        word = _word(annotation) if plain else None
        return word if word in ("Tensor", "Tensor[]", "SymInt", "float", "bool", "Scalar") else None
    parts = typing.get_args(annotation)
    words = [None if typing.get_origin(each) is tuple else _returned_word(each) for each in parts]
    inner = ", ".join(word for word in words if word is not None)
    if None in words:
        return None
    return f"(({inner}))" if len(words) == 1 else f"({inner})"


def _return_word(annotation: Any, refuse: Callable[[str], typing.NoReturn]) -> str:
    if annotation is None:
        return "()"
    word = _returned_word(annotation)
    if word is None:
        refuse(
            f"Return has unsupported type {annotation}. The valid types are: Tensor, Tensor[], SymInt, "
            "float, bool, Scalar."
        )
    return word
