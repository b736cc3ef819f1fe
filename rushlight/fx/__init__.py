"""torch.fx: programs recorded as graphs that Python code can read, change and run.

`symbolic_trace` runs a module on proxies (`proxy.py`, `_symbolic_trace.py`), each operation on which adds a
`Node` to a `Graph` (`node.py`, `graph.py`). A `GraphModule` (`graph_module.py`) is a module whose `forward`
is Python code written from the graph (`_code.py`); an `Interpreter` (`interpreter.py`) runs a graph by nodes.
"""

from rushlight.fx._symbolic_trace import PH, ProxyableClassMeta, Tracer, symbolic_trace, wrap
from rushlight.fx.graph import CodeGen, Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.interpreter import Interpreter, Transformer
from rushlight.fx.node import Node, has_side_effect, map_arg
from rushlight.fx.proxy import Proxy
from rushlight.fx.subgraph_rewriter import replace_pattern

__all__ = [
    "symbolic_trace",
    "Tracer",
    "wrap",
    "Graph",
    "GraphModule",
    "Interpreter",
    "Transformer",
    "Node",
    "Proxy",
    "replace_pattern",
    "has_side_effect",
    "map_arg",
]
