"""Whether torch takes a call: its parser of arguments, run on the signatures of `_signatures.txt`.

The quick look at a call is native (native/python/signatures.cpp); `examine` is asked about calls that do not
surely fit. It returns if torch takes them and raises torch's TypeError if not, before anything is computed.

A line of `_signatures.txt` gives names and their signatures. A name is that of a function of torch
(`linalg_inv` is linalg.inv), of a method (`.sum`, where it is not that of the function without its first
parameter and `out`), or of a function of nn.functional (`nn.linear`). A parameter is a letter for its type,
`?` if it takes None, its name, and `=` if it has a default, which may follow. What torch has in Python hands
its arguments on: `im2col@` names the function that complains (`@`: the same name), `/train` the parameter as
it is called there, `#4` its position there (`#0`: none is said). `o /` is the only argument, without a name,
`o *sizes=` all that are left.
A signature behind `!` is an old one, which torch takes and does not speak of:

    T Tensor   n Tensor or number   N Number   i int   f float   b bool   s str   d dtype   v device
    y int that may be a tensor or an array of a single one (torch calls it SymInt)
    L list of Tensors   D list of floats   I list of ints (I2: or one int for all)   S list of numbers
    l layout   m memory_format   g Generator   c complex   u storage   o anything

Why this stands beside the `def` of a function and the schema of its operation (_schema.py): a `def` has no
types, and its overloads are one. Two thirds of these lines could be derived from schemas (the rest is what
torch's Python adds: `out` or not, numbers for tensors, factories), but every program would read those at its
first operation, which takes twenty times as long as this file.
"""

from __future__ import annotations

import functools
import importlib
import operator
import os
import sys
from collections.abc import Iterable

from rushlight import _C
from rushlight._annotations import Any
from rushlight._errors import module_of
from rushlight._type_names import type_name

_WORDS = {
    "T": "Tensor", "n": "Tensor", "N": "Number", "i": "int", "y": "int", "f": "float", "b": "bool",
    "s": "str", "d": "torch.dtype", "v": "torch.device", "L": "tuple of Tensors", "D": "tuple of floats",
    "I": "tuple of ints", "S": "tuple of Scalars", "l": "torch.layout", "m": "torch.memory_format",
    "g": "torch.Generator", "c": "complex", "u": "Storage",
}  # fmt: skip
_DEFAULTS = {"N": 1, "b": False}  # of the signatures that stand beside old ones
_NUMPY_NAMES = {"dim": ("axis",), "keepdim": ("keepdims",), "input": ("x", "a", "x1"), "other": ("x2",),
                }  # fmt: skip
# Functions of nn.functional that are two in torch, with and without indices, and where they ask which.
_DISPATCHED = {"max_pool": 6, "adaptive_max_pool": 2, "fractional_max_pool": 4}
_NATIVE = {"nn.logsigmoid", "to_dlpack"}  # handed on as it is
_ELSEWHERE = {f"rushlight.{module}" for module in ("_functional_names", "_private", "_underscored")}
_CHOSEN = {"lu", "unique", "unique_consecutive"}  # whose switches choose a function first
# Losses that look at the sizes before their reduction.
_SIZES_FIRST = {"huber_loss", "l1_loss", "mse_loss", "smooth_l1_loss"}
_table: dict[str, str] = {}


def _refusal(sentence: str) -> TypeError:
    """An error that is worded: `reword` of _arguments.py leaves it as it is."""
    error: Any = TypeError(sentence)
    error.worded = True
    return error


class _Parameter:
    def __init__(
        self, kind: str, takes_one: bool, takes_none: bool, name: str, shown: str, place: str, optional: bool,
        default: str, by_keyword: bool,
    ) -> None:  # fmt: skip
        self.kind, self.takes_one, self.takes_none = kind, takes_one, takes_none
        self.name, self.shown, self.place = name, shown, place
        self.optional, self.default, self.by_keyword = optional, default, by_keyword


_SELF = _Parameter("o", False, False, "self", "self", "", False, "", False)


def _read() -> dict[str, str]:
    if not _table:
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_signatures.txt")
        with open(path, encoding="ascii") as file:
            for line in file:
                names, _, signatures = line.rstrip("\n").partition(": ")
                _table.update(dict.fromkeys(names.split(), signatures))
    return _table


@functools.cache
def _parse(text: str) -> list[_Parameter]:
    parameters, by_keyword = [], False
    for word in text.removeprefix("!").split(",") if text else ():
        if word == "*":
            by_keyword = True
            continue
        kind, _, name = word.partition(" ")
        name, optional, default = name.partition("=")
        name, _, place = name.partition("#")
        name, _, shown = name.partition("/")
        one, none = kind.strip("?")[1:].isdigit(), kind.endswith("?")
        parameters.append(
            _Parameter(kind[0], one, none, name, shown or name, place, bool(optional), default, by_keyword)
        )
    return parameters


def _name_of(function: Any) -> tuple[str, str]:
    """The name of a public function in the table, and in torch's sentences."""
    from rushlight.ops._public import FUNCTIONS

    name = function.__name__
    if FUNCTIONS.get(name) is function:
        return name, name
    if _C.Tensor.__dict__.get(name) is function:
        return "." + name, name
    for space in ("linalg", "fft", "special"):
        # Our own calls may come before a program has imported linalg; what is found here is kept.
        if f"{space}_{name}" in _read() or function.__wrapped__.__module__.startswith(
            f"rushlight.ops.{space}"
        ):
            importlib.import_module(f"rushlight.{space}")
        if vars(sys.modules.get(f"rushlight.{space}", os)).get(name) is function:
            return f"{space}_{name}", f"{space}_{name}"
    if vars(sys.modules.get("rushlight.nn.functional", os)).get(name) is function:
        return f"nn.{name}", name
    if function.__wrapped__.__module__ in _ELSEWHERE:
        return name, name
    return "", name


def signatures_of(function: Any) -> Any:
    """The signatures of a public function and whether they leave out `self`; None if there are none known,
    False while the package is being imported."""
    if "_LAZY" not in vars(sys.modules["rushlight"]):
        return False
    table, (key, _) = _read(), _name_of(function)
    found = table.get(key)
    whole = table.get(key[1:], "!") if key.startswith(".") else "!"
    if found is None and "!" not in whole:
        each = [text.split(",") for text in whole.split("|")]
        if all(words[0].endswith(" input") for words in each):
            kept = [[word for word in words[1:] if not word.endswith(" out=")] for words in each]
            found = "|".join(",".join(words[:-1] if words[-1:] == ["*"] else words) for words in kept)
    return None if found is None or found == "-" else (found[found.find("@") + 1 :], key.startswith("."))


def examine(function: Any, args: tuple, kwargs: dict) -> tuple[tuple, dict] | None:
    """Raises torch's TypeError if none of the function's signatures takes the arguments. Returns others in
    their place if torch makes them of these: a float of an int beyond 64 bits, a string of bytes."""
    caller = module_of(sys._getframe(1).f_globals)
    hands_on = caller.startswith(("rushlight.nn.", "rushlight.optim.")) and not caller.startswith(
        "rushlight.nn.functional"
    )
    if caller.startswith("rushlight.") and not hands_on:
        return (
            None  # our own calls take the liberties that our functions allow; layers and optimisers hand on
        )
    texts, takes_self = signatures_of(function)
    if takes_self and not args and "self" in kwargs and "@" in _read().get(_name_of(function)[0], ""):
        rest = {known: value for known, value in kwargs.items() if known != "self"}
        return examine(function, (kwargs["self"],), rest) or ((kwargs["self"],), rest)
    key, name = _name_of(function)
    said, handed_on, _ = _read().get(key, "").partition("@")
    if handed_on and key not in _NATIVE:
        from rushlight import _preludes

        parameters = [*[_SELF] * takes_self, *_parse(texts)]
        outer, indexed = _dispatched(key, args, kwargs)
        given = dict(zip([p.name for p in parameters], args)) | kwargs
        if name in _CHOSEN and not takes_self:
            _preludes.look(name, given)
            outer = _chosen(name, given)
        _check_call(outer, parameters, args, kwargs)
        if name not in _SIZES_FIRST:
            _check_reduction(name, parameters, given)
        _preludes.look(name, given)
        if name in _SIZES_FIRST:
            _check_reduction(name, parameters, given)
        if name == "unique" and given.get("dim") is not None:
            said = "unique_dim"
        said = outer if indexed and said.startswith("max_pool") else said
        if given.get("inplace"):
            said = f"{said or name}_"
        if takes_self and not isinstance(args[0], _C.Tensor) and name in _CHOSEN:
            what = f"must be Tensor, not {type_name(args[0])}"
            raise _refusal(f"{said}(): argument 'input' (position 1) {what}")
        if name in ("split", "resize") or (takes_self and not isinstance(args[0], _C.Tensor)):
            return None  # all was said
    name = said if handed_on and said else name
    if takes_self:
        if not args or not isinstance(args[0], _C.Tensor):
            if args:
                raise _refusal(
                    f"descriptor '{name}' for 'torch._C.TensorBase' objects doesn't apply to a "
                    f"'{type_name(args[0])}' object"
                )
            raise _refusal(f"unbound method TensorBase.{name}() needs an argument")
        own, args = args[:1], args[1:]
    else:
        own = ()
    if texts in ("", "o /") and not handed_on:
        whole = f"TensorBase.{name}" if takes_self else f"torch._VariableFunctionsClass.{name}"
        if kwargs:
            raise _refusal(f"{whole}() takes no keyword arguments")
        if len(args) != len(_parse(texts)):
            takes = "exactly one argument" if texts else "no arguments"
            raise _refusal(f"{whole}() takes {takes} ({len(args)} given)")
        return None
    parameters = _check(name, texts, args, kwargs, bool(handed_on))
    known_as = {p.name: p for p in parameters}
    made = [_parsed(p, value) for p, value in zip(parameters, args)]
    named = {known: _parsed(known_as.get(known, _SELF), value) for known, value in kwargs.items()}
    unchanged = all(map(operator.is_, made, args)) and all(named[known] is kwargs[known] for known in kwargs)
    return None if unchanged else ((*own, *made, *args[len(made) :]), named)


def _parsed(p: _Parameter, value: Any) -> Any:
    """What torch makes of the argument, where our functions would not."""
    if p.kind == "f" and type(value) is int and not -(2**63) <= value < 2**63:
        return float(value)
    if p.kind == "i" and isinstance(value, _C.Tensor) and not value.is_meta:
        return int(value.item())
    if p.kind == "s" and isinstance(value, bytes):
        return value.decode()
    if p.kind == "n" and _numpy_kind(value) in ("biuf" if p.name == "out" else "iuf"):
        return int(value) if _numpy_kind(value) in "iu" else float(value)
    return value


def _check(name: str, texts: str, args: tuple, kwargs: dict, handed_on: bool) -> list[_Parameter]:
    """Raises torch's TypeError if none of the signatures takes the arguments, or returns one that does."""
    given, listed, problems = len(args) + len(kwargs), texts.split("|"), []
    for text in listed:
        problem = _problem(name, _parse(text), args, kwargs, handed_on)
        if problem is None:
            return _parse(text)
        problems.append(problem)
    spoken_of = [at for at, text in enumerate(listed) if not text.startswith("!")]
    likely = [at for at in spoken_of if _required(_parse(listed[at])) <= given <= len(_parse(listed[at]))]
    if len(listed) == 1 or len(likely) == 1:
        raise _refusal(problems[likely[0] if likely else 0])
    refused = f"{name}() received an invalid combination of arguments - got"
    types = [type_name(value) for value in args]
    if len(spoken_of) == 1:
        expected = _shown(_parse(listed[spoken_of[0]]), True)
        if kwargs:
            raise _refusal(f"{refused} unrecognized keyword arguments: {', '.join(reversed(kwargs))}")
        words = expected.split(", ")
        if len(words) == len(types):  # torch counts the `*`, and compares words
            types = [_with_elements(value) for value in args]
            types = [one if word.startswith(f"{one} ") else f"!{one}!" for word, one in zip(words, types)]
        raise _refusal(f"{refused} ({', '.join(types)}), but expected ({expected})")
    types += [f"{known}={type_name(kwargs[known])}" for known in _hashed(kwargs)]
    shown = ", ".join(types) + (", " if kwargs and not args else "")
    expected = "".join(f"\n * ({_shown(_parse(listed[at]))})" for at in spoken_of)
    raise _refusal(f"{refused} ({shown}), but expected one of:{expected}\n")


def _with_elements(value: Any) -> str:
    """The type of an argument and, in brackets of its kind, those of what it lists."""
    if not isinstance(value, (tuple, list)):
        return type_name(value)
    listed = ", ".join(type_name(one) for one in value)
    if isinstance(value, list):
        return f"{type_name(value)} of [{listed}]"
    return f"{type_name(value)} of ({listed}{',' * (len(value) == 1)})"


def _hashed(names: Iterable[str]) -> list[str]:
    """Names in the order in which torch shows them: that of a table of hashes of the C++ library, a chain on
    which a name comes first, or first of those that share its place among thirteen."""
    chain: list[tuple[int, str]] = []
    for name in names:
        place = _hash(name) % 13
        first = next((at for at, (other, _) in enumerate(chain) if other == place), 0)
        chain.insert(first, (place, name))
    return [name for _, name in chain]


def _hash(name: str) -> int:
    """The hash of a string in that library: MurmurHash64A with its seed."""
    text, factor, mask = name.encode(), 0xC6A4A7935BD1E995, 2**64 - 1
    mixed = 0xC70F6907 ^ len(text) * factor & mask
    for start in range(0, len(text), 8):
        part = int.from_bytes(text[start : start + 8], "little")
        if start + 8 <= len(text):
            part = part * factor & mask
            part = (part ^ part >> 47) * factor
        mixed = (mixed ^ part & mask) * factor & mask
    mixed = (mixed ^ mixed >> 47) * factor & mask
    return mixed ^ mixed >> 47


def _required(parameters: list[_Parameter]) -> int:
    return sum(not p.optional for p in parameters)


def text_of(key: str) -> str:
    """The signatures that stand in the table."""
    return _read()[key]


def check(name: str, texts: str, args: tuple, kwargs: dict) -> None:
    """Raises torch's TypeError if none of the signatures (or those of the table) takes the arguments of a
    call."""
    _check(name, texts or _read()[name], args, kwargs, False)


def bound(name: str, texts: str, args: tuple, kwargs: dict) -> dict[str, Any]:
    """The arguments of a call by the names of the first of the signatures that takes them, or torch's
    TypeError."""
    parameters = _check(name, texts, args, kwargs, False)
    numpys = {other: p.name for p in parameters for other in _NUMPY_NAMES.get(p.name, ())}
    return dict(zip((p.name for p in parameters), args)) | {
        numpys.get(known, known): value for known, value in kwargs.items()
    }


def check_call(name: str, texts: str, *args: Any) -> None:
    """Raises torch's TypeError if its native function of this name and these signatures (or those of the
    table) does not take the arguments, which a function written in Python is about to hand on to it."""
    _check(name, texts or _read()[name], args, {}, True)


def _dispatched(key: str, args: tuple, kwargs: dict) -> tuple[str, bool]:
    """The Python function of torch's behind a name of the table, and whether it is one of two, the one that
    gives the indices."""
    space, _, name = key.rpartition(".")
    if space != "nn":
        return (f"Tensor.{name}" if key.startswith(".") else name), False
    at = _DISPATCHED.get(name.rstrip("123d"))
    if at is None or name == "fractional_max_pool1d":
        return ("_threshold" if name == "threshold" else name), False
    indices = kwargs.get("return_indices", args[at] if at < len(args) else False)
    return (f"{name}_with_indices", True) if indices else (f"_{name}", False)


def _chosen(name: str, given: dict) -> str:
    """The function that the switches of `lu`, `unique` and `unique_consecutive` choose."""
    if name == "lu":
        return "_lu_with_infos" if given.get("get_infos") else "_lu_no_infos"
    switches = [one for one in ("inverse", "counts") if given.get(f"return_{one}")]
    return f"{'_consecutive' * (name != 'unique')}_return_{'_and_'.join(switches) or 'output'}"


def _check_reduction(name: str, parameters: list[_Parameter], given: dict) -> None:
    """What a loss does with `reduction` and the switches of older versions before it hands anything on."""
    older = [given.get(switch) for switch in ("size_average", "reduce")]
    if any(switch is not None for switch in older) and any(p.name == "size_average" for p in parameters):
        for switch in older:
            bool(True if switch is None else switch)
        return
    if "reduction" not in given or not any(p.name == "reduction" for p in parameters):
        return
    way, adds = given["reduction"], name == "poisson_nll_loss"  # the sentence to what it was given
    known = (
        "mean",
        "sum",
        "none",
        *([] if adds else ["elementwise_mean"]),
        *["batchmean"] * (name == "kl_div"),
    )
    if not any(way == one for one in known):
        raise ValueError((way if adds else str(way)) + " is not a valid value for reduction")


def _check_call(name: str, parameters: list[_Parameter], args: tuple, kwargs: dict) -> None:
    """Raises Python's TypeError if a function written in Python cannot be called so."""
    positional = [p for p in parameters if not p.by_keyword]
    required = [p for p in positional if not p.optional]
    names = [p.name for p in parameters]
    unknown = next((known for known in kwargs if known not in names), None)
    if unknown is not None:
        raise _refusal(f"{name}() got an unexpected keyword argument '{unknown}'")
    twice = next((one for one in names[: len(args)] if one in kwargs), None)
    if twice is not None:
        raise _refusal(f"{name}() got multiple values for argument '{twice}'")
    if len(args) > len(positional) and not any(p.name.startswith("*") for p in positional):
        raise _refusal(_too_many(name, positional, positional, len(args)))
    missing = [p.name for p in required[len(args) :] if p.name not in kwargs]
    if missing:
        shown = [f"'{one}'" for one in missing]
        listed = ", ".join(shown[:-1]) + "," * (len(shown) > 2) + " and " * (len(shown) > 1) + shown[-1]
        plural = "s" if len(missing) > 1 else ""
        raise _refusal(f"{name}() missing {len(missing)} required positional argument{plural}: {listed}")


def _too_many(name: str, parameters: list[_Parameter], positional: list[_Parameter], given: int) -> str:
    least, most = _required(parameters), len(positional)
    range = f"from {least} to {most}" if least != most else f"{most}"
    plural, were = "" if range == "1" else "s", "was" if given == 1 and least == most else "were"
    return f"{name}() takes {range} positional argument{plural} but {given} {were} given"


def shown(text: str) -> str:
    """A signature as torch shows it."""
    return _shown(_parse(text))


def _shown(parameters: list[_Parameter], defaults: bool = False) -> str:
    words, starred = [], False
    for p in parameters:
        if p.by_keyword and not starred:
            words.append("*")
            starred = True
        default = p.default or (str(_DEFAULTS.get(p.kind)) if defaults and p.optional else "")
        words.append(f"{_WORDS.get(p.kind, 'object')} {p.shown}" + (f" = {default}" if default else ""))
    return ", ".join(words)


def _problem(
    name: str, parameters: list[_Parameter], args: tuple, kwargs: dict, handed_on: bool
) -> str | None:
    """What is wrong with the arguments for one signature."""
    positional = [p for p in parameters if not p.by_keyword]
    unpacked = len(positional) == 1 and positional[0].kind == "I" and not positional[0].takes_one
    if unpacked and args and _is_whole(args[0]):
        args = (args,)  # sizes given one by one
    if len(args) > len(positional):
        return _too_many(name, parameters, positional, len(args))
    taken = set()
    late: list[Exception] = []  # what is wrong with elements and the size of numbers is told after all types
    order = list(enumerate(parameters))
    if handed_on:  # as they stand there
        order.sort(key=lambda item: int(item[1].place or item[0] + 1) or 100)
    for at, p in order:
        if at < len(args):
            value, place = args[at], f" (position {at + 1})"
        else:
            given = next((n for n in (p.name, *_NUMPY_NAMES.get(p.name, ())) if n in kwargs), None)
            if given is None:
                if p.optional:
                    continue
                missing = [q.name for q in parameters[at:] if not q.optional]
                listed = ", ".join(f'"{one}"' for one in missing)
                plural = "s" if len(missing) == 1 else ""
                return f"{name}() missing {len(missing)} required positional argument{plural}: {listed}"
            taken.add(given)
            value, place = kwargs[given], ""
        if value is None and p.takes_none:
            continue
        said = _refused(p, value)
        if said is not None:
            if not (place or handed_on):  # torch looks at elements only of what has a position
                said = f"not {type_name(value)}"
            if handed_on:
                place = "" if p.place == "0" or p.by_keyword else f" (position {p.place or at + 1})"
            return f"{name}(): argument '{p.shown}'{place} must be {_WORDS[p.kind]}, {said}"
        if p.kind == "I" and isinstance(value, (tuple, list)):
            late += _wrong_elements(name, p, value)
        elif p.kind in "iyI" and isinstance(value, int) and not -(2**63) <= value < 2**63:
            late.append(ValueError("Overflow when unpacking long long"))
        elif p.kind in "nN" and isinstance(value, int) and not -(2**63) <= value < 2**64:
            told = "can't convert negative int to unsigned" if value < 0 else "int too big to convert"
            late.append(OverflowError(told))
        elif p.kind == "D":
            wrong = next((i for i, one in enumerate(value) if not _is_real(one)), None)
            if wrong is not None:
                kind = type_name(value[wrong])
                told = f"must be tuple of floats, but found element of type {kind} at pos {wrong + 1}"
                late.append(_refusal(f"{name}(): argument '{p.shown}' {told}"))
        elif p.kind == "L":
            for i, one in enumerate(value):
                if not isinstance(one, _C.Tensor):
                    raise _refusal(
                        f"expected Tensor as element {i} in argument {at}, but got {type_name(one)}"
                    )
    if len(taken) < len(kwargs):
        names = [p.name for p in parameters]
        for known in kwargs:
            if known not in names:
                return f"{name}() got an unexpected keyword argument '{known}'"
            if known not in taken:
                return f"{name}() got multiple values for argument '{known}'"
    if late:
        raise late[-1]  # as the arguments of a call are computed, from the last to the first
    return None


def _wrong_elements(name: str, p: _Parameter, value: Any) -> list[Exception]:
    """The first of a list of ints that is none; those behind the first are looked at when they are read."""
    for i, one in enumerate(value):
        if isinstance(one, bool) or (_is_int(one) and -(2**63) <= int(one) < 2**63):
            continue
        if isinstance(one, _C.Tensor) and _is_whole(one):
            continue
        wrong = "Overflow when unpacking long long" if _is_int(one) else ""
        wrong = wrong or f"type must be tuple of ints,but got {type_name(one)}"
        ending = '"' if not wrong.startswith("Overflow") else '\n"'
        shown = f"{name}(): argument '{p.shown}' failed to unpack the object at pos {i + 1}"
        return [_refusal(f'{shown} with error "{wrong}{ending}')]
    return []


def _is_int(value: Any) -> bool:
    if isinstance(value, int):
        return not isinstance(value, bool)
    # Arrays without dimensions pass for sizes and for what `y` stands for.
    if type(value).__name__ == "ndarray":
        return value.shape == () and value.dtype.kind in "iu"
    if _numpy_kind(value) != " ":
        return _numpy_kind(value) in "iu"
    return hasattr(type(value), "__index__") and not isinstance(value, _C.Tensor)


def _numpy_kind(value: Any) -> str:
    """The kind of a NumPy scalar (b, i, u, f, c), or a blank."""
    if (
        getattr(type(value), "__module__", "") == "numpy"
        and getattr(value, "shape", None) == ()
        and hasattr(value, "dtype")
    ):
        return value.dtype.kind if type(value).__name__ != "ndarray" else " "
    return " "


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, complex)) or _numpy_kind(value) in "biufc"


def _is_real(value: Any) -> bool:
    """What an element of a list of floats may be."""
    if isinstance(value, _C.Tensor):
        return value.numel() == 1
    if type(value).__name__ == "ndarray":
        return value.size == 1 and value.dtype.kind in "biuf"
    return isinstance(value, (int, float)) or _numpy_kind(value) in "biuf"


def _is_value(value: Any) -> bool:
    """A tensor that stands for a number."""
    return isinstance(value, _C.Tensor) and value.dim() == 0 and not value.requires_grad


def _is_whole(value: Any) -> bool:
    """An int, or a tensor with a single one."""
    if isinstance(value, _C.Tensor):
        return value.numel() == 1 and not value.dtype.is_floating_point and not value.dtype.is_complex
    return _is_int(value)


def _refused(p: _Parameter, value: Any) -> str | None:
    """None if the parameter takes the value, or the end of the sentence that it must be of another type."""
    kind, tensor = p.kind, isinstance(value, _C.Tensor)
    if kind in "Tn":
        fine = tensor or (
            kind == "n" and (isinstance(value, (int, float, complex)) or _numpy_kind(value) in "biufc")
        )
    elif kind in "Nf":
        fine = (
            isinstance(value, (int, float))
            or (kind == "N" and isinstance(value, complex))
            or _is_value(value)
        )
        fine = fine or _numpy_kind(value) in ("biufc" if kind == "N" else "biuf")
    elif kind in "iy":
        fine = _is_int(value) and (kind == "y" or type(value).__name__ != "ndarray")
        if tensor and _is_whole(value) and value.dtype != _C.bool:
            fine = _is_value(value) or (kind == "y" and not value.is_meta)
    elif kind == "b":
        fine = isinstance(value, bool)
    elif kind == "s":
        fine = isinstance(value, (str, bytes))
    elif kind == "d":
        fine = isinstance(value, _C.dtype) or any(value is kind for kind in (float, int, bool, complex))
    elif kind == "v":
        fine = isinstance(value, (_C.device, str, bytes)) or _is_int(value)
    elif kind == "I":
        if p.takes_one and not isinstance(value, (tuple, list)):
            fine = _is_whole(value) and not (type(value).__name__ == "ndarray" and p.name.startswith("dim"))
        else:
            fine = isinstance(value, (tuple, list))
            if fine and len(value) and not _is_whole(value[0]):
                return f"but found element of type {type_name(value[0])} at pos 0"
    elif kind in "LDS":
        fine = isinstance(value, (tuple, list))
        if fine and kind == "D" and len(value):
            fine = isinstance(value[0], (int, float)) or _numpy_kind(value[0]) in "biuf"
        elif fine and kind == "S" and len(value):
            fine = all(map(_is_number, value))
    elif kind == "u":
        fine = any(kind.__name__.endswith("Storage") for kind in type(value).__mro__)
    elif kind == "c":
        fine = isinstance(value, (int, float, complex))
    else:
        fine = kind == "o" or type(value).__name__ == _WORDS[kind].rpartition(".")[2]
    return None if fine else f"not {type_name(value)}"
