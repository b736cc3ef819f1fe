"""Which public functions torch has natively and which in Python: Note [functions in classes] in
native/python/functions.cpp."""

from __future__ import annotations

from collections.abc import Iterable

from rushlight import _C
from rushlight._annotations import Any

_IN_PYTHON = {
    "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_shapes", "broadcast_tensors",
    "cartesian_prod", "cdist", "chain_matmul", "einsum", "from_dlpack", "is_storage", "lobpcg", "lu",
    "meshgrid", "norm", "pca_lowrank", "split", "stft", "svd_lowrank", "tensordot", "unique",
    "unique_consecutive", "unravel_index",
}  # fmt: skip
_METHODS_IN_PYTHON = {
    "_typed_storage", "backward", "dim_order", "eig", "is_shared", "istft", "lstsq", "lu", "module_load",
    "norm", "register_hook", "register_post_accumulate_grad_hook", "reinforce", "resize", "resize_as",
    "share_memory_", "solve", "split", "stft", "storage", "storage_type", "symeig", "to_sparse_coo",
    "unflatten", "unique", "unique_consecutive",
}  # fmt: skip
NATIVE_FUNCTIONAL = {
    "adaptive_avg_pool1d", "avg_pool1d", "avg_pool2d", "avg_pool3d", "bilinear", "celu_", "channel_shuffle",
    "conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
    "cosine_similarity", "elu_", "gelu", "hardshrink", "hardtanh_", "leaky_relu_", "linear", "logsigmoid",
    "native_channel_shuffle", "one_hot", "pairwise_distance", "pdist", "pixel_shuffle", "pixel_unshuffle",
    "prelu", "relu_", "rrelu_", "scaled_dot_product_attention", "selu_", "softplus", "softshrink",
    "threshold_",
}  # fmt: skip


def make_builtin(functions: Iterable[Any]) -> None:
    """Those of them that are public functions are native ones in torch."""
    _C.make_builtin([f for f in functions if isinstance(f, _C.Function)])


def mark(functions: dict[str, Any]) -> None:
    """Tells the functions of the main namespace and the methods what they are."""
    methods = {name: f for name, f in vars(_C.Tensor).items() if isinstance(f, _C.Function)}
    _C.make_described([f for name, f in methods.items() if name not in _METHODS_IN_PYTHON])
    bound = {id(f) for f in methods.values()}
    make_builtin(f for name, f in functions.items() if name not in _IN_PYTHON and id(f) not in bound)
