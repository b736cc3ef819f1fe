"""Notes the shape, dtype and layout of every tensor that a graph computes for given inputs."""

from __future__ import annotations

from typing import Any, NamedTuple

import rushlight
from rushlight.fx.interpreter import Interpreter
from rushlight.fx.node import Node, map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """What is known of a tensor without its values."""

    shape: Any
    dtype: Any
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Any, include_contiguity: bool = True) -> TensorMetadata:
    formats = (rushlight.contiguous_format, rushlight.channels_last, rushlight.channels_last_3d)
    memory_format = None
    if include_contiguity:
        for candidate, ndim in zip(formats, (None, 4, 5)):
            if ndim in (None, result.dim()) and result.is_contiguous(memory_format=candidate):
                memory_format = candidate
                break
    return TensorMetadata(
        result.shape, result.dtype, result.requires_grad, result.stride(), memory_format, False, {}
    )


class ShapeProp(Interpreter):
    """Runs a graph and keeps `node.meta["tensor_meta"]` and `node.meta["type"]` of every result."""

    def __init__(self, gm: Any, fake_mode: Any = None) -> None:
        if fake_mode is not None:
            raise NotImplementedError("ShapeProp(fake_mode) is not implemented: there are no fake tensors")
        super().__init__(gm)

    def run_node(self, n: Node) -> Any:
        """The value of a node, of which the shape is noted."""
        result = super().run_node(n)
        found = False

        def describe(value: Any) -> Any:
            nonlocal found
            if isinstance(value, rushlight.Tensor):
                found = True
                return _extract_tensor_metadata(value)
            return value

        meta = map_aggregate(result, describe)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Runs the graph on example inputs."""
        return super().run(*args)
