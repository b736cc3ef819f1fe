"""Operations along one dimension that give every element a result: running sums and products, softmax.

Derivatives first. The scans can run from the end (`reverse`), because a running sum's gradient is the running
sum of gradients from the other side.
"""

from __future__ import annotations

from rushlight import _C
from rushlight.ops._public import C_NAMES, FUNCTIONS, SAME_DTYPE, in_place_of, public, write_out
from rushlight.ops._rules import derivative
from rushlight.ops._tangents import linear
from rushlight.ops.reduce import _conj, _has_zeros, _pair

ops = _C.ops

derivative("cumsum", x=lambda g, dim, reverse: _cumsum_gradient(g, dim, reverse), tangent=linear)


def _cumprod_gradient(g, x, out, dim, reverse):
    if not x.dim() or not x.numel() or x.shape[dim] == 1:
        return g
    if not _has_zeros(x):
        if _C.is_grad_enabled() and not reverse:  # in torch's steps, for who looks at the graph
            return ops.flip(ops.cumsum(ops.flip(g * _conj(out), (dim,)), dim, None, False), (dim,)) / _conj(x)
        return ops.cumsum(g * _conj(out), dim, None, not reverse) / _conj(x)
    if _C.is_grad_enabled():
        return _cumprod_gradient_by_definition(g, x, dim, reverse)
    # Behind the first zero all products are zero, and so are the derivatives of whatever stands there. The
    # derivative of the zero itself is the sum of the products without it.
    zero = ops.eq(x, 0)
    zeros_so_far = ops.cumsum(zero, dim, None, reverse)
    first = ops.logical_and(zero, ops.eq(zeros_so_far, 1))
    without = ops.cumprod(ops.where(first, 1, x), dim, None, reverse)
    # What stands behind a zero takes no part, even if it is infinite.
    ahead, between = ops.eq(zeros_so_far, 0), ops.eq(zeros_so_far, 1)
    products = ops.where(ahead, g * _conj(out), 0)
    before = ops.cumsum(products, dim, None, not reverse) / _conj(ops.where(zero, 1, x))
    at = ops.cumsum(ops.where(between, g * _conj(without), 0), dim, None, not reverse)
    return ops.where(ahead, before, ops.where(first, at, 0))


def _cumsum_gradient(g, dim, reverse):
    if not _C.is_grad_enabled() or reverse:
        return ops.cumsum(g, dim, None, not reverse)
    if not g.dim() or g.shape[dim] <= 1 or g.numel() <= 1:
        return g
    return ops.flip(ops.cumsum(ops.flip(g, (dim,)), dim, None, False), (dim,))  # torch's steps, as above


def _cumprod_gradient_by_definition(g, x, dim, reverse):
    """The sum of the products without the element, for each: quadratic, but differentiable at zeros."""
    dim = dim % x.dim()
    slices = []
    for k in range(x.size(dim)):
        without = x.index_fill(dim, _C.from_data([k], _C.int64, x.device), 1)
        others = ops.cumprod(without, dim, None, reverse)
        part = g * _conj(others)
        length = k + 1 if reverse else x.size(dim) - k
        slices.append(ops.sum_dim(part.narrow(dim, 0 if reverse else k, length), dim, True, None))
    return FUNCTIONS["cat"](slices, dim)


def _logcumsumexp_gradient(g, x, out, dim, reverse):
    if x.is_complex():
        # Shifted by the largest exponent, so that exp(-out) times exp(x) stays within range.
        if not x.dim() or not x.numel():
            return g
        shift = ops.amax(ops.real(out.detach()), dim, True)
        scaled = ops.cumsum(g * _conj(ops.exp(shift - out)), dim, None, not reverse)
        return scaled * _conj(ops.exp(x - shift))
    return ops.logcumsumexp_backward(g, x, out, dim, reverse)


def _to_indices(g_values, indices, x_shape, dim):
    return (
        FUNCTIONS["scatter_add"](g_values.new_zeros(x_shape), dim, indices, g_values) if x_shape else g_values
    )


derivative("cumprod", x=_cumprod_gradient)
derivative("logcumsumexp", x=_logcumsumexp_gradient)
# backward(g)[k] = sum of g[i] * exp(x[k] - y[i]) over i >= k, tangent(t)[i] = the same of t[k] over k <= i:
# each is the other's adjoint.
derivative(
    "logcumsumexp_backward",
    g=lambda g_out, x, result, dim, reverse: ops.logcumsumexp_tangent(g_out, x, result, dim, reverse),
    x=lambda g_out, out: g_out * out,
    result=lambda g_out, g, x, result, dim, reverse: (
        -g * ops.logcumsumexp_tangent(g_out, x, result, dim, reverse)
    ),
)
derivative(
    "logcumsumexp_tangent",
    t=lambda g, x, result, dim, reverse: ops.logcumsumexp_backward(g, x, result, dim, reverse),
    x=lambda g, t, x, result, dim, reverse: t * ops.logcumsumexp_backward(g, x, result, dim, reverse),
    result=lambda g, out: -g * out,
)
derivative("cummax", x=_to_indices, shows="x")
derivative("cummin", x=_to_indices, shows="x")
derivative("safe_softmax", x=lambda g, out, dim: ops.softmax_backward(g, out, dim))
derivative("softmax", x=lambda g, out, dim: ops.softmax_backward(g, out, dim))
derivative("log_softmax", x=lambda g, out, dim: ops.log_softmax_backward(g, out, dim))


def _total(x, dim):
    return ops.sum_dim(x, dim, True, None)


# softmax_backward(g, y) = (g - sum(g * y)) * y
derivative(
    "softmax_backward",
    g=lambda g_out, result, dim: ops.softmax_backward(g_out, result, dim),
    result=lambda g_out, g, result, dim: (
        g_out * (g - _total(g * result, dim)) - g * _total(g_out * result, dim)
    ),
    node="SoftmaxBackwardDataBackward0",
    shows="g",
)
# log_softmax_backward(g, y) = g - exp(y) * sum(g)
derivative(
    "log_softmax_backward",
    g=lambda g_out, result, dim: g_out - _total(g_out * ops.exp(result), dim),
    result=lambda g_out, g, result, dim: -g_out * ops.exp(result) * _total(g, dim),
    node="LogSoftmaxBackwardDataBackward0",
    shows="g",
)


@public
def cumsum(input, dim, *, dtype=None, out=None):
    """The running sum along `dim`.

    >>> rushlight.tensor([1, 2, 3]).cumsum(0)
    tensor([1, 3, 6])
    """
    result = ops.cumsum(input, dim, out.dtype if dtype is None and out is not None else dtype, False)
    return result if out is None else write_out(out, result, exact=SAME_DTYPE, apart=[input])


@public
def cumprod(input, dim, *, dtype=None, out=None):
    """The running product along `dim`.

    >>> rushlight.tensor([1, 2, 3]).cumprod(0)
    tensor([1, 2, 6])
    """
    result = ops.cumprod(input, dim, out.dtype if dtype is None and out is not None else dtype, False)
    return result if out is None else write_out(out, result, exact=SAME_DTYPE, apart=[input])


@public
def logcumsumexp(input, dim, *, out=None):
    """The logarithm of the running sum of exponentials along `dim`.

    >>> rushlight.logcumsumexp(rushlight.zeros(3), 0)
    tensor([0.0000, 0.6931, 1.0986])
    """
    result = ops.logcumsumexp(input, dim, False)
    if out is None:
        return result
    return write_out(out, result, exact="expected scalar_type {result} but found {out}", apart=[input])


def _check_number(name, input, dim):
    if not input.dim() and isinstance(dim, int) and not -1 <= dim <= 0:
        raise IndexError(f"{name}(): Expected reduction dim -1 or 0 for scalar but got {dim}")


@public
def cummax(input, dim, *, out=None):
    """The largest element so far along `dim`, and where it stands (the last one of equals).

    >>> rushlight.tensor([1, 3, 2, 4]).cummax(0).values
    tensor([1, 3, 3, 4])
    """
    _check_number("cummax", input, dim)
    return _pair("cummax", ops.cummax(input, dim), out)


@public
def cummin(input, dim, *, out=None):
    """The smallest element so far along `dim`, and where it stands (the last one of equals).

    >>> rushlight.tensor([3, 1, 2, 0]).cummin(0).indices
    tensor([0, 1, 1, 3])
    """
    _check_number("cummin", input, dim)
    return _pair("cummin", ops.cummin(input, dim), out)


@public
def softmax(input, dim, dtype=None, *, out=None):
    """exp(x) / sum(exp(x)) along `dim`: positive and summing to one.

    >>> rushlight.tensor([1., 1., 1., 1.]).softmax(0)
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """
    result = ops.softmax(input if dtype is None else input.to(dtype), dim)
    return result if out is None else write_out(out, result, exact=SAME_DTYPE)


@public
def log_softmax(input, dim, dtype=None, *, out=None):
    """The logarithm of softmax(), computed without forming the quotient.

    >>> rushlight.log_softmax(rushlight.zeros(2), 0)
    tensor([-0.6931, -0.6931])
    """
    result = ops.log_softmax(input if dtype is None else input.to(dtype), dim)
    return result if out is None else write_out(out, result, exact=SAME_DTYPE)


def _in_place(function, name):
    def run(self, dim, *, dtype=None):
        if dtype is not None and dtype != self.dtype:
            raise RuntimeError(
                f"Bad in-place call: input tensor dtype {C_NAMES[self.dtype]} and output tensor dtype "
                f"{C_NAMES[dtype]} should match"
            )
        return function(self, dim, dtype=self.dtype)

    in_place_of(run, name)


_in_place(cumsum, "cumsum")
_in_place(cumprod, "cumprod")
