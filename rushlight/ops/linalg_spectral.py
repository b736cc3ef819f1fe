"""What torch.linalg composes: norms of matrices, condition numbers, rank, pseudoinverse, least squares,
tensors as matrices, and products along a dimension."""

from __future__ import annotations

import math
import sys

from rushlight import _C
from rushlight._dtype_info import finfo
from rushlight._type_names import type_name as class_name
from rushlight.autograd.grad_mode import no_grad
from rushlight.ops._examples import somewhere
from rushlight.ops._public import (
    FUNCTIONS,
    Tensor,
    public,
    refuse_complex,
    refuse_gradient,
    type_name,
    undifferentiable,
    whole,
    wrap_dim,
)
from rushlight.ops.linalg import (
    check_square,
    eigh,
    eigvalsh,
    finish,
    records,
    require_tensor,
    several,
    svdvals,
)
from rushlight.ops.reduce import vector_norm

ops = _C.ops
_linalg = public(namespace=False, method=False)
_LAPACK = (_C.float32, _C.float64, _C.complex64, _C.complex128)


# ---- norms


def _check_floating(name, x, low=True):
    if not (x.dtype.is_floating_point or x.dtype.is_complex):
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got {type_name(x.dtype)}"
        )
    if not low and x.dtype not in _LAPACK:
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {type_name(x.dtype)}")


def _order_text(ord):
    return ord if isinstance(ord, str) else f"{float(ord):g}"


def _singular_values(x, dim):
    return svdvals(x.movedim(dim, (-2, -1)))


def _kept(result, dim, keepdim):
    if keepdim:
        result = result.unsqueeze(-1).unsqueeze(-1)
        rest = iter(range(result.ndim - 2))
        last = iter((result.ndim - 2, result.ndim - 1))
        result = result.permute([next(last if d in dim else rest) for d in range(result.ndim)])
    return result


def _convert(name, x, dtype):
    if dtype is None or dtype == x.dtype:
        return x
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"{name}: dtype should be floating point or complex, but got {type_name(dtype)}")
    if dtype.is_complex != x.dtype.is_complex:
        kind = "complex" if x.dtype.is_complex else "real"
        raise RuntimeError(f"{name}: dtype should be {kind} for {kind} inputs, but got {type_name(dtype)}")
    if _C.promote_types(x.dtype, dtype) != dtype:
        raise RuntimeError(
            f"{name}: the dtype of the input ({type_name(x.dtype)}) should be convertible without narrowing "
            f"to the specified dtype ({type_name(dtype)})"
        )
    return x.to(dtype)


@_linalg
def matrix_norm(input, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None, out=None):
    """A norm of matrices: "fro", "nuc", or of order 1, -1, 2, -2, inf, -inf.

    >>> rushlight.linalg.matrix_norm(rushlight.tensor([[1.0, -2.0], [3.0, 4.0]]), 1)
    tensor(6.)
    """
    name = "linalg.matrix_norm"
    require_tensor("linalg_matrix_norm", input=input)
    if not isinstance(dim, (tuple, list)):
        raise TypeError(f"linalg_matrix_norm(): argument 'dim' must be tuple of ints, not {class_name(dim)}")
    if isinstance(ord, Tensor):
        ord = ord.item()
    if isinstance(ord, complex):
        raise RuntimeError(f"{name}: Expected a non-complex scalar as the order of norm.")
    if ord not in ("fro", "nuc") if isinstance(ord, str) else abs(ord) not in (1, 2, math.inf):
        raise RuntimeError(f"{name}: Order {_order_text(ord)} not supported.")
    _check_floating(name, input)
    if input.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    if len(dim) != 2:
        raise RuntimeError(f"{name}: dim must be a 2-tuple. Got {' '.join(map(str, dim))}")
    rows, cols = dim = tuple(wrap_dim(d, input.ndim) for d in dim)
    if rows == cols:
        raise RuntimeError(f"{name}: dims must be different. Got ({rows}, {cols})")
    if ord == "fro":
        return finish(vector_norm(_convert(name, input, dtype), 2, dim, keepdim), out)
    x = _convert(name, input, dtype)
    if ord == "nuc" or abs(ord) == 2:
        _check_floating(name, x, False)
        values = _singular_values(x, dim)
        if ord == "nuc":
            result = values.sum(-1)
        elif ord == 2 and not values.shape[-1]:
            result = values.detach().sum(-1)  # of nothing: a constant, as in torch
        else:
            result = values.amax(-1) if ord > 0 else values.amin(-1)
        return finish(_kept(result, dim, keepdim), out)
    if abs(ord) != 1:
        rows, cols = cols, rows
    sums = vector_norm(x, 1, rows, keepdim)
    cols -= not keepdim and rows < cols
    if not sums.shape[cols] and ord > 0:
        result = sums.detach().sum(cols, keepdim)
    else:
        result = sums.amax(cols, keepdim) if ord > 0 else sums.amin(cols, keepdim)
    return finish(result, out)


@_linalg
def norm(input, ord=None, dim=None, keepdim=False, *, out=None, dtype=None):
    """A vector norm, or a matrix norm where `ord` meets two dimensions.

    >>> rushlight.linalg.norm(rushlight.tensor([3.0, 4.0]))
    tensor(5.)
    """
    require_tensor("linalg_norm", input=input)
    if isinstance(ord, Tensor):
        ord = ord.item()
    dim = whole(dim)
    if isinstance(dim, int):
        dim = (dim,)
    if dim is not None:
        if len(dim) not in (1, 2):
            raise RuntimeError(
                f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dim)}"
            )
    elif ord is not None and input.ndim not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {input.ndim}D."
        )
    if isinstance(ord, str) or (ord is not None and (len(dim) == 2 if dim is not None else input.ndim == 2)):
        result = matrix_norm(input, ord, (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    else:
        result = vector_norm(input, 2.0 if ord is None else ord, dim, keepdim, dtype=dtype)
    return finish(result, out)


@_linalg
def cond(input, p=None, *, out=None):
    """The condition number of matrices in the norm of order p, 2 by default.

    >>> rushlight.linalg.cond(rushlight.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor(2.)
    """
    require_tensor("linalg_cond", input=input)
    if isinstance(p, Tensor):
        p = p.item()
    if input.ndim < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    if isinstance(p, str):
        if input.shape[-1] != input.shape[-2]:
            raise RuntimeError(
                f"linalg.cond(ord={p}): A must be batches of square matrices, but they are "
                f"{input.shape[-2]} by {input.shape[-1]} matrices"
            )
        if p not in ("fro", "nuc"):
            raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    elif isinstance(p, complex):
        raise RuntimeError("value cannot be converted to type double without overflow")
    elif p is not None and abs(p) not in (1, 2, math.inf):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {_order_text(p)}")
    if not input.numel():
        dtype = input.real.dtype if input.dtype.is_complex else input.dtype
        return finish(FUNCTIONS["zeros"](input.shape[:-2], dtype=dtype, device=input.device), out)
    if p is None or p in (2, -2):
        values = svdvals(input)
        largest, smallest = values.narrow(-1, 0, 1), values.narrow(-1, values.shape[-1] - 1, 1)
        result = largest / smallest if p != -2 else smallest / largest
        return finish(result.squeeze(-1), out)
    check_square(f"linalg.cond(ord={_order_text(p)})", input)
    if p == "nuc":  # the inverse of a singular matrix has no singular values
        values = svdvals(input)
        return finish(values.sum(-1) * values.reciprocal().sum(-1), out)
    inverse = ops.linalg_inv(input, None)[0]
    result = matrix_norm(input, p) * matrix_norm(inverse, p)
    return finish(FUNCTIONS["nan_to_num"](result, math.inf, math.inf, -math.inf), out)


# ---- rank and pseudoinverse


def _default_tolerance(x):
    if x.dtype not in _LAPACK:
        raise RuntimeError("This function doesn't handle types other than float and double")
    return finfo(x.dtype).eps * max(x.shape[-2:])


def _tolerance(name, x, atol, rtol, rtol_name="rtol"):
    """atol and rtol as numbers or tensors; by default rtol is eps * max(m, n) unless atol is positive."""
    for which, value in (("atol", atol), (rtol_name, rtol)):
        if isinstance(value, Tensor) and value.dtype.is_complex:
            raise RuntimeError(
                f"{name}: {which} tensor of complex type is not supported. Got {type_name(value.dtype)}"
            )
    if atol is None:
        atol = 0.0
    if rtol is None:
        default = _default_tolerance(x)
        if isinstance(atol, Tensor):
            rtol = ops.where(atol > 0, 0.0, FUNCTIONS["full_like"](atol, default, dtype=_C.float64))
        else:
            rtol = 0.0 if atol > 0 else default
    return atol, rtol


def _bound(largest, atol, rtol):
    """max(atol, rtol * largest) per matrix, with a dimension for the singular values."""
    atol, rtol = (
        value.unsqueeze(-1).to(largest.dtype) if isinstance(value, Tensor) else value
        for value in (atol, rtol)
    )
    bound = rtol * largest
    if isinstance(atol, Tensor):
        return FUNCTIONS["maximum"](bound, atol)
    return bound.clamp_min(atol)


@_linalg
def matrix_rank(input, tol=None, hermitian=False, *, atol=None, rtol=None, out=None):
    """How many singular values exceed max(atol, rtol * the largest).

    >>> rushlight.linalg.matrix_rank(rushlight.ones(3, 3))
    tensor(1)
    """
    name = "torch.linalg.matrix_rank"
    require_tensor("linalg_matrix_rank", input=input)
    if input.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor input must have at least 2 dimensions.")
    if tol is not None:
        atol, rtol = tol, 0.0
    with no_grad():
        atol, rtol = _tolerance(name, input, atol, rtol)
        if not input.numel():
            result, writer = input.new_zeros(input.shape[:-2], dtype=_C.int64), "linalg_matrix_rank"
        else:
            values = eigvalsh(input).abs() if hermitian else svdvals(input)
            bound = _bound(values.amax(-1, True), atol, rtol)
            result, writer = (values > bound).sum(-1), "sum"
    return finish(result, out, writer=writer)


def _pseudoinverse(x, hermitian, atol, rtol):
    if not x.numel():
        return x.new_empty((*x.shape[:-2], x.shape[-1], x.shape[-2]))
    if hermitian:
        values, V = eigh(x)
        sizes, Uh = values.abs(), V.mH
        largest = sizes.amax(-1, True)
    else:
        U, values, Vh = ops.linalg_svd(x, False, True)
        sizes, V, Uh = values, Vh.mH, U.mH
        largest = values.narrow(-1, 0, 1)
    kept = sizes > _bound(largest, atol, rtol)
    inverse = ops.where(kept, ops.reciprocal(ops.where(kept, values, 1.0)), 0.0)
    return _C.matmul(V * inverse.unsqueeze(-2), Uh)


@_linalg
def pinv(input, rcond=None, hermitian=False, *, atol=None, rtol=None, out=None):
    """The Moore-Penrose pseudoinverse; singular values up to max(atol, rtol * the largest) count as zero.

    >>> rushlight.linalg.pinv(rushlight.tensor([[2.0, 0.0], [0.0, 0.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.0000]])
    """
    result = pseudoinverse(input, rcond, hermitian, atol, rtol)
    autocast = sys.modules.get("rushlight.amp.autocast_mode")
    if autocast is not None:  # its last step is a matrix product
        result = autocast.as_product(result)
    return finish(result, out)


def pseudoinverse(input, rcond=None, hermitian=False, atol=None, rtol=None):
    """linalg.pinv in the precision of its argument."""
    name = "torch.linalg.pinv"
    require_tensor("linalg_pinv", input=input)
    if atol is not None and not isinstance(atol, Tensor) and rtol is None:  # torch asks for the default first
        wrap_dim(-2, input.ndim)
        _default_tolerance(input)
    if input.ndim < 2 or input.dtype not in _LAPACK:
        raise RuntimeError(
            f"linalg.pinv({type_name(input.dtype)}{{{list(input.shape)}}}): expected a tensor with 2 or more "
            "dimensions of float, double, cfloat or cdouble types"
        )
    rtol_name = "rtol" if rcond is None else "rcond"
    if rcond is not None:
        rtol = rcond
    given = {"atol": atol, "rtol": rtol}
    refuse_gradient("linalg_pinv", **{k: v for k, v in given.items() if isinstance(v, Tensor)})
    with no_grad():
        result = _pseudoinverse(input, hermitian, *_tolerance(name, input, atol, rtol, rtol_name))
    if records(input):
        result = ops.linalg_pinv(input, result)
    return result


# ---- least squares


def _without_repeats(t, batch):
    """What was computed of each matrix of a batch that had been repeated, once; of none zeros."""
    for d, size in enumerate(batch):
        if size == 1:
            t = t.narrow(d, 0, 1) if t.shape[d] else t.new_zeros((*t.shape[:d], 1, *t.shape[d + 1 :]))
    return t


@_linalg
def lstsq(input, b, rcond=None, *, driver=None, out=None):
    """X that minimises norm(input @ X - b), with residuals, rank and singular values where known.

    >>> rushlight.linalg.lstsq(rushlight.ones(2, 1), rushlight.tensor([[1.0], [3.0]])).solution
    tensor([[2.0000]])
    """
    name = "torch.linalg.lstsq"
    require_tensor("linalg_lstsq", input=input, b=b)
    if input.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if b.ndim < 1:
        raise RuntimeError(f"{name}: other must have at least 1 dimension.")
    if input.dtype != b.dtype:
        raise RuntimeError(
            f"{name}: Expected input and other to have the same dtype, but got input's dtype "
            f"{type_name(input.dtype)} and other's dtype {type_name(b.dtype)}"
        )
    if input.dtype not in _LAPACK:
        raise RuntimeError("This function doesn't handle types other than float and double")
    if input.ndim - b.ndim not in (0, 1):
        raise RuntimeError(
            f"{name}: input.dim() must be greater or equal to other.dim() and "
            "(input.dim() - other.dim()) <= 1"
        )
    vector = b.ndim == 1 or (input.ndim - b.ndim == 1 and b.shape == input.shape[:-1])
    since = _C.next_sequence()
    right = b.unsqueeze(-1) if vector else b
    m, n = input.shape[-2:]
    if right.shape[-2] != m:
        raise RuntimeError(f"{name}: input.size({'-2'}) should match other.size({'-1' if vector else '-2'})")
    if driver is None:
        driver = "gelsy"
    elif driver not in ("gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError(f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
    if rcond is None:
        real = input.dtype.is_floating_point or input.dtype.is_complex
        rcond = finfo(input.dtype).eps * max(m, n) if real else 0.0
    sizes = [tuple(t.shape[: input.ndim - 2]) for t in (input, right)]
    for d, (one, other) in enumerate(zip(*sizes, strict=True)):
        if one != other and 1 not in (one, other):
            raise RuntimeError(
                f"The size of tensor a ({one}) must match the size of tensor b ({other}) at non-singleton "
                f"dimension {d}"
            )
    batch = FUNCTIONS["broadcast_shapes"](*sizes)
    A, B = (t if t.shape[:-2] == batch else t.expand(*batch, *t.shape[-2:]) for t in (input, right))
    with no_grad():
        x, rank, values = ops.linalg_lstsq(A, B, float(rcond), driver)
        rank, values = (_without_repeats(t, sizes[0]) for t in (rank, values))
        solution = x.narrow(-2, 0, n)
        residuals = values.new_empty(0)
        if driver != "gelsy" and m > n and (driver == "gels" or not somewhere(rank != n)):
            residuals = x.narrow(-2, n, m - n).abs().square().sum(-2)
        none = input.new_empty(0, dtype=_C.int64)
        rank = none if driver == "gels" else rank.to(_C.int64)
        values = values if driver in ("gelsd", "gelss") else values.new_empty(0)
    solution = _C.forget_base(solution)
    if records(A) or records(B):
        solution, residuals = ops.linalg_lstsq_given(A, B, (solution, residuals))
    if vector:
        solution = _C.forget_base(solution.squeeze(-1))
        _C.name_node(solution, "LinalgLstsqBackward0", since, {}, (input, b))
    return several("linalg_lstsq", (solution, residuals, rank, values), out)


# ---- tensors as matrices, and products along a dimension


@_linalg
def tensorinv(input, ind=2, *, out=None):
    """The inverse for tensordot(., ind): the first `ind` dimensions are the rows, the others the columns.

    >>> rushlight.linalg.tensorinv(rushlight.eye(6).reshape(2, 3, 6), ind=2).shape
    torch.Size([6, 2, 3])
    """
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    if input.ndim < ind:
        raise RuntimeError(f"ArrayRef: invalid slice, N = {ind}; size = {input.ndim}")
    front, back = input.shape[:ind], input.shape[ind:]
    if math.prod(front) != math.prod(back):
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but "
            f"got {math.prod(back)} != {math.prod(front)}"
        )
    matrix = input.reshape(math.prod(front), math.prod(back))
    return finish(ops.linalg_inv(matrix, "inv")[0].reshape(*back, *front), out)


@_linalg
def tensorsolve(input, other, dims=None, *, out=None):
    """X with tensordot(input, X, X.ndim) == other, after moving `dims` of input to its end.

    >>> rushlight.linalg.tensorsolve(rushlight.eye(6).reshape(2, 3, 6), rushlight.ones(2, 3)).shape
    torch.Size([6])
    """
    if dims is not None:
        input = input.movedim(dims, list(range(input.ndim - len(dims), input.ndim)))
    shape = input.shape[other.ndim :]
    if math.prod(shape) != other.numel():
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
            f"prod(self.shape[:other.ndim]), but got {math.prod(shape)} != {other.numel()}"
        )
    size = math.prod(shape)
    solved = ops.linalg_solve(
        input.reshape(size, size), other.reshape(-1), True, "linalg.solve", "torch.linalg.solve"
    )
    return finish(solved[0].reshape(shape), out)


@_linalg
def vander(x, *, N=None):
    """The powers 0 .. N-1 of every element, in a new last dimension.

    >>> rushlight.linalg.vander(rushlight.tensor([2, 3]), N=3)
    tensor([[1, 2, 4],
            [1, 3, 9]])
    """
    supported = (_C.float32, _C.float64, _C.complex64, _C.complex128)
    if x.dtype == _C.bool or (x.dtype not in supported and (x.is_floating_point() or x.is_complex())):
        raise RuntimeError(
            "linalg.vander supports floating point, complex, and integer tensors, but got "
            f"{type_name(x.dtype)}"
        )
    if x.ndim == 0:
        x = x.unsqueeze(-1)
    N = x.shape[-1] if N is None else N
    if N <= 1:
        raise RuntimeError("N must be greater than 1.")
    repeated = x.unsqueeze(-1).expand(*x.shape, N - 1)
    powers = FUNCTIONS["cumprod"](repeated, -1)
    return FUNCTIONS["cat"]((powers.new_ones((*x.shape, 1)), powers), -1)


@_linalg
def vecdot(x, y, *, dim=-1, out=None):
    """The dot products along `dim`, x being conjugated; the other dimensions are broadcast.

    >>> rushlight.linalg.vecdot(rushlight.ones(2, 3), rushlight.ones(3))
    tensor([3., 3.])
    """
    require_tensor("linalg_vecdot", x=x, y=y)
    _check_floating("linalg.vecdot", x)
    if x.dtype != y.dtype:
        raise RuntimeError(
            "linalg.vecdot: Expected x and y to have the same dtype, but found x of type "
            f"{type_name(x.dtype)} and y of type {type_name(y.dtype)} instead"
        )
    if out is not None and out.dtype != x.dtype:
        raise RuntimeError(
            f"linalg.vecdot: Expected out of dtype{type_name(x.dtype)} but found {type_name(out.dtype)}"
        )
    if x.ndim == 1 and y.ndim == 1:
        return FUNCTIONS["vdot"](x, y, out=out)
    return finish(((x.conj() if x.dtype.is_complex else x) * y).sum(dim), out, writer="sum")


@_linalg
def _powsum(input, ord=2, dim=None, keepdim=False, *, dtype=None):
    """The sum of the absolute values raised to the power `ord`: a norm whose root is not taken yet.

    >>> rushlight.linalg._powsum(rushlight.tensor([3.0, 4.0]))
    tensor(25.)
    """
    refuse_complex(ord, kind="double")
    ord = ord.item() if isinstance(ord, Tensor) else ord
    x = _C.detach(input if dtype is None else input.to(dtype))
    if not (x.is_floating_point() or x.is_complex()) or x.element_size() < 2:
        told = type_name(x.dtype) if x.is_floating_point() else "Long"
        raise NotImplementedError(f"\"powsum_cpu\" not implemented for '{told}'")
    wide = x.float() if x.dtype in (_C.float16, _C.bfloat16) else x
    result = wide.abs().pow(float(ord)).sum(() if dim is None else dim, keepdim)
    result = result.to(x.dtype) if wide is not x else result
    return undifferentiable("linalg__powsum", result, input)


@_linalg
def diagonal(A, *, offset=0, dim1=-2, dim2=-1):
    """A view of the diagonals of matrices.

    >>> rushlight.linalg.diagonal(rushlight.eye(2))
    tensor([1., 1.])
    """
    return FUNCTIONS["diagonal"](A, offset, dim1, dim2)
