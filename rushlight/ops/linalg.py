"""torch.linalg's factorisations and solvers, on LAPACK. Their derivatives stand in linalg_rules.py.

A name ending in `_ex` reports failures in `info` instead of raising; both are one primitive, which is told
the name to raise with, or None.
"""

from __future__ import annotations

import sys

from rushlight import _C, return_types
from rushlight._outputs import check_apart_elements
from rushlight._type_names import type_name as class_name
from rushlight._versions import uncounted
from rushlight.ops import linalg_rules
from rushlight.ops._again import looked_on
from rushlight.ops._examples import is_derived, writable
from rushlight.ops._public import SAME_DTYPE, Tensor, check_resized, public, type_name, write_out
from rushlight.ops.shape import contiguous_format

ops = _C.ops
eye_like = linalg_rules.eye_like
_linalg = public(namespace=False, method=False)


# How torch refuses an out= of another dtype; what is not here says so in the words of SAME_DTYPE. Those of
# the first kind take any dtype that the result can be cast to.
_CASTS = {
    "pinv": "linalg.pinv", "cond": "linalg.cond", "matrix_rank": "torch.linalg.matrix_rank",
    "tensorsolve": "tensorsolve", "tensorinv": "tensorinv", "eigvals": "torch.linalg.eigvals",
    "eig": "torch.linalg.eig", "householder_product": "torch.linalg.householder_product",
    "orgqr": "torch.linalg.householder_product", "cholesky_inverse": "cholesky_inverse",
    "cholesky_solve": "cholesky_solve", "matrix_power": "matrix_power",
}  # fmt: skip
_KEEPS = {
    "matrix_norm": "linalg.matrix_norm expected out tensor dtype {result} but got: {out}",
    "norm": "linalg.norm expected out tensor dtype {result} but got: {out}",
    "solve_triangular": "expected scalar type {result} but found {out}",
    "ormqr": "torch.ormqr: Expected input and result to have the same dtype, but input has dtype{result} and "
    "result has dtype {out}",
}


def check_castable(dtype, out, name):
    """Refuses an `out` that does not take results of the dtype, of the functions of _CASTS."""
    if isinstance(out, Tensor) and not _C.can_cast(dtype, out.dtype):
        what = "eigenvalues" if name.startswith("eig") else "result"
        raise RuntimeError(
            f"{_CASTS.get(name, name)}: Expected {what} to be safely castable from {type_name(dtype)} dtype, "
            f"but got {what} with dtype {type_name(out.dtype)}"
        )


def finish(result, out, name=None, writer=None, exact=""):
    """`result`, or `out` filled with it, as the function of this name (the one that calls) has it."""
    if out is None:
        return result
    name = name or sys._getframe(1).f_code.co_name
    writer = writer or f"linalg_{name}"
    if name not in _CASTS:
        return write_out(out, result, exact=_KEEPS.get(name, SAME_DTYPE), writer=writer)
    check_castable(result.dtype, out, name)
    if isinstance(out, Tensor) and out.numel() and out.shape != result.shape:
        result = result.contiguous()  # as a resized tensor is; what was empty takes the layout of the result
    return write_out(out, result, exact=exact, writer=writer)


def solution(result, out, right, *, over_right=False):
    """`finish` for the solution of a system with this right side, which torch overwrites: an `out` that it
    has to resize must be apart from it, and with `over_right` one that it copies the right side to."""
    if isinstance(out, Tensor) and out.dtype == result.dtype:
        if out.shape != result.shape:
            check_resized(out, result, [right])
        elif over_right:
            check_apart_elements(out, [right])
    return finish(result, out, sys._getframe(1).f_code.co_name)


def several(kind, result, out=None):
    """The named tuple `kind` of several results, written to the tensors of `out` first."""
    if out is None:
        return getattr(return_types, kind)(result)
    if not isinstance(out, (tuple, list)):
        raise TypeError(f"{kind}(): argument 'out' must be tuple of Tensors, not {class_name(out)}")
    name = kind.removeprefix("linalg_")
    writer = "linalg_ldl_factor_ex" if name == "ldl_factor" else kind
    written = (finish(r, o, name, writer) for o, r in zip(out, result, strict=True))
    return getattr(return_types, f"{kind}_out")(written)


def require_tensor(name, **arguments):
    """torch's TypeError for an argument that is not a tensor."""
    for position, (argument, value) in enumerate(arguments.items(), 1):
        if not isinstance(value, Tensor):
            raise TypeError(
                f"{name}(): argument '{argument}' (position {position}) must be Tensor, "
                f"not {class_name(value)}"
            )


def records(x):
    """Whether a function of x is going to be differentiated: recorded, or along a tangent."""
    return is_derived(x)


@_linalg
def cholesky(input, *, upper=False, out=None):
    """The triangular L with input = L @ L.mH, of Hermitian positive-definite matrices (upper: its L.mH).

    >>> rushlight.linalg.cholesky(rushlight.tensor([[4.0, 2.0], [2.0, 5.0]]))
    tensor([[2., 0.],
            [1., 2.]])
    """
    return finish(ops.linalg_cholesky(input, upper, "linalg.cholesky", "linalg.cholesky")[0], out)


@_linalg
def cholesky_ex(input, *, upper=False, check_errors=False, out=None):
    """L and, per matrix, 0 or the order of the first leading minor that is not positive-definite.

    >>> rushlight.linalg.cholesky_ex(-rushlight.eye(2)).info
    tensor(1, dtype=torch.int32)
    """
    name = "linalg.cholesky_ex" if check_errors else None
    return several("linalg_cholesky_ex", ops.linalg_cholesky(input, upper, "linalg.cholesky", name), out)


@_linalg
def inv(A, *, out=None):
    """The inverses of square matrices; LinAlgError if one is singular.

    >>> rushlight.linalg.inv(rushlight.tensor([[4.0]]))
    tensor([[0.2500]])
    """
    return finish(ops.linalg_inv(A, "linalg.inv")[0], out)


@_linalg
def inv_ex(A, *, check_errors=False, out=None):
    """The inverses and, per matrix, 0 or the place of the zero pivot that makes it singular.

    >>> rushlight.linalg.inv_ex(rushlight.zeros(2, 2)).info
    tensor(1, dtype=torch.int32)
    """
    return several("linalg_inv_ex", ops.linalg_inv(A, "linalg.inv_ex" if check_errors else None), out)


@_linalg
def det(A, *, out=None):
    """The determinants of square matrices.

    >>> rushlight.linalg.det(rushlight.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor(-2.)
    """
    return finish(ops.linalg_det(A)[0], out)


@_linalg
def slogdet(A, *, out=None):
    """Sign and logarithm of the absolute value of the determinant.

    >>> rushlight.linalg.slogdet(-rushlight.eye(3)).sign
    tensor(-1.)
    """
    return several("linalg_slogdet", ops.linalg_slogdet(A, "linalg.slogdet")[:2], out)


@_linalg
def solve(A, B, *, left=True, out=None):
    """X with A @ X = B, or X @ A = B if not `left`; B may be a batch of vectors.

    >>> rushlight.linalg.solve(rushlight.tensor([[2.0, 0.0], [0.0, 4.0]]), rushlight.ones(2))
    tensor([0.5000, 0.2500])
    """
    if _C.is_compressed(A):
        from rushlight.sparse import spsolve

        return spsolve(A, B, left=left)
    return solution(ops.linalg_solve(A, B, left, "linalg.solve", "torch.linalg.solve")[0], out, B)


@_linalg
def solve_ex(A, B, *, left=True, check_errors=False, out=None):
    """X and, per matrix, 0 or the place of the zero pivot that makes A singular.

    >>> rushlight.linalg.solve_ex(rushlight.zeros(2, 2), rushlight.ones(2)).info
    tensor(1, dtype=torch.int32)
    """
    result, _, _, info = ops.linalg_solve(
        A, B, left, "linalg.solve", "torch.linalg.solve_ex" if check_errors else None
    )
    return several("linalg_solve_ex", (result, info), out)


@_linalg
def solve_triangular(input, B, *, upper, left=True, unitriangular=False, out=None):
    """X with input @ X = B (or X @ input = B) for a triangular input; its other triangle is not read.

    >>> A = rushlight.tensor([[2.0, 0.0], [1.0, 1.0]])
    >>> rushlight.linalg.solve_triangular(A, rushlight.ones(2, 1), upper=False)
    tensor([[0.5000],
            [0.5000]])
    """
    check_square("linalg.solve_triangular", input)
    if B.dtype != input.dtype:
        B = B.to(input.dtype)
    return solution(
        ops.linalg_solve_triangular(input, B, upper, left, unitriangular), out, B, over_right=True
    )


# ---- LU and LDL


def _pivoting(pivot):
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")


@_linalg
def lu_factor(A, *, pivot=True, out=None):
    """LU with row exchanges, both triangles in one matrix, and the exchanges, counted from 1.

    >>> rushlight.linalg.lu_factor(rushlight.tensor([[0.0, 1.0], [2.0, 3.0]])).pivots
    tensor([2, 2], dtype=torch.int32)
    """
    _pivoting(pivot)
    return several(
        "linalg_lu_factor", ops.linalg_lu_factor(A, "torch.lu_factor", "torch.linalg.lu_factor")[:2], out
    )


@_linalg
def lu_factor_ex(A, *, pivot=True, check_errors=False, out=None):
    """lu_factor and, per matrix, 0 or the place of the zero on U's diagonal.

    >>> rushlight.linalg.lu_factor_ex(rushlight.zeros(2, 2)).info
    tensor(1, dtype=torch.int32)
    """
    _pivoting(pivot)
    name = "torch.linalg.lu_factor_ex" if check_errors else None
    return several("linalg_lu_factor_ex", ops.linalg_lu_factor(A, "torch.lu_factor", name), out)


def unpack_lu(LU, pivots, unpack_data=True, unpack_pivots=True):
    """P, L and U from the compact form; empty tensors for what is not asked for."""
    m, n = LU.shape[-2:]
    P, L = LU.new_empty(0), LU.reshape(-1)[:0]
    U = L
    if unpack_pivots:
        batch, count = LU.shape[:-2], min(m, n)
        if pivots.shape != (*batch, count):  # more pivots are not looked at; for fewer torch reads beyond
            if not pivots.dim() or pivots.shape[:-1].numel() != batch.numel() or pivots.size(-1) < count:
                raise RuntimeError(
                    "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive."
                    "Did you properly pass the result of lu_factor?"
                )
            pivots = pivots.narrow(-1, 0, count).reshape(*batch, count)
        order = ops.lu_permutation(pivots, m)
        P = writable(LU.new_zeros((*order.shape, m)), order)
        with uncounted(P):
            P.scatter_(-2, order.unsqueeze(-2), 1)
    k = min(m, n)
    if unpack_data and not LU.numel():
        L, U = LU.narrow(-1, 0, k), LU.narrow(-2, 0, k)
    elif unpack_data:
        L = linalg_rules._unit_lower(LU).contiguous()
        U = ops.triu(LU.narrow(-2, 0, k), 0).contiguous()
    return P, L, U


@_linalg
def lu(A, *, pivot=True, out=None):
    """P, L and U with A = P @ L @ U.

    >>> rushlight.linalg.lu(rushlight.tensor([[0.0, 1.0], [2.0, 3.0]])).U
    tensor([[2., 3.],
            [0., 1.]])
    """
    _pivoting(pivot)
    if out is None and looked_on(A):
        P, L, U = ops.linalg_lu(A, lambda A: tuple(lu(A)))
        return several("linalg_lu", (P.detach(), L, U), None)
    since = _C.next_sequence()
    LU, pivots, _ = ops.linalg_lu_factor(A, "linalg.lu", None)
    result = unpack_lu(LU, pivots)
    if _C.next_sequence() != since:
        kept = dict(zip("PLU", (_C.keep(part.detach()) for part in result)), pivot=True)
        result = _C.name_node(result, "LinalgLuBackward0", since, kept)
    return several("linalg_lu", result, out)


@_linalg
def lu_solve(LU, pivots, B, *, left=True, adjoint=False, out=None):
    """X with A @ X = B (X @ A = B if not `left`, A.mH for A if `adjoint`), given lu_factor(A).

    >>> A = rushlight.tensor([[2.0, 0.0], [0.0, 4.0]])
    >>> rushlight.linalg.lu_solve(*rushlight.linalg.lu_factor(A), rushlight.ones(2, 1))
    tensor([[0.5000],
            [0.2500]])
    """
    return solution(ops.linalg_lu_solve(LU, pivots, B, left, adjoint), out, B)


@_linalg
def ldl_factor(input, *, hermitian=False, out=None):
    """The compact LDL of symmetric (or Hermitian) matrices and its pivots, for ldl_solve.

    >>> rushlight.linalg.ldl_factor(rushlight.eye(2)).LD
    tensor([[1., 0.],
            [0., 1.]])
    """
    return several(
        "linalg_ldl_factor", ops.linalg_ldl_factor(input, hermitian, "torch.linalg.ldl_factor")[:2], out
    )


@_linalg
def ldl_factor_ex(input, *, hermitian=False, check_errors=False, out=None):
    """ldl_factor and, per matrix, 0 or the place of a zero in D.

    >>> rushlight.linalg.ldl_factor_ex(rushlight.zeros(2, 2)).info
    tensor(1, dtype=torch.int32)
    """
    name = "torch.linalg.ldl_factor_ex" if check_errors else None
    return several("linalg_ldl_factor_ex", ops.linalg_ldl_factor(input, hermitian, name), out)


@_linalg
def ldl_solve(LD, pivots, B, *, hermitian=False, out=None):
    """X with A @ X = B, given ldl_factor(A).

    >>> rushlight.linalg.ldl_solve(*rushlight.linalg.ldl_factor(rushlight.eye(2)), rushlight.ones(2, 1))
    tensor([[1.],
            [1.]])
    """
    return solution(ops.linalg_ldl_solve(LD, pivots, B, hermitian), out, B)


# ---- QR


@_linalg
def qr(A, mode="reduced", *, out=None):
    """Q with orthonormal columns and upper triangular R, A = Q @ R; mode "reduced", "complete" or "r".

    >>> rushlight.linalg.qr(rushlight.eye(3, 2)).R.shape
    torch.Size([2, 2])
    """
    return several("linalg_qr", ops.linalg_qr(A, mode), out)


@_linalg
def householder_product(input, tau, *, out=None):
    """The first columns of the product of reflectors, as geqrf() leaves them.

    >>> rushlight.linalg.householder_product(rushlight.zeros(3, 2), rushlight.zeros(2)).shape
    torch.Size([3, 2])
    """
    return finish(ops.linalg_householder_product(input, tau), out)


# ---- eigenvalues and singular values


def _upper(UPLO, input):
    if isinstance(UPLO, str) and UPLO.upper() in ("L", "U"):
        return UPLO.upper() == "U"
    if isinstance(input, Tensor):
        ops.linalg_eigh(input.new_zeros(input.shape), False, False)  # matrices that are none are told first
    raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")


@_linalg
def eigh(input, UPLO="L", *, out=None):
    """Eigenvalues (ascending) and orthonormal eigenvectors of Hermitian matrices; reads one triangle.

    >>> rushlight.linalg.eigh(rushlight.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    tensor([1., 2.])
    """
    return several("linalg_eigh", ops.linalg_eigh(input, _upper(UPLO, input), True), out)


@_linalg
def eigvalsh(input, UPLO="L", *, out=None):
    """The eigenvalues of Hermitian matrices, ascending.

    >>> rushlight.linalg.eigvalsh(rushlight.tensor([[2.0, 0.0], [0.0, 1.0]]))
    tensor([1., 2.])
    """
    require_tensor("linalg_eigvalsh", input=input)
    return finish(ops.linalg_eigh(input, _upper(UPLO, input), records(input))[0], out)


@_linalg
def eig(input, *, out=None):
    """Eigenvalues and eigenvectors of square matrices, always complex.

    >>> rushlight.linalg.eig(rushlight.tensor([[0.0, -1.0], [1.0, 0.0]])).eigenvalues
    tensor([0.+1.j, 0.-1.j])
    """
    return several("linalg_eig", ops.linalg_eig(input, True, "linalg.eig"), out)


@_linalg
def eigvals(input, *, out=None):
    """The eigenvalues of square matrices, always complex.

    >>> rushlight.linalg.eigvals(rushlight.tensor([[0.0, -1.0], [1.0, 0.0]]))
    tensor([0.+1.j, 0.-1.j])
    """
    require_tensor("linalg_eigvals", input=input)
    recorded = records(input)
    name = "linalg.eig" if recorded and out is None else "linalg.eigvals"
    return finish(ops.linalg_eig(input, recorded, name)[0], out)


def _driver(name, driver):
    if driver is not None:
        raise RuntimeError(
            f"torch.linalg.{name}: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER "
            "backend."
        )


@_linalg
def svd(A, full_matrices=True, *, driver=None, out=None):
    """U, S (descending) and Vh with A = U @ diag(S) @ Vh.

    >>> rushlight.linalg.svd(rushlight.tensor([[0.0, 2.0], [1.0, 0.0]])).S
    tensor([2., 1.])
    """
    _driver("svd", driver)
    return several("linalg_svd", ops.linalg_svd(A, full_matrices, True), out)


@_linalg
def svdvals(A, *, driver=None, out=None):
    """The singular values, descending.

    >>> rushlight.linalg.svdvals(rushlight.tensor([[0.0, 2.0], [1.0, 0.0]]))
    tensor([2., 1.])
    """
    _driver("svd", driver)
    require_tensor("linalg_svdvals", A=A)
    return finish(ops.linalg_svd(A, False, records(A))[1], out)


# ---- functions of matrices


@public(method=True)
def matrix_exp(input):
    """The exponential of square matrices, sum of input**k / k!.

    >>> rushlight.linalg.matrix_exp(rushlight.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    if isinstance(input, Tensor) and input.ndim < 2:
        check_square("linalg.matrix_exp", input)
    if isinstance(input, Tensor) and input.dtype in (_C.float16, _C.bfloat16):
        since, result = _C.next_sequence(), ops.linalg_matrix_exp(input.to(_C.float32)).to(input.dtype)
        kept = {"self": _C.keep(input)}  # which may not be written to, though a wider copy is kept
        return _C.name_node(result, "LinalgMatrixExpBackward0", since, kept, (input,))
    return ops.linalg_matrix_exp(input)


def check_square(name, x, what="A"):
    """torch's errors for what is not a batch of square matrices."""
    if x.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor {what} must have at least 2 dimensions.")
    m, n = x.shape[-2:]
    if m != n:
        raise RuntimeError(
            f"{name}: {what} must be batches of square matrices, but they are {m} by {n} matrices"
        )


@_linalg
def matrix_power(input, n, *, out=None):
    """The n-th power of square matrices, of the inverse for negative n.

    >>> rushlight.linalg.matrix_power(rushlight.tensor([[1, 1], [0, 1]]), 5)
    tensor([[1, 5],
            [0, 1]])
    """
    n = n.__index__()
    check_square("linalg.matrix_power", input)
    if n == 0:
        unit = eye_like(input, input.shape[-1])
        result = input.clone(memory_format=contiguous_format).copy_(unit)
        return finish(result if out is None else result.detach(), out)
    inverted = n < 0
    if inverted:
        input, n = ops.linalg_inv(input, "linalg.inv")[0], -n
    if n == 1 and inverted:
        return finish(input, out, writer="linalg_inv_ex", exact=SAME_DTYPE)
    if n == 1:
        return finish(input.clone(memory_format=contiguous_format), out)
    product = {"writer": "matmul", "exact": SAME_DTYPE}
    if n == 3:
        return finish(_C.matmul(_C.matmul(input, input), input), out, **product)
    result, power, rest = None, input, n
    while rest:
        if rest & 1:
            result = power if result is None else _C.matmul(result, power)
        rest >>= 1
        if rest:
            power = _C.matmul(power, power)
    if isinstance(out, Tensor) and n > 2 and not n & (n - 1):  # a square is copied, and that is recorded
        if out.shape != result.shape or not _C.can_cast(result.dtype, out.dtype):
            finish(result.detach(), out)
        return out.copy_(result)
    return finish(result, out, **product)
