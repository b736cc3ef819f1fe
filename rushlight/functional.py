"""The functions that torch keeps in torch.functional; all of them are in torch as well."""

import rushlight

__all__ = [  # noqa: F822
    "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_shapes", "broadcast_tensors",
    "cartesian_prod", "cdist", "chain_matmul", "einsum", "istft", "lu", "meshgrid", "norm", "pca_lowrank",
    "split", "stft", "svd_lowrank", "tensordot", "unique", "unique_consecutive", "unravel_index",
]  # fmt: skip

globals().update({name: getattr(rushlight, name) for name in __all__})
