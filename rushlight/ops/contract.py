"""Products over chosen dimensions: inner, outer, tensordot, einsum, chains of matrices, kron and cross.

All are composed of mm, bmm, mul and views, except the cross product, whose derivative stands in matmul.py,
and the form of three operands behind bilinear layers.
"""

from __future__ import annotations

from operator import itemgetter

from rushlight import _C
from rushlight._signatures import check_call
from rushlight._warn import warn_once
from rushlight.ops._examples import known

from ._facts import told
from ._public import (
    C_NAMES,
    FUNCTIONS,
    Tensor,
    check_apart,
    function,
    public,
    wrap_dim,
    write_apart,
    write_out,
)
from ._rules import derivative
from ._tangents import PRODUCT
from .einsum import einsum as _einsum
from .matmul import finish

ops = _C.ops
_TENSORDOT = (
    "tensordot: Expected the output tensor to have dtype {result}, but got an output tensor with dtype {out}"
)


def _finish(result, out):
    recorded = isinstance(out, Tensor) and out.requires_grad and _C.is_grad_enabled()
    if recorded and out.shape != result.shape and out.dtype == result.dtype:
        raise RuntimeError(
            "tensordot(): the 'out' tensor was specified and requires gradients, and its shape does not "
            "match the expected result. Either remove the 'out' argument, ensure it does not require "
            "gradients, or make sure its shape matches the expected output."
        )
    return finish(result, out, _TENSORDOT)


@public
def inner(input, other, *, out=None):
    """The sums of products over the last dimensions of two tensors.

    Example::

        >>> rushlight.inner(rushlight.tensor([1, 2, 3]), rushlight.tensor([0, 2, 1]))
        tensor(7)
    """
    if input.ndim == 0 or other.ndim == 0:
        return FUNCTIONS["mul"](input, other, out=out)
    if input.shape[-1] != other.shape[-1]:
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{list(input.shape)} and {list(other.shape)}"
        )
    return _finish(_contract(input, other, [-1], [-1]), out)


@public(aliases=("ger",))
def outer(input, vec2, *, out=None):
    """The matrix of all products of an element of one vector with one of the other.

    Example::

        >>> rushlight.outer(rushlight.tensor([1, 2]), rushlight.tensor([3, 4, 5]))
        tensor([[ 3,  4,  5],
                [ 6,  8, 10]])
    """
    if input.ndim != 1:
        raise RuntimeError(f"outer: Expected 1-D argument self, but got {input.ndim}-D")
    if vec2.ndim != 1:
        raise RuntimeError(f"outer: Expected 1-D argument vec2, but got {vec2.ndim}-D")
    result = input.reshape(input.size(0), 1) * vec2
    if out is None:
        return result
    if out is vec2:
        raise RuntimeError(
            f"output with shape {list(out.shape)} doesn't match the broadcast shape {list(result.shape)}"
        )
    check_apart(out, input, vec2)  # as it is, before it is resized
    return write_out(out, result)


def _contract(a, b, dims_a, dims_b):
    """Sums products over pairs of dimensions; one of size 1 is broadcast against its partner."""
    if len(dims_a) != len(dims_b):
        raise RuntimeError("both dimension lists should have same length")
    if a.dtype != b.dtype:
        raise RuntimeError("both inputs should have same dtype")
    for d, e in zip(dims_a, dims_b):
        for x, own in ((a, d), (b, e)):
            if not x.ndim:
                raise IndexError(f"Dimension specified as {own} but tensor has no dimensions")
        m, n = a.shape[wrap_dim(d, a.ndim)], b.shape[wrap_dim(e, b.ndim)]
        if n == 1:
            a = a.sum(dim=d, keepdim=True, dtype=a.dtype)
        elif m == 1:
            b = b.sum(dim=e, keepdim=True, dtype=b.dtype)
        elif m != n:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {m} in dim {d} "
                f"and second has size {n} in dim {e}"
            )
    inner_a, inner_b = ([wrap_dim(d, x.ndim) for d in dims] for x, dims in ((a, dims_a), (b, dims_b)))
    for inner in (inner_a, inner_b):
        for d in inner:
            if inner.count(d) > 1:
                raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    outer_a = [d for d in range(a.ndim) if d not in inner_a]
    outer_b = [d for d in range(b.ndim) if d not in inner_b]
    shape = [a.shape[d] for d in outer_a] + [b.shape[d] for d in outer_b]
    terms = 1
    for d in inner_a:
        terms *= a.shape[d]
    rows, cols = (_count(x, dims) for x, dims in ((a, outer_a), (b, outer_b)))
    if a.dtype == _C.bool and rows == cols == 1:
        return _meeting(a.permute(inner_a + outer_a), b.permute(inner_b + outer_b), shape)
    left, right = a.permute(outer_a + list(dims_a)), b.permute(list(dims_b) + outer_b)
    if rows != 1 or cols != 1:
        return ops.mm(left.reshape(rows, terms), right.reshape(terms, cols)).view(shape)
    counted = not (a.dtype.is_floating_point or a.dtype.is_complex)
    if counted or (left.is_contiguous() and right.is_contiguous()):
        return ops.dot(*(x if x.ndim == 1 else x.reshape(terms) for x in (left, right))).view(shape)
    return (left.squeeze() * right.squeeze()).sum().view(shape)  # without a copy


def _meeting(a, b, shape):
    """Whether two tensors are true in the same place. Torch has no such product of contiguous ones."""
    if a.is_contiguous() and b.is_contiguous():
        raise NotImplementedError("\"dot\" not implemented for 'Bool'")
    return (a.reshape(-1) & b.reshape(-1)).any().view(shape)


def _count(x, dims):
    n = 1
    for d in dims:
        n *= x.shape[d]
    return n


@function
def tensordot(a, b, dims=2, out=None):
    """Sums products of two tensors' elements over pairs of dimensions.

    `dims` is how many of a's last dimensions meet b's first ones, or the two lists of dimensions that meet.

    Example::

        >>> a, b = rushlight.ones(3, 4, 5), rushlight.ones(4, 3, 2)
        >>> rushlight.tensordot(a, b, dims=([1, 0], [0, 1])).shape
        torch.Size([5, 2])
    """
    if isinstance(dims, Tensor):
        if dims.numel() > 1 and dims.size(0) != 2:
            raise AssertionError(f"dims tensor must have size 2 in first dimension, got {dims.size(0)}")
        counted = dims.numel() > 1
        dims = known(dims).tolist() if counted else int(dims.item())
    else:
        counted = True
    if isinstance(dims, (tuple, list)):
        dims_a, dims_b = dims
    elif isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if counted and dims > min(a.dim(), b.dim()):  # torch does not count the dimensions for a tensor
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        dims_a, dims_b = list(range(-dims, 0)), list(range(dims))
    else:
        raise RuntimeError(
            "tensordot expects dims to be int or tuple[list[int], list[int]] or list[list[int]] containing "
            f"two lists, but got dims={dims}"
        )
    lists = all(
        isinstance(given, (tuple, list)) and set(map(type, given)) <= {int} for given in (dims_a, dims_b)
    )
    if not (
        lists and isinstance(a, Tensor) and isinstance(b, Tensor) and isinstance(out, (Tensor, type(None)))
    ):
        handed_on = "T input,T other,I dims_self,I dims_other,T? out#0="
        check_call("tensordot", handed_on, a, b, dims_a, dims_b, out)
    return _finish(_contract(a, b, list(dims_a), list(dims_b)), out)


einsum = function(_einsum)


@public(namespace=False, method=False)
def multi_dot(tensors, *, out=None):
    """The product of two or more matrices, multiplied in the order that needs the fewest operations.

    The first and the last may be vectors.

    Example::

        >>> chain = [rushlight.ones(10, 100), rushlight.ones(100, 5), rushlight.ones(5, 50)]
        >>> rushlight.linalg.multi_dot(chain).shape
        torch.Size([10, 50])
    """
    tensors = list(tensors)
    n = len(tensors)
    if n < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {n}")
    first, last, shapes = tensors[0], tensors[-1], [list(x.shape) for x in tensors]
    for x, which in ((first, "first"), (last, "last")):
        if x.ndim not in (1, 2):
            raise RuntimeError(f"multi_dot(): the {which} tensor must be 1D or 2D but got {x.ndim}D")
    if first.ndim == 1:
        tensors[0] = first.unsqueeze(0)
    if last.ndim == 1:
        tensors[-1] = last.unsqueeze(-1)
    for i, x in enumerate(tensors):
        if x.ndim != 2:
            raise RuntimeError(f"multi_dot(): tensor {i} must be 2D but got {x.ndim}D")
    for i in range(1, n):
        if tensors[i].dtype != first.dtype:
            raise RuntimeError(
                "multi_dot(): all tensors must have be the same dtype "
                f"but tensor 0 is {C_NAMES[first.dtype]} and tensor {i} {C_NAMES[tensors[i].dtype]}"
            )
        if tensors[i - 1].shape[1] != tensors[i].shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {i - 1} and {i} with shapes {shapes[i - 1]} and {shapes[i]} "
                "cannot be multiplied"
            )
    shape = [first.shape[0]] * (first.ndim - 1) + [last.shape[-1]] * (last.ndim - 1)
    result = _multiply_chain(tensors).view(shape)
    if out is not None and out.dtype != result.dtype:
        raise RuntimeError(
            f"multi_dot(): expected out tensor to have dtype {C_NAMES[result.dtype]} "
            f"but got {C_NAMES[out.dtype]}"
        )
    return result if out is None else write_out(out, result, writer="mm")


def _multiply_chain(matrices):
    sizes = [m.shape[0] for m in matrices] + [matrices[-1].shape[1]]
    n = len(matrices)
    cost = [[0] * n for _ in range(n)]
    cut = [[0] * n for _ in range(n)]
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            cuts = (
                range(i, j) if n > 3 else reversed(range(i, j))
            )  # the first of equal ones, as torch prefers
            cost[i][j], cut[i][j] = min(
                ((cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in cuts),
                key=itemgetter(0),
            )

    def product(i, j):
        if i == j:
            return matrices[i]
        right = product(cut[i][j] + 1, j)  # first, as in torch
        return ops.mm(product(i, cut[i][j]), right)

    return product(0, n - 1)


@function
def chain_matmul(*matrices, out=None):
    """The product of matrices; the older name of :func:`rushlight.linalg.multi_dot`.

    Example::

        >>> rushlight.chain_matmul(rushlight.ones(2, 3), rushlight.ones(3, 4)).shape
        torch.Size([2, 4])
    """
    warn_once(
        "torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use "
        "torch.linalg.multi_dot instead, which accepts a list of two or more tensors rather than multiple "
        "parameters."
    )
    check_call("chain_matmul", "L matrices,T? out#0=", matrices, out)
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    for m in matrices:
        if m.ndim != 2:
            raise RuntimeError(f"Tensor dimension is {m.ndim}, expected 2 instead.")
    if len(matrices) == 1:
        return matrices[0].clone() if out is None else write_out(out, matrices[0])
    return multi_dot(matrices, out=out)


@public
def kron(input, other, *, out=None):
    """The Kronecker product: every element of input times the whole of other.

    Example::

        >>> rushlight.kron(rushlight.tensor([1, 2]), rushlight.tensor([1, 10]))
        tensor([ 1, 10,  2, 20])
    """
    if input.ndim == other.ndim == 2:
        m, p = input.shape
        n, q = other.shape
        result = (input.reshape(m, 1, p, 1) * other.reshape(1, n, 1, q)).reshape(m * n, p * q)
    else:
        ndim = max(input.ndim, other.ndim)
        a, b = ([1] * (ndim - x.ndim) + list(x.shape) for x in (input, other))
        left = input.reshape([size for m in a for size in (m, 1)])
        right = other.reshape([size for n in b for size in (1, n)])
        result = (left * right).reshape([m * n for m, n in zip(a, b)])
    return result if out is None else write_apart(out, result, input, other, exact="")


@public(namespace=False, method=False, name="cross")
def linalg_cross(input, other, *, dim=-1, out=None):
    """The cross product of vectors of three elements along `dim`.

    Example::

        >>> rushlight.linalg.cross(rushlight.tensor([1, 0, 0]), rushlight.tensor([0, 1, 0]))
        tensor([0, 0, 1])
    """
    result = ops.linalg_cross(input, other, dim)
    return result if out is None else write_apart(out, result, input, other)


@public
def cross(input, other, dim=None, *, out=None):
    """The cross product of vectors of three elements along `dim`, by default the first dimension of size 3.

    Example::

        >>> rushlight.cross(rushlight.tensor([1, 0, 0]), rushlight.tensor([0, 1, 0]), dim=0)
        tensor([0, 0, 1])
    """
    if dim is None:
        warn_once(
            "Using torch.cross without specifying the dim arg is deprecated.\n"
            "Please either pass the dim explicitly or simply use torch.linalg.cross.\n"
            "The default value of dim will change to agree with that of linalg.cross in a future release.",
        )
        for d, size in enumerate(input.shape):
            if size == 3:
                dim = d
                break
        else:
            raise RuntimeError("no dimension of size 3 in input")
    result = ops.linalg_cross(input, other, dim)
    return result if out is None else write_apart(out, result, input, other)


def _rows(i1, i2):
    """(N, I) by (K, I, J) as (N, K, J): one large product, as those of the gradients are."""
    k, i, j = i2.shape
    return ops.mm(i1, i2.permute(1, 0, 2).reshape(i, k * j)).reshape(i1.size(0), k, j)


def _pairs(g, i3):
    return (g.unsqueeze(-1) * i3.unsqueeze(-2)).reshape(g.size(0), g.size(1) * i3.size(1))


def _to_i1(g, i2, i3):
    k, i, j = i2.shape
    return ops.mm(_pairs(g, i3), i2.transpose(1, 2).reshape(k * j, i))


def _to_i2(g, i1, i3):
    found = ops.mm(i1.t(), _pairs(g, i3)).reshape(i1.size(1), g.size(1), i3.size(1))
    return found.permute(1, 0, 2).contiguous()


def _to_i3(g, i1, i2):
    return ops.bmm(g.unsqueeze(1), _rows(i1, i2)).squeeze(1)


derivative("trilinear", i1=_to_i1, i2=_to_i2, i3=_to_i3, **PRODUCT)


@told(
    no_complex_gradient="_trilinear",
    node_name=lambda *_: (None, {"expand1": (1, 3), "expand2": (0,), "expand3": (1, 2), "sumdim": (2, 3)}),
)
def trilinear(i1, i2, i3):
    """``i1[n] @ i2[k] @ i3[n]`` for every row n of i1 and i3 and every matrix k of i2."""
    if i2.dtype == _C.bool and i1.size(0) and i2.size(0):
        raise NotImplementedError("\"bmm\" not implemented for 'Bool'")
    return ops.trilinear(i1, i2, i3, lambda i1, i2, i3: ops.bmm(_rows(i1, i2), i3.unsqueeze(-1)).squeeze(-1))
