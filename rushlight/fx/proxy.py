"""What a program is run on to record it: operations on a `Proxy` add nodes to the tracer's graph."""

from __future__ import annotations

import dis
import enum
import inspect
import operator
from collections.abc import Callable, Iterator
from typing import Any

import rushlight
from rushlight.fx._code import magic_methods, reflectable_magic_methods
from rushlight.fx.graph import Graph
from rushlight.fx.node import Argument, Node, Target, base_types, map_aggregate

__all__ = [
    "Attribute",
    "GraphAppendingTracer",
    "ParameterProxy",
    "Proxy",
    "Scope",
    "TraceError",
    "TracerBase",
]


class TraceError(ValueError):
    """The program does something with a proxy that cannot be recorded."""


class Scope:
    """The module that is being run."""

    def __init__(self, module_path: str, module_type: Any) -> None:
        self.module_path = module_path
        self.module_type = module_type


class TracerBase:
    """Turns operations on proxies into nodes of `self.graph`."""

    graph: Graph
    record_stack_traces: bool = False
    check_mutable_operations: bool = False
    trace_asserts: bool = False
    proxy_buffer_attributes: bool = False

    def create_node(
        self,
        kind: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Adds a node; a subclass may change or annotate it."""
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def proxy(self, node: Node) -> Proxy:
        """A proxy for the value of a node."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """Records an operation and returns the proxy of its result."""
        arguments = self.create_arg(args)
        keywords = self.create_arg(kwargs)
        node = self.create_node(kind, target, arguments, keywords, name, type_expr)
        if self.record_stack_traces:
            import traceback

            frames = traceback.extract_stack()[:-1]
            ours = rushlight.__path__[0]
            node.stack_trace = "".join(
                traceback.format_list([f for f in frames if not f.filename.startswith(ours)])
            )
        return (proxy_factory_fn or self.proxy)(node)

    def create_arg(self, a: Any) -> Argument:
        """An argument of the program as an argument of a node."""
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            if hasattr(a, "_fields"):
                return type(a)(*[self.create_arg(item) for item in a])
            return type(a)([self.create_arg(item) for item in a])
        if isinstance(a, list):
            return [self.create_arg(item) for item in a]
        if isinstance(a, dict):
            return {self._checked_key(key): self.create_arg(value) for key, value in a.items()}
        if isinstance(a, slice):
            return slice(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, range):
            return range(*[self.create_arg(item) for item in (a.start, a.stop, a.step)])
        if isinstance(a, (*base_types, enum.Enum, type, rushlight.Generator)) or a is None or a is ...:
            return a
        if hasattr(a, "__dataclass_fields__"):
            values = {name: self.create_arg(getattr(a, name)) for name in a.__dataclass_fields__}
            return self.create_node("call_function", type(a), (), values)
        if callable(a) and not isinstance(a, rushlight.nn.Module):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _checked_key(self, key: Any) -> Any:
        def refuse(part: Any) -> Any:
            if isinstance(part, Proxy):
                raise RuntimeError(
                    f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {key}"
                )
            return part

        map_aggregate(key, refuse)
        return key

    def to_bool(self, obj: Proxy) -> bool:
        """Called where a proxy decides a branch."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator:
        """Called where a proxy is iterated over, but for unpacking into names."""
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a "
            "*args or **kwargs function argument. See the torch.fx docs on pytorch.org for a more detailed "
            "explanation of what types of control flow can be traced, and check out the Proxy docstring for "
            "help troubleshooting Proxy iteration errors"
        )

    def keys(self, obj: Proxy) -> Any:
        """Called for `obj.keys()`, as `**obj` does."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """Adds to a given graph: what a Proxy made by hand uses."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        self.scope = Scope("", None)
        self.module_stack: dict = {}
        self.node_name_to_scope: dict = {}


class Proxy:
    """Stands for a value that is not known while a program is recorded."""

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = tracer if tracer is not None else GraphAppendingTracer(node.graph)
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Attribute:
        # A copy or an unpickled object asks before it has a node.
        if k in ("node", "tracer", "__deepcopy__", "__copy__", "__fx_create_arg__"):
            raise AttributeError(k)
        return Attribute(self, k)

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator:
        frame = inspect.currentframe()
        caller = frame.f_back if frame is not None else None
        if caller is not None:
            for instruction in dis.get_instructions(caller.f_code):
                if instruction.offset == caller.f_lasti and instruction.opname == "UNPACK_SEQUENCE":
                    return (
                        self.tracer.create_proxy("call_function", operator.getitem, (self, i), {})
                        for i in range(instruction.argval)
                    )
        return self.tracer.iter(self)

    def __abs__(self) -> Proxy:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        if self.tracer.trace_asserts:
            frame = inspect.currentframe()
            caller = frame.f_back if frame is not None else None
            if caller is not None and _in_assert(caller):
                self.tracer.create_proxy("call_function", rushlight._assert, (self, ""), {})
                return True
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        """What `**proxy` asks for."""
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, "
            "please call torch.fx.wrap('len') at module scope"
        )

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        found: list[TracerBase] = []
        map_aggregate((args, kwargs), lambda a: found.append(a.tracer) if isinstance(a, Proxy) else None)
        if any(tracer is not found[0] for tracer in found):
            raise RuntimeError(
                f"Found multiple different tracers {found} while trying to trace operations {func}"
            )
        tracer = found[0]
        from rushlight.overrides import is_tensor_method_or_property

        if is_tensor_method_or_property(func):
            return tracer.create_proxy("call_method", func.__name__, args, kwargs)
        name = tracer.graph._target_to_str(func.__name__)
        return tracer.create_proxy("call_function", func, args, kwargs, name=name)


def _in_assert(frame: Any) -> bool:
    """Whether the frame is about to raise AssertionError if the value it tests is false."""
    instructions = [i for i in dis.get_instructions(frame.f_code) if i.offset > frame.f_lasti]
    return len(instructions) > 1 and any(i.opname == "LOAD_ASSERTION_ERROR" for i in instructions[:2])


class Attribute(Proxy):
    """An attribute of a proxy. It is recorded as a method if it is called, else as getattr."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root = root
        self.attr = attr
        self.tracer = root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        # Only when it is used: most attributes are methods about to be called.
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """A proxy of a parameter, whose shape is known."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Any) -> None:
        super().__init__(node, tracer)
        self.param = param
        self.name = name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Any:
        return self.param.shape

    def size(self, *args: Any) -> Any:
        return self.param.size(*args)

    def dim(self) -> int:
        return self.param.dim()

    @property
    def ndim(self) -> int:
        return self.param.ndim

    def numel(self) -> int:
        return self.param.numel()

    def nelement(self) -> int:
        return self.param.nelement()


def _define_operators() -> None:
    def forwards(function: Callable) -> Callable:
        def method(*args: Any) -> Proxy:
            return args[0].tracer.create_proxy("call_function", function, args, {})

        return method

    def reflected(function: Callable) -> Callable:
        def method(self: Proxy, other: Any) -> Proxy:
            return self.tracer.create_proxy("call_function", function, (other, self), {})

        return method

    for name in magic_methods:
        if name == "div":  # Python has no such operator any more
            continue
        function = getattr(operator, name)
        setattr(Proxy, f"__{name.strip('_')}__", forwards(function))
        if name in reflectable_magic_methods and name != "getitem":
            setattr(Proxy, f"__r{name.strip('_')}__", reflected(function))
    Proxy.__hash__ = object.__hash__


_define_operators()
