"""Tangents that are recorded themselves, for a gradient of them: torch's terms, one for each input.

Where nothing is recorded, a term of an input that does not move is left out. In the graph it is there: the
derivative of a tangent by a factor that it does not depend on exists and is zero, and who walks the graph
finds the sum that torch makes. What stands for the missing tangents are zeros that are not computed with.

These are the table's column `recorded`: formula(op, args, tangents, result).
"""

from __future__ import annotations

from rushlight import _C
from rushlight._annotations import Any

Tensor = _C.Tensor
ops = _C.ops


def _zero(size: Any, like: Tensor) -> Tensor:
    return _C.zero_for_good(like.new_zeros(())).expand(size)


def _filled(args: tuple, tangents: tuple, out: Tensor) -> list:
    """The tangents, with zeros for those that are missing."""
    return [
        t if t is not None else _zero(x.shape, x) if isinstance(x, Tensor) else _zero((), out)
        for x, t in zip(args, tangents, strict=False)
    ]


def _tensor(value: Any, out: Tensor) -> Tensor:
    """A factor; torch makes tensors of numbers."""
    return value if isinstance(value, Tensor) else out.new_full((), value)


def _times(term: Tensor, number: Any) -> Tensor:
    return term if not isinstance(number, Tensor) and number == 1 else term * number


def _zero_product(factors: tuple, out: Tensor, name: str = "") -> Tensor:
    """A product with zeros, as a node that leads to its factors: what it would be computed of is not read
    as a whole, and may be infinite."""
    term = _zero(out.shape, out)
    for factor in factors:
        if isinstance(factor, Tensor) and factor.requires_grad:
            term = term * factor.sum()
    return _C.name_node(term, name or out.grad_fn.name()) if term.requires_grad else term


def product(op: Any, args: tuple, tangents: tuple, out: Tensor) -> Tensor:
    """One term per factor."""
    total: Any = None
    for i, tangent in enumerate(tangents):
        if tangent is not None:
            term = op(*args[:i], tangent, *args[i + 1 :])
        else:
            term = _zero_product((*args[:i], *args[i + 1 : len(tangents)]), out)
        total = term if total is None else total + term
    return total


def sum_of_product(times: Any, name: str) -> Any:
    def formula(op: Any, args: tuple, tangents: tuple, out: Tensor) -> Tensor:
        """b * input + a * times(x, y)."""
        (_, x, y), (beta, alpha) = args[:3], args[3:]
        s = _times(_filled(args, tangents[:1], out)[0], beta)
        for term in (
            _zero_product((y,), out, name) if tangents[1] is None else times(tangents[1], y),
            _zero_product((x,), out, name) if tangents[2] is None else times(x, tangents[2]),
        ):
            s = s + _times(term, alpha)
        return s

    return formula


def mul(op: Any, args: tuple, tangents: tuple, out: Tensor) -> Tensor:
    (a, b), (s, t) = args, _filled(args, tangents, out)
    return t * _tensor(a, out) + s * _tensor(b, out)


def div(op: Any, args: tuple, tangents: tuple, out: Tensor) -> Tensor:
    s, t = _filled(args, tangents, out)
    return (s - t * out) / _tensor(args[1], out)


def add(op: Any, args: tuple, tangents: tuple, out: Tensor) -> Tensor:
    s, t = _filled(args, tangents, out)
    return s + _times(t, args[2] if len(args) > 2 else 1)


def sub(op: Any, args: tuple, tangents: tuple, out: Tensor) -> Tensor:
    s, t = _filled(args, tangents, out)
    return s - _times(t, args[2] if len(args) > 2 else 1)


def addcmul(op: Any, args: tuple, tangents: tuple, out: Tensor) -> Tensor:
    (_, a, b, value), (s, t, u) = args, _filled(args, tangents, out)
    return s + _times(t * b, value) + _times(u * a, value)


def addcdiv(op: Any, args: tuple, tangents: tuple, out: Tensor) -> Tensor:
    (_, a, b, value), (s, t, u) = args, _filled(args, tangents, out)
    return s + _times(t, value) / b - _times(u, value) * (a / b) / b


def lerp(op: Any, args: tuple, tangents: tuple, out: Tensor) -> Tensor:
    (a, b, c), (s, t, *moving) = args, _filled(args, tangents, out)
    return op(s, t, c) + moving[0] * (b - a) if moving else op(s, t, c)


def fmod(op: Any, args: tuple, tangents: tuple, out: Tensor) -> Tensor:
    (a, b), (s, t) = args, _filled(args, tangents, out)
    return s - t * ops.div_trunc(a, b)


_unbiased = sum_of_product(ops.linear_unbiased, "MmBackward0")


def linear(op: Any, args: tuple, tangents: tuple, out: Tensor) -> Tensor:
    bias, x, weight = args
    return _unbiased(op, (bias, x, weight, 1, 1), tangents, out)


def convolution(op: Any, args: tuple, tangents: tuple, out: Tensor) -> Tensor:
    (x, weight), (s, t, bias), how = args[:2], tangents, args[3:]
    first = _zero_product((weight,), out) if s is None else op(s, weight, None, *how)
    if t is None and bias is None:
        return first + _zero_product((x,), out)
    return first + op(x, _zero(weight.shape, weight) if t is None else t, bias, *how)


addmm = sum_of_product(ops.mm, "MmBackward0")
baddbmm = sum_of_product(ops.bmm, "BmmBackward0")
addmv = sum_of_product(ops.mv, "MvBackward0")
