"""Derivatives of the factorisations and solvers that LAPACK computes.

Every rule is written with differentiable functions, so second derivatives follow. A.mH is the conjugate
transpose; `_hn(a, b)` is a.mH @ b and `_nh(a, b)` is a @ b.mH without making the transposed matrix.
"""

from __future__ import annotations

from rushlight import _C
from rushlight.ops._examples import somewhere
from rushlight.ops._public import FUNCTIONS
from rushlight.ops._rules import derivative, no_derivative
from rushlight.ops._tangents import followed
from rushlight.ops.reduce import _product_of_others

ops = _C.ops
_matmul = _C.matmul


def _hn(a, b):
    return ops.mm_hn(a, b) if a.ndim == 2 and b.ndim == 2 else ops.matmul_nd_hn(a, b)


def _nh(a, b):
    return ops.mm_nh(a, b) if a.ndim == 2 and b.ndim == 2 else ops.matmul_nd_nh(a, b)


def _mh(x):
    x = x.mT
    return x.conj() if x.dtype.is_complex else x


def _conj(x):
    return x.conj() if x.dtype.is_complex else x


def _real(x):
    return x.real if x.dtype.is_complex else x


def _diag(x):
    return x.diagonal(dim1=-2, dim2=-1)


def _embed(d):
    return FUNCTIONS["diag_embed"](d)


def _triangular(A, B, upper, left=True, unit=False):
    return ops.linalg_solve_triangular(A, B, upper, left, unit)


def eye_like(x, n):
    """The n x n identity in x's dtype and device."""
    return FUNCTIONS["eye"](n, dtype=x.dtype, device=x.device)


# ---- Cholesky, LU and what is solved with them


def _cholesky(g_L, L, upper):
    if upper:
        g_L, L = _mh(g_L), _mh(L)
    inner = _hn(L, g_L)
    symmetric = (ops.tril(inner, 0) + _mh(ops.tril(inner, -1))) * 0.5
    return _triangular(L, _triangular(_mh(L), symmetric, True), False, left=False)


derivative("linalg_cholesky", A=_cholesky, node="LinalgCholeskyExBackward0")


def _rows_in_order(x, order):
    """The rows of every matrix of x in the given order."""
    return ops.gather(x, order.unsqueeze(-1).expand(*order.shape, x.shape[-1]), x.ndim - 2)


def _permuted(x, pivots, rows):
    """P @ x for the P of A = P @ L @ U."""
    return _rows_in_order(x, ops.sort(ops.lu_permutation(pivots, rows), -1, False)[1])


def _unit_lower(LU):
    k = min(LU.shape[-2:])
    return ops.tril(LU.narrow(-1, 0, k), -1) + FUNCTIONS["eye"](
        LU.shape[-2], k, dtype=LU.dtype, device=LU.device
    )


def _lu_factor(g_LU, LU, pivots):
    return _permuted(_to_rows(g_LU, LU), pivots, LU.shape[-2])


def _to_rows(g_LU, LU):
    """The gradient of the rows of A in the order of the pivots."""
    m, n = LU.shape[-2:]
    k = min(m, n)
    square, g = LU.narrow(-2, 0, k).narrow(-1, 0, k), g_LU.narrow(-2, 0, k).narrow(-1, 0, k)
    L, U = _unit_lower(square), ops.triu(square, 0)
    g_lower, g_upper = ops.tril(g, -1), ops.triu(g, 0)
    rest = None
    if m > n:  # the lower rows of A are L2 @ U
        L2 = LU.narrow(-2, k, m - k)
        rest = _triangular(_mh(U), g_LU.narrow(-2, k, m - k), False, left=False)
        g_upper = g_upper - ops.triu(_hn(L2, rest), 0)
    elif n > m:  # the right columns of A are L @ U2
        U2 = LU.narrow(-1, k, n - k)
        rest = _triangular(_mh(L), g_LU.narrow(-1, k, n - k), True, unit=True)
        g_lower = g_lower - ops.tril(_nh(rest, U2), -1)
    inner = ops.tril(_hn(L, g_lower), -1) + ops.triu(_nh(g_upper, U), 0)
    result = _triangular(_mh(L), _triangular(_mh(U), inner, False, left=False), True, unit=True)
    if rest is not None:
        result = FUNCTIONS["cat"]((result, rest), -2 if m > n else -1)
    return result


def _lu(g_L, g_U, P, L, U):
    k = L.shape[-1]
    LU, g = (_joined(ops.tril(lower, -1), ops.triu(upper, 0)) for lower, upper in ((L, U), (g_L, g_U)))
    return _matmul(P, _to_rows(g, LU)) if k else LU


def _joined(lower, upper):
    """One matrix of the size of both of a strictly lower and an upper one."""
    rows, columns = lower.shape[-2], upper.shape[-1]
    pad = FUNCTIONS["constant_pad_nd"]
    return pad(lower, (0, columns - lower.shape[-1])) + pad(upper, (0, 0, 0, rows - upper.shape[-2]))


derivative("linalg_lu_factor", A=_lu_factor, node="LinalgLuFactorExBackward0")
derivative("linalg_lu", A=_lu, node="LinalgLuBackward0", packs="L P U")


def _matrix_gradient(g_B, X, left):
    """The gradient of A in A X = B (or X A = B), given that of B."""
    return -_nh(g_B, X) if left else -_hn(X, g_B)


def _lu_solve(g, LU, pivots, out, left, adjoint, needs):
    g_B = ops.linalg_lu_solve(LU, pivots, g, left, not adjoint)
    if not needs[0]:
        return None, None, g_B
    g_A = _matrix_gradient(g_B, out, left)
    if adjoint:
        g_A = _mh(g_A)
    if g_A.ndim > LU.ndim or g_A.shape != LU.shape:
        g_A = g_A.sum_to_size(LU.shape)
    inner = _rows_in_order(g_A, ops.lu_permutation(pivots, LU.shape[-2]))
    g_LU = ops.tril(_nh(inner, ops.triu(LU, 0)), -1) + ops.triu(_hn(_unit_lower(LU), inner), 0)
    return g_LU, None, g_B


derivative("linalg_lu_solve", _lu_solve, constant="pivots")


def _solve(g_result, A, result, B_shape, LU, pivots, left, needs):
    vector = len(B_shape) == 1 or (A.ndim - 1 == len(B_shape) and tuple(B_shape) == tuple(A.shape[:-1]))
    if vector:
        g_result, result = g_result.unsqueeze(-1), result.unsqueeze(-1)
    if _C.is_grad_enabled():
        g_B = ops.linalg_solve(_mh(A), g_result, left, "linalg.solve", None)[0]
    else:
        g_B = ops.linalg_lu_solve(LU, pivots, g_result, left, True)
    g_A = _matrix_gradient(g_B, result, left) if needs[0] else None
    return g_A, g_B.squeeze(-1) if vector else g_B


derivative(
    "linalg_solve",
    _solve,
    node="LinalgSolveExBackward0",
    packs="LU pivots result",
    recorded=followed(2),
)
derivative(
    "linalg_inv", A=lambda g_inverse, inverse: -_hn(inverse, _nh(g_inverse, inverse)),
    node="LinalgInvExBackward0",
)  # fmt: skip


def _solve_triangular(g, A, out, upper, left, unitriangular, needs):
    g_B = _triangular(_mh(A), g, not upper, left, unitriangular)
    if not needs[0]:
        return None, g_B
    g_A = _matrix_gradient(g_B, out, left)
    return (ops.triu(g_A, int(unitriangular)) if upper else ops.tril(g_A, -int(unitriangular))), g_B


derivative("linalg_solve_triangular", _solve_triangular, recorded=followed(2))


def _solve_factor(g, A, out, upper, left, unitriangular, needs):
    g_B = ops.solve_factor(_mh(A), g, not upper, left, unitriangular)
    return _matrix_gradient(g_B, out, left) if needs[0] else None, g_B


# A triangular solve as a step of a function of A = L L^H, in which every element of L counts, the zeros too.
derivative("solve_factor", _solve_factor)


def _by_inverse_adjoint(scale, A):
    """scale times the adjoint of the inverse of A; where it is recorded in torch's steps."""
    if not _C.is_grad_enabled():
        return scale.unsqueeze(-1).unsqueeze(-1) * _mh(ops.linalg_inv(A, None)[0])
    scaled = FUNCTIONS["diag_embed"](scale.unsqueeze(-1).expand(A.shape[:-1]))
    return ops.linalg_solve(_mh(A), scaled.mT, True, "linalg.solve", None)[0]


def _det(g_result, A, result):
    if A.shape[-1] == 1:  # the element itself
        return g_result.unsqueeze(-1).unsqueeze(-1)
    regular = ops.ne(result, 0)
    if A.is_meta or not somewhere(ops.eq(result, 0)):
        return _by_inverse_adjoint(g_result * _conj(result), A)
    if (
        A.ndim > 2 and not _C.is_leveled(A) and bool(ops.any(regular, None, False))
    ):  # the singular ones must not spoil the others
        gradient = A.new_zeros(A.shape)
        for part in (regular, ops.logical_not(regular)):
            gradient = gradient.index_put((part,), _det(g_result[part], A[part], result[part]))
        return gradient
    # At a singular matrix the gradient is still the adjugate: det(U Vh) U diag(products of the others) Vh.
    U, S, Vh = ops.linalg_svd(A, False, True)
    phase = g_result * _conj(ops.linalg_det(U)[0] * ops.linalg_det(Vh)[0])
    if not S.shape[-1]:
        return A.new_zeros(A.shape)
    return phase.unsqueeze(-1).unsqueeze(-1) * _matmul(
        U * _product_of_others(S, S.ndim - 1).unsqueeze(-2), Vh
    )


def _slogdet(g_sign, g_logabsdet, A, sign):
    scale = g_logabsdet
    if sign.dtype.is_complex:
        scale = FUNCTIONS["complex"](g_logabsdet, (g_sign * sign.conj()).imag)
    return _by_inverse_adjoint(scale, A)


derivative("linalg_det", A=_det, shows="LU pivots", packs="LU pivots result")
derivative("linalg_slogdet", A=_slogdet, shows="LU pivots", packs="LU pivots sign")
no_derivative("lu_permutation", "linalg_lstsq")


# ---- QR and its reflectors


def _qr(g_Q, g_R, Q, R, mode):
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use "
            "linalg.qr(A, mode='reduced') if you are going to differentiate through linalg.qr."
        )
    m, n = Q.shape[-2], R.shape[-1]
    if mode == "complete" and m > n:
        raise RuntimeError(
            "The QR decomposition is not differentiable when mode='complete' and nrows > ncols."
        )
    k, rest = R.shape[-2], None
    if n > k:  # A = Q [R1 R2]: the right columns are linear in Q and R2
        g_R2, R2 = g_R.narrow(-1, k, n - k), R.narrow(-1, k, n - k)
        rest = _matmul(Q, g_R2)
        g_Q = g_Q + _nh(_matmul(Q, R2), g_R2)
        R, g_R = R.narrow(-1, 0, k), g_R.narrow(-1, 0, k)
    inner = _nh(g_R, R) - _hn(Q, g_Q)
    half = (ops.triu(inner, 0) + ops.triu(inner, 1)) * 0.5
    result = _triangular(_mh(R), g_Q + _matmul(Q, half + _mh(half)), False, left=False)
    return result if rest is None else FUNCTIONS["cat"]((result, rest), -1)


derivative("linalg_qr", A=_qr)


def _no_geqrf(gs):
    raise NotImplementedError("the derivative for 'geqrf' is not implemented.")


derivative("geqrf", input=_no_geqrf)


def _reflectors(input, k):
    """The vectors of the reflectors, as columns: ones on the diagonal, zeros above."""
    m = input.shape[-2]
    columns = ops.tril(input.narrow(-1, 0, k), -1)
    return columns + FUNCTIONS["eye"](m, k, dtype=input.dtype, device=input.device)


def _householder_gradient(g, input, tau, n):
    """Of Q = H1 ... Hk E, E being the first n columns of the identity and Hi = 1 - tau vi vi.mH."""
    k, m = tau.shape[-1], input.shape[-2]
    V = _reflectors(input, k)
    states = [FUNCTIONS["eye"](m, n, dtype=input.dtype, device=input.device).expand(*input.shape[:-2], m, n)]
    for i in range(k - 1, 0, -1):
        v, t = V.narrow(-1, i, 1), tau.narrow(-1, i, 1).unsqueeze(-1)
        states.append(states[-1] - _matmul(t * v, _hn(v, states[-1])))
    columns, scales = [], []
    for i in range(k):
        v, t, state = V.narrow(-1, i, 1), tau.narrow(-1, i, 1).unsqueeze(-1), states[k - 1 - i]
        w = _hn(state, v)
        g_w, v_g = _matmul(g, w), _hn(v, g)
        scales.append(-_hn(v, g_w).squeeze(-1))
        columns.append(-(_conj(t) * g_w) - t * _nh(state, v_g))
        g = g - _matmul(_conj(t) * v, v_g)
    if not k:
        return input.new_zeros(input.shape), tau.new_zeros(tau.shape)
    g_input = ops.tril(FUNCTIONS["cat"](columns, -1), -1)
    missing = input.shape[-1] - k
    if missing:
        g_input = FUNCTIONS["cat"]((g_input, g_input.new_zeros((*input.shape[:-1], missing))), -1)
    return g_input, FUNCTIONS["cat"](scales, -1)


derivative(
    "linalg_householder_product",
    lambda g, input, tau: _householder_gradient(g, input, tau, input.shape[-1]),
    shows="out",
)


def _ormqr(g, input, tau, other, left, transpose, needs):
    g_other = ops.ormqr(input, tau, g, left, not transpose) if needs[2] else None
    if not (needs[0] or needs[1]):
        return None, None, g_other
    g_Q = _nh(g, other) if left else _hn(other, g)
    if transpose:
        g_Q = _mh(g_Q)
    g_input, g_tau = _householder_gradient(g_Q, input, tau, input.shape[-2])
    return g_input, g_tau, g_other


derivative("ormqr", _ormqr, shows="out", packs="tau other input")


def _no_ldl(name):
    def rule(gs):
        raise RuntimeError(f"derivative for aten::{name} is not implemented")

    return rule


derivative("linalg_ldl_factor", A=_no_ldl("linalg_ldl_factor_ex"), node="torch::autograd::NotImplemented")
derivative(
    "linalg_ldl_solve",
    LD=_no_ldl("linalg_ldl_solve"),
    pivots=_no_ldl("linalg_ldl_solve"),
    B=_no_ldl("linalg_ldl_solve"),
    node="torch::autograd::NotImplemented",
)


# ---- eigenvalues and singular values

_PHASE = "are specified up to multiplication by e^{i phi}. The specified loss function depends on this"


def _close_to_zero(x, scale):
    """Whether x vanishes but for rounding; a wider tolerance in single precision."""
    if x.is_meta or not x.numel():
        return True
    tolerance = 1e-2 if x.dtype == _C.float32 else 1e-5
    return not somewhere(~(x.detach().abs() <= tolerance * (1 + scale.detach().abs())))


def _differences(values):
    """values[k] - values[j] at [j, k], and 1 on the diagonal, where what is divided is zero."""
    gaps = values.unsqueeze(-2) - values.unsqueeze(-1)
    return gaps + eye_like(values, values.shape[-1])


def _skew(x):
    return x - _mh(x)


def _eigh(g_eigenvalues, g_eigenvectors, eigenvalues, eigenvectors):
    V = eigenvectors
    if g_eigenvalues is None and g_eigenvectors is None:
        return None
    if g_eigenvectors is None:
        return _nh(V * g_eigenvalues.unsqueeze(-2), V)
    inner = _hn(V, g_eigenvectors)
    if inner.dtype.is_complex:
        diagonal = _diag(inner).imag
        if not _close_to_zero(diagonal, diagonal * 0):
            raise RuntimeError(
                f"linalg_eigh_backward: The eigenvectors in the complex case {_PHASE} quantity, so it is "
                "ill-defined."
            )
    # Only Hermitian changes of A count; the gradient is one of them.
    inner = _skew(inner) / (2 * _differences(eigenvalues))
    inner = inner - _embed(_diag(inner))
    if g_eigenvalues is not None:
        inner = inner + _embed(g_eigenvalues)
    return _matmul(V, _nh(inner, V))


derivative("linalg_eigh", A=_eigh, undefined=True)


def _eig(g_eigenvalues, g_eigenvectors, eigenvalues, eigenvectors, A_shape):
    V = eigenvectors
    if g_eigenvalues is None and g_eigenvectors is None:
        return None
    if g_eigenvectors is None:
        inner = _embed(g_eigenvalues)
    else:
        overlap = _hn(V, g_eigenvectors)
        diagonal = _diag(overlap)
        if not _close_to_zero(diagonal.imag, diagonal.real):
            raise RuntimeError(
                f"linalg_eig_backward: The eigenvectors in the complex case {_PHASE} quantity, so it is "
                "ill-defined."
            )
        # The vectors have norm 1, so what changes their length does not count.
        inner = overlap - _hn(V, V * diagonal.real.unsqueeze(-2))
        inner = inner / _conj(_differences(eigenvalues))
        inner = inner - _embed(_diag(inner))
        if g_eigenvalues is not None:
            inner = inner + _embed(g_eigenvalues)
    return ops.linalg_solve(_mh(V), _nh(inner, V), True, "linalg.solve", None)[0]


derivative("linalg_eig", A=_eig, undefined=True)


def _svd(g_U, g_S, g_Vh, A_shape, U, S, Vh, full_matrices, vectors):
    if g_U is None and g_S is None and g_Vh is None:
        return None
    m, n = A_shape[-2:]
    k = min(m, n)
    if not vectors:
        raise RuntimeError("the derivative of the singular values needs the singular vectors")
    U, Vh = U.narrow(-1, 0, k), Vh.narrow(-2, 0, k)
    if g_U is None and g_Vh is None:
        return _matmul(U * g_S.unsqueeze(-2), Vh)
    left = right = None
    if g_U is not None:
        g_U = g_U.narrow(-1, 0, k)
        left = _hn(U, g_U)
    if g_Vh is not None:
        g_Vh = g_Vh.narrow(-2, 0, k)
        right = _nh(Vh, g_Vh)
    if U.dtype.is_complex:
        phase = 0
        for part in (left, right):
            if part is not None:
                phase = phase + _diag(part).imag
        if not _close_to_zero(phase, phase * 0):
            raise RuntimeError(
                f"svd_backward: The singular vectors in the complex case {_PHASE} phase term, making it "
                "ill-defined."
            )
    row, column = S.unsqueeze(-2), S.unsqueeze(-1)
    gaps = (row - column) * (row + column) + eye_like(S, k)
    inner = 0
    if left is not None:
        inner = inner + _skew(left) / gaps * row
    if right is not None:
        inner = inner + column * _skew(right) / gaps
    inner = inner - _embed(_diag(inner))
    if U.dtype.is_complex and left is not None:
        half = left if right is None else (left - right) * 0.5
        inner = inner + _embed(_imaginary(_diag(half)) / S)
    if g_S is not None:
        inner = inner + _embed(g_S)
    if m > k and left is not None:
        outside = (g_U - _matmul(U, left)) / row
        result = _matmul(_matmul(U, inner) + outside, Vh)
    else:
        result = _matmul(U, _matmul(inner, Vh))
    if n > k and right is not None:
        outside = (g_Vh - _matmul(_mh(right), Vh)) / column
        result = result + _matmul(U, outside)
    return result


def _imaginary(x):
    """i times the imaginary part."""
    return FUNCTIONS["complex"](x.real * 0, x.imag)


derivative("linalg_svd", A=_svd, undefined=True, packs="S U Vh")


# ---- the exponential, the pseudoinverse, least squares


def _matrix_exp(g, A):
    """The upper right block of exp([[A.mH, g], [0, A.mH]]) is the derivative's adjoint applied to g."""
    n = A.shape[-1]
    A, cat = _mh(A), FUNCTIONS["cat"]
    top, bottom = cat((A, g), -1), cat((A.new_zeros(A.shape), A), -1)
    return ops.linalg_matrix_exp(cat((top, bottom), -2)).narrow(-2, 0, n).narrow(-1, n, n)


derivative("linalg_matrix_exp", A=_matrix_exp)


def pinv_gradient(g, A, P):
    """Of the pseudoinverse P of A, where the rank does not change."""
    direct = _hn(P, _nh(g, P))
    gh = _mh(g)
    first = _nh(_matmul(gh, P), P)
    second = _hn(P, _matmul(P, gh))
    return -direct + first - _matmul(A, _matmul(P, first)) + second - _matmul(_matmul(second, P), A)


derivative("linalg_pinv", A=lambda g, A, out: pinv_gradient(g, A, out))


def _lstsq(g_solution, g_residuals, A, B, solution, needs):
    g_A = g_B = None
    if g_solution is not None:
        from rushlight.ops.linalg_spectral import pinv

        P = pinv(A)
        if needs[0]:
            g_A = pinv_gradient(_nh(g_solution, B), A, P)
        g_B = _hn(P, g_solution)
    if g_residuals is not None and g_residuals.numel():
        residual = 2 * (B - _matmul(A, solution)) * g_residuals.unsqueeze(-2)
        g_B = residual if g_B is None else g_B + residual
        if needs[0]:
            part = -_nh(residual, solution)
            g_A = part if g_A is None else g_A + part
    return g_A, g_B


derivative("linalg_lstsq_given", _lstsq, undefined=True, node="LinalgLstsqBackward0", packs="B A")
