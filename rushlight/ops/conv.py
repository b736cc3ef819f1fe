"""Convolutions: their derivatives, then conv1d to conv3d, the transposed ones, conv_tbc, and unfold and fold.

A convolution, the gradient of its input and the gradient of its weights are the three faces of one trilinear
form: the derivatives of each are the other two.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable

from rushlight import _C
from rushlight._type_names import type_name as class_name
from rushlight._warn import warn_once

from . import _recorded_tangents as terms
from ._again import while_hooked
from ._public import Tensor, function, legacy_name, type_name
from ._rules import derivative
from ._tangents import PRODUCT, linear
from .layout import contiguous_format, laid_out

ops = _C.ops


def _conj(x):
    return x.conj() if x.dtype.is_complex else x


def _sum_bias(g):
    if g.dtype == _C.complex32:  # which has no sum of its own
        return ops.sum_to(g, (1, g.shape[1], *[1] * (g.ndim - 2))).reshape(-1)
    return g.sum((0, *range(2, g.ndim)))


# The output of a transposed convolution that is padded by a stride or more has room for further windows of
# the convolution that is its derivative. They belong to no input.
def _transposed_input(g, x_shape, weight, stride, padding, dilation, groups, x_turned):
    result = ops.convolution(laid_out(g, x_turned), _conj(weight), None, stride, padding, dilation, groups)
    if result.shape == x_shape:
        return result
    for d, size in enumerate(x_shape):
        result = result.narrow(d, 0, size)
    return ops.clone(result)


def _transposed_weight(g, x, weight_shape, stride, padding, dilation, groups, weight_turned):
    g = laid_out(g, weight_turned)
    dims = x.ndim - 2
    steps = zip(
        g.shape[2:],
        weight_shape[2:],
        _each(stride, dims),
        _each(padding, dims),
        _each(dilation, dims),
        strict=True,
    )
    windows = [(n + 2 * pad - dilated * (k - 1) - 1) // step + 1 for n, k, step, pad, dilated in steps]
    if windows != list(x.shape[2:]):
        missing = [n for own, all_ in zip(x.shape[:1:-1], reversed(windows)) for n in (0, all_ - own)]
        x = ops.constant_pad_nd(x, missing, 0)
    return ops.conv_weight_gradient(g, _conj(x), weight_shape, stride, padding, dilation, groups)


derivative(
    "convolution",
    x=lambda g, x_shape, weight, stride, padding, dilation, groups, x_turned: ops.conv_input_gradient(
        laid_out(g, x_turned), _conj(weight), x_shape, stride, padding, dilation, groups
    ),
    weight=lambda g, x, weight_shape, stride, padding, dilation, groups, weight_turned: (
        ops.conv_weight_gradient(
            _conj(x), laid_out(g, weight_turned), weight_shape, stride, padding, dilation, groups
        )
    ),
    bias=_sum_bias,
    shows="x weight",
    recorded=terms.convolution,
)
derivative(
    "conv_input_gradient",
    node="ConvolutionBackwardBackward0",
    grad=lambda g, weight, stride, padding, dilation, groups: ops.convolution(
        g, _conj(weight), None, stride, padding, dilation, groups
    ),
    weight=lambda g, grad, weight_shape, stride, padding, dilation, groups: ops.conv_weight_gradient(
        g, _conj(grad), weight_shape, stride, padding, dilation, groups
    ),
    **PRODUCT,
)
derivative(
    "conv_weight_gradient",
    node="ConvolutionBackwardBackward0",
    x=lambda g, x_shape, grad, stride, padding, dilation, groups: ops.conv_input_gradient(
        _conj(grad), g, x_shape, stride, padding, dilation, groups
    ),
    grad=lambda g, x, stride, padding, dilation, groups: ops.convolution(
        _conj(x), g, None, stride, padding, dilation, groups
    ),
    **PRODUCT,
)
derivative(
    "conv_transpose",
    node="ConvolutionBackward0",
    x=_transposed_input,
    weight=_transposed_weight,
    bias=_sum_bias,
    shows="x weight output_padding",
)
derivative(
    "im2col",
    node="Im2ColBackward0",
    x=lambda g, x_shape, kernel_size, dilation, padding, stride: ops.col2im(
        g, x_shape[-2:], kernel_size, dilation, padding, stride
    ),
    tangent=linear,
)
derivative(
    "col2im",
    node="Col2ImBackward0",
    x=lambda g, kernel_size, dilation, padding, stride: ops.im2col(g, kernel_size, dilation, padding, stride),
    tangent=linear,
)


def _of_parts(convolve):
    """Where hooks look on, a complex convolution is three real ones, as in torch."""

    def record(x, weight, bias, *numbers):
        given = [each for each in (x, weight, bias) if each is not None]
        if any(each.dtype not in (_C.complex64, _C.complex128) for each in given):
            return NotImplemented
        pairs = [(None, None) if each is None else (each.real, each.imag) for each in (x, weight, bias)]
        real, imaginary = zip(*pairs, strict=True)
        both = (None if first is None else first + second for first, second in pairs)
        a, b = convolve(*real, *numbers), convolve(*imaginary[:2], None, *numbers)
        c = convolve(*both, *numbers)
        return a - b + _C.name_node((c - a - b) * 1j, "MulBackward1")

    return record


for _name in ("convolution", "conv_transpose"):
    while_hooked(_name)(_of_parts(getattr(ops, _name)))

_convolution = ops.convolution
_transpose = ops.conv_transpose


def _refuse(name, args, kwargs):
    given = [type(arg).__name__ for arg in args]
    given += [f"{key}={class_name(value)}" for key, value in kwargs.items()]
    raise TypeError(
        f"{name}() received an invalid combination of arguments - got ({', '.join(given)}), but expected "
        "one of:\n"
        " * (Tensor input, Tensor weight, Tensor bias = None, tuple of ints stride = 1, tuple of ints "
        "padding = 0, "
        "tuple of ints dilation = 1, int groups = 1)"
    )


def _check_length(what, numbers, weight):
    if len(numbers) not in (1, weight.ndim - 2):
        raise RuntimeError(
            f"expected {what} to be a single integer value or a list of {weight.ndim - 2} values to match "
            f"the convolution dimensions, but got {what}={numbers}"
        )


def _check_tensors(name, dims, input, weight, bias):
    if not isinstance(input, Tensor) or not isinstance(weight, Tensor):
        _refuse(name, (input, weight), {})
    if input.ndim not in (dims + 1, dims + 2):
        raise RuntimeError(
            f"Expected {dims + 1}D (unbatched) or {dims + 2}D (batched) input to {name}, but got input of "
            "size: "
            f"{list(input.shape)}"
        )
    if input.is_complex():  # computed from parts in torch, which looks at the types before at the sizes
        for what, other in (("weight", weight), ("bias", bias)):
            if isinstance(other, Tensor) and other.dtype != input.dtype:
                types = legacy_name(input), legacy_name(other)
                raise RuntimeError(f"Input type ({types[0]}) and {what} type ({types[1]}) should be the same")


def _check_weight(dims, input, weight, groups, numbers, same=False):
    """What is wrong with a call whose weight does not have the usual number of dimensions."""
    if weight.ndim == dims + 2:
        return
    if weight.ndim < 3:
        raise RuntimeError("weight should have at least three dimensions")
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    if same:
        raise RuntimeError(
            f"Expected {weight.ndim}-dimensional input for {weight.ndim}-dimensional weight"
            f"{list(weight.shape)}, but got {input.ndim}-dimensional input of size "
            f"{list(input.shape)} instead"
        )
    for what, value in numbers.items():
        _check_length(what, list(value) if isinstance(value, (tuple, list)) else [value] * dims, weight)
    raise RuntimeError(
        f"Expected {weight.ndim}-dimensional input for {weight.ndim}-dimensional weight "
        f"{list(weight.shape)}, but got {dims + 2}-dimensional input of size "
        f"{list(input.shape) if input.ndim == dims + 2 else [1, *input.shape]} instead"
    )


def _each(value, dims):
    return (
        list(value) * (dims if len(value) == 1 else 1) if isinstance(value, (tuple, list)) else [value] * dims
    )


def _named_padding(padding, dims, input, weight, stride, dilation):
    """The input and padding that 'same' or 'valid' mean."""
    if padding == "valid":
        return input, 0
    for what, numbers in (("stride", stride), ("dilation", dilation)):
        if isinstance(numbers, (tuple, list)) and len(numbers) not in (1, dims):
            raise RuntimeError(f"{what} cannot broadcast to {dims} dimensions")
    if any(step != 1 for step in _each(stride, dims)):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    total = [step * (size - 1) for step, size in zip(_each(dilation, dims), weight.shape[2:], strict=True)]
    odd = [size > 0 and size % 2 for size in total]
    if any(odd):
        warn_once(
            "Using padding='same' with even kernel lengths and odd dilation may require a zero-padded copy "
            "of the input be created"
        )
        # One more on the right than on the left, where the total is odd.
        input = ops.constant_pad_nd(input, [n for one in reversed(odd) for n in (0, int(one))], 0)
    return input, tuple(int(size / 2) for size in total)  # rounded towards zero, of kernels of nothing


def _conv(name, dims, input, weight, bias, stride, padding, dilation, groups):
    """The convolution of a call that is out of the ordinary: without a batch, with named padding, or of
    several dtypes."""
    named = padding.__class__ is str
    if not named and isinstance(bias, Tensor) and isinstance(input, Tensor) and bias.dtype != input.dtype:
        types = _C.dtype_cpp_name(input.dtype), _C.dtype_cpp_name(bias.dtype)
        raise RuntimeError(f"Input type ({types[0]}) and bias type ({types[1]}) should be the same")
    _check_tensors(name, dims, input, weight, bias)
    if named and padding not in ("same", "valid"):
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    _check_weight(
        dims,
        input,
        weight,
        groups,
        {"stride": stride, "dilation": dilation},
        same=named and padding == "same",
    )
    single = input.ndim == dims + 1
    if single:
        input = input.unsqueeze(0)
    if named:
        input, padding = _named_padding(padding, dims, input, weight, stride, dilation)
    result = _convolution(input, weight, bias, stride, padding, dilation, groups)
    # Without channels to add up there are none in the result either, in torch.
    result = result if weight.size(1) else result[:, :0]
    return result.squeeze(0) if single else result


def _conv_transpose(name, dims, input, weight, bias, stride, padding, output_padding, groups, dilation):
    _check_tensors(name, dims, input, weight, bias)
    _check_weight(dims, input, weight, groups, {"stride": stride, "dilation": dilation})
    if input.ndim == dims + 1:
        result = _transpose(
            input.unsqueeze(0), weight, bias, stride, padding, output_padding, dilation, groups
        )
        return result.squeeze(0)
    return _transpose(input, weight, bias, stride, padding, output_padding, dilation, groups)


@function
def conv1d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """The correlation of every signal with every kernel, summed over the channels of its group.

    input is (N, C, L) or (C, L), weight (O, C / groups, K); padding may be "same" or "valid".

    >>> import rushlight as torch
    >>> torch.conv1d(torch.tensor([[[1.0, 2.0, 3.0]]]), torch.tensor([[[1.0, 10.0]]]))
    tensor([[[21., 32.]]])
    """
    try:
        if (
            input.ndim == 3 == weight.ndim
            and padding.__class__ is not str
            and input.dtype is weight.dtype
            and (bias is None or bias.dtype is input.dtype)
        ):
            result = _convolution(input, weight, bias, stride, padding, dilation, groups)
            return result if weight.size(1) else result[:, :0]
    except AttributeError:
        pass
    return _conv("conv1d", 1, input, weight, bias, stride, padding, dilation, groups)


@function
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """The correlation of every image with every kernel, summed over the channels of its group.

    input is (N, C, H, W) or (C, H, W), weight (O, C / groups, KH, KW); padding may be "same" or "valid".

    >>> import rushlight as torch
    >>> torch.conv2d(torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2))
    tensor([[[[4., 4.],
              [4., 4.]]]])
    """
    try:
        if (
            input.ndim == 4 == weight.ndim
            and padding.__class__ is not str
            and input.dtype is weight.dtype
            and (bias is None or bias.dtype is input.dtype)
        ):
            result = _convolution(input, weight, bias, stride, padding, dilation, groups)
            return result if weight.size(1) else result[:, :0]
    except AttributeError:
        pass
    return _conv("conv2d", 2, input, weight, bias, stride, padding, dilation, groups)


@function
def conv3d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """The correlation of every volume with every kernel, summed over the channels of its group.

    input is (N, C, D, H, W) or (C, D, H, W), weight (O, C / groups, KD, KH, KW).

    >>> import rushlight as torch
    >>> torch.conv3d(torch.ones(1, 1, 2, 2, 2), torch.ones(3, 1, 2, 2, 2)).shape
    torch.Size([1, 3, 1, 1, 1])
    """
    try:
        if (
            input.ndim == 5 == weight.ndim
            and padding.__class__ is not str
            and input.dtype is weight.dtype
            and (bias is None or bias.dtype is input.dtype)
        ):
            result = _convolution(input, weight, bias, stride, padding, dilation, groups)
            return result if weight.size(1) else result[:, :0]
    except AttributeError:
        pass
    return _conv("conv3d", 3, input, weight, bias, stride, padding, dilation, groups)


@function
def conv_transpose1d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """The adjoint of conv1d: every element spreads the kernel over the output. weight is (C, O / groups, K).

    >>> import rushlight as torch
    >>> torch.conv_transpose1d(torch.tensor([[[1.0, 2.0]]]), torch.tensor([[[1.0, 10.0]]]))
    tensor([[[ 1., 12., 20.]]])
    """
    return _conv_transpose(
        "conv_transpose1d", 1, input, weight, bias, stride, padding, output_padding, groups, dilation
    )


@function
def conv_transpose2d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """The adjoint of conv2d: every pixel spreads the kernel over the output. weight: (C, O / groups, KH, KW).

    >>> import rushlight as torch
    >>> torch.conv_transpose2d(torch.ones(1, 1, 2, 2), torch.ones(1, 1, 2, 2), stride=2).shape
    torch.Size([1, 1, 4, 4])
    """
    return _conv_transpose(
        "conv_transpose2d", 2, input, weight, bias, stride, padding, output_padding, groups, dilation
    )


@function
def conv_transpose3d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """The adjoint of conv3d: every voxel spreads the kernel over the output.

    >>> import rushlight as torch
    >>> torch.conv_transpose3d(torch.ones(1, 1, 1, 1, 1), torch.ones(1, 2, 2, 2, 2)).shape
    torch.Size([1, 2, 2, 2, 2])
    """
    return _conv_transpose(
        "conv_transpose3d", 3, input, weight, bias, stride, padding, output_padding, groups, dilation
    )


@function
def convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    """The convolution of as many dimensions as the input has, or its adjoint; every argument is given.

    >>> import rushlight as torch
    >>> x, w = torch.ones(1, 1, 3), torch.ones(1, 1, 2)
    >>> torch.convolution(x, w, None, [1], [0], [1], False, [0], 1)
    tensor([[[2., 2.]]])
    """
    complex_kind = isinstance(input, Tensor) and input.is_complex()
    if complex_kind:  # for which there is no kernel, which torch notices after the sizes, as of booleans
        kind = type_name(input.dtype)
        input, weight, bias = (t.bool() if isinstance(t, Tensor) else t for t in (input, weight, bias))
    try:
        if transposed:
            return _transpose(input, weight, bias, stride, padding, output_padding, dilation, groups)
        _check_generic(weight, stride, padding, dilation, output_padding, groups)
        return _convolution(input, weight, bias, stride, padding, dilation, groups)
    except NotImplementedError as error:
        if not complex_kind:
            raise
        raise NotImplementedError(str(error).replace("Bool", kind)) from None


def _check_generic(weight, stride, padding, dilation, output_padding, groups):
    """The output padding that a plain convolution is given for nothing, in torch's order of checks."""
    bad_length = len(output_padding) not in (1, weight.ndim - 2)
    if (not bad_length and min(output_padding) >= 0) or weight.ndim < 3 or groups <= 0:
        return
    for what, numbers in (("stride", stride), ("padding", padding), ("dilation", dilation)):
        _check_length(what, list(numbers), weight)
    _check_length("output_padding", list(output_padding), weight)
    if min(padding) >= 0:
        raise RuntimeError("negative output_padding is not supported")


@function
def conv_tbc(input, weight, bias, pad=0):
    """conv1d of an input (time, batch, channels) with weights (kernel, in channels, out channels).

    >>> import rushlight as torch
    >>> torch.conv_tbc(torch.ones(5, 2, 3), torch.ones(2, 3, 4), torch.zeros(4)).shape
    torch.Size([4, 2, 4])
    """
    if input.ndim != 3:
        raise RuntimeError("Input must have 3 dims: time, batch, in_channel")
    if weight.ndim != 3:
        raise RuntimeError("Weight tensor must have 3 dims: kernel_width, in_channels, out_channels.")
    if bias.ndim != 1:
        raise RuntimeError("Bias must be 1-D")
    if input.shape[2] != weight.shape[1]:
        raise RuntimeError("Input dim 2 (input channels) is not == dim 1 in the weight tensor")
    if weight.shape[2] != bias.shape[0]:
        raise RuntimeError("Bias size must equal dim 2 in the weight tensor (output channels).")
    if input.dtype != weight.dtype:
        names = f"{type_name(input.dtype)} and {type_name(weight.dtype)}"
        raise RuntimeError(f"self and mat2 must have the same dtype, but got {names}")
    shape = (input.size(0) + 2 * pad - weight.size(0) + 1, input.size(1), weight.size(2))
    if shape[0] < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {shape[0]}: {list(shape)}")
    result = bias.to(input.dtype).expand(shape) + (input[:0].sum() + weight[:0].sum()).to(input.dtype)
    # A product for each place in the kernel, of the steps within the input: padding is not multiplied.
    for place in range(weight.size(0)):
        begin, end = max(0, pad - place), min(shape[0], input.size(0) + pad - place)
        if begin < end:
            steps = input[begin + place - pad : end + place - pad]
            around = (0, 0, 0, 0, begin, shape[0] - end)
            result = result + ops.constant_pad_nd(steps @ weight[place], around, 0)
    return _C.name_node(result.clone(memory_format=contiguous_format), "ConvTbcBackward0")


def _pairs(name, signature, input, *given):
    """torch makes pairs of numbers before it looks at what they are."""
    from rushlight._signatures import check_call

    pairs = [tuple(value) if isinstance(value, Iterable) else (value, value) for value in given]
    check_call(name, signature, input, *pairs)
    return [tuple(map(operator.index, pair)) for pair in pairs]


def _are_pairs(given):
    """Whether all are plain numbers or lists of them; `_pairs` looks at others as torch does."""
    return all(
        _is_size(value) or (value.__class__ in (tuple, list) and all(map(_is_size, value))) for value in given
    )


def _is_size(value):
    return value.__class__ is int and -(2**63) <= value < 2**63


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """The patches under a sliding window as columns, (N, C * KH * KW, number of windows).

    >>> import rushlight as torch
    >>> torch.nn.functional.unfold(torch.ones(1, 3, 4, 4), (2, 2)).shape
    torch.Size([1, 12, 9])
    """
    given = kernel_size, dilation, padding, stride
    try:
        if _are_pairs(given):
            return ops.im2col(input, *given)
    except TypeError:
        pass
    except IndexError:
        input.size(-2 if input.requires_grad and _C.is_grad_enabled() else 1)  # what torch asks for first
        raise
    signature = "T input,I2 kernel_size,I2 dilation,I2 padding,I2 stride"
    return ops.im2col(input, *_pairs("im2col", signature, input, *given))


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """The adjoint of unfold: columns are added up where their patches lie in the image.

    >>> import rushlight as torch
    >>> torch.nn.functional.fold(torch.ones(1, 12, 9), (4, 4), (2, 2)).shape
    torch.Size([1, 3, 4, 4])
    """
    given = output_size, kernel_size, dilation, padding, stride
    try:
        if _are_pairs(given):
            return ops.col2im(input, *given)
    except TypeError:
        pass
    signature = "T input,I2 output_size,I2 kernel_size,I2 dilation,I2 padding,I2 stride"
    return ops.col2im(input, *_pairs("col2im", signature, input, *given))
