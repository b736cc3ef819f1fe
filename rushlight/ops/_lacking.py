"""What torch cannot differentiate, refused in its words: a program that relies on such a gradient here would
fail there.

An operation of torch's may lack the gradient of complex results (refused when the result is there), or a
formula for forward mode (refused before anything is computed). Each has a table, from functions to the names
under which torch says so. A name that begins with "aten::" is that of an operation without any derivative.
native/python/functions.cpp refuses.

A gradient that has no derivative of its own is computed as any other, but differentiating it raises: `final=`
of `derivative` says so of a primitive's rules (_rules.py), `once` of an input of a composed function.
"""

from __future__ import annotations

from rushlight import _C
from rushlight._annotations import Any

Tensor = _C.Tensor


def _grid_sampler(input, *args, **kwargs):
    return f"grid_sampler_{input.dim() - 2}d"


def _cdist(x1, x2, p=2.0, compute_mode=None):
    from rushlight.ops.distance import is_product

    return "_euclidean_dist" if is_product(x1, x2, p, compute_mode) else "_cdist_forward"


def _unique(input, *args, dim=None, **kwargs):
    return "_unique2" if dim is None and len(args) < 4 else "unique_dim"


def _histogramdd(input, bins, *args, **kwargs):
    whole = isinstance(bins, int) or all(isinstance(count, int) for count in bins)
    return f"aten::_histogramdd_{'bin_edges' if whole else 'from_bin_tensors'}"


def _rrelu(input, lower=0.0, upper=0.0, training=False, inplace=False):
    return "rrelu_with_noise_" if inplace else None


def _scatter(input, dim, index, *args, reduce=None, **kwargs):
    return None if reduce is None else "aten::scatter"


def _scatter_(input, dim, index, *args, reduce=None, **kwargs):
    return None if reduce is None else "aten::scatter_"


def _soft_margin_loss(input, target, *args, **kwargs):
    dual = _C.tangent(input) is not None and _C.tangent(target) is not None
    return "soft_margin_loss_backward" if dual else None


def _remainder(input, other, **kwargs):
    return None if isinstance(input, Tensor) else "aten::remainder"


NO_COMPLEX_GRADIENT = {
    name: name
    for name in (
        "affine_grid_generator", "binary_cross_entropy_with_logits", "conv_tbc", "embedding", "geqrf",
        "index_reduce", "nan_to_num", "native_dropout", "native_dropout_backward", "normal", "scatter_reduce",
        "select_copy", "select_scatter", "silu", "slice_copy", "slice_scatter", "soft_margin_loss",
        "view_as_complex_copy",
    )
} | {"to_sparse": "_to_sparse"}  # fmt: skip

# A str, or a function of the call's arguments that returns one or None.
NO_FORWARD_MODE: dict[str, Any] = {
    **{
        name: name
        for name in (
            "acosh_", "asinh_", "atanh_", "cholesky", "conv_tbc", "embedding_renorm_", "igamma", "igammac",
            "index_reduce", "index_reduce_", "multi_margin_loss", "native_dropout_backward", "ormqr",
            "segment_reduce", "unique_consecutive", "_standard_gamma",
        )
    },
    **{
        name: f"aten::{name}"
        for name in (
            "bincount", "bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or",
            "bitwise_right_shift", "bitwise_xor", "detach_copy", "floor_divide", "floor_divide_", "gcd",
            "heaviside", "heaviside_", "histogram", "lcm", "native_channel_shuffle", "nonzero_static",
            "_sample_dirichlet",
        )
    },
    "arccosh_": "acosh_",
    "arcsinh_": "asinh_",
    "arctanh_": "atanh_",
    "cdist": _cdist,
    "ctc_loss": "_ctc_loss",
    "embedding_bag": "_embedding_bag",
    **dict.fromkeys(("grid_sample", "grid_sampler", "grid_sampler_2d", "grid_sampler_3d"), _grid_sampler),
    "gammainc": "igamma",
    "gammaincc": "igammac",
    "igamma_": "igamma_",
    "igammac_": "igammac_",
    "histogramdd": _histogramdd,
    **dict.fromkeys(("ldl_factor", "ldl_factor_ex"), "aten::linalg_ldl_factor_ex"),
    "multilabel_margin_loss": "multilabel_margin_loss_forward",
    "pdist": "_pdist_forward",
    "remainder": _remainder,
    "rrelu": _rrelu,
    "rrelu_": "rrelu_with_noise_",
    "scatter": _scatter,
    "scatter_": _scatter_,
    "soft_margin_loss": _soft_margin_loss,
    "sparse_coo_tensor": "_sparse_coo_tensor_with_dims_and_tensors",
    "to_sparse": "_to_sparse",
    "unique": _unique,
    "zeta": "special_zeta",
}  # fmt: skip


# ---- gradients without a derivative


def final(name: str, gradient: Any, *by: Any) -> Any:
    """`gradient`, which torch computes from `by` in an operation `name` that it cannot differentiate."""
    if not _C.is_grad_enabled() or not any(isinstance(x, Tensor) and x.requires_grad for x in by):
        return gradient
    from rushlight.autograd.function import without_derivative

    if _C.is_sparse(gradient):
        gradient = gradient.detach()  # of one that is among `by` no view could be made
    words = name.strip("_").split("_")
    node = None if name.startswith("aten::") else "".join(map(str.capitalize, words)) + "Backward0"
    return without_derivative(name.removeprefix("aten::"), gradient, *by, node=node)


def finally_(rule: Any, name: str) -> Any:
    """The rule whose gradient is final."""

    def once(*given: Any) -> Any:
        by = [value for value in given if isinstance(value, Tensor)]
        if _C.carries_tangents() and any(_C.tangent(value) is not None for value in by):
            why = "" if name.startswith("aten::") else " because it has not been implemented yet"
            raise NotImplementedError(f"Trying to use forward AD with {name} that does not support it{why}.")
        recording = _C.set_grad_enabled(False)
        try:
            gradient = rule(*given)
        finally:
            _C.set_grad_enabled(recording)
        return final(name, gradient, *by)

    return once


def once(x: Any, name: str, *by: Any) -> Any:
    """x as the input of a composed function whose gradient for x torch computes from `by`, in an operation
    `name` that it cannot differentiate."""
    wanted = x is not None and x.requires_grad and _C.is_grad_enabled()
    return _C.ops.once(x, by, name) if wanted else x
