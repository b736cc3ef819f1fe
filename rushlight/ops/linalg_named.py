"""Linear algebra under the names that torch has outside torch.linalg, most of them older."""

from __future__ import annotations

import math
from functools import partial

from rushlight import _C
from rushlight._type_names import type_name as class_name
from rushlight._warn import warn_once
from rushlight.ops import create, linalg
from rushlight.ops._examples import whole_batch
from rushlight.ops._public import Tensor, function, method, public, stumble, type_name, write_out
from rushlight.ops._rules import derivative
from rushlight.ops.layout import contiguous_format
from rushlight.ops.linalg import (
    check_castable,
    check_square,
    eye_like,
    finish,
    require_tensor,
    several,
    solution,
    unpack_lu,
)
from rushlight.ops.linalg_rules import _hn, _mh, _nh
from rushlight.ops.linalg_spectral import pseudoinverse

ops = _C.ops
_LAPACK = (_C.float32, _C.float64, _C.complex64, _C.complex128)


@public
def det(input):
    """The determinants of square matrices.

    >>> rushlight.det(rushlight.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor(-2.)
    """
    return ops.linalg_det(input)[0]


@public
def matrix_power(input, n, *, out=None):
    """The n-th power of square matrices, of the inverse for negative n.

    >>> rushlight.matrix_power(rushlight.tensor([[1, 1], [0, 1]]), 5)
    tensor([[1, 5],
            [0, 1]])
    """
    return linalg.matrix_power(input, n, out=out)


@public
def slogdet(input, *, out=None):
    """Sign and logarithm of the absolute value of the determinant.

    >>> rushlight.slogdet(rushlight.eye(2)).logabsdet
    tensor(0.)
    """
    return several("slogdet", ops.linalg_slogdet(input, "linalg.slogdet")[:2], out)


@public
def logdet(input):
    """The logarithm of the determinant; NaN where that is negative.

    >>> rushlight.logdet(rushlight.eye(2))
    tensor(0.)
    """
    require_tensor("logdet", input=input)
    check_square("logdet", input)
    sign, logs = ops.linalg_slogdet(input, "logdet")[:2]
    if input.dtype.is_complex:
        return sign.log() + logs
    return ops.where(sign == -1.0, float("nan"), logs)


@public
def inverse(input, *, out=None):
    """The inverses of square matrices.

    >>> rushlight.inverse(rushlight.tensor([[2.0]]))
    tensor([[0.5000]])
    """
    return finish(ops.linalg_inv(input, "linalg.inv")[0], out)


@public
def pinverse(input, rcond=1e-15):
    """The pseudoinverse; singular values up to rcond times the largest count as zero.

    >>> rushlight.pinverse(rushlight.tensor([[2.0], [0.0]]))
    tensor([[0.5000, 0.0000]])
    """
    return pseudoinverse(input, rcond)


@public
def cholesky(input, upper=False, *, out=None):
    """The triangular factor of Hermitian positive-definite matrices.

    Deprecated, as in torch: use linalg.cholesky.

    >>> rushlight.cholesky(rushlight.tensor([[4.0, 2.0], [2.0, 2.0]]))
    tensor([[2., 0.],
            [1., 1.]])
    """
    warn_once(
        "torch.cholesky is deprecated in favor of torch.linalg.cholesky and will be removed in a future "
        "PyTorch release.\nL = torch.cholesky(A)\nshould be replaced with\nL = torch.linalg.cholesky(A)\n"
        "and\nU = torch.cholesky(A, upper=True)\nshould be replaced with\nU = torch.linalg.cholesky(A).mH\n"
        "This transform will produce equivalent results for all valid (symmetric positive definite) inputs."
    )
    check_castable(input.dtype, out, "cholesky")
    square = input.dim() > 1 and input.size(-1) == input.size(-2)
    if not input.numel() and not (square and input.dtype in _LAPACK):
        return finish(ops.clone(input), out)  # no matrix, and none asked for
    check_square("cholesky", input)
    _check_kernel("cholesky_cpu", input)
    return finish(ops.linalg_cholesky(input, upper, "cholesky", "cholesky")[0], out)


def _check_kernel(kernel, input):
    """Refuses what LAPACK does not have, by torch's name of the kernel."""
    if input.dtype not in _LAPACK:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{type_name(input.dtype)}'")


@public
def cholesky_solve(input, input2, upper=False, *, out=None):
    """X with A @ X = input, given the Cholesky factor input2 of A.

    >>> rushlight.cholesky_solve(rushlight.ones(1, 1), rushlight.tensor([[2.0]]))
    tensor([[0.2500]])
    """
    require_tensor("cholesky_solve", input=input, input2=input2)
    L = input2
    if input.ndim < 2:
        raise RuntimeError(f"b should have at least 2 dimensions, but has {input.ndim} dimensions instead")
    if L.ndim < 2:
        raise RuntimeError(f"u should have at least 2 dimensions, but has {L.ndim} dimensions instead")
    _check_system(input, L, "cholesky_solve")
    _check_kernel("cholesky_solve_cpu", L)
    if upper:
        L = _mh(L)
    half = ops.solve_factor(L, input, False, True, False)
    return finish(ops.solve_factor(_mh(L), half, True, True, False), out)


def _check_system(b, A, name):
    """The checks of two solvers older than torch.linalg, in their words."""
    if b.dtype != A.dtype:
        raise RuntimeError(
            f"Expected b and A to have the same dtype, but found b of type {type_name(b.dtype)} and A of "
            f"type {type_name(A.dtype)} instead."
        )
    m, n = A.shape[-2:]
    if m != n:
        raise RuntimeError(f"A must be batches of square matrices, but they are {m} by {n} matrices")
    if b.shape[-2] != m:
        raise RuntimeError(
            f"Incompatible matrix sizes for {name}: each A matrix is {m} by {n} but each b matrix is "
            f"{b.shape[-2]} by {b.shape[-1]}"
        )


def _check_pivots(factor):
    factor = whole_batch(factor)
    zeros = [] if factor.is_meta else ops.eq(ops.diagonal(factor.detach(), 0, -2, -1), 0).nonzero().tolist()
    if zeros:
        *_, element = zeros[0]
        batch = factor.shape[:-2]
        nr = sum(at * math.prod(batch[d + 1 :]) for d, at in enumerate(zeros[0][:-1]))
        which = f"(Batch element {nr}): " if batch else ""
        raise _C._LinAlgError(
            f"cholesky_inverse: {which}The diagonal element {element + 1} is zero, the inversion could not "
            "be completed because the input matrix is singular."
        )


@public
def cholesky_inverse(input, upper=False, *, out=None):
    """The inverse of A, given its Cholesky factor.

    >>> rushlight.cholesky_inverse(rushlight.tensor([[2.0]]))
    tensor([[0.2500]])
    """
    require_tensor("cholesky_inverse", input=input)
    check_square("cholesky_inverse", input)
    _check_kernel("cholesky_inverse_out_cpu", input)
    _check_pivots(input)
    unit = eye_like(input, input.shape[-1])
    half = ops.solve_factor(input, unit, upper, True, False)
    result = _nh(half, half) if upper else _hn(half, half)
    return finish(result.mT.contiguous().mT, out)


@public
def qr(input, some=True, *, out=None):
    """Q and R; with some=False Q is square.

    Deprecated, as in torch: use linalg.qr.

    >>> rushlight.qr(rushlight.eye(2))[1].shape
    torch.Size([2, 2])
    """
    warn_once(
        "torch.qr is deprecated in favor of torch.linalg.qr and will be removed in a future PyTorch "
        "release.\n"
        "The boolean parameter 'some' has been replaced with a string parameter 'mode'.\n"
        "Q, R = torch.qr(A, some)\nshould be replaced with\n"
        "Q, R = torch.linalg.qr(A, 'reduced' if some else 'complete')"
    )
    return several("qr", ops.linalg_qr(input, "reduced" if some else "complete"), out)


@public
def svd(input, some=True, compute_uv=True, *, out=None):
    """U, S and V (not its conjugate transpose) with input = U @ diag(S) @ V.mH.

    >>> rushlight.svd(rushlight.eye(2)).S
    tensor([1., 1.])
    """
    require_tensor("svd", input=input)
    if input.ndim < 2:
        raise RuntimeError(
            f"linalg.svd: input should have at least 2 dimensions, but has {input.ndim} dimensions instead"
        )
    if compute_uv:
        U, S, Vh = ops.linalg_svd(input, not some, True)
        return several("svd", (U, S, Vh.mH), out)
    S = linalg.svdvals(input)
    m, n = input.shape[-2:]
    U, V = input.new_zeros((*input.shape[:-2], m, m)), input.new_zeros((*input.shape[:-2], n, n)).mT
    return several("svd", (U, S, V), out)


@function
def lu(A, pivot=True, get_infos=False, *, out=None):
    """The compact LU and its pivots, and the infos if asked for.

    Deprecated, as in torch: use linalg.lu_factor.

    >>> rushlight.lu(rushlight.tensor([[2.0, 1.0], [1.0, 1.0]]))[0]
    tensor([[2.0000, 1.0000],
            [0.5000, 0.5000]])
    """
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")
    warn_once(
        "torch.lu is deprecated in favor of torch.linalg.lu_factor / torch.linalg.lu_factor_ex and will be "
        "removed in a future PyTorch release.\nLU, pivots = torch.lu(A, compute_pivots)\n"
        "should be replaced with\nLU, pivots = torch.linalg.lu_factor(A, compute_pivots)\nand\n"
        "LU, pivots, info = torch.lu(A, compute_pivots, get_infos=True)\nshould be replaced with\n"
        "LU, pivots, info = torch.linalg.lu_factor_ex(A, compute_pivots)"
    )
    LU, pivots, info = ops.linalg_lu_factor(A, "torch.lu_factor", None)
    result = (LU, pivots, info) if get_infos else (LU, pivots)
    if out is not None:
        return type(out)([write_out(o, r, writer="lu") for r, o in zip(result, _outputs(result, out))])
    return several("_lu_with_info", result) if get_infos else result


def _outputs(result, out):
    """The `out` of a function that torch has in Python, which asks for its length before its elements."""
    if isinstance(out, Tensor):
        raise TypeError("argument 'out' must be tuple of Tensors, not Tensor")
    if len(out) != len(result):
        raise TypeError(f"expected tuple of {len(result)} elements but got {len(out)}")
    if not isinstance(out, (tuple, list)):
        raise TypeError(f"argument 'out' must be tuple of Tensors, not {class_name(out)}")
    for one in out:
        stumble(one, "resize_as_")
    return out


@method(name="lu")
def _lu_method(self, pivot=True, get_infos=False):
    """rushlight.lu() as a plain tuple.

    >>> rushlight.eye(2).lu()[1]
    tensor([1, 2], dtype=torch.int32)
    """
    return tuple(lu(self, pivot, get_infos))


@public
def lu_solve(input, LU_data, LU_pivots, *, out=None):
    """X with A @ X = input, given the compact LU of A.

    Deprecated, as in torch: use linalg.lu_solve.

    >>> rushlight.lu_solve(rushlight.ones(2, 1), *rushlight.lu(rushlight.eye(2)))
    tensor([[1.],
            [1.]])
    """
    warn_once(
        "torch.lu_solve is deprecated in favor of torch.linalg.lu_solve"
        "and will be removed in a future PyTorch release.\n"
        "Note that torch.linalg.lu_solve has its arguments reversed.\n"
        "X = torch.lu_solve(B, LU, pivots)\nshould be replaced with\n"
        "X = torch.linalg.lu_solve(LU, pivots, B)"
    )
    result = ops.linalg_lu_solve(LU_data, LU_pivots, input, True, False)
    return solution(result, out, input)


@function
def lu_unpack(LU_data, LU_pivots, unpack_data=True, unpack_pivots=True, *, out=None):
    """P, L and U from the compact form of lu_factor(); empty tensors for what is not asked for.

    >>> rushlight.lu_unpack(*rushlight.linalg.lu_factor(rushlight.eye(2))).L
    tensor([[1., 0.],
            [0., 1.]])
    """
    require_tensor("lu_unpack", LU_data=LU_data, LU_pivots=LU_pivots)
    if LU_data.ndim < 2:
        raise RuntimeError(
            f"torch.lu_unpack: Expected tensor with 2 or more dimensions. Got size: {list(LU_data.shape)} "
            "instead"
        )
    if unpack_pivots and LU_pivots.dtype != _C.int32:
        raise RuntimeError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\nNote: "
            "this function is intended to be used with the output produced by torch.linalg.lu_factor"
        )
    return several("lu_unpack", unpack_lu(LU_data, LU_pivots, unpack_data, unpack_pivots), out)


def _triangular(A, b, upper, transpose, unitriangular):
    factor, up = (A.mT, not upper) if transpose else (A, upper)
    return ops.linalg_solve_triangular(factor, b, up, True, unitriangular)


@public
def triangular_solve(input, A, upper=True, transpose=False, unitriangular=False, *, out=None):
    """X with A @ X = input for triangular A (A.T for A if `transpose`), and a copy of A.

    Deprecated, as in torch: use linalg.solve_triangular.

    >>> rushlight.triangular_solve(rushlight.ones(1, 1), rushlight.tensor([[2.0]]))[0]
    tensor([[0.5000]])
    """
    require_tensor("triangular_solve", input=input, A=A)
    b = input
    for which, x in (("b", b), ("A", A)):
        if x.ndim < 2:
            raise RuntimeError(
                f"torch.triangular_solve: Expected {which} to have at least 2 dimensions, but it has "
                f"{x.ndim} dimensions instead"
            )
    _check_system(b, A, "triangular_solve")
    warn_once(
        "torch.triangular_solve is deprecated in favor of torch.linalg.solve_triangular"
        "and will be removed in a future PyTorch release.\n"
        "torch.linalg.solve_triangular has its arguments reversed and does not return a copy of one of the "
        "inputs.\nX = torch.triangular_solve(B, A).solution\nshould be replaced with\n"
        "X = torch.linalg.solve_triangular(A, B)."
    )
    if _C.is_compressed(A):
        if A.layout not in (create.sparse_csr, create.sparse_bsr):
            raise ValueError("triangular_solve: unsupported sparse layout.")
        whole = A.to_dense()
        return several("triangular_solve", (_triangular(whole, b, upper, transpose, unitriangular),
                                            b.new_empty(0)), out)  # fmt: skip
    if out is None and _C.is_grad_enabled() and (b.requires_grad or A.requires_grad):
        solve = partial(_solved, upper=upper, transpose=transpose, unitriangular=unitriangular)
        result = ops.triangular_solve(b, A, solve, upper, transpose, unitriangular)
    else:
        result = _solved(b, A, upper, transpose, unitriangular)
    return several("triangular_solve", result, out)


def _solved(b, A, upper, transpose, unitriangular):
    X = _triangular(A, b, upper, transpose, unitriangular)
    whole = A.expand(*X.shape[:-2], *A.shape[-2:])
    return X, whole.mT.clone(memory_format=contiguous_format).mT


def _to_system(g_solution, g_copy, A, solution, upper, transpose, unitriangular, needs):
    g_b = g_A = None
    if g_solution is not None:
        g_b = _triangular(A.conj(), g_solution, upper, not transpose, unitriangular)
    if needs[1]:
        g_A = g_copy
        if g_b is not None:
            adjoint = (solution @ g_b.mH).conj() if transpose else g_b @ solution.mH
            part = -(adjoint.triu(int(unitriangular)) if upper else adjoint.tril(-int(unitriangular)))
            g_A = part if g_A is None else g_A + part
    return g_b, g_A


derivative(
    "triangular_solve",
    _to_system,
    undefined=True,
    shows="b",
    node="TriangularSolveBackward0",
    packs="A b",
)


@public
def geqrf(input, *, out=None):
    """QR as LAPACK leaves it: R and the reflectors in one matrix, and the reflectors' scales.

    >>> rushlight.geqrf(rushlight.eye(2)).tau
    tensor([0., 0.])
    """
    return several("geqrf", ops.geqrf(input), out)


@public
def orgqr(input, input2, *, out=None):
    """The first columns of the product of reflectors; linalg.householder_product.

    >>> rushlight.orgqr(rushlight.zeros(1, 1), rushlight.zeros(1))
    tensor([[1.]])
    """
    return finish(ops.linalg_householder_product(input, input2), out)


@public
def ormqr(input, input2, input3, left=True, transpose=False, *, out=None):
    """Q @ input3, Q being the square product of the reflectors in input and input2; see geqrf().

    >>> rushlight.ormqr(rushlight.zeros(1, 1), rushlight.zeros(1), rushlight.ones(1, 1))
    tensor([[1.]])
    """
    return finish(ops.ormqr(input, input2, input3, left, transpose), out)
