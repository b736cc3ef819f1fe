"""Pooling: derivatives, then maxima and averages over windows, adaptive and fractional ones, and unpooling.

Average pooling is a linear map; its primitive applied with adjoint=True is its derivative. Max pooling
without indices keeps its input and looks for the maxima again in backward.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from rushlight import _C
from rushlight._type_names import type_name as class_name

from ._public import Tensor, function, whole
from ._rules import derivative, unmoved
from ._tangents import linear
from .layout import laid_out
from .matmul import finish

ops = _C.ops
_NUMBER = {2: "two", 3: "three"}
_NODES = {
    "max_pool": ("SqueezeBackward1", "MaxPool2DWithIndicesBackward0", "MaxPool3DWithIndicesBackward0"),
    "avg_pool": ("SqueezeBackward1", "AvgPool2DBackward0", "AvgPool3DBackward0"),
    "adaptive_avg_pool": ("SqueezeBackward1", "AdaptiveAvgPool2DBackward0", "AdaptiveAvgPool3DBackward0"),
    "adaptive_max_pool": ("SqueezeBackward1", "AdaptiveMaxPool2DBackward0", "AdaptiveMaxPool3DBackward0"),
    "fractional_max_pool": (None, "FractionalMaxPool2DBackward0", "FractionalMaxPool3DBackward0"),
}


def linear_map(name, node, keeps=False, lies=None):
    """The derivative of a primitive NAME(x; size, spec, adjoint) that is its own adjoint's adjoint.

    keeps says that torch's backward is given x, though the gradient does not depend on it; lies how its
    result lies in memory: as the gradient that it is given, "as x" or "in order".
    """
    primitive = getattr(ops, name)

    def adjoint_of(g, x_shape, size, spec, adjoint, x_turned):
        if lies:
            g = laid_out(g, lies == "as x" and x_turned)
        return primitive(g, x_shape[-len(size) :], spec, not adjoint)

    def keeping(g, x, size, spec, adjoint, x_turned):
        gradient = adjoint_of(g, x.shape, size, spec, adjoint, x_turned)
        return gradient if adjoint else unmoved(gradient, x, node)

    derivative(name, node=node, x=keeping if keeps else adjoint_of, tangent=linear)


def _from_indices(dims, node):
    return lambda g_values, indices, x: unmoved(
        ops.max_pool_scatter(g_values, indices, x.shape[-dims:]), x, node
    )


def _may_be_empty(padding, dilation):
    """Whether windows of max_pool may hold nothing: steps that jump over the whole input from the padding."""
    padded, wide = (one if isinstance(one, (tuple, list)) else (one,) for one in (padding, dilation))
    return any(padded) and any(step != 1 for step in wide)


def _max_pool_rules(dims):
    name, node = f"max_pool{dims}d", _NODES["max_pool"][dims - 1]
    gradient, with_indices = getattr(ops, f"{name}_gradient"), getattr(ops, f"{name}_with_indices")
    derivative(
        name,
        node=node,
        x=lambda g, x, kernel_size, stride, padding, dilation, ceil_mode: gradient(
            g, x, kernel_size, stride, padding, dilation, ceil_mode
        ),
    )
    window = "kernel_size stride padding dilation ceil_mode"

    def by_indices(g_values, indices, x, kernel_size, stride, padding, dilation, ceil_mode):
        if _may_be_empty(padding, dilation):  # the indices of such windows mean nothing
            found = gradient(g_values, x, kernel_size, stride, padding, dilation, ceil_mode)
            return unmoved(found, x, node)
        return unmoved(ops.max_pool_scatter(g_values, indices, x.shape[-dims:]), x, node)

    derivative(f"{name}_with_indices", node=node, x=by_indices, shows=f"x {window}")

    # Where the maxima lie does not change with x (almost everywhere).
    def of_grad(g, x, kernel_size, stride, padding, dilation, ceil_mode):
        window = kernel_size, stride, padding, dilation, ceil_mode
        indices = with_indices(x.detach(), *window)[1]
        if not _may_be_empty(padding, dilation):
            return ops.max_pool_gather(g, indices, dims)
        whole = getattr(ops, name)(_C.zeros_like(x.detach()), *window) == 0
        found = ops.max_pool_gather(g, ops.where(whole, indices, _C.zeros_like(indices)), dims)
        return ops.where(whole, found, _C.zeros_like(found))

    derivative(
        f"{name}_gradient",
        node=f"MaxPool{dims}DWithIndicesBackwardBackward0",
        grad=of_grad,
        x=lambda g: _C.zeros_like(g),
    )


for _dims in (1, 2, 3):
    _max_pool_rules(_dims)
    linear_map(f"avg_pool{_dims}d", _NODES["avg_pool"][_dims - 1], keeps=True, lies="as x")
    _node = _NODES["adaptive_avg_pool"][_dims - 1]
    linear_map(f"adaptive_avg_pool{_dims}d", _node, keeps=True, lies="as x")
    _node = _NODES["adaptive_max_pool"][_dims - 1]
    derivative(f"adaptive_max_pool{_dims}d", node=_node, x=_from_indices(_dims, _node))
for _dims in (2, 3):
    _node = _NODES["fractional_max_pool"][_dims - 1]
    derivative(
        f"fractional_max_pool{_dims}d",
        node=_node,
        x=_from_indices(_dims, _node),
        samples=lambda g_values: None,
        shows="kernel_size output_size",
        constant="samples",
    )
derivative(
    "max_pool_scatter",
    node="MaxPoolBackwardBackward0",
    x=lambda g, indices, size: ops.max_pool_gather(g, indices, len(size)),
    tangent=linear,
)
derivative(
    "max_unpool",
    node="MaxUnpool2DBackward0",
    x=lambda g, indices, size: ops.max_pool_gather(g, indices, len(size)),
    tangent=linear,
)
derivative(
    "max_pool_gather",
    node="GatherBackward0",
    x=lambda g, indices, x_shape, dims: ops.max_pool_scatter(g, indices, x_shape[-dims:]),
    tangent=linear,
)

derivative(
    "max_pool_at",
    node="MaxPool2DWithIndicesBackwardBackward0",
    g=lambda g_out, indices: ops.max_pool_gather(g_out, indices, 2),
    x=lambda g_out: g_out.new_zeros(g_out.shape),
    shows="indices",
)


def max_pool(dims, *args):
    """The maxima. Hooks on saved tensors are shown where they are, which torch's node keeps."""
    if _C.top_saved_hooks() is None:
        return getattr(ops, f"max_pool{dims}d")(*args)
    return getattr(ops, f"max_pool{dims}d_with_indices")(*args)[0]


# ---- maxima


@function
def max_pool1d(input, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
    """The largest element under a window that slides along the last dimension.

    >>> import rushlight as torch
    >>> torch.max_pool1d(torch.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    tensor([[3., 2.]])
    """
    return max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode)


@function
def max_pool2d(input, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
    """The largest element under a window that slides over height and width.

    >>> import rushlight as torch
    >>> torch.max_pool2d(torch.arange(16.0).reshape(1, 1, 4, 4), 2)
    tensor([[[[ 5.,  7.],
              [13., 15.]]]])
    """
    return max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode)


@function
def max_pool3d(input, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
    """The largest element under a window that slides over depth, height and width.

    >>> import rushlight as torch
    >>> torch.max_pool3d(torch.arange(8.0).reshape(1, 2, 2, 2), 2)
    tensor([[[[7.]]]])
    """
    return max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode)


@function
def max_pool1d_with_indices(input, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
    """max_pool1d, and where the maxima are.

    >>> import rushlight as torch
    >>> torch.max_pool1d_with_indices(torch.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    (tensor([[3., 2.]]), tensor([[1, 2]]))
    """
    # As torch, which pools lines as images of one row.
    name = "max_pool1d"
    if isinstance(input, Tensor) and input.ndim not in (2, 3):
        _check_dims(name, 1, input)
    (k,) = numbers(name, "kernel_size", kernel_size, 1)
    omitted = stride is None or (stride.__class__ in (tuple, list) and not stride)
    s = k if omitted else numbers(name, "stride", stride, 1, omitted=True)[0]
    (p,), (d,) = numbers(name, "padding", padding, 1), numbers(name, "dilation", dilation, 1)
    both = ops.max_pool2d_with_indices(input.unsqueeze(-2), (1, k), (1, s), (0, p), (1, d), ceil_mode)
    return both[0].squeeze(-2), both[1].squeeze(-2)


# ---- averages


def numbers(name, what, value, dims, omitted=False):
    """A number for each dimension, from one for all or a sequence; torch's sentence if there are too many."""
    if value.__class__ is int:
        return (value,) * dims
    if isinstance(value, (tuple, list)):
        if len(value) == dims:
            return tuple(map(int, value))
        if len(value) == 1 and not name.startswith("fractional"):
            return (int(value[0]),) * dims
        if name.startswith("fractional"):
            count = "" if dims == 2 else "three "
            raise RuntimeError(f"{name}: {what} must either be a single Int or tuple of {count}Ints")
        if dims == 1:
            raise RuntimeError(f"{name}() argument '{what}' should contain one int (got {len(value)})")
        must = ("must either be " if dims == 2 else "must be ") + ("omitted, " if omitted else "")
        raise RuntimeError(f"{name}: {what} {must}a single int, or a tuple of {_NUMBER[dims]} ints")
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name}(): argument '{what}' must be tuple of ints, not {class_name(value)}")
    return (value.__index__(),) * dims


def _check_average(dims, shape, kernel, size):
    """The input must have elements, and so must the result, of this size."""
    if 0 in shape[-dims - 1 :] and dims == 3:
        raise RuntimeError(
            "avg_pool3d(): Expected input's non-batch dimensions to have positive length, but input has a "
            f"shape of {list(shape)} and non-batch dimension 0 has length zero!"
        )
    if 0 in shape[-dims - 1 :]:
        seen = [*shape[:-1], 1, shape[-1]] if dims == 1 else list(shape)
        raise RuntimeError(
            f"Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but got:{seen}"
        )
    if dims == 3 and any(length < k for length, k in zip(shape[-3:], kernel, strict=True)):
        t, h, w = shape[-3:]
        raise RuntimeError(
            f"input image (T: {t} H: {h} W: {w}) smaller than kernel size (kT: {kernel[0]} kH: {kernel[1]} "
            f"kW: {kernel[2]})"
        )
    if min(size) < 1:
        channels, flat = str(shape[-dims - 1]), (["1"] if dims == 1 else [])
        before = "x".join([channels, *flat, *map(str, shape[-dims:])])
        after = "x".join([channels, *flat, *map(str, size)])
        raise RuntimeError(
            f"Given input size: ({before}). Calculated output size: ({after}). Output size is too small"
        )


def _avg_pool(
    name, dims, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override=None
):
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {class_name(input)}")
    if dims == 1 and input.dim() not in (2, 3):
        _check_dims(name, dims, input)
    kernel = numbers(name, "kernel_size", kernel_size, dims)
    if stride is None or (stride.__class__ in (tuple, list) and not stride):
        given, stride = (), kernel
    else:
        given = stride = numbers(name, "stride", stride, dims, omitted=True)
    padding = numbers(name, "padding", padding, dims)
    if min(*kernel, *stride, *padding) < -(2**31) or max(*kernel, *stride, *padding) >= 2**31:
        raise RuntimeError("value cannot be converted to type int without overflow")
    if divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    shape = input.shape
    n = len(shape)
    if n != dims + 2:
        _check_dims(name, dims, input)
    size = []
    for d in range(dims):
        k, s, p, length = kernel[d], stride[d], padding[d], shape[n - dims + d]
        if s == 0:
            raise RuntimeError("stride should not be zero")
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
        if p > int(k / 2):
            raise RuntimeError("pad should be at most half of effective kernel size, but got "
                               f"pad={p}, kernel_size={k} and dilation=1")  # fmt: skip
        if k <= 0 or s < 0:
            flat = (1,) if dims == 1 else ()  # lines are images of one row in torch
            shown = _lettered("k", flat + kernel) if k <= 0 else _lettered("d", flat + stride)
            what = "kernel size" if k <= 0 else "stride"
            raise RuntimeError(f"{what} should be greater than zero, but got {shown}")
        out = (length + 2 * p - k + (s - 1 if ceil_mode else 0)) // s + 1
        if ceil_mode and (out - 1) * s >= length + p:
            out -= 1
        size.append(out)
    if 0 in shape[n - dims - 1 :] or min(size) < 1 or dims == 3:
        _check_average(dims, shape, kernel, size)
    spec = ("average", kernel, stride, padding, count_include_pad, divisor_override or 0, given, ceil_mode)
    if input.dtype == _C.int64:
        return _integer_average(name, input, tuple(size), spec)
    return getattr(ops, name)(input, tuple(size), spec, False)


def _integer_average(name, input, size, spec):
    """Sums, divided by the counts and cut off towards zero, as torch averages integers."""
    primitive = getattr(ops, name)
    total = primitive(input.double(), size, (*spec[:5], 1), False).long()
    if spec[5]:
        return total.div(spec[5], rounding_mode="trunc")
    ones = _C.fill_fresh(_C.empty_like(total, _C.float64, total.device), 1.0)
    # What an average weighs each element with is one over the count.
    ones = primitive(ones.new_ones(input.shape), size, (*spec[:5], 1), False)
    share = primitive(ones.new_ones(input.shape), size, spec, False)
    count = (ones / share).round().long()
    return total.div(count, rounding_mode="trunc")


def _lettered(letter, values):
    return " ".join(
        f"{letter}{axis}: {value}" for axis, value in zip("THW"[-len(values) :], values, strict=True)
    )


def _check_dims(name, dims, input):
    if input.ndim == dims + 1:
        return
    if dims == 1:
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {input.ndim}-dimensional tensor for argument #1 'self' "
            "(while "
            f"checking arguments for {name})"
        )
    if input.ndim <= dims and dims == 2:
        if not input.ndim:
            raise IndexError(f"Dimension specified as {-dims - 1} but tensor has no dimensions")
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-input.ndim}, {input.ndim - 1}], but got "
            f"{-dims - 1})"
        )
    if dims == 2 and name == "avg_pool2d":
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but "
            f"got:{list(input.shape)}"
        )
    raise RuntimeError(f"non-empty {dims + 1}D or {dims + 2}D (batch mode) tensor expected for input")


@function
def avg_pool1d(input, kernel_size, stride=(), padding=0, ceil_mode=False, count_include_pad=True):
    """The mean of the elements under a window that slides along the last dimension.

    >>> import rushlight as torch
    >>> torch.avg_pool1d(torch.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    tensor([[2., 1.]])
    """
    return _avg_pool("avg_pool1d", 1, input, kernel_size, stride, padding, ceil_mode, count_include_pad)


def avg_pool2d(
    input,
    kernel_size,
    stride=None,
    padding=0,
    ceil_mode=False,
    count_include_pad=True,
    divisor_override=None,
    *,
    out=None,
):
    """The mean of the elements under a window that slides over height and width.

    >>> import rushlight as torch
    >>> torch.nn.functional.avg_pool2d(torch.arange(16.0).reshape(1, 4, 4), 2)
    tensor([[[ 2.5000,  4.5000],
             [10.5000, 12.5000]]])
    """
    result = _avg_pool(
        "avg_pool2d", 2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )
    return finish(result, out)


def avg_pool3d(
    input,
    kernel_size,
    stride=None,
    padding=0,
    ceil_mode=False,
    count_include_pad=True,
    divisor_override=None,
    *,
    out=None,
):
    """The mean of the elements under a window that slides over depth, height and width.

    >>> import rushlight as torch
    >>> torch.nn.functional.avg_pool3d(torch.arange(8.0).reshape(1, 2, 2, 2), 2)
    tensor([[[[3.5000]]]])
    """
    result = _avg_pool(
        "avg_pool3d", 3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )
    return finish(result, out)


# ---- adaptive pooling


def sizes_like(output_size, input, dims, kind="avg"):
    """output_size for each dimension, None meaning that of the input."""
    name = f"adaptive_{kind}_pool{dims}d"
    if isinstance(output_size, str) or (
        dims > 1 and not isinstance(output_size, (tuple, list)) and hasattr(output_size, "__len__")
    ):
        if dims > 1 and input.ndim <= len(output_size):
            raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
        output_size = list(output_size)
    if not isinstance(output_size, (tuple, list)):
        if isinstance(output_size, bool):
            raise TypeError(f"{name}(): argument 'output_size' (position 2) must be tuple of ints, not bool")
        if dims > 1 and not isinstance(output_size, int):
            len(output_size)  # the TypeError that torch gives
        if isinstance(output_size, int) and not -(2**63) <= output_size < 2**63:
            raise ValueError("Overflow when unpacking long long")
        return (whole(output_size),) * dims
    if dims > 1 and input.ndim <= len(output_size):
        raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
    rest = input.shape[-dims:]
    sizes = tuple(
        own if wanted is None else whole(wanted) for wanted, own in zip(output_size, rest, strict=False)
    ) + tuple(output_size[len(rest) :])
    for at, size in enumerate(sizes):
        if size.__class__ is not int or not -(2**63) <= size < 2**63:
            _check_size(name, size, at)
    return sizes


def _check_size(name, size, at):
    """torch looks at the first element beforehand and unpacks the others."""
    if isinstance(size, Tensor):
        fine = size.numel() == 1 and not (size.is_floating_point() or size.is_complex())
    else:
        fine = isinstance(whole(size), int) and not (isinstance(size, bool) and not at)
    large = fine and not isinstance(size, Tensor) and not -(2**63) <= size < 2**63
    if fine and not large:
        return
    if at or large:
        wrong = "Overflow when unpacking long long\n"
        if not large:
            wrong = f"type must be tuple of ints,but got {class_name(size)}"
        raise TypeError(
            f"{name}(): argument 'output_size' failed to unpack the object at pos {at + 1} with error "
            f'"{wrong}"'
        )
    raise TypeError(
        f"{name}(): argument 'output_size' (position 2) must be tuple of ints, but found element of type "
        f"{class_name(size)} at pos 0"
    )


def _refuse_empty(dims, input, name):
    for d in range(1 if dims == 3 else input.ndim - dims, input.ndim):
        if input.shape[d] == 0:
            shape = list(input.shape)
            if dims == 1:
                shape.insert(input.ndim - 1, 1)
                d += 1
            raise RuntimeError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has "
                "sizes "
                f"{shape} with dimension {d} being empty"
            )


def _adaptive_avg_pool(dims, input, output_size):
    name = f"adaptive_avg_pool{dims}d"
    if not isinstance(input, Tensor):
        if dims > 1:
            input.size()  # the AttributeError that torch gives
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {class_name(input)}")
    size = sizes_like(output_size, input, dims)
    if len(size) != dims:
        if dims == 1:
            raise RuntimeError(
                f"adaptive_avg_pool1d() argument 'output_size' should contain one int (got {len(size)})"
            )
        raise RuntimeError(f"{name}: output_size must be {dims}")
    if dims == 2 and size == (1, 1):  # torch averages whatever it has, then
        return input.mean((-1, -2), keepdim=True)
    if dims == 3 and size == (1, 1, 1):
        return input.mean((-1, -2, -3), keepdim=True)
    if input.ndim not in (dims + 1, dims + 2):
        if dims == 1:
            _check_dims(name, dims, input)
        if dims == 3:
            _refuse_empty(dims, input, name)
        raise RuntimeError(
            f"{name}(): Expected {dims + 1}D or {dims + 2}D tensor, but got {list(input.shape)}"
        )
    flat = "adaptive_avg_pool2d" if dims == 1 else name
    if any(n < 0 for n in size):
        shown = ", ".join(map(str, (1, *size) if dims == 1 else size))
        if dims == 3:
            shown = "{}, {},{}".format(*size)  # as torch spaces it
        raise RuntimeError(
            f"{flat}: elements of output_size must be greater than or equal to 0 but received {{{shown}}}"
        )
    if size == (1,):  # of an image of one row, as torch has it
        return input.unsqueeze(-2).mean((-1, -2), keepdim=True).squeeze(-2)
    _refuse_empty(dims, input, flat)
    return getattr(ops, name)(input, size, ("adaptive",), False)


@function
def adaptive_avg_pool1d(input, output_size):
    """Means over windows chosen such that there are output_size of them.

    >>> import rushlight as torch
    >>> torch.adaptive_avg_pool1d(torch.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    tensor([[2., 1.]])
    """
    return _adaptive_avg_pool(1, input, output_size)


def adaptive_avg_pool2d(input, output_size):
    """Means over windows chosen such that the result has output_size; None keeps the input's size.

    >>> import rushlight as torch
    >>> torch.nn.functional.adaptive_avg_pool2d(torch.ones(1, 3, 5, 7), (2, None)).shape
    torch.Size([1, 3, 2, 7])
    """
    return _adaptive_avg_pool(2, input, output_size)


def adaptive_avg_pool3d(input, output_size):
    """Means over windows chosen such that the result has output_size; None keeps the input's size.

    >>> import rushlight as torch
    >>> torch.nn.functional.adaptive_avg_pool3d(torch.ones(1, 3, 5, 7, 4), 2).shape
    torch.Size([1, 3, 2, 2, 2])
    """
    return _adaptive_avg_pool(3, input, output_size)


@function
def adaptive_max_pool1d(input, output_size):
    """Maxima over windows chosen such that there are output_size of them, and where they are.

    >>> import rushlight as torch
    >>> torch.adaptive_max_pool1d(torch.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    (tensor([[3., 2.]]), tensor([[1, 2]]))
    """
    if isinstance(input, Tensor) and input.ndim not in (2, 3):
        _check_dims("adaptive_max_pool1d", 1, input)
    size = sizes_like(output_size, input, 1)
    if len(size) != 1:
        raise RuntimeError(
            f"adaptive_max_pool1d() argument 'output_size' should contain one int (got {len(size)})"
        )
    if size[0] < 0:
        shape = [*input.shape[:-1], 1, size[0]]
        raise RuntimeError(f"Trying to create tensor with negative dimension {size[0]}: {shape}")
    return ops.adaptive_max_pool1d(input, size)


# ---- the root of a mean of powers


_POOL = "T input,I{0} kernel_size,I{0}? stride=,I{0} padding=,b ceil_mode="
_MAX_POOL = "T input,I{0} kernel_size,I{0}? stride=,I{0} padding=,I{0} dilation=,b ceil_mode="


def lp_pool(dims, input, norm_type, kernel_size, stride, ceil_mode):
    """(sum of x ** norm_type under the window) ** (1 / norm_type); where the sum is negative, 0."""
    from rushlight._signatures import check_call

    if kernel_size.__class__ is int or dims == 1:
        size = kernel_size**dims if kernel_size.__class__ is int else None
    else:
        kernel = tuple(kernel_size) if isinstance(kernel_size, Iterable) else (kernel_size,) * dims
        if len(kernel) != dims:
            few = f"not enough values to unpack (expected {dims}, got {len(kernel)})"
            raise ValueError(few if len(kernel) < dims else f"too many values to unpack (expected {dims})")
        size = None
    numbers_only = kernel_size.__class__ is int and stride.__class__ in (int, type(None))
    plain = numbers_only and isinstance(ceil_mode, bool) and max(abs(kernel_size), abs(stride or 0)) < 2**31
    if isinstance(norm_type, (int, float)) and norm_type in (math.inf, -math.inf):
        # The largest or the smallest magnitude.
        sign, magnitudes = (1 if norm_type > 0 else -1), input.abs()
        if not plain:
            given = magnitudes, kernel_size, stride, 0, 1, ceil_mode
            check_call(f"max_pool{dims}d", _MAX_POOL.format(dims), *given)
        largest = getattr(ops, f"max_pool{dims}d")
        return sign * largest(sign * magnitudes, kernel_size, stride, 0, 1, ceil_mode)
    name = f"avg_pool{dims}d"
    if not isinstance(norm_type, (int, float, Tensor)):
        input.pow  # noqa: B018  (the AttributeError that torch gives)
        check_call("pow", "T exponent|N exponent", norm_type)
    powers = input.pow(norm_type)
    if not plain:
        check_call(name, _POOL.format(dims), powers, kernel_size, stride, 0, ceil_mode)
    if size is None:
        size = math.prod(numbers(name, "kernel_size", kernel_size, dims))
    mean = _avg_pool(name, dims, powers, kernel_size, stride, 0, ceil_mode, True)
    if dims == 1 and not plain:
        check_call("mul", "n other", kernel_size)  # by which torch multiplies as it is
    return (ops.sign(mean) * ops.abs(mean).relu() * size).pow(1.0 / norm_type)
