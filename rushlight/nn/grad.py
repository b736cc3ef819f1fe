"""Gradients of convolutions as functions of their own: with respect to the input, and to the weights."""

from rushlight import _C
from rushlight.nn._tuples import _pair, _single, _triple

__all__ = [
    "conv1d_input",
    "conv1d_weight",
    "conv2d_input",
    "conv2d_weight",
    "conv3d_input",
    "conv3d_weight",
]


def _conj(tensor):
    return tensor.conj() if tensor.is_complex() else tensor


def _input_gradient(spread, input_size, weight, grad_output, stride, padding, dilation, groups):
    return _C.ops.conv_input_gradient(
        grad_output,
        _conj(weight),
        tuple(input_size),
        spread(stride),
        spread(padding),
        spread(dilation),
        groups,
    )


def _weight_gradient(spread, input, weight_size, grad_output, stride, padding, dilation, groups):
    return _C.ops.conv_weight_gradient(
        _conj(input),
        grad_output,
        tuple(weight_size),
        spread(stride),
        spread(padding),
        spread(dilation),
        groups,
    )


def conv1d_input(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """The gradient of ``conv1d`` with respect to its input.

    >>> import rushlight as torch
    >>> weight, grad = torch.tensor([[[1.0, 2.0]]]), torch.ones(1, 1, 2)
    >>> torch.nn.grad.conv1d_input((1, 1, 3), weight, grad)
    tensor([[[1., 3., 2.]]])
    """
    return _input_gradient(_single, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv1d_weight(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """The gradient of ``conv1d`` with respect to its weights.

    >>> import rushlight as torch
    >>> torch.nn.grad.conv1d_weight(torch.tensor([[[1.0, 2.0, 3.0]]]), (1, 1, 2), torch.ones(1, 1, 2))
    tensor([[[3., 5.]]])
    """
    return _weight_gradient(_single, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv2d_input(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """The gradient of ``conv2d`` with respect to its input."""
    return _input_gradient(_pair, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv2d_weight(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """The gradient of ``conv2d`` with respect to its weights."""
    return _weight_gradient(_pair, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv3d_input(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """The gradient of ``conv3d`` with respect to its input."""
    return _input_gradient(_triple, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv3d_weight(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """The gradient of ``conv3d`` with respect to its weights."""
    return _weight_gradient(_triple, input, weight_size, grad_output, stride, padding, dilation, groups)
