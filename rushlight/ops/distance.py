"""Distances between the rows of matrices, and rows held to a maximal norm: cdist, pdist, renorm."""

from __future__ import annotations

from rushlight import _C
from rushlight.ops._examples import is_derived
from rushlight.ops._facts import told
from rushlight.ops._lacking import final, once
from rushlight.ops._node_names import saving
from rushlight.ops._public import (
    C_NAMES,
    FUNCTIONS,
    SAME_DTYPE,
    function,
    in_place_of,
    public,
    type_name,
    wrap_dim,
    write_out,
)
from rushlight.ops._rules import derivative, no_derivative
from rushlight.ops.reduce import vector_norm

ops = _C.ops


derivative(
    "cdist",
    a=lambda g, a, b, out, p: ops.cdist_backward(g, a, b, out, p),
    b=lambda g, a, b, out, p: ops.cdist_backward(g.mT, b, a, out.mT.contiguous(), p),
    final="_cdist_backward",
)
derivative("pdist", x=lambda g, x, out, p: ops.pdist_backward(g, x, out, p), final="_pdist_backward")
no_derivative("cdist_backward", "pdist_backward")
derivative("once", x=lambda g, by, name: final(name, g, g, *by))


_MODES = {
    None: 0,
    "use_mm_for_euclid_dist_if_necessary": 0,
    "use_mm_for_euclid_dist": 1,
    "donot_use_mm_for_euclid_dist": 2,
}
_MANY_ROWS = 25  # from here on the Euclidean distance is a matrix product, if the mode leaves the choice


@told(node_name=saving("EuclideanDistBackward0", "x1 x2", "x1 x2 result", "x1 x2", result=...))
def _euclid(x1, x2):
    """|a - b| from |a|^2 + |b|^2 - 2ab: one matrix product instead of all differences."""
    left = ops.cat([-2 * x1, (x1 * x1).sum(-1, True), x1.new_ones((*x1.shape[:-1], 1))], -1)
    right = ops.cat([x2, x2.new_ones((*x2.shape[:-1], 1)), (x2 * x2).sum(-1, True)], -1)
    squares = left @ right.mT
    if not is_derived(squares):
        return squares.clamp_min_(0).sqrt_()
    zero = ops.le(squares, 0)
    return ops.where(zero, 0, ops.sqrt(ops.where(zero, 1, squares)))


def _check_p(name, p):
    if not isinstance(p, (int, float)):
        from rushlight._signatures import check_call

        check_call(name, f"f p#{3 if name == 'cdist' else 2}", p)
        p = _C.full((), p, _C.float64, None).item()  # NumPy's numbers, a tensor without dimensions
    if not p >= 0:
        raise RuntimeError(f"{name} only supports non-negative p values")
    return p


def is_product(x1, x2, p, compute_mode):
    """Whether cdist takes the distances from a matrix product."""
    if not x1.numel() or not x2.numel():
        return False
    mode = _MODES[compute_mode]
    many = x1.size(-2) > _MANY_ROWS or x2.size(-2) > _MANY_ROWS
    return p == 2 and (mode == 1 or (mode == 0 and many))


def _check_kernel(x):
    if x.dtype not in (_C.float32, _C.float64):
        raise NotImplementedError(f"\"cdist\" not implemented for '{type_name(x.dtype)}'")


@function
def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    """The p-norm distance of every row of x1 to every row of x2, batch by batch.

    >>> rushlight.cdist(rushlight.tensor([[0., 0.]]), rushlight.tensor([[3., 4.], [0., 1.]]))
    tensor([[5., 1.]])
    """
    if compute_mode not in _MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    if x1.dim() == x2.dim() == 2 and x1.dtype == x2.dtype and x1.dtype in (_C.float32, _C.float64):
        (rows, width), (others, columns) = x1.shape, x2.shape
        few = 0 < rows <= _MANY_ROWS and 0 < others <= _MANY_ROWS
        if few and width == columns > 0 and p.__class__ is float and p >= 0 and _MODES[compute_mode] != 1:
            return ops.cdist(x1, x2, p)
    for name, x in (("X1", x1), ("X2", x2)):
        if x.dim() < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {x.dim()}D")
    if x1.size(-1) != x2.size(-1):
        raise RuntimeError(
            f"X1 and X2 must have the same number of columns. X1: {x1.size(-1)} X2: {x2.size(-1)}"
        )
    for name, x in (("X1", x1), ("X2", x2)):
        if not x.is_floating_point():
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {type_name(x.dtype)}")
    p = _check_p("cdist", p)
    if not (x1.numel() and x2.numel()):
        x2 = x2.to(x1.dtype)
    by_product = is_product(x1, x2, p, compute_mode)
    if x1.dtype != x2.dtype:
        if by_product:
            kinds = f"{C_NAMES[x1.dtype]} != {C_NAMES[x2.dtype]}"
            raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {kinds}")
        _check_kernel(x1)
        raise RuntimeError(f"expected scalar type {type_name(x1.dtype)} but found {type_name(x2.dtype)}")
    rows, others = x1.size(-2), x2.size(-2)
    if by_product and x1.dim() == x2.dim() == 2:
        return _euclid(x1, x2).view(rows, others)
    batch = x1.shape[:-2]
    if batch != x2.shape[:-2]:
        try:
            batch = FUNCTIONS["broadcast_shapes"](batch, x2.shape[:-2])
        except RuntimeError:  # in the words of an operation on such batches
            a, b = (x.new_empty(()).expand(x.shape[:-2]) for x in (x1, x2))
            batch = (a + b).shape
    if x1.size(-1) == 0 or rows == 0 or others == 0 or 0 in batch:
        x1, x2 = (once(x, "_cdist_backward", x) for x in (x1, x2))
        return (x1.unsqueeze(-2) - x2.unsqueeze(-3)).sum(-1)
    if not by_product:
        _check_kernel(x1)
    x1, x2 = (x if x.shape[:-2] == batch else x.expand(*batch, *x.shape[-2:]) for x in (x1, x2))
    if by_product:  # of copies, where a batch was made of one: torch's graph keeps those
        x1, x2 = (x.contiguous().view(-1, *x.shape[-2:]) for x in (x1, x2))
        return _euclid(x1, x2).view(*batch, rows, others)
    return ops.cdist(x1, x2, float(p))


@function
def pdist(input, p=2.0):
    """The p-norm distances between the rows of a matrix: all pairs, each once.

    >>> rushlight.pdist(rushlight.tensor([[0., 0.], [3., 4.], [0., 1.]]))
    tensor([5.0000, 1.0000, 4.2426])
    """
    if input.dim() != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.dim()}D")
    if not input.is_floating_point():
        raise RuntimeError("pdist only supports floating-point dtypes")
    p = _check_p("pdist", p)
    n = input.size(0)
    if n < 2 or input.size(1) == 0:
        input = once(input, "_pdist_backward", input)
        return input.new_zeros(max(n * (n - 1) // 2, 0)) + (0 * input).sum()
    return ops.pdist(input, float(p))


@public
def renorm(input, p, dim, maxnorm, *, out=None):
    """Every slice along dim whose p-norm is above maxnorm, scaled down to it.

    >>> rushlight.renorm(rushlight.tensor([[3., 4.], [0., 1.]]), 2, 0, 1.)
    tensor([[0.6000, 0.8000],
            [0.0000, 1.0000]])
    """
    if isinstance(p, complex) or isinstance(maxnorm, complex):
        raise RuntimeError(f"renorm: {'p' if isinstance(p, complex) else 'maxnorm'} must be real-valued")
    if not p > 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if not maxnorm >= 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm:g}")
    if input.dim() < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {input.dim()} dimensions")
    if input.dtype == _C.complex32:
        raise RuntimeError("Unrecognized ScalarType: ComplexHalf")
    dim = wrap_dim(dim, input.dim())
    others = [d for d in range(input.dim()) if d != dim]
    size = vector_norm(input, p, others, True)
    above = ops.gt(size, maxnorm)
    if is_derived(size):  # a norm that is small enough, or no number, takes no part in the gradient
        size = vector_norm(ops.where(above, input, 1), p, others, True)
    scale = ops.where(above, maxnorm / (size + 1e-7), 1)
    result = (input * scale).to(input.dtype).contiguous()
    return result if out is None else write_out(out, result, exact=SAME_DTYPE, apart=[input])


in_place_of(renorm, "renorm")
