"""Wording what is wrong with the arguments of a public function, once the call has failed.

What torch parses natively is refused beforehand (_signatures.py). Other public functions do not check the
types of their arguments: what they call does, and complains in its own terms (a primitive's parameter
names, a missing attribute). `reword` is asked after such a failure; it finds which of the caller's arguments
is meant and says so as torch does, by the name and position it has in the call. It costs nothing while calls
succeed.
"""

from __future__ import annotations

import re
import sys
from typing import Any

from rushlight import _C
from rushlight._type_names import type_name

_KIND = re.compile(
    r"(?:\w+\(\): )?argument '(\w+)' (?:\(position \d+\) )?must be "
    r"(Tensor|int|Number|float|bool|tuple of ints), "
    r"(?:not (\w+)|but found element of type (\w+) at pos (\d+))"
)
_NOT_INT = re.compile(r"'(\w+)' object cannot be interpreted as an integer")
_NOT_NUMBER = re.compile(r"must be real number, not (\w+)")
_NOT_COMPARED = re.compile(r"'[<>]=?' not supported between instances of '(\w+)' and '(\w+)'")
_MISSING = re.compile(r"(\w+)\(\) missing \d+ required positional arguments?: ('.*)")
_TOO_MANY = re.compile(r"\w+\(\) takes 1 positional argument but (\d+) were given")
_UNPACKED = {"size", "shape", "repeats"}  # lists of sizes, which torch unpacks one by one
# Functions with several signatures: an argument behind the first that fits none of them.
_OVERLOADED = {
    "all", "any", "arange", "clamp", "clip", "eye", "fill_", "linspace", "logspace", "masked_fill", "max",
    "mean", "min", "pow", "prod", "squeeze", "std", "sum", "to", "var", "view", "where",
}  # fmt: skip
_IN_PYTHON = {  # outside of nn.functional
    "backward", "broadcast_shapes", "einsum", "norm", "resize_as", "split", "stft", "tensordot",
    "unravel_index",
}  # fmt: skip
_NATIVE_LOSSES = {"dropout", "alpha_dropout", "one_hot"}
_OTHER_NAMES = {("one_hot", "tensor"): "input", ("arange", "start"): "end",
                ("dropout", "training"): "train", ("alpha_dropout", "training"): "train",
                ("tensordot", "a"): "input", ("tensordot", "b"): "other"}  # fmt: skip


def _number(kind: str) -> set[str]:
    return {"int", "float", "bool", "complex"} if kind == "number" else {kind}


def _full_name(function: Any) -> str:
    """torch's name in sentences: linalg_inv, fft_fft."""
    import rushlight

    name = function.__name__
    for space in ("linalg", "fft", "special"):
        module = sys.modules.get(f"rushlight.{space}")
        if (
            module is not None
            and vars(module).get(name) is function
            and vars(rushlight).get(name) is not function
        ):
            return f"{space}_{name}"
    return name


class _Call:
    """A call that failed, and what can be said of its arguments."""

    def __init__(self, function: Any, args: tuple, kwargs: dict) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs
        self.code = code = function.__wrapped__.__code__
        self.name = _full_name(function)
        self.names = code.co_varnames[: code.co_argcount]
        # The parameter that takes any number of arguments.
        self.rest = code.co_varnames[code.co_argcount + code.co_kwonlyargcount] if code.co_flags & 4 else None
        self.is_method = _C.Tensor.__dict__.get(function.__name__) is function
        functions = vars(sys.modules.get("rushlight.nn.functional", sys))
        self.in_functional = functions.get(function.__name__) is function
        more = max(0, len(args) - len(self.names))
        self.given = list(zip((*self.names, *[self.rest] * more), args, strict=False))
        self.given += list(kwargs.items())

    def place(self, parameter: str, value: Any) -> str:
        """(position 2), if the argument has one."""
        for at, (known, one) in enumerate(self.given[: len(self.args)]):
            if known == parameter and one is value:
                first = self.names.index(parameter) if parameter in self.names else at
                return f" (position {first + (0 if self.is_method else 1)})"
        return ""

    def wrong(self, parameter: str, value: Any, kind: str) -> str | None:
        """The argument is of another type."""
        if self.is_method and self.names and parameter == self.names[0]:
            return None
        if self.name in _OVERLOADED and parameter != self.names[0]:
            return self.unfit()
        usual = "size" if parameter == "args" else parameter.rstrip("_")
        shown = _OTHER_NAMES.get((self.name, parameter), usual)
        what = f"must be {kind}, not {type_name(value)}"
        return f"{self.name}(): argument '{shown}'{self.place(parameter, value)} {what}"

    def unfit(self) -> str:
        """No signature takes arguments of these types."""
        shown = [type_name(value) for value in self.args[1 if self.is_method else 0 :]]
        shown += [f"{known}={type_name(value)}" for known, value in self.kwargs.items()]
        listed = ", ".join(shown) + (", " if self.kwargs and len(shown) == len(self.kwargs) else "")
        parameters = self.code.co_varnames[: self.code.co_argcount + self.code.co_kwonlyargcount]
        return (
            f"{self.name}() received an invalid combination of arguments - got ({listed}), but expected one "
            f"of:\n * ({', '.join(parameters)})"
        )

    def missing(self, listed: str) -> str:
        """Arguments were left out."""
        if self.name in _OVERLOADED:
            return self.unfit()
        missing = re.findall(r"'(\w+)'", listed)
        shown = ", ".join(f'"{one}"' for one in missing)
        return f"{self.name}() missing {len(missing)} required positional arguments: {shown}"

    def without_attribute(self, owner: Any) -> str | None:
        """The owner of a missing attribute is an argument that should be a tensor."""
        # Functions that are written in Python in torch as well stumble as they do there.
        if (self.in_functional and self.name not in _NATIVE_LOSSES) or self.name in _IN_PYTHON:
            return None
        for parameter, value in self.given:
            if value is owner and not isinstance(value, _C.Tensor):
                return self.wrong(parameter, value, "Tensor")
        return None

    def of_kind(self, kind: str, culprits: set[str]) -> str | None:
        """An argument of one of these types should be of this kind."""
        for parameter, value in self.given:
            if type(value).__name__ in culprits and not isinstance(value, _C.Tensor):
                one_of_many = parameter == self.rest and len(self.args) > len(self.names) + 1
                return None if kind == "tuple of ints" and one_of_many else self.wrong(parameter, value, kind)
        return None

    def with_element(self, culprits: set[str]) -> str | None:
        """An element of one of these types stands in a list of sizes."""
        several = self.args[len(self.names) :] if self.rest else ()
        lists = [pair for pair in (*self.given, (self.rest, several)) if isinstance(pair[1], (list, tuple))]
        for parameter, at, one, value in ((p, at, one, v) for p, v in lists for at, one in enumerate(v)):
            if type(one).__name__ not in culprits:
                continue
            shown = "size" if parameter == "args" else (parameter or "").rstrip("_")
            if shown in _UNPACKED:
                return (
                    f"{self.name}(): argument '{shown}' failed to unpack the object at pos {at + 1} with "
                    f'error "type must be tuple of ints,but got {type_name(one)}"'
                )
            return (
                f"{self.name}(): argument '{shown}'{self.place(parameter or '', value)} must be tuple of "
                f"ints, but found element of type {type_name(one)} at pos {at}"
            )
        return None

    def explained(self, text: str) -> str | None:
        """The sentence in place of a TypeError's."""
        if match := _NOT_INT.fullmatch(text):
            return None if self.name in _IN_PYTHON else self.of_kind("int", {match.group(1)})
        if match := _NOT_COMPARED.fullmatch(text):
            in_python = self.in_functional or self.name in _IN_PYTHON
            return None if in_python else self.of_kind("int", set(match.groups()) - {"int"})
        if match := _NOT_NUMBER.fullmatch(text):
            return self.of_kind("Number", {match.group(1)})
        if not (match := _KIND.match(text)):
            return None
        switch, kind, other, element, _ = match.groups()
        if kind == "bool" and switch in dict(self.given):  # told by name from the numbers
            value = dict(self.given)[switch]
            what = f"must be bool, not {type_name(value)}"
            return f"{self.name}(): argument '{switch}'{self.place(switch, value)} {what}"
        culprits = _number(other or element)
        return self.of_kind(kind, culprits) or (self.with_element(culprits) if element else None)


def reword(function: Any, args: tuple, kwargs: dict, error: BaseException) -> str | None:
    """The sentence for a TypeError in place of `error`, or None to leave it."""
    wrapped = function.__wrapped__
    if hasattr(error, "worded") or not hasattr(wrapped, "__code__"):
        return None
    if function.__name__ in ("tensor", "as_tensor", "asarray", "new_tensor"):
        return None
    if wrapped.__module__ in ("rushlight.masked", "rushlight.ops.lowrank"):
        return None  # written in Python in torch as well
    call = _Call(function, args, kwargs)
    if isinstance(error, AttributeError):
        return call.without_attribute(getattr(error, "obj", None))
    text = str(error)
    if "(position " in text:
        return None
    if match := _TOO_MANY.fullmatch(text):
        alone = call.is_method and call.code.co_argcount == 1
        given = int(match.group(1)) - 1
        return f"TensorBase.{call.name}() takes no arguments ({given} given)" if alone else None
    if match := _MISSING.match(text):
        return call.missing(match.group(2)) if match.group(1) == wrapped.__name__ else None
    return call.explained(text)
