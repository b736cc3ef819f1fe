"""Replacing one pattern of operations by another throughout a graph. Start at `replace_pattern`."""

from __future__ import annotations

from typing import Any, NamedTuple

from rushlight.fx._symbolic_trace import symbolic_trace
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule, _assign_attr, _get_attr
from rushlight.fx.node import Node

__all__ = ["Match", "replace_pattern"]


class Match(NamedTuple):
    """One place where a pattern was found: its last node, and what each node of the pattern stands for."""

    anchor: Node
    nodes_map: dict[Node, Node]


class _Found:
    """An attempt to lay a pattern over a graph, from a node backwards."""

    def __init__(self) -> None:
        self.nodes: dict[Node, Any] = {}

    def same(self, pattern: Any, value: Any) -> bool:
        if isinstance(pattern, Node):
            return self.node(pattern, value)
        if isinstance(pattern, (list, tuple)):
            return (
                isinstance(value, (list, tuple))
                and len(pattern) == len(value)
                and all(map(self.same, pattern, value))
            )
        if isinstance(pattern, dict):
            return (
                isinstance(value, dict)
                and pattern.keys() == value.keys()
                and all(self.same(pattern[key], value[key]) for key in pattern)
            )
        if isinstance(pattern, slice):
            return isinstance(value, slice) and all(
                self.same(getattr(pattern, part), getattr(value, part)) for part in ("start", "stop", "step")
            )
        return type(pattern) is type(value) and pattern == value

    def node(self, pattern: Node, value: Any) -> bool:
        if pattern in self.nodes:
            return self.nodes[pattern] is value
        if pattern.op == "placeholder":
            self.nodes[pattern] = value
            return True
        if not isinstance(value, Node) or pattern.op != value.op or pattern.target != value.target:
            return False
        self.nodes[pattern] = value
        return self.same(pattern.args, value.args) and self.same(pattern.kwargs, value.kwargs)


def _contained(found: _Found, anchors: set[Node]) -> bool:
    """Whether nothing outside the match uses what only its inside computes."""
    inside = {value for pattern, value in found.nodes.items() if pattern.op != "placeholder"}
    return all(value in anchors or set(value.users) <= inside for value in inside if value.op != "get_attr")


def _graph_of(program: Any) -> tuple[Graph, Any]:
    if isinstance(program, Graph):
        return program, None
    traced = program if isinstance(program, GraphModule) else symbolic_trace(program)
    return traced.graph, traced


def replace_pattern(gm: GraphModule, pattern: Any, replacement: Any) -> list[Match]:
    """Replaces every place of `gm` that does what `pattern` does by what `replacement` does.

    Both are functions, modules or graphs with the same inputs. Matches do not overlap.

    >>> import rushlight as torch
    >>> traced = torch.fx.symbolic_trace(lambda x: torch.neg(torch.relu(x)))
    >>> matches = torch.fx.replace_pattern(traced, lambda a: torch.relu(a), lambda a: torch.sigmoid(a))
    >>> len(matches), traced(torch.zeros(1))
    (1, tensor([-0.5000]))
    """
    pattern_graph, _ = _graph_of(pattern)
    new_graph, new_module = _graph_of(replacement)
    outputs = pattern_graph.output_node().args[0]
    if not isinstance(outputs, Node):
        raise NotImplementedError("replace_pattern of a pattern with several outputs is not implemented")
    pattern_inputs = [node for node in pattern_graph.nodes if node.op == "placeholder"]
    new_inputs = [node for node in new_graph.nodes if node.op == "placeholder"]
    if len(pattern_inputs) != len(new_inputs):
        raise AssertionError("the pattern and the replacement take different numbers of inputs")
    matches: list[Match] = []
    taken: set[Node] = set()
    for anchor in list(gm.graph.nodes):
        found = _Found()
        if anchor in taken or not found.same(outputs, anchor) or not _contained(found, {anchor}):
            continue
        inside = {v for p, v in found.nodes.items() if p.op != "placeholder"}
        if inside & taken:
            continue
        taken |= inside
        matches.append(Match(anchor, found.nodes))
    for match in matches:
        val_map = {new: match.nodes_map[old] for new, old in zip(new_inputs, pattern_inputs)}
        for node in new_graph.nodes:
            if node.op in ("get_attr", "call_module") and new_module is not None:
                try:
                    _get_attr(gm, node.target)
                except AttributeError:
                    _assign_attr(_get_attr(new_module, node.target), gm, node.target)
        with gm.graph.inserting_before(match.anchor):
            result = gm.graph.graph_copy(new_graph, val_map)
        if not isinstance(result, Node):
            raise NotImplementedError("replace_pattern by something with several outputs is not implemented")
        match.anchor.replace_all_uses_with(result)
        # An input of a later match may be the result that has just been replaced.
        for other in matches:
            for key, value in other.nodes_map.items():
                if value is match.anchor and other is not match:
                    other.nodes_map[key] = result
        order = [p for p in reversed(pattern_graph.nodes) if p.op not in ("placeholder", "output")]
        for node in [match.nodes_map[p] for p in order if p in match.nodes_map]:
            if not node.users and not node._erased:
                gm.graph.erase_node(node)
    gm.recompile()
    return matches
