"""The shapes of nests as JSON and back: `treespec_dumps`, `treespec_loads`."""

from __future__ import annotations

import importlib
import json
import warnings
from enum import Enum
from typing import Any

from rushlight.utils import _pytree
from rushlight.utils._pytree import TreeSpec

__all__ = [
    "DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL",
    "EnumEncoder",
    "enum_object_hook",
    "pytree_to_str",
    "str_to_pytree",
    "treespec_dumps",
    "treespec_loads",
]

DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL = 1


class EnumEncoder(json.JSONEncoder):
    """Writes members of an Enum by the class's module and name."""

    def default(self, o: object) -> Any:
        if isinstance(o, Enum):
            return {"__enum__": True, "fqn": f"{type(o).__module__}:{type(o).__qualname__}", "name": o.name}
        return super().default(o)


def enum_object_hook(obj: dict[str, Any]) -> Any:
    """The member of an Enum that `EnumEncoder` wrote, or the dictionary itself."""
    if "__enum__" not in obj:
        return obj
    module, _, path = obj["fqn"].partition(":")
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found[obj["name"]]


def _to_json(spec: TreeSpec) -> dict[str, Any]:
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    known = _pytree.SUPPORTED_SERIALIZED_TYPES.get(spec.type)
    if known is None:
        raise NotImplementedError(f"Serializing {spec.type} in pytree is not registered.")
    if known.serialized_type_name == _pytree.NO_SERIALIZED_TYPE_NAME_FOUND:
        raise NotImplementedError(
            f"No registered serialization name for {spec.type} found. "
            "Please update your _register_pytree_node call with a `serialized_type_name` kwarg."
        )
    if known.to_dumpable_context is not None:
        context = known.to_dumpable_context(spec.context)
    else:
        try:
            context = json.dumps(spec.context, cls=EnumEncoder)
        except TypeError as error:
            raise TypeError(
                "Unable to serialize context. Please make the context json dump-able, or register a custom "
                "serializer using _register_pytree_node."
            ) from error
    children = [_to_json(child) for child in spec.children()]
    return {"type": known.serialized_type_name, "context": context, "children_spec": children}


def _from_json(held: dict[str, Any]) -> TreeSpec:
    name, context, children = held["type"], held["context"], held["children_spec"]
    if name is None and context is None and not children:
        return _pytree._LEAF_SPEC
    if name not in _pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise NotImplementedError(f"Deserializing {name} in pytree is not registered.")
    kind = _pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE[name]
    read = _pytree.SUPPORTED_SERIALIZED_TYPES[kind].from_dumpable_context
    context = json.loads(context, object_hook=enum_object_hook) if read is None else read(context)
    return TreeSpec(kind, context, [_from_json(child) for child in children])


def _check_protocol(protocol: int) -> None:
    if protocol != DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL:
        raise ValueError(
            f"Unknown protocol {protocol}. Available protocols: [{DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL}]"
        )


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """A shape as text; every type in it must have been registered with a name."""
    given: Any = treespec
    if not isinstance(given, TreeSpec):
        _pytree._refuse_spec(given)
    protocol = DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL if protocol is None else protocol
    _check_protocol(protocol)
    return json.dumps((protocol, _to_json(treespec)), cls=EnumEncoder)


def treespec_loads(serialized: str) -> TreeSpec:
    """The shape that `treespec_dumps` wrote."""
    protocol, held = json.loads(serialized, object_hook=enum_object_hook)
    _check_protocol(protocol)
    return _from_json(held)


def pytree_to_str(treespec: TreeSpec) -> str:
    """The old name of `treespec_dumps`."""
    warnings.warn(
        "`pytree_to_str` is deprecated. Please use `treespec_dumps` instead.", FutureWarning, stacklevel=2
    )
    return treespec_dumps(treespec)


def str_to_pytree(json: str) -> TreeSpec:
    """The old name of `treespec_loads`."""
    warnings.warn(
        "`str_to_pytree` is deprecated. Please use `treespec_loads` instead.", FutureWarning, stacklevel=2
    )
    return treespec_loads(json)
