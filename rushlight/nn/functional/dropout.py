"""Dropout in all its forms. The masks are drawn as torch draws them."""

import math

import rushlight
from rushlight import _C
from rushlight._warn import warn
from rushlight.nn.functional._checks import functional
from rushlight.ops._public import type_name


def _check_probability(p):
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def _mask(input, p, by_channel):
    if by_channel and input.dim() < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    if by_channel:
        shape = (*input.shape[:2], *[1] * (input.dim() - 2))
        mask = _asked("new_empty.default", input, shape) if _watched(input) else input.new_empty(shape)
    else:  # in the layout of the input, as the numbers are drawn in the order of memory
        mask = _asked("empty_like.default", input) if _watched(input) else rushlight.empty_like(input)
    return mask.bernoulli_(1 - p)


def _draws_in_order():
    """Where functions are transformed, torch draws element by element, however they lie in memory; not where
    `linearize` keeps what the function itself computes."""
    if not _C.transforming():
        return False
    from rushlight.func._tensor import TAPE

    return all(kind != TAPE for _, kind, *_ in _C.all_levels())


def _watched(tensor):
    """Whether somebody else looks on than a transform, which sees the operations that these are made of."""
    return _C.watched(tensor) and not _C.is_leveled(tensor)


def _asked(overload, *args):
    """An operation as torch's own code calls it, shown to who looks on."""
    from rushlight._aten_calls import named

    return named(overload, *args)


def _by_number(name, tensor, number):
    """An operation with a number, which torch's own code calls by that overload."""
    if _watched(tensor):
        return _asked(f"{name}.Scalar", tensor, number)
    return getattr(tensor, name)(number)


def _dropout(input, p, training, inplace, by_channel=False):
    if p != p:
        raise RuntimeError("dropout probability has to be between 0 and 1, but got nan")
    if p == 0 or not training or input.numel() == 0:
        return input
    if p != 1 and not (input.is_floating_point() or input.is_complex()):
        raise RuntimeError(
            f"result type Float can't be cast to the desired output type {type_name(input.dtype)}"
        )
    if p == 1:
        noise = rushlight.zeros((), dtype=input.dtype, device=input.device)
    elif not by_channel and _draws_in_order():
        noise = input.new_empty(input.shape).bernoulli_(1 - p).mul_(1 / (1 - p))
    else:
        noise = _by_number("div_", _mask(input, p, by_channel), 1 - p)
    return input.mul_(noise) if inplace else input * noise


def _alpha_dropout(input, p, training, inplace, by_channel=False):
    if p != p:
        raise RuntimeError("dropout probability has to be between 0 and 1, but got nan")
    if p == 0 or not training or input.numel() == 0:
        return input
    if p == 1:
        zero = rushlight.zeros((), dtype=input.dtype, device=input.device)
        return input.mul_(zero) if inplace else input * zero
    alpha = 1.7580993408473766  # minus SELU's limit at minus infinity
    scale = 1.0 / math.sqrt((alpha * alpha * p + 1) * (1 - p))
    noise = _mask(input, p, by_channel)
    shift = _by_number("mul_", _by_number("add", noise, -1), alpha * scale)
    shift = _by_number("add_", shift, alpha * scale * p)
    noise = _by_number("mul_", noise, scale)
    return (input.mul_(noise) if inplace else input * noise).add_(shift)


@functional
def dropout(input, p=0.5, training=True, inplace=False):
    """Zero each element with probability ``p`` and scale the rest by ``1 / (1 - p)``.

    >>> import rushlight as torch
    >>> torch.nn.functional.dropout(torch.ones(3), p=1.0)
    tensor([0., 0., 0.])
    """
    _check_probability(p)
    return _dropout(input, p, training, inplace)


@functional
def alpha_dropout(input, p=0.5, training=False, inplace=False):
    """Dropout that keeps mean and variance of SELU networks.

    >>> rushlight.nn.functional.alpha_dropout(rushlight.ones(2), 0.5, training=False)
    tensor([1., 1.])
    """
    _check_probability(p)
    return _alpha_dropout(input, p, training, inplace)


@functional
def feature_alpha_dropout(input, p=0.5, training=False, inplace=False):
    """``alpha_dropout`` of whole channels.

    >>> rushlight.nn.functional.feature_alpha_dropout(rushlight.ones(2, 2), 0.5).shape
    torch.Size([2, 2])
    """
    _check_probability(p)
    return _alpha_dropout(input, p, training, inplace, by_channel=True)


@functional
def dropout1d(input, p=0.5, training=True, inplace=False):
    """Zero whole channels of a (N, C, L) or (C, L) input.

    >>> import rushlight as torch
    >>> torch.nn.functional.dropout1d(torch.ones(2, 3, 4), training=False).shape
    torch.Size([2, 3, 4])
    """
    _check_probability(p)
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input. Note that dropout1d "
            "exists to provide channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, "
            "and an optional batch dimension (i.e. 2D or 3D inputs)."
        )
    return _batched(input, 3, p, training, inplace)


def _warn_of_dimensions(name, input, spatial):
    warn(
        f"{name}: Received a {input.dim()}-D input to {name}, which is deprecated and will result in an "
        "error in a future release. To retain the behavior and silence this warning, please use dropout "
        f"instead. Note that {name} exists to provide channel-wise dropout on inputs with {spatial} spatial "
        f"dimensions, a channel dimension, and an optional batch dimension (i.e. {spatial + 1}D or "
        f"{spatial + 2}D inputs)."
    )


@functional
def dropout2d(input, p=0.5, training=True, inplace=False):
    """Zero whole channels of a (N, C, H, W) input.

    >>> rushlight.nn.functional.dropout2d(rushlight.ones(1, 1, 1, 2), 0.5, training=False)
    tensor([[[[1., 1.]]]])
    """
    _check_probability(p)
    if input.dim() not in (3, 4):
        _warn_of_dimensions("dropout2d", input, 2)
    if input.dim() == 3:
        warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior "
            "is desired - input is interpreted as shape (N, C, L), where C is the channel dim. This behavior "
            "will change in a future release to interpret the input as one without a batch dimension, i.e. "
            "shape (C, H, W). To maintain the 1D channel-wise dropout behavior, please switch to using "
            "dropout1d instead."
        )
    return _dropout(input, p, training, inplace, by_channel=True)


@functional
def dropout3d(input, p=0.5, training=True, inplace=False):
    """Zero whole channels of a (N, C, D, H, W) or (C, D, H, W) input.

    >>> rushlight.nn.functional.dropout3d(rushlight.ones(1, 1, 1, 1, 1), 0.5, training=False).shape
    torch.Size([1, 1, 1, 1, 1])
    """
    _check_probability(p)
    if input.dim() not in (4, 5):
        _warn_of_dimensions("dropout3d", input, 3)
    return _batched(input, 5, p, training, inplace)


def _batched(input, dims, p, training, inplace):
    """Channel dropout; an input of other than ``dims`` dimensions lacks its batch dimension and gets one."""
    if input.dim() == dims:
        return _dropout(input, p, training, inplace, by_channel=True)
    if inplace:
        return _dropout(input.unsqueeze_(0), p, training, True, by_channel=True).squeeze_(0)
    return _dropout(input.unsqueeze(0), p, training, False, by_channel=True).squeeze(0)
