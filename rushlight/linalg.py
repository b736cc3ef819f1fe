"""Linear algebra, as torch.linalg names it."""

from rushlight import _C
from rushlight._C import _LinAlgError as LinAlgError
from rushlight._kinds import make_builtin as _make_builtin
from rushlight.ops._direct import LINALG as _LINALG
from rushlight.ops._public import under as _under
from rushlight.ops.contract import linalg_cross as _cross
from rushlight.ops.contract import multi_dot
from rushlight.ops.linalg import (
    cholesky,
    cholesky_ex,
    det,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    householder_product,
    inv,
    inv_ex,
    ldl_factor,
    ldl_factor_ex,
    ldl_solve,
    lu,
    lu_factor,
    lu_factor_ex,
    lu_solve,
    matrix_power,
    qr,
    slogdet,
    solve,
    solve_ex,
    solve_triangular,
    svd,
    svdvals,
)
from rushlight.ops.linalg import matrix_exp as _matrix_exp
from rushlight.ops.linalg_spectral import (
    _powsum,
    cond,
    diagonal,
    lstsq,
    matrix_norm,
    matrix_rank,
    norm,
    pinv,
    tensorinv,
    tensorsolve,
    vander,
    vecdot,
)
from rushlight.ops.matmul import matmul as _matmul
from rushlight.ops.reduce import vector_norm as _vector_norm

__all__ = [
    "LinAlgError", "cholesky", "cholesky_ex", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals",
    "eigvalsh", "householder_product", "inv", "inv_ex", "ldl_factor", "ldl_factor_ex", "ldl_solve", "lstsq",
    "lu", "lu_factor", "lu_factor_ex", "lu_solve", "matmul", "matrix_exp", "matrix_norm", "matrix_power",
    "matrix_rank", "multi_dot", "norm", "pinv", "qr", "slogdet", "solve", "solve_ex", "solve_triangular",
    "svd", "svdvals", "tensorinv", "tensorsolve", "vander", "vecdot", "vector_norm",
]  # fmt: skip

# Not rushlight.matrix_exp: errors name the one that was called.
cross, matmul = _under(_cross, "cross"), _under(_matmul, "matmul")
matrix_exp = _C.Function(_matrix_exp.__wrapped__)
vector_norm = _C.Function(_vector_norm)
norm.direct, vector_norm.direct = _LINALG["norm"], _LINALG["vector_norm"]

_make_builtin([_powsum, *(globals()[_each] for _each in __all__)])
