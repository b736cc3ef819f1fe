"""Names of torch.fx that libraries mention when they are imported. Tracing itself is not implemented."""

from __future__ import annotations

from typing import Any

from rushlight.nn import Module

__path__: list[str] = []  # the modules below it are in _absent_names.py
__all__ = [
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "Proxy",
    "Tracer",
    "Transformer",
    "symbolic_trace",
    "wrap",
]


def wrap(fn_or_name: Any) -> Any:
    """Marks a function as a leaf of traces; as nothing is traced, it returns it unchanged."""
    return fn_or_name


def _missing(name: str) -> type:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"torch.fx.{name} is not implemented: Rushlight does not trace programs")

    base: tuple[type, ...] = (Module,) if name == "GraphModule" else ()
    return type(
        name, base, {"__init__": __init__, "__doc__": f"Not implemented; `isinstance(x, {name})` is False."}
    )


Graph, GraphModule, Interpreter, Node, Proxy, Tracer, Transformer = map(_missing, __all__[:7])


def symbolic_trace(root: Any, concrete_args: Any = None) -> Any:
    """Not implemented."""
    raise NotImplementedError("torch.fx.symbolic_trace is not implemented: Rushlight does not trace programs")
