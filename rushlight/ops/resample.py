"""Padding and interpolation: derivatives, then constant_pad_nd, pad, interpolate and the shuffles of pixels.

All but constant_pad_nd are separable linear maps: NAME(x; size, spec, adjoint), each one the derivative of
the other direction. `spec` says how the taps are chosen, see native/python/resample_ops.cpp.
"""

from __future__ import annotations

import operator

from rushlight import _C
from rushlight._type_names import type_name as class_name

from ._public import RARE, Tensor, function, type_name, undifferentiable, whole
from ._rules import derivative
from .pool import linear_map

ops = _C.ops

for _name, _node in {
    "upsample_linear1d": "UpsampleLinear1DBackward0",
    "upsample_bilinear2d": "UpsampleBilinear2DBackward0",
    "upsample_trilinear3d": "UpsampleTrilinear3DBackward0",
    "upsample_bicubic2d": "UpsampleBicubic2DBackward0",
    "upsample_bilinear2d_aa": "UpsampleBilinear2DAaBackward0",
    "upsample_bicubic2d_aa": "UpsampleBicubic2DAaBackward0",
    "upsample_lanczos2d_aa": "UpsampleLanczos2DAaBackward0",
    "circular_pad1d": "torch::autograd::CopySlices",
    "circular_pad2d": "torch::autograd::CopySlices",
    "circular_pad3d": "torch::autograd::CopySlices",
}.items():
    linear_map(_name, _node, lies="in order" if _name == "upsample_bicubic2d" else None)
for _dims in (1, 2, 3):
    _lies = "in order" if _dims == 3 else None
    linear_map(f"upsample_nearest{_dims}d", f"UpsampleNearest{_dims}DBackward0", lies=_lies)
    linear_map(f"upsample_nearest_exact{_dims}d", f"UpsampleNearestExact{_dims}DBackward0", lies=_lies)
    linear_map(f"reflection_pad{_dims}d", f"ReflectionPad{_dims}DBackward0", keeps=True, lies="as x")
    linear_map(f"replication_pad{_dims}d", f"ReplicationPad{_dims}DBackward0", keeps=True, lies="as x")
derivative(
    "constant_pad_nd",
    node="ConstantPadNdBackward0",
    x=lambda g, pad: ops.constant_pad_nd(g, [-n for n in pad], 0),
)


# ---- padding


@function
def constant_pad_nd(input, pad, value=0):
    """`value` put around the input: pad lists (left, right) of the last dimension, then of the one before.

    Negative numbers cut off.

    >>> import rushlight as torch
    >>> torch.constant_pad_nd(torch.ones(2), (1, 2))
    tensor([0., 1., 1., 0., 0.])
    """
    return ops.constant_pad_nd(input, pad, value)


_PADS = {"reflect": "reflection_pad", "replicate": "replication_pad", "circular": "circular_pad"}


def pad(input, pad, mode="constant", value=None):
    """The input with more around it: a constant, its reflection, its border or its other side.

    pad lists (left, right) of the last dimension, then of the one before it; negative numbers cut off.

    >>> import rushlight as torch
    >>> torch.nn.functional.pad(torch.tensor([[1.0, 2.0, 3.0]]), (2, 1), mode="reflect")
    tensor([[3., 2., 1., 2., 3., 2.]])
    """
    if not isinstance(input, Tensor):
        raise TypeError(f"pad(): argument 'input' (position 1) must be Tensor, not {class_name(input)}")
    if not isinstance(pad, (tuple, list)):
        raise TypeError(f"pad(): argument 'pad' (position 2) must be tuple of ints, not {class_name(pad)}")
    for n in pad:
        if n.__class__ is not int and not hasattr(n, "__index__"):
            position = next(i for i, other in enumerate(pad) if other is n)
            raise TypeError(
                f"pad(): argument 'pad' (position 2) must be tuple of ints, but found element of type "
                f"{class_name(n)} at pos {position}"
            )
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(pad) > 2 * input.ndim:
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got "
            "padding length "
            f"{len(pad)} and input of dimension {input.ndim}"
        )
    if mode == "constant":
        if value is not None and value < 0 and input.dtype == _C.uint8:
            raise RuntimeError("value cannot be converted to type uint8_t without overflow")
        value = 0 if value is None else value
        if value.__class__ is int and input.dtype.is_floating_point:
            value = float(value)  # as who looks on sees it in torch
        return ops.constant_pad_nd(input, pad, value)
    if mode not in _PADS:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    dims = len(pad) // 2
    if not 1 <= dims <= 3 or input.ndim not in (dims + 1, dims + 2):
        raise NotImplementedError(
            f"Padding size {len(pad)} is not supported for {input.ndim}D input tensor.\n"
            "Supported combinations for non-constant padding:\n"
            "  - 2D or 3D input: padding size = 2 (pads last dimension)\n"
            "  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n"
            "  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)"
        )
    return _pad(mode, dims, input, [n.__index__() for n in pad])


def _pad(mode, dims, input, pad):
    if dims == 2 and mode != "circular":
        # An image that is longer than what is put around it: nothing to complain of, and most often so.
        (left, right, above, below), height, width = pad, input.size(-2), input.size(-1)
        wide = 0 <= left < width < 2**60 and 0 <= right < width
        if wide and 0 <= above < height < 2**60 and 0 <= below < height and input.size(-3):
            primitive = ops.reflection_pad2d if mode == "reflect" else ops.replication_pad2d
            size = height + above + below, width + left + right
            return primitive(input, size, (mode, (above, left)), False)
    shape, n = input.shape, input.ndim
    left, right = pad[-2::-2], pad[::-2]
    size = tuple(shape[n - dims + d] + left[d] + right[d] for d in range(dims))
    if mode == "circular":
        for d in range(dims):
            length = shape[n - dims + d]
            if left[d] > length or right[d] > length:
                raise RuntimeError("Padding value causes wrapping around more than once.")
            kept = length + min(left[d], 0) + min(right[d], 0)
            if size[d] < 0 or (kept <= 0 < size[d]):
                raise RuntimeError("Negative padding value is resulting in an empty dimension")
        if min(pad) < 0:
            # What is cut off on one side is not there to wrap round to the other.
            input = ops.constant_pad_nd(input, [min(n, 0) for n in pad], 0)
            left = [max(n, 0) for n in left]
    else:
        if 0 in shape[n - dims - 1 :]:
            raise RuntimeError(
                f"Expected {dims + 1}D or {dims + 2}D (batch mode) tensor with possibly 0 batch size and "
                "other "
                f"non-zero dimensions for input, but got: {list(shape)}"
            )
        for d in reversed(range(dims)) if mode == "reflect" else ():
            length = shape[n - dims + d]
            if left[d] >= length or right[d] >= length:
                raise RuntimeError(
                    f"Argument #{4 + 2 * (dims - 1 - d)}: Padding size should be less than the "
                    "corresponding input "
                    f"dimension, but got: padding ({left[d]}, {right[d]}) at dimension {n - dims + d} of "
                    "input "
                    f"{list(shape)}"
                )
        largest = max(size)
        size = [(length + 2**63) % 2**64 - 2**63 for length in size]  # as torch's sums wrap
        if max(size) < 1 or largest >= 2**63:
            axes = "DHW"[-dims:]
            *outer, last = (f"{axis}: {shape[n - dims + d]}" for d, axis in enumerate(axes))
            before = ", ".join([" ".join(outer), last] if outer else [last])
            before += " " * (mode == "replicate" and dims == 2)
            after = " ".join(f"{axis}: {length}" for axis, length in zip(axes, size, strict=True))
            raise RuntimeError(f"input ({before}) is too small. Calculated output {after}")
        if min(size) < 0:
            whole = [*shape[: n - dims], *size]
            raise RuntimeError(f"Trying to create tensor with negative dimension {min(size)}: {whole}")
    return getattr(ops, f"{_PADS[mode]}{dims}d")(input, size, (mode, tuple(left)), False)


# ---- interpolation

_MODES = "nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact"
_NEEDS = {"linear": 3, "bilinear": 4, "bicubic": 4, "trilinear": 5, "lanczos": 4}
_LINEAR = {
    "linear": "upsample_linear1d",
    "bilinear": "upsample_bilinear2d",
    "trilinear": "upsample_trilinear3d",
}


def interpolate(
    input,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
    antialias=False,
):
    """The input resized to `size`, or by `scale_factor`, in all dimensions after the first two.

    mode is "nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear", "area" or, with
    antialias=True, "lanczos".

    >>> import rushlight as torch
    >>> torch.nn.functional.interpolate(torch.tensor([[[1.0, 2.0]]]), scale_factor=2, mode="linear")
    tensor([[[1.0000, 1.2500, 1.7500, 2.0000]]])
    """
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError(
                "align_corners option can only be set with the interpolating modes: linear | bilinear | "
                "bicubic | "
                "trilinear"
            )
    elif align_corners is None:
        align_corners = False
    dims, given = input.dim() - 2, (size, scale_factor)
    sizes_first = mode == "area" or bool(recompute_scale_factor)
    size, scales = _target(input, size, scale_factor, dims, recompute_scale_factor, sizes_first)
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and input.ndim == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D "
            "tensor as "
            "input"
        )
    if mode == "lanczos" and not antialias:
        raise ValueError("Lanczos mode requires antialias=True")
    known = mode in _LINEAR or mode in ("nearest", "nearest-exact", "area")
    if dims not in (1, 2, 3) or not (known or (mode in ("bicubic", "lanczos") and dims == 2)):
        raise NotImplementedError(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.ndim}D) for the modes: "
            f"{_MODES} "
            f"(got {mode})"
        )
    if _NEEDS.get(mode, input.ndim) != input.ndim:
        raise NotImplementedError(f"Got {input.ndim}D input, but {mode} mode needs {_NEEDS[mode]}D input")
    if mode == "area":
        from . import pool

        return pool._adaptive_avg_pool(dims, input, size)
    nearest = mode in ("nearest", "nearest-exact")
    kind = {"bicubic": "cubic", "lanczos": "lanczos"}.get(mode, "linear")
    name = _LINEAR.get(mode, f"upsample_{mode}2d")
    if nearest:
        name = f"upsample_{mode.replace('-', '_')}{dims}d"
    if antialias:
        name, kind = f"{name}_aa", f"{kind}_aa"
    if scales is not None or not sizes_first:
        said = f"_{name}" if antialias or mode == "nearest-exact" else name
        size, scales = _check_call(said, *given, () if nearest else (align_corners,), size, scales, input)
    _check_sizes(input, size, dims)
    if nearest:
        return getattr(ops, name)(input, size, (mode, scales), False)
    return getattr(ops, name)(input, size, (kind, align_corners, scales), False)


def _check_call(name, size, scale_factor, align, sizes, scales, input):
    """What torch's native function says of the types that it is given; the sizes and factors as numbers."""
    shown = size if isinstance(size, (tuple, list)) or size is None else [size]
    factors = (
        scale_factor if isinstance(scale_factor, (tuple, list)) or scale_factor is None else [scale_factor]
    )
    listed = shown is None or not len(shown) or (_is_int(whole(shown[0])) and not isinstance(shown[0], bool))
    number = factors is None or not len(factors) or _is_number(factors[0]) or isinstance(factors[0], complex)
    if not (listed and number and all(isinstance(each, bool) for each in align)):
        kinds = ", ".join(type(each).__name__ for each in (shown, *align, factors))
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got (Tensor, {kinds}), but expected "
            f"one of:\n * (Tensor input, tuple of ints output_size{', bool align_corners' * len(align)}, "
            "tuple of floats scale_factors)"
        )
    for at, each in enumerate(sizes if scales is None else ()):
        if not _is_int(each):
            raise TypeError(
                f"{name}(): argument 'output_size' failed to unpack the object at pos {at + 1} with error "
                f'"type must be tuple of ints,but got {class_name(each)}"'
            )
        if not -(2**63) <= each < 2**63:
            raise TypeError(
                f"{name}(): argument 'output_size' failed to unpack the object at pos {at + 1} with error "
                '"Overflow when unpacking long long\n"'
            )
    if scales is None:
        return sizes, None
    for at, each in enumerate(scales):
        if not (_is_number(each) or (isinstance(each, Tensor) and each.numel() == 1)):
            raise TypeError(
                f"{name}(): argument 'scale_factors' must be tuple of floats, but found element of type "
                f"{class_name(each)} at pos {at + 1}"
            )
    scales = tuple(map(float, scales))
    products = [n * factor for n, factor in zip(input.shape[2:], scales, strict=True)]
    if not all(abs(product) < 2.0**63 for product in products):
        raise RuntimeError("value cannot be converted to type int64_t without overflow")
    return tuple(map(int, products)), scales


def _is_number(value):
    """A real number, NumPy's too, but no array of one."""
    return isinstance(value, (int, float)) or (
        hasattr(value, "__float__") and value.__hash__ is not None and not isinstance(value, Tensor)
    )


def _is_int(value):
    if isinstance(value, Tensor):
        return value.numel() == 1 and not (value.is_floating_point() or value.is_complex())
    return hasattr(value, "__index__") and value.__hash__ is not None  # an array of NumPy is no number


def _target(input, size, scale_factor, dims, recompute, sizes_first):
    """The size of the result, and the scale factors that positions are computed from (None: from the "
    "sizes)."""
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    spatial = list(input.shape[2:])
    if size is not None:
        listed = isinstance(size, (list, tuple))
        if listed:
            if len(size) != dims:
                raise ValueError(
                    "Input and output must have the same number of spatial dimensions, but got input "
                    "with spatial "
                    f"dimensions of {spatial} and output size of {size}. Please provide input tensor in "
                    "(N, C, d1, "
                    "d2, ...,dK) format and output size in (o1, o2, ...,oK) format."
                )
        else:
            size = [size] * dims
        if recompute:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        if listed and not all(
            _is_int(n) or (isinstance(n, Tensor) and not n.is_floating_point()) for n in size
        ):
            kinds = [type(n) for n in size]
            raise TypeError(
                "expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int], "
                f"but got size with types {kinds}"
            )
        return tuple(map(whole, size)), None
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if isinstance(scale_factor, (list, tuple)):
        if len(scale_factor) != dims:
            raise ValueError(
                "Input and scale_factor must have the same number of spatial dimensions, but got input "
                "with spatial "
                f"dimensions of {spatial} and scale_factor of shape {scale_factor}. Please provide input "
                "tensor in "
                "(N, C, d1, d2, ...,dK) format and scale_factor in (s1, s2, ...,sK) format."
            )
        scales = tuple(scale_factor)
    else:
        scales = (scale_factor,) * dims
    if not sizes_first:  # computed natively, of what is known to be numbers
        return (), scales
    size = tuple(int(n * factor) for n, factor in zip(spatial, scales, strict=True))
    return size, None


def _check_sizes(input, size, dims):
    shape = input.shape
    if min(size) < 1 or 0 in shape[2:]:
        if dims == 1:
            raise RuntimeError(
                f"Input and output sizes should be greater than 0, but got input (W: {shape[2]}) and output "
                f"(W: {int(size[0])})"
            )
        axes = "DHW"[-dims:]
        before = ", ".join(f"{axis}: {n}" for axis, n in zip(axes, shape[2:], strict=True))
        after = ", ".join(f"{axis}: {int(n)}" for axis, n in zip(axes, size, strict=True))
        raise RuntimeError(
            f"Input and output sizes should be greater than 0, but got input ({before}) output ({after})"
        )
    if shape[1] == 0:
        raise RuntimeError(
            f"Non-empty {dims + 2}D data tensor expected but got a tensor with sizes {list(shape)}"
        )


# ---- moving pixels between channels and space


def _refuse_rare(kernel, input):
    if input.dtype in RARE and input.numel():
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{type_name(input.dtype)}'")


@function
def pixel_shuffle(input, upscale_factor):
    """(*, C r r, H, W) to (*, C, H r, W r): groups of channels become blocks of pixels.

    >>> import rushlight as torch
    >>> torch.pixel_shuffle(torch.arange(4.0).reshape(4, 1, 1), 2)
    tensor([[[0., 1.],
             [2., 3.]]])
    """
    r = operator.index(upscale_factor)
    if r > 0 and r * r >= 2**63:
        raise ValueError(
            f"upscale factor is too large, (upscale_factor)^2 overflowed: upscale_factor={upscale_factor}"
        )
    if input.ndim < 3:
        raise RuntimeError(
            f"pixel_shuffle expects input to have at least 3 dimensions, but got input with {input.ndim} "
            "dimension(s)"
        )
    if r <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {r}")
    *batch, c, h, w = input.shape
    if c % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
            "upscale_factor, "
            f"but input.size(-3)={c} is not divisible by {r * r}"
        )
    _refuse_rare("pixel_shuffle", input)
    n, c = len(batch), c // (r * r)
    if _keeps_channels_last(input):
        # In two steps, a transposition and a copy of rows: one would copy two numbers at a time.
        blocks = input.permute(0, 2, 3, 1).reshape(*batch, h, w, c, r * r).transpose(3, 4).contiguous()
        rows = blocks.reshape(*batch, h, w, r, r * c).transpose(2, 3).contiguous()
        return rows.reshape(*batch, h * r, w * r, c).permute(0, 3, 1, 2)
    blocks = input.reshape(*batch, c, r, r, h, w)
    moved = blocks.permute(*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return moved.clone(memory_format=_contiguous()).reshape(*batch, c, h * r, w * r)


@function
def pixel_unshuffle(input, downscale_factor):
    """(*, C, H r, W r) to (*, C r r, H, W): blocks of pixels become groups of channels.

    >>> import rushlight as torch
    >>> torch.pixel_unshuffle(torch.arange(4.0).reshape(1, 2, 2), 2).flatten()
    tensor([0., 1., 2., 3.])
    """
    r = operator.index(downscale_factor)
    if input.ndim < 3:
        raise RuntimeError(
            f"pixel_unshuffle expects input to have at least 3 dimensions, but got input with {input.ndim} "
            "dimension(s)"
        )
    if r <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {r}")
    *batch, c, h, w = input.shape
    for what, n, d in (("height", h, -2), ("width", w, -1)):
        if n % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {what} to be divisible by downscale_factor, but "
                f"input.size({d})={n} is "
                f"not divisible by {r}"
            )
    if not input.numel():
        return input.clone()  # torch leaves the shape of what is empty as it is
    _refuse_rare("pixel_unshuffle", input)
    n = len(batch)
    if _keeps_channels_last(input):
        h, w = h // r, w // r
        rows = input.permute(0, 2, 3, 1).reshape(*batch, h, r, w, r * c).transpose(2, 3).contiguous()
        blocks = rows.reshape(*batch, h, w, r * r, c).transpose(3, 4).contiguous()
        return blocks.reshape(*batch, h, w, c * r * r).permute(0, 3, 1, 2)
    blocks = input.reshape(*batch, c, h // r, r, w // r, r)
    moved = blocks.permute(*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return moved.clone(memory_format=_contiguous()).reshape(*batch, c * r * r, h // r, w // r)


def _keeps_channels_last(input):
    from .layout import channels_last, suggested

    return input.ndim == 4 and suggested(input) is channels_last


def _contiguous():
    from .shape import contiguous_format

    return contiguous_format


def _channel_shuffle(name, input, groups):
    if input.ndim < 3:
        raise RuntimeError(
            f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(input.shape)}"
        )
    groups = whole(groups)
    if groups <= 0:
        raise RuntimeError(
            f"Number of groups to divide channels in must be positive. Value of groups:{groups}"
        )
    channels = input.shape[1]
    if channels % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {channels} channels and {groups} groups."
        )
    if input.numel() == 0:
        return input.alias() if hasattr(input, "alias") else input.view(input.shape)
    _refuse_rare("channel_shuffle", input)
    shape = input.shape
    parts = input.reshape(shape[0], groups, channels // groups, *shape[2:])
    return parts.transpose(1, 2).clone(memory_format=_contiguous()).reshape(shape)


@function
def channel_shuffle(input, groups):
    """The channels (dimension 1) of several groups dealt out in turn: 0 1 | 2 3 becomes 0 2 1 3.

    >>> import rushlight as torch
    >>> torch.channel_shuffle(torch.arange(4.0).reshape(1, 4, 1), 2).flatten()
    tensor([0., 2., 1., 3.])
    """
    return _channel_shuffle("channel_shuffle", input, groups)


@function
def native_channel_shuffle(input, groups):
    """channel_shuffle by torch's other name.

    >>> rushlight.native_channel_shuffle(rushlight.arange(4).reshape(1, 4, 1), 2).flatten()
    tensor([0, 2, 1, 3])
    """
    result = _channel_shuffle("native_channel_shuffle", _C.detach(input), groups)
    return undifferentiable("native_channel_shuffle", result, input)
