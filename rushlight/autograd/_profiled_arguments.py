"""What a profile tells of the arguments of an operation: sizes, strides and types, an entry for each argument
that torch's operation has. Native code notes what ours was called with (native/python/profiler.cpp): (sizes,
strides, dtype) of a tensor, a list of such, None, or the type of anything else.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from rushlight import _C


class Shown(NamedTuple):
    """Sizes with no entry for a list's, the same with them, strides, and types as C++ calls them."""

    shapes: list
    structured_shapes: list
    strides: list
    dtypes: list[str]


NOTHING = Shown([], [], [], [])

_TYPES = {
    _C.float32: "float", _C.float64: "double", _C.float16: "c10::Half", _C.bfloat16: "c10::BFloat16",
    _C.int64: "long int", _C.int32: "int", _C.int16: "short int", _C.int8: "signed char",
    _C.uint8: "unsigned char", _C.bool: "bool", _C.complex64: "c10::complex<float>",
    _C.complex128: "c10::complex<double>",
}  # fmt: skip
_NUMBERS = {float: "double", int: "long int", bool: "bool", complex: "c10::complex<double>"}
_ENDINGS = "default", "Tensor", "int", "Scalar", "Tensor_Scalar", "float"
_UNTYPED = ("str", "Device", "Generator", "Stream", "Dimname", "Storage")  # torch tells none of their types


@functools.cache
def _declared(shown: str, primitive: str, numbers: tuple[int, ...]) -> tuple | None:
    """The arguments of torch's operation, in the form that takes numbers at these places; None if there is
    none of this name."""
    from rushlight._ops import _OF_PRIMITIVE, handle_named
    from rushlight._schema import _TAKE_NUMBERS

    own = shown.removeprefix("aten::")
    known = "sum.dim_IntList" if primitive == "sum_to" else _OF_PRIMITIVE.get(primitive, "")
    first = None
    for form in (known, *(f"{own}.{ending}" for ending in _ENDINGS)):
        if form.partition(".")[0] != own:
            continue
        try:
            found = tuple(handle_named(form)._schema.arguments)
        except (AttributeError, KeyError, RuntimeError):  # there is no such form
            continue
        if shown in _TAKE_NUMBERS or all(found[i].word != "Tensor" for i in numbers if i < len(found)):
            return found
        first = first or found
    return first


def arguments_shown(shown: str, name: str, noted: list | None) -> Shown:
    """What is told of the arguments of `name`, which torch calls `shown`."""
    if not noted:
        return NOTHING
    numbers = tuple(i for i, about in enumerate(noted) if isinstance(about, type) and about in _NUMBERS)
    known = shown.startswith("aten::")
    declared = _declared(shown, name.rpartition("::")[2], numbers) if known else None
    if declared is None:
        declared = (None,) * len(noted)
        noted = [about if isinstance(about, (tuple, list)) or not known else None for about in noted]
    else:
        noted = _in_order(_as_lists(noted, declared), declared)
    if len(noted) < len(declared):
        noted = [*noted, *(_absent(argument) for argument in declared[len(noted) :])]
    found: Any = [_one(about, argument) for about, argument in zip(noted, declared)]
    return Shown(*map(list, zip(*found))) if found else NOTHING


def _as_lists(noted: list, declared: tuple) -> list:
    """Sizes, tensors and the like that were given one by one as the list that torch's operation takes."""
    found: list = []
    given = list(noted)
    while given and len(found) < len(declared):
        about, argument = given.pop(0), declared[len(found)]
        kind = tuple if argument.word == "Tensor" else type
        if argument.is_list and isinstance(about, kind) and about not in (list, tuple):
            together = [about]
            while given and isinstance(given[0], kind):
                together.append(given.pop(0))
            about = together if kind is tuple else list
        found.append(about)
    return found


def _in_order(noted: list, declared: tuple) -> list:
    """What is noted in the order of torch's arguments, where ours are in another: tensors for tensors."""
    are = [isinstance(about, (tuple, list)) for about in noted]
    wanted = [argument.word == "Tensor" for argument in declared]
    if all(w or not a for a, w in zip(are, wanted)):
        return noted
    tensors = iter([about for about, tensor in zip(noted, are) if tensor])
    others = iter([about for about, tensor in zip(noted, are) if not tensor])
    return [next(tensors if w else others, None) for w in wanted]


def _absent(argument: Any) -> Any:
    """What would be noted of a default, or of something that this operation here does not take."""
    if not argument.has_default_value():
        return None if argument.is_optional else object
    return None if argument.default_value is None else type(argument.default_value)


def _one(about: Any, argument: Any) -> tuple:
    if isinstance(about, tuple):
        sizes, strides, dtype = about
        return sizes, sizes, strides, _name(dtype)
    if isinstance(about, list):
        if argument is not None and argument.optional_elements:
            return [], [], [], ""
        return [], [one[0] for one in about], [one[1] for one in about], "TensorList"
    return [], [], [], _type_without_tensor(about, argument)


def _name(dtype: Any) -> str:
    return _TYPES.get(dtype) or f"c10::{str(dtype).removeprefix('torch.').capitalize()}"


def _type_without_tensor(about: Any, argument: Any) -> str:
    if about is None and (argument is None or argument.is_optional):
        return ""
    if argument is None:
        return "ScalarList" if about in (list, tuple) else "Scalar" if about in _NUMBERS else ""
    if argument.word == "Tensor":
        return _NUMBERS.get(about, "")
    if argument.word in _UNTYPED:
        return ""
    return "ScalarList" if argument.is_list else "Scalar"
