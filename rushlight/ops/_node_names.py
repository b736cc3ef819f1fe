"""What torch calls the nodes of the graph where a primitive's own name does not say it.

Two tables. VARIANTS: one primitive serves forms of an operation that torch numbers apart (`x % 2` and
`x % y`, `acosh` and `acosh_`). COMPOSED: a function that torch records as one node is made of several here;
its last node gets the name. See Note [names of composed operations] in native/python/graph_inspect.cpp. A
name that begins with "=" is that of the last step only: torch composes the function too.
"""

from __future__ import annotations

import _thread
import functools

from rushlight import _C
from rushlight._annotations import Any

# primitive: (by a tensor, of a number, in place, in place by a tensor); empty: the usual name
VARIANTS = {
    "fmod": ("FmodBackward1", "", "", ""),
    "remainder": ("RemainderBackward1", "torch::autograd::NotImplemented", "", ""),
    "fill": ("FillBackward1", "", "FillBackward2", "FillBackward3"),
    "index_fill": ("IndexFillBackward1", "", "", ""),
    "masked_fill": ("MaskedFillBackward1", "", "", ""),
    "polygamma": ("", "", "PolygammaBackward1", ""),
    "conj": ("", "", "ConjPhysicalBackward1", ""),
    "threshold": ("", "", "ThresholdBackward1", ""),
    "xlogy": ("", "XlogyBackward1", "", ""),
}  # fmt: skip


def _diag_embed(input, offset=0, dim1=-2, dim2=-1):
    return "DiagEmbedBackward0", {"offset": offset, "dim1": dim1, "dim2": dim2}


def _diag(input, diagonal=0, **kwargs):
    if input.dim() == 1:
        return _diag_embed(input, diagonal)
    return "DiagonalBackward0_copy", {"offset": diagonal, "dim1": 0, "dim2": 1}


def _clamp(input, min=None, max=None, **kwargs):
    if not isinstance(min, _C.Tensor) and not isinstance(max, _C.Tensor):
        return "ClampBackward1"
    if isinstance(min, _C.Tensor) and isinstance(max, _C.Tensor):
        return "ClampBackward0"
    itself = {"self": input} if _plain.now else {}  # which a step keeps otherwise
    return "ClampBackward0", _kept(min=min, max=max, **itself), (input, min, max)


def _bound(name: str, which: str) -> Any:
    def choose(input, bound=None, **kwargs):
        bound = kwargs.get(which, bound)
        return f"{name}Backward{int(isinstance(bound, _C.Tensor))}"

    return choose


def _nan_to_num(input, *args, **kwargs):
    if input.is_complex():  # whose parts it is computed of
        return "NanToNumBackward0", _kept(self=input), (input,)
    return None


def _number_second(name: str, number: str) -> Any:
    def choose(input, other, **kwargs):
        if not isinstance(input, _C.Tensor):
            return None
        return name if isinstance(other, _C.Tensor) else number

    return choose


def _div(input, other, *, rounding_mode=..., **kwargs):
    return None if rounding_mode is ... else ("DivBackward2", {"rounding_mode": rounding_mode})


def _keeping(name: str | None, *parameters: str, itself: bool = False, **defaults: Any) -> Any:
    """The name, and what torch would save of the call: parameters after the first, by position or name."""

    def choose(input, *args, **kwargs):
        given = {**defaults, **dict(zip(parameters, args)), **kwargs}
        kept = {key: given.get(key) for key in defaults}
        return (name, _kept(**kept, self=input), (input,)) if itself else (name, kept)

    return choose


class _Plain(_thread._local):
    """Whether tensors are asked for as they are, to be kept by a node itself (_again.py)."""

    now = False


_plain = _Plain()


def asked_plainly() -> bool:
    return _plain.now


def named_plainly(name: Any, args: tuple, kwargs: dict) -> Any:
    """What a namer says of a call, with the tensors themselves; None if it does not know such a call."""
    if isinstance(name, str):
        return None
    _plain.now = True
    try:
        return name(*args, **kwargs)
    except (TypeError, AttributeError, LookupError, RuntimeError, ValueError):  # the call will be refused
        return None
    finally:
        _plain.now = False


def _kept(**values: Any) -> dict[str, Any]:
    """What a node keeps to show it: see Note [what composed operations keep], graph_inspect.cpp."""
    if _plain.now:
        return values

    def keep(value: Any) -> Any:
        if isinstance(value, (tuple, list)) and any(isinstance(each, _C.Tensor) for each in value):
            return [keep(each) for each in value]
        return _C.keep(value) if isinstance(value, _C.Tensor) else value

    return {name: keep(value) for name, value in values.items()}


def saving(name: str | None, parameters: str, saves: str, edges: str = "", **defaults: Any) -> Any:
    """The name, what torch saves of the call, and what it differentiates by: names among the parameters."""
    order, wanted, inputs = parameters.split(), saves.split(), edges.split()

    def choose(*args, **kwargs):
        given = {**defaults, **dict(zip(order, args)), **kwargs}
        if "input" in kwargs:
            given[order[0]] = kwargs["input"]
        kept = _kept(**{key: given[key] for key in wanted if key in given})
        return (name, kept, tuple(given[key] for key in inputs)) if inputs else (name, kept)

    return choose


def _in_one_of(name: str, *parameters: str, **defaults: Any) -> Any:
    """The same of a function that can be told to work in place."""
    kept = (_keeping(f"{name}Backward{k}", *parameters, itself=not k, **defaults) for k in (0, 1))
    forms = tuple(kept)

    def choose(input, *args, inplace=False, **kwargs):
        inplace = inplace or (len(args) > len(parameters) and args[len(parameters)])
        return forms[bool(inplace)](input, *args, **kwargs)

    return choose


def _complex(real, imag, **kwargs):
    """What a part is saved for is its own gradient."""
    parts = {name: x if x.requires_grad else None for name, x in (("real", real), ("imag", imag))}
    if not _plain.now:  # no step saves them
        parts = {name: None if x is None else _C.keep_held(x) for name, x in parts.items()}
    return "ComplexBackward0", parts, (real, imag)


def _logit_(input, eps=None):
    if eps is None:  # one step here, too
        return "LogitBackward0", {"eps": None}
    return "LogitBackward0", _kept(self=input, eps=eps), (input,)


_RRELU: dict[str, Any] = {"lower": 1 / 8, "upper": 1 / 3, "training": False}
_rrelu_apart = _keeping("RreluWithNoiseBackward0", *_RRELU, itself=True, **_RRELU)
_rrelu_written = _keeping("RreluWithNoiseBackward1", *_RRELU, **_RRELU)


def _rrelu(input, lower=1 / 8, upper=1 / 3, training=False, inplace=False, **kwargs):
    written = inplace is True  # or a generator
    hooked = _C.recorded(input) >> 7
    if hooked and not written:
        return None  # recorded as one node
    name, kept, *inputs = (_rrelu_written if written else _rrelu_apart)(input, lower, upper, training)
    if hooked:
        # Hooks are shown the result, which nothing needs, and factors where none were drawn.
        plain = input.detach()
        kept["shown"] = _C.make_saved(plain if training else plain.new_zeros(plain.shape))
    return name, {**kept, "result": ...} if written else kept, *inputs


def _rrelu_(input, *args, **kwargs):
    return _rrelu(input, *args[:3], **{**kwargs, "inplace": True})


def _smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    if beta == 0 or input.size() != target.size():  # two shapes are brought to one first
        return None
    if input.dtype == target.dtype and input.is_floating_point():  # one primitive
        return None
    kept = _kept(self=input, target=target, reduction=reduction, beta=float(beta))
    return "SmoothL1LossBackward0", kept, (input, target)


_huber = saving(
    "HuberLossBackward0", "self target reduction delta", "self target reduction delta", "self target",
    reduction="mean", delta=1.0,
)  # fmt: skip
_LOSS = "self target {} size_average reduce reduction"
_entropy = saving(
    "BinaryCrossEntropyBackward0", _LOSS.format("weight"), "self target weight reduction",
    "self target", weight=None, reduction="mean",
)  # fmt: skip


def _binary_cross_entropy(input, target, weight=None, *args, **kwargs):
    """torch keeps the weights as large as the target."""
    if weight is not None and weight.shape != target.shape:
        weight = weight.expand(target.shape)
    return _entropy(input, target, weight, *args, **kwargs)


def is_target(input, target):
    """Which classes a target names, up to its first -1."""
    labels = target.reshape(-1, target.size(-1) if target.dim() else 1)
    named = (labels < 0).long().cumsum(1) == 0
    hit = input.new_zeros(labels.shape, requires_grad=False)
    hit.scatter_add_(1, labels.clamp(min=0), named.to(input.dtype))
    return hit.clamp_(max=1).reshape(target.shape)


def _multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    kept = _kept(self=input, target=target, reduction=reduction)
    if _plain.now:
        kept["is_target"] = is_target(input.detach(), target)
    return "MultilabelMarginLossBackward0", kept, (input,)


def _logsumexp(input, dim=(), keepdim=False, **kwargs):
    dim = (dim,) if isinstance(dim, int) else tuple(dim)
    return "LogsumexpBackward0", _kept(self=input, dim=dim, keepdim=keepdim, result=...)


def _lu_unpack(LU_data, *args, **kwargs):
    rows, columns = LU_data.shape[-2:]
    kept = {"LU_data_sym_argsize_minus_1": columns, "LU_data_sym_argsize_minus_2": rows}
    return "LuUnpackBackward0", kept


def _rsub(input, other, *, alpha=1):
    if not isinstance(input, _C.Tensor):
        return None
    if not isinstance(other, _C.Tensor):
        return "RsubBackward1", {"alpha": alpha}
    return "RsubBackward0", {"alpha": alpha}, (input, other)


def _squeeze_copy(input, dim=None):
    return "SqueezeBackward0_copy" if dim is None else ("SqueezeBackward1_copy", {"dim": dim})


_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2, "zeros": 0, "border": 1, "reflection": 2}


def _grid_sampler(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    kept = _kept(input=input, grid=grid)
    kept["interpolation_mode"] = _MODES.get(mode, mode)
    kept["padding_mode"] = _MODES.get(padding_mode, padding_mode)
    kept["align_corners"] = bool(align_corners)
    return f"GridSampler{input.dim() - 2}DBackward0", kept, (input, grid)


def embedding_bag(
    input, weight, offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, mode="mean",
    sparse=False, per_sample_weights=None, include_last_offset=False, padding_idx=None,
):  # fmt: skip
    if _C.top_saved_hooks() is not None:
        return None  # one step here too
    factors = per_sample_weights
    if factors is not None and factors.dim() > 1:
        factors = factors.reshape(-1)
    kept = _kept(
        indices=input.reshape(-1).contiguous(), offsets=None if offsets is None else offsets.contiguous(),
        per_sample_weights=factors,
        mode={"sum": 0, "mean": 1, "max": 2}[mode],
        padding_idx=-1 if padding_idx is None else padding_idx, sparse=bool(sparse),
        scale_grad_by_freq=bool(scale_grad_by_freq), weight_sym_argsize_0=weight.size(0),
    )  # fmt: skip
    return "EmbeddingBagBackward0", kept, (weight, per_sample_weights)


def _cdist(x1, x2, p=2.0, compute_mode=None):
    from rushlight.ops.distance import is_product

    if is_product(x1, x2, p, compute_mode):
        return "=ViewBackward0"
    return "CdistBackward0", _kept(x1=x1, x2=x2, p=float(p), result=...), (x1, x2)


def _select_scatter(input, src, dim, index):
    return "SelectScatterBackward0", {"dim": dim, "index": index}, (input, src)


def _slice_scatter(input, src, dim=0, start=None, end=None, step=1, **kwargs):
    return "SliceScatterBackward0", {"dim": dim, "start": start, "end": end, "step": step}, (input, src)


def _diagonal_scatter(input, src, offset=0, dim1=0, dim2=1):
    return "DiagonalScatterBackward0", {"offset": offset, "dim1": dim1, "dim2": dim2}, (input, src)


def _as_strided_scatter(input, src, size, stride, storage_offset=None):
    kept = {"size": tuple(size), "stride": tuple(stride), "storage_offset": storage_offset}
    return "AsStridedScatterBackward0", kept, (input, src)


def _interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None, *args, **kwargs):
    ndim = input.dim() - 2
    scales = (None,) * ndim
    if scale_factor is not None and not kwargs.get("recompute_scale_factor"):
        scales = tuple(scale_factor) if isinstance(scale_factor, (tuple, list)) else (scale_factor,) * ndim
        scales = tuple(map(float, scales))
    if size is not None:
        output = tuple(size) if isinstance(size, (tuple, list)) else (size,) * ndim
    else:
        factors = scale_factor if isinstance(scale_factor, (tuple, list)) else (scale_factor,) * ndim
        output = tuple(int(n * f) for n, f in zip(input.shape[2:], factors))
    axes = ("scales",) if ndim == 1 else tuple(f"scales_{axis}" for axis in "dhw"[3 - ndim :])
    kept = {"output_size": output, **dict(zip(axes, scales))}
    if "linear" in mode or mode == "bicubic":
        kept["align_corners"] = bool(align_corners)
    return None, kept


def _squeezed(input, dim=None):
    return f"SqueezeBackward{3 if dim is None else 4 if isinstance(dim, int) else 5}"


def _roll(input, shifts, dims=None):
    listed = ((x,) if isinstance(x, int) else tuple(x or ()) for x in (shifts, dims))
    return "RollBackward0", dict(zip(("shifts", "dims"), listed, strict=True))


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
    "upsample": _interpolate,
    "upsample_nearest": _interpolate,
    "upsample_bilinear": functools.partial(_interpolate, mode="bilinear", align_corners=True),
    "pad": lambda input, pad, mode="constant", value=None: (
        None if mode == "constant" else (None, {"padding": tuple(pad)})
    ),
    "select_scatter": _select_scatter,
    "slice_scatter": _slice_scatter,
    "diagonal_scatter": _diagonal_scatter,
    "as_strided_scatter": _as_strided_scatter,
    "embedding_bag": embedding_bag,
    "segment_reduce": saving(
        "SegmentReduceBackward0", "data reduce", "data reduce lengths offsets axis initial result",
        lengths=None, offsets=None, axis=0, initial=None, result=...,
    ),
    "nan_to_num": _nan_to_num,
    "nan_to_num_": _nan_to_num,
    "polygamma_": lambda self, n: ("PolygammaBackward1", {"n": n}),
    "alias_copy": "AliasBackward0_copy",
    "as_strided_copy": _keeping(
        "AsStridedBackward0_copy", "size", "stride", "storage_offset",
        size=(), stride=(), storage_offset=None,
    ),
    "binary_cross_entropy": _binary_cross_entropy,
    "binary_cross_entropy_with_logits": saving(
        "BinaryCrossEntropyWithLogitsBackward0", _LOSS.format("weight") + " pos_weight",
        "self target weight pos_weight reduction", "self target",
        weight=None, pos_weight=None, reduction="mean",
    ),
    "cdist": _cdist,
    "celu": _in_one_of("Celu", "alpha", alpha=1.0),
    "celu_": _keeping("CeluBackward1", "alpha", alpha=1.0),
    "channel_shuffle": _keeping("ChannelShuffleBackward0", "groups", groups=None),
    "cholesky": "CholeskyBackward0",
    "cholesky_inverse": saving(
        "CholeskyInverseBackward0", "self upper", "self upper result", upper=False, result=...
    ),
    "cholesky_solve": saving(
        "CholeskySolveBackward0", "self input2 upper", "self input2 upper result", "self input2", upper=False,
        result=...,
    ),
    "clamp": _clamp,
    "clamp_": _clamp,
    "clamp_max": _bound("ClampMax", "max"),
    "clamp_max_": _bound("ClampMax", "max"),
    "clamp_min": _bound("ClampMin", "min"),
    "clamp_min_": _bound("ClampMin", "min"),
    "clip": _clamp,
    "clip_": _clamp,
    "complex": _complex,
    "copysign": _number_second("CopysignBackward0", "CopysignBackward1"),
    "copysign_": _number_second("CopysignBackward0", "CopysignBackward1"),
    "diag": _diag,
    "diag_embed": _diag_embed,
    "diagonal_copy": _keeping("DiagonalBackward0_copy", "offset", "dim1", "dim2", offset=0, dim1=0, dim2=1),
    "dist": saving("DistBackward0", "self other p", "self other p result", "self other", p=2, result=...),
    "div": _div,
    "div_": _div,
    "divide": _div,
    "divide_": _div,
    "expand_copy": "ExpandBackward0_copy",
    "glu": _keeping("GluBackward0", "dim", itself=True, dim=-1),
    "huber_loss": lambda input, target, *args, **kwargs: (
        _huber(input, target, *args, **kwargs) if input.size() == target.size() else None  # as smooth_l1_loss
    ),
    "gru_cell": "=AddBackward0",
    "lstm_cell": "=MulBackward0",
    "kron": "=UnsafeViewBackward0",
    "logaddexp": saving("LogaddexpBackward0", "self other", "self other", "self other"),
    "logit": _keeping("LogitBackward0", "eps", itself=True, eps=None),
    "logit_": _logit_,
    "logsumexp": _logsumexp,
    "lu_unpack": _lu_unpack,
    "max_unpool3d": "MaxUnpool3DBackward0",
    "multi_margin_loss": saving(
        "MultiMarginLossBackward0", "self target p margin weight size_average reduce reduction",
        "self target p margin weight reduction", p=1, margin=1.0, weight=None, reduction="mean",
    ),
    "multilabel_margin_loss": _multilabel_margin_loss,
    "multigammaln": _keeping("MvlgammaBackward0", "p", itself=True, p=None),
    "mvlgamma": _keeping("MvlgammaBackward0", "p", itself=True, p=None),
    "mvlgamma_": _keeping("MvlgammaBackward0", "p", itself=True, p=None),
    "narrow_copy": _keeping("NarrowCopyBackward0", "dim", "start", "length", dim=0, start=0, length=0),
    "native_dropout": saving("NativeDropoutBackward0", "input p train", "p", "input"),
    "native_dropout_backward": saving(
        "NativeDropoutBackwardBackward0", "grad_output mask scale", "grad_output mask scale"
    ),
    "ndtr": lambda *args, **kwargs: ("MulBackward1", {"other": 0.5}),
    "pairwise_distance": "=NormBackward1",
    "pdist": lambda input, p=2.0: ("PdistBackward0", _kept(self=input, p=float(p), result=...)),
    "permute_copy": _keeping("PermuteBackward0_copy", "dims", dims=()),
    "pixel_shuffle": _keeping("PixelShuffleBackward0", "upscale_factor", upscale_factor=None),
    "pixel_unshuffle": _keeping("PixelUnshuffleBackward0", "downscale_factor", downscale_factor=None),
    "polar": lambda abs, angle, **kwargs: ("PolarBackward0", _kept(result=...), (abs, angle)),
    **dict.fromkeys(
        ("renorm", "renorm_"),
        _keeping("RenormBackward0", "p", "dim", "maxnorm", itself=True, p=None, dim=None, maxnorm=None),
    ),
    **dict.fromkeys(("reshape", "flatten", "reshape_as"), "=UnsafeViewBackward0"),
    "roll": _roll,
    "rnn_relu_cell": "=ReluBackward0",
    "rnn_tanh_cell": "=TanhBackward0",
    "rot90": _keeping("Rot90Backward0", "k", "dims", k=1, dims=(0, 1)),
    "round": _round,
    "round_": _round,
    "rrelu": _rrelu,
    "rrelu_": _rrelu_,
    "rsub": _rsub,
    "smooth_l1_loss": _smooth_l1_loss,
    "soft_margin_loss": saving(
        "SoftMarginLossBackward0", _LOSS.format(""), "self target reduction", reduction="mean"
    ),
    "sort": _sort,
    "select_copy": _keeping("SelectBackward0_copy", "dim", "index", dim=0, index=0),
    "slice_copy": _keeping(
        "SliceBackward0_copy", "dim", "start", "end", "step", dim=0, start=None, end=None, step=1
    ),
    "split_copy": _keeping("SplitBackward0_copy", "split_size", "dim", split_size=0, dim=0),
    "split_with_sizes_copy": _keeping(
        "SplitWithSizesBackward0_copy", "split_sizes", "dim", split_sizes=(), dim=0
    ),
    "squeeze_copy": _squeeze_copy,
    "t_copy": "TBackward0_copy",
    "trace": lambda input: ("TraceBackward0", {"self_sym_sizes": input.shape}),
    "transpose_copy": _keeping("TransposeBackward0_copy", "dim0", "dim1", dim0=0, dim1=1),
    "unbind_copy": _keeping("UnbindBackward0_copy", "dim", dim=0),
    "unfold_copy": _keeping(
        "UnfoldBackward0_copy", "dimension", "size", "step", dimension=0, size=0, step=1
    ),
    "unsafe_chunk": lambda input, chunks, dim=0: (
        ("UnsafeSplitBackward0", {"split_size": -(-input.size(dim) // chunks), "dim": dim})
        if input.size(dim)
        else "UnsafeSplitWithSizesBackward0"
    ),
    "unsafe_split": _keeping("UnsafeSplitBackward0", "split_size", "dim", split_size=None, dim=0),
    "unsafe_split_with_sizes": "UnsafeSplitWithSizesBackward0",
    "unsqueeze_copy": _keeping("UnsqueezeBackward0_copy", "dim", dim=0),
    "view_copy": "ViewBackward0_copy",
    **dict.fromkeys(
        ("histogram", "nanquantile", "quantile", "unique", "unique_consecutive"), lambda *args, **kwargs: None
    ),
    "zero_": "ZeroBackward0",
    **dict.fromkeys(
        ("to", "float", "double", "half", "bfloat16", "cfloat", "cdouble", "chalf", "bool", "byte", "char",
         "int", "long", "short"),
        "ToCopyBackward0",
    ),
    "margin_ranking_loss": _unless_reduced("=ClampMinBackward0"),
    "triplet_margin_loss": _unless_reduced("=ClampMinBackward0"),
    "squeeze_": _squeezed,
    "t_": "TBackward1",
    "transpose_": "TransposeBackward1",
    "swapaxes_": "TransposeBackward1",
    "swapdims_": "TransposeBackward1",
    "unsqueeze_": "UnsqueezeBackward1",
    "as_strided_": "AsStridedBackward1",
    "affine_grid": "AffineGridGeneratorBackward0",
    "affine_grid_generator": "AffineGridGeneratorBackward0",
    **dict.fromkeys(("grid_sample", "grid_sampler", "grid_sampler_2d", "grid_sampler_3d"), _grid_sampler),
    "xlogy": _number_second("XlogyBackward0", "XlogyBackward2"),
    "xlogy_": _number_second("XlogyBackward0", "XlogyBackward2"),
}  # fmt: skip


for _primitive, _names in VARIANTS.items():
    _C.set_variant_names(_primitive, *_names)
