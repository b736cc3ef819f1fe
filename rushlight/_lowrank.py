"""Where torch has the decompositions of low rank, and the basis that they start from."""

from __future__ import annotations

from rushlight import _C
from rushlight.ops.lowrank import _basis
from rushlight.ops.lowrank import pca_lowrank as pca_lowrank
from rushlight.ops.lowrank import svd_lowrank as svd_lowrank


def get_approximate_basis(
    A: _C.Tensor, q: int, niter: int | None = 2, M: _C.Tensor | None = None
) -> _C.Tensor:
    """Orthonormal columns that nearly span the q largest singular directions of A - M.

    >>> rushlight._lowrank.get_approximate_basis(rushlight.eye(20, 10), 2).shape
    torch.Size([20, 2])
    """
    return _basis(A, q, 2 if niter is None else niter, M)
