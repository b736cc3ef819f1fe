"""`torch._library.utils`: questions about schemas and names of operations."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from typing import Any

import rushlight
from rushlight._ops import OpOverload
from rushlight._schema import Argument, FunctionSchema, Tag
from rushlight.library import _checked_name as parse_namespace
from rushlight.library import _keyword_tensors as has_kwarg_only_tensors

__all__ = ["has_kwarg_only_tensors", "parse_namespace"]


def get_source(stacklevel: int) -> str:
    """File and line of a caller: 1 is the caller, 2 its caller."""
    frame = inspect.getframeinfo(sys._getframe(stacklevel))
    return f"{frame.filename}:{frame.lineno}"


def lookup_op(qualname: str) -> Any:
    """The overload "ns::name.overload"; without an overload the default one."""
    space, rest = parse_namespace(qualname)
    name, _, overload = rest.partition(".")
    return getattr(getattr(getattr(rushlight.ops, space), name), overload or "default")


def is_builtin(op: OpOverload) -> bool:
    """Whether it is one of torch's own."""
    if not isinstance(op, OpOverload):
        raise AssertionError(f"op must be OpOverload, got {type(op)}")
    return op.namespace in ("aten", "prim", "prims")


def is_out(op: OpOverload) -> bool:
    """Whether it is tagged as writing into tensors given by keyword."""
    return Tag.out in op.tags


def is_inplace(op: OpOverload) -> bool:
    """Whether it is tagged as writing into its first argument."""
    return Tag.inplace in op.tags


def is_functional_schema(schema: Any, *, allow_valid_view: bool = False) -> bool:
    """Whether it says that nothing is written and something new is returned, or one view of one tensor.

    >>> from rushlight._library_utils import is_functional_schema
    >>> is_functional_schema("f(Tensor x) -> Tensor"), is_functional_schema("f(Tensor(a!) x) -> Tensor")
    (True, False)
    """
    if not isinstance(schema, FunctionSchema):
        schema = FunctionSchema(str(schema))
    if schema.is_mutable:
        return False
    if any(each.alias_info is not None for each in schema.returns):
        counts = [sum(_is_tensor(a) for a in each) for each in (schema.arguments, schema.returns)]
        return allow_valid_view and counts == [1, 1]
    return bool(schema.returns)


def _is_tensor(argument: Argument) -> bool:
    return str(argument.type) == "Tensor"


def mutates_and_returns_first_arg(op: OpOverload) -> bool:
    """Whether it is one of torch's that write into their first argument, and no other, and return it."""
    schema = op._schema
    if op.namespace != "aten" or len(schema.returns) != 1 or not schema.arguments:
        return False
    returned, first = schema.returns[0].alias_info, schema.arguments[0].alias_info
    if returned is None or first is None or not first.is_write:
        return False
    same = len(first.after_set) == 1 and first.after_set == returned.after_set
    return same and all(argument.alias_info is None for argument in schema.arguments[1:])


def fill_defaults(schema: FunctionSchema, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """The arguments of a call with what was left out."""
    filled: list = []
    named: dict = {}
    for place, argument in enumerate(schema.arguments):
        if argument.kwarg_only:
            named[argument.name] = kwargs.get(argument.name, argument.default_value)
        else:
            filled.append(args[place] if place < len(args) else argument.default_value)
    return tuple(filled), named


def zip_schema(schema: FunctionSchema, args: tuple, kwargs: dict) -> Iterator[tuple[Argument, Any]]:
    """Each argument that is given, with its value."""
    if len(schema.arguments) < len(args) + len(kwargs):
        raise AssertionError(
            f"schema has {len(schema.arguments)} arguments but got {len(args)} args and {len(kwargs)} kwargs"
        )
    for place, argument in enumerate(schema.arguments):
        if place < len(args) and not argument.kwarg_only:
            yield argument, args[place]
        elif argument.name in kwargs:
            yield argument, kwargs[argument.name]


def has_kwarg_only_args(schema: FunctionSchema) -> bool:
    return any(argument.kwarg_only for argument in schema.arguments)


def has_tensor_arg(schema: FunctionSchema) -> bool:
    """Whether there are tensors, or lists of them, among its arguments."""
    return any(argument.word == "Tensor" for argument in schema.arguments)


def get_device_arg_index(schema: FunctionSchema) -> int | None:
    """The place of the argument `device: torch.device`."""
    for place, argument in enumerate(schema.arguments):
        if str(argument.type) == "Device" and argument.name == "device":
            return place
    return None


def mutated_args_kwargs(schema: FunctionSchema) -> tuple[list[int], list[str]]:
    """The places of arguments that are written, and the names of those by keyword."""
    written = [
        (n, a) for n, a in enumerate(schema.arguments) if a.alias_info is not None and a.alias_info.is_write
    ]
    return [n for n, a in written if not a.kwarg_only], [a.name for _, a in written if a.kwarg_only]
