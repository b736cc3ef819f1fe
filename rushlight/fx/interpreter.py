"""Running a graph node by node. Subclasses of `Interpreter` change what a kind of node does; those of
`Transformer` write a new graph that way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from rushlight.fx._symbolic_trace import Tracer
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Argument, Node, Target, map_aggregate
from rushlight.fx.proxy import Proxy

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs the graph of a module.

    >>> import rushlight as torch
    >>> class Doubled(torch.fx.Interpreter):
    ...     def call_function(self, target, args, kwargs):
    ...         return 2 * super().call_function(target, args, kwargs)
    >>> Doubled(torch.fx.symbolic_trace(lambda x: torch.relu(x))).run(torch.tensor([3.0]))
    tensor([6.])
    """

    def __init__(self, module: Any, garbage_collect_values: bool = True, graph: Graph | None = None) -> None:
        self.module = module
        self.submodules = dict(module.named_modules())
        self.graph: Graph = graph if graph is not None else module.graph
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self.user_to_last_uses: dict[Node, list[Node]] = {}
        if garbage_collect_values:
            seen: set[Node] = set()
            for node in reversed(self.graph.nodes):
                for used in node.all_input_nodes:
                    if used not in seen:
                        seen.add(used)
                        self.user_to_last_uses.setdefault(node, []).append(used)

    def run(
        self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True
    ) -> Any:
        """The output for these inputs. `initial_env` gives values that are not to be computed."""
        self.env = {} if initial_env is None else initial_env
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter: Iterator[Any] = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback:
                    shown = node.format_node()
                    trace = f"\nOriginal traceback:\n{node.stack_trace}" if node.stack_trace else ""
                    error.add_note(f"While executing {shown}{trace}")
                raise
            if self.garbage_collect_values:
                for done in self.user_to_last_uses.get(node, []):
                    del self.env[done]
            if node.op == "output":
                value = self.env[node]
                return self.graph.process_outputs(value) if enable_io_processing else value
        return None

    def boxed_run(self, args_list: list[Any]) -> Any:
        """Runs on the arguments of a list, which it empties so that they can be freed early."""
        values = list(args_list)
        args_list.clear()
        return self.run(*values)

    def run_node(self, n: Node) -> Any:
        """The value of one node."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """The next input, or its default."""
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            ) from None

    def get_attr(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """An attribute of the module."""
        return self.fetch_attr(target)

    def call_function(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """What a function returns."""
        return target(*args, **kwargs)

    def call_method(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """What a method of the first argument returns."""
        owner, *rest = args
        return getattr(owner, target)(*rest, **kwargs)

    def call_module(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """What a submodule returns."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """The result."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """An attribute by its dotted name."""
        found = self.module
        parts = target.split(".")
        for i, part in enumerate(parts):
            if not hasattr(found, part):
                raise RuntimeError(f"Node referenced nonexistent target {'.'.join(parts[: i + 1])}")
            found = getattr(found, part)
        return found

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple, dict]:
        """The arguments of a node as values."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Argument, n: Node) -> Argument:
        """Arguments with the value of each node in its place."""

        def load(arg: Node) -> Any:
            if arg not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {arg}! Run Graph.lint() to diagnose such issues"
                )
            return self.env[arg]

        return _loaded(args, load)


def _loaded(a: Any, load: Callable[[Node], Any]) -> Any:
    """Arguments with values for nodes, in ordinary lists and dictionaries, which functions may change."""
    if isinstance(a, Node):
        return load(a)
    if isinstance(a, tuple):
        parts = [_loaded(item, load) for item in a]
        return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
    if isinstance(a, list):
        return [_loaded(item, load) for item in a]
    if isinstance(a, dict):
        return {key: _loaded(value, load) for key, value in a.items()}
    if isinstance(a, slice):
        return slice(_loaded(a.start, load), _loaded(a.stop, load), _loaded(a.step, load))
    return a


class Transformer(Interpreter):
    """Runs a graph on proxies and so writes a new one; `transform()` returns it as a module."""

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)

        class TransformerTracer(Tracer):
            def __init__(self, graph: Graph) -> None:
                super().__init__()
                self.graph = graph
                self.tensor_attrs: dict[Any, str] = {}
                self.root = module

            def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
                return True

        self.tracer = TransformerTracer(self.new_graph)

    def placeholder(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Proxy:
        """The input of the new graph."""
        default = args[0] if args else ...
        return Proxy(self.new_graph.placeholder(target, default_value=default), self.tracer)

    def get_attr(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Proxy:
        """The same attribute in the new graph."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """The same call in the new graph."""
        submodule = self.fetch_attr(target)
        return self.tracer.call_module(submodule, submodule.forward, args, kwargs)

    def call_function(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """The same call in the new graph."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The new module."""
        result = super().run(enable_io_processing=False)
        if result is not None:
            unwrapped = map_aggregate(result, lambda a: a.node if isinstance(a, Proxy) else a)
            self.new_graph.output(unwrapped)
        return GraphModule(self.module, self.new_graph)
