"""One operation of a graph. Start at `Node`; `map_arg` walks the arguments, which may nest."""

from __future__ import annotations

import builtins
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import rushlight
from rushlight.fx.immutable_collections import immutable_dict, immutable_list

if TYPE_CHECKING:
    from rushlight.fx.graph import Graph

__all__ = ["Node", "has_side_effect", "map_aggregate", "map_arg"]

Argument = Any
Target = Any
BaseArgumentTypes = Any
base_types = (str, int, float, bool, complex, rushlight.dtype, rushlight.Tensor, rushlight.device,
              rushlight.memory_format, rushlight.layout)  # fmt: skip
OPERATIONS = ("placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root")
_legal_ops = dict.fromkeys(OPERATIONS)
_side_effectful_functions: set[Callable] = {rushlight._assert, rushlight._assert_async, setattr}


def has_side_effect(fn: Callable) -> Callable:
    """Marks a function whose calls stay in a graph although nothing uses their result."""
    _side_effectful_functions.add(fn)
    return fn


def map_aggregate(a: Argument, fn: Callable[[Any], Any]) -> Argument:
    """`a` with `fn` applied to everything in it that is not a tuple, list, dict or slice."""
    if isinstance(a, tuple):
        mapped = tuple([map_aggregate(item, fn) for item in a])
        return mapped if not hasattr(a, "_fields") else type(a)(*mapped)
    if isinstance(a, list):
        return immutable_list([map_aggregate(item, fn) for item in a])
    if isinstance(a, dict):
        return immutable_dict([(key, map_aggregate(value, fn)) for key, value in a.items()])
    if isinstance(a, slice):
        return slice(map_aggregate(a.start, fn), map_aggregate(a.stop, fn), map_aggregate(a.step, fn))
    return fn(a)


def map_arg(a: Argument, fn: Callable[[Node], Argument]) -> Argument:
    """`a` with `fn` applied to every Node in it."""
    if not callable(fn):
        raise AssertionError("torch.fx.map_arg(a, fn): fn must be a callable")
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


def _qualified_name(function: Any) -> str:
    """What generated code calls a function by: torch's public name where it has one."""
    name = getattr(function, "__name__", None) or type(function).__name__
    if getattr(builtins, name, None) is function:
        return name
    from rushlight.overrides import resolve_name

    resolved = resolve_name(function)
    if resolved is not None and not resolved.startswith("torch.special."):
        return resolved  # torch.special has second names of functions that torch has too
    module = getattr(function, "__module__", None) or ""
    if module == "torch.ops" or module.startswith("torch.ops."):
        return f"torch.ops.{function}"
    if isinstance(function, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        owner = function.__objclass__
        return f"{owner.__module__}.{owner.__name__}.{name}"
    if getattr(rushlight, name, None) is function:
        return f"torch.{name}"
    if resolved is not None:
        return resolved
    if name == "<lambda>":
        name = "_lambda_"
    if module.split(".")[0] == "rushlight":
        module = "torch" + module.removeprefix("rushlight")
    return f"{module}.{name}"


def _get_qualified_name(func: Callable) -> str:
    return _qualified_name(func)


def _shown_target(target: Any) -> str:
    """A target as a graph prints it."""
    if isinstance(target, str):
        return target
    module = getattr(target, "__module__", None)
    if module == "builtins":
        return f"builtins.{target.__name__}"
    if module == "_operator":
        return f"operator.{target.__name__}"
    return _qualified_name(target)


def _type_repr(obj: Any) -> str:
    """A type as an annotation names it."""
    if isinstance(obj, type) and not hasattr(obj, "__origin__"):
        if obj.__module__ == "builtins":
            return obj.__qualname__
        if obj is rushlight.Tensor:
            return "torch.Tensor"
        return f"{obj.__module__}.{obj.__qualname__}".replace("rushlight.", "torch.")
    if obj is ...:
        return "..."
    if isinstance(obj, types.FunctionType):
        return obj.__name__
    return repr(obj).replace("rushlight.", "torch.")


class Node:
    """An operation: its kind (`op`), what it calls (`target`), on what (`args`, `kwargs`), and its `users`.

    `op` is one of placeholder, get_attr, call_function, call_module, call_method and output. Nodes form a
    doubly linked list in the order in which they run.
    """

    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        return_type: Any = None,
    ) -> None:
        if op not in OPERATIONS:
            raise AssertionError(f"op '{op}' is not in _legal_ops")
        if op == "call_function":
            if not callable(target):
                raise ValueError(
                    f"Node [graph = {graph}, name = '{name}'] target {target} has type {type(target)} but a "
                    "Callable is expected"
                )
        elif not isinstance(target, str):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type {type(target)} but a str "
                "is expected"
            )
        self.graph = graph
        self.name = name
        self.op = op
        self.target = target
        self.type = return_type
        self.meta: dict[str, Any] = {}
        self.users: dict[Node, None] = {}
        self._input_nodes: dict[Node, None] = {}
        self._args: tuple = ()
        self._kwargs: dict = {}
        self._prev = self._next = self
        self._erased = False
        self._set_arguments(args, kwargs)

    @property
    def next(self) -> Node:
        """The node after this one."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before this one."""
        return self._prev

    def _unlink(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    def _check_same_graph(self, other: Node) -> None:
        if self.graph is not other.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")

    def prepend(self, x: Node) -> None:
        """Moves `x` to the place before this node."""
        self._check_same_graph(x)
        if self is x:
            return
        x._unlink()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x

    def append(self, x: Node) -> None:
        """Moves `x` to the place after this node."""
        self._next.prepend(x)

    @property
    def args(self) -> tuple[Argument, ...]:
        """The positional arguments; assigning them keeps `users` right."""
        return self._args

    @args.setter
    def args(self, a: tuple[Argument, ...]) -> None:
        self._set_arguments(a, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Argument]:
        """The keyword arguments; assigning them keeps `users` right."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, k: dict[str, Argument]) -> None:
        self._set_arguments(self._args, k)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among the arguments, each once."""
        return list(self._input_nodes)

    def _set_arguments(self, args: Any, kwargs: Any) -> None:
        used: dict[Node, None] = {}

        def note(node: Node) -> Node:
            used[node] = None
            return node

        args, kwargs = map_arg(tuple(args), note), map_arg(dict(kwargs), note)
        for old in self._input_nodes:
            old.users.pop(self, None)
        self._args, self._kwargs, self._input_nodes = args, kwargs, used
        for new in used:
            new.users[self] = None

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Sets the positional argument at `idx`."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Inserts a positional argument before the one at `idx`."""
        if not 0 <= idx <= len(self.args):
            raise AssertionError("insert_args index must be between 0 and len(self.args)")
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Sets the keyword argument `key`."""
        self.kwargs = {**self.kwargs, key: arg}

    @property
    def stack_trace(self) -> str | None:
        """Where the program made this node, if the tracer records it."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] | None = None,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Puts `replace_with` in the place of this node wherever it is used (and the callback agrees)."""
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    "Called node.replace_all_uses_with(replace_with, propagate_meta=True), but replace_with "
                    "already has .meta keys"
                )
            replace_with.meta.update(self.meta)
        changed = [user for user in self.users if delete_user_cb is None or delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Puts `new_input` in the place of `old_input` among this node's arguments."""
        swap = lambda node: new_input if node is old_input else node  # noqa: E731
        self._set_arguments(map_arg(self.args, swap), map_arg(self.kwargs, swap))

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether the node does something beside giving a result, so that it must stay though unused."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            return self.target in _side_effectful_functions
        if self.op == "call_module":
            module = self.graph.owning_module
            if module is None:
                raise AssertionError("self.graph.owning_module not set for purity check")
            return bool(getattr(module.get_submodule(self.target), "_is_impure", False))
        return False

    def normalized_arguments(self, *args: Any, **kwargs: Any) -> Any:
        """Not implemented."""
        raise NotImplementedError("torch.fx.Node.normalized_arguments is not implemented")

    def _rename(self, candidate: str) -> None:
        if candidate != self.name:
            self.name = self.graph._graph_namespace.create_name(candidate, None)
            self.graph._graph_namespace._rename_object(self, self.name)

    def format_node(
        self, placeholder_names: list[str] | None = None, maybe_return_typename: list[str] | None = None
    ) -> str | None:
        """The node as a line of text, as `print(graph)` shows it."""
        users = f"[num_users={len(self.users)}]"
        kind = f"{_type_repr(self.type)} " if self.type is not None else ""
        if self.op == "placeholder":
            if placeholder_names is not None:
                placeholder_names.append(self.target + (f" : {_type_repr(self.type)}" if kind else ""))
            default = f"(default={self.args[0]})" if self.args else ""
            return f"%{self.name} : {kind}{users} = {self.op}[target={self.target}]{default}"
        if self.op == "get_attr":
            return f"%{self.name} : {kind}{users} = {self.op}[target={_shown_target(self.target)}]"
        if self.op == "output":
            if self.type is not None and maybe_return_typename is not None:
                maybe_return_typename[0] = f" -> {_type_repr(self.type)}"
            return f"return {self.args[0]}"
        return (
            f"%{self.name} : {kind}{users} = {self.op}[target={_shown_target(self.target)}]"
            f"(args = {_shown(self.args)}, kwargs = {_shown(self.kwargs)})"
        )

    def __repr__(self) -> str:
        return self.name

    def __lt__(self, other: Node) -> bool:
        return self is not other and _comes_before(self, other)

    def __gt__(self, other: Node) -> bool:
        return other < self

    def __le__(self, other: Node) -> bool:
        return self is other or self < other

    def __ge__(self, other: Node) -> bool:
        return self is other or other < self


def _comes_before(first: Node, second: Node) -> bool:
    node = first.next
    while node.op != "root":
        if node is second:
            return True
        node = node.next
    return False


def _shown(a: Argument) -> str:
    """Arguments as a graph prints them: nodes with a %, strings without quotes."""
    if isinstance(a, tuple):
        if hasattr(a, "_fields"):
            return repr(a)
        items = ", ".join(map(_shown, a))
        return f"({items},)" if len(a) == 1 else f"({items})"
    if isinstance(a, list):
        return f"[{', '.join(map(_shown, a))}]"
    if isinstance(a, dict):
        return "{" + ", ".join(f"{key}: {_shown(value)}" for key, value in a.items()) + "}"
    if isinstance(a, slice):
        return f"slice({_shown(a.start)}, {_shown(a.stop)}, {_shown(a.step)})"
    if isinstance(a, Node):
        return f"%{a.name}"
    if callable(a) and not isinstance(a, type) and hasattr(a, "__name__"):
        return _qualified_name(a)
    return str(a)
