"""A graph of operations: a list of nodes, and methods to extend, change and print it. Start at `Graph`."""

from __future__ import annotations

import builtins
import copy
import keyword
import re
from collections.abc import Callable, Iterator
from typing import Any

from rushlight.fx._code import (
    CodeGen,
    PythonCode,
    inplace_methods,
    magic_methods,
    reflectable_magic_methods,
)
from rushlight.fx.node import Argument, Node, Target, map_arg

__all__ = ["CodeGen", "Graph", "PythonCode", "inplace_methods", "magic_methods", "reflectable_magic_methods"]


def _snake_case(text: str) -> str:
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", text).lower()


class _Namespace:
    """The names taken in a graph or its code; gives each object its own."""

    def __init__(self) -> None:
        self._used_names: set[str] = set()
        self._obj_to_name: dict[int, str] = {}
        self._base_count: dict[str, int] = {}

    def create_name(self, candidate: str, obj: Any) -> str:
        """A name near `candidate` that nothing else has."""
        if obj is not None and id(obj) in self._obj_to_name:
            return self._obj_to_name[id(obj)]
        candidate = re.sub(r"\W+", "_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        match = re.match(r"(.*)_(\d+)$", candidate)
        base, count = (match[1], int(match[2])) if match else (candidate, 0)
        if candidate in self._used_names:
            count = max(count, self._base_count.get(base, 0))
        while candidate in self._used_names or _taken_by_python(candidate):
            count += 1
            candidate = f"{base}_{count}"
        self._used_names.add(candidate)
        self._base_count[base] = count
        if obj is not None:
            self._obj_to_name[id(obj)] = candidate
        return candidate

    def associate_name_with_obj(self, name: str, obj: Any) -> None:
        """Notes that `obj` has a name already."""
        self._used_names.add(name)
        self._obj_to_name[id(obj)] = name

    def _rename_object(self, obj: Any, name: str) -> None:
        self._obj_to_name[id(obj)] = name
        self._used_names.add(name)


def _taken_by_python(name: str) -> bool:
    return (
        name in ("torch", "device", "inf", "nan", "NoneType")
        or keyword.iskeyword(name)
        or name in vars(builtins)
    )


class _node_list:
    """The nodes of a graph, forwards or backwards; nodes may come and go while one walks through them."""

    def __init__(self, graph: Graph, direction: str = "_next") -> None:
        self.graph = graph
        self.direction = direction

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self) -> Iterator[Node]:
        root, direction = self.graph._root, self.direction
        node = getattr(root, direction)
        while node is not root:
            if not node._erased:
                yield node
            node = getattr(node, direction)

    def __reversed__(self) -> _node_list:
        return _node_list(self.graph, "_next" if self.direction == "_prev" else "_prev")


class _InsertPoint:
    """Where new nodes go, from the moment it is made; a `with` block puts back what was before."""

    def __init__(self, graph: Graph, insert: Callable[[Node], None]) -> None:
        self.graph = graph
        self.before, graph._insert = graph._insert, insert

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        self.graph._insert = self.before


class Graph:
    """A list of `Node`s, in the order in which they run.

    >>> import rushlight as torch
    >>> graph = torch.fx.Graph()
    >>> x = graph.placeholder("x")
    >>> _ = graph.output(graph.call_function(torch.relu, (x,)))
    >>> torch.fx.GraphModule(torch.nn.Module(), graph)(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    def __init__(
        self, owning_module: Any = None, tracer_cls: type | None = None, tracer_extras: dict | None = None
    ) -> None:
        self._root = Node(self, "", "root", "", (), {})
        self._insert: Callable[[Node], None] = self._root.prepend
        self._len = 0
        self._graph_namespace = _Namespace()
        self._owning_module = owning_module
        self._tracer_cls = tracer_cls
        self._tracer_extras = tracer_extras
        self._codegen = CodeGen()

    @property
    def owning_module(self) -> Any:
        """The GraphModule whose graph this is."""
        return self._owning_module

    @owning_module.setter
    def owning_module(self, mod: Any) -> None:
        self._owning_module = mod

    @property
    def nodes(self) -> _node_list:
        """All nodes in order; `reversed` of it goes backwards."""
        return _node_list(self)

    def output_node(self) -> Node:
        """The output node."""
        return next(node for node in reversed(self.nodes) if node.op == "output")

    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Node]:
        """The nodes of one kind, in order."""
        if target is None and op in ("call_function", "call_method", "call_module", "get_attr"):
            return [node for node in self.nodes if node.op == op]
        return [node for node in self.nodes if node.op == op and (target is None or node.target == target)]

    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Adds a node at the insertion point."""
        args, kwargs = args or (), kwargs or {}
        if not isinstance(args, tuple):
            raise AssertionError("args must be a tuple")
        if not isinstance(kwargs, dict):
            raise AssertionError("kwargs must be a dict")
        name = self._graph_namespace.create_name(name or self._target_to_str(target), None)
        node = Node(self, name, op, target, args, kwargs, type_expr)
        self._graph_namespace.associate_name_with_obj(name, node)
        self._insert(node)
        self._len += 1
        return node

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """Adds an input."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args=args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Adds the reading of an attribute of the owning module."""
        module, missing = self.owning_module, False
        if module is not None:
            for part in qualified_name.split("."):
                missing = missing or not hasattr(module, part)
                module = getattr(module, part, None)
        if missing:
            from rushlight._warn import warn

            warn(
                "Attempted to insert a get_attr Node with no underlying reference in the owning GraphModule! "
                "Call GraphModule.add_submodule to add the necessary submodule, GraphModule.add_parameter to "
                "add the necessary Parameter, or nn.Module.register_buffer to add the necessary buffer"
            )
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self, module_name: str, args: tuple | None = None, kwargs: dict | None = None, type_expr: Any = None
    ) -> Node:
        """Adds a call of a submodule of the owning module."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self, method_name: str, args: tuple | None = None, kwargs: dict | None = None, type_expr: Any = None
    ) -> Node:
        """Adds a call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable,
        args: tuple | None = None,
        kwargs: dict | None = None,
        type_expr: Any = None,
        name: str | None = None,
    ) -> Node:
        """Adds a call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name=name, type_expr=type_expr)

    def output(self, result: Argument, type_expr: Any = None) -> Node:
        """Adds the output."""
        return self.create_node("output", "output", args=(result,), type_expr=type_expr)

    def erase_node(self, to_erase: Node) -> None:
        """Takes out a node that nothing uses."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: "
                f"{to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            from rushlight._warn import warn

            warn(f"erase_node({to_erase}) on an already erased node")
            return
        to_erase._unlink()
        to_erase._erased = True
        self._len -= 1
        to_erase.args, to_erase.kwargs = (), {}

    def inserting_before(self, n: Node | None = None) -> Any:
        """Puts the nodes made from now on, or to the end of a `with` block, before `n` (or at the start)."""
        if n is None:
            return self.inserting_after(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert before is not in graph.")
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> Any:
        """Puts the nodes made from now on, or to the end of a `with` block, right after `n` (or at the end).

        Each of several goes right after `n`, so that they stand in the reverse of their order, as in torch.
        """
        if n is None:
            return self.inserting_before(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert after is not in graph.")
        return _InsertPoint(self, n.append)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Argument] = lambda x: x) -> Node:
        """Adds a copy of a node of another graph, whose arguments `arg_transform` maps into this one."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = copy.copy(node.meta)
        return made

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Any:
        """Adds copies of the nodes of `g` but for its output, whose value it returns."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: dict | None = None) -> Graph:
        made = Graph(tracer_cls=self._tracer_cls, tracer_extras=self._tracer_extras)
        made._codegen = copy.deepcopy(self._codegen)
        val_map: dict[Node, Node] = {}
        result = made.graph_copy(self, val_map, return_output_node=True)
        if result is not None:
            value, old = result
            made.output(value, type_expr=old.type).meta = copy.copy(old.meta)
        return made

    def _target_to_str(self, target: Target) -> str:
        if callable(target):
            name = target.__name__
        else:
            name = target
        if name.startswith("__") and name.endswith("__") and name[2:-2] in magic_methods:
            name = name[2:-2]
        return _snake_case(name)

    def set_codegen(self, codegen: CodeGen) -> None:
        """Chooses who writes the code of this graph."""
        self._codegen = codegen

    def process_inputs(self, *args: Any) -> Any:
        """The arguments of a call as the placeholders see them."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """The value of the output node as a caller sees it."""
        return self._codegen.process_outputs(out)

    def python_code(self, root_module: str = "self", **options: Any) -> PythonCode:
        """The graph as Python code, in which `root_module` names the owning module."""
        if options:
            raise NotImplementedError(f"python_code({', '.join(options)}) is not implemented")
        return self._codegen._gen_python_code(self, root_module)

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Takes out what nothing uses and has no effect; says whether anything went."""
        self.lint()
        keeps = is_impure_node or Node.is_impure
        before = self._len
        for node in reversed(self.nodes):
            if not node.users and not keeps(node):
                self.erase_node(node)
        return self._len < before

    def lint(self) -> None:
        """Checks that names are unique, arguments come before uses, and targets exist."""
        names: set[str] = set()
        before: set[Node] = set()
        for node in self.nodes:
            if node.op not in (
                "placeholder",
                "call_method",
                "call_module",
                "call_function",
                "get_attr",
                "output",
            ):
                raise RuntimeError(f"Node {node} had unknown opcode {node.op}!")
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            for used in node.all_input_nodes:
                if used not in before:
                    raise RuntimeError(
                        f"Argument '{used}' of Node '{node}' was used before it has been defined! Please "
                        f"check that Nodes in the graph are topologically ordered\n{self}"
                    )
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            names.add(node.name)
            before.add(node)
            if self.owning_module is not None and node.op in ("get_attr", "call_module"):
                found = self.owning_module
                for part in node.target.split("."):
                    if not hasattr(found, part):
                        raise RuntimeError(
                            f"Node {node} target {node.target} references nonexistent attribute {part} of "
                            f"{found}"
                        )
                    found = getattr(found, part)

    def print_tabular(self) -> None:
        """Prints the nodes as a table, through the library tabulate."""
        from tabulate import tabulate  # type: ignore[import-untyped]

        rows = [[n.op, n.name, n.target, n.args, n.kwargs] for n in self.nodes]
        print(tabulate(rows, headers=["opcode", "name", "target", "args", "kwargs"]))

    def __str__(self) -> str:
        return "graph():" + "".join(f"\n    {node.format_node()}" for node in self.nodes)

    __repr__ = object.__repr__
