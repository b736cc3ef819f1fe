"""What the logger `torch.autograd.graph` is told on the level DEBUG: each node that a backward runs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from rushlight import _C

log = logging.getLogger("torch.autograd.graph")

_SHORT = {
    _C.float64: "f64", _C.float32: "f32", _C.float16: "f16", _C.bfloat16: "bf16", _C.complex64: "c64",
    _C.complex128: "c128", _C.int64: "i64", _C.int32: "i32", _C.int16: "i16", _C.int8: "i8", _C.uint8: "u8",
    _C.bool: "b8",
}  # fmt: skip


def _shown(grad: Any) -> str:
    if grad is None:
        return "None"
    return f"{_SHORT.get(grad.dtype, str(grad.dtype))}[{', '.join(map(str, grad.shape))}]"


def register(roots: list) -> Callable[[], None]:
    """Hooks on all nodes behind the roots; the result takes them off again."""
    seen, waiting, handles = set(), list(roots), []

    def announce(node):
        def prehook(grads):
            shown = ",".join(map(_shown, grads))
            log.debug("Executing: %s with grad_outputs: [%s]", node, shown)

        return prehook

    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        handles.append(node.register_prehook(announce(node)))
        waiting.extend(following for following, _ in node.next_functions)

    def stop():
        for handle in handles:
            handle.remove()

    return stop
