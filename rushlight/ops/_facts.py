"""What tables say of public functions: how their nodes are called (_node_names.py), and what of them torch
cannot differentiate (_lacking.py). A fact is an attribute of the native Function, which acts on it
(native/python/functions.cpp)."""

from __future__ import annotations

from collections.abc import Mapping

from rushlight import _C
from rushlight._annotations import Any
from rushlight.ops._lacking import NO_COMPLEX_GRADIENT, NO_FORWARD_MODE
from rushlight.ops._node_names import COMPOSED

_TABLES = {
    "node_name": COMPOSED,
    "no_complex_gradient": NO_COMPLEX_GRADIENT,
    "no_forward_mode": NO_FORWARD_MODE,
}


def tell(*spaces: Mapping[str, Any]) -> None:
    """Tells the functions found in these namespaces what the tables say of their names."""
    for fact, table in _TABLES.items():
        for name, value in table.items():
            for space in spaces:
                function = space.get(name)
                if isinstance(function, _C.Function):
                    setattr(function, fact, value)


def told(**facts: Any) -> Any:
    """Decorates a function that no table finds by its name."""

    def decorate(function):
        made = _C.Function(function)
        for fact, value in facts.items():
            setattr(made, fact, value)
        return made

    return decorate
