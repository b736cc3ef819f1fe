"""Maxima and averages over windows, and their inverses."""

from __future__ import annotations

import rushlight
from rushlight import _C
from rushlight._checks import _check_value
from rushlight._settings import alert_not_deterministic
from rushlight._signatures import check_call
from rushlight.nn._tuples import _pair, _single, _triple
from rushlight.nn.functional._checks import functional, require_floating, require_tensor
from rushlight.ops import pool
from rushlight.ops._public import refuse_gradient, type_name
from rushlight.ops.pool import adaptive_avg_pool1d, avg_pool1d

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
]

ops = _C.ops
_TUPLES = {1: _single, 2: _pair, 3: _triple}
avg_pool2d = functional(pool.avg_pool2d)
avg_pool3d = functional(pool.avg_pool3d)
adaptive_avg_pool2d = functional(pool.adaptive_avg_pool2d)
adaptive_avg_pool3d = functional(pool.adaptive_avg_pool3d)


# ---- maxima


@functional
def max_pool1d_with_indices(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """max_pool1d, and where the maxima are."""
    return pool.max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


@functional
def max_pool2d_with_indices(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """max_pool2d, and where the maxima are in each plane."""
    return ops.max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


@functional
def max_pool3d_with_indices(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """max_pool3d, and where the maxima are in each volume."""
    return _max_pool3d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def _max_pool3d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode):
    if not isinstance(input, rushlight.Tensor):
        input.is_cuda  # noqa: B018  (the AttributeError that torch gives)
    return ops.max_pool3d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


@functional
def max_pool1d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The largest element under a window that slides along the last dimension; stride is kernel_size if None.

    >>> import rushlight as torch
    >>> torch.nn.functional.max_pool1d(torch.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    tensor([[3., 2.]])
    """
    if return_indices:
        return pool.max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
    return pool.max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode)


@functional
def max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The largest element under a window that slides over height and width; stride is kernel_size if None.

    >>> import rushlight as torch
    >>> torch.nn.functional.max_pool2d(torch.arange(16.0).reshape(1, 4, 4), 2)
    tensor([[[ 5.,  7.],
             [13., 15.]]])
    """
    if return_indices:
        return ops.max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
    return pool.max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode)


@functional
def max_pool3d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The largest element under a window that slides over depth, height and width.

    >>> import rushlight as torch
    >>> torch.nn.functional.max_pool3d(torch.arange(8.0).reshape(1, 2, 2, 2), 2)
    tensor([[[[7.]]]])
    """
    if return_indices:
        return _max_pool3d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
    return pool.max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode)


# ---- adaptive maxima


def _adaptive_max_pool(dims, input, output_size):
    name = f"adaptive_max_pool{dims}d"
    if dims > 1 and not isinstance(input, rushlight.Tensor):
        input.size()  # the AttributeError that torch gives
    require_tensor(name, input)
    if dims == 1:
        return pool.adaptive_max_pool1d(input, output_size)
    return getattr(ops, name)(input, pool.sizes_like(output_size, input, dims, "max"))


@functional
def adaptive_max_pool1d_with_indices(input, output_size, return_indices=False):
    """adaptive_max_pool1d, and where the maxima are."""
    return _adaptive_max_pool(1, input, output_size)


@functional
def adaptive_max_pool2d_with_indices(input, output_size, return_indices=False):
    """adaptive_max_pool2d, and where the maxima are in each plane."""
    return _adaptive_max_pool(2, input, output_size)


@functional
def adaptive_max_pool3d_with_indices(input, output_size, return_indices=False):
    """adaptive_max_pool3d, and where the maxima are in each volume."""
    return _adaptive_max_pool(3, input, output_size)


@functional
def adaptive_max_pool1d(input, output_size, return_indices=False):
    """Maxima over windows chosen such that there are output_size of them.

    >>> import rushlight as torch
    >>> torch.nn.functional.adaptive_max_pool1d(torch.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    tensor([[3., 2.]])
    """
    chosen = slice(None) if return_indices else 0
    return _adaptive_max_pool(1, input, output_size)[chosen]


@functional
def adaptive_max_pool2d(input, output_size, return_indices=False):
    """Maxima over windows chosen such that the result has output_size; None keeps the input's size.

    >>> import rushlight as torch
    >>> torch.nn.functional.adaptive_max_pool2d(torch.ones(1, 3, 5, 7), (2, None)).shape
    torch.Size([1, 3, 2, 7])
    """
    chosen = slice(None) if return_indices else 0
    return _adaptive_max_pool(2, input, output_size)[chosen]


@functional
def adaptive_max_pool3d(input, output_size, return_indices=False):
    """Maxima over windows chosen such that the result has output_size; None keeps the input's size.

    >>> import rushlight as torch
    >>> torch.nn.functional.adaptive_max_pool3d(torch.ones(1, 3, 5, 7, 4), 2).shape
    torch.Size([1, 3, 2, 2, 2])
    """
    chosen = slice(None) if return_indices else 0
    return _adaptive_max_pool(3, input, output_size)[chosen]


# ---- fractional maxima


def _fractional(dims, input, kernel_size, output_size, output_ratio, samples):
    name = f"fractional_max_pool{dims}d"
    if output_size is None:
        if output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
        if dims == 2 and len(output_ratio) > dims:
            raise ValueError(f"{name} requires output_ratio to either be a single Int or tuple of Ints.")
        ratio = _TUPLES[dims](output_ratio)
        output_size = tuple(int(input.size(d - dims) * ratio[d]) for d in range(dims))
    if samples is None:
        batch = 1 if input.dim() == dims + 1 else input.size(0)
        samples = rushlight.rand(batch, input.size(-dims - 1), dims, dtype=input.dtype, device=input.device)
    require_tensor(name, input)
    require_tensor(name, samples, 4, "random_samples")
    refuse_gradient(name, random_samples=samples)
    kernel_size = pool.numbers(name, "kernel_size", kernel_size, dims)
    output_size = pool.numbers(name, "output_size", output_size, dims)
    return getattr(ops, name)(input, samples, kernel_size, output_size)


@functional
def fractional_max_pool2d_with_indices(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """fractional_max_pool2d, and where the maxima are."""
    return _fractional(2, input, kernel_size, output_size, output_ratio, _random_samples)


@functional
def fractional_max_pool3d_with_indices(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """fractional_max_pool3d, and where the maxima are."""
    return _fractional(3, input, kernel_size, output_size, output_ratio, _random_samples)


@functional
def fractional_max_pool2d(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """Maxima over windows at random places, spread such that the result has output_size.

    >>> import rushlight as torch
    >>> torch.nn.functional.fractional_max_pool2d(torch.ones(1, 3, 9, 9), 2, output_size=5).shape
    torch.Size([1, 3, 5, 5])
    """
    both = _fractional(2, input, kernel_size, output_size, output_ratio, _random_samples)
    return both if return_indices else both[0]


@functional
def fractional_max_pool3d(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """Maxima over windows at random places, spread such that the result has output_size.

    >>> import rushlight as torch
    >>> torch.nn.functional.fractional_max_pool3d(torch.ones(1, 3, 9, 9, 9), 2, output_size=5).shape
    torch.Size([1, 3, 5, 5, 5])
    """
    both = _fractional(3, input, kernel_size, output_size, output_ratio, _random_samples)
    return both if return_indices else both[0]


# ---- the root of a sum of powers


@functional
def lp_pool1d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The norm of the elements under a window that slides along the last dimension.

    >>> import rushlight as torch
    >>> torch.nn.functional.lp_pool1d(torch.tensor([[3.0, 4.0]]), 2, 2)
    tensor([[5.]])
    """
    return pool.lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


@functional
def lp_pool2d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The norm of the elements under a window that slides over height and width.

    >>> import rushlight as torch
    >>> torch.nn.functional.lp_pool2d(torch.ones(1, 1, 2, 2), 2, 2)
    tensor([[[[2.]]]])
    """
    return pool.lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


@functional
def lp_pool3d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The norm of the elements under a window that slides over depth, height and width.

    >>> import rushlight as torch
    >>> torch.nn.functional.lp_pool3d(torch.ones(1, 1, 2, 2, 2), 1, 2)
    tensor([[[[[8.]]]]])
    """
    return pool.lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)


# ---- unpooling


_UNPOOL = {
    2: "T input,T indices,I2 output_size",
    3: "T input,T indices,I3 output_size,I3 stride,I3 padding",
}


def _unpool_size(input, kernel, stride, padding, output_size):
    """The spatial size of what was pooled: computed, or the one given if it is near that."""
    dims, shape = len(kernel), input.size()
    size = [(shape[d - dims] - 1) * stride[d] + kernel[d] - 2 * padding[d] for d in range(dims)]
    if output_size is not None:
        if len(output_size) == dims + 2:
            output_size = output_size[2:]
        if len(output_size) != dims:
            raise ValueError(
                f"output_size should be a sequence containing {dims} or {dims + 2} elements, but it has a "
                f"length of '{len(output_size)}'"
            )
        for d in range(dims):
            least, most = size[d] - stride[d], size[d] + stride[d]
            if not least < output_size[d] < most:
                raise ValueError(
                    f'invalid output_size "{output_size}" (dim {d} must be between {least} and {most})'
                )
        size = output_size
    for d in range(dims):
        _check_value(
            size[d] >= 0,
            lambda d=d: (
                "max_unpooling: output_size must contain non-negative spatial dimensions, but got "
                f"output_size[{d}]={size[d]}"
            ),
        )
    return tuple(size)


def _unpool(dims, input, indices, kernel_size, stride, padding, output_size):
    kernel = _TUPLES[dims](kernel_size)
    stride = kernel if stride is None else _TUPLES[dims](stride)
    padding = _TUPLES[dims](padding)
    size = _unpool_size(input, kernel, stride, padding, output_size)
    lines = dims == 1
    if lines:  # as torch, which unpools them as columns of an image
        dims, input, indices, size = 2, input.unsqueeze(-1), indices.unsqueeze(-1), (*size, 1)
    name = f"max_unpool{dims}d"
    given = (input, indices, size) if dims == 2 else (input, indices, size, stride, padding)
    check_call(name, _UNPOOL[dims], *given)
    if indices.dtype != rushlight.int64:
        shown = f" but got: {type_name(indices.dtype)}" if dims < 3 else ""
        raise RuntimeError(f"elements in indices should be type int64{shown}")
    _check_unpooled(dims, input, indices, size, stride, padding)
    require_floating(name, name, input)
    alert_not_deterministic(f"max_unpooling{dims}d_forward_out")
    result = ops.max_unpool(input, indices, tuple(map(int, size)))
    return result.squeeze(-1) if lines else result


def _check_unpooled(dims, input, indices, size, stride, padding):
    """Refuses, in torch's order, tensors and sizes of another number of dimensions."""
    axes = "(height, width)" if dims == 2 else "(depth, height, width)"
    count = f"There should be exactly {('two', 'three')[dims - 2]} elements {axes} in"
    if dims == 3 and len(size) != 3:
        raise RuntimeError(f"{count} output_size, but got {len(size)} elements.")
    if input.ndim not in (dims + 1, dims + 2):
        raise RuntimeError(
            f"Input to max_unpooling{dims}d should be a {dims + 1}d or {dims + 2}d Tensor, but got a tensor "
            f"with {input.ndim} dimensions."
        )
    if dims == 2 and len(size) != 2:
        raise RuntimeError(f"{count} output_size, but got {len(size)} elements.")
    if dims == 3:
        for what, values in (("stride", stride), ("padding", padding)):
            if len(values) != 3:
                raise RuntimeError(f"{count} {what}, but got: {len(values)} elements.")
    if input.shape != indices.shape:
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({list(input.shape)}) but got "
            f"indices tensor with shape: {list(indices.shape)}"
        )
    if dims == 3 and not all(step > 0 for step in stride):
        raise RuntimeError(f"strides should be greater than zero, but got stride: {list(map(int, stride))}")
    for d in range(1, input.ndim):
        if input.shape[d] == 0:
            raise RuntimeError(
                f"max_unpooling{dims}d_forward_out_cpu(): Expected input to have non-zero size for non-batch "
                f"dimensions, but got {list(input.shape)} with dimension {d} being empty."
            )


@functional
def max_unpool1d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Puts the elements where max_pool1d found them, and zeros elsewhere.

    >>> import rushlight as torch
    >>> torch.nn.functional.max_unpool1d(torch.tensor([[3.0, 2.0]]), torch.tensor([[1, 2]]), 2)
    tensor([[0., 3., 2., 0.]])
    """
    return _unpool(1, input, indices, kernel_size, stride, padding, output_size)


@functional
def max_unpool2d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Puts the elements where max_pool2d found them, and zeros elsewhere.

    >>> import rushlight as torch
    >>> torch.nn.functional.max_unpool2d(torch.tensor([[[3.0]]]), torch.tensor([[[2]]]), 2)
    tensor([[[0., 0.],
             [3., 0.]]])
    """
    return _unpool(2, input, indices, kernel_size, stride, padding, output_size)


@functional
def max_unpool3d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Puts the elements where max_pool3d found them, and zeros elsewhere.

    >>> import rushlight as torch
    >>> x, where = torch.ones(1, 1, 1, 1), torch.zeros(1, 1, 1, 1, dtype=torch.int64)
    >>> torch.nn.functional.max_unpool3d(x, where, 2).shape
    torch.Size([1, 2, 2, 2])
    """
    return _unpool(3, input, indices, kernel_size, stride, padding, output_size)
