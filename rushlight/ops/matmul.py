"""Matrix products: their derivatives, then mm, bmm, mv, dot, matmul, linear, addmm and their relatives.

The products mm, bmm and matmul_nd exist in three forms: plain, `_nh` (a @ b.mH) and `_hn` (a.mH @ b). Each
form's derivatives are the other two, so backward makes no transposed views, and conjugates in one place.
The gradient of an operand that is the transpose of a contiguous matrix is one too (`mat2_turned`);
einsum_mm and einsum_bmm are what einsum multiplies, in torch a batch of views.
"""

from __future__ import annotations

import math

from rushlight import _C
from rushlight._annotations import Any
from rushlight._outputs import check_apart_elements

from . import _recorded_tangents as terms
from ._public import SAME_DTYPE, Tensor, public, write_out
from ._rules import derivative
from ._tangents import PRODUCT

ops = _C.ops
_matmul = _C.matmul


def _conj(x):
    return x.conj() if x.dtype.is_complex else x


def _times(g, factor):
    """g times the conjugate of a Python number."""
    if factor == 1:
        return g
    return g * (factor.conjugate() if isinstance(factor, complex) else factor)


def _outer(a, b):
    return a.unsqueeze(-1) * _conj(b)


def _rows(x):
    """x as a matrix whose rows are all dimensions but the last."""
    return x if x.ndim == 2 else x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def _turned_nh(g, b):
    """g @ b.mH as the transpose of a contiguous matrix."""
    return ops.t(ops.mm(b.conj(), g.t()) if b.dtype.is_complex else ops.mm_nh(b, g))


def _turned_hn(a, g):
    """a.mH @ g as the transpose of a contiguous matrix."""
    return ops.t(ops.mm(g.t(), a.conj()) if a.dtype.is_complex else ops.mm_hn(g, a))


derivative(
    "mm",
    input=lambda g, mat2, input_turned: _turned_nh(g, mat2) if input_turned else ops.mm_nh(g, mat2),
    mat2=lambda g, input, mat2_turned: _turned_hn(input, g) if mat2_turned else ops.mm_hn(input, g),
    **PRODUCT,
)
derivative(
    "einsum_mm",
    node="BmmBackward0",
    input=lambda g, mat2: ops.mm_nh(g, mat2),
    mat2=lambda g, input: ops.mm_hn(input, g),
    **PRODUCT,
)
derivative(
    "mm_nh", node="MmBackward0", a=lambda g, b: ops.mm(g, b), b=lambda g, a: ops.mm_hn(g, a), **PRODUCT
)
derivative(
    "mm_hn", node="MmBackward0", a=lambda g, b: ops.mm_nh(b, g), b=lambda g, a: ops.mm(a, g), **PRODUCT
)

_BMM: dict[str, Any] = {
    "input": lambda g, mat2: ops.bmm_nh(g, mat2),
    "mat2": lambda g, input: ops.bmm_hn(input, g),
}
derivative("bmm", **_BMM, **PRODUCT)
derivative("einsum_bmm", node="BmmBackward0", **_BMM, **PRODUCT)
derivative(
    "bmm_nh", node="BmmBackward0", a=lambda g, b: ops.bmm(g, b), b=lambda g, a: ops.bmm_hn(g, a), **PRODUCT
)
derivative(
    "bmm_hn", node="BmmBackward0", a=lambda g, b: ops.bmm_nh(b, g), b=lambda g, a: ops.bmm(a, g), **PRODUCT
)

derivative(
    "mv", input=lambda g, vec: _outer(g, vec), vec=lambda g, input: ops.vecmat(g, _conj(input)), **PRODUCT
)
derivative(
    "vecmat",
    node="SqueezeBackward4",
    a=lambda g, b: ops.mv(_conj(b), g),
    b=lambda g, a, b_turned: _outer(g, a).t() if b_turned else _outer(_conj(a), _conj(g)),
    **PRODUCT,
)
derivative(
    "dot", input=lambda g, tensor: g * _conj(tensor), tensor=lambda g, input: g * _conj(input), **PRODUCT
)
derivative(
    "vdot",
    input=lambda g, other: _conj(g) * other,
    other=lambda g, input: g * input,
    packs="other input",
    **PRODUCT,
)


# The engine sums a gradient over the batch dimensions in which its operand was broadcast. One matrix b under
# many rows of a is the exception: summing inside the product needs no memory for the terms.
def _matmul_nd_a(g, b, a_shape, a_turned=False):
    if a_turned:
        return _turned_nh(_rows(g), b).view(a_shape)
    if len(a_shape) == 1:
        return _matmul(_conj(b), g.unsqueeze(-1)).squeeze(-1)
    if b.ndim == 1:
        return _outer(g.contiguous(), b)  # torch's is one of rows
    return ops.matmul_nd_nh(g, b)


def _matmul_nd_b(g, a, b_shape, b_turned=False):
    if len(b_shape) == 1:
        return ops.vecmat(g.reshape(-1), _conj(_rows(a)))
    if a.ndim == 1:
        return _outer(g, a).mT if b_turned else _outer(_conj(a), _conj(g.unsqueeze(-2)))
    if len(b_shape) == 2:
        return (_turned_hn if b_turned else ops.mm_hn)(_rows(a), _rows(g))
    return _matmul(g.mT, _conj(a)).mT if b_turned else ops.matmul_nd_hn(a, g)


derivative("matmul_nd", node="UnsafeViewBackward0", a=_matmul_nd_a, b=_matmul_nd_b, **PRODUCT)
derivative(
    "matmul_turned",
    node="UnsafeViewBackward0",
    a=lambda g, b, a_shape: _matmul_nd_a(g.mT, b, a_shape),
    b=lambda g, a, b_shape: _matmul_nd_b(g.mT, a, b_shape),
    **PRODUCT,
)
derivative(
    "matmul_nd_nh",
    node="UnsafeViewBackward0",
    a=lambda g, b: _matmul(g, b),
    b=lambda g, a, b_shape: _matmul_nd_b(a, g, b_shape),
    **PRODUCT,
)
derivative(
    "matmul_nd_hn",
    node="UnsafeViewBackward0",
    a=lambda g, b: ops.matmul_nd_nh(b, g),
    b=lambda g, a: _matmul(a, g),
    **PRODUCT,
)


# A printed tensor shows what torch computes linear with: addmm or mm on matrices, mm and a view on others.
def _linear_x(g, weight, x_turned):
    return ops.mm(_conj(weight).t(), g.t()).t() if x_turned else ops.mm(g, _conj(weight))


def _linear_weight(g, x, weight_turned):
    return ops.mm_hn(x, g).t() if weight_turned else _conj(ops.mm_hn(g, x))


def _linear_nd_x(g, weight, x_shape, x_turned):
    return _linear_x(_rows(g), weight, True).view(x_shape) if x_turned else _matmul(g, _conj(weight))


_LINEAR: dict[str, Any] = {"x": _linear_x, "weight": _linear_weight}
_LINEAR_ND: dict[str, Any] = {
    "x": _linear_nd_x,
    "weight": lambda g, x, weight_turned: _linear_weight(_rows(g), _rows(x), weight_turned),
}
derivative("linear", node="AddmmBackward0", bias=lambda g: g, **_LINEAR, recorded=terms.linear)
derivative("linear_unbiased", node="MmBackward0", **_LINEAR, **PRODUCT)
derivative("linear_nd_unbiased", node="UnsafeViewBackward0", **_LINEAR_ND, **PRODUCT)

derivative(
    "addmm",
    shows="beta alpha mat1_shape mat2_shape",
    input=lambda g, beta: _times(g, beta),
    mat1=lambda g, mat2, alpha, mat1_turned: _times(
        _turned_nh(g, mat2) if mat1_turned else ops.mm_nh(g, mat2), alpha
    ),
    mat2=lambda g, mat1, alpha, mat2_turned: _times(
        _turned_hn(mat1, g) if mat2_turned else ops.mm_hn(mat1, g), alpha
    ),
    recorded=terms.addmm,
)
derivative(
    "addmv",
    shows="beta alpha",
    input=lambda g, beta: _times(g, beta),
    mat=lambda g, vec, alpha: _times(_outer(g, vec), alpha),
    vec=lambda g, mat, alpha: _times(ops.vecmat(g, _conj(mat)), alpha),
    recorded=terms.addmv,
)
derivative(
    "addr",
    shows="beta alpha",
    input=lambda g, beta: _times(g, beta),
    vec1=lambda g, vec2, alpha: _times(ops.mv(g, _conj(vec2).to(g.dtype)), alpha),
    vec2=lambda g, vec1, alpha: _times(ops.vecmat(_conj(vec1).to(g.dtype), g), alpha),
)
derivative(
    "baddbmm",
    shows="beta alpha",
    input=lambda g, beta: _times(g, beta),
    batch1=lambda g, batch2, alpha: _times(ops.bmm_nh(g, batch2), alpha),
    batch2=lambda g, batch1, alpha: _times(ops.bmm_hn(batch1, g), alpha),
    recorded=terms.baddbmm,
)
derivative(
    "addbmm",
    shows="beta alpha batch1_shape batch2_shape",
    input=lambda g, beta: _times(g, beta),
    batch1=lambda g, batch2, alpha: _times(ops.matmul_nd_nh(g, batch2), alpha),
    batch2=lambda g, batch1, alpha: _times(ops.matmul_nd_hn(batch1, g), alpha),
)
derivative(
    "linalg_cross",
    input=lambda g, other, dim: ops.linalg_cross(_conj(other), g, dim),
    other=lambda g, input, dim: ops.linalg_cross(g, _conj(input), dim),
    packs="other input",
    **PRODUCT,
)


def finish(result, out, words=SAME_DTYPE, apart=()):
    """`result`, or `out` filled with it. Products do not cast to the dtype of `out`; what they are added to
    (`apart`) is copied there first, unless it is broadcast."""
    if out is None:
        return result
    return write_out(out, result, exact=words, apart=[t for t in apart if t.shape == result.shape])


def _number(value):
    return value.item() if isinstance(value, Tensor) else value


@public
def mm(input, mat2, *, out=None):
    """The product of two matrices.

    Example::

        >>> rushlight.mm(rushlight.ones(2, 3), rushlight.ones(3, 1))
        tensor([[3.],
                [3.]])
    """
    return finish(ops.mm(input, mat2), out)


@public
def bmm(input, mat2, *, out=None):
    """The products of the matrices in two batches of the same length.

    Example::

        >>> rushlight.bmm(rushlight.ones(5, 2, 3), rushlight.ones(5, 3, 4)).shape
        torch.Size([5, 2, 4])
    """
    return finish(ops.bmm(input, mat2), out)


@public
def mv(input, vec, *, out=None):
    """The product of a matrix and a vector.

    Example::

        >>> rushlight.mv(rushlight.ones(2, 3), rushlight.ones(3))
        tensor([3., 3.])
    """
    return finish(ops.mv(input, vec), out)


@public
def dot(input, tensor, *, out=None):
    """The sum of the products of two vectors' elements; vdot conjugates the first.

    Example::

        >>> rushlight.dot(rushlight.tensor([2, 3]), rushlight.tensor([2, 1]))
        tensor(7)
    """
    return finish(ops.dot(input, tensor), out, "result dtype {out} does not match input dtype {result}")


@public
def vdot(input, other, *, out=None):
    """The sum of the products of the conjugated first vector's elements and the second's.

    Example::

        >>> rushlight.vdot(rushlight.tensor([1 + 2j]), rushlight.tensor([1j]))
        tensor(2.+1.j)
    """
    return finish(ops.vdot(input, other), out, "result dtype {out} does not match input dtype {result}")


@public
def matmul(input, other, *, out=None):
    """The matrix product of two tensors, as the operator ``@`` computes it.

    Vectors give a dot product, or count as one row or column; further dimensions are a batch, broadcast.

    Example::

        >>> rushlight.matmul(rushlight.ones(5, 1, 2, 3), rushlight.ones(4, 3, 6)).shape
        torch.Size([5, 4, 2, 6])
    """
    return finish(_matmul(input, other), out)


@public(namespace=False, method=False)
def linear(input, weight, bias=None, *, out=None):
    """``input @ weight.T + bias``.

    Example::

        >>> x, weight = rushlight.ones(2, 3), rushlight.ones(4, 3)
        >>> rushlight.nn.functional.linear(x, weight, rushlight.zeros(4)).shape
        torch.Size([2, 4])
    """
    if out is not None:
        return finish(linear(input, weight, bias), out, apart=() if bias is None else (bias,))
    result = _C.linear(input, weight, bias)
    return _linear_apart(input, weight, bias) if result is None else result


def _linear_apart(input, weight, bias):
    """linear with a bias that is not one row, which addmm broadcasts, or has to be added to the product."""
    if weight.ndim == 1:
        return _matmul(input, weight).add_(bias)  # counted, as torch's write is
    if input.ndim == 2:
        return ops.addmm(bias, input, weight.t(), 1, 1)
    row = bias.ndim == 1 or sum(size != 1 for size in bias.shape) == 1
    if row and input.is_contiguous() and bias.is_contiguous():
        rows = input.view(math.prod(input.shape[:-1]), input.shape[-1])
        return ops.addmm(bias, rows, weight.t(), 1, 1).view(*input.shape[:-1], weight.shape[0])
    product = _C.linear(input, weight, None)
    # Nothing that carries a tangent or is asked itself is written into what does not.
    apart = _C.asks_dispatch(bias) or _C.tangent(bias) is not None
    return product + bias if apart else product.add_(bias)


@public
def addmm(input, mat1, mat2, *, beta=1, alpha=1, out=None):
    """``beta * input + alpha * (mat1 @ mat2)``, input being broadcast. With beta == 0 it is not read.

    Example::

        >>> rushlight.addmm(rushlight.ones(2), rushlight.ones(1, 3), rushlight.ones(3, 2), alpha=2)
        tensor([[7., 7.]])
    """
    return finish(ops.addmm(input, mat1, mat2, _number(beta), _number(alpha)), out, apart=[input])


@public
def addmv(input, mat, vec, *, beta=1, alpha=1, out=None):
    """``beta * input + alpha * (mat @ vec)``, input being broadcast.

    Example::

        >>> rushlight.addmv(rushlight.ones(2), rushlight.ones(2, 3), rushlight.ones(3))
        tensor([4., 4.])
    """
    return finish(ops.addmv(input, mat, vec, _number(beta), _number(alpha)), out, apart=[input])


def _check_boolean(input, vec1, vec2, beta, alpha):
    if not all(t.dtype == _C.bool for t in (input, vec1, vec2)):
        name = "beta" if isinstance(beta, bool) else "alpha"
        raise RuntimeError(f"Boolean {name} only supported for Boolean results.")


@public
def addr(input, vec1, vec2, *, beta=1, alpha=1, out=None):
    """``beta * input + alpha * outer(vec1, vec2)``, input being broadcast.

    Example::

        >>> rushlight.addr(rushlight.zeros(2, 2), rushlight.tensor([1.0, 2.0]), rushlight.ones(2))
        tensor([[1., 1.],
                [2., 2.]])
    """
    if beta.__class__ is bool or alpha.__class__ is bool:
        _check_boolean(input, vec1, vec2, beta, alpha)
    if isinstance(out, Tensor):
        check_apart_elements(out, (input, vec1, vec2))
    result = ops.addr(input, vec1, vec2, _number(beta), _number(alpha))
    return result if out is None else write_out(out, result)


@public
def addbmm(input, batch1, batch2, *, beta=1, alpha=1, out=None):
    """``beta * input + alpha * (sum of batch1[i] @ batch2[i])``, input being broadcast.

    Example::

        >>> rushlight.addbmm(rushlight.zeros(1), rushlight.ones(5, 1, 3), rushlight.ones(5, 3, 1))
        tensor([[15.]])
    """
    return finish(ops.addbmm(input, batch1, batch2, _number(beta), _number(alpha)), out, apart=[input])


@public
def baddbmm(input, batch1, batch2, *, beta=1, alpha=1, out=None):
    """``beta * input + alpha * (batch1 @ batch2)`` for every matrix of a batch, input being broadcast.

    Example::

        >>> rushlight.baddbmm(rushlight.ones(1), rushlight.ones(2, 1, 3), rushlight.ones(2, 3, 1)).shape
        torch.Size([2, 1, 1])
    """
    return finish(ops.baddbmm(input, batch1, batch2, _number(beta), _number(alpha)), out, apart=[input])


@public(namespace=False)
def addmm_(self, mat1, mat2, *, beta=1, alpha=1):
    """In-place version of addmm."""
    return _C.in_place(ops.addmm, self, mat1, mat2, _number(beta), _number(alpha))


@public(namespace=False)
def addmv_(self, mat, vec, *, beta=1, alpha=1):
    """In-place version of addmv."""
    return _C.in_place(ops.addmv, self, mat, vec, _number(beta), _number(alpha))


@public(namespace=False)
def addr_(self, vec1, vec2, *, beta=1, alpha=1):
    """In-place version of addr."""
    if beta.__class__ is bool or alpha.__class__ is bool:
        _check_boolean(self, vec1, vec2, beta, alpha)
    _C.check_inplace(self)
    if self.dim() == 2:
        check_apart_elements(self, (vec1, vec2))
    return _C.in_place(ops.addr, self, vec1, vec2, _number(beta), _number(alpha))


@public(namespace=False)
def addbmm_(self, batch1, batch2, *, beta=1, alpha=1):
    """In-place version of addbmm."""
    return _C.in_place(ops.addbmm, self, batch1, batch2, _number(beta), _number(alpha))


@public(namespace=False)
def baddbmm_(self, batch1, batch2, *, beta=1, alpha=1):
    """In-place version of baddbmm."""
    return _C.in_place(ops.baddbmm, self, batch1, batch2, _number(beta), _number(alpha))
