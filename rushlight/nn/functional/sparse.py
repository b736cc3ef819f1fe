"""Classes as vectors: rows of a learned table, and one-hot vectors."""

from __future__ import annotations

import rushlight
from rushlight.ops.index import one_hot

__all__ = ["embedding", "one_hot"]


def embedding(
    input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False
):
    """The rows of `weight` at the indices `input`.

    The row padding_idx gets no gradient; rows longer than max_norm are shortened in place first;
    scale_grad_by_freq divides a row's gradient by how often it is used.

    >>> table = rushlight.tensor([[1., 2.], [3., 4.]])
    >>> rushlight.nn.functional.embedding(rushlight.tensor([1, 0]), table)
    tensor([[3., 4.],
            [1., 2.]])
    """
    if padding_idx is None:
        padding_idx = -1
    else:
        rows = weight.size(0)
        if not -rows <= padding_idx < rows:
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx %= rows
    if max_norm is not None:
        _shorten_rows(weight, input, max_norm, norm_type)
    return rushlight.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


def _shorten_rows(weight, indices, max_norm, norm_type):
    with rushlight.no_grad():
        rows = indices.reshape(-1).unique()
        norms = weight.index_select(0, rows).norm(norm_type, 1, keepdim=True)
        factors = rushlight.where(norms > max_norm, max_norm / (norms + 1e-7), 1.0).to(weight.dtype)
        weight.index_copy_(0, rows.long(), weight.index_select(0, rows) * factors)
