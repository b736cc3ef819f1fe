"""What torch cannot differentiate, refused in its words: a program that relies on such a gradient here would
fail there.

LACKS is a column of the table of functions. An operation of torch's may lack the gradient of complex results
(refused when the result is there), or a formula for forward mode (refused before anything is computed); the
entry is the name under which torch says so. A name that begins with "aten::" is that of an operation without
any derivative. native/python/functions.cpp asks the table.

A gradient that has no derivative of its own is computed as any other, but differentiating it raises: `final=`
of `derivative` says so of a primitive's rules (_rules.py), `once` of an input of a composed function.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rushlight import _C

Tensor = _C.Tensor
Name = Any  # a str, or a function of the call's arguments that returns one or None


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


def _soft_margin_loss(input, target, *args, **kwargs):
    dual = _C.tangent(input) is not None and _C.tangent(target) is not None
    return "soft_margin_loss_backward" if dual else None


def _remainder(input, other, **kwargs):
    return None if isinstance(input, Tensor) else "aten::remainder"


# function: (gradients of complex results, forward mode)
LACKS: dict[str, tuple[str | None, Name]] = {
    **{
        name: (name, None)
        for name in (
            "embedding", "geqrf", "nan_to_num", "native_dropout", "normal", "scatter_reduce", "select_copy",
            "select_scatter", "silu", "slice_copy", "slice_scatter", "view_as_complex_copy",
        )
    },
    **{
        name: (None, name)
        for name in (
            "cholesky", "igamma", "igammac", "multi_margin_loss", "ormqr", "segment_reduce",
            "unique_consecutive", "_standard_gamma", "acosh_", "asinh_", "atanh_", "embedding_renorm_",
            "index_reduce_",
        )
    },
    **{
        name: (None, f"aten::{name}")
        for name in (
            "bincount", "bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or",
            "bitwise_right_shift", "bitwise_xor", "detach_copy", "floor_divide", "floor_divide_", "gcd",
            "heaviside", "heaviside_", "histogram", "lcm", "native_channel_shuffle", "nonzero_static",
        )
    },
    "arccosh_": (None, "acosh_"),
    "arcsinh_": (None, "asinh_"),
    "arctanh_": (None, "atanh_"),
    "cdist": (None, _cdist),
    "conv_tbc": ("conv_tbc", "conv_tbc"),
    "ctc_loss": (None, "_ctc_loss"),
    "embedding_bag": (None, "_embedding_bag"),
    **dict.fromkeys(("grid_sample", "grid_sampler", "grid_sampler_2d", "grid_sampler_3d"),
                    (None, _grid_sampler)),
    "gammainc": (None, "igamma"),
    "gammaincc": (None, "igammac"),
    "histogramdd": (None, _histogramdd),
    "index_reduce": ("index_reduce", "index_reduce"),
    "ldl_factor": (None, "aten::linalg_ldl_factor_ex"),
    "ldl_factor_ex": (None, "aten::linalg_ldl_factor_ex"),
    "multilabel_margin_loss": (None, "multilabel_margin_loss_forward"),
    "native_dropout_backward": ("native_dropout_backward", "native_dropout_backward"),
    "pdist": (None, "_pdist_forward"),
    "remainder": (None, _remainder),
    "rrelu": (None, _rrelu),
    "rrelu_": (None, "rrelu_with_noise_"),
    "soft_margin_loss": ("soft_margin_loss", _soft_margin_loss),
    "unique": (None, _unique),
    "zeta": (None, "special_zeta"),
    "_sample_dirichlet": (None, "aten::_sample_dirichlet"),
}  # fmt: skip


def lacking(of_complex: str | None, forward: Name, node: str | None = None) -> Any:
    """Decorates a function that is not found by name: it lacks this, and torch calls its node so."""

    def decorate(function):
        made = _C.Function(function)
        made.lacks, made.node_name = (of_complex, forward), node
        return made

    return decorate


def tell_lacks(*spaces: Mapping[str, Any]) -> None:
    """Tells the functions found in these namespaces what they lack."""
    for name, lacks in LACKS.items():
        for space in spaces:
            function = space.get(name)
            if isinstance(function, _C.Function):
                function.lacks = lacks


# ---- gradients without a derivative


def final(name: str, gradient: Any, *by: Any) -> Any:
    """`gradient`, which torch computes from `by` in an operation `name` that it cannot differentiate."""
    if not _C.is_grad_enabled() or not any(isinstance(x, Tensor) and x.requires_grad for x in by):
        return gradient
    from rushlight.autograd.function import without_derivative

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
