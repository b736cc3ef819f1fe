"""Dirichlet samples that carry gradients.

A sample x with concentrations alpha is not a smooth function of a fixed noise, but its distribution is one of
alpha: component i alone is Beta(alpha_i, total - alpha_i) with distribution function F, and keeping F(x_i)
fixed while alpha_i moves gives dx_i/dalpha_i = -(dF/dalpha_i) / F'(x_i). The other components make room in
proportion.
"""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight.autograd import Function
from rushlight.autograd.function import once_differentiable

_POINTS = 96
_nodes: tuple | None = None


def _gauss_legendre() -> tuple:
    """Nodes and weights on (0, 1), from the eigenvalues of the Jacobi matrix; computed once."""
    global _nodes
    if _nodes is None:
        k = rushlight.arange(1, _POINTS, dtype=rushlight.float64)
        side = k / (4 * k * k - 1).sqrt()
        values, vectors = rushlight.linalg.eigh(rushlight.diag(side, 1) + rushlight.diag(side, -1))
        _nodes = (values + 1) / 2, vectors[0] ** 2
    return _nodes


def _tail(x: Any, a: Any, b: Any, logs: Any) -> Any:
    """(x/a) ∫ e^-s ((1 - x e^(-s/a)) / (1 - x))^(b-1) logs(x e^(-s/a)) ds: an integral over the density of
    Beta(a, b) from 0 to x, divided by the density at x. The substitution t = x e^(-s/a) makes it smooth for
    every a; s = v^2 keeps nodes where it is steep."""
    v, weights = _gauss_legendre()
    x, a, b = x.unsqueeze(-1), a.unsqueeze(-1), b.unsqueeze(-1)
    reach = 40 + 12 * a.sqrt()
    s = reach * v * v
    t = x * (-s / a).exp()
    density = (-s + (b - 1) * (rushlight.log1p(-t) - rushlight.log1p(-x))).exp()
    return (x / a).squeeze(-1) * (density * logs(t, s) * (2 * reach * v * weights)).sum(-1)


def dirichlet_grad(x: Any, alpha: Any, total: Any) -> Any:
    """dx_i/dalpha_i / (1 - x_i), element by element."""
    dtype = x.dtype
    x, alpha, total = (each.double() for each in (x, alpha, total))
    x = x.clamp(1e-300, 1 - 1e-15)
    beta = total - alpha
    centre = total.digamma() - alpha.digamma()
    log_x = x.log().unsqueeze(-1)
    shift = centre.unsqueeze(-1)
    # The smaller tail, so that nothing cancels.
    below = x <= alpha / total
    lower = -_tail(x, alpha, beta, lambda t, s: log_x - s / alpha.unsqueeze(-1) + shift)
    upper = _tail(1 - x, beta, alpha, lambda t, s: rushlight.log1p(-t) + shift)
    return (rushlight.where(below, lower, upper) / (1 - x)).to(dtype)


class _Dirichlet(Function):
    @staticmethod
    def forward(ctx: Any, concentration: Any) -> Any:
        x = rushlight._sample_dirichlet(concentration)
        ctx.save_for_backward(x, concentration)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Any) -> Any:
        x, concentration = ctx.saved_tensors
        return _Dirichlet_backward(x, concentration, grad_output)


def _Dirichlet_backward(x: Any, concentration: Any, grad_output: Any) -> Any:
    """The gradient with respect to the concentration of a sample x."""
    total = concentration.sum(-1, True).expand_as(concentration)
    grad = dirichlet_grad(x, concentration, total)
    return grad * (grad_output - (x * grad_output).sum(-1, True))
