"""The fused attention primitive; the public function is in rushlight/nn/functional/attention.py."""

from __future__ import annotations

from rushlight import _C
from rushlight.ops._examples import as_variables
from rushlight.ops._rules import derivative, no_derivative

ops = _C.ops


def _written_out(q, k, v, mask, scale, causal):
    """The same in differentiable operations."""
    from rushlight.nn.functional.attention import _attend

    return _attend(q, k, v, mask, causal, scale, 0.0)


def _gradient(g, q, k, v, mask, scale, causal, needs):
    if not (_C.is_grad_enabled() or needs[3]):
        return *ops.attention_backward(g, q, k, v, mask, scale, causal), None
    return _gradient_in_steps(g, q, k, v, mask, scale, causal, needs)


def _gradient_of_kept(g_out, q, k, v, mask, weights, scale, needs):
    if not (_C.is_grad_enabled() or needs[3]):
        return *ops.attention_keeping_backward(g_out, q, k, v, weights, scale), None
    return _gradient_in_steps(g_out, q, k, v, mask, scale, False, needs)


def _gradient_in_steps(g, q, k, v, mask, scale, causal, needs):
    """To be differentiated in turn, or with a gradient of the mask: from the operations written out."""
    from rushlight.autograd import grad

    again = _C.set_grad_enabled(True)
    try:
        inputs = as_variables((q, k, v, mask), needs, (g,))
        result = _written_out(*inputs, scale, causal)
        wanted = [t for t, needed in zip(inputs, needs, strict=True) if needed]
        found = iter(grad([result], wanted, [g], create_graph=again, allow_unused=True))
    finally:
        _C.set_grad_enabled(again)
    return tuple(next(found) if needed else None for needed in needs)


derivative("attention", _gradient, node="ScaledDotProductFlashAttentionForCpuBackward0")
derivative("attention_keeping", _gradient_of_kept, node="ScaledDotProductFlashAttentionForCpuBackward0")
# Only called where nothing is recorded; see _gradient.
no_derivative("attention_backward", "attention_keeping_backward")
