"""Products of matrices that may be sparse or left out, from which torch builds its iterations.

>>> S = rushlight.eye(3, 2)
>>> rushlight._linalg_utils.qform(None, S)
tensor([[1., 0.],
        [0., 1.]])
"""

from __future__ import annotations

from rushlight import _C

Tensor = _C.Tensor


def is_sparse(A: Tensor) -> bool:
    """Whether a tensor is one of coordinates."""
    if not isinstance(A, Tensor):
        raise TypeError(f"expected Tensor but got {type(A)}")
    return A.is_sparse


def get_floating_dtype(A: Tensor) -> _C.dtype:
    """The dtype to compute in: float32 for what is not floating."""
    known = A.dtype in (_C.float16, _C.float32, _C.float64)
    return A.dtype if known else _C.float32


def matmul(A: Tensor | None, B: Tensor) -> Tensor:
    """A @ B, of which A may be None for the identity."""
    return B if A is None else A @ B


def bform(X: Tensor, A: Tensor | None, Y: Tensor) -> Tensor:
    """The bilinear form X^T A Y."""
    return matmul(X.mT, matmul(A, Y))


def qform(A: Tensor | None, S: Tensor) -> Tensor:
    """The quadratic form S^T A S."""
    return bform(S, A, S)


def basis(A: Tensor) -> Tensor:
    """Orthonormal columns that span those of A."""
    from rushlight import linalg

    return linalg.qr(A).Q


def symeig(A: Tensor, largest: bool | None = False) -> tuple[Tensor, Tensor]:
    """Eigenvalues and vectors of a Hermitian matrix, the smallest first, or the largest."""
    from rushlight import linalg

    values, vectors = linalg.eigh(A, UPLO="U")
    return (values.flip(-1), vectors.flip(-1)) if largest else (values, vectors)
