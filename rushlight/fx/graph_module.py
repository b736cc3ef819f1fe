"""A module whose `forward` is written from a graph. Start at `GraphModule`; `recompile` writes the code."""

from __future__ import annotations

import copy
import itertools
import linecache
from typing import Any

import rushlight
from rushlight.fx.graph import Graph, PythonCode

__all__ = ["GraphModule", "reduce_graph_module"]

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
_count = itertools.count()


def _exec_with_source(src: str, names: dict[str, Any]) -> None:
    """Runs code so that tracebacks and the debugger can show it."""
    file = f"<eval_with_key>.{next(_count)}"
    linecache.cache[file] = (len(src), None, src.splitlines(True), file)
    exec(compile(src, file, "exec"), names)


def _forward_from_src(src: str, names: dict[str, Any]) -> Any:
    scope = dict(names)
    _exec_with_source(src, scope)
    return scope["forward"]


def _path(target: str) -> tuple[list[str], str]:
    *prefix, field = target.split(".")
    return prefix, field


def _copy_attr(from_module: Any, to_module: Any, target: str) -> None:
    """Gives `to_module` the attribute `target` of `from_module`, with empty modules on the way."""
    prefix, field = _path(target)
    for name in prefix:
        source, made = getattr(from_module, name), getattr(to_module, name, None)
        if made is source:
            return
        if made is None:
            made = rushlight.nn.Module()
            setattr(to_module, name, made)
        from_module, to_module = source, made
    value = getattr(from_module, field)
    if isinstance(value, rushlight.Tensor) and not isinstance(value, rushlight.nn.Parameter):
        to_module.register_buffer(field, value)
    else:
        setattr(to_module, field, value)


def _assign_attr(from_obj: Any, to_module: Any, target: str) -> None:
    """Sets the attribute `target` of `to_module`, with empty modules on the way."""
    prefix, field = _path(target)
    for name in prefix:
        made = getattr(to_module, name, None)
        if made is None:
            made = rushlight.nn.Module()
            setattr(to_module, name, made)
        to_module = made
    if isinstance(from_obj, rushlight.Tensor) and not isinstance(from_obj, rushlight.nn.Parameter):
        to_module.register_buffer(field, from_obj)
    else:
        setattr(to_module, field, from_obj)


def _get_attr(model: Any, attr_name: str, *default: Any) -> Any:
    for name in attr_name.split("."):
        model = getattr(model, name, *default)
    return model


class _CodeOnlyModule(rushlight.nn.Module):
    """The attributes of a GraphModule without its graph: what unpickling traces again."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


def _shared_with_names(python: PythonCode) -> dict[str, Any]:
    """The globals that a pickled module needs beside torch itself."""
    return {
        name: value for name, value in python.globals.items() if name not in ("torch", "device", "inf", "nan")
    }


def reduce_graph_module(body: dict[str, Any], import_block: Any) -> Any:
    """Makes a GraphModule from its attributes and its code, as unpickling does."""
    from rushlight.fx._symbolic_trace import Tracer

    names = {
        "torch": rushlight,
        "device": rushlight.device,
        "inf": float("inf"),
        "nan": float("nan"),
        **import_block,
    }
    code = body.pop("_code")
    source = _CodeOnlyModule(body)

    class Unpickled(_CodeOnlyModule):
        forward = _forward_from_src(code, names)

    source.__class__ = Unpickled

    class KeepModules(Tracer):
        def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
            return True

    graph = KeepModules().trace(source)
    made = GraphModule(source, graph)
    for key, value in body.items():
        if key not in made.__dict__:
            made.__dict__[key] = value
    return made


class GraphModule(rushlight.nn.Module):
    """A module made of a graph and of what the graph reads from `root` (a module or a dictionary).

    `code` is its `forward` as text. After a change of the graph, `recompile()` writes it anew.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> GraphModule:
        # A class for each instance: each has its own `forward`.
        base = next(kind for kind in cls.__mro__ if kind.__qualname__ != "GraphModuleImpl")

        class GraphModuleImpl(base):  # type: ignore[valid-type, misc]
            pass

        GraphModuleImpl.__module__ = base.__module__
        return object.__new__(GraphModuleImpl)

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        self.__class__.__name__ = class_name
        readers = [node for node in graph.nodes if node.op in ("get_attr", "call_module")]
        if isinstance(root, rushlight.nn.Module):
            if hasattr(root, "training"):
                self.training = root.training
            for node in readers:
                _copy_attr(root, self, node.target)
        elif isinstance(root, dict):
            for node in sorted(readers, key=lambda node: node.target.count(".")):
                if node.target not in root:
                    raise RuntimeError(
                        f"Node {node} referenced target {node.target} but that target was not provided in "
                        "``root``!"
                    )
                _assign_attr(root[node.target], self, node.target)
        else:
            raise RuntimeError("Unsupported type " + str(root) + " passed for root!")
        self.meta: dict[str, Any] = {}
        if isinstance(root, rushlight.nn.Module) and isinstance(getattr(root, "meta", None), dict):
            self.meta.update(root.meta)
        self.graph = graph
        self._tracer_cls = graph._tracer_cls

    __jit_unused_properties__ = ["graph"]

    @property
    def graph(self) -> Graph:
        """The graph. Assigning one writes the code anew; a graph of another module is copied."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self._graph = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """`forward` as text."""
        return self._code

    def recompile(self) -> PythonCode:
        """Writes `forward` from the graph."""
        python = self._graph.python_code(root_module="self")
        self._code = python.src
        self._needed_names = _shared_with_names(python)
        type(self).forward = _forward_from_src(python.src, python.globals)
        return python

    def add_submodule(self, target: str, m: Any) -> bool:
        """Adds a module under a dotted name; False if something else stands in the way."""
        prefix, field = _path(target)
        module = self
        for name in prefix:
            if not hasattr(module, name):
                setattr(module, name, rushlight.nn.Module())
            module = getattr(module, name)
            if not isinstance(module, rushlight.nn.Module):
                return False
        module.add_module(field, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Takes out the module of a dotted name; False if there is none."""
        prefix, field = _path(target)
        module = self
        for name in prefix:
            if not isinstance(getattr(module, name, None), rushlight.nn.Module):
                return False
            module = getattr(module, name)
        if not isinstance(getattr(module, field, None), rushlight.nn.Module):
            return False
        delattr(module, field)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Takes out the submodules that no node calls or reads."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                parts = node.target.split(".")
                used.update(".".join(parts[:i]) for i in range(1, len(parts) + 1))
                inner = _get_attr(self, node.target, None)
                if isinstance(inner, rushlight.nn.Module):
                    used.update(f"{node.target}.{name}" for name, _ in inner.named_modules() if name)
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    def print_readable(self, print_output: bool = True, **options: Any) -> str:
        """The code under the name of the class; printed too, unless told not to."""
        if options:
            raise NotImplementedError(f"print_readable({', '.join(options)}) is not implemented")
        lines = self.code.strip("\n").rstrip().splitlines()
        text = (
            f"class {self._get_name()}(torch.nn.Module):\n"
            + "\n".join("    " + line for line in lines)
            + "\n"
        )
        if print_output:
            print(text)
        return text

    def to_folder(self, folder: Any, module_name: str = "FxModule") -> None:
        """Not implemented."""
        raise NotImplementedError("GraphModule.to_folder is not implemented")

    def _state(self) -> dict[str, Any]:
        body = dict(self.__dict__)
        for name in ("_graph", "_tracer_cls", "_needed_names"):
            body.pop(name, None)
        return body

    def __reduce__(self) -> Any:
        return reduce_graph_module, (self._state(), self._needed_names)

    def _copied(self, body: dict[str, Any], graph: Graph) -> GraphModule:
        # A CodeOnlyModule gives the attributes, so that those that no node reads come along too.
        source = _CodeOnlyModule(body)
        made = GraphModule(source, graph)
        for key, value in body.items():
            if key != "_code" and key not in made.__dict__:
                made.__dict__[key] = value
        for table in ("_parameters", "_buffers", "_modules"):
            for key, value in body[table].items():
                made.__dict__[table].setdefault(key, value)
        made.meta = dict(self.meta)
        made._tracer_cls = self._tracer_cls
        return made

    def __deepcopy__(self, memo: dict) -> GraphModule:
        body = copy.deepcopy(self._state(), memo)
        made = self._copied(body, copy.deepcopy(self._graph))
        memo[id(self)] = made
        return made

    def __copy__(self) -> GraphModule:
        return self._copied(copy.copy(self._state()), copy.deepcopy(self._graph))

    def __str__(self) -> str:
        note = "# To see more debug info, please use `graph_module.print_readable()`"
        return "\n".join([super().__str__(), self._code, note])
