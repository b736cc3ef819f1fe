"""Operations on sparse tensors that torch has under `torch.ops.aten` only."""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight import _C

Tensor = _C.Tensor


def _unsafe(
    indices: Tensor, values: Tensor, size: Any, *, is_coalesced: Any = None, **options: Any
) -> Tensor:
    return _tensors(indices.shape[0], values.dim() - 1, size, indices, values, is_coalesced=is_coalesced)


def _with_dims(sparse_dim: int, dense_dim: int, size: Any, *, dtype: Any = None, **options: Any) -> Tensor:
    from rushlight._sparse.tensor import empty
    from rushlight.ops.sparse_forms import check_dims

    check_dims(size, sparse_dim, dense_dim)
    return empty(size, dtype or _C.get_default_dtype(), _C.as_device("cpu"), sparse_dim)


def _tensors(
    sparse_dim: int,
    dense_dim: int,
    size: Any,
    indices: Tensor,
    values: Tensor,
    *,
    is_coalesced: Any = None,
    **options: Any,
) -> Tensor:
    from rushlight.ops.sparse_forms import check_dims

    check_dims(size, sparse_dim, dense_dim)
    return rushlight.sparse_coo_tensor(indices, values, tuple(size), is_coalesced=is_coalesced)


def _compressed(
    compressed_indices: Tensor, plain_indices: Tensor, values: Tensor, size: Any, *, layout: Any = None,
    **options: Any,
) -> Tensor:  # fmt: skip
    return rushlight.sparse_compressed_tensor(
        compressed_indices, plain_indices, values, tuple(size), layout=layout
    )


def _of_layout(layout: Any) -> Any:
    def make(compressed: Tensor, plain: Tensor, values: Tensor, size: Any, **options: Any) -> Tensor:
        return _compressed(compressed, plain, values, size, layout=layout)

    return make


def _sampled(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    return rushlight.sparse.sampled_addmm(self, mat1, mat2, beta=beta, alpha=alpha)


def _mm(sparse: Tensor, dense: Tensor, reduce: str | None = None) -> Tensor:
    return rushlight.sparse.mm(sparse, dense, reduce)


def _spdiags(diagonals: Tensor, offsets: Tensor, shape: Any, layout: Any = None) -> Tensor:
    return rushlight.sparse.spdiags(diagonals, offsets, tuple(shape), layout)


def _copy(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    return self.copy_(src)


FUNCTIONS = {
    "_sparse_coo_tensor_unsafe": _unsafe,
    "_sparse_coo_tensor_with_dims": _with_dims,
    "_sparse_coo_tensor_with_dims_and_tensors": _tensors,
    "_sparse_bsc_tensor_unsafe": _of_layout(rushlight.sparse_bsc),
    "_sparse_bsr_tensor_unsafe": _of_layout(rushlight.sparse_bsr),
    "_sparse_compressed_tensor_unsafe": _compressed,
    "_sparse_csc_tensor_unsafe": _of_layout(rushlight.sparse_csc),
    "_sparse_csr_tensor_unsafe": _of_layout(rushlight.sparse_csr),
    "_sparse_mm": _mm,
    "sparse_sampled_addmm": _sampled,
    "_spdiags": _spdiags,
    "copy_sparse_to_sparse_": _copy,
}
