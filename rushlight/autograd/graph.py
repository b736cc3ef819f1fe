"""The recorded graph as users see it: nodes, gradient edges, hooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from rushlight import _C
from rushlight.utils.hooks import RemovableHandle

Node = _C.Node


class GradientEdge(NamedTuple):
    """Where in the graph a tensor's gradient flows: a node, and which of its outputs."""

    node: Node
    output_nr: int


def get_gradient_edge(tensor: _C.Tensor) -> GradientEdge:
    """The edge along which the gradient of `tensor` flows."""
    return GradientEdge(*_C.gradient_edge(tensor))


class _ListHandle:
    """Removes a hook from a node's list of tensor hooks."""

    def __init__(self, hooks: list, entry: tuple) -> None:
        self._hooks, self._entry = hooks, entry

    def remove(self) -> None:
        if self._entry in self._hooks:
            self._hooks.remove(self._entry)

    def __enter__(self) -> _ListHandle:
        return self

    def __exit__(self, *error: Any) -> None:
        self.remove()


def register_tensor_hook(tensor: _C.Tensor, hook: Callable) -> Any:
    """Tensor.register_hook: on a leaf before accumulation, elsewhere before the node that made the tensor."""
    if not tensor.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    node = tensor.grad_fn
    if node is None:
        hooks = _C.leaf_hooks(tensor, False)
        handle = RemovableHandle(hooks)
        hooks[handle.id] = hook
        return handle
    _C.track(tensor)
    entries = node._hooks("tensor")
    entry = (tensor.output_nr, hook)
    entries.append(entry)
    return _ListHandle(entries, entry)


def register_post_accumulate_grad_hook(tensor: _C.Tensor, hook: Callable) -> RemovableHandle:
    """Tensor.register_post_accumulate_grad_hook."""
    if not tensor.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if tensor.grad_fn is not None:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    hooks = _C.leaf_hooks(tensor, True)
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def _register(kind: str) -> Callable:
    def register(self, fn):
        hooks = self._hooks(kind)
        handle = RemovableHandle(hooks)
        hooks[handle.id] = fn
        return handle

    return register


Node.register_hook = _register("post")
Node.register_prehook = _register("pre")
Node.register_hook.__doc__ = (
    "Calls fn(grad_inputs, grad_outputs) after the node ran; its result replaces grad_inputs."
)
Node.register_prehook.__doc__ = (
    "Calls fn(grad_outputs) before the node runs; its result replaces grad_outputs."
)
