"""Python code from a graph. Start at `CodeGen._gen_python_code`."""

from __future__ import annotations

import builtins
import enum
import math
import types
import typing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import rushlight
from rushlight.fx.node import Node, _qualified_name, _type_repr, map_arg

if TYPE_CHECKING:
    from rushlight.fx.graph import Graph

magic_methods = {
    "eq": "{} == {}", "ne": "{} != {}", "lt": "{} < {}", "gt": "{} > {}", "le": "{} <= {}", "ge": "{} >= {}",
    "pos": "+{}", "neg": "-{}", "invert": "~{}", "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}",
    "floordiv": "{} // {}", "truediv": "{} / {}", "div": "{} / {}", "mod": "{} % {}", "pow": "{} ** {}",
    "lshift": "{} << {}", "rshift": "{} >> {}", "and_": "{} & {}", "or_": "{} | {}", "xor": "{} ^ {}",
    "getitem": "{}[{}]", "matmul": "{} @ {}",
}  # fmt: skip
reflectable_magic_methods = {
    name: magic_methods[name]
    for name in ("add", "sub", "mul", "floordiv", "truediv", "div", "mod", "pow", "lshift", "rshift", "and_",
                 "or_", "xor", "getitem", "matmul")
}  # fmt: skip
inplace_methods = {
    "iadd": "{} += {}", "iand": "{} &= {}", "ifloordiv": "{} //= {}", "ilshift": "{} <<= {}",
    "imod": "{} %= {}", "imul": "{} *= {}", "imatmul": "{} @= {}", "ior": "{} |= {}", "ipow": "{} **= {}",
    "irshift": "{} >>= {}", "isub": "{} -= {}", "itruediv": "{} /= {}", "ixor": "{} ^= {}",
    "setitem": "{}[{}] = {}",
}  # fmt: skip
# Names that generated code may use without an import of its own.
CUSTOM_GLOBALS = {
    "inf": math.inf, "nan": math.nan, "NoneType": type(None), "torch": rushlight, "device": rushlight.device,
}  # fmt: skip


@dataclass
class PythonCode:
    """A forward function as text, and what its free names mean."""

    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] | None = field(default=None)


def _attribute_path(root: str, target: str) -> str:
    """`self.a.b`, with getattr for parts that are no identifiers."""
    path = root
    for part in target.split("."):
        path = f"{path}.{part}" if part.isidentifier() else f'getattr({path}, "{part}")'
    return path


class _Writer:
    """The state of one translation: the names taken, the globals needed, the lines so far."""

    def __init__(self, graph: Graph) -> None:
        from rushlight.fx.graph import _Namespace

        self.names = _Namespace()
        self.globals: dict[str, Any] = {"torch": rushlight}
        self.wrapped: dict[str, None] = {}
        self.lines: list[str] = []
        for node in graph.nodes:
            self.names.associate_name_with_obj(node.name, node)

    def name_global(self, hint: str, value: Any) -> str:
        """A name under which the code finds `value`."""
        if (hint.startswith("torch.") and _is_torch(hint, value)) or vars(builtins).get(hint) is value:
            return hint
        name = hint.replace(".", "_")
        for known, other in self.globals.items():
            if other is value and known == name:
                return known
        name = self.names.create_name(name, value)
        self.globals[name] = value
        return name

    def type_name(self, kind: Any) -> str:
        if kind == ():
            return "()"
        arguments = getattr(kind, "__args__", None)
        origin = getattr(kind, "__origin__", None)
        if isinstance(kind, types.UnionType):
            return " | ".join(self.type_name(part) for part in kind.__args__)
        if arguments and origin is not None:
            base = _type_repr(kind).split("[")[0]
            if origin is typing.Union:
                base = "typing.Union"
            elif base.startswith("typing."):
                origin = getattr(typing, base[7:])
            base = self.name_global(base, origin)
            return f"{base}[{','.join(self.type_name(a) for a in arguments)}]"
        name = _type_repr(kind)
        return name if getattr(kind, "__module__", "") == "builtins" else self.name_global(name, kind)

    def value(self, arg: Any) -> str:
        """An argument as an expression."""
        if isinstance(arg, Node):
            return repr(arg)
        if isinstance(arg, tuple):
            if hasattr(arg, "_fields"):
                kind = self.name_global(_type_repr(type(arg)), type(arg))
                return f"{kind}({', '.join(map(self.value, arg))})"
            if isinstance(arg, rushlight.Size):
                return f"torch.Size([{', '.join(map(self.value, arg))}])"
            items = ", ".join(map(self.value, arg))
            return f"({items},)" if len(arg) == 1 else f"({items})"
        if isinstance(arg, list):
            return f"[{', '.join(map(self.value, arg))}]"
        if isinstance(arg, dict):
            return "{" + ", ".join(f"{key!r}: {self.value(value)}" for key, value in arg.items()) + "}"
        if isinstance(arg, slice):
            return f"slice({self.value(arg.start)}, {self.value(arg.stop)}, {self.value(arg.step)})"
        if isinstance(arg, enum.Enum):
            return f"{self.name_global(_type_repr(type(arg)), type(arg))}.{arg.name}"
        if isinstance(arg, rushlight.device):
            self.globals.setdefault("device", rushlight.device)
            return repr(arg)
        if isinstance(arg, float) and not math.isfinite(arg):
            name = "nan" if math.isnan(arg) else "inf"
            self.globals.setdefault(name, CUSTOM_GLOBALS[name])
            return repr(arg)
        if isinstance(arg, rushlight.Tensor):
            return self.name_global("_tensor", arg)
        if callable(arg) and (isinstance(arg, type) or hasattr(arg, "__name__")):
            return self.name_global(_type_repr(arg) if isinstance(arg, type) else _qualified_name(arg), arg)
        return repr(arg)

    def arguments(self, args: tuple, kwargs: dict) -> str:
        return ", ".join(
            [self.value(a) for a in args] + [f"{k} = {self.value(v)}" for k, v in kwargs.items()]
        )

    def expression(self, node: Node, root: str) -> str:
        """What a node other than placeholder and output computes."""
        if node.op == "get_attr":
            return _attribute_path(root, node.target)
        if node.op == "call_module":
            return f"{_attribute_path(root, node.target)}({self.arguments(node.args, node.kwargs)})"
        if node.op == "call_method":
            rest = self.arguments(node.args[1:], node.kwargs)
            return f"{_attribute_path(self.value(node.args[0]), node.target)}({rest})"
        target, args = node.target, node.args
        if target.__module__ == "_operator" and target.__name__ in magic_methods and not node.kwargs:
            return magic_methods[target.__name__].format(*map(self.value, args))
        name = _qualified_name(target)
        if name == "getattr" and len(args) == 2 and isinstance(args[1], str) and args[1].isidentifier():
            return f"{self.value(args[0])}.{args[1]}"
        name = self.name_global(name, target)
        if node.meta.get("is_wrapped"):
            self.wrapped[name] = None
        return f"{name}({self.arguments(args, node.kwargs)})"


def _is_torch(path: str, value: Any) -> bool:
    """Whether `path`, read from torch on, finds `value`."""
    found: Any = rushlight
    for part in path.split(".")[1:]:
        try:
            found = getattr(found, part)
        except AttributeError:
            return False
    return found is value or (path.startswith("torch.ops.") and found == value)


class CodeGen:
    """Writes a graph as a function. A subclass may change the signature and what is returned."""

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, **options: Any) -> str:
        """The line that opens the function."""
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        return f"def forward({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(self, output_args: Any, **options: Any) -> str:
        """The line that returns the result."""
        return f"return {output_args}"

    def process_inputs(self, *args: Any) -> Any:
        """The arguments of a call as the placeholders see them."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """The value of the output node as a caller sees it."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Further names that the code needs."""
        return []

    def _gen_python_code(self, nodes: Any, root_module: str, namespace: Any = None) -> PythonCode:
        writer = _Writer(nodes)
        for name, value in self.additional_globals():
            writer.globals[name] = value
        last_uses: dict[Node, list[Node]] = {}
        seen: set[Node] = set()
        for node in reversed(list(nodes.nodes)):

            def note(used: Node, node: Node = node) -> Node:
                if used not in seen:
                    seen.add(used)
                    last_uses.setdefault(node, []).append(used)
                return used

            map_arg(node.args, note)
            map_arg(node.kwargs, note)
        parameters: list[str] = []
        returned = ""
        body: list[str] = []
        for node in nodes.nodes:
            kind = "" if node.type is None else f" : {writer.type_name(node.type)}"
            if node.op == "placeholder":
                default = f" = {writer.value(node.args[0])}" if node.args else ""
                parameters.append(f"{node.target}{kind}{default}")
                plain = node.target.replace("*", "")
                if plain != node.name:
                    body.append(f"{node.name} = {plain}\n")
                continue
            if node.op == "output":
                if node.type is not None:
                    returned = f" -> {writer.type_name(node.type)}"
                body.append(self.generate_output(writer.value(node.args[0])) + "\n")
                continue
            if (
                node.op == "call_function"
                and node.target.__module__ == "_operator"
                and node.target.__name__ in inplace_methods
            ):
                statement = inplace_methods[node.target.__name__].format(*map(writer.value, node.args))
                line = f"{statement};  {node.name}{kind} = {writer.value(node.args[0])}"
            else:
                line = f"{node.name}{kind} = {writer.expression(node, root_module)}"
            done = last_uses.get(node, []) + ([] if node.users else [node])
            if done:
                line += ";  " + " = ".join([repr(used) for used in done] + ["None"])
            body.append(line + "\n")
        wraps = "\n".join(f'torch.fx._symbolic_trace.wrap("{name}")' for name in writer.wrapped)
        prologue = self.gen_fn_def(parameters, returned)
        text = "".join(body or ["pass\n"])
        lines = "\n".join("    " + line for line in text.split("\n"))
        return PythonCode(f"\n{wraps}\n\n{prologue}\n{lines}", writer.globals)
