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
_NATIVE_LOSSES = {"dropout", "alpha_dropout", "one_hot"}
_OTHER_NAMES = {("copy_", "src"): "other", ("one_hot", "tensor"): "input", ("arange", "start"): "end",
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


def reword(function: Any, args: tuple, kwargs: dict, error: BaseException) -> str | None:
    """The sentence for a TypeError in place of `error`, or None to leave it."""
    if hasattr(error, "worded"):
        return None
    wrapped = function.__wrapped__
    code = getattr(wrapped, "__code__", None)
    if code is None or function.__name__ in ("tensor", "as_tensor", "asarray", "new_tensor"):
        return None
    if wrapped.__module__ == "rushlight.masked":
        return None  # written in Python in torch as well
    name = _full_name(function)
    names = code.co_varnames[: code.co_argcount]
    rest = code.co_varnames[code.co_argcount + code.co_kwonlyargcount] if code.co_flags & 4 else None
    is_method = _C.Tensor.__dict__.get(function.__name__) is function
    given = list(zip((*names, *[rest] * max(0, len(args) - len(names))), args, strict=False))
    given += list(kwargs.items())

    def place(parameter: str, value: Any) -> str:
        """(position 2), if the argument has one."""
        for at, (known, one) in enumerate(given[: len(args)]):
            if known == parameter and one is value:
                first = names.index(parameter) if parameter in names else at
                return f" (position {first + (0 if is_method else 1)})"
        return ""

    def wrong(parameter: str, value: Any, kind: str) -> str:
        if is_method and names and parameter == names[0]:
            return ""
        if name in _OVERLOADED and parameter != names[0]:
            return unfit()
        shown = _OTHER_NAMES.get((name, parameter), "size" if parameter == "args" else parameter.rstrip("_"))
        what = f"must be {kind}, not {type_name(value)}"
        return f"{name}(): argument '{shown}'{place(parameter, value)} {what}"

    def unfit() -> str:
        """No signature takes arguments of these types."""
        shown = [type_name(value) for value in args[1 if is_method else 0 :]]
        shown += [f"{known}={type_name(value)}" for known, value in kwargs.items()]
        listed = ", ".join(shown) + (", " if kwargs and len(shown) == len(kwargs) else "")
        return (
            f"{name}() received an invalid combination of arguments - got ({listed}), but expected one of:\n"
            f" * ({', '.join(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])})"
        )

    # Functions that are written in Python in torch as well stumble as they do there.
    functions = vars(sys.modules.get("rushlight.nn.functional", sys))
    in_python = functions.get(function.__name__) is function and name not in _NATIVE_LOSSES
    if isinstance(error, AttributeError):
        if in_python:
            return None
        owner = getattr(error, "obj", None)
        for parameter, value in given:
            if value is owner and not isinstance(value, _C.Tensor):
                return wrong(parameter, value, "Tensor") or None
        return None
    text = str(error)
    if "(position " in text:
        return None
    if match := _TOO_MANY.fullmatch(text):
        alone = is_method and code.co_argcount == 1
        return f"TensorBase.{name}() takes no arguments ({int(match.group(1)) - 1} given)" if alone else None
    if match := _MISSING.match(text):
        if match.group(1) != wrapped.__name__:
            return None
        if name in _OVERLOADED:
            return unfit()
        missing = re.findall(r"'(\w+)'", match.group(2))
        listed = ", ".join(f'"{one}"' for one in missing)
        return f"{name}() missing {len(missing)} required positional arguments: {listed}"
    if match := _NOT_INT.fullmatch(text):
        kind, culprits, element = "int", {match.group(1)}, None
    elif (match := _NOT_COMPARED.fullmatch(text)) and functions.get(function.__name__) is function:
        return None
    elif match:
        kind, culprits, element = "int", set(match.groups()) - {"int"}, None
    elif match := _NOT_NUMBER.fullmatch(text):
        kind, culprits, element = "Number", {match.group(1)}, None
    elif match := _KIND.match(text):
        kind, culprits = match.group(2), _number(match.group(3) or match.group(4))
        element = match.group(4)
        if kind == "bool" and (switch := match.group(1)) in dict(given):  # told by name from the numbers
            value = dict(given)[switch]
            what = f"must be bool, not {type(value).__name__}"
            return f"{name}(): argument '{switch}'{place(switch, value)} {what}"
    else:
        return None
    for parameter, value in given:
        if type(value).__name__ in culprits and not isinstance(value, _C.Tensor):
            if kind == "tuple of ints" and parameter == rest and len(args) > len(names) + 1:
                break
            return wrong(parameter, value, kind) or None
    if element is None:
        return None
    several = args[len(names) :] if rest else ()
    for parameter, value in [*given, (rest, several)]:
        for at, one in enumerate(value if isinstance(value, (list, tuple)) else ()):
            if type(one).__name__ in culprits:
                shown = "size" if parameter == "args" else (parameter or "").rstrip("_")
                if shown in _UNPACKED:
                    return (
                        f"{name}(): argument '{shown}' failed to unpack the object at pos {at + 1} with "
                        f'error "type must be tuple of ints,but got {type(one).__name__}"'
                    )
                return (
                    f"{name}(): argument '{shown}'{place(parameter or '', value)} must be tuple of ints, but "
                    f"found element of type {type(one).__name__} at pos {at}"
                )
    return None
