"""What torch calls the nodes of the graph where a primitive's own name does not say it.

Two tables. VARIANTS: one primitive serves forms of an operation that torch numbers apart (`x % 2` and
`x % y`, `acosh` and `acosh_`). COMPOSED: a function that torch records as one node is made of several here;
its last node gets the name. See Note [names of composed operations] in native/python/graph_inspect.cpp.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from rushlight import _C

# primitive: (by a tensor, of a number, in place, in place by a tensor); empty: the usual name
VARIANTS = {
    "fmod": ("FmodBackward1", "", "", ""),
    "remainder": ("RemainderBackward1", "", "", ""),
    "fill": ("FillBackward1", "", "FillBackward2", "FillBackward3"),
    "acosh": ("", "", "AcoshBackward1", ""),
    "asinh": ("", "", "AsinhBackward1", ""),
    "atanh": ("", "", "AtanhBackward1", ""),
    "polygamma": ("", "", "PolygammaBackward1", ""),
    "conj": ("", "", "ConjPhysicalBackward1", ""),
    "elu": ("", "", "EluBackward1", ""),
    "leaky_relu": ("", "", "LeakyReluBackward1", ""),
    "threshold": ("", "", "ThresholdBackward1", ""),
    "xlogy": ("", "XlogyBackward1", "", ""),
}  # fmt: skip


def _by_ndim(one: str, more: str) -> Any:
    """The name by the number of dimensions of the input."""

    def name(input, *args, **kwargs):
        return one if input.dim() <= 2 else more

    return name


def _diag(input, *args, **kwargs):
    return "DiagEmbedBackward0" if input.dim() == 1 else "DiagonalBackward0_copy"


def _clamp(input, min=None, max=None, **kwargs):
    by_tensor = isinstance(min, _C.Tensor) or isinstance(max, _C.Tensor)
    return "ClampBackward0" if by_tensor else "ClampBackward1"


def _bound(name: str) -> Any:
    def choose(input, bound=None, *args, **kwargs):
        bound = kwargs.get("min", kwargs.get("max", bound))
        return name + ("Backward1" if isinstance(bound, _C.Tensor) else "Backward0")

    return choose


def _by_value(name: str, at: int) -> Any:
    """The name by whether the value that is put in is a tensor."""

    def choose(*args, value=None, **kwargs):
        value = args[at] if len(args) > at else value
        return name + ("Backward1" if isinstance(value, _C.Tensor) else "Backward0")

    return choose


def _number_second(name: str, number: str) -> Any:
    def choose(input, other, **kwargs):
        if not isinstance(input, _C.Tensor):
            return None
        return name if isinstance(other, _C.Tensor) else number

    return choose


def _div(input, other, *, rounding_mode=..., **kwargs):
    return None if rounding_mode is ... else ("DivBackward2", {"rounding_mode": rounding_mode})


def _keeping(name: str | None, *parameters: str, **defaults: Any) -> Any:
    """The name, and what torch would save of the call: parameters after the first, by position or name."""

    def choose(input, *args, **kwargs):
        given = {**defaults, **dict(zip(parameters, args)), **kwargs}
        return name, {key: given.get(key) for key in defaults}

    return choose


def _in_one_of(name: str, *parameters: str, **defaults: Any) -> Any:
    """The same of a function that can be told to work in place."""
    kept = (_keeping(f"{name}Backward{k}", *parameters, **defaults) for k in (0, 1))
    forms = tuple(kept)

    def choose(input, *args, inplace=False, **kwargs):
        inplace = inplace or (len(args) > len(parameters) and args[len(parameters)])
        return forms[bool(inplace)](input, *args, **kwargs)

    return choose


_RRELU = {"lower": 1 / 8, "upper": 1 / 3, "training": False}


def _smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    return None if beta == 0 else ("SmoothL1LossBackward0", {"reduction": reduction, "beta": float(beta)})


def _select_scatter(input, src, dim, index):
    return "SelectScatterBackward0", {"dim": dim, "index": index}


def _slice_scatter(input, src, dim=0, start=None, end=None, step=1, **kwargs):
    return "SliceScatterBackward0", {"dim": dim, "start": start, "end": end, "step": step}


def _diagonal_scatter(input, src, offset=0, dim1=0, dim2=1):
    return "DiagonalScatterBackward0", {"offset": offset, "dim1": dim1, "dim2": dim2}


def _as_strided_scatter(input, src, size, stride, storage_offset=None):
    kept = {"size": tuple(size), "stride": tuple(stride), "storage_offset": storage_offset}
    return "AsStridedScatterBackward0", kept


def _interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None, *args, **kwargs):
    ndim = input.dim() - 2
    scales: tuple = (None,) * ndim
    if scale_factor is not None and not kwargs.get("recompute_scale_factor"):
        scales = tuple(scale_factor) if isinstance(scale_factor, (tuple, list)) else (scale_factor,) * ndim
        scales = tuple(map(float, scales))
    if size is not None:
        output = tuple(size) if isinstance(size, (tuple, list)) else (size,) * ndim
    else:
        factors = scale_factor if isinstance(scale_factor, (tuple, list)) else (scale_factor,) * ndim
        output = tuple(int(n * f) for n, f in zip(input.shape[2:], factors))
    axes = ("scales",) if ndim == 1 else tuple(f"scales_{axis}" for axis in "dhw"[3 - ndim :])
    kept: dict[str, Any] = {"output_size": output, **dict(zip(axes, scales))}
    if "linear" in mode or mode == "bicubic":
        kept["align_corners"] = bool(align_corners)
    return None, kept


def _squeezed(input, dim=None):
    return f"SqueezeBackward{3 if dim is None else 4 if isinstance(dim, int) else 5}"


def _sort(input, dim=-1, descending=False, stable=None, **kwargs):
    return None if stable is None else "SortBackward1"


def _round(input, *, decimals=None, **kwargs):
    return "RoundBackward0" if decimals is None else "RoundBackward1"


def _unless_reduced(name: str) -> Any:
    def choose(*args, reduction="mean", **kwargs):
        return name if reduction == "none" else None

    return choose


COMPOSED: dict[str, Any] = {
    "as_strided": _keeping(None, "size", "stride", "storage_offset", storage_offset=None),
    "interpolate": _interpolate,
    "select_scatter": _select_scatter,
    "slice_scatter": _slice_scatter,
    "diagonal_scatter": _diagonal_scatter,
    "as_strided_scatter": _as_strided_scatter,
    "embedding_bag": "EmbeddingBagBackward0",
    "segment_reduce": "SegmentReduceBackward0",
    "polygamma_": lambda self, n: ("PolygammaBackward1", {"n": n}),
    "alias_copy": "AliasBackward0_copy",
    "as_strided_copy": "AsStridedBackward0_copy",
    "binary_cross_entropy": _keeping("BinaryCrossEntropyBackward0", reduction="mean"),
    "binary_cross_entropy_with_logits": _keeping("BinaryCrossEntropyWithLogitsBackward0", reduction="mean"),
    "cdist": _keeping("CdistBackward0", "x2", "p", p=2.0),
    "celu": _in_one_of("Celu", "alpha", alpha=1.0),
    "celu_": _keeping("CeluBackward1", "alpha", alpha=1.0),
    "channel_shuffle": _keeping("ChannelShuffleBackward0", "groups", groups=None),
    "cholesky": "CholeskyBackward0",
    "cholesky_inverse": "CholeskyInverseBackward0",
    "cholesky_solve": "CholeskySolveBackward0",
    "clamp": _clamp,
    "clamp_": _clamp,
    "clamp_max": _bound("ClampMax"),
    "clamp_max_": _bound("ClampMax"),
    "clamp_min": _bound("ClampMin"),
    "clamp_min_": _bound("ClampMin"),
    "clip": _clamp,
    "clip_": _clamp,
    "complex": "ComplexBackward0",
    "copysign": _number_second("CopysignBackward0", "CopysignBackward1"),
    "copysign_": _number_second("CopysignBackward0", "CopysignBackward1"),
    "diag": _diag,
    "diag_embed": "DiagEmbedBackward0",
    "diagflat": "DiagEmbedBackward0",
    "diagonal_copy": "DiagonalBackward0_copy",
    "dist": "DistBackward0",
    "div": _div,
    "div_": _div,
    "divide": _div,
    "divide_": _div,
    "expand_copy": "ExpandBackward0_copy",
    "frexp": "FrexpBackward0",
    "glu": _keeping("GluBackward0", "dim", dim=-1),
    "hardshrink": _keeping("HardshrinkBackward0", "lambd", lambd=0.5),
    "hardtanh": _keeping("HardtanhBackward0", "min_val", "max_val", min_val=-1.0, max_val=1.0),
    "hardtanh_": "HardtanhBackward0",
    "huber_loss": _keeping(
        "HuberLossBackward0", "target", "reduction", "delta", reduction="mean", delta=1.0
    ),
    "index_fill": _by_value("IndexFill", 3),
    "index_fill_": _by_value("IndexFill", 3),
    "kron": "UnsafeViewBackward0",
    "ldexp": "LdexpBackward0",
    "ldexp_": "LdexpBackward0",
    "logaddexp": "LogaddexpBackward0",
    "logit": _keeping("LogitBackward0", "eps", eps=None),
    "logit_": _keeping("LogitBackward0", "eps", eps=None),
    "logsumexp": "LogsumexpBackward0",
    "lu_unpack": "LuUnpackBackward0",
    "masked_fill": _by_value("MaskedFill", 2),
    "masked_fill_": _by_value("MaskedFill", 2),
    "max_unpool3d": "MaxUnpool3DBackward0",
    "multi_margin_loss": "MultiMarginLossBackward0",
    "multilabel_margin_loss": "MultilabelMarginLossBackward0",
    "multigammaln": "MvlgammaBackward0",
    "mvlgamma": _keeping("MvlgammaBackward0", "p", p=None),
    "mvlgamma_": "MvlgammaBackward0",
    "narrow_copy": _keeping("NarrowCopyBackward0", "dim", "start", "length", dim=0, start=0, length=0),
    "native_dropout_backward": "NativeDropoutBackwardBackward0",
    "pairwise_distance": "NormBackward1",
    "pdist": lambda input, p=2.0: ("PdistBackward0", {"p": float(p)}),
    "permute_copy": "PermuteBackward0_copy",
    "pixel_shuffle": _keeping("PixelShuffleBackward0", "upscale_factor", upscale_factor=None),
    "pixel_unshuffle": _keeping("PixelUnshuffleBackward0", "downscale_factor", downscale_factor=None),
    "polar": "PolarBackward0",
    "prelu": "PreluKernelBackward0",
    "relu6": "HardtanhBackward0",
    "renorm": _keeping("RenormBackward0", "p", "dim", "maxnorm", p=None, dim=None, maxnorm=None),
    "renorm_": "RenormBackward0",
    **dict.fromkeys(("reshape", "flatten", "reshape_as"), "UnsafeViewBackward0"),
    "roll": "RollBackward0",
    "rot90": _keeping("Rot90Backward0", "k", "dims", k=1, dims=(0, 1)),
    "round": _round,
    "round_": _round,
    "rrelu": _in_one_of("RreluWithNoise", *_RRELU, **_RRELU),
    "rrelu_": _keeping("RreluWithNoiseBackward1", *_RRELU, **_RRELU),
    "rsub": _number_second("RsubBackward0", "RsubBackward1"),
    "smooth_l1_loss": _smooth_l1_loss,
    "soft_margin_loss": "SoftMarginLossBackward0",
    "softshrink": _keeping("SoftshrinkBackward0", "lambd", lambd=0.5),
    "sort": _sort,
    "split_with_sizes_copy": "SplitWithSizesBackward0_copy",
    "squeeze_copy": lambda input, dim=None: f"SqueezeBackward{0 if dim is None else 1}_copy",
    "t_copy": "TBackward0_copy",
    "trace": "TraceBackward0",
    "transpose_copy": "TransposeBackward0_copy",
    "triangular_solve": "TriangularSolveBackward0",
    "unbind_copy": "UnbindBackward0_copy",
    "unfold_copy": "UnfoldBackward0_copy",
    "unsafe_chunk": "UnsafeSplitBackward0",
    "unsafe_split": "UnsafeSplitBackward0",
    "unsafe_split_with_sizes": "UnsafeSplitWithSizesBackward0",
    "unsqueeze_copy": "UnsqueezeBackward0_copy",
    "view_copy": "ViewBackward0_copy",
    "zero_": "ZeroBackward0",
    **dict.fromkeys(
        ("to", "float", "double", "half", "bfloat16", "cfloat", "cdouble", "chalf"), "ToCopyBackward0"
    ),
    "margin_ranking_loss": _unless_reduced("ClampMinBackward0"),
    "triplet_margin_loss": _unless_reduced("ClampMinBackward0"),
    "squeeze_": _squeezed,
    "t_": "TBackward1",
    "transpose_": "TransposeBackward1",
    "swapaxes_": "TransposeBackward1",
    "swapdims_": "TransposeBackward1",
    "unsqueeze_": "UnsqueezeBackward1",
    "as_strided_": "AsStridedBackward1",
    "affine_grid": "AffineGridGeneratorBackward0",
    "affine_grid_generator": "AffineGridGeneratorBackward0",
    "grid_sample": lambda input, *args, **kwargs: f"GridSampler{input.dim() - 2}DBackward0",
    "grid_sampler": lambda input, *args, **kwargs: f"GridSampler{input.dim() - 2}DBackward0",
    "grid_sampler_2d": "GridSampler2DBackward0",
    "grid_sampler_3d": "GridSampler3DBackward0",
    "xlogy": _number_second("XlogyBackward0", "XlogyBackward2"),
    "xlogy_": _number_second("XlogyBackward0", "XlogyBackward2"),
}  # fmt: skip


def one_node(name: str) -> Any:
    """Decorates a composed function that is not found by name: torch records it as one node."""

    def decorate(function):
        @functools.wraps(function)
        def named(*args, **kwargs):
            since = _C.next_sequence()
            return _C.name_node(function(*args, **kwargs), name, since)

        return named

    return decorate


def name_composed(*spaces: Mapping[str, Any]) -> None:
    """Gives the functions found in these namespaces the names of their nodes."""
    for name, node in COMPOSED.items():
        for space in spaces:
            function = space.get(name)
            if isinstance(function, _C.Function):
                function.node_name = node


for _primitive, _names in VARIANTS.items():
    _C.set_variant_names(_primitive, *_names)
